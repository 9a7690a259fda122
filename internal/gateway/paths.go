package gateway

import (
	"net/http"
	"strings"

	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/wire"
)

// place is what a path asks for.
type place struct {
	endpoint wire.Endpoint
	path     string // after /v1, as the provider sees it
	model    string // model named by the path (Azure deployment style), "" otherwise
	json     bool   // the body must be JSON with a model
	pass     bool   // passed through: the body may be anything
}

// asked tells requests of equal bodies apart.
func (p *place) asked() string {
	if p.model == "" {
		return p.path
	}
	return p.model + "\n" + p.path
}

// Handler routes paths to the pipeline. The paths of OpenAI are served with
// and without /v1; Azure's in both of its styles.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"/v1", "/openai/v1", ""} {
		for _, path := range []string{"/chat/completions", "/completions", "/embeddings", "/responses"} {
			mux.HandleFunc("POST "+prefix+path, g.at(place{endpoint: wire.EndpointOf(path), path: path, json: true}))
		}
		mux.HandleFunc("GET "+prefix+"/models", g.models)
		mux.HandleFunc("GET "+prefix+"/models/{id...}", g.model)
	}
	mux.HandleFunc("/openai/deployments/{deployment}/{rest...}", g.deployment)
	mux.HandleFunc("/openai/deployments/{deployment}", g.unknown)
	mux.HandleFunc("/openai/deployments/{deployment}/{$}", g.unknown)
	mux.HandleFunc("/v1/{rest...}", g.passThrough)
	mux.HandleFunc("/openai/v1/{rest...}", g.passThrough)
	mux.HandleFunc("/v1", g.unknown)
	mux.HandleFunc("/openai/v1", g.unknown)
	mux.HandleFunc("HEAD /{$}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/", g.unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if crooked(r.URL.EscapedPath()) { // the mux would redirect, and not every client repeats a body
			g.unknown(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// crooked reports a path with empty or dot segments.
func crooked(path string) bool {
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if segment == "" && path != "/" || segment == "." || segment == ".." {
			return true
		}
	}
	return strings.HasPrefix(path, "//") || strings.HasSuffix(path, "//")
}

func (g *Gateway) at(p place) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, p) }
}

// deployment serves Azure's dated style: the deployment in the path is the
// public model name.
func (g *Gateway) deployment(w http.ResponseWriter, r *http.Request) {
	p := placeOf("/" + r.PathValue("rest"))
	p.model = r.PathValue("deployment")
	g.serve(w, r, p)
}

// passThrough serves every other path under /v1: to the model's targets when
// the body names a model, else to the provider of the configured route. A path
// that is served here, only written another way, is no other path: its answer is
// read and counted.
func (g *Gateway) passThrough(w http.ResponseWriter, r *http.Request) {
	path := "/" + r.PathValue("rest")
	if r.Method != http.MethodPost {
		g.serve(w, r, place{endpoint: wire.Other, path: path, pass: true})
		return
	}
	g.serve(w, r, placeOf(path))
}

// placeOf is what a path below the version or the deployment asks for.
func placeOf(path string) place {
	switch ep := wire.EndpointOf(path); ep {
	case wire.Other, wire.Models:
		return place{endpoint: wire.Other, path: path, pass: true}
	default:
		return place{endpoint: ep, path: strings.TrimSuffix(path, "/"), json: true}
	}
}

func (g *Gateway) unknown(w http.ResponseWriter, r *http.Request) {
	x := &inbound{Gateway: g, Snapshot: g.snapshot.Load(), w: w, r: r}
	x.accept()
	x.reject(http.StatusNotFound, fault.Client, "unknown_path",
		"There is nothing at "+quote(r.Method+" "+r.URL.Path)+". The API is under /v1.", "")
}

func hasPathPrefix(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}
