package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

var start = time.Date(2026, 5, 29, 9, 0, 0, 0, time.UTC)

// rig adds to a history second by second.
type rig struct {
	h     *History
	tally *Tally
	now   time.Time
}

func newRig() *rig { return &rig{h: New(), tally: NewTally(), now: start} }

// second lets one pass in which so much happened.
func (r *rig) second(what func(*Tally)) {
	what(r.tally)
	r.h.Add(r.now, time.Second, r.tally)
	r.now = r.now.Add(time.Second)
}

func (r *rig) run(d time.Duration, what func(*Tally)) {
	for range int(d / time.Second) {
		r.second(what)
	}
}

func good(t *Tally, workload, target string) {
	t.Request(&event.Request{Workload: workload, Attempts: 1, Content: time.Second})
	t.Attempt(&event.Attempt{Workload: workload, Target: target})
}

func answer(t interface{ Fatal(...any) }, h *History, now time.Time, q Query) Answer {
	a, err := h.Answer(now, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// at is the value of a series at a time.
func at(t *testing.T, a Answer, series string, when time.Time) *float64 {
	t.Helper()
	s := slices.IndexFunc(a.Series, func(s Series) bool { return s.Name == series })
	i := slices.Index(a.At, when.Unix())
	if s < 0 || i < 0 {
		t.Fatalf("no %s at %v", series, when)
	}
	return a.Series[s].Values[i]
}

func is(v *float64, want float64) bool { return v != nil && math.Abs(*v-want) < 1e-9 }

func show(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

// TestOutage: three hours with an outage in the middle have the right numbers at each
// resolution, and a gap is a gap.
func TestOutage(t *testing.T) {
	r := newRig()
	r.run(time.Hour, func(t *Tally) {
		good(t, "suite", "a/m")
		t.Sample(Reading{InFlight: 3, Memory: 5000, Workloads: []string{"suite"}, Targets: []TargetReading{{"a/m", 1, 0}}})
	})
	r.run(time.Hour, func(t *Tally) {
		for range 4 {
			t.Request(&event.Request{Workload: "suite", Class: fault.Outage, Attempts: 2, Repeat: true})
			t.Attempt(&event.Attempt{Workload: "suite", Target: "a/m", Class: fault.Outage})
			t.Attempt(&event.Attempt{Workload: "suite", Target: "a/m", Class: fault.Outage})
		}
		t.Request(&event.Request{Workload: "suite", Class: fault.Outage})
		t.Request(&event.Request{Workload: "suite", Degraded: "message", Attempts: 1})
		t.Sample(Reading{InFlight: 9, Outages: 1, Targets: []TargetReading{{"a/m", 7, 3}}})
	})
	r.now = r.now.Add(30 * time.Minute) // the router was down
	r.run(30*time.Minute, func(t *Tally) { good(t, "suite", "a/m") })
	for _, step := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
		from := map[time.Duration]time.Time{10 * time.Second: r.now.Add(-2 * time.Hour), time.Minute: start, 10 * time.Minute: start}[step]
		q := Query{From: from, Step: step}
		a := answer(t, r.h, r.now, q)
		q.Subject = "workload:suite"
		w := answer(t, r.h, r.now, q)
		q.Subject = "target:a/m"
		target := answer(t, r.h, r.now, q)
		check := func(a Answer, when time.Time, want map[string]float64) {
			t.Helper()
			for series, v := range want {
				got := at(t, a, series, when)
				if !is(got, v) && !(math.IsNaN(v) && got == nil) {
					t.Errorf("%v steps: %s at %v is %s, want %v", step, series, when.Sub(start), show(got), v)
				}
			}
		}
		bad, gap, well := start.Add(90*time.Minute), start.Add(130*time.Minute), start.Add(160*time.Minute)
		check(a, bad, map[string]float64{"offered": 6, "goodput": 0, "failed": 4, "refused": 1, "degraded": 1, "attempts": 8, "in_flight": 9, "outages": 1, "queued": 0, "first_content_p50": math.NaN()})
		check(w, bad, map[string]float64{"offered": 6, "failed": 4, "amplification_in": 3, "amplification_out": 8. / 6})
		check(target, bad, map[string]float64{"attempts": 8, "failed": 8, "breaker": 3, "in_flight": 7})
		nan := math.NaN()
		check(a, gap, map[string]float64{"offered": nan, "in_flight": nan})
		check(w, gap, map[string]float64{"offered": nan, "amplification_in": nan})
		check(target, gap, map[string]float64{"attempts": nan, "breaker": nan})
		check(a, well, map[string]float64{"offered": 1, "goodput": 1, "failed": 0, "in_flight": nan})
		if step > 10*time.Second {
			check(a, start, map[string]float64{"in_flight": 3, "memory": 5120, "offered": 1})
		}
	}
}

// TestExact: whatever happens when, the counts of coarse steps are the sums of fine
// ones, and those of the parts are the whole's.
func TestExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig()
		r.now = start.Add(time.Duration(rapid.IntRange(0, 700).Draw(rt, "offset")) * time.Second)
		classes := []fault.Class{fault.OK, fault.Client, fault.Outage, fault.Capacity, fault.Canceled, fault.Overload}
		var want Sums
		seconds := 0
		for range rapid.IntRange(1, 60).Draw(rt, "additions") {
			lasted := rapid.IntRange(1, 9).Draw(rt, "lasted")
			for range rapid.IntRange(0, 3).Draw(rt, "requests") {
				c := rapid.SampledFrom(classes).Draw(rt, "class")
				n := rapid.IntRange(0, 2).Draw(rt, "attempts")
				w := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "workload")
				r.tally.Request(&event.Request{Workload: w, Class: c, Attempts: n})
				for range n {
					r.tally.Attempt(&event.Attempt{Workload: w, Target: w, Class: c})
				}
				want.Offered++
				want.Attempts += int64(n)
				switch {
				case c == fault.OK:
					want.Goodput++
				case c == fault.Client || c == fault.Canceled:
				case c == fault.Overload || n == 0:
					want.Refused++
				default:
					want.Failed++
				}
			}
			r.h.Add(r.now, time.Duration(lasted)*time.Second, r.tally)
			seconds += lasted
			r.now = r.now.Add(time.Duration(lasted) * time.Second)
			if rapid.IntRange(0, 9).Draw(rt, "gap") == 0 {
				r.now = r.now.Add(time.Duration(rapid.IntRange(0, 300).Draw(rt, "long")) * time.Second)
			}
		}
		for l, level := range levels {
			from := floor(start.Unix(), 600) * 600
			cells, parts := make([]uint32, rWidth), make([]uint32, wWidth)
			known := r.h.gather(l, ofRouter, r.h.router, from, from+6000, cells)
			if got := sums(cells); got != want || known != float64(seconds) {
				rt.Fatalf("steps of %d s: %+v over %v s, want %+v over %d s", level.step, got, known, want, seconds)
			}
			for _, s := range r.h.workloads.all {
				r.h.gather(l, ofWorkloads, s, from, from+6000, parts)
			}
			if parts[wOffered] != cells[rOffered] || parts[wAttempts] != cells[rAttempts] || parts[wFailed] != cells[rFailed] || parts[wRefused] != cells[rRefused] {
				rt.Fatalf("steps of %d s: the workloads have %v, the router %v", level.step, parts, cells)
			}
		}
	})
}

