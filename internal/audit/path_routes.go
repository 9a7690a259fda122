package audit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// addRoutes finds routes by the hosts that they serve and by what they lead to.
func (x *edges) addRoutes() {
	for _, kind := range []string{"AIGatewayRoute", "HTTPRoute"} {
		for _, o := range x.g.Kind(kind) {
			x.leads(o)
			if kind == "HTTPRoute" && x.g.Get("AIGatewayRoute", o.Namespace, o.Name) != nil {
				continue // generated from it
			}
			for _, p := range gatewaysOf(o) {
				x.ofGateway[p.k] = append(x.ofGateway[p.k], o)
			}
			for _, h := range x.hostsOf(o) {
				x.routes.add(h, o)
			}
			for _, s := range x.meshParents(o) {
				x.sidecars.add(s.Name+"."+s.Namespace+".svc.cluster.local", o)
			}
		}
	}
	for _, o := range x.g.Kind("Ingress") {
		for _, b := range ingressBackends(o) {
			x.routes.add(b.host, o)
			if s := x.g.Get("Service", o.Namespace, b.service); s != nil {
				x.lead(o, s)
			}
		}
	}
	for _, o := range x.g.Kind("IngressRoute") {
		for _, r := range fields.ListAt(o.Root, "spec.routes") {
			for _, h := range matchHosts(fields.TextAt(r, "match")) {
				x.routes.add(h, o)
			}
		}
	}
	for _, o := range x.g.Kind("ApisixRoute") {
		for _, r := range fields.ListAt(o.Root, "spec.http") {
			names := fields.WordsAt(r, "match.hosts")
			if len(names) == 0 {
				names = []string{""}
			}
			for _, h := range names {
				x.routes.add(h, o)
			}
		}
	}
}

func (x *edges) lead(route, to *manifest.Object) {
	k := key{to.Kind, to.Namespace, to.Name}
	if list := x.backends[k]; len(list) == 0 || list[len(list)-1] != route {
		x.backends[k] = append(list, route)
	}
}

// leads notes what the rules of a route of the Gateway API lead to.
func (x *edges) leads(o *manifest.Object) {
	for _, r := range fields.ListAt(o.Root, "spec.rules") {
		for _, b := range fields.ListAt(r, "backendRefs") {
			k := backendKey(o, b)
			if list := x.backends[k]; x.granted(o, k) && (len(list) == 0 || list[len(list)-1] != o) {
				x.backends[k] = append(list, o)
			}
		}
	}
}

// backendKey is the object that a backendRef names.
func backendKey(o *manifest.Object, ref any) key {
	kind := "Service"
	if o.Kind == "AIGatewayRoute" {
		kind = "AIServiceBackend"
	}
	return key{fields.TextOr(ref, "kind", kind), fields.TextOr(ref, "namespace", o.Namespace), fields.TextAt(ref, "name")}
}

// granted says whether a route may lead to an object: in another namespace only
// where a ReferenceGrant lets it. Where no grant at all was read, nothing is
// known, and it is taken to be granted.
func (x *edges) granted(route *manifest.Object, to key) bool {
	if to.namespace == route.Namespace || len(x.g.Kind("ReferenceGrant")) == 0 {
		return true
	}
	for _, grant := range x.g.In("ReferenceGrant", to.namespace) {
		from := slices.ContainsFunc(fields.ListAt(grant.Root, "spec.from"), func(f any) bool {
			return fields.TextAt(f, "kind") == route.Kind && fields.TextAt(f, "namespace") == route.Namespace
		})
		into := slices.ContainsFunc(fields.ListAt(grant.Root, "spec.to"), func(t any) bool {
			return fields.TextAt(t, "kind") == to.kind && (fields.TextAt(t, "name") == "" || fields.TextAt(t, "name") == to.name)
		})
		if from && into {
			return true
		}
	}
	return false
}

// parent is a Gateway that a route is attached to, and the listener it names.
type parent struct {
	k       key
	section string
}

// gatewaysOf are the Gateways of a route.
func gatewaysOf(o *manifest.Object) []parent {
	var list []parent
	for _, p := range fields.ListAt(o.Root, "spec.parentRefs") {
		if fields.TextOr(p, "kind", "Gateway") == "Gateway" {
			list = append(list, parent{
				key{"Gateway", fields.TextOr(p, "namespace", o.Namespace), fields.TextAt(p, "name")}, fields.TextAt(p, "sectionName"),
			})
		}
	}
	return list
}

