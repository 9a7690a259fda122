package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

// The sizes of the timeline, in the units of its drawing.
const (
	bandWidth, bandLeft, bandRight = 1080.0, 150.0, 16.0
	bandHeight, downHeight         = 15.0, 6.0
	bandGap                        = 7.0
	bandMarkRows                   = 12
	stripHeight, stripGap          = 92.0, 28.0
	maxSpans                       = 500 // in one row
)

// span is a stretch of virtual time in one state.
type span struct {
	from, to   time.Duration
	class, tip string
	name       string
}

// phaseRank orders the phases; of those that share a place in a thinned row
// the worst is shown.
var phaseRank = map[string]int{"closed": 1, "ramp": 2, "half-open": 3, "open": 4}

func phaseClass(phase string) string {
	if phaseRank[phase] == 0 {
		return "phase other"
	}
	return "phase " + phase
}

// phases turns moves into spans; before the first move a breaker is closed.
func phases(moves []drill.Move, length time.Duration) []span {
	if len(moves) == 0 {
		return nil
	}
	moves = slices.Clone(moves)
	slices.SortStableFunc(moves, func(a, b drill.Move) int { return int(min(max(a.At-b.At, -1), 1)) })
	out := []span{{to: length, class: phaseClass("closed"), name: "closed"}}
	for _, m := range moves {
		at := min(max(m.At, 0), length)
		out[len(out)-1].to = at
		out = append(out, span{from: at, to: length, class: phaseClass(m.To), name: clean(m.To), tip: clean(m.Reason)})
	}
	return squeeze(slices.DeleteFunc(out, func(s span) bool { return s.to <= s.from }), length)
}

// squeeze bounds the spans of a row: in each of maxSpans columns the worst
// phase stands for all.
func squeeze(spans []span, length time.Duration) []span {
	if len(spans) <= maxSpans {
		return spans
	}
	var out []span
	i := 0
	for col := range maxSpans {
		from := time.Duration(float64(length) * float64(col) / maxSpans)
		to := time.Duration(float64(length) * float64(col+1) / maxSpans)
		for i > 0 && spans[i].from > from {
			i--
		}
		worst := spans[i]
		for ; i < len(spans)-1 && spans[i].to <= to; i++ {
			if phaseRank[spans[i+1].name] > phaseRank[worst.name] && spans[i+1].from < to {
				worst = spans[i+1]
			}
		}
		worst.tip = ""
		if n := len(out); n > 0 && out[n-1].name == worst.name {
			out[n-1].to = to
			continue
		}
		worst.from, worst.to = from, to
		out = append(out, worst)
	}
	return out
}

// downs are the stretches in which a target was down; of very many steps,
// stretches that the eye could not part are one.
func downs(t drill.TargetRun, step, length time.Duration) []span {
	var out []span
	gap := time.Duration(0)
	if len(t.Steps) > maxSpans {
		gap = length / maxSpans
	}
	for i, s := range t.Steps {
		if !s.Down {
			continue
		}
		from, to := time.Duration(i)*step, time.Duration(i+1)*step
		if n := len(out); n > 0 && from-out[n-1].to <= gap {
			out[n-1].to = to
			continue
		}
		out = append(out, span{from: from, to: to, class: "down", name: "down"})
	}
	return out
}

// timelineView is the drawing and the legends of its strips.
type timelineView struct {
	Drawing drawing
	Strips  []stripView
}

type stripView struct {
	Title, Unit string
	Keys        []keyView
}

