package admit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/queue"
)

// pool is a target in a test: slots, and optionally a rate.
type pool struct {
	mu    sync.Mutex
	slots int
	every time.Duration // between two calls, 0 for any time
	next  time.Time
}

// take takes a slot, if there is one.
func (p *pool) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots == 0 || time.Now().Before(p.next) {
		return false
	}
	p.slots--
	p.next = time.Now().Add(p.every)
	return true
}

func (p *pool) put() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots++
}

func (p *pool) room() (bool, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots > 0 && time.Now().Before(p.next) {
		return false, p.next
	}
	return p.slots > 0, time.Time{}
}

func roomOf(k queue.Key) (bool, time.Time) { return k.(*pool).room() }

func newLine(c queue.Config) *Line { return NewLine(c, roomOf) }

var wide = queue.Config{Length: 1000, Bytes: 1 << 30, Wait: time.Minute}

func wants(flow string, pools ...*pool) *Waiter {
	w := &Waiter{Flow: flow, Priority: queue.Interactive, Cost: 1000}
	for _, p := range pools {
		w.Keys = append(w.Keys, p)
	}
	return w
}

// get is what a request does: it tries at once unless it must wait.
func get(ctx context.Context, l *Line, w *Waiter, try func() bool) bool {
	if len(l.Taken(w.Keys, w.Priority)) < len(w.Keys) && try() {
		return true
	}
	return l.WaitFor(ctx, w, try) == queue.Dispatched
}

// empty fails the test when anybody is left in line.
func empty(t *testing.T, l *Line) {
	t.Helper()
	if n, b := l.Waiting(); n != 0 || b != 0 || !l.Empty() {
		t.Errorf("%d requests, %d bytes left in line", n, b)
	}
}

func TestLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := NewLedger(1000)
		small, _ := ledger.Reserve(10)
		large, _ := ledger.Reserve(95)
		l := newLine(queue.Config{Length: 2, Bytes: 100, Wait: 200 * time.Millisecond})
		p := new(pool)
		var wg sync.WaitGroup
		begin := time.Now()
		with := func(x *Lease) *Waiter {
			w := wants("x", p)
			w.Lease = x
			return w
		}
		wait := func() {
			wg.Go(func() {
				if fate := l.WaitFor(t.Context(), with(small), p.take); fate != queue.Expired || time.Since(begin) != 200*time.Millisecond {
					t.Errorf("%s after %v, want 200ms", fate, time.Since(begin))
				}
			})
			synctest.Wait()
		}
		wait()
		if fate := l.WaitFor(t.Context(), with(large), p.take); fate != queue.RefusedBytes {
			t.Errorf("more bytes than allowed: %s", fate)
		}
		wait()
		if fate := l.WaitFor(t.Context(), with(small), p.take); fate != queue.RefusedLength || time.Since(begin) != 0 {
			t.Errorf("more requests than allowed: %s", fate)
		}
		if n, b := l.Waiting(); n != 2 || b != 20 {
			t.Errorf("%d requests, %d bytes in line", n, b)
		}
		wg.Wait()
		empty(t, l)
	})
}

func TestLineOff(t *testing.T) {
	for _, c := range []queue.Config{{}, {Length: 1, Bytes: 1}, {Bytes: 1, Wait: 1}, {Length: 1, Wait: 1}} {
		if fate := newLine(c).WaitFor(t.Context(), wants("x", new(pool)), nil); fate != queue.RefusedOff {
			t.Errorf("%+v: %s", c, fate)
		}
	}
}

func TestLineServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newLine(wide), new(pool)
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if get(t.Context(), l, wants("x", p), p.take) {
					order = append(order, i)
				}
			})
			synctest.Wait()
		}
		for range 5 {
			p.put()
			l.Notify(p)
			synctest.Wait()
		}
		wg.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
		empty(t, l)
	})
}

func TestLineLooksOnEntry(t *testing.T) {
	if fate := newLine(wide).WaitFor(t.Context(), wants("x", &pool{slots: 1}), func() bool { return true }); fate != queue.Dispatched {
		t.Fatal("a slot freed just before the wait was missed")
	}
}

