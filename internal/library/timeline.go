package library

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/incident"
)

// The drawing of a timeline, in its own units; a page scales it as a whole.
const (
	drawnWidth = 760
	drawnEdge  = 34 // left and right of the scale
	labelRoom  = 50 // from label to label
	axisY      = 84
	scaleY     = 178
	aboveY     = 24  // first line of a label above the axis
	belowY     = 128 // and below
	leaderUp   = 46  // where a label's line begins, above
	leaderDown = 114 // and below
)

// drawing is a timeline to scale: marks where they belong on the axis, each
// with a line to its label, which is moved aside as far as it must be.
type drawing struct {
	Width, Height, AxisY, ScaleY int
	Impact, Calm                 *band // nil for none
	Marks                        []mark
	Ticks                        []tick
	Breaks                       []float64 // where the axis is not to scale
	Legend                       []legend
}

type band struct{ X, W float64 }

type mark struct {
	N             int    // number in the list of moments, 0 for none
	Kind          string // moment, detected or ended
	X, LabelX     float64
	Up            bool
	Clock, Day    string
	LabelY, LeadY int
	ClockY, DayY  int
	at            time.Time
}

type tick struct {
	X     float64
	Label string
}

type legend struct{ Kind, Text string }

// instant reads a time of a record.
func instant(s string) (t time.Time, clock, ok bool) {
	if t, err := time.Parse("2006-01-02T15:04Z", s); err == nil {
		return t, true, true
	}
	t, err := time.Parse("2006-01-02", s)
	return t, false, err == nil
}

// draw draws a record's timeline, nil when there are not two times to tell apart.
func draw(r *incident.Record) *drawing {
	marks := moments(r)
	first, last := marksSpan(r, marks)
	if len(marks) < 2 || !last.After(first) {
		return nil
	}
	d := &drawing{Width: drawnWidth, Height: scaleY + 26, AxisY: axisY, ScaleY: scaleY}
	from, to := scaled(r, first, last)
	low, high := d.breaks(marks, from, to)
	at := func(t time.Time) float64 { return low + (high-low)*float64(t.Sub(from))/float64(to.Sub(from)) }
	for i := range marks {
		if marks[i].X == 0 { // it is not beyond the scale
			marks[i].X = at(marks[i].at)
		}
	}
	d.Marks = marks
	d.place()
	days := last.Sub(first) > 24*time.Hour || first.YearDay() != last.YearDay()
	for i := range d.Marks {
		if d.Marks[i].Day != "" && !days && d.Marks[i].Clock != "" {
			d.Marks[i].Day = ""
		}
	}
	d.Ticks = ticks(from, to, at)
	d.bands(r, at)
	d.legend()
	return d
}

// scaled is the time that is drawn to scale: all of it, or the impact and as
// much before and after when what else there is would squeeze it.
func scaled(r *incident.Record, first, last time.Time) (from, to time.Time) {
	start, clock1, ok1 := instant(r.Start)
	end, clock2, ok2 := instant(r.End)
	length := end.Sub(start)
	if !ok1 || !ok2 || !clock1 || !clock2 || length <= 0 || last.Sub(first) < squeezed*length {
		return first, last
	}
	if from = start.Add(-length / 2); from.Before(first) {
		from = first
	}
	if to = end.Add(length / 2); to.After(last) {
		to = last
	}
	return from, to
}

// squeezed is how many times the impact a timeline may last before it is broken.
const squeezed = 5

// breaks places what is beyond the scale at its edges, in order, with breaks
// of the axis, and returns where the scale is.
func (d *drawing) breaks(marks []mark, from, to time.Time) (low, high float64) {
	low, high = drawnEdge, drawnWidth-drawnEdge
	var before, after []*mark
	for i := range marks {
		switch m := &marks[i]; {
		case m.at.Before(from):
			before = append(before, m)
		case m.at.After(to):
			after = append(after, m)
		}
	}
	if n := len(before); n > 0 {
		for i, m := range before {
			m.X = low + beyondRoom*float64(i)/float64(n)
		}
		low += beyondRoom + 2*breakRoom
		d.Breaks = append(d.Breaks, low-breakRoom-beyondRoom/float64(2*n))
	}
	if n := len(after); n > 0 {
		for i, m := range after {
			m.X = high - beyondRoom*float64(n-1-i)/float64(n)
		}
		high -= beyondRoom + 2*breakRoom
		d.Breaks = append(d.Breaks, high+breakRoom+beyondRoom/float64(2*n))
	}
	return low, high
}