// TestQuantiles: from all steps together they are within a bucket of the true ones.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(int64(10*time.Millisecond), int64(600*time.Second)), 1, 200).Draw(rt, "times")
		whole, parts := make([]uint32, buckets), [2][]uint32{make([]uint32, buckets), make([]uint32, buckets)}
		for i, d := range times {
			whole[bucket(time.Duration(d))]++
			parts[i%2][bucket(time.Duration(d))]++
		}
		(&kind{sums: buckets}).merge(parts[0], parts[1])
		if !slices.Equal(whole, parts[0]) {
			rt.Fatal("put together they differ")
		}
		slices.Sort(times)
		for _, q := range []float64{0.5, 0.95} {
			got, ok := quantile(whole, q)
			want := time.Duration(times[int(math.Ceil(q*float64(len(times))))-1]).Seconds()
			if ratio := got / want; !ok || ratio < 1/1.2601 || ratio > 1.2601 {
				rt.Fatalf("%v: %v, want %v", q, got, want)
			}
		}
	})
	for d, want := range map[time.Duration]int{0: 0, 9 * time.Millisecond: 0, 10 * time.Millisecond: 1, time.Hour: buckets - 1} {
		if got := bucket(d); got != want {
			t.Errorf("%v counts in %d, want %d", d, got, want)
		}
	}
}

// TestTotals: what is known of a window is said, and rates are over that.
func TestTotals(t *testing.T) {
	r := newRig()
	r.run(10*time.Minute, func(t *Tally) { good(t, "w", "t"); good(t, "w", "t") })
	got := r.h.Totals(r.now)
	for i, want := range []struct {
		name    string
		offered int64
		known   float64
	}{{"1m", 120, 1}, {"1h", 1200, 1. / 6}, {"24h", 1200, 1. / 144}} {
		w := got.Windows[i]
		if w.Name != want.name || w.Counts.Offered != want.offered || w.Counts.Attempts != want.offered || math.Abs(w.Known-want.known) > 1e-9 || w.PerSecond == nil || w.PerSecond.Offered != 2 {
			t.Errorf("%+v, want %+v", w, want)
		}
	}
	for second := range 70 { // wherever in a step now is, the minute is whole
		now := r.now.Add(-time.Duration(second) * time.Second)
		if w := r.h.Totals(now).Windows[0]; w.Known != 1 || w.Seconds <= 50 || w.Seconds > 60 {
			t.Fatalf("%v: %+v", now, w)
		}
	}
	if w := New().Totals(start).Windows[2]; w.Known != 0 || w.PerSecond != nil {
		t.Errorf("of nothing: %+v", w)
	}
}