// TestLineWakesOnlyWhoWantsIt: a slot of one target wakes nobody who waits for
// another one.
func TestLineWakesOnlyWhoWantsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, a, b := newLine(queue.Config{Length: 10, Bytes: 1, Wait: time.Second}), new(pool), new(pool)
		var tries atomic.Int32
		got := make([]bool, 3)
		var wg sync.WaitGroup
		for i, p := range []*pool{a, a, b} {
			wg.Go(func() {
				got[i] = get(t.Context(), l, wants("x", p), func() bool { tries.Add(1); return p.take() })
			})
			synctest.Wait()
		}
		before := tries.Load()
		b.put()
		l.Notify(b)
		wg.Wait()
		if got[0] || got[1] || !got[2] || tries.Load() != before+1 {
			t.Fatalf("got %v with %d tries, want only the last, with one", got, tries.Load()-before)
		}
	})
}

// TestLinePassesSignalsOn: what does not help the one who is told goes to the
// next, once to each.
func TestLinePassesSignalsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newLine(wide), new(pool)
		ctx, cancel := context.WithCancel(t.Context())
		var tries, served atomic.Int32
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if l.WaitFor(ctx, wants("x", p), func() bool { tries.Add(1); return i == 4 && p.take() }) == queue.Dispatched {
					served.Add(1)
				}
			})
			synctest.Wait()
		}
		p.put()
		l.Notify(p)
		synctest.Wait()
		if tries.Load() != 5 || served.Load() != 1 {
			t.Errorf("%d tries, %d served", tries.Load(), served.Load())
		}
		cancel()
		wg.Wait()
		empty(t, l)
	})
}

// TestLineLosesNoSlot: none stays free while somebody waits for it.
func TestLineLosesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, requests = 2, 200
		l, p := newLine(wide), &pool{slots: slots}
		var served atomic.Int32
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range requests {
			wg.Go(func() {
				if get(t.Context(), l, wants(fmt.Sprint(i%7), p), p.take) {
					served.Add(1)
					time.Sleep(time.Millisecond)
					p.put()
					l.Notify(p)
				}
			})
		}
		wg.Wait()
		if served.Load() != requests || time.Since(begin) != requests/slots*time.Millisecond {
			t.Fatalf("%d served in %v; want %d in %v", served.Load(), time.Since(begin), requests, requests/slots*time.Millisecond)
		}
		empty(t, l)
	})
}

// TestLineWakesByTime: a rate's next call is made when it is due, by one, and
// nobody has to end a call for that.
func TestLineWakesByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newLine(wide), &pool{slots: 100, every: 50 * time.Millisecond}
		begin := time.Now()
		var tries atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if !get(t.Context(), l, wants("x", p), func() bool { tries.Add(1); return p.take() }) {
					t.Error("not served")
				}
			})
		}
		wg.Wait()
		if d := time.Since(begin); d != 19*50*time.Millisecond || tries.Load() > 60 {
			t.Errorf("20 calls at 20 a second took %v and %d tries", d, tries.Load())
		}
		empty(t, l)
	})
}

// TestLineLeavesNothingBehind: who leaves, by its context or by a panic, at
// whatever moment, takes no slot along and hands on what it was told.
func TestLineLeavesNothingBehind(t *testing.T) {
	for _, way := range []string{"cancel", "cancel and signal", "panic", "expiry and signal"} {
		t.Run(way, func(t *testing.T) {
			for range 30 {
				synctest.Test(t, func(t *testing.T) { leaveBehind(t, way) })
			}
		})
	}
}

func leaveBehind(t *testing.T, way string) {
	l, p := newLine(wide), new(pool)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var served atomic.Int32
	var wg sync.WaitGroup
	first := wants("x", p)
	if way == "expiry and signal" {
		first.Deadline = time.Now().Add(time.Second)
	}
	wg.Go(func() {
		defer func() { _ = recover() }()
		l.WaitFor(ctx, first, func() bool {
			if way == "panic" {
				panic("in try")
			}
			if p.take() {
				served.Add(1)
				return true
			}
			return false
		})
	})
	synctest.Wait()
	wg.Go(func() {
		if l.WaitFor(t.Context(), wants("x", p), p.take) == queue.Dispatched {
			served.Add(1)
		}
	})
	synctest.Wait()
	switch way {
	case "cancel and signal":
		cancel()
	case "cancel":
		cancel()
		synctest.Wait()
	case "expiry and signal":
		time.Sleep(time.Second)
	}
	p.put()
	l.Notify(p)
	synctest.Wait()
	if served.Load() != 1 {
		t.Fatalf("a free slot, somebody waiting, %d served", served.Load())
	}
	p.put()
	l.Notify(p)
	wg.Wait()
	empty(t, l)
}

