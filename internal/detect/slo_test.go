package detect

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

func thousandth(name string) SLO {
	return SLO{Name: name, Model: "m", Objective: 0.999, Window: 720 * time.Hour}
}

func newSLORig(t *testing.T, list ...SLO) *rig {
	r := newRig(t, clock(0, 0))
	r.d.Use(Topology{Targets: map[string]Place{"a/m": {Domain: "d"}}, Models: map[string][]string{"m": {"a/m"}}})
	r.d.Objectives(list)
	r.tally.Judge(list)
	return r
}

// met counts requests of an objective alone, without the other detectors seeing them.
func (r *rig) met(good, bad int) {
	for i := range r.tally.slos {
		r.tally.slos[i].good += int64(good)
		r.tally.slos[i].bad += int64(bad)
	}
}

// long lets so much time pass in steps, with so many requests a step.
func (r *rig) long(span, step time.Duration, good, bad func() int) {
	for end := r.now.Add(span); r.now.Before(end); {
		r.met(good(), bad())
		r.now = r.now.Add(step)
		r.notices = append(r.notices, r.d.Tick(r.now, r.tally)...)
	}
}

func constant(n int) func() int { return func() int { return n } }

// Each rule is met at the burn that it is for, in the time that it takes the budget,
// and ends when the failures do.
func TestBurnRates(t *testing.T) {
	for _, c := range []struct {
		name     string
		bad, of  int // of each ten seconds
		from, to time.Duration
		burning  string
	}{
		{"all fail", 100, 100, 10 * time.Second, 40 * time.Second, "page"},
		{"62 times", 62, 1000, 4 * time.Minute, 6 * time.Minute, "page"},
		{"20 times", 20, 1000, 35 * time.Minute, 50 * time.Minute, "page"},
		{"8 times", 8, 1000, 4 * time.Hour, 5 * time.Hour, "page"},
		{"twice", 2, 1000, 30 * time.Hour, 40 * time.Hour, "ticket"},
		{"what may fail", 1, 1000, 0, 0, ""},
	} {
		r := newSLORig(t, thousandth("answers"))
		r.long(80*time.Hour, 10*time.Second, constant(c.of), constant(0))
		began := r.now
		r.long(max(c.to, 100*time.Hour*boolean(c.to == 0)), 10*time.Second, constant(c.of-c.bad), constant(c.bad))
		n, ok := r.first(began, isDetector(SloBurn, Subject{Model, "m"}))
		if c.burning == "" {
			if ok {
				t.Errorf("%s: found after %v: %s", c.name, n.At.Sub(began), n.Text)
			}
			continue
		}
		took := n.At.Sub(began)
		if !ok || took < c.from || took > c.to || !strings.Contains(n.Text, "SLO answers burns its budget") {
			t.Errorf("%s: found %v after %v, want %v to %v: %s", c.name, ok, took, c.from, c.to, n.Text)
			continue
		}
		b := r.d.Budgets()[0]
		if b.Burning != c.burning || b.Outage == "" || b.Since == nil || b.Since.Before(began.Add(-6*time.Hour)) {
			t.Errorf("%s: %+v", c.name, b)
		}
		t.Logf("%s: after %v: %s", c.name, took, n.Text)
		r.long(time.Hour, 10*time.Second, constant(c.of), constant(0))
		if b := r.d.Budgets()[0]; b.Burning != "" {
			t.Errorf("%s: still burning an hour behind its end: %+v", c.name, b)
		}
		r.long(80*time.Hour, 10*time.Second, constant(c.of), constant(0))
		if k := countFound(r.notices); k != 1 {
			t.Errorf("%s: found %d times, want once", c.name, k)
		}
	}
}

func boolean(b bool) time.Duration {
	if b {
		return 1
	}
	return 0
}

func countFound(list []Notice) (n int) {
	for _, x := range list {
		if x.Detector == SloBurn {
			n++
		}
	}
	return n
}

