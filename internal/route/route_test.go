package route

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/fault"
)

var t0 = time.Unix(1_796_000_000, 0)

type wallet struct {
	tokens int
	wide   bool
}

func (w *wallet) Take(time.Time) bool {
	if w.tokens == 0 {
		return false
	}
	w.tokens--
	return true
}
func (w *wallet) Refund(time.Time)    { w.tokens++ }
func (w *wallet) Wide(time.Time) bool { return w.wide }

func target(name, domain string, l Limits) *Target {
	return NewTarget(Spec{Name: name, Domain: domain, Limits: l, Breaker: breaker.Default(), Budget: budget.Default()}, new(Account), nil, nil)
}

func pass(now time.Time, rnd *rand.Rand) *Pass {
	return &Pass{Query: Query{Now: now, Rand: 0.5, Until: now.Add(time.Hour), Payer: &wallet{tokens: 10}}, Random: rnd.Float64}
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

var (
	good   = fault.Verdict{Class: fault.OK}
	broken = fault.Verdict{Class: fault.Outage, Reason: "server_error", Breaker: true}
)

func serve(t *testing.T, m *Model, now time.Time, rnd *rand.Rand, v func(*Target) fault.Verdict) *Target {
	t.Helper()
	c, r := m.Pick(pass(now, rnd))
	if c == nil {
		t.Fatalf("no call: %+v", r)
	}
	res := Result{Verdict: v(c.Target), Tokens: -1}
	if res.Verdict.Class == fault.OK {
		c.FirstContent(now)
		res.Learn = 200 * time.Millisecond
	}
	c.Settle(now, res)
	return c.Target
}

func always(v fault.Verdict) func(*Target) fault.Verdict {
	return func(*Target) fault.Verdict { return v }
}

func TestOrderFirst(t *testing.T) {
	a, b := target("a", "x", Limits{}), target("b", "y", Limits{})
	m := &Model{Entries: []Entry{{Target: a, Order: 1, Weight: 1}, {Target: b, Order: 2, Weight: 1}}}
	rnd := seeded()
	for i := range 200 {
		if got := serve(t, m, t0.Add(time.Duration(i)*time.Millisecond), rnd, always(good)); got != a {
			t.Fatalf("request %d went to %s", i, got.spec.Name)
		}
	}
}

// TestUniform is N14: equal targets get equal shares, by a chi-square bound
// that one in a million fair runs would break.
func TestUniform(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		m, counts := &Model{}, map[*Target]int{}
		for i := range n {
			m.Entries = append(m.Entries, Entry{Target: target(string(rune('a'+i)), string(rune('a'+i)), Limits{}), Order: 1, Weight: 1})
		}
		rnd := seeded()
		const total = 10_000
		for i := range total {
			counts[serve(t, m, t0.Add(time.Duration(i)*10*time.Millisecond), rnd, always(good))]++
		}
		chi, want := 0.0, float64(total)/float64(n)
		for _, e := range m.Entries {
			d := float64(counts[e.Target]) - want
			chi += d * d / want
		}
		if chi > 35 {
			t.Errorf("%d targets: chi-square %.1f: %v", n, chi, counts)
		}
	}
}

func TestWeight(t *testing.T) {
	a, b := target("a", "x", Limits{}), target("b", "y", Limits{})
	m := &Model{Entries: []Entry{{Target: a, Order: 1, Weight: 3}, {Target: b, Order: 1, Weight: 1}}}
	rnd, n := seeded(), 0
	for i := range 4000 {
		if serve(t, m, t0.Add(time.Duration(i)*10*time.Millisecond), rnd, always(good)) == a {
			n++
		}
	}
	if n < 2850 || n > 3150 {
		t.Errorf("weight 3 to 1: %d of 4000", n)
	}
}

