package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// tries offers the key once, and counts how many try it until one of them is
// served, who is returned, or none is left.
func tries(q *Queue, now time.Time, k Key, serves func(*Item) (bool, Denial)) (n int, served *Item) {
	told := q.Next(now, k)
	for told != nil {
		n++
		ok, d := serves(told)
		if ok {
			q.Done(now, told)
			return n, told
		}
		next := q.Pass(now, told, d)
		if told = nil; len(next) > 0 {
			told = next[0]
		}
	}
	return n, nil
}

// TestADenialIsTriedOnce: with 1,000 in line what is of no use to one is tried by
// one of each of those that it concerns, and somebody else is told. It fails when a
// denial is of the item alone.
func TestADenialIsTriedOnce(t *testing.T) {
	for scope, most := range map[Scope]int{DeniedKin: 5, DeniedClass: 1, DeniedAll: 1} {
		q := roomy()
		for i := range 1000 {
			it := item(fmt.Sprint("flow ", i%40), Interactive, 1000)
			it.Kin.Name = fmt.Sprint("workload ", i%4)
			push(t, q, 0, it)
		}
		push(t, q, 0, item("other", Batch, 1))
		all := func(it *Item) (bool, Denial) { return false, Denial{Scope: scope} }
		if n, _ := tries(q, epoch, "a", all); n != most {
			t.Errorf("scope %d: %d tries, want %d", scope, n, most)
		}
		if !q.Vain("a") {
			t.Errorf("scope %d: newcomers wait for what is of no use to the others", scope)
		}
		if scope != DeniedKin {
			continue
		}
		others := func(it *Item) (bool, Denial) { return it.Priority == Batch, Denial{Scope: DeniedKin} }
		if _, served := tries(q, epoch, "a", others); served == nil {
			t.Errorf("scope %d: the one whom it does not concern was not told", scope)
		}
	}
}

// TestSmallerOnesAreTold: a denial to large ones is none to smaller ones.
func TestSmallerOnesAreTold(t *testing.T) {
	q := roomy()
	for range 1000 {
		push(t, q, 0, item("large", Interactive, 8000))
	}
	push(t, q, 0, item("small", Interactive, 1), item("small", Interactive, 0))
	fit := func(it *Item) (bool, Denial) { return it.size == 0, Denial{Scope: DeniedAll, Large: true} }
	if n, served := tries(q, epoch, "a", fit); served == nil || n > 3 {
		t.Errorf("%d tries, served %v", n, served)
	}
}

// TestTheLuckierAreTold: a denial by chance is none to those who drew better; it is
// tried by few of a thousand, the luckiest among them.
func TestTheLuckierAreTold(t *testing.T) {
	q, rng, best := roomy(), rand.New(rand.NewPCG(1, 2)), 1.0
	for range 1000 {
		it := item("x", Interactive, 1000)
		it.Luck = rng.Float64()
		best = min(best, it.Luck)
		push(t, q, 0, it)
	}
	lucky := func(it *Item) (bool, Denial) { return it.Luck == best, Denial{Scope: DeniedKin, Unlucky: true} }
	if n, served := tries(q, epoch, "a", lucky); served == nil || n > 20 {
		t.Errorf("%d tries, served %v", n, served)
	}
}

