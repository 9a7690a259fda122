package route

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/learn"
)

var refusedCall = Result{Verdict: fault.Verdict{Class: fault.Capacity, HasWait: true, Wait: 50 * time.Millisecond}, Tokens: -1}

// told is a target that counts how often those who wait are told.
func told(l Limits) (*Target, *int) {
	n := new(int)
	return NewTarget(Spec{Name: "a", Provider: "a", Domain: "x", Limits: l, Breaker: breaker.Default(), Budget: budget.Default()}, new(Account), nil, func(*Target) { *n++ }), n
}

func flowQuery(now time.Time, flow string) Query {
	return Query{Now: now, Until: now.Add(time.Hour), Flow: flow, Tokens: 1000, Prompt: 500, Class: learn.ClassOf(learn.Stream, 500)}
}

// fill begins so many calls.
func fill(t *testing.T, a *Target, now time.Time, n int) []*Call {
	t.Helper()
	calls := make([]*Call, n)
	for i := range calls {
		c, why, _ := a.Try(flowQuery(now, "w"))
		if c == nil {
			t.Fatalf("call %d: %v", i, why)
		}
		calls[i] = c
	}
	return calls
}

// TestRefusalsAreLearned: a refusal with twenty calls in flight leaves room for
// sixteen, those who wait are told when there is more, and an answered call
// brings more of it.
func TestRefusalsAreLearned(t *testing.T) {
	a, n := told(Limits{})
	calls := fill(t, a, t0, 20)
	now := t0.Add(10 * time.Millisecond)
	a.Poll(now)
	calls[0].Settle(now, refusedCall)
	if l := a.State(now).Load; l.LearnedCalls != 16 || l.LearnedTokens != 16000 || l.Tokens != 19000 {
		t.Fatalf("%+v", l)
	}
	now = now.Add(time.Second)
	a.Poll(now)
	if _, why, _ := a.Try(flowQuery(now, "w")); why != WhyFull {
		t.Fatalf("with 19 of 16: %v", why)
	}
	*n = 0
	for _, c := range calls[1:9] {
		now = now.Add(time.Second)
		c.FirstContent(now)
		a.Poll(now)
		a.Try(flowQuery(now, "w"))
	}
	if l := a.State(now).Load; l.LearnedCalls < 18 || *n < 2 {
		t.Errorf("%+v, told %d times", l, *n)
	}
}

// TestTrialsTeachNoLevel: what a trial behind a cool-down hears says that the
// target refuses still, not how much it bears.
func TestTrialsTeachNoLevel(t *testing.T) {
	a, _ := told(Limits{})
	calls := fill(t, a, t0, 20)
	now := t0.Add(10 * time.Millisecond)
	calls[0].Settle(now, Result{Verdict: fault.Verdict{Class: fault.Capacity, HasWait: true, Wait: 5 * time.Second}, Tokens: -1})
	for _, c := range calls[1:] {
		c.Settle(now, Result{Verdict: good, Tokens: -1})
	}
	for range 5 {
		now = now.Add(6 * time.Second)
		c, why, _ := a.Try(flowQuery(now, "w"))
		if c == nil {
			t.Fatal(why)
		}
		c.Settle(now.Add(time.Millisecond), Result{Verdict: fault.Verdict{Class: fault.Capacity, HasWait: true, Wait: 5 * time.Second}, Tokens: -1})
	}
	if l := a.State(now).Load.LearnedCalls; l != 16 {
		t.Errorf("learned %d", l)
	}
}

// TestStatedQuotaIsKept: what an answer says is left is not exceeded; there
// is room when it is no longer believed, and nothing left keeps nobody
// away for longer than two seconds.
func TestStatedQuotaIsKept(t *testing.T) {
	a, _ := told(Limits{})
	c := fill(t, a, t0, 1)[0]
	c.Quota(t0, fault.Quota{Requests: fault.Left{Stated: true, Left: 2, Reset: 800 * time.Millisecond}})
	fill(t, a, t0, 2)
	_, why, until := a.Try(flowQuery(t0, "w"))
	if why != WhyFull || !until.Equal(t0.Add(800*time.Millisecond)) {
		t.Fatalf("a third: %v until %v", why, until)
	}
	if left := a.State(t0).Load.QuotaRequests; left == nil || *left != 0 {
		t.Errorf("left %v", left)
	}
	if free, when := a.Room(t0.Add(700 * time.Millisecond)); free || !when.Equal(until) {
		t.Errorf("room at once, or at %v", when)
	}
	if free, _ := a.Room(until); !free {
		t.Error("no room when the quota is whole again")
	}
	c = fill(t, a, until, 1)[0]
	c.Quota(until, fault.Quota{Tokens: fault.Left{Stated: true, Reset: time.Hour}})
	if _, why, again := a.Try(flowQuery(until, "w")); why != WhyRate || again.Sub(until) > 2*time.Second {
		t.Errorf("no tokens left: %v until %v", why, again)
	}
	fill(t, a, until.Add(2*time.Second), 1)
}

