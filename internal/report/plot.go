package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

// plot is one small multiple of one contender.
type plot struct {
	key, title, unit string
	lines            []line
	capacity         bool // has a line at 1
}

type line struct {
	name, class string
	area        bool
	points      []point
}

// The sizes of a plot, in the units of its drawing.
const (
	plotWidth, plotBody   = 380.0, 118.0
	plotLeft, plotRight   = 38.0, 14.0
	markHeight, plotFloor = 12.0, 33.0
	plotMarkRows          = 4
	plotPoints            = 300 // of a line, at most
)

// plotsOf lists the small multiples, in the order of a request's way.
func plotsOf(run *drill.Run, c clock) []plot {
	var out []plot
	unit := "a step of " + short(run.Step)
	for _, s := range run.Workloads {
		name := clean(s.Name)
		out = append(out, plot{key: "goodput/" + name, title: name + ": good of offered", unit: "in " + unit, lines: []line{
			{"offered (fresh)", "offered", true, counts(run, c, s, func(n drill.Counts) int { return n.Fresh })},
			{"good", "c0", false, counts(run, c, s, func(n drill.Counts) int { return n.Good })},
		}})
	}
	out = append(out,
		byWorkload(run, c, "inbound", "inbound calls", "calls by clients in "+unit, func(n drill.Counts) int { return n.Inbound }),
		byWorkload(run, c, "upstream", "upstream calls", "calls at targets in "+unit, func(n drill.Counts) int { return n.Upstream }),
		byWorkload(run, c, "refused", "refused", "requests in "+unit, func(n drill.Counts) int { return n.Refused }),
		byWorkload(run, c, "late", "callers that gave up", "requests in "+unit, func(n drill.Counts) int { return n.Late }),
		p99Plot(run, c),
	)
	load := byTarget(run, c, "load", "load of the targets", "share of capacity, with refusals", func(t drill.TargetStep) float64 { return t.Load })
	load.capacity = true
	return append(out, load,
		byTarget(run, c, "inflight", "in flight", "calls, most at once", func(t drill.TargetStep) float64 { return float64(t.InFlight) }),
		statusPlot(run, c, unit),
		byWorkload(run, c, "wrong", "wrong answers", "well-formed, in "+unit, func(n drill.Counts) int { return n.Wrong }),
	)
}

// optional plots are left out where no contender has anything in them.
var optional = []string{"status", "wrong", stripMemory, stripProbes}

// shown reports that a plot has something to say, for any contender.
func (p plot) shown(top map[string]float64) bool {
	return !slices.Contains(optional, p.key) || top[p.key] > 0
}

// statusPlot has a line for each status but 200 that a last reply had, the most
// frequent ones.
func statusPlot(run *drill.Run, c clock, unit string) plot {
	p := plot{key: "status", title: "last replies other than 200", unit: "by status, in " + unit}
	var list []int
	for status := range run.Totals.Status {
		if status != 200 {
			list = append(list, status)
		}
	}
	slices.SortFunc(list, func(a, b int) int {
		return cmp.Or(run.Totals.Status[b]-run.Totals.Status[a], a-b)
	})
	for i, status := range list[:min(len(list), 6)] {
		steps := 0
		for _, s := range run.Workloads {
			steps = max(steps, len(s.Steps))
		}
		p.lines = append(p.lines, line{fmt.Sprint(status), colour(i), false, series(run, c, steps, func(k int) float64 {
			return float64(together(run, k).Status[status])
		})})
	}
	return p
}

// The keys of the strips below the timeline.
const (
	stripFlow   = "strip/flow"
	stripMemory = "strip/memory"
	stripProbes = "strip/probes"
	mostPlaces  = 6 // with a line of their own
)