// TestALargeOneIsHeldFor: smaller ones pass it a bounded number of times, or for
// a bounded time, more important ones always; then nobody is told until it fits or
// leaves. It fails when the first of the order has no better claim than the next.
func TestALargeOneIsHeldFor(t *testing.T) {
	for _, way := range []string{"times", "time"} {
		q := roomy()
		big := item("big", Interactive, 8000)
		push(t, q, 0, big)
		for range 100 {
			push(t, q, 0, item("small", Interactive, 1000))
		}
		fit := func(it *Item) (bool, Denial) { return it != big, Denial{Scope: DeniedAll, Large: true} }
		passed, now := 0, epoch
		for range 50 {
			if way == "time" {
				now = now.Add(passedFor / 4)
			}
			if _, served := tries(q, now, "a", fit); served == nil {
				break
			}
			passed++
		}
		if passed < 3 || passed > passedTimes || q.Vain("a") {
			t.Errorf("by %s: passed %d times; newcomers may too: %t", way, passed, q.Vain("a"))
		}
		first := item("first", Critical, 1000)
		push(t, q, 0, first)
		if _, served := tries(q, now, "a", fit); served != first {
			t.Errorf("by %s: what matters more was not served", way)
		}
		if len(q.Released()) != 0 {
			t.Errorf("by %s: released", way)
		}
		q.Remove(now, big, Removed)
		if r := q.Released(); len(r) != 1 || r[0] != Key("a") {
			t.Errorf("by %s: released %v when it left", way, r)
		}
		if _, served := tries(q, now, "a", fit); served == nil {
			t.Errorf("by %s: still held", way)
		}
	}
}

// TestNothingIsHeldForOthers: who is denied for another reason than its size is
// not waited for.
func TestNothingIsHeldForOthers(t *testing.T) {
	q := roomy()
	push(t, q, 0, item("one", Interactive, 8000), item("two", Interactive, 8000))
	none := func(d Denial) func(*Item) (bool, Denial) {
		return func(it *Item) (bool, Denial) { return false, d }
	}
	tries(q, at(0), "a", none(Denial{Scope: DeniedAll, Large: true}))
	if n, _ := tries(q, at(200), "a", none(Denial{Scope: DeniedAll, Large: true})); n != 1 {
		t.Fatalf("%d tries of what is held for one", n)
	}
	first := q.wants["a"].large.item
	fit := func(it *Item) (bool, Denial) { return it != first, Denial{} }
	if _, served := tries(q, at(200), "a", fit); served == nil {
		t.Error("held for one who is denied for itself")
	}
}

// BenchmarkVain is one signal that helps nobody, with 1,000 in line.
func BenchmarkVain(b *testing.B) {
	for name, d := range map[string]Denial{"item": {}, "kin": {Scope: DeniedKin}} {
		b.Run(name, func(b *testing.B) {
			q, total := roomy(), 0
			for range 1000 {
				push(b, q, 0, item("x", Interactive, 1000))
			}
			for b.Loop() {
				n, _ := tries(q, epoch, "a", func(*Item) (bool, Denial) { return false, d })
				total += n
			}
			b.ReportMetric(float64(total)/float64(b.N), "tries/op")
		})
	}
}

// TestLessImportantWorkDoesNotPass: what is free and too little for a critical
// item is saved up for it. Less important work, which it would be enough for, is
// not told, in line or at the door, until the guard gives it its turn or the item
// has left.
func TestLessImportantWorkDoesNotPass(t *testing.T) {
	q := New(Config{Length: 10, Bytes: 1 << 20, Wait: time.Minute})
	large := &Item{Flow: "critical", Priority: Critical, Cost: 1000, Bytes: 1, Keys: []Key{"a"}}
	small := &Item{Flow: "interactive", Priority: Interactive, Cost: 100, Bytes: 1, Keys: []Key{"a"}}
	for _, it := range []*Item{large, small} {
		if fate := q.Push(epoch, it); fate != Waiting {
			t.Fatal(fate)
		}
	}
	for range 3 {
		if it := q.Next(epoch, "a"); it != large {
			t.Fatalf("%+v was told before the critical one", it)
		}
		if told := q.Pass(epoch, large, Denial{Scope: DeniedAll, Large: true}); len(told) > 0 {
			t.Fatalf("%s passed it", told[0].Flow)
		}
		if q.Vain("a") || !q.Saved("a", Interactive) || q.Saved("a", Critical) {
			t.Fatal("a newcomer that matters less may try")
		}
	}
	q.Remove(epoch, large, Removed)
	if released := q.Released(); len(released) != 1 || q.Saved("a", Interactive) {
		t.Fatalf("released %v", released)
	}
	if it := q.Next(epoch, "a"); it != small {
		t.Errorf("%+v is told behind it", it)
	}
}