// TestClock: a clock that is set back or forward makes neither false rates nor a
// false past: an hour that comes twice has its rate, one that never came is unknown.
func TestClock(t *testing.T) {
	r := newRig()
	once := func(t *Tally) { good(t, "w", "t") }
	r.run(time.Hour, once)
	r.now = r.now.Add(-30 * time.Minute)
	r.run(time.Hour, once) // half of it was there before
	r.now = r.now.Add(time.Hour)
	r.run(10*time.Minute, once)
	a := answer(t, r.h, r.now, Query{From: start, Step: time.Minute})
	for m := range 160 {
		v := at(t, a, "offered", start.Add(time.Duration(m)*time.Minute))
		if gap := m >= 90 && m < 150; gap && v != nil || !gap && !is(v, 1) {
			t.Fatalf("minute %d: %s", m, show(v))
		}
	}
	// Years ahead for a while: what was kept is still there.
	before := r.now
	r.now = r.now.AddDate(3, 0, 0)
	r.run(time.Minute, once)
	r.now = before
	r.run(10*time.Minute, once)
	a = answer(t, r.h, r.now, Query{From: before.Add(-10 * time.Minute), To: r.now})
	known := 0
	for _, v := range a.Series[0].Values {
		if v != nil {
			known++
			if !is(v, 1) {
				t.Fatalf("rate %v", *v)
			}
		}
	}
	if known < 120-6-1 {
		t.Errorf("%d of 120 steps are known", known)
	}
}

// TestLargest: beyond the bound the largest are kept by name, and nothing is lost.
func TestLargest(t *testing.T) {
	r := newRig()
	names := mostWorkloads + 50
	r.run(20*time.Second, func(t *Tally) {
		for i := range names {
			for range 1 + i/10 {
				t.Request(&event.Request{Workload: fmt.Sprintf("w%03d", i)})
			}
		}
	})
	if n := r.h.workloads.names(); n != mostWorkloads {
		t.Errorf("%d are kept by name", n)
	}
	if r.h.workloads.all["w149"] == nil || r.h.workloads.all["w010"] != nil {
		t.Error("the largest are not kept by name")
	}
	r.run(time.Minute, func(t *Tally) { // one of the small becomes large
		for range 500 {
			t.Request(&event.Request{Workload: "w000"})
		}
	})
	if r.h.workloads.all["w000"] == nil || r.h.workloads.names() != mostWorkloads {
		t.Error("who has become large is not kept by name")
	}
	r.run(5*time.Minute, func(t *Tally) { t.Request(&event.Request{Workload: "slow"}) })
	if r.h.workloads.all["slow"] == nil {
		t.Error("who has become large bit by bit is not kept by name")
	}
	if _, err := r.h.Answer(r.now, Query{Subject: "workload:w010"}); err == nil {
		t.Error("who is part of the rest has a past")
	}
	parts, whole := make([]uint32, wWidth), make([]uint32, rWidth)
	for _, s := range r.h.workloads.all {
		r.h.gather(0, ofWorkloads, s, start.Unix(), r.now.Unix(), parts)
	}
	r.h.gather(0, ofRouter, r.h.router, start.Unix(), r.now.Unix(), whole)
	if parts[wOffered] != whole[rOffered] {
		t.Errorf("the parts have %d, the router %d", parts[wOffered], whole[rOffered])
	}
}

// TestGone: a target that is no more has its past, and unknown since; in the end its
// name goes too.
func TestGone(t *testing.T) {
	r := newRig()
	r.run(time.Minute, func(t *Tally) {
		good(t, "w", "old")
		t.Sample(Reading{Targets: []TargetReading{{"old", 1, 2}}})
	})
	r.run(time.Minute, func(t *Tally) { good(t, "w", "new") })
	a := answer(t, r.h, r.now, Query{Subject: "target:old", From: start, To: r.now})
	if v := at(t, a, "breaker", start); !is(v, 2) {
		t.Errorf("then %s", show(v))
	}
	if v, n := at(t, a, "breaker", start.Add(80*time.Second)), at(t, a, "attempts", start.Add(80*time.Second)); v != nil || n != nil {
		t.Errorf("since %s, %s", show(v), show(n))
	}
	r.now = r.now.Add(keep*time.Second + time.Minute)
	r.second(func(t *Tally) { good(t, "w", "new") })
	if r.h.targets.all["old"] != nil {
		t.Error("it is kept for ever")
	}
}

