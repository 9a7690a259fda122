package audit

import "github.com/hourthree/hourthree/internal/manifest"

// Graph is the objects, indexed, with the roles of workloads and the edges from
// client to model. It is immutable once built.
type Graph struct {
	kinds map[string][]*manifest.Object
	named map[key]*manifest.Object
	roles map[*manifest.Object]RoleOf
}

type key struct{ kind, namespace, name string }

// Kind are the objects of a kind, in the order of namespace and name.
func (g *Graph) Kind(kind string) []*manifest.Object { return g.kinds[kind] }

// Get finds an object by kind, namespace and name, nil when there is none.
func (g *Graph) Get(kind, namespace, name string) *manifest.Object {
	return g.named[key{kind, namespace, name}]
}

// Role is the workload's, "" for none.
func (g *Graph) Role(o *manifest.Object) Role { return g.roles[o].Role }
