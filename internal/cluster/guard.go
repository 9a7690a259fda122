package cluster

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard is the innermost RoundTripper: no request passes it but those that only
// read what the cluster was opened for.
type guard struct {
	next    http.RoundTripper
	server  *url.URL
	allowed map[Resource]bool // without kind and version
}

func newGuard(next http.RoundTripper, server *url.URL, resources []Resource) *guard {
	g := &guard{next: next, server: server, allowed: map[Resource]bool{}}
	for _, r := range resources {
		g.allowed[Resource{Group: r.Group, Plural: r.Plural}] = true
	}
	return g
}

// refusal is a request that is not sent.
type refusal struct{ method, path, why string }

func (e *refusal) Error() string {
	return fmt.Sprintf("refused to send %s %s: %s", e.method, e.path, e.why)
}

// RoundTrip sends a request if it may be sent.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if why := g.refuses(r); why != "" {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, &refusal{method: r.Method, path: r.URL.Path, why: why}
	}
	return g.next.RoundTrip(r)
}

func (g *guard) refuses(r *http.Request) string {
	switch {
	case r.Method != http.MethodGet:
		return "only GET is"
	case r.URL.Scheme != g.server.Scheme || r.URL.Host != g.server.Host || r.Host != "" && r.Host != g.server.Host:
		return "it goes to another host than the kubeconfig's server"
	case r.Body != nil && r.Body != http.NoBody:
		return "it has a body"
	case r.Header.Get("Upgrade") != "":
		return "it asks for another protocol"
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "its query has more than one meaning"
	}
	for key := range query {
		if key != "limit" && key != "continue" {
			return "of the query only limit and continue are"
		}
	}
	path, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(g.server.Path, "/"))
	if !ok || r.URL.EscapedPath() != r.URL.Path || r.URL.Opaque != "" || !g.path(path) {
		return "it is neither discovery nor a list of an allowed kind"
	}
	return ""
}

// path says that a path is one of discovery, or of a list or an object of an
// allowed kind.
func (g *guard) path(path string) bool {
	s := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if slices.Contains(s, "") || slices.Contains(s, ".") || slices.Contains(s, "..") || path[0] != '/' {
		return false
	}
	var group string
	switch s[0] {
	case "version":
		return len(s) == 1
	case "api":
		if len(s) <= 2 {
			return true
		}
		s = s[2:]
	case "apis":
		if len(s) <= 3 {
			return true
		}
		group, s = s[1], s[3:]
	default:
		return false
	}
	if len(s) > 2 && s[0] == "namespaces" {
		s = s[2:]
	}
	return len(s) <= 2 && g.allowed[Resource{Group: group, Plural: s[0]}] && !(group == "" && s[0] == "secrets")
}