// TestQueries: steps are chosen so that the points stay few, and what is wrong is
// named with what is allowed.
func TestQueries(t *testing.T) {
	r := newRig()
	r.run(time.Minute, func(t *Tally) { good(t, "suite", "a/m") })
	for back, want := range map[time.Duration]int64{0: 10, 2 * time.Hour: 10, 150 * time.Minute: 60, 24 * time.Hour: 120, 25 * time.Hour: 600, 7 * 24 * time.Hour: 1200, 90 * 24 * time.Hour: 1200} {
		q := Query{}
		if back > 0 {
			q.From = r.now.Add(-back)
		}
		a := answer(t, r.h, r.now, q)
		if a.Step != want || len(a.At) > mostPoints || len(a.At) == 0 || len(a.Series) != 12 {
			t.Errorf("%v: %d points of %d s, want %d s", back, len(a.At), a.Step, want)
		}
	}
	for name, c := range map[string]struct {
		q    Query
		want string
	}{
		"order":    {Query{From: r.now, To: r.now.Add(-time.Hour)}, "from: must be before to"},
		"future":   {Query{From: r.now.Add(time.Hour)}, "from: must be before to, and before now"},
		"odd step": {Query{Step: 15 * time.Second}, "step: must be a multiple of 10s"},
		"old step": {Query{From: r.now.Add(-3 * time.Hour), Step: 10 * time.Second}, "step: must be a multiple of 1m0s for what is 3h0m0s old: 10s is kept for 2 hours"},
		"negative": {Query{Step: -10 * time.Second}, "step: must be a multiple"},
		// One point from the beginning of time on is millions of steps to put together.
		"endless step": {Query{Step: time.Duration(r.now.Unix()/10) * 10 * time.Second}, "step: must be at most 168h"},
		"fine step":    {Query{From: r.now.Add(-24 * time.Hour), Step: time.Minute}, "step: 1m0s gives more than 720 points for this stretch; the finest is 2m0s"},
		"series":       {Query{Series: []string{"offerd"}}, `series: "offerd" is not kept of the router; kept are offered, goodput`},
		"of another":   {Query{Series: []string{"breaker"}, Subject: "workload:suite"}, `series: "breaker" is not kept of a workload`},
		"many":         {Query{Series: make([]string, 99)}, "series: there are 12"},
		"subject":      {Query{Subject: "model:m"}, "subject: must be empty for the router, workload:NAME or target:NAME"},
		"no name":      {Query{Subject: "workload:"}, "subject: must be"},
		"near":         {Query{Subject: "workload:suit"}, `subject: nothing is kept of workload "suit"; did you mean workload:suite?`},
		"far":          {Query{Subject: "target:zzzzzzz"}, "there are a/m"},
	} {
		if _, err := r.h.Answer(r.now, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	a := answer(t, r.h, r.now, Query{Series: []string{"first_content_p95", "offered"}})
	if len(a.Series) != 2 || a.Series[0].Name != "first_content_p95" || a.Series[0].Unit != "seconds" || a.Series[1].Unit != "per_second" {
		t.Errorf("%+v", a.Series)
	}
}

// A fact costs no allocation once its names are known.
func TestCost(t *testing.T) {
	tally := NewTally()
	r := &event.Request{Workload: "w", Model: "m", Target: "a/m", Content: time.Second, Attempts: 1}
	a := &event.Attempt{Workload: "w", Target: "a/m"}
	both := func() { tally.Request(r); tally.Attempt(a) }
	both()
	New().Add(start, time.Second, tally)
	if n := testing.AllocsPerRun(1000, both); n > 0 {
		t.Errorf("%v allocations for a request and its call", n)
	}
}

// TestNames: names that nobody made up beforehand stay bounded.
func TestNames(t *testing.T) {
	tally, h := NewTally(), New()
	for i := range 3 * mostNames {
		good(tally, fmt.Sprint("w", i), fmt.Sprint("t", i))
	}
	if len(tally.workloads) > mostNames+1 || len(tally.targets) > mostNames+1 {
		t.Errorf("%d workloads and %d targets are counted", len(tally.workloads), len(tally.targets))
	}
	h.Add(start, time.Second, tally)
	h.Add(start.Add(time.Second), time.Second, tally)
	if len(tally.workloads) > 0 {
		t.Errorf("%d names are held on to", len(tally.workloads))
	}
	if len(h.workloads.outside) > mostNames {
		t.Errorf("%d names are outside", len(h.workloads.outside))
	}
}
