package detect

import (
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// TestUnservedIsNoLoad: load that comes back and is not served, for its callers leave or
// are refused as mistaken, is none: nothing says that it would be answered.
func TestUnservedIsNoLoad(t *testing.T) {
	for _, class := range []fault.Class{fault.Canceled, fault.Client} {
		r := newRig(t, clock(9, 0))
		r.d.Use(Topology{Targets: map[string]Place{"a/m": {"d", "r"}}, Models: map[string][]string{"m": {"a/m"}}})
		r.run(30*time.Minute, func() { r.ask("w", "m", "a/m", 100, 0.01, class) })
		r.run(5*time.Minute, func() { r.ask("w", "m", "a/m", 100, 0.8, fault.Outage) })
		r.run(time.Hour, func() { r.ask("w", "m", "a/m", 100, 0.97, class) })
		if n, ok := r.first(r.start, entered(Verified)); ok {
			t.Errorf("%s: %s", class, n.Text)
		}
		r.run(30*time.Minute, func() { r.ask("w", "m", "a/m", 100, 0.01, class) })
		if _, ok := r.first(r.start, entered(Verified)); !ok {
			t.Errorf("%s: never verified: %s", class, r.d.Outages()[0].Words)
		}
	}
}

// TestChangeBehindTheFinding: what was changed once an outage had been noticed did not
// bring it about, however near.
func TestChangeBehindTheFinding(t *testing.T) {
	r := newRig(t, clock(9, 0))
	r.d.Use(Topology{Targets: map[string]Place{"a/m": {"d", "r"}}, Models: map[string][]string{"m": {"a/m"}}})
	r.run(30*time.Minute, func() { r.ask("w", "m", "a/m", 20, 0.01, fault.Outage) })
	wave := func(what string) {
		for range 60 {
			r.ask("w", "m", "a/m", 20, 0.8, fault.Outage)
			r.tick()
			if o := r.d.Outages(); len(o) > 0 && o[0].State == Degraded {
				break
			}
		}
		r.d.Tell(Change{At: r.now, What: what})
		r.run(3*time.Minute, func() { r.ask("w", "m", "a/m", 20, 0.8, fault.Outage) })
		r.run(20*time.Minute, func() { r.ask("w", "m", "a/m", 20, 0.01, fault.Outage) })
	}
	wave("switch of the operator")
	r.run(30*time.Minute, func() { r.ask("w", "m", "a/m", 20, 0.01, fault.Outage) })
	wave("another switch")
	if c := r.only(2).Changes; len(c) > 0 {
		t.Errorf("%+v", c)
	}
}

// TestMixEndsWithLittleTraffic: a mix that was found at somewhat more than the calls
// that finding it takes ends also where most of them go to another target since.
func TestMixEndsWithLittleTraffic(t *testing.T) {
	r := newRig(t, clock(9, 0))
	r.d.Use(Topology{Targets: map[string]Place{"a/m": {"d", "r"}, "b/m": {"e", "s"}}, Models: map[string][]string{"m": {"a/m", "b/m"}}})
	r.run(2*time.Hour, func() { r.ask("w", "m", "a/m", 1.8, 0.01, fault.Outage) })
	r.run(5*time.Minute, func() { r.ask("w", "m", "a/m", 2.2, 0.8, fault.Outage) })
	if _, ok := r.first(r.start, isDetector(Mix, Subject{})); !ok {
		t.Fatal("no mix was found")
	}
	r.run(time.Hour, func() {
		r.ask("w", "m", "a/m", 0.4, 0.01, fault.Outage)
		r.ask("w", "m", "b/m", 1.4, 0.01, fault.Outage)
	})
	if o := r.only(1); o.State != Verified {
		t.Error(o.Words)
	}
}

// TestFewerFailuresOfFewer: a retry loop fills its limit before and behind a fall in
// its load. That fewer of its requests are refused is no improvement while all that
// come through fail.
func TestFewerFailuresOfFewer(t *testing.T) {
	r := newRig(t, clock(9, 0))
	r.d.Use(Topology{Targets: map[string]Place{"a/m": {"d", "r"}}, Models: map[string][]string{"m": {"a/m"}}})
	over := func(rps float64) {
		for range r.poisson(rps) {
			r.tally.Request(&event.Request{Workload: "w", Model: "m", Class: fault.Capacity, Over: true})
		}
	}
	r.run(30*time.Minute, func() { r.ask("w", "m", "a/m", 3, 0.01, fault.Outage) })
	r.run(10*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0.98, fault.Outage); over(65) })
	lull := r.now
	r.run(10*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0.98, fault.Outage); over(1) })
	n, ok := r.first(lull, func(n Notice) bool { return n.What == "state" })
	if !ok || n.State != Unverified || !strings.Contains(n.Text, "still fail") {
		t.Errorf("%v %s", ok, n.Text)
	}
}
