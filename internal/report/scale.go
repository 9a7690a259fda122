package report

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

// maxPoints bounds the points of a line as wide as the page.
const maxPoints = 600

// axis maps values onto a stretch of the drawing.
type axis struct {
	max      float64 // of the values; they begin at 0
	from, to float64 // in the drawing
}

func (a axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*min(max(v/a.max, 0), 1)
}

// tick is a labelled place on an axis.
type tick struct {
	at    float64 // value
	label string
	clock string // of the incident, on the time axis
}

// niceTicks returns about n round values from 0 on, of which the last is at
// least top.
func niceTicks(top float64, n int) []tick {
	if !finite(top) || top <= 0 {
		top = 1
	}
	step := niceStep(top / float64(n))
	var out []tick
	for i := 0; ; i++ {
		v := float64(i) * step
		out = append(out, tick{at: v, label: tickLabel(v)})
		if v >= top*(1-1e-9) || i > 4*n {
			return out
		}
	}
}

func niceStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if v <= m*unit*(1+1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

func tickLabel(v float64) string {
	switch {
	case v >= 1e9:
		return brief(v/1e9) + "G"
	case v >= 1e6:
		return brief(v/1e6) + "M"
	case v >= 1e4:
		return brief(v/1e3) + "k"
	}
	return brief(v)
}

// brief drops the digits that binary fractions add.
func brief(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// clock tells the incident's time at a virtual one.
type clock struct {
	start  time.Time
	factor float64
	length time.Duration
}

func clockOf(r *drill.Result) clock {
	c := clock{start: r.Start, factor: r.Compressed, length: lengthOf(r)}
	if !finite(c.factor) || c.factor <= 0 {
		c.factor = 1
	}
	return c
}

// lengthOf is the scenario's length, or what its series cover, and never 0.
func lengthOf(r *drill.Result) time.Duration {
	if r.Length > 0 {
		return r.Length
	}
	most := time.Duration(0)
	for _, run := range r.Runs {
		for _, s := range run.Workloads {
			most = max(most, time.Duration(len(s.Steps))*run.Step)
		}
		for _, t := range slices.Concat(run.Targets, run.Gateways) {
			most = max(most, time.Duration(len(t.Steps))*run.Step)
		}
	}
	if most <= 0 {
		return time.Second
	}
	return most
}

// known reports that the incident has a time of day.
func (c clock) known() bool { return !c.start.IsZero() }

// when is the incident's time.
func (c clock) when(virtual time.Duration) time.Time {
	ahead := min(max(float64(virtual)*c.factor, math.MinInt64/2), math.MaxInt64/2)
	return c.start.Add(time.Duration(ahead)).UTC()
}

// label is the time of day, with what is needed to tell two ticks apart.
func (c clock) label(virtual time.Duration) string {
	if !c.known() {
		return ""
	}
	span := float64(c.length) * c.factor
	switch {
	case span > float64(36*time.Hour):
		return c.when(virtual).Format("2 Jan 15:04")
	case span < float64(20*time.Minute):
		return c.when(virtual).Format("15:04:05")
	}
	return c.when(virtual).Format("15:04")
}

// timeSteps are the seconds between ticks.
var timeSteps = []float64{
	0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
	3600, 7200, 10800, 21600, 43200, 86400,
}

// ticks returns at most about n round virtual times.
func (c clock) ticks(n int) []tick {
	total := c.length.Seconds()
	step := timeSteps[0]
	for _, s := range timeSteps {
		step = s
		if total/s <= float64(n) {
			break
		}
	}
	for total/step > float64(n) {
		step *= 2
	}
	var out []tick
	for i := 0; float64(i)*step <= total*(1+1e-9); i++ {
		v := float64(i) * step
		out = append(out, tick{at: v, label: brief(v), clock: c.label(time.Duration(v * float64(time.Second)))})
	}
	return out
}

// point is a value at a virtual second; NaN is a hole.
type point struct{ at, v float64 }

// thin keeps the lowest and the highest value of each group of points, so that
// no peak is lost.
func thin(points []point, most int) []point {
	if len(points) <= most {
		return points
	}
	groups := most / 2
	out := make([]point, 0, most)
	for g := range groups {
		part := points[g*len(points)/groups : (g+1)*len(points)/groups]
		low, high := 0, 0
		for i, p := range part {
			if p.v < part[low].v || !finite(part[low].v) {
				low = i
			}
			if p.v > part[high].v || !finite(part[high].v) {
				high = i
			}
		}
		out = append(out, part[min(low, high)])
		if low != high {
			out = append(out, part[max(low, high)])
		}
	}
	return out
}
