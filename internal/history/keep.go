package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// levels are the resolutions, the finest first. Each step is a multiple of the one
// before, and so is the time that it is kept for.
var levels = [...]struct{ step, slots int64 }{
	{10, 720},   // 10 s for 2 h
	{60, 1440},  // 1 min for 24 h
	{600, 1008}, // 10 min for 7 days
}

const (
	// forgetting is the half-life of what decides who is kept by name.
	forgetting = 6 * time.Hour
	// grace is by how much one who is not must be larger to take a place.
	grace = 2
	// keep is for how long a subject that is gone is kept, in seconds.
	keep = 7 * 24 * 3600
)

// slot says which step is in the place of a ring, and how much of it is known.
type slot struct {
	step    int64 // number: Unix seconds by the level's
	covered int64 // milliseconds in which the router ran; 0 where nothing is known
	changes uint64
	saved   uint64 // changes that have been saved
}

// History is the past.
type History struct {
	slots     [len(levels)][]slot
	router    *subject
	workloads group
	targets   group
}

// New returns a history of nothing.
func New() *History {
	h := &History{router: newSubject(ofRouter), workloads: newGroup(ofWorkloads), targets: newGroup(ofTargets)}
	for l, level := range levels {
		h.slots[l] = make([]slot, level.slots)
	}
	return h
}

// Add keeps what was counted from a moment on, for a time that a running router has
// measured, and empties the tally. All of it counts to the steps in which it began,
// whatever the clock has done meanwhile: add at the end of each step of 10 s, or
// more often.
func (h *History) Add(began time.Time, lasted time.Duration, t *Tally) {
	at, ms := began.Unix(), max(lasted.Milliseconds(), 1)
	for l := range levels {
		s, i := h.slot(l, at)
		s.covered += ms
		s.changes++
		ofRouter.merge(h.router.row(ofRouter, l, i), t.router[:])
	}
	fade := math.Exp2(-float64(lasted) / float64(forgetting))
	h.workloads.add(h, at, fade, rows(t.workloads, func(r *workloadRow) []uint32 { return r[:] }))
	h.targets.add(h, at, fade, rows(t.targets, func(r *targetRow) []uint32 { return r[:] }))
	t.clear()
}

// slot finds a step's place, empty where another step had it.
func (h *History) slot(level int, at int64) (*slot, int64) {
	step := floor(at, levels[level].step)
	i := place(level, step)
	s := &h.slots[level][i]
	if s.step != step {
		*s = slot{step: step, changes: s.changes}
		h.each(func(k *kind, _ string, one *subject) { clear(one.row(k, level, i)) })
	}
	return s, i
}

// each passes every subject.
func (h *History) each(f func(k *kind, name string, s *subject)) {
	f(ofRouter, "", h.router)
	for _, g := range []*group{&h.workloads, &h.targets} {
		for name, s := range g.all {
			f(g.kind, name, s)
		}
	}
}

func floor(at, step int64) int64 {
	n := at / step
	if at%step < 0 {
		n--
	}
	return n
}

func place(level int, step int64) int64 {
	n := levels[level].slots
	return ((step % n) + n) % n
}

// named is what a subject's name has counted.
type named struct {
	name string
	row  []uint32
	n    float64 // activity
}

func rows[R comparable](m map[string]*R, cells func(*R) []uint32) []named {
	var none R
	out := make([]named, 0, len(m))
	for name, r := range m {
		if *r != none {
			out = append(out, named{name: name, row: cells(r)})
		}
	}
	return out
}

// group is the subjects of one kind. The largest are kept by name.
type group struct {
	kind    *kind
	all     map[string]*subject
	outside map[string]float64 // weight of those that are not kept by name
}

func newGroup(k *kind) group {
	return group{kind: k, all: map[string]*subject{}, outside: map[string]float64{}}
}

func (g *group) add(h *History, at int64, fade float64, counted []named) {
	for name, s := range g.all {
		if s.weight *= fade; at-s.seen > keep && name != Other {
			delete(g.all, name)
		}
	}
	for name, w := range g.outside {
		if g.outside[name] = w * fade; w < 1e-3 {
			delete(g.outside, name)
		}
	}
	for i := range counted {
		counted[i].n = g.kind.activity(counted[i].row)
	}
	slices.SortFunc(counted, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name))
	})
	for _, c := range counted {
		s := g.of(c, at)
		for l := range levels {
			_, i := h.slot(l, at)
			g.kind.merge(s.row(g.kind, l, i), c.row)
		}
		s.weight += c.n
		s.seen = at
	}
}

// of finds the subject that a name counts for: its own, a new one where there is
// room, that of the smallest where the name has become larger, or that of the rest.
func (g *group) of(c named, at int64) *subject {
	if s := g.all[c.name]; s != nil {
		return s
	}
	if c.name == Other || g.names() < g.kind.most {
		return g.begin(c.name, at)
	}
	weight := c.n + g.outside[c.name]
	small := g.smallest()
	if weight <= grace*g.all[small].weight {
		if _, known := g.outside[c.name]; known || len(g.outside) < mostNames {
			g.outside[c.name] = weight
		}
		return g.rest(at)
	}
	g.fold(small, at)
	delete(g.outside, c.name)
	s := g.begin(c.name, at)
	s.weight = weight - c.n
	return s
}

func (g *group) names() int {
	n := len(g.all)
	if g.all[Other] != nil {
		n--
	}
	return n
}

func (g *group) begin(name string, at int64) *subject {
	s := newSubject(g.kind)
	s.seen = at
	g.all[name] = s
	return s
}

func (g *group) rest(at int64) *subject {
	if s := g.all[Other]; s != nil {
		return s
	}
	return g.begin(Other, at)
}

func (g *group) smallest() (name string) {
	least := math.Inf(1)
	for n, s := range g.all {
		if n != Other && (s.weight < least || s.weight == least && n > name) {
			name, least = n, s.weight
		}
	}
	return name
}

// fold puts a subject's past to that of the rest. Nothing is lost but the name.
func (g *group) fold(name string, at int64) {
	s, rest := g.all[name], g.rest(at)
	for l, level := range levels {
		for i := range level.slots {
			g.kind.merge(rest.row(g.kind, l, i), s.row(g.kind, l, i))
		}
	}
	g.outside[name] = s.weight
	delete(g.all, name)
}
