package queue

import (
	"slices"
	"time"
)

// Key is something that can serve an item; of an item's keys any will do. Its
// dynamic type must be comparable.
type Key any

// Config bounds the queue. With any of the three at 0 or less nobody waits.
type Config struct {
	Length int           // items
	Bytes  int64         // memory held by them
	Wait   time.Duration // of an interactive item; see Bound
}

// patience is how many times longer than interactive work the others may wait:
// critical work, which is served first and refused last, and batch work, for
// which nobody waits.
const patience = 10

// Bound is how long an item of the class waits at most, unless load stands.
func (c Config) Bound(p Priority) time.Duration {
	if p == Interactive {
		return c.Wait
	}
	return patience * c.Wait
}

// Fate is where an item is, or how its stay ended. It ends once.
type Fate uint8

// The fates.
const (
	Outside       Fate = iota // not pushed yet
	Waiting                   // nobody has told it anything
	Told                      // it has a signal and tries
	Dispatched                // served
	Expired                   // its time was over first
	Evicted                   // made room for what matters more
	Removed                   // taken out by its owner
	RefusedOff                // there is no queue
	RefusedLength             // too many items wait
	RefusedBytes              // they hold too much memory
)

// String is the word in metrics and logs.
func (f Fate) String() string {
	return [...]string{"outside", "waiting", "told", "dispatched", "expired", "evicted", "removed", "off", "length", "bytes"}[f]
}

// Item is one request in line. The exported fields are set before Push and not
// changed until its stay is over; the rest is the queue's.
type Item struct {
	Flow     string // whose it is
	Kin      Kin    // of those that are denied alike
	Priority Priority
	Cost     int64     // what serving it is expected to use, in tokens; Push lifts it to leastCost
	Bytes    int64     // of memory, held while it waits
	Luck     float64   // what it has drawn where a key is there for a share of the items, 0 the best
	Deadline time.Time // of its own; the queue's bound may be sooner. Zero for none
	Keys     []Key     // what may serve it, at least one
	Owner    any       // not looked at

	fate   Fate
	since  time.Time // when it came
	until  time.Time // when it is over
	seq    uint64    // order of arrival
	size   int64     // its cost as it was said
	over   uint8     // a bit for each class that was passed over for it
	flow   *flow
	lane   *lane
	prev   *Item
	next   *Item
	signal signal   // what it was told
	seen   []uint64 // for each of the keys the newest signal that a try of it covers
	missed []signal // came while it tried and nobody else could be told
}

// Fate is where the item is.
func (it *Item) Fate() Fate { return it.fate }

// Until is when the item's wait ends.
func (it *Item) Until() time.Time { return it.until }

// Key is what a told item was told of.
func (it *Item) Key() Key { return it.signal.key }

// signal is the news that a key is free. Serials grow.
type signal struct {
	key    Key
	serial uint64
}

// want counts who wants a key.
type want struct {
	waiting [NumPriorities]int // told ones included
	told    int                // of this key
	vain    bool               // its last signal helped nobody
	passed  [NumPriorities]int // grants to more important classes since its own last one
	denied  [NumPriorities]mark
	kin     map[kin]mark
	large   large
}

// Queue is the line. The zero value lets nobody wait; Reconfigure opens it.
type Queue struct {
	config  Config
	classes [NumPriorities]class
	wants   map[Key]*want

	n        int
	bytes    int64
	arrivals uint64
	signals  uint64
	earliest time.Time // nobody's time is over before; zero when unknown

	busy  *Item   // scratch of hand: somebody who tries and has not seen the signal
	late  []*Item // scratch of hand: found to be over
	gone  []*Item // expired or evicted, for Gone
	woken []*Item // scratch of what Pass, Done and Remove return

	released []Key // for Released
}

// New returns an empty queue.
func New(c Config) *Queue {
	q := &Queue{config: c, wants: make(map[Key]*want)}
	for p := range q.classes {
		q.classes[p].flows = make(map[string]*flow)
	}
	return q
}

// Reconfigure changes the bounds for those who come from now on.
func (q *Queue) Reconfigure(c Config) { q.config = c }

// Waiting is the number of items in line and the bytes they hold.
func (q *Queue) Waiting() (items int, bytes int64) { return q.n, q.bytes }

// Promised reports that an item was told of the key and has not tried yet.
func (q *Queue) Promised(k Key) bool {
	w := q.wants[k]
	return w != nil && w.told > 0
}

// Vain reports that the last news of the key has reached all who wait for it and
// helped nobody: what is free is of no use to them, and a newcomer that tries it
// overtakes nobody.
func (q *Queue) Vain(k Key) bool {
	w := q.wants[k]
	return w != nil && w.vain
}

