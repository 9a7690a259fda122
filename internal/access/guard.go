package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/local"
)

// Options are a Guard's surroundings. All may be left out.
type Options struct {
	// Noted hears what the record should hold. It must return at once.
	Noted func(Note)
	// Denied hears the reason of every request that was not let in. Likewise.
	Denied func(reason string)
	// Dial connects to an OpenID provider; nil is the system's way, by a proxy where
	// the environment names one.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Config is who may do what. Without keys and without OpenID Connect everybody
// who reaches the listener under a name of this machine may operate.
type Config struct {
	Keys []Key
	OIDC *OIDC // nil for none
	// Hosts are the names under which the listener may be asked for besides those
	// of this machine and its own address. One that begins with https:// is served
	// by a proxy that ends TLS.
	Hosts []string
	// Listen is the listener's own address.
	Listen string
}

// Guard stands in front of the operator's listener.
type Guard struct {
	opt      Options
	now      atomic.Pointer[rules]
	wrong    failures
	notes    notes
	sessions sessions
	seal     *seal
	csrf     *http.CrossOriginProtection
}

// rules are a configuration in force.
type rules struct {
	keys   []key
	issuer *issuer // nil for none
	hosts  map[string]bool
	https  map[string]bool // hosts, with their port, that are reached by TLS
	listen string
}

func (c *rules) open() bool { return len(c.keys) == 0 && c.issuer == nil }

// New makes a guard that lets in who is on this machine, until Use.
func New(o Options) *Guard {
	if o.Noted == nil {
		o.Noted = func(Note) {}
	}
	if o.Denied == nil {
		o.Denied = func(string) {}
	}
	g := &Guard{opt: o, csrf: http.NewCrossOriginProtection(), seal: newSeal()}
	g.now.Store(&rules{})
	return g
}

// Use puts a configuration in force. Sessions end whose key is gone or has another
// role, and those of a provider that is not the same any more. On error nothing
// has changed.
func (g *Guard) Use(c Config) error {
	r := &rules{hosts: map[string]bool{}, https: map[string]bool{}}
	for _, k := range c.Keys {
		sum, err := digestOf(k.Key)
		if err != nil {
			return fmt.Errorf("admin key %s: %w", k.Name, err)
		}
		r.keys = append(r.keys, key{sum, Person{Name: k.Name, Role: k.Role, Via: viaKey}})
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil {
		r.listen = host
	}
	hosts := c.Hosts
	if c.OIDC != nil {
		r.issuer = g.now.Load().issuer.same(*c.OIDC, g.opt.Dial)
		if u, err := url.Parse(c.OIDC.RedirectURL); err == nil && u.Host != "" {
			hosts = append(slices.Clone(hosts), u.Scheme+"://"+u.Host)
		}
	}
	for _, h := range hosts {
		scheme, name, ok := strings.Cut(strings.ToLower(h), "://")
		if !ok {
			scheme, name = "", scheme
		}
		r.hosts[hostname(name)] = true
		if scheme == "https" {
			r.https[strings.TrimSuffix(name, ":443")] = true
		}
	}
	g.now.Store(r)
	for _, p := range g.sessions.keep(r.holds) {
		g.opt.Noted(Note{At: time.Now(), What: Ended, Who: p, Why: "its key, its role or its provider is not configured any more"})
	}
	return nil
}

// holds reports whether a session is still one of somebody configured.
func (c *rules) holds(s *session) bool {
	if s.issuer != "" {
		return c.issuer != nil && c.issuer.id == s.issuer
	}
	k := find(c.keys, s.key)
	return k != nil && k.person.Name == s.person.Name && k.person.Role == s.person.Role
}

// named reports whether a request names this listener, and not a site whose name
// was rebound to its address.
func (c *rules) named(r *http.Request) bool {
	host := hostname(strings.ToLower(r.Host))
	if local.Host(host) || c.hosts[host] {
		return true
	}
	if c.open() || host == "" {
		return false
	}
	if host == c.listen {
		return true
	}
	own, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ip, _, err := net.SplitHostPort(own.String())
	return err == nil && net.ParseIP(host) != nil && net.ParseIP(host).Equal(net.ParseIP(ip))
}

// secure reports whether the browser has reached us by TLS.
func (c *rules) secure(r *http.Request) bool {
	return r.TLS != nil || c.https[strings.TrimSuffix(strings.ToLower(r.Host), ":443")]
}

func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.Trim(host, "[]")
}

// probes are the paths that a kubelet or a balancer asks, without a credential. They
// tell whether the router is ready, and nothing else.
var probes = map[string]bool{"/healthz": true, "/livez": true, "/readyz": true}

// Handler guards next: it learns who is asking with From.
func (g *Guard) Handler(next http.Handler) http.Handler {
	pages := g.pages()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.now.Load()
		if c.secure(r) && !local.Host(r.Host) { // it would hold for whatever else this machine serves
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		if probes[r.URL.Path] && !c.open() {
			next.ServeHTTP(w, r)
			return
		}
		if !c.named(r) {
			g.opt.Denied(reasonHost)
			refuse(w, http.StatusForbidden, c.otherName(r))
			return
		}
		if err := g.csrf.Check(r); err != nil {
			g.deny(r, Person{}, reasonOrigin, "a request of another site")
			refuse(w, http.StatusForbidden, "This request was sent by another site's page. "+err.Error()+".")
			return
		}
		if h, pattern := pages.Handler(r); pattern != "" {
			h.ServeHTTP(w, r)
			return
		}
		if p, ok := g.admit(w, r, c); ok {
			next.ServeHTTP(w, r.WithContext(With(r.Context(), p)))
		}
	})
}

