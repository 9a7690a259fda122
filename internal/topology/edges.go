package topology

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
	x    *Edges
}

// Edges finds what belongs together without a scan: pods by their labels,
// Services and routes by host, policies and scalers by what they are attached
// to. It is immutable once built.
type Edges struct {
	Graph      *Graph
	Workloads  []*Workload
	WorkloadOf map[*manifest.Object]*Workload
	bySpace    map[string][]*Workload
	Behind     map[*manifest.Object][]*Workload            // those that a Service selects
	Covered    map[string]map[*Workload][]*manifest.Object // by kind of what selects pods
	Routes     Hosts                                       // those that a proxy at the edge serves
	Sidecars   Hosts                                       // of VirtualServices for the mesh
	Entries    Hosts                                       // ServiceEntries
	Attached   map[Key][]Attachment                        // by what a policy is attached to
	RoutesTo   map[Key][]*manifest.Object                  // routes by the object that they lead to
	RoutesOf   map[Key][]*manifest.Object                  // routes by their Gateway
	rules      map[string]*Hosts                           // DestinationRules by namespace
	scalers    map[Key][]*manifest.Object
	Gateways   []*Workload        // those with the role
	Files      []*manifest.Object // configurations of gateways outside of the cluster
	Mesh       map[string]any     // the configuration of Istio, by the ConfigMap MeshPlace
	MeshPlace  *manifest.Object
	Nginx      map[string]any // what ingress-nginx does for all, by its ConfigMap
	MadeFor    map[string]Key // Gateways by the name of the Service made for them
}

// Workload is one that runs pods.
type Workload struct {
	Object   *manifest.Object
	labels   map[string]any
	Services []*manifest.Object // Services that select it
}

// Attachment is a policy that is attached to an object or a part of it.
type Attachment struct {
	Policy  *manifest.Object
	section string
}

// Edges are the graph's edges. Whoever asks first builds them.
func (g *Graph) Edges() *Edges {
	g.linked.once.Do(func() { g.linked.x = newEdges(g) })
	return g.linked.x
}

func newEdges(g *Graph) *Edges {
	x := &Edges{
		Graph: g, WorkloadOf: map[*manifest.Object]*Workload{}, bySpace: map[string][]*Workload{},
		Behind: map[*manifest.Object][]*Workload{}, Covered: map[string]map[*Workload][]*manifest.Object{},
		Attached: map[Key][]Attachment{}, RoutesTo: map[Key][]*manifest.Object{}, RoutesOf: map[Key][]*manifest.Object{}, rules: map[string]*Hosts{},
		scalers: map[Key][]*manifest.Object{}, MadeFor: map[string]Key{},
	}
	for _, o := range g.Workloads() {
		w := &Workload{Object: o, labels: podLabels(o)}
		x.Workloads = append(x.Workloads, w)
		x.WorkloadOf[o] = w
		x.bySpace[o.Namespace] = append(x.bySpace[o.Namespace], w)
		if g.Role(o) == Gateway {
			x.Gateways = append(x.Gateways, w)
		}
	}
	for _, s := range g.Kind("Service") {
		for _, w := range x.labelled(s.Namespace, fields.MapAt(s.Root, "spec.selector")) {
			x.Behind[s] = append(x.Behind[s], w)
			w.Services = append(w.Services, s)
		}
	}
	for _, o := range g.Objects() {
		if o.Group == manifest.FileGroup {
			x.Files = append(x.Files, o)
		}
	}
	x.cover()
	x.attach()
	x.addRoutes()
	x.addIstio()
	for _, kind := range []string{"HorizontalPodAutoscaler", "ScaledObject"} {
		for _, o := range g.Kind(kind) {
			if k, ok := Scales(o); ok {
				x.scalers[k] = append(x.scalers[k], o)
			}
		}
	}
	x.addGlobals()
	return x
}

