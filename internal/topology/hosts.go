package topology

import (
	"net/url"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
)

// Hosts finds objects by host name; names may begin with *.
type Hosts struct {
	exact map[string][]*manifest.Object
	wild  map[string][]*manifest.Object // by what follows *.
	Any   []*manifest.Object
}

// Add takes in an object by a host name; "" and * are any host.
func (h *Hosts) Add(name string, o *manifest.Object) {
	if h.exact == nil {
		h.exact, h.wild = map[string][]*manifest.Object{}, map[string][]*manifest.Object{}
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	put := func(m map[string][]*manifest.Object, k string) {
		if !slices.Contains(m[k], o) {
			m[k] = append(m[k], o)
		}
	}
	switch suffix, isWild := strings.CutPrefix(name, "*."); {
	case name == "" || name == "*":
		if !slices.Contains(h.Any, o) {
			h.Any = append(h.Any, o)
		}
	case isWild:
		put(h.wild, suffix)
	default:
		put(h.exact, name)
	}
}

// Named are the objects of the most specific name that fits and for which keep
// holds, those for any host left out.
func (h *Hosts) Named(name string, keep func(*manifest.Object) bool) []*manifest.Object {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if list := Kept(h.exact[name], keep); len(list) > 0 {
		return list
	}
	for rest := name; rest != ""; {
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			break
		}
		if list := Kept(h.wild[after], keep); len(list) > 0 {
			return list
		}
		rest = after
	}
	return nil
}

// Find is like Named, and falls back on what is for any host.
func (h *Hosts) Find(name string, keep func(*manifest.Object) bool) []*manifest.Object {
	if list := h.Named(name, keep); len(list) > 0 {
		return list
	}
	return Kept(h.Any, keep)
}

// Kept are the objects for which keep holds, all of them where it is nil.
func Kept(list []*manifest.Object, keep func(*manifest.Object) bool) []*manifest.Object {
	if keep == nil {
		return list
	}
	var out []*manifest.Object
	for _, o := range list {
		if keep(o) {
			out = append(out, o)
		}
	}
	return out
}

// Address is where a base URL leads.
type Address struct {
	Host string // in small letters, without port
	TLS  bool
}

// ParseAddress reads a base URL or a host. What holds a variable that is not
// known is none.
func ParseAddress(text string) (Address, bool) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text, "${} \t\n") {
		return Address{}, false
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return Address{}, false
	}
	return Address{strings.ToLower(u.Hostname()), u.Scheme == "https"}, true
}

// Service is the Service that a host name means to a client in a namespace, nil
// for none.
func (x *Edges) Service(host, namespace string) *manifest.Object {
	name, space, ok := ServiceName(host, namespace)
	if !ok {
		return nil
	}
	return x.Graph.Get("Service", space, name)
}

// ServiceName is the name and namespace of the Service that a host name of the
// cluster would be.
func ServiceName(host, namespace string) (name, space string, ok bool) {
	host = strings.TrimSuffix(host, ".")
	for _, suffix := range []string{".svc.cluster.local", ".svc"} {
		if rest, found := strings.CutSuffix(host, suffix); found {
			name, space, ok = strings.Cut(rest, ".")
			return name, space, ok && !strings.Contains(space, ".")
		}
	}
	parts := strings.Split(host, ".")
	switch len(parts) {
	case 1:
		return parts[0], namespace, true
	case 2:
		return parts[0], parts[1], true
	}
	return "", "", false
}

// full is the name by which Istio knows a host that an object of a namespace
// names: a name without a dot is a Service of that namespace.
func full(host, namespace string) string {
	if strings.Contains(host, ".") || strings.HasPrefix(host, "*") {
		for _, suffix := range []string{".svc"} {
			if strings.HasSuffix(host, suffix) {
				return host + ".cluster.local"
			}
		}
		return host
	}
	return host + "." + namespace + ".svc.cluster.local"
}

// FullIn is full, for a client that may also write name.namespace.
func (x *Edges) FullIn(host, namespace string) string {
	if s := x.Service(host, namespace); s != nil {
		return s.Name + "." + s.Namespace + ".svc.cluster.local"
	}
	return full(host, namespace)
}
