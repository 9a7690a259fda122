package breaker

import "time"

type kind uint8

const (
	kindOrdinary kind = iota
	kindProbe
	kindLast // admitted by the all-targets-open rule
)

// call is one permit given out.
type call struct {
	id        uint64
	gen       uint32
	kind      kind
	class     uint8
	start     time.Time
	slow      time.Duration
	silence   time.Duration
	judged    bool  // has a slow verdict
	judgedSec int64 // the second it was given in
	answered  bool
	proven    bool

	prev, next *call
	listed     bool
}

// Permit allows one call. It is a value; settling it twice does nothing.
type Permit struct {
	c     *call
	id    uint64
	probe bool
}

// Probe reports that the call decides over the target.
func (p Permit) Probe() bool { return p.probe }

func (p Permit) valid() *call {
	if p.c == nil || p.c.id != p.id {
		return nil
	}
	return p.c
}

func (b *Breaker) begin(now time.Time, c Call, k kind) Permit {
	n := b.free
	if n == nil {
		n = new(call)
	} else {
		b.free = n.next
	}
	b.nextID++
	*n = call{id: b.nextID, gen: b.gen, kind: k, class: c.Class % classes, start: now, slow: c.Slow, silence: c.Silence}
	b.inflight++
	b.waiting.push(n)
	return Permit{c: n, id: n.id, probe: k == kindProbe}
}

// recycle keeps the record for the next call; its id no longer matches any
// permit.
func (b *Breaker) recycle(c *call) {
	if c == b.probe {
		b.probe = nil
	}
	*c = call{next: b.free}
	b.free = c
}

// waiting is the calls without content, by latency class in start order, so
// that within a class the first is the next to become slow. Calls with a slow
// verdict move to a list of their own: they still wait, but have been judged.
type waiting struct {
	lists  [classes]ring
	judged [classes]ring
	n      int
}

type ring struct{ root call }

func (w *waiting) init() {
	for i := range w.lists {
		for _, r := range []*ring{&w.lists[i], &w.judged[i]} {
			r.root.prev, r.root.next = &r.root, &r.root
		}
	}
}

func (r *ring) head() *call {
	if r.root.next == &r.root {
		return nil
	}
	return r.root.next
}

func (r *ring) push(c *call) {
	c.prev, c.next = r.root.prev, &r.root
	c.prev.next, c.next.prev = c, c
	c.listed = true
}

func (w *waiting) push(c *call) {
	w.lists[c.class].push(c)
	w.n++
}

func unlink(c *call) {
	c.prev.next, c.next.prev = c.next, c.prev
	c.prev, c.next, c.listed = nil, nil, false
}

func (w *waiting) remove(c *call) {
	if c.listed {
		unlink(c)
		w.n--
	}
}

// pass moves a judged call out of the way of the next.
func (w *waiting) pass(c *call) {
	unlink(c)
	w.judged[c.class].push(c)
}

// oldest is the oldest call of a class that has no slow verdict yet.
func (w *waiting) oldest(class int) *call { return w.lists[class].head() }

// first is the oldest of all waiting calls.
func (w *waiting) first() (oldest *call) {
	for i := range w.lists {
		for _, c := range []*call{w.lists[i].head(), w.judged[i].head()} {
			if c != nil && (oldest == nil || c.start.Before(oldest.start)) {
				oldest = c
			}
		}
	}
	return oldest
}

func (w *waiting) clear() {
	for i := range w.lists {
		for _, r := range []*ring{&w.lists[i], &w.judged[i]} {
			for c := r.head(); c != nil; c = r.head() {
				w.remove(c)
			}
		}
	}
}

// peak is the most calls in flight seen while closed, over the last one to
// two minutes.
type peak struct {
	from      time.Time
	this, old int
	last      int // the last value while it was known
}

func (p *peak) note(now time.Time, n int) {
	if now.Sub(p.from) >= time.Minute {
		p.old, p.this, p.from = p.this, 0, now
	}
	p.this = max(p.this, n)
	p.last = max(p.this, p.old)
}

func (p *peak) of(time.Time) int { return p.last }
