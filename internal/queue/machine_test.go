package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is the queue beside what the test knows of it.
type world struct {
	q     *Queue
	c     Config
	now   time.Time
	all   []*Item
	told  []*Item
	owed  map[*Item]map[Key][]int // signals raised since the item, or one whose denial concerned it, last began to try
	n     int                     // signals raised
	ended map[*Item]Fate
}

func (w *world) wake(t *rapid.T, items []*Item) {
	for _, it := range items {
		if it.Fate() != Told || slices.Contains(w.told, it) {
			t.Fatalf("woken twice, or while %s", it.Fate())
		}
		if !w.now.Before(it.Until()) {
			t.Fatal("told behind its time")
		}
		w.told = append(w.told, it)
		leave := w.q.Try(it, nil)
		for _, k := range it.Keys {
			if !slices.Contains(leave, k) {
				delete(w.owed[it], k)
			}
		}
	}
}

func (w *world) end(t *rapid.T, it *Item) {
	if _, twice := w.ended[it]; twice {
		t.Fatal("left twice")
	}
	w.ended[it] = it.Fate()
}

// gone books who was dropped, and checks what holds at all times.
func (w *world) gone(t *rapid.T) {
	for _, it := range w.q.Gone() {
		if f := it.Fate(); f != Expired && f != Evicted {
			t.Fatalf("gone as %s", f)
		}
		w.end(t, it)
	}
	n, bytes := 0, int64(0)
	promised := map[Key]int{}
	for _, it := range w.all {
		if !it.inLine() {
			if _, ok := w.ended[it]; !ok {
				t.Fatalf("lost as %s", it.Fate())
			}
			continue
		}
		n, bytes = n+1, bytes+it.Bytes
		if it.Fate() == Told {
			promised[it.Key()]++
		}
	}
	if gn, gb := w.q.Waiting(); gn != n || gb != bytes || n > w.c.Length || bytes > w.c.Bytes {
		t.Fatalf("%d items and %d bytes in line, %d and %d known, bounds %d and %d", gn, gb, n, bytes, w.c.Length, w.c.Bytes)
	}
	for k, x := range w.q.wants {
		if x.told != promised[k] {
			t.Fatalf("%d told of %v, %d known", x.told, k, promised[k])
		}
	}
	for _, k := range w.q.Released() { // one signal for all that came meanwhile: who is served has its owner look again
		for _, owed := range w.owed {
			delete(owed, k)
		}
		w.raise(t, k)
	}
	w.nobodyForgotten(t)
}

// raise says that the key is free.
func (w *world) raise(t *rapid.T, k Key) {
	w.n++
	for _, it := range w.all {
		if it.inLine() && slices.Contains(it.Keys, k) {
			w.owed[it][k] = append(w.owed[it][k], w.n)
		}
	}
	if it := w.q.Next(w.now, k); it != nil {
		if !slices.Contains(it.Keys, k) {
			t.Fatal("told of what it does not want")
		}
		w.wake(t, []*Item{it})
	}
}

// concerns is the promise of a denial.
func concerns(d Denial, denied, it *Item) bool {
	if d.Large && it.size < denied.size || d.Unlucky && it.Luck < denied.Luck {
		return false
	}
	switch d.Scope {
	case DeniedKin:
		return it.Priority == denied.Priority && it.Kin == denied.Kin
	case DeniedClass:
		return it.Priority >= denied.Priority
	}
	return d.Scope == DeniedAll
}

// pass has one who tried say what it met: signals raised before it began owe
// nothing to those whom that concerns.
func (w *world) pass(t *rapid.T) {
	it := w.drawTold(t)
	k, began, d := it.Key(), int(it.signal.serial), Denial{Scope(rapid.IntRange(0, 3).Draw(t, "scope")), rapid.Bool().Draw(t, "large"), rapid.Bool().Draw(t, "unlucky")}
	for _, other := range w.all {
		if concerns(d, it, other) {
			w.owed[other][k] = slices.DeleteFunc(w.owed[other][k], func(n int) bool { return n <= began })
		}
	}
	w.wake(t, w.q.Pass(w.now, it, d))
}

// held reports that the item is behind one that the key is held for.
func (w *world) held(k Key, it *Item) bool {
	want := w.q.wants[k]
	if want == nil || !want.large.stops {
		return false
	}
	first := want.large.item
	return first.inLine() && it != first && it.Priority >= first.Priority
}

