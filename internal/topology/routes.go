package topology

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// addRoutes finds routes by the hosts that they serve and by what they lead to.
func (x *Edges) addRoutes() {
	for _, kind := range []string{"AIGatewayRoute", "HTTPRoute"} {
		for _, o := range x.Graph.Kind(kind) {
			x.leads(o)
			if kind == "HTTPRoute" && x.Graph.Get("AIGatewayRoute", o.Namespace, o.Name) != nil {
				continue // generated from it
			}
			for _, p := range GatewaysOf(o) {
				x.RoutesOf[p.Gateway] = append(x.RoutesOf[p.Gateway], o)
			}
			for _, h := range x.hostsOf(o) {
				x.Routes.Add(h, o)
			}
			for _, s := range x.MeshParents(o) {
				x.Sidecars.Add(s.Name+"."+s.Namespace+".svc.cluster.local", o)
			}
		}
	}
	for _, o := range x.Graph.Kind("Ingress") {
		for _, b := range IngressBackends(o) {
			x.Routes.Add(b.Host, o)
			if s := x.Graph.Get("Service", o.Namespace, b.Service); s != nil {
				x.lead(o, s)
			}
		}
	}
	for _, o := range x.Graph.Kind("IngressRoute") {
		for _, r := range fields.ListAt(o.Root, "spec.routes") {
			for _, h := range MatchHosts(fields.TextAt(r, "match")) {
				x.Routes.Add(h, o)
			}
		}
	}
	for _, o := range x.Graph.Kind("ApisixRoute") {
		for _, r := range fields.ListAt(o.Root, "spec.http") {
			names := fields.WordsAt(r, "match.hosts")
			if len(names) == 0 {
				names = []string{""}
			}
			for _, h := range names {
				x.Routes.Add(h, o)
			}
		}
	}
}

func (x *Edges) lead(route, to *manifest.Object) {
	k := Key{to.Kind, to.Namespace, to.Name}
	if list := x.RoutesTo[k]; len(list) == 0 || list[len(list)-1] != route {
		x.RoutesTo[k] = append(list, route)
	}
}

// leads notes what the rules of a route of the Gateway API lead to.
func (x *Edges) leads(o *manifest.Object) {
	for _, r := range fields.ListAt(o.Root, "spec.rules") {
		for _, b := range fields.ListAt(r, "backendRefs") {
			k := BackendKey(o, b)
			if list := x.RoutesTo[k]; x.Granted(o, k) && (len(list) == 0 || list[len(list)-1] != o) {
				x.RoutesTo[k] = append(list, o)
			}
		}
	}
}

// BackendKey is the object that a backendRef names.
func BackendKey(o *manifest.Object, ref any) Key {
	kind := "Service"
	if o.Kind == "AIGatewayRoute" {
		kind = "AIServiceBackend"
	}
	return Key{fields.TextOr(ref, "kind", kind), fields.TextOr(ref, "namespace", o.Namespace), fields.TextAt(ref, "name")}
}

// Granted says whether a route may lead to an object: in another namespace only
// where a ReferenceGrant lets it. Where no grant at all was read, nothing is
// known, and it is taken to be granted.
func (x *Edges) Granted(route *manifest.Object, to Key) bool {
	if to.Namespace == route.Namespace || len(x.Graph.Kind("ReferenceGrant")) == 0 {
		return true
	}
	for _, grant := range x.Graph.In("ReferenceGrant", to.Namespace) {
		from := slices.ContainsFunc(fields.ListAt(grant.Root, "spec.from"), func(f any) bool {
			return fields.TextAt(f, "kind") == route.Kind && fields.TextAt(f, "namespace") == route.Namespace
		})
		into := slices.ContainsFunc(fields.ListAt(grant.Root, "spec.to"), func(t any) bool {
			return fields.TextAt(t, "kind") == to.Kind && (fields.TextAt(t, "name") == "" || fields.TextAt(t, "name") == to.Name)
		})
		if from && into {
			return true
		}
	}
	return false
}

// Parent is a Gateway that a route is attached to, and the listener it names.
type Parent struct {
	Gateway Key
	section string
}

// GatewaysOf are the Gateways of a route.
func GatewaysOf(o *manifest.Object) []Parent {
	var list []Parent
	for _, p := range fields.ListAt(o.Root, "spec.parentRefs") {
		if fields.TextOr(p, "kind", "Gateway") == "Gateway" {
			list = append(list, Parent{
				Key{"Gateway", fields.TextOr(p, "namespace", o.Namespace), fields.TextAt(p, "name")}, fields.TextAt(p, "sectionName"),
			})
		}
	}
	return list
}

// MeshParents are the Services that a route stands before within the mesh.
func (x *Edges) MeshParents(o *manifest.Object) []*manifest.Object {
	var list []*manifest.Object
	for _, p := range fields.ListAt(o.Root, "spec.parentRefs") {
		if fields.TextAt(p, "kind") == "Service" {
			if s := x.Graph.Get("Service", fields.TextOr(p, "namespace", o.Namespace), fields.TextAt(p, "name")); s != nil {
				list = append(list, s)
			}
		}
	}
	return list
}

// hostsOf are the hosts that a route of the Gateway API serves: its own or, when
// it names none, those of its listeners; "" for any.
func (x *Edges) hostsOf(o *manifest.Object) []string {
	if own := fields.WordsAt(o.Root, "spec.hostnames"); len(own) > 0 {
		return own
	}
	var list []string
	for _, p := range GatewaysOf(o) {
		gateway := x.Graph.Get(p.Gateway.Kind, p.Gateway.Namespace, p.Gateway.Name)
		if gateway == nil {
			list = append(list, "")
			continue
		}
		for _, l := range fields.ListAt(gateway.Root, "spec.listeners") {
			if p.section == "" || p.section == fields.TextAt(l, "name") {
				list = append(list, fields.TextAt(l, "hostname"))
			}
		}
	}
	return list
}

