package attempt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/workload"
)

// waits is a model with a line before its targets.
type waits struct {
	line  *admit.Line
	model *route.Model
	calls *workload.Workload
	asked atomic.Int64 // draws: some for each time that the model was asked for a call
}

func newWaits(limits ...route.Limits) *waits {
	w := &waits{model: &route.Model{Name: "m"}, calls: workload.New(workload.Spec{Name: "w"})}
	w.line = NewLine(queue.Config{Length: 2000, Bytes: 1 << 30, Wait: time.Minute})
	for i, l := range limits {
		spec := route.Spec{Name: fmt.Sprint("t", i), Domain: fmt.Sprint("d", i), Limits: l, Breaker: breaker.Default(), Budget: budget.Default()}
		t := route.NewTarget(spec, new(route.Account), nil, func(t *route.Target) { Freed(w.line, t) })
		w.model.Entries = append(w.model.Entries, route.Entry{Target: t, Order: 1, Weight: 1})
	}
	return w
}

// request is one that has come as far as the line.
func (w *waits) request(p queue.Priority) *run {
	ticket, _ := admit.NewLedger(1 << 30).Admit(admit.Ask{Now: time.Now(), Bytes: 1})
	r := &Runner{Random: func() float64 { w.asked.Add(1); return rand.Float64() }}
	return r.begin(&Request{
		Model: w.model, Workload: w.calls, Priority: p, Line: w.line, Ticket: ticket,
		Attempts: 3, Deadline: time.Now().Add(time.Hour),
	}, nil, new(Outcome))
}

func (w *waits) target(i int) *route.Target { return w.model.Entries[i].Target }

// call makes one past the line.
func (w *waits) call(t *testing.T, i int) *route.Call {
	t.Helper()
	x := w.request(queue.Critical)
	c, why, _ := w.target(i).Try(x.query(nil))
	if c == nil {
		t.Fatalf("refused: %d", why)
	}
	return c
}

var lost = fault.Verdict{Class: fault.Outage, Reason: "server_error", Breaker: true}

// TestAHerdIsToldOnce: many streams were cut, and a target lets no more calls wait
// than before. What it answers then is tried by those who find room there and one
// more, not by all who wait. It fails when who is held back is so for itself alone.
func TestAHerdIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaits(route.Limits{}, route.Limits{})
		w.target(1).Steer(time.Now(), route.Steering{Drained: true, Factor: 1})
		var streams []*route.Call
		for range 200 {
			c := w.call(t, 0)
			c.FirstContent(time.Now())
			streams = append(streams, c)
			time.Sleep(200 * time.Millisecond)
		}
		for i := 0; i < 200; i += 6 {
			streams[i].Settle(time.Now(), route.Result{Verdict: lost, Tokens: -1})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var in []*route.Call
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if c := w.request(queue.Interactive).pick(ctx, nil); c != nil {
					mu.Lock()
					defer mu.Unlock()
					in = append(in, c)
				}
			})
		}
		synctest.Wait()
		if len(in) == 0 || len(in) > 20 {
			t.Fatalf("%d let in at once", len(in))
		}
		before, asked := len(in), w.asked.Load()
		in[0].FirstContent(time.Now())
		synctest.Wait()
		if n := w.asked.Load() - asked; len(in) != before+1 || n > 10 {
			t.Errorf("%d more let in behind an answer, with %d draws", len(in)-before, n)
		}
		cancel()
		wg.Wait()
	})
}

// TestAnOpenTargetsEndsAreTriedFewTimes: with 1,000 in line for a target that is
// full, and for one that is open and has still some calls to end, each of these
// ends is tried by few. It fails when each takes what it meets for its own reason.
func TestAnOpenTargetsEndsAreTriedFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaits(route.Limits{Concurrency: 1}, route.Limits{})
		w.call(t, 0)
		var streams []*route.Call
		for range 100 {
			c := w.call(t, 1)
			c.FirstContent(time.Now())
			streams = append(streams, c)
			time.Sleep(10 * time.Millisecond)
		}
		x := w.request(queue.Critical)
		for range 200 {
			if c, _, _ := w.target(1).TryLastResort(x.query(nil)); c != nil {
				c.Settle(time.Now(), route.Result{Verdict: lost, Tokens: -1})
			}
		}
		if s := w.target(1).State(time.Now()); s.Phase != "open" {
			t.Fatal(s.Phase)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { w.request(queue.Interactive).pick(ctx, nil) })
		}
		synctest.Wait()
		n, _ := w.line.Waiting()
		asked := w.asked.Load()
		for _, c := range streams[:20] {
			c.Settle(time.Now(), route.Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: -1})
			synctest.Wait()
		}
		if asked = w.asked.Load() - asked; n < 900 || asked > 20*100 {
			t.Errorf("%d draws for 20 ends with %d in line", asked, n)
		}
		cancel()
		wg.Wait()
	})
}

// TestProofOvertakesNobody: an extra attempt that waits for its target to prove
// itself healthy takes no slot of it from a request that waits for one; it waits
// for one too, then. It fails when proof is all that it looks at.
func TestProofOvertakesNobody(t *testing.T) {
	for range 20 {
		synctest.Test(t, proofAndSlot)
	}
}

func proofAndSlot(t *testing.T) {
	w := newWaits(route.Limits{}, route.Limits{Concurrency: 2})
	w.target(0).Steer(time.Now(), route.Steering{Drained: true, Factor: 1})
	for range 9 {
		w.call(t, 1).Settle(time.Now(), route.Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: -1})
	}
	proves := w.call(t, 1)
	var extra, first *route.Call
	var wg sync.WaitGroup
	wg.Go(func() {
		x := w.request(queue.Batch)
		x.req.Repeat, x.plan.made, x.pass.Tried = true, 1, []*route.Target{w.target(0)}
		extra = x.pick(t.Context(), nil)
	})
	synctest.Wait()
	other := w.call(t, 1)
	wg.Go(func() { first = w.request(queue.Critical).pick(t.Context(), nil) })
	synctest.Wait()
	if n, _ := w.line.Waiting(); n != 2 {
		t.Fatalf("%d wait", n)
	}
	proves.Settle(time.Now(), route.Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: -1})
	synctest.Wait()
	if first == nil || extra != nil {
		t.Errorf("the slot went to the extra attempt of batch work: %t", extra != nil)
	}
	other.Settle(time.Now(), route.Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: -1})
	synctest.Wait()
	if first == nil || extra == nil {
		t.Errorf("a slot is free: the first attempt has one: %t, the extra one: %t", first != nil, extra != nil)
	}
	for _, c := range []*route.Call{first, extra} {
		if c != nil {
			c.Settle(time.Now(), route.Result{Verdict: lost, Tokens: -1})
		}
	}
	wg.Wait()
}