// The room beside a broken scale.
const (
	beyondRoom = 60
	breakRoom  = 16
)

// moments are the marks of a record in order, without their places.
func moments(r *incident.Record) []mark {
	var marks []mark
	detected, known := detection(r)
	end, _, ends := instant(r.End)
	for i, m := range r.Timeline {
		t, clock, ok := instant(m.At)
		if !ok {
			continue
		}
		k := mark{N: i + 1, Kind: "moment", at: t, Day: t.Format("2 Jan")}
		if clock {
			k.Clock = t.Format("15:04")
		}
		switch {
		case known && t.Equal(detected):
			k.Kind = "detected"
		case ends && t.Equal(end):
			k.Kind = "ended"
		}
		marks = append(marks, k)
	}
	has := func(kind string) bool {
		return slices.ContainsFunc(marks, func(m mark) bool { return m.Kind == kind })
	}
	if known && !has("detected") {
		marks = append(marks, mark{Kind: "detected", at: detected, Clock: detected.Format("15:04"), Day: detected.Format("2 Jan")})
	}
	if ends && !has("ended") && len(r.End) > len("2006-01-02") {
		marks = append(marks, mark{Kind: "ended", at: end, Clock: end.Format("15:04"), Day: end.Format("2 Jan")})
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return a.at.Compare(b.at) })
	return marks
}

// detection is when the incident was noticed, as far as it is known to the minute.
func detection(r *incident.Record) (time.Time, bool) {
	start, clock, ok := instant(r.Start)
	if !ok || !clock || r.TimeToDetect == nil {
		return time.Time{}, false
	}
	return start.Add(time.Duration(*r.TimeToDetect) * time.Minute), true
}

// marksSpan is the time from the first to the last thing that is drawn.
func marksSpan(r *incident.Record, marks []mark) (from, to time.Time) {
	var all []time.Time
	for _, m := range marks {
		all = append(all, m.at)
	}
	for _, s := range []string{r.Start, r.End} {
		if t, _, ok := instant(s); ok {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return from, to
	}
	return slices.MinFunc(all, time.Time.Compare), slices.MaxFunc(all, time.Time.Compare)
}

// place gives every second mark a label above the axis, the others one below,
// none over another.
func (d *drawing) place() {
	for side := range 2 {
		var xs []float64
		for i := side; i < len(d.Marks); i += 2 {
			xs = append(xs, d.Marks[i].X)
		}
		xs = spread(xs, drawnEdge-8, drawnWidth-drawnEdge+8, labelRoom)
		for i := side; i < len(d.Marks); i += 2 {
			m := &d.Marks[i]
			m.LabelX, m.Up = xs[i/2], side == 0
			m.LabelY, m.LeadY = belowY, leaderDown
			if m.Up {
				m.LabelY, m.LeadY = aboveY-10, leaderUp
			}
			m.ClockY, m.DayY = m.LabelY+13, m.LabelY+26
		}
	}
}

// spread moves ordered places apart until each is room from the next, within
// bounds and as little as it can. Where there is not enough room, all have the
// same.
func spread(xs []float64, low, high, room float64) []float64 {
	if n := len(xs); n > 1 {
		room = min(room, (high-low)/float64(n-1))
	}
	type group struct {
		sum  float64 // of where its members want the group's first to be
		n    int
		left float64
	}
	var groups []group
	settle := func(g group) group {
		g.left = min(max(g.sum/float64(g.n), low), high-room*float64(g.n-1))
		return g
	}
	for _, x := range xs {
		groups = append(groups, settle(group{sum: x, n: 1}))
		for len(groups) > 1 {
			a, b := groups[len(groups)-2], groups[len(groups)-1]
			if a.left+room*float64(a.n) <= b.left+1e-9 {
				break
			}
			joined := group{sum: a.sum + b.sum - room*float64(a.n*b.n), n: a.n + b.n}
			groups = append(groups[:len(groups)-2], settle(joined))
		}
	}
	out := make([]float64, 0, len(xs))
	for _, g := range groups {
		for i := range g.n {
			out = append(out, g.left+room*float64(i))
		}
	}
	return out
}

const day = 24 * time.Hour

// steps are the distances of ticks that one reads well.
var steps = []time.Duration{
	time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 182 * day, 365 * day,
}

// mostTicks bounds the ticks of a scale.
const mostTicks = 8

func ticks(from, to time.Time, at func(time.Time) float64) []tick {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if to.Sub(from)/s < mostTicks {
			step = s
			break
		}
	}
	layout := "15:04"
	if step >= day {
		layout = "2 Jan"
	}
	var list []tick
	for t := from.Truncate(min(step, day)); !t.After(to) && len(list) <= 2*mostTicks; t = t.Add(step) {
		if t.Before(from) {
			continue
		}
		label := t.Format(layout)
		if step < day && t.Hour() == 0 && t.Minute() == 0 {
			label = t.Format("2 Jan")
		}
		list = append(list, tick{at(t), label})
	}
	return list
}

