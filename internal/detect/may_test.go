package detect

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

func clock(hour, minute int) time.Time { return time.Date(2026, 5, 29, hour, minute, 0, 0, time.UTC) }

// may is 29 May 2026 by its own clock: one workload, suite, meets a lack of capacity
// that its stack takes for a passing fault, and repeats each failed request 48 times.
// The routing layer of a region that gets more than it bears fails everybody there.
type may struct {
	*rig
}

// region feeds a second of one region: others come in at a steady rate, suite at
// rate; storm says that the change has reached it.
func (m *may) region(name string, others, suite, bears float64, storm bool) {
	lost, failing := 0.0, 0.003
	if storm {
		lost = 0.4
		all := others + suite + 48*suite*lost
		failing = max(failing, 1-bears/all)
	}
	target := name + "/engine"
	m.ask("external", "gpt", target, others, failing, fault.Outage)
	m.ask("suite", "gpt", target, suite, min(1, failing+lost), fault.Outage)
	if storm {
		m.repeat("suite", "gpt", 48*suite*lost)
	} else {
		m.repeat("external", "gpt", 2*others*failing)
	}
}

func newMay(t *testing.T) *may {
	m := &may{rig: newRig(t, clock(8, 0))}
	m.d.Use(Topology{
		Targets: map[string]Place{
			"australia/engine": {Domain: "azure-australiaeast", Region: "australiaeast"}, "sweden/engine": {Domain: "azure-swedencentral", Region: "swedencentral"},
		},
		Models: map[string][]string{"gpt": {"australia/engine", "sweden/engine"}},
	})
	return m
}

// until feeds both regions up to a time of that day.
func (m *may) until(hour, minute int, suiteHere, suiteThere float64, stormHere, stormThere bool) {
	m.run(clock(hour, minute).Sub(m.now), func() {
		m.region("australia", 10, suiteHere, 30, stormHere)
		m.region("sweden", 10, suiteThere, 60, stormThere)
	})
}

// TestTwentyNinthOfMay: what took 19 minutes to notice and 408 to name takes less
// than one each; the false recovery is called one, with the traffic that it is due
// to; the second wave is the same outage; the rollout is a likelier cause than the
// feature that was switched off in vain.
func TestTwentyNinthOfMay(t *testing.T) {
	m := newMay(t)
	m.until(9, 18, 4, 0, false, false)
	m.d.Tell(Change{At: m.now, What: "upstream rollout", Scope: "australiaeast"})
	m.until(9, 20, 4, 0, false, false)
	m.until(12, 17, 4, 0, true, false)
	m.d.Tell(Change{At: m.now, What: "error-handling feature off"})
	m.until(12, 40, 4, 0, true, false)
	m.until(14, 18, 0.4, 0, true, false)
	m.d.Tell(Change{At: m.now, What: "upstream rollout", Scope: "swedencentral"})
	m.until(14, 20, 0.4, 0, true, false)
	m.until(14, 40, 0.4, 3, true, true)
	m.until(16, 25, 0.4, 12, true, true)
	m.until(17, 30, 4, 12, false, false)
	m.report()
	began := clock(9, 20)
	noticed, ok := m.first(m.start, func(n Notice) bool { return n.What == "finding" })
	if !ok || noticed.At.Before(began) || noticed.At.Sub(began) >= time.Minute {
		t.Errorf("noticed %v after the beginning, want less than a minute: %s", noticed.At.Sub(began), noticed.Text)
	}
	source, ok := m.first(m.start, func(n Notice) bool { return n.What == "source" })
	if !ok || source.Source != (Subject{Workload, "suite"}) || source.At.Sub(began) >= time.Minute {
		t.Errorf("named %v after %v, want suite within a minute", source.Source, source.At.Sub(began))
	}
	lull, ok := m.first(clock(12, 40), entered(Unverified))
	if !ok || lull.At.After(clock(12, 50)) {
		t.Errorf("the false recovery is called one at %v", lull.At)
	}
	if n, ok := m.first(clock(9, 0), entered(Verified)); ok && n.At.Before(clock(16, 25)) {
		t.Errorf("verified at %v", n.At)
	}
	m.judgeWaves()
}

func (m *may) judgeWaves() {
	all := m.d.Outages()
	if len(all) != 1 || all[0].Waves != 2 {
		m.t.Fatalf("%d outages, want one of two waves", len(all))
	}
	if all[0].State != Verified {
		m.t.Errorf("an hour behind the rollback it is %s: %s", all[0].State, all[0].Words)
	}
	if c := all[0].Changes; len(c) == 0 || c[0].Name != "upstream rollout" || c[0].Matched != 2 {
		m.t.Errorf("the changes in order: %+v", c)
	}
}

// report prints what was said, for whoever reads the test's output.
func (m *may) report() {
	for _, n := range m.notices {
		m.t.Logf("%s %s", n.At.Format("15:04:05"), n.Text)
	}
	for _, o := range m.d.Outages() {
		for _, s := range append(o.Suspects, o.Changes...) {
			m.t.Logf("%s: suspect %s %.2f %s", o.ID, s.Subject, s.Score, s.Text)
		}
	}
}
