package topology

import (
	"slices"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// policyKinds are the kinds that are attached to others by targetRefs.
var policyKinds = []string{
	"BackendTrafficPolicy", "XBackendTrafficPolicy", "AgentgatewayPolicy", "QuotaPolicy", "ClientTrafficPolicy",
	"SecurityPolicy", "EnvoyExtensionPolicy", "BackendSecurityPolicy", "BackendTLSPolicy",
}

// attach finds what each policy is attached to, by name or by labels.
func (g *Graph) attach() {
	for _, kind := range policyKinds {
		for _, p := range g.kinds[kind] {
			for _, k := range g.TargetsOf(p) {
				g.targets[k] = append(g.targets[k], p)
			}
		}
	}
}

// TargetsOf are the names of what a policy is attached to, each once.
func (g *Graph) TargetsOf(p *manifest.Object) []Key {
	refs, _ := fields.List(p.Root, "spec.targetRefs")
	if one, _ := fields.Value(p.Root, "spec.targetRef"); one != nil {
		refs = append(slices.Clone(refs), one)
	}
	var keys []Key
	for _, r := range refs {
		kind, _ := fields.Text(r, "kind")
		name, _ := fields.Text(r, "name")
		if k := (Key{kind, p.Namespace, name}); name != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	selectors, _ := fields.List(p.Root, "spec.targetSelectors")
	for _, s := range selectors {
		kind, _ := fields.Text(s, "kind")
		selector, _ := fields.Object(s, "")
		for _, o := range g.In(kind, p.Namespace) {
			labels, _ := fields.Object(o.Root, "metadata.labels")
			if k := (Key{kind, o.Namespace, o.Name}); selects(selector, labels) && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// Attached are the policies of a kind that are attached to an object itself, in
// the order of namespace and name. Those of an AIGatewayRoute are attached to
// the HTTPRoute of its name, which its controller makes.
func (g *Graph) Attached(policy string, o *manifest.Object) []*manifest.Object {
	names := []Key{{o.Kind, o.Namespace, o.Name}}
	if o.Kind == "AIGatewayRoute" {
		names = append(names, Key{"HTTPRoute", o.Namespace, o.Name})
	}
	var list []*manifest.Object
	for _, k := range names {
		for _, p := range g.targets[k] {
			if p.Kind == policy && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// effective are the policies of a kind that bear on a route: those attached to
// it, then those attached to its Gateways.
func (g *Graph) effective(policy string, route *manifest.Object) []*manifest.Object {
	list := g.Attached(policy, route)
	for _, k := range parents(route) {
		for _, p := range g.targets[k] {
			if p.Kind == policy && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// parents are the names of the Gateways that a route is attached to.
func parents(route *manifest.Object) []Key {
	refs, _ := fields.List(route.Root, "spec.parentRefs")
	var keys []Key
	for _, r := range refs {
		kind, _ := fields.Text(r, "kind")
		namespace, _ := fields.Text(r, "namespace")
		name, _ := fields.Text(r, "name")
		if kind == "" {
			kind = "Gateway"
		}
		if namespace == "" {
			namespace = route.Namespace
		}
		keys = append(keys, Key{kind, namespace, name})
	}
	return keys
}

// Gateways are those of a route that are among the objects.
func (g *Graph) Gateways(route *manifest.Object) []*manifest.Object {
	var list []*manifest.Object
	for _, k := range parents(route) {
		if o := g.named[k]; o != nil {
			list = append(list, o)
		}
	}
	return list
}

// Routes are what a policy bears on among the objects: the routes it is attached
// to and those of the Gateways it is attached to.
func (g *Graph) Routes(policy *manifest.Object) []*manifest.Object {
	at := g.TargetsOf(policy)
	var list []*manifest.Object
	for _, kind := range []string{"HTTPRoute", "AIGatewayRoute"} {
		for _, r := range g.kinds[kind] {
			direct := slices.Contains(at, Key{r.Kind, r.Namespace, r.Name}) || slices.Contains(at, Key{"HTTPRoute", r.Namespace, r.Name})
			if direct || slices.ContainsFunc(parents(r), func(k Key) bool { return slices.Contains(at, k) }) {
				list = append(list, r)
			}
		}
	}
	return list
}

// Beside are the roots of the other policies of a policy's kind that bear on the
// routes that it bears on.
func (g *Graph) Beside(policy *manifest.Object) []any {
	list := []any{}
	var seen []*manifest.Object
	for _, r := range g.Routes(policy) {
		for _, p := range g.effective(policy.Kind, r) {
			if p != policy && !slices.Contains(seen, p) {
				seen = append(seen, p)
				list = append(list, p.Root)
			}
		}
	}
	return list
}