func (c *rules) otherName(r *http.Request) string {
	if c.open() {
		return "this listener answers to a loopback address only"
	}
	return fmt.Sprintf("this listener is not asked for as %q; admin.hosts lists the names that it answers to", clip(r.Host, 100))
}

// admit finds out who asks and whether that person may; it has answered where not.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, c *rules) (Person, bool) {
	if c.open() {
		return From(r.Context()), true
	}
	p, ok := g.identify(w, r, c)
	if !ok {
		return p, false
	}
	need := needed(r)
	if p.Role.includes(need) {
		return p, true
	}
	g.deny(r, p, reasonRole, fmt.Sprintf("%s of %s needs the role %s", r.Method, clip(r.URL.Path, 100), need))
	refuse(w, http.StatusForbidden, fmt.Sprintf("This needs the role %s. %s has the role %s.", need, p.Name, p.Role))
	return p, false
}

// needed is the role that a request needs: whatever may change something needs the
// higher one. The tools at /mcp only read.
func needed(r *http.Request) Role {
	switch {
	case r.Method == http.MethodGet, r.Method == http.MethodHead, r.Method == http.MethodOptions, r.URL.Path == "/mcp":
		return View
	}
	return Operate
}

// identify finds who asks, by key or by session.
func (g *Guard) identify(w http.ResponseWriter, r *http.Request, c *rules) (Person, bool) {
	// A browser sends Basic by itself, to a proxy in front for instance: it is no key.
	if scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		k, wait, ok := g.check(r, c, strings.TrimSpace(shown))
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="hourthree", error="invalid_token"`)
			g.refuseKey(w, wait)
			return Person{}, false
		}
		return k.person, true
	}
	id := cookieOf(r, sessionCookie, c.secure(r))
	p, ok := g.sessions.find(time.Now(), id, c.holds)
	if !ok {
		g.opt.Denied(reasonNoCredential)
		w.Header().Set("WWW-Authenticate", `Bearer realm="hourthree"`)
		if navigation(r) {
			signInFirst(w, r)
		} else {
			refuse(w, http.StatusUnauthorized, "This needs an operator's key: send it as Authorization: Bearer, or sign in at /login.")
		}
		return p, false
	}
	if !safe(r.Method) && !own(r) {
		g.deny(r, p, reasonOrigin, "a change with a session's cookie that does not come from a page of this listener")
		refuse(w, http.StatusForbidden, "A session changes something from a page of this listener only. For anything else send a key as Authorization: Bearer.")
		return p, false
	}
	return p, true
}

// check looks at a key that was shown. On failure wait is how long the address is
// shut out, 0 when it is not.
func (g *Guard) check(r *http.Request, c *rules, shown string) (k *key, wait time.Duration, ok bool) {
	now, addr := time.Now(), AddressOf(r.RemoteAddr)
	if wait, shut := g.wrong.shut(now, addr); shut {
		g.opt.Denied(reasonShutOut)
		return nil, wait, false
	}
	if k = find(c.keys, sha256.Sum256([]byte(shown))); k != nil {
		g.wrong.good(now, addr)
		return k, 0, true
	}
	if wait, over := g.wrong.failed(now, addr); over {
		g.opt.Denied(reasonShutOut)
		return nil, wait, false
	}
	g.deny(r, Person{}, reasonWrongKey, "a key that is not configured")
	return nil, 0, false
}

func (g *Guard) refuseKey(w http.ResponseWriter, wait time.Duration) {
	if wait > 0 {
		w.Header().Set("Retry-After", seconds(wait))
		refuse(w, http.StatusTooManyRequests, "Too many wrong keys came from this address: none is looked at for "+seconds(wait)+" s.")
		return
	}
	refuse(w, http.StatusUnauthorized, "This key is not known here. It has to be one of admin.keys in the router's configuration, sent as Authorization: Bearer; a workload's key is not.")
}

func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// deny counts a denial, and notes it as far as the record has room.
func (g *Guard) deny(r *http.Request, p Person, reason, why string) {
	g.opt.Denied(reason)
	g.note(r, Denied, p, why)
}

// note puts something into the record, as far as it has room for that person.
func (g *Guard) note(r *http.Request, what string, p Person, why string) {
	now := time.Now()
	if missed, ok := g.notes.take(now, p.Name); ok {
		g.opt.Noted(Note{At: now, What: what, Who: p, From: AddressOf(r.RemoteAddr), Why: plainly(why), Missed: missed})
	}
}

// refuse answers a request that is not let in.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // a reader that has left is told nothing
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// own reports whether a page of this listener sent the request, as the browser
// says; one that does not say is not believed.
func own(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "":
		u, err := url.Parse(r.Header.Get("Origin"))
		return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	}
	return false
}

// navigation reports that somebody opens a page, so a sign-in can be shown.
func navigation(r *http.Request) bool {
	mode := cmp.Or(r.Header.Get("Sec-Fetch-Mode"), "navigate")
	return r.Method == http.MethodGet && mode == "navigate" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func clip(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
