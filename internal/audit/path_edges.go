package audit

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// linked is the index of a graph's edges, built when it is first asked for.
type linked struct {
	once sync.Once
	x    *edges
}

// edges finds what belongs together without a scan: pods by their labels,
// Services and routes by host, policies and scalers by what they are attached
// to. It is immutable once built, but for the paths, which are found once.
type edges struct {
	g         *Graph
	workloads []*workload
	of        map[*manifest.Object]*workload
	bySpace   map[string][]*workload
	behind    map[*manifest.Object][]*workload
	covered   map[string]map[*workload][]*manifest.Object // by kind of what selects pods
	routes    hosts
	sidecars  hosts // of VirtualServices for the mesh
	entries   hosts // ServiceEntries
	attached  map[key][]attachment
	backends  map[key][]*manifest.Object // routes by the object that they lead to
	ofGateway map[key][]*manifest.Object // routes by their Gateway
	rules     map[string]*hosts          // DestinationRules by namespace
	scalers   map[key][]*manifest.Object
	served    []*workload        // gateways
	files     []*manifest.Object // configurations of gateways outside of the cluster
	mesh      map[string]any
	meshPlace *manifest.Object
	ingresses map[string]any  // what ingress-nginx does for all, by its ConfigMap
	made      map[string]key  // Gateways by the name of the Service made for them
	perCaller map[string]bool // namespaces with a limit for each caller
	alerts    func() alerts
	zone      func() (*manifest.Object, string)
	paths     func() map[*manifest.Object][]Path
}

// workload is one that runs pods.
type workload struct {
	o      *manifest.Object
	labels map[string]any
	before []*manifest.Object // Services that select it
}

// attachment is a policy that is attached to an object or a part of it.
type attachment struct {
	policy  *manifest.Object
	section string
}

func (g *Graph) edges() *edges {
	g.linked.once.Do(func() { g.linked.x = newEdges(g) })
	return g.linked.x
}

func newEdges(g *Graph) *edges {
	x := &edges{
		g: g, of: map[*manifest.Object]*workload{}, bySpace: map[string][]*workload{},
		behind: map[*manifest.Object][]*workload{}, covered: map[string]map[*workload][]*manifest.Object{},
		attached: map[key][]attachment{}, backends: map[key][]*manifest.Object{}, ofGateway: map[key][]*manifest.Object{}, rules: map[string]*hosts{},
		scalers: map[key][]*manifest.Object{}, made: map[string]key{}, perCaller: map[string]bool{},
	}
	for _, o := range g.Workloads() {
		w := &workload{o: o, labels: PodLabels(o)}
		x.workloads = append(x.workloads, w)
		x.of[o] = w
		x.bySpace[o.Namespace] = append(x.bySpace[o.Namespace], w)
		if g.Role(o) == Gateway {
			x.served = append(x.served, w)
		}
	}
	for _, s := range g.Kind("Service") {
		for _, w := range x.labelled(s.Namespace, fields.MapAt(s.Root, "spec.selector")) {
			x.behind[s] = append(x.behind[s], w)
			w.before = append(w.before, s)
		}
	}
	for _, o := range g.Objects() {
		if o.Group == manifest.FileGroup {
			x.files = append(x.files, o)
		}
	}
	x.cover()
	x.attach()
	x.addRoutes()
	x.addIstio()
	for _, kind := range []string{"HorizontalPodAutoscaler", "ScaledObject"} {
		for _, o := range g.Kind(kind) {
			if k, ok := scales(o); ok {
				x.scalers[k] = append(x.scalers[k], o)
			}
		}
	}
	x.addGlobals()
	x.zone = sync.OnceValues(func() (*manifest.Object, string) { return oneZoneOf(g) })
	x.alerts = sync.OnceValue(func() alerts { return findAlerts(g) })
	x.paths = sync.OnceValue(x.findPaths)
	return x
}

// addGlobals finds what holds for many objects at once.
func (x *edges) addGlobals() {
	for _, m := range x.g.Kind("ConfigMap") {
		if m.Name == "ingress-nginx-controller" || m.Name == "nginx-configuration" {
			x.ingresses = fields.MapAt(m.Root, "data")
		}
	}
	for _, p := range x.g.Kind("BackendTrafficPolicy") {
		x.perCaller[p.Namespace] = x.perCaller[p.Namespace] || perCaller([]*manifest.Object{p})
	}
	for _, g := range x.g.Kind("Gateway") {
		k := key{"Gateway", g.Namespace, g.Name}
		own := "." + g.Namespace
		for _, name := range []string{
			"envoy-" + g.Namespace + "-" + g.Name, g.Name + own, g.Name + "-" + fields.TextAt(g.Root, "spec.gatewayClassName") + own,
		} {
			x.made[name] = k
		}
	}
}

// labelled are the workloads whose pods have all labels, none for no label.
func (x *edges) labelled(namespace string, labels map[string]any) []*workload {
	var found []*workload
	for _, o := range x.g.labelled(namespace, labels) {
		found = append(found, x.of[o])
	}
	return found
}

