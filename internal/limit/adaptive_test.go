package limit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// bench is a target in discrete time: it serves capacity calls a second, holds
// a second's worth of others in its queue, and refuses beyond that. Its callers
// ask for more than it serves; who finds no slot is gone.
type bench struct {
	Slots
	adapt    Adaptive
	capacity float64
	demand   float64 // calls a second
	output   time.Duration
	slow     float64 // factor of the first content; below 1 none is told
	rnd      *rand.Rand
	now      time.Time
	busy     time.Time
	calls    []running
	starts   float64

	good, refused, lowered int
	lowest                 Load
}

type running struct {
	slot                Slot
	start, first, ended time.Time
	refused, answered   bool
}

const benchStep = 10 * time.Millisecond

func newBench(capacity, demand float64) *bench {
	return &bench{capacity: capacity, demand: demand, output: 600 * time.Millisecond, slow: 1, rnd: rand.New(rand.NewPCG(1, 2)), now: start, busy: start}
}

func (b *bench) run(d time.Duration) {
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = b.now.Add(benchStep)
		b.end()
		b.pass()
		for b.starts += b.demand * benchStep.Seconds(); b.starts >= 1; b.starts-- {
			b.call(Want{Flow: "a", Tokens: 500 + b.rnd.Int64N(1000)})
		}
	}
}

func (b *bench) pass() {
	b.adapt.Advance(b.now, b.Used(), 0)
	b.Learned = b.adapt.Limit()
}

func (b *bench) call(w Want) {
	d := b.Ask(b.now, w)
	if b.adapt.Denied(d); d != Granted {
		return
	}
	c := running{slot: b.Take(b.now, w), start: b.now}
	b.adapt.Began(b.now, w.Tokens, b.Used())
	if b.busy.Before(b.now) {
		b.busy = b.now
	}
	cost := 1.0
	if b.busy.Sub(b.now) >= time.Second {
		c.refused, c.first, c.ended, cost = true, b.now.Add(benchStep), b.now.Add(benchStep), 0.2
	} else {
		wait := time.Duration(float64(400*time.Millisecond)*max(1, b.slow)*(0.8+0.4*b.rnd.Float64())) + b.busy.Sub(b.now)
		c.first = b.now.Add(wait)
		c.ended = c.first.Add(b.output)
	}
	b.busy = b.busy.Add(time.Duration(cost / b.capacity * float64(time.Second)))
	b.calls = append(b.calls, c)
}

func (b *bench) end() {
	b.calls = slices.DeleteFunc(b.calls, func(c running) bool {
		if c.ended.After(b.now) {
			return false
		}
		b.pass()
		if before := b.adapt.lowered; c.refused {
			b.refused++
			b.adapt.Refused(b.now, Refusal{Start: c.start, Hold: 400 * time.Millisecond})
			if b.adapt.lowered != before {
				b.lowered++
			}
		} else {
			b.good++
			b.adapt.Ended()
		}
		b.Learned = b.adapt.Limit()
		b.Release(&c.slot)
		return true
	})
	for i := range b.calls {
		if c := &b.calls[i]; !c.answered && !c.refused && !c.first.After(b.now) {
			c.answered = true
			b.adapt.Served()
			if b.slow >= 1 {
				b.adapt.Slow(c.first.Sub(c.start).Seconds() / 0.4)
			}
		}
	}
	if l := b.adapt.Limit(); l.Calls > 0 && (b.lowest.Calls == 0 || l.Calls < b.lowest.Calls) {
		b.lowest = l
	}
}

// measure runs on and returns goodput and refusals a second.
func (b *bench) measure(d time.Duration) (good, refused float64) {
	b.good, b.refused = 0, 0
	b.run(d)
	return float64(b.good) / d.Seconds(), float64(b.refused) / d.Seconds()
}