// InForce are the policies of a kind that hold for a rule of a route: those of
// the most specific place that has any, and those of its Gateway as well where
// they ask to be merged. The rule may be nil.
func (x *Edges) InForce(kind string, route *manifest.Object, rule any) []*manifest.Object {
	name := fields.TextAt(rule, "name")
	k := Key{"HTTPRoute", route.Namespace, route.Name} // an AIGatewayRoute's has its name
	levels := [][]*manifest.Object{nil, x.attachedTo(kind, k, "")}
	if name != "" {
		levels[0] = x.attachedTo(kind, k, name)
	}
	if route.Kind != "HTTPRoute" {
		levels = append(levels, x.attachedTo(kind, Key{route.Kind, route.Namespace, route.Name}, ""))
	}
	var listeners, gateways []*manifest.Object
	for _, p := range GatewaysOf(route) {
		for _, section := range x.sections(p) {
			listeners = append(listeners, x.attachedTo(kind, p.Gateway, section)...)
		}
		gateways = append(gateways, x.attachedTo(kind, p.Gateway, "")...)
	}
	var found []*manifest.Object
	for _, level := range append(levels, listeners, gateways) {
		found = append(found, level...)
		if len(found) > 0 && !slices.ContainsFunc(found, func(p *manifest.Object) bool { return fields.TextAt(p.Root, "spec.mergeType") != "" }) {
			break
		}
	}
	return found
}

// sections are the listeners of a Gateway that a route is attached to.
func (x *Edges) sections(p Parent) []string {
	if p.section != "" {
		return []string{p.section}
	}
	gateway := x.Graph.Get(p.Gateway.Kind, p.Gateway.Namespace, p.Gateway.Name)
	if gateway == nil {
		return nil
	}
	var list []string
	for _, l := range fields.ListAt(gateway.Root, "spec.listeners") {
		list = append(list, fields.TextAt(l, "name"))
	}
	return list
}

func (x *Edges) attachedTo(kind string, k Key, section string) []*manifest.Object {
	var list []*manifest.Object
	for _, a := range x.Attached[k] {
		if a.Policy.Kind == kind && a.section == section {
			list = append(list, a.Policy)
		}
	}
	return list
}

// Setting is the first of some policies that sets a path.
func Setting(policies []*manifest.Object, path string) (any, *manifest.Object) {
	for _, p := range policies {
		if v := fields.ValueAt(p.Root, path); v != nil {
			return v, p
		}
	}
	return nil, nil
}

// IngressBackend is where a rule of an Ingress leads.
type IngressBackend struct{ Host, Service string }

// IngressBackends are where the rules of an Ingress lead, its default first.
func IngressBackends(o *manifest.Object) []IngressBackend {
	var list []IngressBackend
	if s := fields.TextAt(o.Root, "spec.defaultBackend.service.name"); s != "" {
		list = append(list, IngressBackend{"", s})
	}
	for _, r := range fields.ListAt(o.Root, "spec.rules") {
		for _, p := range fields.ListAt(r, "http.paths") {
			if s := fields.TextAt(p, "backend.service.name"); s != "" {
				list = append(list, IngressBackend{fields.TextAt(r, "host"), s})
			}
		}
	}
	return list
}

var (
	hostMatch  = regexp.MustCompile(`Host\(([^)]*)\)`)
	hostQuoted = regexp.MustCompile("[`\"]([^`\"]+)[`\"]")
)

// MatchHosts are the hosts in a rule of Traefik, "" for any.
func MatchHosts(rule string) []string {
	var list []string
	for _, m := range hostMatch.FindAllStringSubmatch(rule, -1) {
		for _, q := range hostQuoted.FindAllStringSubmatch(m[1], -1) {
			list = append(list, q[1])
		}
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// controllers are the words by which the controller of an Ingress is known.
var controllers = []string{"nginx", "traefik", "kong", "apisix"}

// IngressClass is the controller of an Ingress, "" for an unknown one.
func (x *Edges) IngressClass(o *manifest.Object) string {
	name := fields.TextOr(o.Root, "spec.ingressClassName", Annotation(o, "kubernetes.io/ingress.class"))
	if class := x.Graph.Get("IngressClass", "", name); class != nil {
		if c := controllerIn(fields.TextAt(class.Root, "spec.controller")); c != "" {
			return c
		}
	}
	if c := controllerIn(name); c != "" {
		return c
	}
	for k := range fields.MapAt(o.Root, "metadata.annotations") {
		domain, _, _ := strings.Cut(k, "/")
		if c := controllerIn(domain); c != "" && name == "" {
			return c
		}
	}
	return ""
}

func controllerIn(text string) string {
	for _, c := range controllers {
		if strings.Contains(text, c) {
			return c
		}
	}
	if strings.Contains(text, "konghq") {
		return "kong"
	}
	return ""
}

// GatewayController is the controller of a Gateway as far as its class tells:
// its class's controller name, or the name of the class.
func (x *Edges) GatewayController(k Key) string {
	gateway := x.Graph.Get(k.Kind, k.Namespace, k.Name)
	if gateway == nil {
		return ""
	}
	name := fields.TextAt(gateway.Root, "spec.gatewayClassName")
	if class := x.Graph.Get("GatewayClass", "", name); class != nil {
		return fields.TextOr(class.Root, "spec.controllerName", name)
	}
	return name
}
