package queue

import (
	"slices"
	"time"
)

// Quantum is what a flow may use in a round, in units of cost.
const Quantum = 1024

// leastCost is what any item counts as, however little it is said to use: it
// takes a slot. A flow of items that cost nothing would be served before every
// other one for as long as it has some.
const leastCost = Quantum / 16

// class is the flows of one priority.
type class struct {
	flows map[string]*flow // those who wait, and those who did since somebody began to
	ring  []*flow          // those who wait, in the order of the round
	turn  int              // in ring: who was served last
	level int64            // units that the rounds have given to each who waits
	over  uint8            // scratch of choose: a bit for each class that is passed over for it
}

// flow is the items of one caller in one class.
type flow struct {
	name     string
	priority Priority
	lanes    []*lane
	n        int
	bytes    int64
	deficit  int64 // what it may still use; below zero it owes
	idle     int64 // the class's level when it fell idle
	trying   int   // items that are told
	head     *Item // scratch of look: who would be served
	load     standing
}

// lane is the kin of a flow that want the same keys, in order of arrival: what
// waits for one model does not hide behind what waits for another.
type lane struct {
	keys        []Key
	kin         Kin
	first, last *Item
}

// flow finds or makes the flow. It joins the round with its first item.
func (c *class) flow(name string) *flow {
	f := c.flows[name]
	if f == nil {
		f = &flow{name: name}
	}
	return f
}

// join puts a flow at the end of the round. One that comes back may use no more
// than the one of the others that has been served least. A new one has a round's
// worth at least: the others may be charged for more than their calls in flight
// turn out to use, and it owes nothing for that.
func (c *class) join(f *flow) {
	f.deficit += c.level - f.idle
	most := f.deficit
	for i, other := range c.ring {
		if i == 0 || other.deficit > most {
			most = other.deficit
		}
	}
	if c.flows[f.name] != f {
		c.flows[f.name], f.deficit = f, Quantum
	} else {
		f.deficit = min(f.deficit, most)
	}
	c.ring = slices.Insert(c.ring, c.turn, f)
	if len(c.ring) > 1 {
		c.turn++
	}
}

// part takes a flow that has nobody waiting out of the round.
func (c *class) part(f *flow) {
	i := slices.Index(c.ring, f)
	c.ring = slices.Delete(c.ring, i, i+1)
	if i < c.turn {
		c.turn--
	}
	if c.turn >= len(c.ring) {
		c.turn = 0
	}
	f.idle, f.load = c.level, standing{}
	if len(c.ring) == 0 { // nobody is owed anything
		clear(c.flows)
		c.level = 0
	}
}

// look finds for each flow whom the signal would go to, and reports whether
// there is anybody.
func (c *class) look(q *Queue, now time.Time, s signal, w *want) (found bool) {
	for _, f := range c.ring {
		f.head = f.candidate(q, now, s, w)
		found = found || f.head != nil
	}
	return found
}

// candidate is the first in the flow's order who can be told.
func (f *flow) candidate(q *Queue, now time.Time, s signal, w *want) (best *Item) {
	all := w.denied[f.priority]
	if all.whole(s) {
		return nil
	}
	newest := f.load.stands
	for _, l := range f.lanes {
		if !slices.Contains(l.keys, s.key) {
			continue
		}
		own := w.kin[kin{f.priority, l.kin}]
		if own.whole(s) {
			continue
		}
		it := l.find(q, now, s, newest, all, own)
		if it != nil && (best == nil || newest == (it.seq > best.seq)) {
			best = it
		}
	}
	return best
}

// find is the first of the lane who can be told and was not denied it.
func (l *lane) find(q *Queue, now time.Time, s signal, newest bool, all, own mark) *Item {
	for it := l.begin(newest); it != nil; it = it.after(newest) {
		switch {
		case it.tried(s) || all.covers(it, s) || own.covers(it, s):
		case it.fate == Told:
			q.busy = it
		case !now.Before(it.until):
			q.late = append(q.late, it)
		default:
			return it
		}
	}
	return nil
}

// begin and after walk the lane from its first or from its newest item.
func (l *lane) begin(newest bool) *Item {
	if newest {
		return l.last
	}
	return l.first
}

func (it *Item) after(newest bool) *Item {
	if newest {
		return it.prev
	}
	return it.next
}

// serve returns the item of the flow that may still use most, of those that
// look found somebody in; among equals the next in the ring is served.
func (c *class) serve() *Item {
	c.rounds()
	best := -1
	for i := range c.ring {
		at := (c.turn + 1 + i) % len(c.ring)
		if f := c.ring[at]; f.head != nil && (best < 0 || f.deficit > c.ring[best].deficit) {
			best = at
		}
	}
	c.turn = best
	return c.ring[best].head
}

// rounds gives to those that look found somebody in as many rounds as the one
// closest to it needs to be served, at once. So it does to a flow of which
// somebody tries, who may come back in line.
func (c *class) rounds() {
	least := int64(-1)
	for _, f := range c.ring {
		if f.head == nil {
			continue
		}
		if need := max(0, (Quantum-f.deficit)/Quantum); least < 0 || need < least {
			least = need
		}
	}
	c.level += least * Quantum
	for _, f := range c.ring {
		switch {
		case f.head != nil:
			f.deficit += least * Quantum
		case f.trying > 0:
			f.deficit = min(f.deficit+least*Quantum, Quantum)
		}
	}
}

// link puts an item at the end of its flow.
func (q *Queue) link(f *flow, it *Item) {
	if f.n == 0 {
		q.classes[it.Priority].join(f)
		f.priority = it.Priority
	}
	l := f.lane(it.Keys, it.Kin)
	it.flow, it.lane, it.prev, it.next = f, l, l.last, nil
	if l.last == nil {
		l.first = it
	} else {
		l.last.next = it
	}
	l.last = it
	f.n++
	f.bytes += it.Bytes
	q.n++
	q.bytes += it.Bytes
	for _, k := range it.Keys {
		w := q.wants[k]
		if w == nil {
			w = new(want)
			q.wants[k] = w
		}
		w.waiting[it.Priority]++
	}
}

func (f *flow) lane(keys []Key, k Kin) *lane {
	for _, l := range f.lanes {
		if l.kin == k && slices.Equal(l.keys, keys) {
			return l
		}
	}
	l := &lane{keys: keys, kin: k}
	f.lanes = append(f.lanes, l)
	return l
}

// unlink takes an item out for good.
func (q *Queue) unlink(it *Item, fate Fate) {
	f, l := it.flow, it.lane
	it.fate = fate
	if it.prev == nil {
		l.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		l.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next, it.lane, it.flow = nil, nil, nil, nil
	if l.first == nil {
		f.lanes = slices.DeleteFunc(f.lanes, func(x *lane) bool { return x == l })
	}
	for _, k := range it.Keys {
		w := q.wants[k]
		if w.waiting[it.Priority]--; w.waiting == [NumPriorities]int{} {
			delete(q.wants, k)
		} else if w.large.item == it {
			q.release(k, w)
		}
	}
	f.n--
	f.bytes -= it.Bytes
	q.n--
	q.bytes -= it.Bytes
	if f.n == 0 {
		q.classes[it.Priority].part(f)
	}
}
