package admit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// signal waits for one signal of the gate.
func signal(ctx context.Context, g *Gate, lease *Lease) bool {
	looked := false
	return g.WaitFor(ctx, lease, func() bool {
		defer func() { looked = true }()
		return looked
	})
}

func TestGateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLedger(1000)
		small, _ := l.Reserve(10)
		large, _ := l.Reserve(95)
		g := NewGate(Queue{Length: 2, Bytes: 100, Wait: 200 * time.Millisecond})
		var wg sync.WaitGroup
		begin := time.Now()
		wait := func(x *Lease) {
			wg.Go(func() {
				if signal(t.Context(), g, x) {
					t.Error("let through without a slot")
				}
				if d := time.Since(begin); d != 200*time.Millisecond {
					t.Errorf("waited %v, want 200ms", d)
				}
			})
			synctest.Wait()
		}
		wait(small)
		if signal(t.Context(), g, large) {
			t.Error("more bytes than allowed waited")
		}
		wait(small)
		if signal(t.Context(), g, small) || time.Since(begin) != 0 {
			t.Error("more requests than allowed waited")
		}
		if n, b := g.Waiting(); n != 2 || b != 20 {
			t.Errorf("%d requests, %d bytes in line", n, b)
		}
		wg.Wait()
		if n, b := g.Waiting(); n != 0 || b != 0 {
			t.Errorf("%d requests, %d bytes left in line", n, b)
		}
	})
}

func TestGateOff(t *testing.T) {
	for _, q := range []Queue{{}, {Length: 1, Bytes: 1}, {Bytes: 1, Wait: 1}} {
		if signal(t.Context(), NewGate(q), nil) {
			t.Errorf("%+v: somebody waited", q)
		}
	}
}

func TestGateServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Queue{Length: 10, Bytes: 1, Wait: time.Minute})
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				if signal(t.Context(), g, nil) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				}
			})
			synctest.Wait()
		}
		for range 5 {
			g.Notify()
			synctest.Wait()
		}
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("order %v", order)
			}
		}
		if len(order) != 5 {
			t.Fatalf("%d of 5 were let through", len(order))
		}
	})
}

func TestGateEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Queue{Length: 1, Bytes: 1, Wait: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { done <- signal(ctx, g, nil) }()
		synctest.Wait()
		cancel()
		if <-done {
			t.Fatal("let through after the caller left")
		}
	})
}

// A signal for somebody else's target is passed down the line, and one that
// reaches a request as it gives up is not lost.
func TestGatePassesSignalsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Queue{Length: 10, Bytes: 1, Wait: time.Second})
		var free [2]atomic.Int32 // slots of two targets
		take := func(target int) func() bool {
			return func() bool {
				if n := free[target].Load(); n > 0 {
					return free[target].CompareAndSwap(n, n-1)
				}
				return false
			}
		}
		results := make([]bool, 3)
		var wg sync.WaitGroup
		for i, target := range []int{0, 0, 1} {
			wg.Go(func() { results[i] = g.WaitFor(t.Context(), nil, take(target)) })
			synctest.Wait()
		}
		free[1].Add(1)
		g.Notify()
		wg.Wait()
		if results[0] || results[1] || !results[2] {
			t.Fatalf("got %v, want only the last", results)
		}
	})
}

func TestGateLooksOnEntry(t *testing.T) {
	g := NewGate(Queue{Length: 1, Bytes: 1, Wait: time.Minute})
	if !g.WaitFor(t.Context(), nil, func() bool { return true }) {
		t.Fatal("a slot freed just before the wait was missed")
	}
}

// No slot stays free while somebody waits for it, whatever the interleaving.
func TestGateLosesNoSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, requests = 2, 200
		g := NewGate(Queue{Length: requests, Bytes: 1, Wait: time.Minute})
		var free, served atomic.Int32
		free.Store(slots)
		take := func() bool {
			for {
				n := free.Load()
				if n == 0 {
					return false
				}
				if free.CompareAndSwap(n, n-1) {
					return true
				}
			}
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for range requests {
			wg.Go(func() {
				if g.WaitFor(t.Context(), nil, take) {
					served.Add(1)
					timer := time.NewTimer(time.Millisecond)
					<-timer.C
					free.Add(1)
					g.Notify()
				}
			})
		}
		wg.Wait()
		if served.Load() != requests || time.Since(begin) != requests/slots*time.Millisecond {
			t.Fatalf("%d served in %v; want %d in %v", served.Load(), time.Since(begin), requests, requests/slots*time.Millisecond)
		}
	})
}

// A signal that reaches a request together with the end of its wait goes to
// the next in line.
func TestGateKeepsSignalOfTheLeaving(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(Queue{Length: 2, Bytes: 1, Wait: time.Minute})
			var free atomic.Int32
			take := func() bool { return free.CompareAndSwap(1, 0) }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var served atomic.Int32
			var wg sync.WaitGroup
			for _, c := range []context.Context{ctx, t.Context()} {
				wg.Go(func() {
					if g.WaitFor(c, nil, take) {
						served.Add(1)
					}
				})
				synctest.Wait()
			}
			free.Store(1)
			cancel()
			g.Notify()
			synctest.Wait()
			if served.Load() != 1 {
				t.Fatal("a free slot, somebody waiting, nobody served")
			}
			free.Store(1)
			g.Notify()
			wg.Wait()
		})
	}
}