// TestFastFailureIsNotIdle is B10: a target that fails at once never looks
// like the one with nothing to do.
func TestFastFailureIsNotIdle(t *testing.T) {
	a, b := target("a", "x", Limits{}), target("b", "y", Limits{})
	m := &Model{Entries: []Entry{{Target: a, Order: 1, Weight: 1}, {Target: b, Order: 1, Weight: 1}}}
	rnd, n := seeded(), 0
	var running []*Call
	for i := range 100 {
		now := t0.Add(time.Duration(i) * 20 * time.Millisecond)
		c, _ := m.Pick(pass(now, rnd))
		if c.Target == a {
			n++
			c.Settle(now, Result{Verdict: broken, Tokens: -1})
			continue
		}
		running = append(running, c) // answers after 300 ms
		if len(running) > 15 {
			running[0].Settle(now, Result{Verdict: good, Learn: 300 * time.Millisecond, Tokens: -1})
			running = running[1:]
		}
	}
	if n > 23 {
		t.Errorf("%d of 100 requests went to the failing target", n)
	}
}

func TestOtherDomainFirst(t *testing.T) {
	a, b, c := target("a", "x", Limits{}), target("b", "x", Limits{}), target("c", "y", Limits{})
	m := &Model{Entries: []Entry{{Target: a, Order: 1, Weight: 1}, {Target: b, Order: 2, Weight: 1}, {Target: c, Order: 3, Weight: 1}}}
	p := pass(t0, seeded())
	p.Extra, p.Tried, p.Avoid = true, []*Target{a}, []string{"x"}
	call, _ := m.Pick(p)
	if call.Target != c {
		t.Errorf("went to %s, in the domain that has just failed", call.Target.spec.Name)
	}
}

func TestWaitersMoveOnWhenItOpens(t *testing.T) {
	a := target("a", "x", Limits{})
	var causes []error
	for range 5 {
		a.Try(Query{Now: t0, Until: t0.Add(time.Hour), Cancel: func(err error) { causes = append(causes, err) }})
	}
	answered, _, _ := a.Try(Query{Now: t0, Until: t0.Add(time.Hour), Cancel: func(error) { t.Error("a call with content was cut off") }})
	answered.FirstContent(t0)
	for range 20 {
		c, _, _ := a.Try(Query{Now: t0, Until: t0.Add(time.Hour)})
		if c == nil {
			break
		}
		c.Settle(t0, Result{Verdict: broken, Tokens: -1})
	}
	if len(causes) != 5 || !errors.Is(causes[0], ErrOpened) {
		t.Errorf("%d of 5 waiting calls were told: %v", len(causes), causes)
	}
}

func TestSharedAccount(t *testing.T) {
	account := new(Account)
	spec := Spec{Breaker: breaker.Default(), Budget: budget.Default()}
	a, b := NewTarget(spec, account, nil, nil), NewTarget(spec, account, nil, nil)
	q := Query{Now: t0, Until: t0.Add(time.Hour)}
	c, _, _ := a.Try(q)
	c.Settle(t0, Result{Verdict: fault.Verdict{Class: fault.Account, Scope: fault.ScopeKey, Reason: "insufficient_quota"}, Tokens: -1})
	q.Now = t0.Add(time.Minute)
	if _, why, _ := b.Try(q); why != WhyAccount {
		t.Errorf("the other target of a dead account answered %v", why)
	}
	if a.State(q.Now).Phase != "closed" {
		t.Error("an empty account counted as an outage")
	}
}

func TestThrottledTargetCools(t *testing.T) {
	a := target("a", "x", Limits{})
	q := Query{Now: t0, Until: t0.Add(time.Hour)}
	c, _, _ := a.Try(q)
	c.Settle(t0, Result{Verdict: fault.Verdict{Class: fault.Capacity, Scope: fault.ScopeTarget, Wait: time.Second, HasWait: true}, Tokens: -1})
	if _, why, until := a.Try(q); why != WhyCooling || until.Before(t0.Add(time.Second)) {
		t.Errorf("asked again inside the wait: %v %v", why, until.Sub(t0))
	}
	q.Now = t0.Add(1100 * time.Millisecond)
	if c, why, _ := a.Try(q); c == nil {
		t.Errorf("still refused behind the wait: %v", why)
	}
}

