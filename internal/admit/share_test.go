package admit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/limit"
	"github.com/hourthree/hourthree/internal/queue"
)

// shared is a target's slots in a test, with a line for them.
type shared struct {
	mu    sync.Mutex
	slots limit.Slots
	line  *Line
	tries atomic.Int64
}

func newShared(s limit.Slots) *shared {
	x := &shared{slots: s}
	x.line = NewLine(queue.Config{Length: 3000, Bytes: 1 << 30, Wait: time.Minute}, func(queue.Key) (bool, time.Time) {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.slots.Free(), time.Time{}
	})
	return x
}

var scopes = map[limit.Denial]queue.Denial{
	limit.DeniedShare: {Scope: queue.DeniedKin}, limit.DeniedTokens: {Scope: queue.DeniedAll, Large: true},
	limit.DeniedTokenShare: {Scope: queue.DeniedKin, Large: true},
}

// call has one call take its turn and end after so long; it tells how long it
// waited, and whether it was served.
func (x *shared) call(ctx context.Context, flow string, tokens int64, lasts time.Duration) (time.Duration, bool) {
	var why limit.Denial
	var slot limit.Slot
	w := &Waiter{Flow: flow, Priority: queue.Interactive, Cost: tokens, Keys: []queue.Key{x}, Kin: queue.Kin{Name: flow}}
	w.Denied = func(queue.Key) queue.Denial { return scopes[why] }
	begin := time.Now()
	ok := get(ctx, x.line, w, func() bool {
		x.tries.Add(1)
		x.mu.Lock()
		defer x.mu.Unlock()
		want := limit.Want{Flow: flow, Tokens: tokens}
		if why = x.slots.Ask(time.Now(), want); why == limit.Granted {
			slot = x.slots.Take(time.Now(), want)
		}
		return why == limit.Granted
	})
	waited := time.Since(begin)
	if ok {
		time.Sleep(lasts)
		x.mu.Lock()
		x.slots.Release(&slot)
		x.mu.Unlock()
		x.line.Notify(x)
	}
	return waited, ok
}

// TestAFreedSlotIsTriedFewTimes: with 1,000 of a busy workload in line and the
// last slot kept for another one, a slot that is freed is tried by two, one of
// them in vain; the other one finds the last slot at once. It fails when a denial
// to the workload's share is met by each of its calls.
func TestAFreedSlotIsTriedFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newShared(limit.Slots{Configured: 10})
		x.call(t.Context(), "idle", 1000, 0)
		var wg sync.WaitGroup
		for range 1000 + 9 {
			wg.Go(func() { x.call(t.Context(), "busy", 1000, time.Second) })
		}
		synctest.Wait()
		before := x.tries.Load()
		time.Sleep(10*time.Second + time.Millisecond)
		if n := x.tries.Load() - before; n > 4*90 {
			t.Errorf("%d tries of 90 freed slots", n)
		}
		if waited, ok := x.call(t.Context(), "idle", 1000, 0); !ok || waited > 0 {
			t.Errorf("the idle workload waited %v: %t", waited, ok)
		}
		wg.Wait()
		empty(t, x.line)
	})
}

// TestALargeCallGetsIn: with small calls always waiting for tokens, a call of
// eight times their size is served within a second, and behind it they are too. It
// fails when what is freed goes to whoever it is enough for.
func TestALargeCallGetsIn(t *testing.T) {
	for _, flow := range []string{"small 0", "large"} {
		synctest.Test(t, func(t *testing.T) {
			x := newShared(limit.Slots{Learned: limit.Load{Tokens: 50_000}})
			until := time.Now().Add(20 * time.Second)
			var wg sync.WaitGroup
			var served atomic.Int64
			for i := range 100 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 1))
					for time.Now().Before(until) {
						x.call(t.Context(), fmt.Sprint("small ", i%2), 1000, 50*time.Millisecond+time.Duration(rng.IntN(100))*time.Millisecond)
						served.Add(1)
					}
				})
			}
			for range 10 {
				time.Sleep(time.Second)
				if waited, ok := x.call(t.Context(), flow, 8000, 100*time.Millisecond); !ok || waited > time.Second {
					t.Errorf("a large call of flow %q waited %v: %t", flow, waited, ok)
				}
			}
			wg.Wait()
			if n := served.Load(); n < 8000 {
				t.Errorf("%d small calls in 20 s: the slots stood empty", n)
			}
			empty(t, x.line)
		})
	}
}