// TestNewcomersDoNotOvertake: what is freed goes to those who wait, also when
// a newcomer comes first to where it is.
func TestNewcomersDoNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newLine(wide), new(pool)
		var order []string
		var wg sync.WaitGroup
		come := func(name string) {
			wg.Go(func() {
				if get(t.Context(), l, wants(name, p), p.take) {
					order = append(order, name)
				}
			})
		}
		come("waits")
		synctest.Wait()
		p.put()
		l.Notify(p) // told, and before it runs:
		if len(l.Taken([]queue.Key{p}, queue.Interactive)) == 0 {
			t.Error("a newcomer may take what is promised")
		}
		come("newcomer")
		synctest.Wait()
		p.put()
		l.Notify(p)
		wg.Wait()
		if !slices.Equal(order, []string{"waits", "newcomer"}) {
			t.Errorf("order %v", order)
		}
	})
}

// load has a flow send calls one after another from so many clients, each as
// soon as the one before has ended, until the time is over.
func load(wg *sync.WaitGroup, l *Line, p *pool, clients int, until time.Time, hold func(client int) time.Duration, w func(client int) *Waiter) {
	for c := range clients {
		wg.Go(func() {
			for time.Now().Before(until) {
				if !get(context.Background(), l, w(c), p.take) {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				time.Sleep(hold(c))
				p.put()
				l.Notify(p)
			}
		})
	}
}

// TestK08K09OneTenantTakesAllSlots: one workload has 500 long calls at a time,
// with one key or with a hundred; another one's single call a second waits less
// than a second. It fails when those who wait are served in order of arrival.
func TestK08K09OneTenantTakesAllSlots(t *testing.T) {
	for name, unknown := range map[string]bool{"K09 one workload, whatever its keys": false, "K08 callers nobody named": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oneTenant(t, unknown) })
		})
	}
}

func oneTenant(t *testing.T, unknown bool) {
	l := newLine(queue.Config{Length: 300, Bytes: 1 << 30, Wait: 5 * time.Second})
	p := &pool{slots: 20}
	until := time.Now().Add(20 * time.Second)
	heavy := func(client int) *Waiter {
		w := wants("heavy", p)
		if unknown {
			w.Caller = 0x9e3779b97f4a7c15 // one key
		}
		return w
	}
	var wg sync.WaitGroup
	hold := func(client int) time.Duration { return time.Duration(500+client%97*10) * time.Millisecond }
	load(&wg, l, p, 500, until, hold, heavy)
	time.Sleep(3 * time.Second) // it is in full swing
	for range 15 {
		time.Sleep(time.Second)
		w := wants("light", p)
		if unknown {
			w.Caller = 0xbf58476d1ce4e5b9
		}
		begin := time.Now()
		served := get(t.Context(), l, w, p.take)
		if !served || time.Since(begin) > time.Second {
			t.Errorf("the light workload: %v, waited %v", w.item.Fate(), time.Since(begin))
		}
		if !served {
			continue
		}
		wg.Go(func() {
			time.Sleep(100 * time.Millisecond)
			p.put()
			l.Notify(p)
		})
	}
	wg.Wait()
	empty(t, l)
	if free, _ := p.room(); !free || p.slots != 20 {
		t.Errorf("%d of 20 slots left", p.slots)
	}
}

// BenchmarkLine is one slot handed from one request to the next with 1,000 in
// line.
func BenchmarkLine(b *testing.B) {
	l, p := newLine(queue.Config{Length: 2000, Bytes: 1 << 30, Wait: time.Hour}), new(pool)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	served := make(chan struct{})
	for i := range 1000 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if l.WaitFor(ctx, wants(fmt.Sprint(i%10), p), p.take) == queue.Dispatched {
					served <- struct{}{}
				}
			}
		})
	}
	for n := 0; n < 1000; n, _ = l.Waiting() {
		time.Sleep(time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.put()
		l.Notify(p)
		<-served
	}
	cancel()
	wg.Wait()
}

