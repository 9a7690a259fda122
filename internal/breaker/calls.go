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
	id       uint64
	gen      uint32
	kind     kind
	class    uint8
	verdict  count // ok, failed, or none of them
	slot     uint8 // of the verdict among the recent ones
	answered bool
	lost     bool // its lease ended: it has been judged
	listed   bool
	late     bool   // it counts in Breaker.late, and in waiting.late while listed
	alone    bool   // its caller had nothing else
	long     bool   // a probe that may run on when its lease ends
	sec      int64  // the second its verdict is counted in
	begun    int64  // its cohort among the streams; 0 before its first content
	after    uint64 // first contents before it began
	start    time.Time
	slow     time.Duration
	silence  time.Duration

	prev, next *call
}

// Permit allows one call. It is a value; what is said of it twice, or after
// its end, does nothing.
type Permit struct {
	c     *call
	id    uint64
	probe bool
	long  bool
}

// Probe reports that the call decides over the target and that others wait
// for it.
func (p Permit) Probe() bool { return p.probe }

// Long reports a probe that may run on when its lease ends: others wait no
// longer, and its answer counts.
func (p Permit) Long() bool { return p.long }

// Heeds reports that what is still to be heard of the call says something: it has
// not lost its lease, and no change of phase has made it stale.
func (b *Breaker) Heeds(p Permit) bool {
	c := p.valid()
	return c != nil && !c.lost && (c.gen == b.gen || b.refutes(c))
}

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
	if b.cfg.Patient {
		c.Slow, c.Silence = 0, 0
	}
	b.nextID++
	*n = call{
		id: b.nextID, gen: b.gen, kind: k, class: c.Class % classes, verdict: none, after: b.contents,
		start: now, slow: c.Slow, silence: c.Silence, alone: k == kindLast && c.Need == Nothing,
	}
	b.inflight++
	b.waiting.push(n)
	return Permit{c: n, id: n.id, probe: k == kindProbe}
}

// recycle keeps the record for the next call; its id no longer matches any
// permit.
func (b *Breaker) recycle(c *call) {
	*c = call{next: b.free}
	b.free = c
}

// mark gives a call its verdict, in place of the one it may have: each call
// is counted once, in the second of its last verdict.
func (b *Breaker) mark(now time.Time, c *call, v count) {
	if c.verdict != none {
		b.window.take(c.sec, c.verdict)
	}
	c.verdict, c.sec = v, b.window.add(now, v)
	b.window.remember(now, c, v == ok)
}

// unmark takes back the failure of a call that was slow and then ended in a
// way that says nothing. That it was slow stands: callers who lose patience
// with a hung target must not hide the hang.
func (b *Breaker) unmark(now time.Time, c *call) {
	if c.verdict == failed {
		b.window.take(c.sec, failed)
		b.window.add(now, left)
		b.window.forget(c)
		c.verdict = none
	}
}

// waiting is the calls without content, by latency class in start order, so
// that within a class the next to become slow is known without looking at
// the others.
type waiting struct {
	lists [classes]list
	n     int
	late  int // of these, judged slow
}

type list struct {
	head, tail *call
	unjudged   *call // the first without a slow verdict
}

func (w *waiting) push(c *call) {
	l := &w.lists[c.class]
	if c.prev = l.tail; c.prev != nil {
		c.prev.next = c
	} else {
		l.head = c
	}
	l.tail = c
	if l.unjudged == nil {
		l.unjudged = c
	}
	c.listed = true
	w.n++
}

func (w *waiting) remove(c *call) {
	if !c.listed {
		return
	}
	l := &w.lists[c.class]
	if l.unjudged == c {
		l.unjudged = c.next
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.tail = c.prev
	}
	c.prev, c.next, c.listed = nil, nil, false
	w.n--
	if c.late {
		w.late--
	}
}

func (w *waiting) each(f func(*call)) {
	for i := range w.lists {
		for c := w.lists[i].head; c != nil; c = c.next {
			f(c)
		}
	}
}

func (w *waiting) clear() {
	for i := range w.lists {
		for c := w.lists[i].head; c != nil; c = w.lists[i].head {
			w.remove(c)
		}
	}
}

// peak is the most calls in flight while the target answered, over the last
// one to two minutes of good health. Calls that pile up on a hung target are
// not among them: it is noted with each answer.
type peak struct {
	from      time.Time
	this, old int
	most      int
}

func (p *peak) note(now time.Time, n int) {
	switch d := now.Sub(p.from); {
	case d >= 2*time.Minute:
		p.old, p.this, p.from = 0, 0, now
	case d >= time.Minute:
		p.old, p.this, p.from = p.this, 0, now
	}
	p.this = max(p.this, n)
	p.most = max(p.this, p.old)
}