// stripsOf are the curves that share the timeline's axis.
func stripsOf(run *drill.Run, c clock) []plot {
	steps := 0
	for _, s := range run.Workloads {
		steps = max(steps, len(s.Steps))
	}
	rate := max(stepOf(run, steps, c).Seconds(), 1e-9)
	flow := func(name, class string, area bool, of func(drill.Counts) int) line {
		return line{name, class, area, series(run, c, steps, func(i int) float64 { return float64(of(together(run, i))) / rate })}
	}
	memory := plot{key: stripMemory, title: "memory", unit: "share of the bound, most in a step", capacity: true}
	if n := len(run.Gateways); n > mostPlaces {
		memory.lines = append(memory.lines, fullest(run, c))
	} else {
		memory.places(run, c, run.Gateways, func(s drill.TargetStep) float64 { return s.Memory })
	}
	memory.places(run, c, run.Targets, func(s drill.TargetStep) float64 { return s.Memory })
	probes := plot{key: stripProbes, title: "probes", unit: "calls at once at a half-open target"}
	probes.places(run, c, run.Targets, func(s drill.TargetStep) float64 { return float64(s.Probing) })
	return []plot{{key: stripFlow, title: "requests and calls", unit: "a second", lines: []line{
		flow("offered", "offered", true, func(n drill.Counts) int { return n.Fresh }),
		flow("good", "c2", false, func(n drill.Counts) int { return n.Good }),
		flow("attempts at targets", "c0", false, func(n drill.Counts) int { return n.Upstream }),
		flow("refused", "c1", false, func(n drill.Counts) int { return n.Refused }),
	}}, memory, probes}
}

// together is one step of all workloads.
func together(run *drill.Run, i int) (sum drill.Counts) {
	for _, s := range run.Workloads {
		if i >= len(s.Steps) {
			continue
		}
		n := s.Steps[i]
		sum.Fresh, sum.Good, sum.Upstream, sum.Refused = sum.Fresh+n.Fresh, sum.Good+n.Good, sum.Upstream+n.Upstream, sum.Refused+n.Refused
		for status, k := range n.Status {
			if sum.Status == nil {
				sum.Status = map[int]int{}
			}
			sum.Status[status] += k
		}
	}
	return sum
}

// places adds a line for each place that has anything to show.
func (p *plot) places(run *drill.Run, c clock, list []drill.TargetRun, of func(drill.TargetStep) float64) {
	for _, t := range list {
		l := line{clean(t.Name), colour(len(p.lines)), false, series(run, c, len(t.Steps), func(i int) float64 { return of(t.Steps[i]) })}
		if l.peak() > 0 {
			p.lines = append(p.lines, l)
		}
	}
}

// fullest is the memory of that instance which has the least room in a step.
func fullest(run *drill.Run, c clock) line {
	steps := 0
	for _, g := range run.Gateways {
		steps = max(steps, len(g.Steps))
	}
	return line{fmt.Sprintf("fullest of %d instances", len(run.Gateways)), colour(0), false, series(run, c, steps, func(i int) float64 {
		most := 0.0
		for _, g := range run.Gateways {
			if i < len(g.Steps) {
				most = max(most, g.Steps[i].Memory)
			}
		}
		return most
	})}
}

func counts(run *drill.Run, c clock, s drill.Series, of func(drill.Counts) int) []point {
	return series(run, c, len(s.Steps), func(i int) float64 { return float64(of(s.Steps[i])) })
}

// series puts each value in the middle of its step. The last step is left out
// when most of it lies behind the end.
func series(run *drill.Run, c clock, n int, of func(int) float64) []point {
	step := stepOf(run, n, c).Seconds()
	if n > 1 && (float64(n)-0.5)*step > c.length.Seconds() {
		n--
	}
	out := make([]point, n)
	for i := range out {
		out[i] = point{(float64(i) + 0.5) * step, of(i)}
	}
	return out
}

// stepOf is the length of a step, also where the run does not tell.
func stepOf(run *drill.Run, n int, c clock) time.Duration {
	if run.Step > 0 || n == 0 {
		return run.Step
	}
	return c.length / time.Duration(n)
}

func byWorkload(run *drill.Run, c clock, key, title, unit string, of func(drill.Counts) int) plot {
	p := plot{key: key, title: title, unit: unit}
	for i, s := range run.Workloads {
		p.lines = append(p.lines, line{clean(s.Name), colour(i), false, counts(run, c, s, of)})
	}
	return p
}

// p99Plot has a hole where no answer was good.
func p99Plot(run *drill.Run, c clock) plot {
	p := plot{key: "p99", title: "p99 of good answers", unit: "seconds, by begin of request"}
	for i, s := range run.Workloads {
		p.lines = append(p.lines, line{clean(s.Name), colour(i), false, series(run, c, len(s.P99), func(k int) float64 {
			if s.P99[k] <= 0 {
				return math.NaN()
			}
			return s.P99[k] / 1000
		})})
	}
	return p
}

