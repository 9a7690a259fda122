package queue

import (
	"math"
	"time"
)

// Scope is whom a denial concerns besides the item that met it.
type Scope uint8

// The scopes.
const (
	DeniedItem  Scope = iota // nobody else
	DeniedKin                // those of its class and Kin
	DeniedClass              // its class and those that matter less
	DeniedAll                // everybody
)

// Denial says why what an item was told of did not help it. Those whom it
// concerns are not told of the same signal.
type Denial struct {
	Scope   Scope
	Large   bool // only those concerned that cost as much as the item, or more
	Unlucky bool // only those whose Luck is no better
}

// Kin are the items that a denial to one of them mostly concerns alike.
type Kin struct {
	Name string // who sends them, maybe in several flows
	What string // what they ask for
	Kind uint8  // what else makes a difference
}

// What does not fit because it is large lets smaller ones of its class pass it for
// so long, and so often; behind that the key is held for it. Less important work
// does not pass it. Without an end to it a large
// one would never be served: each bit that becomes free is enough for the next
// small one.
const (
	passedFor   = 200 * time.Millisecond
	passedTimes = 16
)

// mark is the newest denial to some items: signals up to its serial are of no
// use to those of its size and above, with its luck or worse.
type mark struct {
	serial uint64
	size   int64
	luck   float64
}

func (m mark) covers(it *Item, s signal) bool {
	return m.serial >= s.serial && it.size >= m.size && it.Luck >= m.luck
}

// whole reports that the signal is of no use to any of them.
func (m mark) whole(s signal) bool {
	return m.serial >= s.serial && m.size == math.MinInt64 && m.luck <= 0
}

// with is the newer of two, or the one that says more.
func (m mark) with(n mark) mark {
	if n.serial > m.serial || n.serial == m.serial && n.size <= m.size && n.luck <= m.luck {
		return n
	}
	return m
}

// kin is a Kin in a class.
type kin struct {
	Priority
	Kin
}

// large is the item that a key is held for, or will be.
type large struct {
	item  *Item
	since time.Time // first denied
	times int       // denied
	stops bool      // others were not told for its sake
}

// denied takes note of a denial to an item that was told.
func (q *Queue) denied(now time.Time, it *Item, d Denial) {
	w := q.wants[it.signal.key]
	m := mark{it.signal.serial, math.MinInt64, 0}
	if d.Large {
		m.size = it.size
	}
	if d.Unlucky {
		m.luck = it.Luck
	}
	switch d.Scope {
	case DeniedKin:
		if w.kin == nil {
			w.kin = map[kin]mark{}
		}
		k := kin{it.Priority, it.Kin}
		w.kin[k] = w.kin[k].with(m)
	case DeniedClass:
		w.deny(it.Priority, m)
	case DeniedAll:
		w.deny(0, m)
	}
	q.hold(now, w, it, d)
}

// deny marks the class and those that matter less.
func (w *want) deny(from Priority, m mark) {
	for p := from; p < NumPriorities; p++ {
		w.denied[p] = w.denied[p].with(m)
	}
}

// hold takes note of who is to have the key held for it: the first of the order
// that is only too large. Who is denied for another reason is not waited for.
func (q *Queue) hold(now time.Time, w *want, it *Item, d Denial) {
	first, fits := w.large.item, d.Scope != DeniedAll || !d.Large
	switch {
	case first == it && fits:
		q.release(it.signal.key, w)
	case first == it:
		w.large.times++
	case !fits && (first == nil || it.Priority < first.Priority):
		q.release(it.signal.key, w)
		w.large = large{item: it, since: now, times: 1}
	}
}

// held is whom the key is held for, or nil.
func (w *want) held(now time.Time) *Item {
	if l := w.large; l.item != nil && (l.times >= passedTimes || now.Sub(l.since) >= passedFor) {
		return l.item
	}
	return nil
}

// Saved reports that what becomes free of the key is saved up for an item that
// matters more than the class.
func (q *Queue) Saved(k Key, p Priority) bool {
	w := q.wants[k]
	return w != nil && w.large.item != nil && p > w.large.item.Priority
}

// release ends the holding: see Released.
func (q *Queue) release(k Key, w *want) {
	if w.large.stops {
		q.released = append(q.released, k)
	}
	w.large = large{}
}

// Released returns the keys that were held for one and are not any more, since it
// was last asked. The others have not been told what was free meanwhile: their
// owner does that.
func (q *Queue) Released() []Key {
	released := q.released
	q.released = nil
	return released
}

// only is look where the key is held for that item of the class.
func (c *class) only(q *Queue, now time.Time, s signal, it *Item) bool {
	for _, f := range c.ring {
		f.head = nil
	}
	switch {
	case it.tried(s):
	case it.fate == Told:
		q.busy = it
	case !now.Before(it.until):
		q.late = append(q.late, it)
	default:
		it.flow.head = it
		return true
	}
	return false
}