// With little traffic nothing is said before there is evidence, and something then:
// one failure of a quiet workload is no page.
func TestBurnOfLittleTraffic(t *testing.T) {
	r := newSLORig(t, thousandth("quiet"))
	minute := func(bad int) { r.long(time.Minute, time.Minute, constant(1-bad), constant(bad)) }
	for range 600 {
		minute(0)
	}
	minute(1)
	minute(1)
	for range 600 {
		minute(0)
	}
	if n := countFound(r.notices); n != 0 {
		t.Fatalf("two failures of 1200: %s", r.notices[0].Text)
	}
	began := r.now
	for range 120 {
		minute(1)
	}
	n, ok := r.first(began, isDetector(SloBurn, Subject{}))
	if took := n.At.Sub(began); !ok || took < 3*time.Minute || took > 20*time.Minute {
		t.Errorf("found %v after %v", ok, took)
	}
	t.Logf("one a minute, all fail: after %v: %s", n.At.Sub(began), n.Text)
}

// Four failures among few are no evidence, though they are sixty times what may fail.
func TestBurnByChance(t *testing.T) {
	r := newSLORig(t, thousandth("quiet"))
	r.long(10*time.Hour, time.Minute, constant(1), constant(0))
	r.long(4*time.Minute, time.Minute, constant(0), constant(1))
	r.long(3*time.Hour, time.Minute, constant(1), constant(0))
	if n := countFound(r.notices); n != 0 {
		t.Error(r.notices[0].Text)
	}
	if c := chance(outcome{good: 56, bad: 4}, 0.001); c > 14 {
		t.Errorf("four of sixty by chance: %v", c)
	}
}

// A total outage of twenty minutes is over when it is: the long windows, which see it
// for hours, neither hold up its verification nor find it again.
func TestBurnDoesNotHoldUpVerification(t *testing.T) {
	slo := thousandth("answers")
	r := newSLORig(t, slo)
	r.run(2*time.Hour, func() { r.ask("w", "m", "a/m", 10, 0.0003, fault.Outage) })
	r.run(20*time.Minute, func() { r.ask("w", "m", "a/m", 10, 0.5, fault.Outage) })
	over := r.now
	r.run(8*time.Hour, func() { r.ask("w", "m", "a/m", 10, 0.0003, fault.Outage) })
	n, ok := r.first(over, entered(Verified))
	if took := n.At.Sub(over); !ok || took > 15*time.Minute {
		t.Errorf("verified %v after %v", ok, took)
	}
	if all := r.d.Outages(); len(all) != 1 || all[0].Waves != 1 || countFound(r.notices) != 1 {
		t.Errorf("%d outages, %d findings of the SLO: %+v", len(all), countFound(r.notices), all[0].Words)
	}
}

// What counts: the classes that count elsewhere, a first content that comes too late,
// and only what the objective covers.
func TestWhatAnObjectiveCounts(t *testing.T) {
	y := NewTally(10)
	y.Judge([]SLO{
		{Name: "model", Model: "m", Objective: 0.9, FirstContent: time.Second}, {Name: "caller", Workload: "w", Objective: 0.9},
		{Name: "both", Workload: "w", Model: "m", Objective: 0.9}, {Name: "all", Objective: 0.9},
	})
	for _, r := range []event.Request{
		{Class: fault.OK, Content: 900 * time.Millisecond}, {Class: fault.OK, Content: 2 * time.Second}, {Class: fault.Outage}, {Class: fault.Deadline},
		{Class: fault.Client}, {Class: fault.Canceled}, {Class: fault.ContentPolicy}, {Class: fault.Outage, Repeat: true}, {Class: fault.Capacity, Over: true}, {Class: fault.OK, InboundAttempt: 1},
	} {
		for _, who := range []string{"w", "v"} {
			for _, what := range []string{"m", "n"} {
				one := r
				one.Workload, one.Model = who, what
				y.Request(&one)
			}
		}
	}
	want := []outcome{{2, 6}, {4, 4}, {2, 2}, {8, 8}}
	for i, w := range want {
		if got := y.slos[i].outcome; got != w {
			t.Errorf("%s: %+v, want %+v", y.slos[i].Name, got, w)
		}
	}
}

