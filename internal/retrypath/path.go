// Package retrypath finds the ways that calls take from a client to a model, and
// what the layers on each make of one call: how often each repeats after which
// failure, and whether their time limits nest. It decides which layers there are
// and what is assumed of those that nothing is known of; how layers multiply is
// decided in layers. It never judges: what is too much is for audit to say. Its
// callers are audit, the command and mcpserver, which show paths. It is pure.
//
// path.go is what is asked and answered, walk.go and branch.go follow the edges
// of the topology, layers.go and config.go read what each object on the way does,
// tree.go shows it as text.
package retrypath

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// Path is one way that calls take from a client to a model, with the layers that
// may repeat them. It is immutable.
type Path struct {
	Client manifest.Ref `json:"client"`
	// Known is false where the client was not read and an SDK is assumed in front
	// of the gateway.
	Known bool `json:"client_known"`
	// From is the container and the variable that name the first host, never what
	// the variable holds.
	Container string `json:"container,omitempty"`
	From      string `json:"from,omitempty"`
	Host      string `json:"host"` // the first one
	To        string `json:"to"`   // the last host, Service or workload that was found
	// Layers are in the order of the path, the client's first.
	Layers   []Layer        `json:"layers"`
	Products []Product      `json:"products"` // for each class of failure
	Worst    Product        `json:"worst"`
	Repeated []layers.Class `json:"repeated"` // classes that more than one layer repeats
	Nesting  []Fault        `json:"nesting"`
	Notes    []string       `json:"notes"` // what was assumed, and where the path could not be followed

	client *manifest.Object
	steps  []Step
	via    []*manifest.Object
	faults []layers.Fault
}

// Layer is a layer of a path as it is shown.
type Layer struct {
	Name      string               `json:"name"`
	Product   string               `json:"product"`
	Object    manifest.Ref         `json:"object"`
	Path      string               `json:"path"`
	Place     topology.Place       `json:"place"`
	Attempts  map[layers.Class]int `json:"attempts"`
	Fallbacks int                  `json:"fallbacks"`
	Budget    float64              `json:"budget,omitempty"` // share of calls that may be repeats
	Timeout   float64              `json:"timeout_seconds,omitempty"`
	PerTry    float64              `json:"per_try_seconds,omitempty"`
	Assumed   string               `json:"assumed,omitempty"`
}

// Product is what one class of failure makes of one call.
type Product struct {
	Class     layers.Class `json:"class"`
	Calls     int          `json:"calls"`      // of the worst single request, the first included
	PerTarget int          `json:"per_target"` // of them at one target
	Steady    float64      `json:"steady"`     // per request when budgets are spent
	Budgets   []string     `json:"budgets"`    // the layers whose budget bounds it
	Repeats   []string     `json:"repeats"`    // the layers that repeat
}

// Fault is a pair of time limits that do not nest.
type Fault struct {
	Outer   string  `json:"outer"`
	Inner   string  `json:"inner"`
	Takes   float64 `json:"takes_seconds"`
	Limit   float64 `json:"limit_seconds"`
	Assumed bool    `json:"assumed,omitempty"`
	Text    string  `json:"text"`
}

// Paths are the ways through a graph of objects, over its edges. They are found
// when they are first asked for, once, and are otherwise immutable.
type Paths struct {
	*topology.Edges
	all func() map[*manifest.Object][]Path
}

// New prepares to find the ways through a graph.
func New(g *topology.Graph) *Paths {
	x := &Paths{Edges: g.Edges()}
	x.all = sync.OnceValue(x.findPaths)
	return x
}

// All are the ways from every client workload to models, those that become most
// calls first, and those of gateways that no client was read for, files of
// gateways outside of the cluster included.
func (x *Paths) All() []Path {
	var list []Path
	all := x.all()
	for _, w := range x.Workloads {
		list = append(list, all[w.Object]...)
	}
	for _, o := range x.Files {
		list = append(list, all[o]...)
	}
	worstFirst(list)
	return list
}

// Of are the paths that begin at a workload, or, of a gateway, lead through it.
func (x *Paths) Of(o *manifest.Object) []Path { return x.all()[o] }

// Named are the paths of the workload that is named NAME, NAMESPACE/NAME or
// KIND/NAMESPACE/NAME, or of the gateway whose own file has the name.
func (x *Paths) Named(name string) ([]Path, error) {
	o, err := x.workload(name)
	if err != nil {
		return nil, err
	}
	if own := x.Of(o); len(own) > 0 {
		return own, nil
	}
	var through []Path
	for _, p := range x.All() {
		if slices.Contains(p.via, o) {
			through = append(through, p)
		}
	}
	return through, nil
}