// TestSlots is I8 at the target: the limit is never passed, every slot comes
// back exactly once, whatever the order of ends, and settling twice is
// harmless. It fails when Settle forgets its settled check.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		a := target("a", "x", Limits{Concurrency: limit})
		now := t0
		var open, ended []*Call
		t.Repeat(map[string]func(*rapid.T){
			"try": func(t *rapid.T) {
				c, why, _ := a.Try(Query{Now: now, Until: now.Add(time.Hour)})
				if c != nil {
					open = append(open, c)
				} else if most := lower(limit, a.State(now).Load.LearnedCalls); why == WhyFull && len(open) < most {
					t.Fatalf("full with %d of %d", len(open), most)
				}
			},
			"end": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "i")
				open[i].Settle(now, Result{Verdict: fault.Verdict{Class: fault.Class(rapid.IntRange(0, 9).Draw(t, "class"))}, Tokens: -1})
				ended = append(ended, open[i])
				open = slices.Delete(open, i, i+1)
			},
			"end twice": func(t *rapid.T) {
				if len(ended) > 0 {
					ended[rapid.IntRange(0, len(ended)-1).Draw(t, "i")].Settle(now, Result{Verdict: broken, Tokens: -1})
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
				a.Poll(now)
			},
			"": func(t *rapid.T) {
				if n := a.State(now).InFlight; n != len(open) || n > limit {
					t.Fatalf("%d in flight, %d open, limit %d", n, len(open), limit)
				}
			},
		})
	})
}

// lower is the lower one of two limits, of which the second may be none.
func lower(a, b int) int {
	if b > 0 {
		return min(a, b)
	}
	return a
}

// TestExtrasArePaid: an extra attempt at a target that is not proven healthy
// takes a token from both sides or is not made; one at a proven target is
// free.
func TestExtrasArePaid(t *testing.T) {
	a := target("a", "x", Limits{})
	w := &wallet{tokens: 1}
	q := Query{Now: t0, Until: t0.Add(time.Hour), Extra: true, Payer: w}
	c, _, _ := a.Try(q)
	if c == nil || c.Divert || w.tokens != 0 {
		t.Fatalf("first extra: %+v, %d tokens left", c, w.tokens)
	}
	if c, why, _ := a.Try(q); c != nil || why != WhyUnproven {
		t.Fatalf("unpaid extra: %v", why)
	}
	c.Settle(t0, Result{Verdict: good, Tokens: -1})
	for range 10 {
		c, _, _ := a.Try(Query{Now: t0, Until: t0.Add(time.Hour)})
		c.Settle(t0, Result{Verdict: good, Tokens: -1})
	}
	if c, _, _ := a.Try(q); c == nil || !c.Divert {
		t.Error("no free divert to a proven target")
	}
}

// TestAnUnpaidExtraCostsNothing: what the target has no token for costs the
// payer none.
func TestAnUnpaidExtraCostsNothing(t *testing.T) {
	a := target("a", "x", Limits{})
	w := &wallet{tokens: 100}
	q := Query{Now: t0, Until: t0.Add(time.Hour), Extra: true, Payer: w}
	reserve := int(budget.Default().Reserve)
	for range reserve {
		c, why, _ := a.Try(q)
		if c == nil {
			t.Fatal(why)
		}
		c.Settle(t0, Result{Verdict: fault.Verdict{Class: fault.Canceled}, Tokens: -1})
	}
	if c, why, _ := a.Try(q); c != nil || why != WhyBudget || w.tokens != 100-reserve {
		t.Errorf("refused with %v, %d tokens left", why, w.tokens)
	}
}
