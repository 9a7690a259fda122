package detect

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// TestVerifiedNeedsLoad (I20): whatever load and failures do after an onset, an
// outage is verified only when, through the whole time before, the mean load of five
// minutes was at least 80 % of the load at onset, and nothing failed beyond the usual.
func TestVerifiedNeedsLoad(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, clock(8, 0))
		r.d.Use(Topology{Targets: map[string]Place{"a/m": {Domain: "d"}}, Models: map[string][]string{"m": {"a/m"}}})
		const before = 20
		var sent []int // a second
		feed := func(n, bad int) {
			sent = append(sent, n)
			for i := range n {
				c := fault.OK
				if i < bad {
					c = fault.Outage
				}
				r.one("w", "m", "a/m", c)
			}
			r.tick()
		}
		for range 400 {
			feed(before, 0)
		}
		for range 60 {
			feed(before, before)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "phases") {
			n, long := rapid.IntRange(0, 40).Draw(rt, "rate"), rapid.IntRange(30, 1200).Draw(rt, "seconds")
			bad := rapid.SampledFrom([]int{0, 0, n / 2, n}).Draw(rt, "bad")
			for range long {
				feed(n, bad)
			}
		}
		for _, n := range r.notices {
			if n.What == "closed" && n.State == Verified {
				holds(rt, sent, int(n.At.Sub(r.start).Seconds()), before)
			}
		}
	})
}

// holds checks the load in the ten minutes up to a second. Parts of five seconds are
// told apart by the detector, hence the margin.
func holds(rt *rapid.T, sent []int, at, onset int) {
	for end := at - 595; end <= at; end += 5 {
		sum := 0
		for _, n := range sent[max(0, end-300):end] {
			sum += n
		}
		if share := float64(sum) / 300 / float64(onset); share < 0.8-0.04 {
			rt.Fatalf("verified at %d s with %.0f %% of the load %d s before", at, 100*share, at-end)
		}
	}
}

// A recovery with the load of the onset is verified after ten minutes; one with
// less is called unverified within three minutes, with the share, and is not
// verified within hours.
func TestRecoveryAndLull(t *testing.T) {
	for _, c := range []struct {
		rps  float64
		want State
	}{{10, Verified}, {4, Unverified}} {
		r := newRig(t, clock(8, 0))
		r.d.Use(Topology{Targets: map[string]Place{"a/m": {Domain: "d"}}, Models: map[string][]string{"m": {"a/m"}}})
		r.run(10*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0.003, fault.Outage) })
		r.run(5*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0.5, fault.Outage) })
		over := r.now
		r.run(3*time.Hour, func() { r.ask("w", "m", "a/m", c.rps, 0.003, fault.Outage) })
		all := r.d.Outages()
		if len(all) != 1 || all[0].State != c.want {
			t.Fatalf("%+v", all)
		}
		n, ok := r.first(over, entered(c.want))
		took := n.At.Sub(over)
		if !ok || c.want == Unverified && took > 3*time.Minute || c.want == Verified && (took < 10*time.Minute || took > 13*time.Minute) {
			t.Errorf("%s after %v", c.want, took)
		}
		t.Logf("%s after %v: %s", c.want, took, n.Text)
	}
}

// A wave hours behind a verified recovery is the same outage; one a day later is
// another, and so is a failure elsewhere.
func TestWaves(t *testing.T) {
	for _, c := range []struct {
		pause time.Duration
		model string
		want  int
	}{{2 * time.Hour, "m", 1}, {14 * time.Hour, "m", 2}, {2 * time.Hour, "other", 2}} {
		r := newRig(t, clock(8, 0))
		r.d.Use(Topology{Targets: map[string]Place{"a/m": {Domain: "d"}, "b/other": {Domain: "e"}}, Models: map[string][]string{"m": {"a/m"}, "other": {"b/other"}}})
		well := func() { r.ask("w", "m", "a/m", 5, 0, fault.Outage); r.ask("x", "other", "b/other", 5, 0, fault.Outage) }
		r.run(5*time.Minute, well)
		r.run(time.Minute, func() { r.ask("w", "m", "a/m", 5, 1, fault.Outage) })
		r.run(c.pause, well)
		r.run(time.Minute, func() {
			if c.model == "m" {
				r.ask("w", "m", "a/m", 5, 1, fault.Outage)
			} else {
				r.ask("x", "other", "b/other", 5, 1, fault.Outage)
			}
		})
		if got := len(r.d.Outages()); got != c.want {
			t.Errorf("after %v at %s: %d outages, want %d", c.pause, c.model, got, c.want)
		}
	}
}

// What fails less than at its worst is improving and never verified, however much
// traffic there is.
func TestStillFailing(t *testing.T) {
	r := newRig(t, clock(8, 0))
	r.run(10*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0, fault.Outage) })
	r.run(5*time.Minute, func() { r.ask("w", "m", "a/m", 10, 1, fault.Outage) })
	r.run(time.Hour, func() { r.ask("w", "m", "a/m", 10, 0.3, fault.Outage) })
	if all := r.d.Outages(); len(all) != 1 || all[0].State != Improving {
		t.Errorf("%+v", all)
	}
}

// A workload that is merely above its limit and repeats nothing is not to blame for
// a target's failures.
func TestOverIsNotRepeating(t *testing.T) {
	r := newRig(t, clock(8, 0))
	feed := func(failing float64) func() {
		return func() {
			r.ask("w", "m", "a/m", 10, failing, fault.Outage)
			r.ask("eager", "m", "b/m", 2, 0, fault.Outage)
			for range 40 {
				r.tally.Request(&event.Request{Workload: "eager", Class: fault.Capacity, Over: true})
			}
		}
	}
	r.run(10*time.Minute, feed(0))
	r.run(2*time.Minute, feed(0.6))
	all := r.d.Outages()
	if len(all) != 1 || all[0].Suspects[0].Subject != (Subject{Target, "a/m"}) {
		t.Fatalf("%+v", all)
	}
	for _, s := range all[0].Suspects {
		if s.Name == "eager" {
			t.Errorf("suspected: %+v", s)
		}
	}
}