// TestCapacityIsFollowed: a target whose capacity halves and returns, asked for
// twice what it serves, serves nine tenths of its capacity and more, and refuses
// few. It fails when the level that was refused is tried again each few ticks,
// and when growth stops below it.
func TestCapacityIsFollowed(t *testing.T) {
	for i, capacity := range []float64{6, 40, 300, 6, 40, 300} {
		b := newBench(capacity, 2*capacity)
		if i >= 3 { // refusals are all that is heard
			b.slow = 0
		}
		for _, phase := range []struct {
			name   string
			factor float64
		}{{"whole", 1}, {"half", 0.5}, {"whole again", 1}} {
			b.capacity = capacity * phase.factor
			b.run(45 * time.Second)
			good, refused := b.measure(2 * time.Minute)
			t.Logf("%v a second, %s: %.1f good, %.2f refused, limit %+v", capacity, phase.name, good, refused, b.adapt.Limit())
			if good < 0.9*b.capacity || refused > 0.1 {
				t.Errorf("%v a second, %s: %.1f good, %.2f refused", capacity, phase.name, good, refused)
			}
		}
	}
}

// TestSteadyRefusals: a target that refuses everything brings the limit down to
// two calls, once a second at most, and has nine tenths of it back within 40 ticks behind.
func TestSteadyRefusals(t *testing.T) {
	b := newBench(40, 80)
	b.run(30 * time.Second)
	before := b.adapt.Limit().Calls
	b.capacity, b.lowered = 0.01, 0
	b.busy = b.now.Add(time.Hour)
	b.run(20 * time.Second)
	if l := b.adapt.Limit(); l.Calls != leastCalls || b.lowered > 20 {
		t.Errorf("after 20 s: %+v, lowered %d times", l, b.lowered)
	}
	b.capacity, b.busy = 40, b.now
	ticks := 0
	for ; ticks < 200 && b.adapt.Limit().Calls < before*9/10; ticks++ {
		b.run(time.Second)
	}
	t.Logf("%d before, back after %d ticks", before, ticks)
	if ticks > 40 {
		t.Errorf("%d of %d after %d ticks", b.adapt.Limit().Calls, before, ticks)
	}
}

// TestOutputLengthChangesNothing: answers ten times as long, or as short, lower
// no limit and make none.
func TestOutputLengthChangesNothing(t *testing.T) {
	for _, output := range []time.Duration{10 * time.Millisecond, 6 * time.Second} {
		b := newBench(40, 20)
		b.run(time.Minute)
		b.output = output
		b.run(2 * time.Minute)
		if l := b.adapt.Limit(); l != (Load{}) {
			t.Errorf("answers of %v make a limit: %+v", output, l)
		}
		b = newBench(40, 80)
		b.run(time.Minute)
		b.demand = 5
		b.run(20 * time.Second) // the queue is served
		before := b.adapt.Limit()
		b.output, b.lowest = output, Load{}
		b.run(time.Minute)
		if b.lowest.Calls < before.Calls {
			t.Errorf("answers of %v lower the limit from %+v to %+v", output, before, b.lowest)
		}
	}
}

// TestSlownessThatIsNotOurs: a target that is four times as slow for everybody
// keeps its limit, but for a while in which that is found out.
func TestSlownessThatIsNotOurs(t *testing.T) {
	b := newBench(40, 80)
	b.run(time.Minute)
	before := b.adapt.Limit().Calls
	b.demand, b.slow = 20, 4
	b.lowest = Load{}
	b.run(5 * time.Minute)
	if l := b.adapt.Limit().Calls; l < before*7/10 || b.lowest.Calls < before*65/100 {
		t.Errorf("limit %d, was %d, lowest %d", l, before, b.lowest.Calls)
	}
}

// TestSlownessThatIsOurs: first contents that fall with the limit lower it until
// they are no more than twice the usual.
func TestSlownessThatIsOurs(t *testing.T) {
	var a Adaptive
	now := start
	a.Began(now, 1000, Load{100, 100_000})
	a.Advance(now, Load{100, 100_000}, 0)
	a.Refused(now, Refusal{Start: now})
	for range 100 {
		now = now.Add(time.Second)
		n := a.Limit().Calls
		for range 10 {
			a.Served()
			a.Slow(float64(n) / 20) // a queue: 20 are served at once
		}
		a.Advance(now, Load{n, int64(n) * 1000}, 0)
	}
	if l := a.Limit(); l.Calls < 36 || l.Calls > 44 {
		t.Errorf("%+v", l)
	}
}