// addGlobals finds what holds for many objects at once.
func (x *Edges) addGlobals() {
	for _, m := range x.Graph.Kind("ConfigMap") {
		if m.Name == "ingress-nginx-controller" || m.Name == "nginx-configuration" {
			x.Nginx = fields.MapAt(m.Root, "data")
		}
	}
	for _, g := range x.Graph.Kind("Gateway") {
		k := Key{"Gateway", g.Namespace, g.Name}
		own := "." + g.Namespace
		for _, name := range []string{
			"envoy-" + g.Namespace + "-" + g.Name, g.Name + own, g.Name + "-" + fields.TextAt(g.Root, "spec.gatewayClassName") + own,
		} {
			x.MadeFor[name] = k
		}
	}
}

// labelled are the workloads whose pods have all labels, none for no label.
func (x *Edges) labelled(namespace string, labels map[string]any) []*Workload {
	var found []*Workload
	for _, o := range x.Graph.labelled(namespace, labels) {
		found = append(found, x.WorkloadOf[o])
	}
	return found
}

// Selected are the workloads of a namespace for which a LabelSelector holds: all
// of them for an empty one, none for an absent one.
func (x *Edges) Selected(namespace string, selector map[string]any) []*Workload {
	if selector == nil {
		return nil
	}
	among := x.bySpace[namespace]
	if labels := fields.MapAt(selector, "matchLabels"); len(labels) > 0 {
		among = x.labelled(namespace, labels)
	}
	var found []*Workload
	for _, w := range among {
		if selects(selector, w.labels) {
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

func (x *Edges) cover() {
	for kind, path := range selectors {
		x.Covered[kind] = map[*Workload][]*manifest.Object{}
		for _, o := range x.Graph.Kind(kind) {
			selector := fields.MapAt(o.Root, path)
			if selector == nil && kind != "PodDisruptionBudget" {
				selector = map[string]any{}
			}
			for _, w := range x.Selected(o.Namespace, cilium(selector)) {
				x.Covered[kind][w] = append(x.Covered[kind][w], o)
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

func (x *Edges) attach() {
	for _, kind := range attachedKinds {
		for _, p := range x.Graph.Kind(kind) {
			refs := fields.ListAt(p.Root, "spec.targetRefs")
			if ref := fields.MapAt(p.Root, "spec.targetRef"); ref != nil {
				refs = append(slices.Clone(refs), ref)
			}
			for _, r := range refs {
				k := Key{fields.TextAt(r, "kind"), p.Namespace, fields.TextAt(r, "name")}
				x.Attached[k] = append(x.Attached[k], Attachment{p, fields.TextAt(r, "sectionName")})
			}
			for _, s := range fields.ListAt(p.Root, "spec.targetSelectors") {
				selector, _ := s.(map[string]any)
				kind := fields.TextAt(s, "kind")
				for _, o := range x.Graph.In(kind, p.Namespace) {
					if selects(selector, fields.MapAt(o.Root, "metadata.labels")) {
						k := Key{kind, o.Namespace, o.Name}
						x.Attached[k] = append(x.Attached[k], Attachment{p, ""})
					}
				}
			}
		}
	}
}

// Scales is what an autoscaler scales.
func Scales(o *manifest.Object) (Key, bool) {
	kind, name := fields.TextAt(o.Root, "spec.scaleTargetRef.kind"), fields.TextAt(o.Root, "spec.scaleTargetRef.name")
	if kind == "" && o.Kind == "ScaledObject" {
		kind = "Deployment"
	}
	return Key{kind, o.Namespace, name}, kind != "" && name != ""
}

// ScalersOf are the autoscalers of a workload.
func (x *Edges) ScalersOf(o *manifest.Object) []*manifest.Object {
	return x.scalers[Key{o.Kind, o.Namespace, o.Name}]
}

// Floor is the fewest replicas of a workload that an autoscaler leaves, or,
// without one, those that are asked for: an autoscaler does not keep to them.
func (x *Edges) Floor(o *manifest.Object) int {
	scalers := x.ScalersOf(o)
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

// Annotation is an object's annotation of a name, "" for none.
func Annotation(o *manifest.Object, name string) string {
	return fields.TextAt(o.Root, "metadata.annotations["+name+"]")
}