// meshParents are the Services that a route stands before within the mesh.
func (x *edges) meshParents(o *manifest.Object) []*manifest.Object {
	var list []*manifest.Object
	for _, p := range fields.ListAt(o.Root, "spec.parentRefs") {
		if fields.TextAt(p, "kind") == "Service" {
			if s := x.g.Get("Service", fields.TextOr(p, "namespace", o.Namespace), fields.TextAt(p, "name")); s != nil {
				list = append(list, s)
			}
		}
	}
	return list
}

// hostsOf are the hosts that a route of the Gateway API serves: its own or, when
// it names none, those of its listeners; "" for any.
func (x *edges) hostsOf(o *manifest.Object) []string {
	if own := fields.WordsAt(o.Root, "spec.hostnames"); len(own) > 0 {
		return own
	}
	var list []string
	for _, p := range gatewaysOf(o) {
		gateway := x.g.Get(p.k.kind, p.k.namespace, p.k.name)
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

// effective are the policies of a kind that hold for a rule of a route: those of
// the most specific place that has any, and those of its Gateway as well where
// they ask to be merged. The rule may be nil.
func (x *edges) effective(kind string, route *manifest.Object, rule any) []*manifest.Object {
	name := fields.TextAt(rule, "name")
	k := key{"HTTPRoute", route.Namespace, route.Name} // an AIGatewayRoute's has its name
	levels := [][]*manifest.Object{nil, x.attachedTo(kind, k, "")}
	if name != "" {
		levels[0] = x.attachedTo(kind, k, name)
	}
	if route.Kind != "HTTPRoute" {
		levels = append(levels, x.attachedTo(kind, key{route.Kind, route.Namespace, route.Name}, ""))
	}
	var listeners, gateways []*manifest.Object
	for _, p := range gatewaysOf(route) {
		for _, section := range x.sections(p) {
			listeners = append(listeners, x.attachedTo(kind, p.k, section)...)
		}
		gateways = append(gateways, x.attachedTo(kind, p.k, "")...)
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
func (x *edges) sections(p parent) []string {
	if p.section != "" {
		return []string{p.section}
	}
	gateway := x.g.Get(p.k.kind, p.k.namespace, p.k.name)
	if gateway == nil {
		return nil
	}
	var list []string
	for _, l := range fields.ListAt(gateway.Root, "spec.listeners") {
		list = append(list, fields.TextAt(l, "name"))
	}
	return list
}

func (x *edges) attachedTo(kind string, k key, section string) []*manifest.Object {
	var list []*manifest.Object
	for _, a := range x.attached[k] {
		if a.policy.Kind == kind && a.section == section {
			list = append(list, a.policy)
		}
	}
	return list
}

// setting is the first of some policies that sets a path.
func setting(policies []*manifest.Object, path string) (any, *manifest.Object) {
	for _, p := range policies {
		if v := fields.ValueAt(p.Root, path); v != nil {
			return v, p
		}
	}
	return nil, nil
}

// backend is where a rule of an Ingress leads.
type backend struct{ host, service string }

func ingressBackends(o *manifest.Object) []backend {
	var list []backend
	if s := fields.TextAt(o.Root, "spec.defaultBackend.service.name"); s != "" {
		list = append(list, backend{"", s})
	}
	for _, r := range fields.ListAt(o.Root, "spec.rules") {
		for _, p := range fields.ListAt(r, "http.paths") {
			if s := fields.TextAt(p, "backend.service.name"); s != "" {
				list = append(list, backend{fields.TextAt(r, "host"), s})
			}
		}
	}
	return list
}

var (
	hostMatch  = regexp.MustCompile("Host\\(([^)]*)\\)")
	hostQuoted = regexp.MustCompile("[`\"]([^`\"]+)[`\"]")
)

// matchHosts are the hosts in a rule of Traefik, "" for any.
func matchHosts(rule string) []string {
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

// ingressClass is the controller of an Ingress, "" for an unknown one.
func (x *edges) ingressClass(o *manifest.Object) string {
	name := fields.TextOr(o.Root, "spec.ingressClassName", annotation(o, "kubernetes.io/ingress.class"))
	if class := x.g.Get("IngressClass", "", name); class != nil {
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

// gatewayController is the controller of a Gateway as far as its class tells:
// its class's controller name, or the name of the class.
func (x *edges) gatewayController(k key) string {
	gateway := x.g.Get(k.kind, k.namespace, k.name)
	if gateway == nil {
		return ""
	}
	name := fields.TextAt(gateway.Root, "spec.gatewayClassName")
	if class := x.g.Get("GatewayClass", "", name); class != nil {
		return fields.TextOr(class.Root, "spec.controllerName", name)
	}
	return name
}
