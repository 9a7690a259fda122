package route

import (
	"errors"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// TestAProbeWithoutACallerEndsWithItsLease: a probe whose caller has left runs on
// for what it may show. Once the breaker has given it up it shows nothing, and
// the next one is let out: they would add up at a target that hangs.
func TestAProbeWithoutACallerEndsWithItsLease(t *testing.T) {
	for _, c := range []struct {
		name string
		only bool // there is nothing else: callers stay
		last bool
	}{{"a probe", false, false}, {"a probe, there is nothing else", true, false}, {"a last resort", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			a := target("a", "x", Limits{})
			wear(t, a, t0, 0)
			now, out := t0, 0
			for range 1200 { // two minutes
				now = now.Add(100 * time.Millisecond)
				a.Poll(now)
				q := query(now)
				q.Only = c.only
				try := a.Try
				if c.last {
					try = a.TryLastResort
				}
				call, _, _ := try(q)
				if call == nil || !call.Probe {
					continue
				}
				out++
				call.Left(now.Add(10*time.Millisecond), func(err error) {
					if !errors.Is(err, ErrOpened) {
						t.Errorf("ended by %v", err)
					}
					out--
				})
				if out > 2 {
					t.Fatalf("%d probes at once without a caller", out)
				}
			}
			if a.waiting.left > 2 || a.waiting.left != out {
				t.Errorf("%d left, %d out", a.waiting.left, out)
			}
		})
	}
}

// A probe is left once, and only one that is under way runs on.
func TestLeftOnce(t *testing.T) {
	a := target("a", "x", Limits{})
	c, _, _ := a.Try(query(t0))
	ended := 0
	end := func(error) { ended++ }
	c.Left(t0, end)
	c.Left(t0, end)
	if ended != 0 || a.waiting.left != 1 {
		t.Errorf("ended %d times, %d left", ended, a.waiting.left)
	}
	c.FirstContent(t0)
	c.Left(t0, end)
	if ended != 1 || a.waiting.left != 0 {
		t.Errorf("answered: ended %d times, %d left", ended, a.waiting.left)
	}
	c.Settle(t0, Result{Verdict: fault.Verdict{Class: fault.OK}, Tokens: -1})
	c.Left(t0, end)
	if ended != 1 {
		t.Error("ended after its end")
	}
}
