package route

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/fault"
)

var throttled = fault.Verdict{Class: fault.Capacity, Scope: fault.ScopeTarget}

func query(now time.Time) Query {
	return Query{Now: now, Rand: 0.5, Until: now.Add(time.Hour), Payer: &wallet{tokens: 10}}
}

// wear makes calls of which every nth succeeds, none for 0, until the breaker
// is open and 64 verdicts are in.
func wear(t *testing.T, a *Target, now time.Time, nth int) {
	t.Helper()
	for i := range 200 {
		c, _, _ := a.TryLastResort(query(now))
		if c == nil {
			break
		}
		v := broken
		if nth > 0 && i%nth == 0 {
			v = good
		}
		c.Settle(now, Result{Verdict: v, Tokens: -1})
	}
	if s := a.State(now); s.PhaseNumber < 2 {
		t.Fatalf("%s is %s", a.spec.Name, s.Phase)
	}
}

// crowd gives a target a usual time and then more calls than it answers.
func crowd(t interface{ Fatal(...any) }, a *Target, now time.Time) {
	warm(a, now)
	for range 8 {
		a.Try(query(now))
	}
	if !a.crowded(now) {
		t.Fatal("not crowded")
	}
}

// warm makes 20 good calls of 200 ms up to now.
func warm(a *Target, now time.Time) {
	for i := range 20 {
		at := now.Add(time.Duration(i-20) * 200 * time.Millisecond)
		if c, _, _ := a.Try(query(at)); c != nil {
			c.FirstContent(at.Add(200 * time.Millisecond))
			c.Settle(at.Add(200*time.Millisecond), Result{Verdict: good, Tokens: -1})
		}
	}
}

func order(ts ...*Target) *Model {
	m := new(Model)
	for i, t := range ts {
		m.Entries = append(m.Entries, Entry{Target: t, Order: i + 1, Weight: 1})
	}
	return m
}

// TestOverflow: what a crowded second choice has no room for goes to the open
// first one as far as that answers; extra attempts join the queue.
func TestOverflow(t *testing.T) {
	now := t0.Add(time.Minute)
	for _, c := range []struct {
		name    string
		nth     int // of the first target's calls succeeds
		crowded bool
		extra   bool
		third   bool
		want    string
	}{
		{"half answered, room left", 2, false, false, false, "second"},
		{"half answered, no room", 2, true, false, false, "first"},
		{"half answered, no room, an extra attempt", 2, true, true, false, "second"},
		{"half answered, no room, a third with room", 2, true, false, true, "third"},
		{"dead, no room", 0, true, false, false, "second"},
	} {
		first, second := target("first", "x", Limits{}), target("second", "y", Limits{})
		wear(t, first, now, c.nth)
		m := order(first, second)
		if c.third {
			m = order(first, second, target("third", "z", Limits{}))
		}
		if c.crowded {
			crowd(t, second, now)
		}
		goesTo(t, c.name, m, now, c.extra, c.want)
	}
}

// goesTo checks where a model sends an attempt.
func goesTo(t *testing.T, name string, m *Model, now time.Time, extra bool, want string) {
	t.Helper()
	p := pass(now, seeded())
	p.Extra = extra
	call, r := m.Pick(p)
	switch {
	case call == nil:
		t.Errorf("%s: refused: %+v", name, r)
	case call.Target.spec.Name != want:
		t.Errorf("%s: went to %s, want %s", name, call.Target.spec.Name, want)
	}
}

// TestCrowdedFirstChoice: order stands as long as nothing is open.
func TestCrowdedFirstChoice(t *testing.T) {
	now := t0.Add(time.Minute)
	first, second := target("first", "x", Limits{}), target("second", "y", Limits{})
	crowd(t, first, now)
	if c, _ := order(first, second).Pick(pass(now, seeded())); c == nil || c.Target != first {
		t.Errorf("went to %+v", c)
	}
}

