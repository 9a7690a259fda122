package detect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// doing is a rig with an hour of health and an outage whose failures are as told.
func doing(t *testing.T) (r *rig, fails func(long time.Duration, rps, share float64)) {
	r = newRig(t, clock(8, 0))
	r.d.Use(Topology{Targets: map[string]Place{"a/m": {Domain: "d", Region: "r"}}, Models: map[string][]string{"m": {"a/m"}}})
	fails = func(long time.Duration, rps, share float64) {
		r.run(long, func() { r.ask("w", "m", "a/m", rps, share, fault.Outage) })
	}
	fails(time.Hour, 10, 0.002)
	return r, fails
}

func (r *rig) change(name string) Suspect {
	r.t.Helper()
	for _, s := range r.d.Outages()[0].Changes {
		if s.Name == name {
			r.t.Logf("%.2f %s: %s", s.Score, s.Name, s.Text)
			return s
		}
	}
	r.t.Fatalf("%s is not listed", name)
	return Suspect{}
}

// TestDoseResponse: of two changes before the onset the one whose exposure the failures
// go with comes first, and one that they do not go with falls behind.
func TestDoseResponse(t *testing.T) {
	r, fails := doing(t)
	r.d.Tell(Change{At: r.now, What: "deploy"})
	r.d.Tell(Change{At: r.now, What: "rollout", Dose: 0.1})
	r.d.Tell(Change{At: r.now, What: "backwards", Dose: 0.9})
	fails(10*time.Minute, 10, 0.1)
	r.d.Tell(Change{At: r.now, What: "rollout", Dose: 0.4})
	r.d.Tell(Change{At: r.now, What: "backwards", Dose: 0.5})
	fails(10*time.Minute, 10, 0.4)
	r.d.Tell(Change{At: r.now, What: "rollout", Dose: 0.8})
	r.d.Tell(Change{At: r.now, What: "backwards", Dose: 0.1})
	fails(10*time.Minute, 10, 0.8)
	rollout, deploy, backwards := r.change("rollout"), r.change("deploy"), r.change("backwards")
	if rollout.Response != 1 || rollout.Score <= deploy.Score || deploy.Response != 0 || backwards.Score > deploy.Score || backwards.Response > 0 {
		t.Errorf("rollout %+v\ndeploy %+v\nbackwards %+v", rollout, deploy, backwards)
	}
}

// TestReversal: a change that is taken back, whose failures end at the load of the
// onset, gains; one whose failures stay loses; and with less traffic nothing is shown,
// until it is back.
func TestReversal(t *testing.T) {
	for _, c := range []struct {
		name         string
		rps, failing float64
		want         string
		gains        int
	}{
		{"gone", 10, 0.002, "effect gone", 1}, {"stays", 10, 0.5, "effect stays", -1}, {"lull", 2, 0.002, "not shown yet", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, fails := doing(t)
			r.d.Tell(Change{At: r.now, What: "rollout"})
			fails(20*time.Minute, 10, 0.5)
			before := r.change("rollout")
			r.d.Tell(Change{At: r.now, What: "rollback", Reverts: "rollout"})
			fails(9*time.Minute+30*time.Second, c.rps, c.failing)
			after := r.change("rollout")
			if after.Undone != c.want || compare(after.Score, before.Score) != c.gains {
				t.Errorf("%.2f, then %.2f: %s", before.Score, after.Score, after.Text)
			}
			if c.want != "not shown yet" {
				return
			}
			if !strings.Contains(after.Text, "traffic at") {
				t.Error(after.Text)
			}
			fails(14*time.Minute, 10, 0.5)
			if s := r.change("rollout"); s.Undone != "effect stays" {
				t.Errorf("with the load back, and the failures: %s", s.Text)
			}
		})
	}
}

// A change that is undone in one of its scopes is not undone; and where two were,
// neither is shown.
func TestReversalInPart(t *testing.T) {
	r, fails := doing(t)
	for _, scope := range []string{"r", "elsewhere"} {
		r.d.Tell(Change{At: r.now, What: "rollout", Scope: scope})
	}
	r.d.Tell(Change{At: r.now, What: "feature"})
	fails(20*time.Minute, 10, 0.5)
	r.d.Tell(Change{At: r.now, What: "rollback", Scope: "elsewhere", Reverts: "rollout"})
	fails(10*time.Minute, 10, 0.5)
	if s := r.change("rollout"); s.Undone != "" || !strings.Contains(s.Text, "not in 1 of its scopes") {
		t.Errorf("%+v", s)
	}
	r.d.Tell(Change{At: r.now, What: "rollback", Scope: "r", Reverts: "rollout"})
	r.d.Tell(Change{At: r.now.Add(30 * time.Second), What: "feature off", Reverts: "feature"})
	fails(time.Minute, 10, 0.5)
	r.d.Tell(Change{At: r.now, What: "feature off", Reverts: "feature"})
	fails(8*time.Minute+30*time.Second, 10, 0.002)
	if s := r.change("rollout"); s.Undone != "not shown" {
		t.Errorf("%+v", s)
	}
}

func compare(a, b float64) int {
	switch {
	case a > b:
		return 1
	case a < b-0.1: // the undoing is one more change, which makes each a little less telling
		return -1
	}
	return 0
}

// What is kept of an open outage is bounded.
func TestTrailIsBounded(t *testing.T) {
	o := &Outage{}
	for i := range 100_000 {
		o.track(clock(8, 0).Add(time.Duration(i)*time.Minute), 1)
	}
	if len(o.trail) > maxSamples || len(o.trail) < maxSamples/4 {
		t.Errorf("%d samples", len(o.trail))
	}
}

// BenchmarkCauses is what a second costs with as many changes as are kept and twenty
// outages open, each with several waves.
func BenchmarkCauses(b *testing.B) {
	d, now := New(Default()), clock(8, 0)
	targets := map[string]Place{}
	for i := range 200 {
		targets[fmt.Sprint("t", i)] = Place{Domain: fmt.Sprint("d", i%50), Region: fmt.Sprint("r", i%10)}
	}
	d.Use(Topology{Targets: targets})
	y := NewTally(10)
	d.Tick(now, y)
	for i := range d.cfg.MaxChanges {
		d.Tell(Change{At: now.Add(-time.Duration(i) * time.Minute), What: fmt.Sprint("change ", i%100), Scope: fmt.Sprint("r", i%10), Dose: float64(i%7+1) / 8})
	}
	for i := range 20 {
		o := d.open(&Finding{Since: now, Subject: Subject{Target, fmt.Sprint("t", i)}})
		d.adopt(o, &Finding{Detector: Drop, Since: now, Subject: Subject{Target, fmt.Sprint("t", i)}})
		for range maxScope {
			o.onsets = append(o.onsets, onset{at: now, scope: o.Scope})
		}
	}
	b.ReportAllocs()
	for range b.N {
		now = now.Add(time.Second)
		d.Tell(Change{At: now, What: "another"}) // so that all are judged anew
		d.Tick(now, y)
	}
}
