// Package topology indexes objects and says what they mean to each other: which
// workloads call, pass on or serve models and by what that is known, which
// objects are on the way to a model, which policies, Services, routes and proxies
// bear on which. It decides what is connected, and never what is wrong with it or
// how often a call is repeated: those are audit's and retrypath's to say, which
// are its callers. It changes no object and is pure.
//
// Graph is the index with the roles; Edges is what rules and paths follow, built
// when it is first asked for.
package topology

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
)

// Graph is the objects, indexed, with the roles of workloads and the edges from
// client to model. It is immutable once built.
//
// Objects of a kind that Resources has are found by their kind when they
// are of the group it is known by; others by kind and group, such as
// Service.serving.knative.dev.
type Graph struct {
	all     []*manifest.Object
	kinds   map[string][]*manifest.Object
	named   map[Key]*manifest.Object
	spaces  map[string]map[string][]*manifest.Object // by kind and namespace
	roles   map[*manifest.Object]RoleOf
	on      map[*manifest.Object]string // on the way to a model, and by what
	texts   map[*manifest.Object][]Document
	targets map[Key][]*manifest.Object       // policies by what they are attached to
	served  map[string]bool                  // names of what answers model calls
	pods    map[[3]string][]*manifest.Object // workloads by namespace, and key and value of a label of their pods
	search  *scope
	linked  linked // the edges, once they were asked for
	// gateways are the configurations that were read, problems what was not.
	gateways map[*manifest.Object][]Reading
	problems []manifest.Problem
}

// Key names an object within a graph. The kind is one that KindOf gives.
type Key struct{ Kind, Namespace, Name string }

// New indexes objects. Those that name no namespace get the one that is
// given, "" for that of the name default; objects are never changed.
func New(objects []*manifest.Object, namespace string) *Graph {
	if namespace == "" {
		namespace = "default"
	}
	g := &Graph{
		kinds: map[string][]*manifest.Object{}, named: map[Key]*manifest.Object{}, spaces: map[string]map[string][]*manifest.Object{},
		roles: map[*manifest.Object]RoleOf{}, on: map[*manifest.Object]string{},
		texts: map[*manifest.Object][]Document{}, targets: map[Key][]*manifest.Object{}, served: map[string]bool{}, pods: map[[3]string][]*manifest.Object{}, gateways: map[*manifest.Object][]Reading{},
	}
	for _, o := range objects {
		g.all = append(g.all, settled(o, namespace))
	}
	slices.SortStableFunc(g.all, byName)
	for _, o := range g.all {
		kind := KindOf(o)
		g.kinds[kind] = append(g.kinds[kind], o)
		k := Key{kind, o.Namespace, o.Name}
		if g.named[k] == nil {
			g.named[k] = o
		}
		if g.spaces[kind] == nil {
			g.spaces[kind] = map[string][]*manifest.Object{}
		}
		g.spaces[kind][o.Namespace] = append(g.spaces[kind][o.Namespace], o)
	}
	g.indexPods()
	g.attach()
	g.readGateways()
	g.findPath()
	return g
}

// settled is the object with its namespace, a copy where it named none.
func settled(o *manifest.Object, context string) *manifest.Object {
	if o.Namespace != "" || o.Group == manifest.FileGroup || o.Origin.Live || manifest.ClusterWide(o.Group, o.Kind) {
		return o
	}
	c := *o
	c.Namespace = context
	return &c
}

// byName is a total order of objects, whatever order they came in. Only two of
// one name and place are compared by what they say.
func byName(a, b *manifest.Object) int {
	if by := cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version), strings.Compare(a.Origin.File, b.Origin.File),
		cmp.Compare(a.Origin.Line, b.Origin.Line)); by != 0 || a == b {
		return by
	}
	x, _ := json.Marshal(a.Root)
	y, _ := json.Marshal(b.Root)
	return cmp.Or(bytes.Compare(x, y), bytes.Compare(a.Text, b.Text))
}

// KindOf is the kind by which an object is found: its own or, of another group
// than the one that the kind is known by, with the group.
func KindOf(o *manifest.Object) string {
	if group, ok := groups[o.Kind]; ok && group != o.Group {
		return o.Kind + "." + o.Group
	}
	return o.Kind
}

// Objects are all of them, in the order of kind, namespace and name.
func (g *Graph) Objects() []*manifest.Object { return g.all }

// Kind are the objects of a kind, in the order of namespace and name.
func (g *Graph) Kind(kind string) []*manifest.Object { return g.kinds[kind] }

// In are the objects of a kind in a namespace, in the order of name.
func (g *Graph) In(kind, namespace string) []*manifest.Object { return g.spaces[kind][namespace] }

// Get finds an object by kind, namespace and name, nil when there is none.
func (g *Graph) Get(kind, namespace, name string) *manifest.Object {
	return g.named[Key{kind, namespace, name}]
}

// Role is the workload's, "" for none.
func (g *Graph) Role(o *manifest.Object) Role { return g.roles[o].Role }

// On says that an object is on the way from a client to a model.
func (g *Graph) On(o *manifest.Object) bool { return g.on[o] != "" }

// Any says that at least one object is on the way to a model.
func (g *Graph) Any() bool { return len(g.on) > 0 }

// Roles are the workloads with a role, in the order of the objects.
func (g *Graph) Roles() []RoleOf {
	list := []RoleOf{}
	for _, o := range g.all {
		if r, ok := g.roles[o]; ok {
			list = append(list, r)
		}
	}
	return list
}