// Whatever comes in, and however the clock jumps: what is counted is never more than
// came in, budgets are numbers, and a finding has its objective's name.
func TestBudgetsAreSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slo := SLO{
			Name: "x", Objective: rapid.Float64Range(0.5, 0.99999).Draw(rt, "objective"),
			Window: time.Duration(rapid.IntRange(24, 2160).Draw(rt, "hours")) * time.Hour,
		}
		r := newSLORig(t, slo)
		total := int64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			n := rapid.IntRange(0, 1000).Draw(rt, "n")
			bad := rapid.IntRange(0, n).Draw(rt, "bad")
			total += int64(n)
			r.met(n-bad, bad)
			r.now = r.now.Add(time.Duration(rapid.IntRange(-3600, 7200).Draw(rt, "seconds")) * time.Second)
			r.d.Tick(r.now, r.tally)
			b := r.d.Budgets()[0]
			if b.Good+b.Bad > total || b.Good < 0 || b.Bad < 0 || math.IsNaN(b.Left) || math.IsInf(b.Left, 0) || b.Left > 1 {
				rt.Fatalf("%+v of %d", b, total)
			}
			last := 0.0
			for _, w := range b.Burns {
				if w.Seconds <= last || math.IsNaN(w.Rate) || w.Rate < 0 || w.Known > w.Seconds || w.Good+w.Bad > total {
					rt.Fatalf("%+v of %d", w, total)
				}
				last = w.Seconds
			}
			if (b.Burning != "") != (len(r.d.active) == 1) || len(r.d.active) > 1 {
				rt.Fatalf("%q, %d findings", b.Burning, len(r.d.active))
			}
		}
	})
}

// What is left is of the whole window's budget; a reload keeps what counts the same
// and forgets what does not; there are never more than 64.
func TestBudgetLeft(t *testing.T) {
	slo := thousandth("answers")
	r := newSLORig(t, slo)
	r.long(72*time.Hour, time.Minute, constant(999), constant(1))
	b := r.d.Budgets()[0]
	if math.Abs(b.Left-0.9) > 0.002 || b.Known != 72*3600-60 || b.Window != "30d" || b.Burns[0].Window != "30s" || b.Burns[len(b.Burns)-1].Window != "3d" {
		t.Errorf("a tenth of the window at a burn of 1: %+v", b)
	}
	slo.Objective = 0.99
	r.d.Objectives([]SLO{slo})
	if b := r.d.Budgets()[0]; b.Good == 0 || math.Abs(b.Left-0.99) > 0.002 {
		t.Errorf("with ten times the budget: %+v", b)
	}
	slo.Model = "n"
	r.d.Objectives([]SLO{slo})
	if b := r.d.Budgets()[0]; b.Good+b.Bad != 0 || b.Left != 1 {
		t.Errorf("of another model: %+v", b)
	}
	var many []SLO
	for i := range 100 {
		many = append(many, thousandth(fmt.Sprint(i)))
	}
	r.d.Objectives(many)
	r.tally.Judge(many)
	if len(r.d.objectives) != MaxSLOs || len(r.tally.slos) != MaxSLOs {
		t.Errorf("%d and %d objectives", len(r.d.objectives), len(r.tally.slos))
	}
}

// BenchmarkBurns is what a second costs with as many objectives as there may be.
func BenchmarkBurns(b *testing.B) {
	var many []SLO
	for i := range MaxSLOs {
		many = append(many, thousandth(fmt.Sprint(i)))
	}
	d, y, now := New(Default()), NewTally(10), clock(0, 0)
	d.Objectives(many)
	y.Judge(many)
	b.ReportAllocs()
	for range b.N {
		for i := range y.slos {
			y.slos[i].outcome = outcome{good: 9, bad: 1}
		}
		now = now.Add(time.Second)
		d.Tick(now, y)
	}
}
