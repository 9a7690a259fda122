package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/spelling"
)

// mostPoints bounds an answer.
const mostPoints = 720

// steps are those that are chosen from, in seconds.
var steps = []int64{10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400}

// line is how a series comes from what is kept.
type line struct {
	name, unit string
	// of returns the value of some time, of which so many seconds are known; ok is
	// false where there is none.
	of func(cells []uint32, seconds float64) (v float64, ok bool)
}

func perSecond(name string, column int) line {
	return line{name, "per_second", func(c []uint32, seconds float64) (float64, bool) { return float64(c[column]) / seconds, true }}
}

func gauge(name, unit string, column int, factor float64) line {
	return line{name, unit, func(c []uint32, _ float64) (float64, bool) {
		return (float64(c[column]) - 1) * factor, c[column] > 0
	}}
}

func content(name string, q float64) line {
	return line{name, "seconds", func(c []uint32, _ float64) (float64, bool) { return quantile(c[rContent:rContent+buckets], q) }}
}

var lines = map[*kind][]line{
	ofRouter: {
		perSecond("offered", rOffered), perSecond("goodput", rGoodput), perSecond("attempts", rAttempts),
		perSecond("refused", rRefused), perSecond("degraded", rDegraded), perSecond("failed", rFailed),
		gauge("in_flight", "count", rInFlight, 1), gauge("queued", "count", rQueued, 1), gauge("memory", "bytes", rMemory, 1024),
		gauge("outages", "count", rOutages, 1), content("first_content_p50", 0.5), content("first_content_p95", 0.95),
	},
	ofWorkloads: {
		perSecond("offered", wOffered), perSecond("goodput", wGoodput), perSecond("attempts", wAttempts),
		perSecond("refused", wRefused), perSecond("degraded", wDegraded), perSecond("failed", wFailed),
		{"amplification_in", "ratio", func(c []uint32, _ float64) (float64, bool) {
			return float64(c[wOffered]) / float64(max(1, int64(c[wOffered])-int64(c[wExcess]))), c[wOffered] > 0
		}},
		{"amplification_out", "ratio", func(c []uint32, _ float64) (float64, bool) {
			return float64(c[wAttempts]) / float64(max(1, c[wOffered])), c[wOffered] > 0
		}},
	},
	ofTargets: {
		perSecond("attempts", tAttempts), perSecond("failed", tFailed),
		gauge("in_flight", "count", tInFlight, 1), gauge("breaker", "count", tBreaker, 1),
	},
}

// plan is a query made out: which slots make which points.
type plan struct {
	level       int
	step        int64 // seconds
	first, last int64 // steps
	kind        *kind
	subject     *subject
	lines       []line
}

// Answer gives a stretch of the past. The error names the parameter that is wrong
// (from, to, step, series, subject) and what is allowed.
func (h *History) Answer(now time.Time, q Query) (Answer, error) {
	p, err := h.plan(now, q)
	if err != nil {
		return Answer{}, err
	}
	n := max(0, int(p.last-p.first+1))
	a := Answer{Step: p.step, At: make([]int64, n), Series: make([]Series, len(p.lines))}
	for i, l := range p.lines {
		a.Series[i] = Series{Name: l.name, Subject: q.Subject, Unit: l.unit, Values: make([]*float64, n)}
	}
	cells := make([]uint32, p.kind.width)
	for i := range n {
		step := p.first + int64(i)
		a.At[i] = step * p.step
		clear(cells)
		seconds := h.gather(p.level, p.kind, p.subject, step*p.step, (step+1)*p.step, cells)
		if seconds == 0 || p.kind != ofRouter && empty(cells) {
			continue // the router was down, or the subject not there
		}
		for j, l := range p.lines {
			if v, ok := l.of(cells, seconds); ok {
				a.Series[j].Values[i] = &v
			}
		}
	}
	return a, nil
}

// gather puts the slots of a time together, from Unix second to before another, and
// returns how many seconds of it are known.
func (h *History) gather(level int, k *kind, s *subject, from, to int64, into []uint32) float64 {
	ms := int64(0)
	for at := from; at < to; at += levels[level].step {
		step := floor(at, levels[level].step)
		i := place(level, step)
		if one := h.slots[level][i]; one.step == step && one.covered > 0 {
			ms += one.covered
			k.merge(into, s.row(k, level, i))
		}
	}
	return float64(ms) / 1000
}

