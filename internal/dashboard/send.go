package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// policy lets a page load what comes with the program and nothing else: no script or
// style in the page's own text, which a name could have brought there.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// partOf asks for the part of a page that changes; a value that no form and no
// address can send.
const partOf = "X-Hourthree-Part"

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// templates are the pages, each with the layout around its own main part.
var templates = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, p := range append(pages(), page{name: "lost"}) {
		all[p.name] = template.Must(template.New("").Funcs(functions).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html", "pages/"+p.name+".html"))
	}
	return all
}()

// send renders a page whole before anything of it is sent.
func send(w http.ResponseWriter, r *http.Request, status int, name string, f *frame) {
	part := "page"
	if r.Header.Get(partOf) != "" {
		part = "part"
	}
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, part, f); err != nil {
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Vary", partOf)
	h.Set("Content-Type", "text/html; charset=utf-8")
	if status != http.StatusOK || part == "page" {
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = w.Write(b.Bytes()) // a reader that has left is told nothing
		return
	}
	tagged(w, r, b.Bytes())
}

// tagged sends a representation to who has not got it.
func tagged(w http.ResponseWriter, r *http.Request, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache") // kept, and asked after by its ETag
	h.Set("ETag", tag)
	for t := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // likewise
}

// assetRoot is where scripts and styles are.
const assetRoot = "/assets/"

// assets are the files that pages load, by name.
func assets() map[string]http.Handler {
	all := map[string]http.Handler{}
	for _, name := range []string{"style.css", "live.js", "morph.js", "orders.js", "plots.js", "keys.js", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "uplot/LICENSE"} {
		body, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // the files are part of the program
		}
		kind := mime.TypeByExtension(path.Ext(name))
		switch path.Ext(name) { // whatever the machine's own table has
		case ".js":
			kind = "text/javascript; charset=utf-8"
		case ".css":
			kind = "text/css; charset=utf-8"
		case "":
			kind = "text/plain; charset=utf-8"
		}
		all[name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			tagged(w, r, body)
		})
	}
	return all
}
