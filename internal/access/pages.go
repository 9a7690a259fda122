package access

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Parse(pageSource))

// maxForm bounds what is read of a form.
const maxForm = 16 << 10

// view is what a page shows.
type view struct {
	Style   template.CSS
	Title   string
	Message string // what went wrong
	Text    string
	Next    string // where to go on to, a path of this listener
	Onward  bool   // at once
	Key     bool   // a form for a key
	Issuer  string // host of the provider to sign in with, "" for none
	SignOut bool
}

// pages are those that need no credential: signing in and out.
func (g *Guard) pages() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", g.login)
	mux.HandleFunc("POST /login", g.signIn)
	mux.HandleFunc("GET /logout", g.logout)
	mux.HandleFunc("POST /logout", g.signOut)
	mux.HandleFunc("GET /oidc/start", g.oidcStart)
	mux.HandleFunc("GET /oidc/callback", g.oidcCallback)
	return mux
}

// show writes a page. Its policy lets it load nothing, be framed by nobody, and
// send its form to this listener alone.
func show(w http.ResponseWriter, status int, v view) {
	sum := sha256.Sum256([]byte(style))
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
	// A form of a page that sends no referrer names no origin either.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	v.Style = template.CSS(style)
	_ = page.Execute(w, v) // a reader that has left is told nothing
}

// signInFirst leads a browser to the sign-in and back. It does so from a page and
// not by a redirect: a browser that follows a link of another site here does not
// send a SameSite=Strict cookie, on redirects neither, but on what our own page
// opens. So somebody who is signed in comes to where the link leads.
func signInFirst(w http.ResponseWriter, r *http.Request) {
	show(w, http.StatusUnauthorized, view{Title: "Sign in", Text: "This page needs a sign-in.", Onward: true, Next: "/login?next=" + url.QueryEscape(within(r.URL.RequestURI()))})
}

// login shows how to sign in, or leads on who has.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	c, next := g.now.Load(), within(r.URL.Query().Get("next"))
	if _, ok := g.sessions.find(time.Now(), cookieOf(r, sessionCookie, c.secure(r)), c.holds); ok || c.open() {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	show(w, http.StatusOK, c.form(next, ""))
}

func (c *rules) form(next, message string) view {
	v := view{Title: "Sign in", Message: message, Next: next, Key: len(c.keys) > 0}
	if c.issuer != nil {
		v.Issuer = c.issuer.host()
	}
	return v
}

// signIn takes a key from the form and begins a session, which replaces the one
// that the browser had.
func (g *Guard) signIn(w http.ResponseWriter, r *http.Request) {
	c := g.now.Load()
	if !own(r) { // a page of another site must not sign somebody in as somebody else
		g.deny(r, Person{}, reasonOrigin, "a sign-in that does not come from a page of this listener")
		show(w, http.StatusForbidden, c.form("/", "This form was sent by another site. Sign in here."))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		show(w, http.StatusBadRequest, c.form("/", "The form could not be read."))
		return
	}
	next := within(r.PostForm.Get("next"))
	if c.open() {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	k, wait, ok := g.check(r, c, strings.TrimSpace(r.PostForm.Get("key")))
	switch {
	case ok:
		p := k.person
		p.Via = viaSession
		g.begin(w, r, c, session{person: p, key: k.digest})
		http.Redirect(w, r, next, http.StatusSeeOther)
	case wait > 0:
		w.Header().Set("Retry-After", seconds(wait))
		show(w, http.StatusTooManyRequests, c.form(next, "Too many wrong keys came from this address. Try again in "+seconds(wait)+" s."))
	default:
		show(w, http.StatusUnauthorized, c.form(next, "This key is not known here. It has to be one of admin.keys; a workload's key is not."))
	}
}

// begin opens a session in place of the one that the browser has.
func (g *Guard) begin(w http.ResponseWriter, r *http.Request, c *rules, s session) {
	https := c.secure(r)
	if old := cookieOf(r, sessionCookie, https); old != "" {
		g.sessions.end(old)
	}
	id := g.sessions.open(time.Now(), s)
	http.SetCookie(w, cookie(sessionCookie, id, https, http.SameSiteStrictMode, sessionLimit))
	g.note(r, SignedIn, s.person, "")
}

// logout asks before it does it: a link must change nothing.
func (g *Guard) logout(w http.ResponseWriter, _ *http.Request) {
	show(w, http.StatusOK, view{Title: "Sign out", SignOut: true})
}

func (g *Guard) signOut(w http.ResponseWriter, r *http.Request) {
	c := g.now.Load()
	if !own(r) {
		g.deny(r, Person{}, reasonOrigin, "a sign-out that does not come from a page of this listener")
		show(w, http.StatusForbidden, view{Title: "Sign out", Message: "This form was sent by another site.", SignOut: true})
		return
	}
	https := c.secure(r)
	if p, ok := g.sessions.end(cookieOf(r, sessionCookie, https)); ok {
		g.note(r, SignedOut, p, "")
	}
	http.SetCookie(w, cookie(sessionCookie, "", https, http.SameSiteStrictMode, 0))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// longestNext bounds a path to go on to.
const longestNext = 1000

// within is a path of this listener and nothing else; / for what is none, or
// would lead back to signing in or out.
func within(next string) string {
	if len(next) > longestNext || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, odd) {
		return "/"
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	for _, p := range []string{"/login", "/logout", "/oidc"} {
		if u.Path == p || strings.HasPrefix(u.Path, p+"/") {
			return "/"
		}
	}
	return next
}

// odd finds what some browsers read as a slash or leave out.
func odd(c rune) bool { return c <= ' ' || c == '\\' || c >= 0x7f }

// plainly is a text of somebody else as one short line.
func plainly(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return clip(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c >= 0x200b && c <= 0x200f || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c == 0xfeff {
			return -1
		}
		return c
	}, s), 200)
}

func (p Person) String() string { return fmt.Sprintf("%s (%s, %s)", p.Name, p.Role, p.Via) }