func (h *History) plan(now time.Time, q Query) (plan, error) {
	var p plan
	if err := p.subjects(h, q); err != nil {
		return p, err
	}
	to, from := q.To, q.From
	if to.IsZero() || to.After(now) {
		to = now
	}
	if from.IsZero() {
		from = to.Add(-time.Hour)
	}
	end, begin := to.Unix(), from.Unix()
	if begin >= end {
		return p, fmt.Errorf("from: must be before to, and before now, which is %s", now.UTC().Format(time.RFC3339))
	}
	oldest := now.Unix() - keep
	begin, end = max(begin, oldest), max(end, oldest+1)
	for p.level < len(levels)-1 && begin < now.Unix()-levels[p.level].step*levels[p.level].slots {
		p.level++
	}
	base := levels[p.level].step
	if q.Step < 0 || q.Step%time.Second != 0 || int64(q.Step/time.Second)%base != 0 {
		return p, fmt.Errorf("step: must be a multiple of %s for what is %s old: 10s is kept for 2 hours, 1m for 24 hours, 10m for 7 days", time.Duration(base)*time.Second, age(now.Unix()-begin))
	}
	if q.Step > keep*time.Second { // each step is put together from all that it covers, kept or not
		return p, fmt.Errorf("step: must be at most 168h, as long as anything is kept")
	}
	if p.step = int64(q.Step / time.Second); p.step == 0 {
		p.step = choose(base, end-begin)
	}
	p.first, p.last = -floor(-begin, p.step), floor(end-1, p.step)
	if p.last-p.first >= mostPoints {
		return p, fmt.Errorf("step: %s gives more than %d points for this stretch; the finest is %s", time.Duration(p.step)*time.Second, mostPoints, time.Duration(choose(base, end-begin))*time.Second)
	}
	return p, nil
}

// choose is the finest step with no more than the most points, from a level's on.
func choose(base, length int64) int64 {
	for _, s := range steps {
		if s >= base && s%base == 0 && length <= s*mostPoints {
			return s
		}
	}
	return steps[len(steps)-1]
}

func age(seconds int64) time.Duration {
	return (time.Duration(seconds) * time.Second).Round(time.Minute)
}

// subjects finds whose past is asked for, and which of its series.
func (p *plan) subjects(h *History, q Query) error {
	k, name, ok := parse(q.Subject)
	if !ok {
		return fmt.Errorf("subject: must be empty for the router, workload:NAME or target:NAME")
	}
	if p.kind, p.subject = k, h.router; k != ofRouter {
		all := h.workloads.all
		if k == ofTargets {
			all = h.targets.all
		}
		if p.subject = all[name]; p.subject == nil {
			return missing(k, name, all)
		}
	}
	if len(q.Series) == 0 {
		p.lines = lines[k]
		return nil
	}
	if len(q.Series) > len(lines[k]) {
		return fmt.Errorf("series: there are %d; name each once", len(lines[k]))
	}
	for _, want := range q.Series {
		i := slices.IndexFunc(lines[k], func(l line) bool { return l.name == want })
		if i < 0 {
			var names []string
			for _, l := range lines[k] {
				names = append(names, l.name)
			}
			return fmt.Errorf("series: %.60q is not kept of %s; kept are %s", want, called(k), strings.Join(names, ", "))
		}
		p.lines = append(p.lines, lines[k][i])
	}
	return nil
}

func called(k *kind) string {
	if k == ofRouter {
		return "the router"
	}
	return "a " + strings.TrimSuffix(k.prefix, ":")
}

func missing(k *kind, name string, all map[string]*subject) error {
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := "nothing is kept of any yet"
	switch near := spelling.Nearest(name, names); {
	case near != "":
		hint = "did you mean " + k.prefix + near + "?"
	case all[Other] != nil:
		hint = "it may be part of " + k.prefix + Other
	case len(names) > 0:
		hint = "there are " + strings.Join(names[:min(8, len(names))], ", ")
		if len(names) > 8 {
			hint += " and others"
		}
	}
	return fmt.Errorf("subject: nothing is kept of %s %.60q; %s", strings.TrimSuffix(k.prefix, ":"), name, hint)
}

// Totals sums the last minute, hour and day. A window begins with a step, so that it
// may be up to 10 s shorter than its name, the day up to a minute.
func (h *History) Totals(now time.Time) Totals {
	t := Totals{At: now}
	for _, w := range []struct {
		name    string
		seconds int64
		level   int
	}{{"1m", 60, 0}, {"1h", 3600, 0}, {"24h", 86400, 1}} {
		end, step := now.Unix(), levels[w.level].step
		begin := -floor(w.seconds-end, step) * step
		cells := make([]uint32, rWidth)
		known := h.gather(w.level, ofRouter, h.router, begin, end+1, cells)
		one := Window{Name: w.name, Seconds: end - begin, Counts: sums(cells)}
		if known > 0 {
			one.Known = math.Min(1, known/float64(one.Seconds))
			one.PerSecond = one.Counts.per(known)
		}
		t.Windows = append(t.Windows, one)
	}
	return t
}

func sums(c []uint32) Sums {
	return Sums{
		Offered: int64(c[rOffered]), Goodput: int64(c[rGoodput]), Attempts: int64(c[rAttempts]),
		Refused: int64(c[rRefused]), Degraded: int64(c[rDegraded]), Failed: int64(c[rFailed]),
	}
}

func (s Sums) per(seconds float64) *Rates {
	r := func(n int64) float64 { return float64(n) / seconds }
	return &Rates{Offered: r(s.Offered), Goodput: r(s.Goodput), Attempts: r(s.Attempts), Refused: r(s.Refused), Degraded: r(s.Degraded), Failed: r(s.Failed)}
}