// timeline draws the marks with their texts above a row for each target: the
// phases of its breaker, and below them the times it was down; a row for each
// instance of the gateway; and the strips.
func timeline(id string, run *drill.Run, c clock, list []drill.Mark, tops map[string]float64) timelineView {
	var v timelineView
	d := drawing{ID: id, Title: "what happened, and the breakers of " + nameOf(run), W: bandWidth}
	x := axis{c.length.Seconds(), bandLeft, bandWidth - bandRight}
	at, texts := make([]float64, 0, len(list)), make([]string, 0, len(list))
	for i, m := range list {
		if m.At >= 0 && m.At <= c.length {
			at = append(at, x.at(m.At.Seconds()))
			texts = append(texts, fmt.Sprintf("%d %s", i+1, cut(clean(m.Text), 60)))
		}
	}
	flags := stagger(at, texts, bandWidth, bandMarkRows)
	top := 6 + markHeight*1.2*float64(rowsOf(flags))
	var strips []plot
	for _, p := range stripsOf(run, c) {
		if p.shown(tops) {
			strips = append(strips, p)
		}
	}
	rows := top + float64(len(run.Targets))*(bandHeight+downHeight+bandGap) + float64(len(run.Gateways))*(bandHeight+bandGap)
	bottom := rows + float64(len(strips))*(stripHeight+stripGap)
	d.H = bottom + plotFloor
	d.timeAxis(c, x, top, bottom, 10)
	d.marks(flags, markHeight*1.2, bottom)
	y := top + bandGap/2
	moved := 0
	for _, t := range run.Targets {
		d.label(bandLeft-8, y+bandHeight-4, "row", "end", cut(clean(t.Name), 22))
		d.breaker(phases(t.Moves, c.length), x, y)
		for _, s := range downs(t, stepOf(run, len(t.Steps), c), c.length) {
			d.span(s, x, y+bandHeight, downHeight)
		}
		moved += len(t.Moves)
		y += bandHeight + downHeight + bandGap
	}
	for _, g := range run.Gateways {
		d.instance(g, run, c, x, y)
		y += bandHeight + bandGap
	}
	y = rows
	for _, p := range strips {
		v.Strips = append(v.Strips, stripView{p.title, p.unit, d.strip(p, x, y+stripGap, tops[p.key])})
		y += stripHeight + stripGap
	}
	d.Desc = fmt.Sprintf("%d marks; %d targets; %d moves of breakers; %d instances of the gateway; %d crashes",
		len(list), len(run.Targets), moved, len(run.Gateways), crashes(run))
	v.Drawing = d
	return v
}

// instance draws the row of one instance of the gateway: when it was down.
func (d *drawing) instance(g drill.TargetRun, run *drill.Run, c clock, x axis, y float64) {
	d.label(bandLeft-8, y+bandHeight-4, "row", "end", cut(clean(g.Name), 22))
	d.box(x.from, y, x.to-x.from, bandHeight, "phase nothing", "")
	said := "no crash"
	if g.Crashes > 0 {
		said = fmt.Sprintf("crashes: %d", g.Crashes)
	}
	d.label(x.from+6, y+bandHeight-4, "phase", "start", said)
	for _, s := range downs(g, stepOf(run, len(g.Steps), c), c.length) {
		d.span(s, x, y, bandHeight)
	}
}

// strip draws curves on the timeline's axis, from y on.
func (d *drawing) strip(p plot, x axis, y float64, top float64) []keyView {
	ticks := niceTicks(top, 3)
	scale := axis{ticks[len(ticks)-1].at, y + stripHeight, y}
	d.label(bandLeft-8, y-7, "row", "end", p.title)
	for _, t := range ticks {
		d.rule(x.from, scale.at(t.at), x.to, scale.at(t.at), "grid")
		d.label(x.from-5, scale.at(t.at)+4, "value", "end", t.label)
	}
	if p.capacity {
		d.rule(x.from, scale.at(1), x.to, scale.at(1), "capacity")
	}
	return d.curves(p, x, scale, maxPoints)
}

// breaker draws one band, and the name of a phase where it has room.
func (d *drawing) breaker(spans []span, x axis, y float64) {
	if len(spans) == 0 {
		d.box(x.from, y, x.to-x.from, bandHeight, "phase nothing", "")
		d.label(x.from+6, y+bandHeight-4, "phase", "start", "no breaker moved")
	}
	for _, s := range spans {
		d.span(s, x, y, bandHeight)
		from, to := x.at(s.from.Seconds()), x.at(s.to.Seconds())
		if to-from > textWidth(s.name)+8 {
			d.label(from+4, y+bandHeight-4, "phase", "start", s.name)
		}
	}
}

func (d *drawing) span(s span, x axis, y, h float64) {
	from, to := x.at(s.from.Seconds()), x.at(s.to.Seconds())
	tip := fmt.Sprintf("%s from %s to %s", s.name, short(s.from), short(s.to))
	if s.tip != "" {
		tip += ": " + s.tip
	}
	d.box(from, y, max(to-from, 1), h, s.class, tip)
}