// TestAStatedZeroIsDoubted: an upstream that serves every call and always says
// that nothing is left keeps calls away for a second, in which they wait, and
// then has them all. A refusal that says so is believed each time. It fails when
// served calls refute nothing.
func TestAStatedZeroIsDoubted(t *testing.T) {
	zero := fault.Quota{Requests: fault.Left{Stated: true}}
	for _, x := range []struct {
		name string
		end  func(*Call, time.Time)
		most int // of twelve seconds
	}{
		{"answers", func(c *Call, now time.Time) { c.Settle(now, Result{Verdict: good, Tokens: -1}) }, 1},
		{"streams", func(c *Call, now time.Time) { c.FirstContent(now) }, 1},
		{"refusals", func(c *Call, now time.Time) {
			c.Settle(now, Result{Verdict: fault.Verdict{Class: fault.Capacity, HasWait: true, Wait: time.Millisecond}, Tokens: -1})
		}, 12},
	} {
		a, _ := told(Limits{})
		waits := 0
		for now := t0; now.Before(t0.Add(12 * time.Second)); now = now.Add(50 * time.Millisecond) {
			c, why, until := a.Try(flowQuery(now, "w"))
			if c == nil {
				if why != WhyFull || until.Sub(now) > time.Second {
					t.Fatalf("%s: %v for %v", x.name, why, until.Sub(now))
				}
				now, waits = until.Add(-50*time.Millisecond), waits+1
				continue
			}
			at := now.Add(20 * time.Millisecond)
			c.Quota(at, zero)
			x.end(c, at)
		}
		if waits > x.most || waits < x.most-1 {
			t.Errorf("%s: %d waits", x.name, waits)
		}
	}
}

// TestAWorkloadLeavesASlot: one workload takes nine of ten slots while another is
// at work, which finds the tenth; quarantined calls take one at most.
func TestAWorkloadLeavesASlot(t *testing.T) {
	a, _ := told(Limits{Concurrency: 10})
	q := flowQuery(t0, "other")
	c, _, _ := a.Try(q)
	c.Settle(t0, Result{Verdict: good, Tokens: -1})
	fill(t, a, t0, 9)
	if _, why, _ := a.Try(flowQuery(t0, "w")); why != WhyShare {
		t.Errorf("the tenth: %v", why)
	}
	if r := a.State(t0).Load.Reserve; r != 1 {
		t.Errorf("reserve %d", r)
	}
	if c, why, _ := a.Try(q); c == nil {
		t.Errorf("another workload: %v", why)
	}
	b, _ := told(Limits{Concurrency: 30})
	q.Lane = 0.05
	if c, _, _ := b.Try(q); c == nil {
		t.Error("a quarantined call")
	}
	if c, why, _ := b.Try(q); c != nil || why != WhyShare {
		t.Errorf("a second one of 30: %v", why)
	}
}

// BenchmarkCall is a call's way through a target. What it allocates is the Call.
func BenchmarkCall(b *testing.B) {
	a, _ := told(Limits{Concurrency: 100, RPM: 1 << 40, TPM: 1 << 50})
	b.ReportAllocs()
	for i := range b.N {
		now := t0.Add(time.Duration(i) * time.Millisecond)
		c, why, _ := a.Try(flowQuery(now, "w"))
		if c == nil {
			b.Fatal(why)
		}
		c.FirstContent(now.Add(300 * time.Microsecond))
		c.Settle(now.Add(time.Millisecond), Result{Verdict: good, Tokens: 900})
	}
}

// TestWholeAnswersAreNotTimed: calls that do not stream, with answers that
// become ten times as long, lower no limit. It fails when their time counts as
// one of first content.
func TestWholeAnswersAreNotTimed(t *testing.T) {
	a, _ := told(Limits{})
	calls := fill(t, a, t0, 20)
	calls[0].Settle(t0.Add(time.Millisecond), refusedCall)
	for _, c := range calls[1:] {
		c.Settle(t0.Add(time.Second), Result{Verdict: good, Tokens: -1})
	}
	now, before := t0.Add(time.Second), a.State(t0).Load.LearnedCalls
	for i := range 400 {
		length := 200 * time.Millisecond
		if i > 200 {
			length *= 10
		}
		q := flowQuery(now, "w")
		q.Class = learn.ClassOf(learn.Unary, 500)
		c, why, _ := a.Try(q)
		if c == nil {
			t.Fatal(why)
		}
		now = now.Add(length)
		c.FirstContent(now)
		c.Settle(now, Result{Verdict: good, Learn: length, Tokens: -1})
		if l := a.State(now).Load.LearnedCalls; l < before {
			t.Fatalf("call %d: learned %d, was %d", i, l, before)
		}
	}
}

// TestMoreTokensAreNews: where the operator's limit of calls is the lower one, those
// who wait are told when the learned one of tokens grows. It fails when calls are
// all that is looked at.
func TestMoreTokensAreNews(t *testing.T) {
	a, n := told(Limits{Concurrency: 2})
	now := t0.Add(10 * time.Millisecond)
	fill(t, a, t0, 2)[0].Settle(now, refusedCall)
	a.Poll(now)
	before := a.State(now).Load.LearnedTokens
	*n = 0
	large := flowQuery(now, "w")
	large.Tokens = 1500
	for range 10 {
		now = now.Add(time.Second)
		a.adapt.Served()
		large.Now = now
		a.Try(large) // finds too few tokens
		a.Poll(now)
	}
	if l := a.State(now).Load; l.LearnedTokens <= before || l.LearnedCalls != 2 || *n == 0 {
		t.Errorf("%d tokens before, %+v now, told %d times", before, l, *n)
	}
}