// bands marks the impact, and the time in which it seemed to be over.
func (d *drawing) bands(r *incident.Record, at func(time.Time) float64) {
	start, _, ok1 := instant(r.Start)
	end, _, ok2 := instant(r.End)
	if ok1 && ok2 && end.After(start) {
		d.Impact = &band{at(start), math.Max(2, at(end)-at(start))}
	}
	if from, to, ok := falseRecovery(r); ok {
		d.Calm = &band{at(from), at(to) - at(from)}
	}
}

// falseRecovery is between the two moments that are as far apart as the
// record's figure says and that the figure's claim names, when only two are.
func falseRecovery(r *incident.Record) (from, to time.Time, ok bool) {
	i := slices.IndexFunc(r.Figures, func(f incident.Figure) bool { return f.Name == "false_recovery" && f.Unit == "minutes" })
	if i < 0 {
		return from, to, false
	}
	claim := slices.IndexFunc(r.Claims, func(c incident.Claim) bool { return c.ID == r.Figures[i].Claim })
	if claim < 0 {
		return from, to, false
	}
	said := r.Claims[claim].Text + " " + r.Claims[claim].Basis
	var named []time.Time
	for _, m := range r.Timeline {
		if t, clock, ok := instant(m.At); ok && clock && strings.Contains(said, t.Format("15:04")) {
			named = append(named, t)
		}
	}
	if len(named) != 2 || named[1].Sub(named[0]) != time.Duration(r.Figures[i].Value*float64(time.Minute)) {
		return from, to, false
	}
	return named[0], named[1], true
}

func (d *drawing) legend() {
	if d.Impact != nil {
		d.Legend = append(d.Legend, legend{"impact", "impact"})
	}
	if d.Calm != nil {
		d.Legend = append(d.Legend, legend{"calm", "seemed recovered"})
	}
	for _, l := range []legend{{"detected", "detected"}, {"ended", "ended"}, {"moment", "other moment"}} {
		if slices.ContainsFunc(d.Marks, func(m mark) bool { return m.Kind == l.Kind }) {
			d.Legend = append(d.Legend, l)
		}
	}
	if len(d.Breaks) > 0 {
		d.Legend = append(d.Legend, legend{"break", "beyond the break: not to scale"})
	}
}

// Says is the drawing in words, for who does not see it.
func (d *drawing) Says() string {
	var parts []string
	for _, m := range d.Marks {
		what := ""
		if m.Kind != "moment" {
			what = " (" + m.Kind + ")"
		}
		parts = append(parts, strings.TrimSpace(m.Day+" "+m.Clock)+what)
	}
	return fmt.Sprintf("Timeline to scale: %s.", strings.Join(parts, ", "))
}

// Diamond are the corners of a mark for the detection.
func (m mark) Diamond() string {
	return fmt.Sprintf("%.1f,%d %.1f,%d %.1f,%d %.1f,%d", m.X, axisY-8, m.X+8, axisY, m.X, axisY+8, m.X-8, axisY)
}

// Numbered is the label's first line.
func (m mark) Numbered() string {
	switch {
	case m.N == 0 && m.Kind == "detected":
		return "◆"
	case m.N == 0:
		return "■"
	}
	return fmt.Sprint(m.N)
}
