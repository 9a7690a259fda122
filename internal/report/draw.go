package report

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// drawing is an SVG, which the template writes and escapes.
type drawing struct {
	ID, Title, Desc string
	W, H            float64
	Boxes           []box
	Rules           []rule
	Paths           []path
	Labels          []label
}

type box struct {
	X, Y, W, H float64
	Class, Tip string
}

// rule is a straight line.
type rule struct {
	X1, Y1, X2, Y2 float64
	Class          string
}

type path struct{ D, Class string }

type label struct {
	X, Y                float64
	Class, Anchor, Text string
}

func (d *drawing) rule(x1, y1, x2, y2 float64, class string) {
	d.Rules = append(d.Rules, rule{tenth(x1), tenth(y1), tenth(x2), tenth(y2), class})
}

func (d *drawing) label(x, y float64, class, anchor, text string) {
	if text != "" {
		d.Labels = append(d.Labels, label{tenth(x), tenth(y), class, anchor, text})
	}
}

func (d *drawing) box(x, y, w, h float64, class, tip string) {
	d.Boxes = append(d.Boxes, box{tenth(x), tenth(y), tenth(w), tenth(h), class, tip})
}

// line draws the points; a hole breaks the line and a point alone is a dot.
func (d *drawing) line(points []point, x, y axis, class string) {
	var b strings.Builder
	alone := false
	drawn := false
	end := func() {
		if alone {
			b.WriteString("h.1")
		}
		alone, drawn = false, false
	}
	for i, p := range points {
		if !finite(p.v) {
			end()
			continue
		}
		if drawn && i+1 < len(points) && p.v == points[i-1].v && p.v == points[i+1].v {
			continue // on the way
		}
		b.WriteByte("ML"[bit(drawn)])
		b.WriteString(coord(x.at(p.at)) + " " + coord(y.at(p.v)))
		alone, drawn = !drawn, true
	}
	end()
	if b.Len() > 0 {
		d.Paths = append(d.Paths, path{b.String(), class})
	}
}

// area fills below the points; a hole counts as 0.
func (d *drawing) area(points []point, x, y axis, class string) {
	if len(points) < 2 {
		return
	}
	var b strings.Builder
	b.WriteString("M" + coord(x.at(points[0].at)) + " " + coord(y.at(0)))
	for i, p := range points {
		v := p.v
		if !finite(v) {
			v = 0
		}
		if i > 0 && i+1 < len(points) && v == points[i-1].v && v == points[i+1].v {
			continue
		}
		b.WriteString("L" + coord(x.at(p.at)) + " " + coord(y.at(v)))
	}
	b.WriteString("L" + coord(x.at(points[len(points)-1].at)) + " " + coord(y.at(0)) + "Z")
	d.Paths = append(d.Paths, path{b.String(), class})
}

// timeAxis draws the ticks: the incident's clock above virtual seconds.
func (d *drawing) timeAxis(c clock, x axis, top, bottom float64, n int) {
	for _, t := range c.ticks(n) {
		at := x.at(t.at)
		d.rule(at, top, at, bottom, "grid")
		anchor := "middle"
		if half := max(textWidth(t.clock), textWidth(t.label+" s")) / 2; at+half > d.W {
			anchor, at = "end", d.W
		}
		y := bottom + 16
		if t.clock != "" {
			d.label(at, y, "clock", anchor, t.clock)
			y += 12
		}
		d.label(at, y, "virtual", anchor, t.label+" s")
	}
}

// placed is a mark on the drawing: its line and its label.
type placed struct {
	x, textX float64
	row      int
	anchor   string
	text     string
}

// stagger puts labels that begin at their line into the first row where they
// touch no other; a label that would leave the drawing ends at its line.
// Beyond the last row a label is dropped.
func stagger(xs []float64, texts []string, right float64, rows int) []placed {
	var out []placed
	type span struct{ from, to float64 }
	taken := make([][]span, rows)
	for i, x := range xs {
		w := textWidth(texts[i]) + 4
		p := placed{x: x, textX: x + 3, row: -1, anchor: "start", text: texts[i]}
		s := span{x, x + w}
		if s.to > right {
			s, p.textX, p.anchor = span{x - w, x}, x-3, "end"
		}
		for row := range taken {
			free := true
			for _, t := range taken[row] {
				free = free && (s.to < t.from || s.from > t.to)
			}
			if free {
				p.row = row
				taken[row] = append(taken[row], s)
				break
			}
		}
		out = append(out, p)
	}
	return out
}

// rowsOf is how many rows the labels use.
func rowsOf(marks []placed) int {
	n := 0
	for _, m := range marks {
		n = max(n, m.row+1)
	}
	return n
}

// marks draws each line from its label down.
func (d *drawing) marks(list []placed, rowHeight, bottom float64) {
	for _, m := range list {
		y := float64(max(m.row, 0)) * rowHeight
		d.rule(m.x, y+2, m.x, bottom, "mark")
		if m.row >= 0 {
			d.label(m.textX, y+rowHeight-2, "mark", m.anchor, m.text)
		}
	}
}

// textWidth is about what a label takes, at 11 px.
func textWidth(s string) float64 { return 6.2 * float64(utf8.RuneCountInString(s)) }

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

func coord(v float64) string { return strconv.FormatFloat(tenth(v), 'f', -1, 64) }
