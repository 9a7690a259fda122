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

// A region whose targets fail together is found, and named where other regions are
// well; one target of it is named before it.
func TestRegions(t *testing.T) {
	r := newRig(t, clock(8, 0))
	top := Topology{Targets: map[string]Place{}, Models: map[string][]string{}}
	for i := range 6 {
		name := fmt.Sprintf("t%d/m", i)
		top.Targets[name] = Place{Domain: fmt.Sprint("d", i), Region: fmt.Sprint("r", i/2)}
		top.Models["m"] = append(top.Models["m"], name)
	}
	r.d.Use(top)
	feed := func(failing float64) func() {
		return func() {
			for i, name := range top.Models["m"] {
				p := 0.0
				if i < 2 {
					p = failing
				}
				r.ask("w", "m", name, 4, p, fault.Outage)
			}
		}
	}
	r.run(10*time.Minute, feed(0))
	began := r.now
	r.run(2*time.Minute, feed(0.5))
	if n, ok := r.first(began, isDetector(Drop, Subject{Region, "r0"})); !ok || n.At.Sub(began) > time.Minute {
		t.Errorf("found %v after %v", ok, n.At.Sub(began))
	}
	all := r.d.Outages()
	if len(all) != 1 || all[0].Suspects[0].Subject != (Subject{Region, "r0"}) {
		t.Errorf("%d outages, suspects %+v", len(all), all[0].Suspects)
	}
}

// A target that the router has left is found though nothing is asked of it any more,
// and until it is back; one that came back at once, one that an operator holds open
// and one that is no longer configured are not.
func TestLeft(t *testing.T) {
	r := newRig(t, clock(8, 0))
	top := Topology{Targets: map[string]Place{"a/m": {Domain: "d"}, "b/m": {Domain: "e"}}, Models: map[string][]string{"m": {"a/m", "b/m"}}}
	r.d.Use(top)
	well := func() { r.ask("w", "m", "b/m", 5, 0, fault.Outage) }
	move := func(to, reason string) {
		r.tally.Moved(event.Transition{Target: "a/m", To: to, Reason: reason, At: r.now})
	}
	r.run(time.Minute, func() { well(); r.ask("w", "m", "a/m", 1, 0, fault.Outage) })
	move("open", "forced_open")
	r.run(time.Minute, well)
	move("open", "ratio")
	r.run(5*time.Second, well)
	move("half-open", "cool_down_over")
	move("closed", "ramped")
	r.run(time.Minute, well)
	if len(r.notices) > 0 {
		t.Fatal(r.notices[0].Text)
	}
	opened := r.now
	move("open", "ratio")
	r.run(5*time.Second, well)
	move("half-open", "cool_down_over")
	move("open", "probe_failed")
	r.run(time.Minute, well)
	n, ok := r.first(opened, isDetector(Left, Subject{Target, "a/m"}))
	if took := n.At.Sub(opened); !ok || took < 10*time.Second || took > 12*time.Second || len(r.d.active) != 1 {
		t.Errorf("found %v after %v", ok, took)
	}
	move("closed", "ramped")
	r.run(10*time.Second, well)
	if len(r.d.active) != 0 {
		t.Error("still found with the breaker closed")
	}
	move("open", "ratio")
	r.run(20*time.Second, well)
	delete(top.Targets, "a/m")
	r.run(5*time.Second, well)
	if len(r.d.active) != 0 {
		t.Error("still found of a target that is no longer configured")
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
