package route

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/fault"
)

// impatient makes calls that their caller leaves after a second, at a target that
// answers others after two.
func impatient(t *testing.T, a *Target, now time.Time, flow string, one uint64) {
	t.Helper()
	for range 10 {
		q := query(now.Add(-time.Second))
		q.Flow, q.Caller = flow, one
		c, why, _ := a.Try(q)
		if c == nil {
			t.Fatalf("refused: %d", why)
		}
		c.Settle(now, Result{Verdict: fault.Verdict{Class: fault.Canceled}, Tokens: -1})
	}
	for range 5 {
		q := query(now.Add(-2 * time.Second))
		q.Flow = "patient"
		c, why, _ := a.Try(q)
		if c == nil {
			t.Fatalf("refused: %d", why)
		}
		c.FirstContent(now)
		c.Settle(now, Result{Verdict: good, Tokens: -1})
	}
}

// Callers without a workload of their own are not refused for one of them who
// always leaves.
func TestNobodyIsRefusedForAStrangersPatience(t *testing.T) {
	a := target("a", "x", Limits{})
	impatient(t, a, t0, "open", 1)
	for _, c := range []struct {
		one  uint64
		want Why
	}{{1, Admitted}, {1, WhyDeadline}, {2, Admitted}} {
		q := query(t0)
		q.Flow, q.Caller = "open", c.one
		if _, why, _ := a.Try(q); why != c.want {
			t.Errorf("caller %d: %d, want %d", c.one, why, c.want)
		}
	}
}

// The call a second that such a caller has left is not spent on a refusal: a
// target that has opened meanwhile still gets it as a last resort.
func TestALetThroughCallMayBeTheLastResort(t *testing.T) {
	a := target("a", "x", Limits{})
	now := t0
	impatient(t, a, now, "w", 0)
	wear(t, a, now, 0)
	now = now.Add(1500 * time.Millisecond)
	if p := a.State(now).Phase; p != breaker.Open.String() {
		t.Fatalf("breaker %s", p)
	}
	p := pass(now, seeded())
	p.Flow = "w"
	if c, r := (&Model{Entries: []Entry{{Target: a, Weight: 1}}}).Pick(p); c == nil || !c.Last {
		t.Errorf("no call: %+v", r)
	}
}