// selected are the workloads of a namespace for which a LabelSelector holds: all
// of them for an empty one, none for an absent one.
func (x *edges) selected(namespace string, selector map[string]any) []*workload {
	if selector == nil {
		return nil
	}
	among := x.bySpace[namespace]
	if labels := fields.MapAt(selector, "matchLabels"); len(labels) > 0 {
		among = x.labelled(namespace, labels)
	}
	var found []*workload
	for _, w := range among {
		if Selects(selector, w.labels) {
			found = append(found, w)
		}
	}
	return found
}

// selectors are the kinds that select pods, and where.
var selectors = map[string]string{
	"PodDisruptionBudget": "spec.selector", "NetworkPolicy": "spec.podSelector",
	"CiliumNetworkPolicy": "spec.endpointSelector", "AuthorizationPolicy": "spec.selector",
}

func (x *edges) cover() {
	for kind, path := range selectors {
		x.covered[kind] = map[*workload][]*manifest.Object{}
		for _, o := range x.g.Kind(kind) {
			selector := fields.MapAt(o.Root, path)
			if selector == nil && kind != "PodDisruptionBudget" {
				selector = map[string]any{}
			}
			for _, w := range x.selected(o.Namespace, cilium(selector)) {
				x.covered[kind][w] = append(x.covered[kind][w], o)
			}
		}
	}
}

// cilium drops the prefix that Cilium allows before the keys of pod labels.
func cilium(selector map[string]any) map[string]any {
	labels := fields.MapAt(selector, "matchLabels")
	plain := map[string]any{}
	changed := false
	for k, v := range labels {
		rest, ok := strings.CutPrefix(k, "k8s:")
		changed = changed || ok
		plain[rest] = v
	}
	if !changed {
		return selector
	}
	out := maps.Clone(selector)
	out["matchLabels"] = plain
	return out
}

// attachedKinds are those that are attached by targetRefs.
var attachedKinds = []string{
	"AgentgatewayPolicy", "BackendTrafficPolicy", "XBackendTrafficPolicy", "BackendLBPolicy", "QuotaPolicy",
	"RateLimitPolicy", "TokenRateLimitPolicy", "TrafficPolicy", "RateLimitPolicy.kuadrant.io", "RateLimitPolicy.gateway.nginx.org",
}

func (x *edges) attach() {
	for _, kind := range attachedKinds {
		for _, p := range x.g.Kind(kind) {
			refs := fields.ListAt(p.Root, "spec.targetRefs")
			if ref := fields.MapAt(p.Root, "spec.targetRef"); ref != nil {
				refs = append(slices.Clone(refs), ref)
			}
			for _, r := range refs {
				k := key{fields.TextAt(r, "kind"), p.Namespace, fields.TextAt(r, "name")}
				x.attached[k] = append(x.attached[k], attachment{p, fields.TextAt(r, "sectionName")})
			}
			for _, s := range fields.ListAt(p.Root, "spec.targetSelectors") {
				selector, _ := s.(map[string]any)
				kind := fields.TextAt(s, "kind")
				for _, o := range x.g.In(kind, p.Namespace) {
					if Selects(selector, fields.MapAt(o.Root, "metadata.labels")) {
						k := key{kind, o.Namespace, o.Name}
						x.attached[k] = append(x.attached[k], attachment{p, ""})
					}
				}
			}
		}
	}
}

// scales is what an autoscaler scales.
func scales(o *manifest.Object) (key, bool) {
	kind, name := fields.TextAt(o.Root, "spec.scaleTargetRef.kind"), fields.TextAt(o.Root, "spec.scaleTargetRef.name")
	if kind == "" && o.Kind == "ScaledObject" {
		kind = "Deployment"
	}
	return key{kind, o.Namespace, name}, kind != "" && name != ""
}

// scalersOf are the autoscalers of a workload.
func (x *edges) scalersOf(o *manifest.Object) []*manifest.Object {
	return x.scalers[key{o.Kind, o.Namespace, o.Name}]
}

// floor is the fewest replicas of a workload that an autoscaler leaves, or,
// without one, those that are asked for: an autoscaler does not keep to them.
func (x *edges) floor(o *manifest.Object) int {
	scalers := x.scalersOf(o)
	if len(scalers) == 0 {
		return fields.IntOr(o.Root, "spec.replicas", 1)
	}
	fewest := 0
	for _, s := range scalers {
		if s.Kind == "ScaledObject" {
			fewest = max(fewest, fields.IntOr(s.Root, "spec.minReplicaCount", 0))
		} else {
			fewest = max(fewest, fields.IntOr(s.Root, "spec.minReplicas", 1))
		}
	}
	return fewest
}

func annotation(o *manifest.Object, name string) string {
	return fields.TextAt(o.Root, "metadata.annotations["+name+"]")
}