// TestWhatATryLeavesAloneIsOffered: who is told of one key while another one is
// promised leaves that alone. When it turns out to be of no use to the other one, it
// is offered still. It fails when a try counts for every key of the request.
func TestWhatATryLeavesAloneIsOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, a, b := newLine(wide), new(pool), new(pool)
		trying, denied := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			l.WaitFor(ctx, wants("x", b), func() bool {
				close(trying)
				<-denied
				return false
			})
		})
		var got []queue.Key
		wg.Go(func() {
			w := wants("y", a, b)
			l.WaitFor(ctx, w, func() bool {
				if !slices.Contains(w.Promised, queue.Key(b)) && b.take() { // the other one is of no use to it
					got = append(got, b)
				}
				return len(got) > 0
			})
		})
		synctest.Wait()
		b.put()
		l.Notify(b)
		<-trying
		a.put()
		l.Notify(a)
		synctest.Wait()
		close(denied)
		synctest.Wait()
		if len(got) != 1 || got[0] != queue.Key(b) {
			t.Errorf("got %v of what is free and was left alone", got)
		}
		cancel()
		wg.Wait()
		empty(t, l)
	})
}

// TestNothingFreeIsForgotten: whoever comes, tries, is denied, leaves or gives
// back, and in whatever order, when all is at rest nobody waits for what is free
// and enough for him, unless it is saved up for one that it is too little for. It
// fails when a signal is lost.
func TestNothingFreeIsForgotten(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { atRest(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

// picky is a request that needs so many slots at once, and has no use for some of
// the keys that it waits for.
type picky struct {
	*Waiter
	cancel context.CancelFunc
	need   int
	use    []*pool
	over   atomic.Bool
	large  map[queue.Key]bool // of the last try: there was too little
}

func newPicky(rng *rand.Rand, pools []*pool) *picky {
	x := &picky{Waiter: wants(fmt.Sprint(rng.IntN(3)), pools...), need: 1 + rng.IntN(3), large: map[queue.Key]bool{}}
	x.Priority, x.Cost = queue.Priority(rng.IntN(int(queue.NumPriorities))), int64(x.need)
	x.Keys = x.Keys[rng.IntN(2) : 2+rng.IntN(2)]
	for _, k := range x.Keys {
		if rng.IntN(2) == 0 {
			x.use = append(x.use, k.(*pool))
		}
	}
	x.Denied = func(k queue.Key) queue.Denial {
		if x.large[k] {
			return queue.Denial{Scope: queue.DeniedAll, Large: true}
		}
		return queue.Denial{}
	}
	return x
}

// try takes what it needs where it may.
func (x *picky) try() bool {
	clear(x.large)
	for _, p := range x.use {
		if slices.Contains(x.Promised, queue.Key(p)) {
			continue
		}
		p.mu.Lock()
		ok := p.slots >= x.need
		x.large[p] = p.slots > 0
		if ok {
			p.slots -= x.need
		}
		p.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}

// waits reports that it is in line for the pool.
func (x *picky) waits(p *pool) bool { return !x.over.Load() && slices.Contains(x.use, p) }

func atRest(t *testing.T, rng *rand.Rand) {
	l, pools := newLine(wide), []*pool{{}, {}, {}}
	var all []*picky
	for range 30 {
		for range 1 + rng.IntN(4) { // at once
			switch x, p := rng.IntN(10), pools[rng.IntN(len(pools))]; {
			case x < 4:
				x := newPicky(rng, pools)
				ctx, cancel := context.WithCancel(t.Context())
				all, x.cancel = append(all, x), cancel
				go func() {
					l.WaitFor(ctx, x.Waiter, x.try)
					x.over.Store(true)
				}()
			case x < 9:
				p.put()
				l.Notify(p)
			case len(all) > 0:
				all[rng.IntN(len(all))].cancel()
			}
		}
		synctest.Wait()
		for _, p := range pools {
			forgotten(t, all, p)
		}
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
	}
	for _, x := range all {
		x.cancel()
	}
	synctest.Wait()
	empty(t, l)
}

func forgotten(t *testing.T, all []*picky, p *pool) {
	for i, x := range all {
		if !x.waits(p) || x.need > p.slots {
			continue
		}
		if !slices.ContainsFunc(all, func(y *picky) bool { return y.waits(p) && y.need > p.slots && y.Priority <= x.Priority }) {
			t.Fatalf("request %d of %d waits for what is free", i, len(all))
		}
	}
}
