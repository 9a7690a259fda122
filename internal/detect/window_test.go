package detect

import (
	"fmt"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

func (r *rig) call(workload string, c fault.Class, status int, reason string) {
	r.tally.Attempt(&event.Attempt{Workload: workload, Target: "a/m", Class: c, Status: status, Reason: reason})
}

// Each detector finds what it is for, and nothing before.
func TestDetectors(t *testing.T) {
	turn := 0
	every := func(n int) bool { turn++; return turn%n == 0 }
	slow := time.Duration(0)
	content := func(r *rig, d time.Duration) {
		for i := range 4 {
			r.tally.Request(&event.Request{Workload: "w", Model: "m", Target: "a/m", Content: d + time.Duration(i)*10*time.Millisecond, BytesIn: 2000, Attempts: 1})
			r.call("w", fault.OK, 200, "")
		}
	}
	for _, c := range []struct {
		detector    string
		before, now func(r *rig)
	}{
		{Relabel, func(r *rig) {
			for range 30 {
				if every(40) {
					r.call("w", fault.Capacity, 429, "")
				} else {
					r.call("w", fault.OK, 200, "")
				}
			}
		}, func(r *rig) {
			for range 30 {
				if every(40) {
					r.call("w", fault.Outage, 500, "")
				} else {
					r.call("w", fault.OK, 200, "")
				}
			}
		}},
		{Theirs, func(r *rig) {
			for i := range 4 {
				r.call(fmt.Sprint("w", i), fault.OK, 200, "")
			}
		}, func(r *rig) {
			for i := range 4 {
				r.call(fmt.Sprint("w", i), fault.Client, 400, "")
			}
		}},
		{SlowerBy, func(r *rig) { content(r, 300*time.Millisecond) }, func(r *rig) { content(r, slow+time.Second) }},
		{Broken, func(r *rig) { r.call("w", fault.OK, 200, ""); r.call("w", fault.OK, 200, "") }, func(r *rig) {
			r.call("w", fault.OK, 200, "")
			r.call("w", fault.Outage, 200, "truncated")
		}},
		{Out, func(r *rig) { r.tally.Request(&event.Request{Workload: "w", Model: "m", Attempts: 1}) }, func(r *rig) {
			for range 3 {
				r.tally.Request(&event.Request{Workload: "w", Model: "m", Attempts: 2})
			}
		}},
	} {
		r := newRig(t, clock(8, 0))
		r.d.Use(Topology{Targets: map[string]Place{"a/m": {Domain: "d"}}, Models: map[string][]string{"m": {"a/m"}}})
		r.run(40*time.Minute, func() { c.before(r) })
		if len(r.notices) > 0 {
			t.Errorf("%s: before anything was wrong: %s", c.detector, r.notices[0].Text)
		}
		wrong := r.now
		r.run(3*time.Minute, func() { c.now(r) })
		n, ok := r.first(wrong, isDetector(c.detector, Subject{}))
		if !ok {
			t.Errorf("%s finds nothing", c.detector)
			continue
		}
		t.Logf("%s after %v: %s", c.detector, n.At.Sub(wrong), n.Text)
	}
}

// One caller's own mistakes are not the provider's fault.
func TestOneCallersMistakes(t *testing.T) {
	r := newRig(t, clock(8, 0))
	feed := func(class fault.Class) func() {
		return func() {
			r.call("w0", class, 400, "")
			r.call("w1", fault.OK, 200, "")
			r.call("w2", fault.OK, 200, "")
		}
	}
	r.run(20*time.Minute, feed(fault.OK))
	r.run(5*time.Minute, feed(fault.Client))
	if len(r.notices) > 0 {
		t.Error(r.notices[0].Text)
	}
}

// A burst of two seconds is no outage; little traffic waits until there is enough.
func TestEvidence(t *testing.T) {
	r := newRig(t, clock(8, 0))
	r.run(10*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0, fault.Outage) })
	r.run(2*time.Second, func() { r.ask("w", "m", "a/m", 10, 1, fault.Outage) })
	r.run(5*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0, fault.Outage) })
	if len(r.notices) > 0 {
		t.Errorf("two seconds: %s", r.notices[0].Text)
	}
	r = newRig(t, clock(8, 0))
	for range 60 { // three requests an hour
		r.one("w", "m", "a/m", fault.Outage)
		r.tick()
		r.run(20*time.Minute-time.Second, func() {})
		if r.d.Open() > 0 {
			break
		}
	}
	if n := r.d.series[key{Workload, "w", ""}]; r.d.Open() != 1 || n == nil {
		t.Error("sixty failures in a row at three an hour are not noticed")
	}
	if len(r.notices) > 0 && r.notices[0].At.Sub(r.start) < 4*time.Hour {
		t.Errorf("noticed after %v, on a dozen failures", r.notices[0].At.Sub(r.start))
	}
}

// What is kept is bounded, whatever the names.
func TestBounds(t *testing.T) {
	r := newRig(t, clock(8, 0))
	for i := range 5000 {
		r.one(fmt.Sprint("w", i), "m", fmt.Sprint("t", i), fault.Outage)
		if i%100 == 0 {
			r.tick()
		}
		r.d.Tell(Change{At: r.now, What: fmt.Sprint(i)})
	}
	c := r.d.cfg
	if len(r.tally.requests) > c.MaxSeries || len(r.d.order) > c.MaxSeries || len(r.d.changes) > c.MaxChanges {
		t.Errorf("%d names, %d series, %d changes", len(r.tally.requests), len(r.d.order), len(r.d.changes))
	}
	o := r.d.open(&Finding{Since: r.now})
	for range 1000 {
		r.d.note(o, r.now, "x")
		r.d.open(&Finding{Since: r.now})
		r.d.trim()
	}
	if len(o.Timeline) > c.MaxTimeline || len(r.d.outages) > c.MaxOutages {
		t.Errorf("%d entries, %d outages", len(o.Timeline), len(r.d.outages))
	}
}