// TestAdaptiveEnds: ten minutes without a refusal end the limit; a target that
// hangs keeps it.
func TestAdaptiveEnds(t *testing.T) {
	b := newBench(40, 80)
	b.run(time.Minute)
	hung := b.adapt
	hung.Advance(b.now.Add(time.Second), Load{}, 0) // what was noted before
	before := hung.Limit()
	for i := range 300 {
		hung.Denied(DeniedCalls)
		hung.Advance(b.now.Add(time.Duration(i+2)*time.Second), Load{before.Calls, before.Tokens}, 0)
	}
	if hung.Limit() != before {
		t.Errorf("no answers: %+v, was %+v", hung.Limit(), before)
	}
	b.demand = 10
	b.run(9 * time.Minute)
	if b.adapt.Limit() == (Load{}) {
		t.Error("no limit after nine minutes")
	}
	b.run(2 * time.Minute)
	if l := b.adapt.Limit(); l != (Load{}) {
		t.Errorf("%+v after eleven minutes", l)
	}
}

// TestExplainedRefusals: what our own quota explains counts as a share only.
func TestExplainedRefusals(t *testing.T) {
	var a Adaptive
	a.Began(start, 1, Load{50, 50})
	a.Advance(start, Load{50, 50}, 0)
	for range 60 {
		a.Ended()
	}
	a.Refused(start.Add(time.Millisecond), Refusal{Start: start, Explained: true})
	if a.Limit() != (Load{}) {
		t.Error("one in 61 made a limit")
	}
	a.Refused(start.Add(time.Millisecond), Refusal{Start: start, Explained: true})
	if a.Limit().Calls != 40 {
		t.Errorf("two in 62: %+v", a.Limit())
	}
}

// TestAdaptiveProperties: whatever is noted, the limit is none or at least two
// calls, falls by a fifth at most within a hold, and only rises with answers or
// when lowering it did not help.
func TestAdaptiveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Adaptive
		now, hold, used := start, time.Time{}, Load{}
		last, served := Load{}, false
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				n := rapid.Int64Range(1, 1<<40).Draw(t, "tokens")
				used.Calls++
				used.Tokens += n
				a.Began(now, n, used)
			},
			"end":    func(*rapid.T) { used = Load{used.Calls / 2, used.Tokens / 2}; a.Ended() },
			"served": func(*rapid.T) { served = true; a.Served() },
			"slow":   func(t *rapid.T) { a.Slow(rapid.Float64Range(0, 10).Draw(t, "ratio")) },
			"pace":   func(t *rapid.T) { a.Pace(rapid.Float64Range(0, 10).Draw(t, "ratio")) },
			"denied": func(t *rapid.T) { a.Denied(Denial(rapid.IntRange(0, 4).Draw(t, "denial"))) },
			"refused": func(t *rapid.T) {
				h := rapid.SampledFrom([]time.Duration{-1, 0, time.Second, 5 * time.Second, time.Hour}).Draw(t, "hold")
				before := a.Limit()
				a.Refused(now, Refusal{Start: now.Add(-time.Duration(rapid.IntRange(0, 5000).Draw(t, "age")) * time.Millisecond), Hold: h, Explained: rapid.Bool().Draw(t, "explained")})
				if a.Limit() == before {
					return
				}
				if l := a.Limit(); l == (Load{}) || before.Calls > 0 && l.Calls >= before.Calls && l.Tokens >= before.Tokens { // taken back
					last = l
					return
				}
				if now.Before(hold) {
					t.Fatalf("lowered twice in a hold: %+v, %+v", before, a.Limit())
				}
				hold = now.Add(min(max(h, leastHold), mostHold))
				last = a.Limit()
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
				tick := a.tick
				a.Advance(now, used, 0)
				if l := a.Limit(); l.Calls > last.Calls && !served && a.futile.IsZero() {
					t.Fatalf("from %+v to %+v without an answer", last, l)
				}
				served, last = served && a.tick.Equal(tick), a.Limit()
			},
			"": func(t *rapid.T) {
				if l := a.Limit(); l != (Load{}) && (l.Calls < leastCalls || l.Tokens < leastCalls) {
					t.Fatalf("%+v", l)
				}
			},
		})
	})
}

func BenchmarkAdaptive(b *testing.B) {
	var a Adaptive
	a.Began(start, 100, Load{100, 100_000})
	a.Refused(start, Refusal{Start: start})
	b.ReportAllocs()
	for i := range b.N {
		now := start.Add(time.Duration(i) * time.Millisecond)
		a.Advance(now, Load{50, 50_000}, 0)
		a.Began(now, 100, Load{50, 50_000})
		a.Served()
		a.Slow(1)
		a.Ended()
	}
}
