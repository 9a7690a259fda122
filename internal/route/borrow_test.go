package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/fault"
)

// TestBeside: whatever calls come and go at a target and at the one that stands beside
// it for the same upstream, both together stay within the limit of the one in force,
// the other within its own too, and everything comes back. When the one in force is
// retired the new limit holds for both, until all of its own calls have ended.
func TestBeside(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most, own := rapid.IntRange(1, 6).Draw(rt, "in force"), rapid.IntRange(1, 8).Draw(rt, "its own")
		a := target("a", "", Limits{Concurrency: most})
		b := NewBeside(a, target("a", "", Limits{Concurrency: own}).Spec(), new(Account), nil, nil)
		now, ofA, ofB := t0, []*Call{}, []*Call{}
		retired := false
		limit := func() int {
			if retired {
				return own
			}
			return most
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(rt, "ms")) * time.Millisecond)
			held := len(ofA) + len(ofB)
			switch do := rapid.IntRange(0, 4).Draw(rt, "do"); {
			case do == 0 && !retired:
				if c, _, _ := a.Try(query(now)); c != nil {
					if ofA = append(ofA, c); held >= limit() {
						rt.Fatalf("%d calls at once where %d are allowed", held+1, limit())
					}
				}
			case do == 1:
				if c, why, _ := b.Try(query(now)); c != nil {
					if ofB = append(ofB, c); held >= limit() && len(ofA) > 0 || len(ofB) > own {
						rt.Fatalf("%d calls at once where %d are allowed, %d of its own %d", held+1, limit(), len(ofB), own)
					}
				} else if held < min(limit(), own) && why != WhyShare {
					rt.Fatalf("refused (%v) with %d in flight", why, held)
				}
			case do == 2 && len(ofA) > 0:
				ofA[0].Settle(now, Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: 1})
				ofA = ofA[1:]
			case do == 3 && len(ofB) > 0:
				ofB[0].Settle(now, Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: 1})
				ofB = ofB[1:]
			case do == 4 && !retired && rapid.IntRange(0, 9).Draw(rt, "retire") == 0:
				a.Retire(Limits{Concurrency: own})
				retired = true
			}
			b.Poll(now)
		}
		for _, c := range append(ofA, ofB...) {
			c.Settle(now, Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: 1})
			c.Settle(now, Result{}) // once more does nothing
		}
		b.Poll(now)
		if n := a.State(now).InFlight + b.State(now).InFlight + a.loans; n != 0 {
			rt.Errorf("%d slots did not come back", n)
		}
		if retired && b.of != nil {
			rt.Error("it still borrows of one that is gone")
		}
	})
}

// TestBesideTakesRates: a call takes the rate of both.
func TestBesideTakesRates(t *testing.T) {
	a := target("a", "", Limits{RPM: 60})
	b := NewBeside(a, target("a", "", Limits{RPM: 600}).Spec(), new(Account), nil, nil)
	served := 0
	for i := range 600 {
		one := a
		if i%2 == 0 {
			one = b
		}
		if c, _, _ := one.Try(query(t0.Add(time.Duration(i) * 100 * time.Millisecond))); c != nil {
			served++
			c.Settle(t0.Add(time.Duration(i)*100*time.Millisecond), Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: 1})
		}
	}
	if served < 58 || served > 63 {
		t.Errorf("%d calls in a minute of which 60 are promised", served)
	}
	if free, when := b.Room(t0.Add(time.Minute)); free && when.IsZero() {
		t.Error("it says that there is room where the other has none")
	}
}

// TestBesideTwice: a target beside one that stands beside a third itself, whose calls
// run on, keeps to the limits of all.
func TestBesideTwice(t *testing.T) {
	a := target("a", "", Limits{Concurrency: 3, RPM: 600})
	b := NewBeside(a, a.Spec(), new(Account), nil, nil)
	var calls []*Call
	try := func(of *Target) bool {
		c, _, _ := of.Try(query(t0))
		if c != nil {
			calls = append(calls, c)
		}
		return c != nil
	}
	for range 2 {
		if !try(a) {
			t.Fatal("no room")
		}
	}
	a.Retire(b.Spec().Limits)
	c := NewBeside(b, b.Spec(), new(Account), nil, nil)
	if !try(c) {
		t.Fatal("no room for the third")
	}
	if free, _ := c.Room(t0); free || try(c) || try(b) {
		t.Error("a fourth call where three are promised")
	}
	for _, one := range calls {
		one.Settle(t0, Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: 1})
	}
	b.Poll(t0)
	if n := a.State(t0).InFlight + b.State(t0).InFlight + c.State(t0).InFlight + a.loans + b.loans; n != 0 || b.of != nil {
		t.Errorf("%d slots did not come back", n)
	}
}