// TestRoomRefusesNobody: whatever the targets' state, a request is not refused
// while one of them would take it.
func TestRoomRefusesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := t0.Add(time.Minute)
		var ts []*Target
		willing := false
		for i := range rapid.IntRange(1, 4).Draw(t, "targets") {
			a := target(string(rune('a'+i)), string(rune('a'+i)), Limits{})
			switch rapid.IntRange(0, 3).Draw(t, "state") {
			case 0:
				willing = true
			case 1:
				crowd(t, a, now)
				willing = true
			case 2:
				for range 40 {
					if c, _, _ := a.Try(query(now)); c != nil {
						c.Settle(now, Result{Verdict: broken, Tokens: -1})
					}
				}
			case 3:
				c, _, _ := a.Try(query(now))
				c.Settle(now, Result{Verdict: throttled, Tokens: -1})
			}
			ts = append(ts, a)
		}
		if c, r := order(ts...).Pick(pass(now, seeded())); c == nil && willing {
			t.Fatalf("refused: %+v", r)
		}
	})
}

// TestNeedOfAModel: what stands beside the targets that are not closed.
func TestNeedOfAModel(t *testing.T) {
	now := t0.Add(time.Minute)
	dead := func(name string) *Target {
		a := target(name, name, Limits{})
		wear(t, a, now, 0)
		return a
	}
	cooling := func(wait time.Duration) *Target {
		a := target("cooling", "c", Limits{})
		c, _, _ := a.Try(query(now))
		c.Settle(now, Result{Verdict: fault.Verdict{Class: fault.Capacity, Wait: wait, HasWait: wait > 0}, Tokens: -1})
		return a
	}
	drained := target("drained", "d", Limits{})
	drained.Steer(now, Steering{Drained: true, Factor: 1})
	degraded := order(target("small", "s", Limits{}))
	for _, c := range []struct {
		name     string
		model    *Model
		fallback *Model
		want     breaker.Need
	}{
		{"all open", order(dead("a"), dead("b")), nil, breaker.Nothing},
		{"all open, a degraded model", order(dead("a"), dead("b")), degraded, breaker.Nothing},
		{"one throttled", order(dead("a"), cooling(0)), nil, breaker.Busy},
		{"one throttled, a degraded model", order(dead("a"), cooling(0)), degraded, breaker.Degraded},
		{"one throttled, a degraded model that is open", order(dead("a"), cooling(0)), order(dead("s")), breaker.Busy},
		{"one without quota for an hour", order(dead("a"), cooling(time.Hour)), nil, breaker.Nothing},
		{"one drained", order(dead("a"), drained), nil, breaker.Nothing},
	} {
		c.model.Fallback = c.fallback
		if got := c.model.need(now, &Refusal{}); got != c.want {
			t.Errorf("%s: need %d, want %d", c.name, got, c.want)
		}
	}
}

// TestWaitersStayAtATargetThatAnswers: half of them will be answered, and all
// at once they would overrun the next target.
func TestWaitersStayAtATargetThatAnswers(t *testing.T) {
	a := target("a", "x", Limits{})
	told := 0
	for range 5 {
		a.Try(Query{Now: t0, Until: t0.Add(time.Hour), Cancel: func(error) { told++ }})
	}
	for i := range 40 {
		c, _, _ := a.Try(query(t0))
		if c == nil {
			break
		}
		c.Settle(t0, Result{Verdict: []fault.Verdict{good, broken}[i%2], Tokens: -1})
	}
	if s := a.State(t0); s.Phase != "open" || told > 0 {
		t.Errorf("%s, %d of 5 waiting calls were told to move on", s.Phase, told)
	}
}

// TestTrialsMayBeSlowWhereThereIsNothingElse: then a call has the time of its
// own timers, one at a time, and the next is as short as ever.
func TestTrialsMayBeSlowWhereThereIsNothingElse(t *testing.T) {
	now := t0.Add(time.Minute)
	for _, busy := range []bool{false, true} {
		a, b := target("a", "x", Limits{}), target("b", "y", Limits{})
		warm(a, now)
		wear(t, a, now, 0)
		m := order(a)
		if busy {
			m = order(a, b)
			c, _, _ := b.Try(query(now.Add(time.Second)))
			c.Settle(now.Add(time.Second), Result{Verdict: throttled, Tokens: -1})
		}
		at := now.Add(time.Second)
		first, _ := m.Pick(pass(at, seeded()))
		if first == nil || !first.Probe || first.Timeouts.FirstContent > first.Timeouts.Slow != !busy {
			t.Fatalf("another is busy %v: %+v", busy, first)
		}
		if busy {
			continue
		}
		first.Target.breaker.Floor(now, now.Add(time.Minute)) // it stays open
		at = at.Add(first.Timeouts.Slow)
		a.Poll(at)
		second, _ := m.Pick(pass(at, seeded()))
		if second == nil || !second.Last || second.Timeouts.FirstContent > second.Timeouts.Slow {
			t.Errorf("beside it: %+v", second)
		}
	}
}