func worstFirst(list []Path) {
	slices.SortStableFunc(list, func(a, b Path) int {
		return cmp.Or(-cmp.Compare(a.Worst.Calls, b.Worst.Calls), cmp.Compare(a.Client.String(), b.Client.String()),
			cmp.Compare(a.Host, b.Host), cmp.Compare(a.To, b.To), slices.Compare(layerNames(a), layerNames(b)))
	})
}

func layerNames(p Path) []string {
	var list []string
	for _, l := range p.Layers {
		list = append(list, l.Name)
	}
	return list
}

// workload finds a workload by name.
func (x *Paths) workload(name string) (*manifest.Object, error) {
	parts := strings.Split(name, "/")
	var found []*manifest.Object
	for _, w := range x.Workloads {
		own := []string{w.Object.Kind, w.Object.Namespace, w.Object.Name}
		if len(parts) > len(own) {
			break
		}
		own = own[len(own)-len(parts):]
		if slices.EqualFunc(own, parts, strings.EqualFold) {
			found = append(found, w.Object)
		}
	}
	for _, o := range x.Files {
		if name == o.Name || name == o.Origin.File {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("find workload %q: there is none of that name%s", name, x.nearest(parts[len(parts)-1]))
	}
	var all []string
	for _, o := range found {
		all = append(all, o.Kind+"/"+topology.NameOf(o))
	}
	return nil, fmt.Errorf("find workload %q: several have that name, write one of %s", name, strings.Join(all, ", "))
}

// startable are the objects that a path may be asked of.
func (x *Paths) startable() []*manifest.Object {
	var list []*manifest.Object
	for _, w := range x.Workloads {
		list = append(list, w.Object)
	}
	return append(list, x.Files...)
}

// finish makes a path of the steps that a walk collected.
func finish(p Path, t trail) Path {
	p.steps, p.via, p.Notes = t.steps, t.seen, append([]string{}, t.notes...)
	stack := make([]layers.Layer, len(t.steps))
	for i, s := range t.steps {
		stack[i] = s.Layer
		p.Layers = append(p.Layers, layerOf(s))
		if s.Assumed != "" {
			p.Notes = append(p.Notes, s.Name+": "+s.Assumed)
		}
	}
	products := layers.Multiply(stack)
	for _, product := range products {
		p.Products = append(p.Products, named(product, stack))
	}
	p.Worst = named(layers.Worst(products), stack)
	p.Repeated = append([]layers.Class{}, layers.Repeated(products)...)
	p.faults = layers.Nesting(stack)
	p.Nesting = []Fault{}
	for _, f := range p.faults {
		p.Nesting = append(p.Nesting, Fault{
			Outer: stack[f.Outer].Name, Inner: stack[f.Inner].Name, Takes: f.Takes.Seconds(), Limit: f.Limit.Seconds(),
			Assumed: f.Assumed, Text: f.Text(stack),
		})
	}
	return p
}

func layerOf(s Step) Layer {
	l := Layer{
		Name: s.Name, Product: s.Product, Path: s.Path, Attempts: map[layers.Class]int{}, Fallbacks: s.Fallbacks, Budget: s.Budget,
		Timeout: s.Timeout.Seconds(), PerTry: s.PerTry.Seconds(), Assumed: s.Assumed,
	}
	for _, c := range layers.Classes() {
		l.Attempts[c] = s.For(c)
	}
	if s.Object != nil {
		l.Object = s.Object.Ref()
		l.Place = topology.PlaceOf(s.Object, s.Path)
		if s.Line != l.Place.Line {
			l.Place.Line, l.Place.Column = s.Line, 1
		}
	}
	return l
}

func named(p layers.Product, stack []layers.Layer) Product {
	out := Product{Class: p.Class, Calls: p.Single, PerTarget: p.PerTarget, Steady: p.Steady, Budgets: []string{}, Repeats: []string{}}
	for _, i := range p.Budgets {
		out.Budgets = append(out.Budgets, stack[i].Name)
	}
	for _, i := range p.Repeats {
		out.Repeats = append(out.Repeats, stack[i].Name)
	}
	return out
}

// Start is the object that the path begins at.
func (p Path) Start() *manifest.Object { return p.client }

// Steps are the layers with the objects that they were read from, in the order of
// Layers.
func (p Path) Steps() []Step { return p.steps }

// Faults are the pairs of time limits that do not nest, in the order of Nesting,
// by the indexes of their layers.
func (p Path) Faults() []layers.Fault { return p.faults }

// Formula is the path's worst product, factor by factor.
func (p Path) Formula() string {
	var parts []string
	for _, l := range p.Layers {
		part := fmt.Sprintf("%s x%d", l.Name, l.Attempts[p.Worst.Class])
		if l.Assumed != "" {
			part += " (assumed)"
		}
		if l.Fallbacks > 0 {
			part += fmt.Sprintf(" on %d targets", l.Fallbacks+1)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " * ")
}
