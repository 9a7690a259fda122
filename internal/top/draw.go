package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// Part is a part of the screen.
type Part int

// The parts, from top to bottom.
const (
	Outages Part = iota
	Targets
	Workloads
	SLOs
	Actions
	Rollout
	parts
)

// The least a screen can be drawn on.
const (
	leastWidth  = 20
	leastHeight = 5
)

// View is how a picture is looked at.
type View struct {
	Width  int
	Height int // 0 for as many lines as there are
	Part   Part
	Skip   int // rows of the part that are above the screen
	Help   bool
	Colour bool
	Now    time.Time
}

// section is a part with its rows.
type section struct {
	part  Part
	title string
	head  string // of the columns, "" for none
	rows  []line
}

// Draw makes the screen: Height lines of Width columns at most.
func Draw(p *Picture, v View) string {
	v.Width = max(v.Width, leastWidth)
	var lines []line
	if v.Help {
		lines = help(v)
	} else {
		lines = append(top(p, v), body(p, v, v.Height-len(top(p, v))-1)...)
	}
	if v.Height > 0 {
		lines = lines[:min(len(lines), max(v.Height, leastHeight)-1)]
		for len(lines) < max(v.Height, leastHeight)-1 {
			lines = append(lines, line{})
		}
		lines = append(lines, row(clip("tab part   ↑↓ scroll   ? help   q quit", v.Width), faint))
	}
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.render(v.Colour))
	}
	return b.String()
}

// top says which router it is, whether it answers, what is wrong, and the figures that
// tell us from them.
func top(p *Picture, v View) []line {
	name := "hourthree at " + strings.TrimPrefix(harmless(p.Router), "http://")
	if p.State == nil {
		why := "waiting for the first answer"
		if !p.LostAt.IsZero() {
			why = lost(p, v)
		}
		return []line{row(clip(name, v.Width), strong), row(clip(why, v.Width), bad)}
	}
	s := p.State
	lines := []line{row(clip(fmt.Sprintf("%s  %s  configuration %s  version %s", name, s.At.UTC().Format("15:04:05 MST"), s.ConfigID, s.Version), v.Width), strong)}
	if !p.LostAt.IsZero() {
		lines = append(lines, row(clip(lost(p, v), v.Width), bad))
	}
	if s.Draining {
		lines = append(lines, row(clip("The router is draining: it takes no new requests.", v.Width), warn))
	}
	if s.Refused != "" {
		lines = append(lines, row(clip("The newest configuration is refused: "+s.Refused, v.Width), warn))
	}
	lines = append(lines, verdict(p, v)...)
	all := figures(p, v.Width)
	if v.Height > 0 {
		all = all[:min(len(all), max(2, v.Height/6))]
	}
	return append(lines, all...)
}

func lost(p *Picture, v View) string {
	what := ""
	if p.State != nil {
		what = "This is the last picture. "
	}
	return fmt.Sprintf("No answer since %s (%s). %s%s", p.LostAt.UTC().Format("15:04:05"), ago(v.Now.Sub(p.LostAt)), what, p.LostWhy)
}

func verdict(p *Picture, view View) []line {
	width := view.Width
	if v := p.Verdict; v != nil {
		look := bad
		switch v.Who {
		case "calm":
			look = good
		case "unverified", "unknown":
			look = warn
		}
		return sentence(v.Head+": "+v.Text, view, look)
	}
	open := p.open()
	if len(open) == 0 {
		return []line{row(clip("Nothing is noticed to be wrong.", width), good)}
	}
	o := open[0]
	text := fmt.Sprintf("%d open: %s %s", len(open), o.ID, o.State)
	if len(o.Suspects) > 0 {
		text += fmt.Sprintf(", suspect %s %s (%.2f)", o.Suspects[0].Kind, o.Suspects[0].Name, o.Suspects[0].Score)
	}
	return []line{row(clip(text, width), looks(o.State))}
}

// sentence has two lines where there is room: its end says who is suspected.
func sentence(text string, v View, look style) []line {
	text = harmless(text)
	words := strings.Fields(text)
	first := 0
	for n := 0; first < len(words); first++ {
		if n += ansi.StringWidth(words[first]) + 1; n > v.Width+1 {
			break
		}
	}
	if first == len(words) || first == 0 || !v.heads() {
		return []line{row(clip(text, v.Width), look)}
	}
	return []line{row(clip(strings.Join(words[:first], " "), v.Width), look), row(clip(strings.Join(words[first:], " "), v.Width), look)}
}