// TestWaitersStayWhereThereIsNothingElse: told to move on they would only fail.
func TestWaitersStayWhereThereIsNothingElse(t *testing.T) {
	for _, c := range []struct {
		name     string
		second   bool
		fallback bool
		told     int
	}{
		{"one target", false, false, 0},
		{"two targets", true, false, 1},
		{"one target and a degraded model", false, true, 1},
	} {
		a := target("a", "x", Limits{})
		m := order(a)
		if c.second {
			m = order(a, target("b", "y", Limits{}))
		}
		if c.fallback {
			m.Fallback = order(target("small", "s", Limits{}))
		}
		told := 0
		p := pass(t0, seeded())
		p.Cancel = func(error) { told++ }
		m.Pick(p)
		for range 40 {
			if call, _, _ := a.Try(query(t0)); call != nil {
				call.Settle(t0, Result{Verdict: broken, Tokens: -1})
			}
		}
		if s := a.State(t0); s.Phase != "open" || told != c.told {
			t.Errorf("%s: %s, %d told to move on, want %d", c.name, s.Phase, told, c.told)
		}
	}
}

// TestHerdIsHeldBack: behind a cut of many streams a call waits for a slot, and
// is told of one when another begins to answer.
func TestHerdIsHeldBack(t *testing.T) {
	a := target("a", "x", Limits{})
	freed := 0
	a.freed = func(*Target) { freed++ }
	var streams []*Call
	for i := range 200 {
		at := t0.Add(time.Duration(i) * 200 * time.Millisecond)
		c, _, _ := a.Try(query(at))
		c.FirstContent(at)
		streams = append(streams, c)
	}
	now := t0.Add(40 * time.Second)
	for i := 0; i < 200; i += 6 {
		streams[i].Settle(now, Result{Verdict: broken, Tokens: -1})
	}
	var waiting []*Call
	for {
		c, why, _ := a.Try(query(now))
		if c == nil {
			if why != WhyHerd || len(waiting) == 0 || len(waiting) > 20 {
				t.Errorf("held back by %d with %d waiting", why, len(waiting))
			}
			break
		}
		if waiting = append(waiting, c); len(waiting) > 100 {
			t.Fatal("not held back")
		}
	}
	freed = 0
	waiting[0].FirstContent(now)
	if c, _, _ := a.Try(query(now)); c == nil || freed != 1 {
		t.Errorf("a call has begun to answer: let in %v, told %d times", c != nil, freed)
	}
}

// TestHerdIsHeldBackBesideAnOpenTarget: that another target is open lets nobody
// past it.
func TestHerdIsHeldBackBesideAnOpenTarget(t *testing.T) {
	a, dead := target("a", "x", Limits{}), target("dead", "y", Limits{})
	now := t0.Add(40 * time.Second)
	var streams []*Call
	for i := range 200 {
		at := t0.Add(time.Duration(i) * 200 * time.Millisecond)
		c, _, _ := a.Try(query(at))
		c.FirstContent(at)
		streams = append(streams, c)
	}
	for i := 0; i < 200; i += 6 {
		streams[i].Settle(now, Result{Verdict: broken, Tokens: -1})
	}
	wear(t, dead, now, 0)
	m := order(dead, a)
	n := 0
	for ; n < 100; n++ {
		c, r := m.Pick(&Pass{Query: query(now), Random: seeded().Float64})
		if c == nil {
			if !r.Brief() {
				t.Errorf("refused without hope: %+v", r)
			}
			break
		}
	}
	if n > 20 {
		t.Errorf("%d let in at once", n)
	}
}