// Ahead reports that somebody of the class, or of a more important one, waits
// for the key.
func (q *Queue) Ahead(k Key, p Priority) bool {
	w := q.wants[k]
	if w == nil {
		return false
	}
	for _, n := range w.waiting[:p+1] {
		if n > 0 {
			return true
		}
	}
	return false
}

// Wanted reports that somebody waits for the key.
func (q *Queue) Wanted(k Key) bool { return q.wants[k] != nil }

// Push puts an item in line and returns Waiting, or the reason why not. It may
// evict others: see Gone.
func (q *Queue) Push(now time.Time, it *Item) Fate {
	it.fate = q.admit(now, it)
	if it.fate != Waiting {
		return it.fate
	}
	f := q.classes[it.Priority].flow(it.Flow)
	it.since, it.until = now, now.Add(q.bound(it.Priority, f))
	if !it.Deadline.IsZero() && it.Deadline.Before(it.until) {
		it.until = it.Deadline
	}
	if q.n == 0 || it.until.Before(q.earliest) {
		q.earliest = it.until
	}
	q.arrivals++
	it.seq, it.size, it.Cost = q.arrivals, it.Cost, max(it.Cost, leastCost)
	it.seen, it.missed = make([]uint64, len(it.Keys)), nil
	q.link(f, it)
	return Waiting
}

// Next gives the news that a key is free to one who waits for it, and returns
// it: nil when there is nobody who is not trying already. It costs one step for
// each flow.
func (q *Queue) Next(now time.Time, k Key) *Item {
	q.signals++
	if w := q.wants[k]; w != nil {
		w.vain = false
		clear(w.kin) // of older signals
	}
	return q.hand(now, signal{k, q.signals})
}

// Try is for who was told, before it tries: it appends the keys that the try is to
// leave alone, since others were told of them or are to have them first. What was
// raised of its other keys until now the try covers too.
func (q *Queue) Try(it *Item, leave []Key) []Key {
	if it.fate != Told {
		return leave
	}
	for i, k := range it.Keys {
		if k != it.signal.key && (q.Promised(k) || q.Saved(k, it.Priority)) {
			leave = append(leave, k)
		} else {
			it.seen[i] = q.signals
		}
	}
	return leave
}

// hand finds the one who is told next. Whoever tried the key after the signal was
// raised is left out: its try covered this one too.
func (q *Queue) hand(now time.Time, s signal) *Item {
	q.busy, q.late = nil, q.late[:0]
	w := q.wants[s.key]
	if w == nil {
		return nil
	}
	var it *Item
	if c := q.choose(now, s, w); c != nil {
		it = c.serve()
		it.over = c.over
		it.tell(s)
		w.told++
	} else if q.busy != nil {
		q.busy.missed = append(q.busy.missed, s)
	} else {
		w.vain = !w.large.stops
	}
	for _, late := range q.late {
		q.drop(now, late, Expired)
	}
	return it
}

// guard is the number of grants of which a less important class gets one.
const guard = 16

// choose finds the class that is served: the most important one that has
// somebody for the signal, unless a less important one has been passed over
// too often. What is held for one is not for those behind it.
func (q *Queue) choose(now time.Time, s signal, w *want) *class {
	held := w.held(now)
	first, due, found := -1, -1, uint8(0)
	for p := range Priority(NumPriorities) {
		if w.waits(p) {
			w.large.stops = true
			if w.waiting[p] > 0 {
				found |= 1 << p // it is passed over: its turn comes
			}
			continue
		}
		if w.waiting[p] == 0 || !q.look(now, s, w, p, held) {
			continue
		}
		found |= 1 << p
		switch {
		case first < 0:
			first = int(p)
		case due < 0 && w.passed[p]+1 >= guard:
			due = int(p)
		}
	}
	if first < 0 {
		return nil
	}
	c := &q.classes[first]
	if due >= 0 {
		c = &q.classes[due]
		w.passed[due] = 0 // its turn is over in vain too, or it would be first until it is served
	}
	c.over = found &^ (1 << first)
	return c
}

// waits reports that the class is not served before a more important item for
// which there is not enough yet: what becomes free is to be saved up for it.
func (w *want) waits(p Priority) bool {
	l := w.large.item
	return l != nil && p > l.Priority && w.passed[p]+1 < guard
}

// look finds those of the class whom the signal may go to, and reports whether
// there are any. The key is held against the item's own class: what matters more
// goes first, and what matters less has its turn or waits.
func (q *Queue) look(now time.Time, s signal, w *want, p Priority, held *Item) bool {
	c := &q.classes[p]
	if held == nil || p != held.Priority {
		return c.look(q, now, s, w)
	}
	w.large.stops = true
	return c.only(q, now, s, held)
}