// figures are the overview, on as many lines as it needs.
func figures(p *Picture, width int) []line {
	s := p.State
	var all []string
	add := func(name string, rate float64, known bool) {
		if known {
			all = append(all, name+" "+perSecond(rate)+"/s")
		}
	}
	if t := p.Totals; t != nil {
		r := t.PerSecond
		add("offered", r.Offered, true)
		add("goodput", r.Goodput, true)
		add("attempts", r.Attempts, true)
		add("refused", r.Refused, true)
		add("degraded", r.Degraded, true)
		add("failed", r.Failed, true)
	} else {
		var sum Rates
		for _, r := range p.Rates {
			sum.Inbound, sum.Attempts, sum.Refused = sum.Inbound+r.Inbound, sum.Attempts+r.Attempts, sum.Refused+r.Refused
		}
		known := len(p.Rates) > 0
		add("offered", sum.Inbound, known)
		add("attempts", sum.Attempts, known)
		add("repeats refused", sum.Refused, known)
	}
	all = append(all, fmt.Sprintf("in flight %d", s.InFlight), fmt.Sprintf("queued %d", s.Queued), fmt.Sprintf("memory %s of %s", mib(s.Reserved), mib(s.Limit)))
	var lines []line
	now := ""
	for _, f := range all {
		if now != "" && ansi.StringWidth(now)+2+ansi.StringWidth(f) > width {
			lines = append(lines, row(clip(now, width), plain))
			now = ""
		}
		if now != "" {
			now += "  "
		}
		now += f
	}
	return append(lines, row(clip(now, width), plain))
}

// body is the parts below each other in a height. A part gets what it needs while
// there is room, the chosen one first.
func body(p *Picture, v View, height int) (out []line) {
	if p.State == nil {
		return nil
	}
	all := sections(p, v.Width)
	for i, s := range all {
		if !v.gaps() && (s.part != v.Part || !v.heads()) {
			all[i].rows = slices.DeleteFunc(s.rows, func(l line) bool { return l.group })
		}
	}
	room := share(all, v, height)
	for i, s := range all {
		if v.gaps() {
			out = append(out, line{})
		}
		out = append(out, heading(s, v, room[i]))
		if v.heads() && s.head != "" && len(s.rows) > 0 && room[i] > 0 {
			out = append(out, row(s.head, faint))
		}
		skip := 0
		if s.part == v.Part && v.Height > 0 {
			skip = min(v.Skip, max(0, len(s.rows)-room[i]))
		}
		out = append(out, s.rows[skip:skip+min(room[i], len(s.rows)-skip)]...)
	}
	return out
}

// gaps and heads report that there is room for empty lines, and for the heads of
// columns.
func (v View) gaps() bool  { return v.Height == 0 || v.Height >= 30 }
func (v View) heads() bool { return v.Height == 0 || v.Height >= 20 }

func heading(s section, v View, room int) line {
	title, look := "  "+s.title, strong
	if s.part == v.Part && v.Height > 0 {
		title, look = "▸ "+s.title, chosen
	}
	if v.Height > 0 && len(s.rows) > room {
		title += fmt.Sprintf("  (%d of %d)", room, len(s.rows))
	}
	return row(clip(title, v.Width), look)
}

// share gives each part rows.
func share(all []section, v View, height int) []int {
	room := make([]int, len(all))
	if v.Height == 0 {
		for i, s := range all {
			room[i] = len(s.rows)
		}
		return room
	}
	for _, s := range all {
		height--
		if v.gaps() {
			height--
		}
		if v.heads() && s.head != "" && len(s.rows) > 0 {
			height--
		}
	}
	give := func(i, most int) {
		n := max(0, min(len(all[i].rows)-room[i], most, height))
		room[i] += n
		height -= n
	}
	for i := range all { // a row for everything, then the chosen, then the rest
		give(i, 1)
	}
	for i, s := range all {
		if s.part == v.Part {
			give(i, height)
		}
	}
	for most := 1; most < 4; most++ {
		for i := range all {
			give(i, 1)
		}
	}
	for i := range all {
		give(i, height)
	}
	return room
}

func help(v View) (lines []line) {
	for _, text := range []string{
		"hourthree top: what the operator's listener of a router shows. It only reads.", "",
		"tab, → or ←     choose a part; it gets the room that there is",
		"↑ ↓, pgup pgdn  scroll the chosen part", "?               this page, and back", "q, esc, ctrl+c  leave", "",
		"offered   requests that come in, a second, repeats included",
		"goodput   of them answered as they should be",
		"attempts  calls to targets; far more than offered: we make it worse",
		"in        requests for each distinct one: callers repeat",
		"out       calls for each request: the router repeats",
		"A rate is of the last minute where the router keeps a history, else since",
		"the picture before.",
	} {
		lines = append(lines, row(clip(text, v.Width), plain))
	}
	return lines
}

func perSecond(f float64) string {
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

func times(f float64) string {
	if f == 0 {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

func mib(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }

// ago is a length of time in at most two units.
func ago(d time.Duration) string {
	d = max(0, d.Round(time.Second))
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d m", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d m %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