func byTarget(run *drill.Run, c clock, key, title, unit string, of func(drill.TargetStep) float64) plot {
	p := plot{key: key, title: title, unit: unit}
	for i, t := range run.Targets {
		p.lines = append(p.lines, line{clean(t.Name), colour(i), false, series(run, c, len(t.Steps), func(k int) float64 { return of(t.Steps[k]) })})
	}
	return p
}

// colour is the class of the i-th line; the style sheet has six, and the same
// ones dashed and dotted.
func colour(i int) string {
	return fmt.Sprintf("c%d%s", i%6, []string{"", " dashed", " dotted"}[i/6%3])
}

func (l line) peak() float64 {
	top := 0.0
	for _, p := range l.points {
		if finite(p.v) {
			top = max(top, p.v)
		}
	}
	return top
}

// tops are the highest values by plot, over all contenders: the same plot has
// the same scale.
func tops(r *drill.Result, c clock) map[string]float64 {
	out := map[string]float64{}
	for i := range r.Runs {
		for _, p := range slices.Concat(plotsOf(&r.Runs[i], c), stripsOf(&r.Runs[i], c)) {
			for _, l := range p.lines {
				out[p.key] = max(out[p.key], l.peak())
			}
			if p.capacity && p.shown(out) {
				out[p.key] = max(out[p.key], 1)
			}
		}
	}
	return out
}

// plotView is a plot as the page has it.
type plotView struct {
	Title, Unit string
	Keys        []keyView
	Drawing     drawing
}

// keyView is a line in the legend.
type keyView struct{ Class, Name, Peak string }

func (p plot) view(id string, c clock, marks []drill.Mark, top float64) plotView {
	v := plotView{Title: p.title, Unit: p.unit}
	ticks := niceTicks(top, 5)
	x := axis{c.length.Seconds(), plotLeft, plotWidth - plotRight}
	at, numbers := make([]float64, 0, len(marks)), make([]string, 0, len(marks))
	for i, m := range marks {
		if m.At >= 0 && m.At <= c.length {
			at, numbers = append(at, x.at(m.At.Seconds())), append(numbers, fmt.Sprint(i+1))
		}
	}
	flags := stagger(at, numbers, plotWidth, plotMarkRows)
	above := 4 + markHeight*float64(rowsOf(flags))
	y := axis{ticks[len(ticks)-1].at, above + plotBody, above}
	d := drawing{ID: id, Title: p.title, W: plotWidth, H: y.from + plotFloor}
	d.timeAxis(c, x, y.to, y.from, 5)
	for _, t := range ticks {
		d.rule(x.from, y.at(t.at), x.to, y.at(t.at), "grid")
		d.label(x.from-5, y.at(t.at)+4, "value", "end", t.label)
	}
	d.marks(flags, markHeight, y.from)
	if p.capacity {
		d.rule(x.from, y.at(1), x.to, y.at(1), "capacity")
	}
	v.Keys = d.curves(p, x, y, plotPoints)
	var said []string
	for _, key := range v.Keys {
		if key.Peak != "" {
			said = append(said, key.Name+" at most "+key.Peak)
		}
	}
	d.Desc = strings.Join(append(said, p.unit, "over "+short(c.length)+" virtual"), "; ")
	v.Drawing = d
	return v
}

// curves draws a plot's lines and returns their legend.
func (d *drawing) curves(p plot, x, y axis, most int) []keyView {
	var keys []keyView
	if p.capacity {
		keys = append(keys, keyView{"capacity", p.bound(), ""})
	}
	for _, l := range p.lines {
		points := thin(l.points, most)
		if l.area {
			d.area(points, x, y, l.class+" fill")
		}
		d.line(points, x, y, l.class)
		keys = append(keys, keyView{l.class, l.name, value(l.peak())})
	}
	return keys
}

// bound names the line at 1.
func (p plot) bound() string {
	if p.key == stripMemory {
		return "bound"
	}
	return "capacity"
}

// value writes whole numbers whole.
func value(v float64) string {
	if v == math.Trunc(v) && v < math.MaxInt32 {
		return count(int(v))
	}
	return trim3(v)
}

// inOrder are the marks by time.
func inOrder(marks []drill.Mark) []drill.Mark {
	out := slices.Clone(marks)
	slices.SortStableFunc(out, func(a, b drill.Mark) int { return int(min(max(a.At-b.At, -1*time.Nanosecond), 1)) })
	return out
}