// granted counts whom the grant to the item passed over.
func (w *want) granted(it *Item) {
	for p := range w.passed {
		if it.over&(1<<p) != 0 {
			w.passed[p]++
		}
	}
	w.passed[it.Priority] = 0
}

func (it *Item) tell(s signal) {
	it.fate, it.signal = Told, s
	it.seen[slices.Index(it.Keys, s.key)] = s.serial
	it.flow.deficit -= it.Cost
	it.flow.trying++
}

// tried reports that a try of the item covers the signal.
func (it *Item) tried(s signal) bool { return it.seen[slices.Index(it.Keys, s.key)] >= s.serial }

// untell takes back that it was told.
func (q *Queue) untell(it *Item) {
	it.fate = Waiting
	it.flow.deficit = min(it.flow.deficit+it.Cost, Quantum) // rounds given meanwhile are not saved up
	it.flow.trying--
	q.wants[it.signal.key].told--
}

// Pass says that what the item was told of did not help it, and why. It keeps
// its place, and those are returned who are to be woken in its stead, itself
// among them when there was news meanwhile. The slice is valid until the next
// call.
func (q *Queue) Pass(now time.Time, it *Item, d Denial) []*Item {
	q.woken = q.woken[:0]
	if it.fate == Told {
		q.denied(now, it, d)
		q.untell(it)
		q.on(now, it, it.signal)
	}
	return q.woken
}

// Spent says that what the item was told of is taken, so that nobody else need
// try for it; d is what the item met. It keeps its place, and those are returned
// who are to be woken for news that came meanwhile. The slice is valid until the
// next call.
func (q *Queue) Spent(now time.Time, it *Item, d Denial) []*Item {
	q.woken = q.woken[:0]
	if it.fate == Told {
		if d.Large { // else it does not matter why: there is nothing
			q.denied(now, it, d)
		}
		q.untell(it)
		q.on(now, it)
	}
	return q.woken
}

// Done says that the item was served, and returns whom to wake of the news
// that came while it tried. The slice is valid until the next call.
func (q *Queue) Done(now time.Time, it *Item) []*Item {
	q.woken = q.woken[:0]
	if !it.inLine() {
		return nil
	}
	if it.fate == Told {
		w := q.wants[it.signal.key]
		w.told--
		w.granted(it)
		it.flow.trying--
	} else {
		it.flow.deficit -= it.Cost
	}
	it.flow.observe(now, q.config, now.Sub(it.since), false)
	q.unlink(it, Dispatched)
	q.on(now, it)
	return q.woken
}

// Remove takes the item out of line, as fate Expired or Removed, and returns
// whom to wake of what it was told and has not used. The slice is valid until
// the next call.
func (q *Queue) Remove(now time.Time, it *Item, fate Fate) []*Item {
	q.woken = q.woken[:0]
	if !it.inLine() {
		return nil
	}
	if it.fate == Waiting {
		q.leave(now, it, fate)
		return nil
	}
	q.untell(it)
	q.leave(now, it, fate)
	q.on(now, it, it.signal)
	return q.woken
}

func (it *Item) inLine() bool { return it.fate == Waiting || it.fate == Told }

// on hands signals on, and with them what the item missed.
func (q *Queue) on(now time.Time, it *Item, own ...signal) {
	missed := it.missed
	it.missed = nil
	for _, list := range [2][]signal{own, missed} {
		for _, s := range list {
			if next := q.hand(now, s); next != nil {
				q.woken = append(q.woken, next)
			}
		}
	}
}

// Gone returns those who expired or were evicted since it was last asked: their
// owners do not know yet. The slice is valid until the next call.
func (q *Queue) Gone() []*Item {
	gone := q.gone
	q.gone = q.gone[len(q.gone):]
	return gone
}

// drop ends the stay of one who is not told.
func (q *Queue) drop(now time.Time, it *Item, fate Fate) {
	q.leave(now, it, fate)
	q.gone = append(q.gone, it)
}

func (q *Queue) leave(now time.Time, it *Item, fate Fate) {
	if fate == Expired {
		it.flow.observe(now, q.config, now.Sub(it.since), true)
	}
	q.unlink(it, fate)
}

// Settle corrects what an item of the flow was charged, once its real cost is
// known. The debt of a flow of which nobody waits counts as in the package's
// rules. Neither counts as less than leastCost.
func (q *Queue) Settle(p Priority, flow string, estimated, actual int64) {
	if f := q.classes[p].flows[flow]; f != nil {
		f.deficit = min(f.deficit+max(estimated, leastCost)-max(actual, leastCost), Quantum)
	}
}
