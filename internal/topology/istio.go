package topology

import (
	"slices"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// RootNamespace is where rules stand that hold for a whole mesh.
const RootNamespace = "istio-system"

func (x *Edges) addIstio() {
	for _, o := range x.Graph.Kind("ConfigMap") {
		if o.Name != "istio" || fields.MapAt(o.Root, "data") == nil {
			continue
		}
		for _, d := range x.Graph.Documents(o) {
			if d.Key == "mesh" && d.Root != nil && x.Mesh == nil {
				x.Mesh, x.MeshPlace = d.Root, o
			}
		}
	}
	for _, o := range x.Graph.Kind("ServiceEntry") {
		for _, h := range fields.WordsAt(o.Root, "spec.hosts") {
			x.Entries.Add(h, o)
		}
	}
	for _, o := range x.Graph.Kind("DestinationRule") {
		if x.rules[o.Namespace] == nil {
			x.rules[o.Namespace] = &Hosts{}
		}
		if host := fields.TextAt(o.Root, "spec.host"); host != "" {
			x.rules[o.Namespace].Add(x.FullIn(host, o.Namespace), o)
		}
	}
	for _, o := range x.Graph.Kind("VirtualService") {
		x.addVirtualService(o)
	}
}

func (x *Edges) addVirtualService(o *manifest.Object) {
	for _, h := range fields.WordsAt(o.Root, "spec.hosts") {
		if meshed(o) {
			x.Sidecars.Add(x.FullIn(h, o.Namespace), o)
		}
		if len(proxySpaces(o)) > 0 {
			x.Routes.Add(h, o)
		}
	}
	for _, h := range fields.ListAt(o.Root, "spec.http") {
		for _, r := range fields.ListAt(h, "route") {
			if s := x.Service(fields.TextAt(r, "destination.host"), o.Namespace); s != nil {
				x.lead(o, s)
			}
		}
	}
}

// meshed says whether a VirtualService is for sidecars.
func meshed(o *manifest.Object) bool {
	gateways := fields.WordsAt(o.Root, "spec.gateways")
	return len(gateways) == 0 || slices.Contains(gateways, "mesh")
}

// proxySpaces are the namespaces of the gateways that a VirtualService is for.
func proxySpaces(o *manifest.Object) []string {
	var spaces []string
	for _, g := range fields.WordsAt(o.Root, "spec.gateways") {
		if g == "mesh" {
			continue
		}
		space := o.Namespace
		if i := slices.Index([]byte(g), '/'); i >= 0 {
			space = g[:i]
		}
		if !slices.Contains(spaces, space) {
			spaces = append(spaces, space)
		}
	}
	return spaces
}

// VisibleIn says whether an Istio object is visible in a namespace.
func VisibleIn(o *manifest.Object, namespace string) bool {
	to := fields.WordsAt(o.Root, "spec.exportTo")
	return len(to) == 0 || slices.Contains(to, "*") || slices.Contains(to, namespace) ||
		slices.Contains(to, ".") && o.Namespace == namespace
}

// DestinationRules are those that a proxy uses for a host: of the first namespace
// that has one, in the order of the proxy's own, the destination's, and the
// mesh's; there the one for the most specific host.
func (x *Edges) DestinationRules(host string, proxies []string, owner string) []*manifest.Object {
	root := RootNamespace
	if x.MeshPlace != nil {
		root = x.MeshPlace.Namespace
	}
	order := append(slices.Clone(proxies), owner, fields.TextOr(x.Mesh, "rootNamespace", root))
	for _, space := range order {
		h := x.rules[space]
		if h == nil {
			continue
		}
		visible := func(o *manifest.Object) bool {
			return slices.ContainsFunc(proxies, func(p string) bool { return VisibleIn(o, p) })
		}
		if list := h.Find(host, visible); len(list) > 0 {
			return list
		}
	}
	return nil
}

// Traffic is what Istio knows of one destination of a route.
type Traffic struct {
	Rules  []*manifest.Object
	subset string
	port   int
}

// Destination finds the rules for a destination that a VirtualService names.
func (x *Edges) Destination(o *manifest.Object, d any) Traffic {
	name := fields.TextAt(d, "host")
	host, owner := x.FullIn(name, o.Namespace), o.Namespace
	t := Traffic{subset: fields.TextAt(d, "subset"), port: fields.IntOr(d, "port.number", 0)}
	if s := x.Service(name, o.Namespace); s != nil {
		owner = s.Namespace
		if ports := fields.ListAt(s.Root, "spec.ports"); t.port == 0 && len(ports) == 1 {
			t.port = fields.IntOr(ports[0], "port", 0)
		}
	} else if list := x.Entries.Named(host, nil); len(list) > 0 {
		owner = list[0].Namespace
	}
	proxies := []string{o.Namespace}
	for _, p := range proxySpaces(o) {
		if !slices.Contains(proxies, p) {
			proxies = append(proxies, p)
		}
	}
	t.Rules = x.DestinationRules(host, proxies, owner)
	return t
}

// Section is a part of the traffic policy in force, such as outlierDetection,
// and the rule that sets it: a subset's before the destination's, and a port's
// instead of both.
func (t Traffic) Section(name string) (any, *manifest.Object) {
	for _, subset := range []bool{true, false} {
		for _, r := range t.Rules {
			policies := []any{fields.MapAt(r.Root, "spec.trafficPolicy")}
			if subset {
				policies = t.ofSubset(r)
			}
			for _, p := range policies {
				if v, decided := portSection(p, name, t.port); decided {
					return v, r
				}
			}
		}
	}
	return nil, nil
}

func (t Traffic) ofSubset(rule *manifest.Object) []any {
	var list []any
	for _, s := range fields.ListAt(rule.Root, "spec.subsets") {
		if t.subset != "" && fields.TextAt(s, "name") == t.subset {
			list = append(list, fields.MapAt(s, "trafficPolicy"))
		}
	}
	return list
}

// portSection is a section of a policy; what a policy says of the port replaces
// all that it says of the destination, but for what a port cannot have.
func portSection(policy any, name string, port int) (any, bool) {
	if name != "retryBudget" && port != 0 {
		for _, p := range fields.ListAt(policy, "portLevelSettings") {
			if fields.IntOr(p, "port.number", 0) == port {
				return fields.ValueAt(p, name), true
			}
		}
	}
	v := fields.ValueAt(policy, name)
	return v, v != nil
}

// HasSidecar says whether a workload's calls pass a proxy of Istio; unknown where
// its namespace was not read.
func (x *Edges) HasSidecar(w *Workload) (has, known bool) {
	for _, field := range []string{"labels", "annotations"} {
		switch fields.TextAt(w.Object.Root, "spec.template.metadata."+field+"[sidecar.istio.io/inject]") {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	for _, c := range Containers(w.Object) {
		if c.Name == "istio-proxy" {
			return true, true
		}
	}
	space := x.Graph.Get("Namespace", "", w.Object.Namespace)
	if space == nil {
		return false, false
	}
	labels := fields.MapAt(space.Root, "metadata.labels")
	injects := fields.TextAt(labels, "istio-injection")
	return injects == "enabled" || injects != "disabled" && fields.TextAt(labels, "[istio.io/rev]") != "", true
}