// nobodyForgotten: of the signals raised since somebody last tried, or came,
// each was either told to one who still tries or missed by one who does.
func (w *world) nobodyForgotten(t *rapid.T) {
	for _, it := range w.all {
		if it.Fate() != Waiting || !w.now.Before(it.Until()) {
			continue
		}
		for k, n := range w.owed[it] {
			if len(n) > 0 && !w.trying(k) && !w.held(k, it) {
				t.Fatalf("key %v was free, %s waits for it and nobody tries", k, it.Flow)
			}
		}
	}
}

// trying reports that a signal for the key is on its way.
func (w *world) trying(k Key) bool {
	for _, it := range w.told {
		if it.Key() == k {
			return true
		}
		for _, s := range it.missed {
			if s.key == k {
				return true
			}
		}
	}
	return false
}

func (w *world) drawTold(t *rapid.T) *Item {
	if len(w.told) == 0 {
		t.Skip("nobody tries")
	}
	i := rapid.IntRange(0, len(w.told)-1).Draw(t, "told")
	it := w.told[i]
	w.told = slices.Delete(w.told, i, i+1)
	return it
}

func (w *world) actions() map[string]func(*rapid.T) {
	keys := []Key{"a", "b", "c"}
	return map[string]func(*rapid.T){
		"": w.gone,
		"push": func(t *rapid.T) {
			it := &Item{
				Flow: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "flow"), Priority: Priority(rapid.IntRange(0, 2).Draw(t, "priority")),
				Cost: rapid.Int64Range(0, 5000).Draw(t, "cost"), Bytes: rapid.Int64Range(0, 60).Draw(t, "bytes"),
				Kin:  Kin{Kind: uint8(rapid.IntRange(0, 1).Draw(t, "kind"))},
				Luck: float64(rapid.IntRange(0, 2).Draw(t, "luck")),
				Keys: keys[rapid.IntRange(0, 1).Draw(t, "from"):rapid.IntRange(2, 3).Draw(t, "to")],
			}
			if rapid.Bool().Draw(t, "has a deadline") {
				it.Deadline = w.now.Add(time.Duration(rapid.IntRange(-10, 500).Draw(t, "deadline")) * time.Millisecond)
			}
			w.all, w.owed[it] = append(w.all, it), map[Key][]int{}
			if w.q.Push(w.now, it) != Waiting {
				w.end(t, it)
			}
		},
		"next": func(t *rapid.T) {
			w.raise(t, rapid.SampledFrom(keys).Draw(t, "key"))
		},
		"pass": w.pass, "pass again": w.pass,
		"done": func(t *rapid.T) {
			it := w.drawTold(t)
			k, used := it.Key(), int(it.signal.serial)
			for _, other := range w.all {
				w.owed[other][k] = slices.DeleteFunc(w.owed[other][k], func(n int) bool { return n == used })
			}
			w.wake(t, w.q.Done(w.now, it))
			w.end(t, it)
		},
		"leave": func(t *rapid.T) {
			it := w.all[max(0, len(w.all)-1-rapid.IntRange(0, 20).Draw(t, "back"))]
			if !it.inLine() {
				t.Skip("gone")
			}
			w.told = slices.DeleteFunc(w.told, func(x *Item) bool { return x == it })
			w.wake(t, w.q.Remove(w.now, it, Removed))
			w.end(t, it)
		},
		"time": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 150).Draw(t, "ms")) * time.Millisecond)
		},
	}
}

// TestMachine: whatever happens in whatever order, bounds hold, everybody
// leaves once, nobody is told behind its time or twice, and no signal is lost.
func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Length: rapid.IntRange(1, 8).Draw(t, "length"), Bytes: 200, Wait: 300 * time.Millisecond}
		w := &world{q: New(c), c: c, now: epoch, owed: map[*Item]map[Key][]int{}, ended: map[*Item]Fate{}}
		first := item("x", Interactive, 1)
		w.all, w.owed[first] = []*Item{first}, map[Key][]int{}
		w.q.Push(w.now, first)
		t.Repeat(w.actions())
		for len(w.told) > 0 { // it comes to rest
			it := w.told[0]
			w.told = w.told[1:]
			w.wake(t, w.q.Pass(w.now, it, Denial{}))
		}
		for _, it := range w.all {
			if it.inLine() {
				w.wake(t, w.q.Remove(w.now, it, Removed))
				w.end(t, it)
			}
		}
		w.gone(t)
		if n, b := w.q.Waiting(); n != 0 || b != 0 || len(w.q.wants) != 0 {
			t.Fatalf("%d items, %d bytes, %d keys left", n, b, len(w.q.wants))
		}
		for p := range w.q.classes {
			if c := &w.q.classes[p]; len(c.ring)+len(c.flows) != 0 {
				t.Fatalf("%d and %d flows left", len(c.ring), len(c.flows))
			}
		}
	})
}
