package detect

import (
	"math"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// TestHealthyDays: traffic with the shape of a day and a week, a deploy a day that
// fails a third of a target's calls for five seconds, and a workload that comes in
// bursts and repeats some of its requests, raise at most one finding in 30 days; with
// an objective of 99.9 % for a service that meets it, one of 99 % for another that
// does, and one for a workload with little traffic.
func TestHealthyDays(t *testing.T) {
	days := 3
	if !testing.Short() {
		days = 30
	}
	r := newRig(t, clock(0, 0))
	r.d.Use(Topology{Targets: map[string]Place{"a/m": {"d1", "r1"}, "b/m": {"d2", "r2"}, "b/n": {"d2", "r2"}, "c/o": {"d3", "r3"}}, Models: map[string][]string{"m": {"a/m", "b/m"}, "n": {"b/n"}, "o": {"c/o"}}})
	slos := []SLO{
		{Name: "checkout", Workload: "checkout", Objective: 0.999, Window: 720 * time.Hour}, {Name: "m", Model: "m", Objective: 0.99, Window: 720 * time.Hour},
		{Name: "short", Workload: "checkout", Objective: 0.999, Window: 24 * time.Hour}, {Name: "tiny", Workload: "tiny", Objective: 0.99, Window: 720 * time.Hour},
	}
	r.d.Objectives(slos)
	r.tally.Judge(slos)
	const step = 5 * time.Second
	callers := []struct {
		workload, model, target string
		rps                     float64
	}{
		{"shop", "m", "a/m", 8}, {"shop", "m", "b/m", 2}, {"search", "m", "a/m", 3}, {"night", "n", "b/n", 0.3}, {"tiny", "m", "b/m", 0.01}, {"noisy", "n", "b/n", 2}, {"checkout", "o", "c/o", 6},
	}
	findings := 0
	for end := r.now.Add(time.Duration(days) * 24 * time.Hour); r.now.Before(end); {
		r.now = r.now.Add(step)
		hour := float64(r.now.Unix()%86400) / 3600
		shape := 0.35 + 0.65*math.Pow(math.Sin(math.Pi*hour/24), 2)
		if wd := r.now.Weekday(); wd == time.Saturday || wd == time.Sunday {
			shape *= 0.4
		}
		deploy := hour >= 14 && hour < 14+5.0/3600
		for _, c := range callers {
			rate, failing, again := c.rps*shape, 0.003, 0.3
			if c.workload == "noisy" {
				failing, again = 0.01, 1
				if r.random.IntN(360) == 0 {
					rate *= 10
				}
			}
			if deploy && c.target == "a/m" {
				failing = 0.17 // five seconds of a third
			}
			if c.workload == "checkout" {
				failing, again = 0.0005, 0.3
			}
			n := r.poisson(rate * step.Seconds())
			bad := min(n, r.poisson(float64(n)*failing))
			requests := find(r.tally.requests, requestKey{c.workload, c.model}, 100)
			calls := find(r.tally.attempts, attemptKey{c.workload, c.target}, 100)
			for _, k := range []*Counts{requests, calls} {
				k.Class[fault.OK] += uint32(n - bad)
				k.Class[fault.Outage] += uint32(bad)
			}
			requests.Calls += uint32(n)
			for i := range r.tally.slos {
				if s := &r.tally.slos[i]; s.covers(&event.Request{Workload: c.workload, Model: c.model}) {
					s.good, s.bad = s.good+int64(n-bad), s.bad+int64(bad)
				}
			}
			requests.Repeats += uint32(r.poisson(float64(bad) * again))
			if n > 0 {
				m := find(r.tally.content, contentKey{c.target, 1}, 100)
				for range min(n, 20) {
					m.add(time.Duration(float64(time.Second) * math.Exp(0.5*r.random.NormFloat64())))
				}
			}
		}
		for _, n := range r.d.Tick(r.now, r.tally) {
			if n.What == "finding" {
				findings++
				t.Logf("%s %s", n.At.Format(time.RFC3339), n.Text)
			}
		}
	}
	for _, b := range r.d.Budgets() {
		t.Logf("SLO %s of %g: %d good, %d bad, %.0f %% of its budget left", b.Name, b.Objective, b.Good, b.Bad, 100*b.Left)
		if b.Good == 0 || b.Left < 0 {
			t.Errorf("%s does not meet its objective: %+v", b.Name, b)
		}
	}
	t.Logf("%d findings in %d healthy days", findings, days)
	if findings > 1 {
		t.Errorf("%d findings in %d healthy days, want one at most", findings, days)
	}
}
