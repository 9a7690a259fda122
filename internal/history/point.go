package history

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// version is of the form of a point; one of another form is not read.
const version = 1

// Bounds of what is read back.
const (
	longestName  = 512
	mostSubjects = 1 << 12
)

// Point is one step at one resolution, to be saved and read back.
type Point struct {
	Level   int
	Step    int64
	Body    []byte
	changes uint64
}

// MostPoints is how many points of one level there are at most.
func MostPoints() int64 {
	most := int64(0)
	for _, l := range levels {
		most = max(most, l.slots)
	}
	return most
}

// Changed returns points that have changed since they were last saved, and no more
// than most at once, so that the history is not held for long; the next come when
// these are saved.
func (h *History) Changed(most int) []Point {
	var out []Point
	for l := range levels {
		for i, s := range h.slots[l] {
			if s.covered > 0 && s.changes != s.saved && len(out) < most {
				out = append(out, Point{Level: l, Step: s.step, Body: h.encode(l, int64(i)), changes: s.changes})
			}
		}
	}
	return out
}

// Saved says that points which Changed has returned are saved.
func (h *History) Saved(points []Point) {
	for _, p := range points {
		if s := &h.slots[p.Level][place(p.Level, p.Step)]; s.step == p.Step {
			s.saved = p.changes // what came in meanwhile has a higher number
		}
	}
}

func (h *History) encode(level int, slot int64) []byte {
	b := []byte{version}
	b = binary.AppendUvarint(b, uint64(h.slots[level][slot].covered))
	put := func(row []uint32) {
		for _, v := range row {
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	put(h.router.row(ofRouter, level, slot))
	for _, g := range []*group{&h.workloads, &h.targets} {
		var names []string
		for name, s := range g.all {
			if !empty(s.row(g.kind, level, slot)) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		b = binary.AppendUvarint(b, uint64(len(names)))
		for _, name := range names {
			b = binary.AppendUvarint(b, uint64(len(name)))
			b = append(b, name...)
			put(g.all[name].row(g.kind, level, slot))
		}
	}
	return b
}

// errPoint is that of a body which Changed did not make.
var errPoint = errors.New("not a point")

// decoded is a body taken apart.
type decoded struct {
	covered  int64
	router   []uint32
	subjects [2][]named // workloads and targets
}

type reader struct {
	b   []byte
	err error
}

func (r *reader) number(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if r.err != nil || n <= 0 || v > most {
		r.err = errPoint
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) row(k *kind) []uint32 {
	row := make([]uint32, k.width)
	for i := range row {
		row[i] = uint32(r.number(1<<32 - 1))
	}
	return row
}

func (r *reader) text() string {
	n := r.number(longestName)
	if r.err != nil || n > uint64(len(r.b)) {
		r.err = errPoint
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func decode(body []byte) (decoded, error) {
	var d decoded
	if len(body) == 0 || body[0] != version {
		return d, errPoint
	}
	r := &reader{b: body[1:]}
	d.covered = int64(r.number(1 << 40))
	d.router = r.row(ofRouter)
	for i, k := range []*kind{ofWorkloads, ofTargets} {
		for range r.number(mostSubjects) {
			c := named{name: r.text(), row: r.row(k)}
			if r.err != nil {
				return d, r.err
			}
			d.subjects[i] = append(d.subjects[i], c)
		}
	}
	if r.err != nil || len(r.b) > 0 || d.covered == 0 {
		return d, errPoint
	}
	return d, nil
}

// Restore reads points, in the order in which they were saved, back into a history of
// nothing, and returns how many it could not read. Where two have one place the later
// stays, as it was when they were made, whatever the clock was then. Of the subjects
// the largest are kept by name.
func (h *History) Restore(points []Point) (unread int) {
	var weights [2]map[string]float64
	for i := range weights {
		weights[i] = map[string]float64{}
	}
	good := make([]Point, 0, len(points))
	for _, p := range points {
		d, err := decode(p.Body)
		if err != nil || p.Level < 0 || p.Level >= len(levels) {
			unread++
			continue
		}
		good = append(good, p)
		for i, g := range []*group{&h.workloads, &h.targets} {
			for _, c := range d.subjects[i] {
				weights[i][c.name] += g.kind.activity(c.row)
			}
		}
	}
	h.workloads.choose(weights[0])
	h.targets.choose(weights[1])
	for _, p := range good {
		h.restore(p)
	}
	return unread
}

// choose begins the subjects that are kept by name.
func (g *group) choose(weights map[string]float64) {
	var all []named
	for name, w := range weights {
		if name != Other {
			all = append(all, named{name: name, n: w})
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		if a.n != b.n {
			if a.n > b.n {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	for _, c := range all[:min(len(all), g.kind.most)] {
		g.begin(c.name, 0).weight = c.n
	}
}

func (h *History) restore(p Point) {
	d, _ := decode(p.Body) // it was read before
	at := p.Step * levels[p.Level].step
	s, i := h.slot(p.Level, at)
	s.covered, s.changes, s.saved = d.covered, 1, 1
	copy(h.router.row(ofRouter, p.Level, i), d.router)
	for j, g := range []*group{&h.workloads, &h.targets} {
		for _, c := range d.subjects[j] {
			one := g.all[c.name]
			if one == nil {
				one = g.rest(at)
			}
			g.kind.merge(one.row(g.kind, p.Level, i), c.row)
			one.seen = max(one.seen, at)
		}
	}
}
