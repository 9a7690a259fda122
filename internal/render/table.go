package render

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
)

// Screen is where a table is read.
type Screen struct {
	Width  int // columns, 0 for 80
	Colour Colour
}

// Colour says whether a table may have colours.
type Colour uint8

// The two ways.
const (
	Plain Colour = iota
	Coloured
)

// The bounds of a table's width: below them nothing fits, above them lines are
// hard to read.
const (
	narrowest = 40
	widest    = 120
)

// The columns before a finding's text.
const (
	severityColumn = 8
	idColumn       = 7
	indent         = 2 + severityColumn + 1 + idColumn + 2
	below          = 4 // of the lines under a finding's first
)

// Escape sequences.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

type table struct {
	bytes.Buffer
	*view
	width  int
	colour Colour
	last   []audit.RelatedPlace // that were listed
}

// table is grouped by the object that a finding is about: who owns it reads one
// block. Each finding is a line with its severity, id and title, and below it
// the place, what was found, and the incidents.
func (v *view) table(s Screen) []byte {
	t := &table{view: v, width: min(max(cmp.Or(s.Width, 80), narrowest), widest), colour: s.Colour}
	groups := t.groups()
	for _, g := range groups {
		t.group(g)
	}
	if len(groups) > 0 {
		t.WriteString("\n")
	}
	t.summary()
	return t.Bytes()
}

// groups are the findings by object: the one with the most severe first, and
// what is only waived last.
func (t *table) groups() [][]*audit.Finding {
	at := map[string]int{}
	var list [][]*audit.Finding
	for i := range t.findings {
		f := &t.findings[i]
		name := f.Object.Group + "\x00" + f.Object.String()
		n, ok := at[name]
		if !ok {
			n = len(list)
			at[name] = n
			list = append(list, nil)
		}
		list[n] = append(list[n], f)
	}
	for _, g := range list {
		slices.SortStableFunc(g, func(x, y *audit.Finding) int { return cmp.Compare(weight(y), weight(x)) })
	}
	slices.SortStableFunc(list, func(x, y []*audit.Finding) int {
		return cmp.Or(cmp.Compare(weight(y[0]), weight(x[0])), compareRefs(x[0].Object, y[0].Object))
	})
	return list
}

// weight is the severity of what fails, nothing for what is waived.
func weight(f *audit.Finding) int {
	if f.State == audit.Waived {
		return 0
	}
	return int(f.Severity)
}

func (t *table) group(g []*audit.Finding) {
	t.last = nil
	if t.Len() > 0 {
		t.WriteString("\n")
	}
	for i, line := range wrap(clean(g[0].Object.String()), t.width-2) {
		if i > 0 {
			line = "  " + line
		}
		t.WriteString(t.paint(bold, line) + "\n")
	}
	for _, f := range g {
		t.finding(f)
	}
}

func (t *table) finding(f *audit.Finding) {
	mark := " "
	if f.Change == audit.New && f.State == audit.Fail {
		mark = "+"
	}
	word, colour := f.Severity.String(), severityColour(f.Severity)
	if f.State == audit.Waived {
		word, colour = string(audit.Waived), dim
	}
	head := mark + " " + t.paint(colour, fmt.Sprintf("%-*s", severityColumn, word)) + fmt.Sprintf(" %-*s  ", idColumn, cut(clean(f.ID), idColumn))
	title, cited := clean(f.Title), seen(f)
	about := clean(at(f.Place))
	if f.Container != "" {
		about += " (" + clean(f.Container) + ")"
	}
	about += ": " + clean(said(f))
	if room := t.width - indent - columns(title) - columns(cited); cited != "" && room >= 1 {
		t.WriteString(head + title + strings.Repeat(" ", room) + t.paint(dim, cited) + "\n")
	} else {
		t.lines(head, indent, title)
		if cited != "" {
			about += " [" + strings.ReplaceAll(cited, " ", glue) + "]"
		}
	}
	t.lines("", below, about)
	if f.Waiver != nil {
		t.lines("", below, "waived until "+clean(f.Waiver.Until)+": "+clean(f.Waiver.Reason))
	}
	t.related(f)
}

// related lists the other places of a finding, once for findings of an object
// that have the same.
func (t *table) related(f *audit.Finding) {
	if len(f.Related) == 0 || len(f.Related) == 1 && f.Related[0].Note == "" {
		return
	}
	if slices.Equal(f.Related, t.last) {
		t.lines("", below, "- the same places as above")
		return
	}
	t.last = f.Related
	for _, r := range f.Related {
		for i, line := range wrap(clean(r.Note+" at "+at(r.Place)), t.width-below-2) {
			mark := "- "
			if i > 0 {
				mark = "  "
			}
			t.WriteString(strings.Repeat(" ", below) + mark + line + "\n")
		}
	}
}

// glue is a space at which lines are not broken. Cleaned text has none.
const glue = "\x1f"

// lines writes text behind head, which is as wide as the indent, and what does
// not fit on the line below it.
func (t *table) lines(head string, indent int, text string) {
	for i, line := range wrap(text, t.width-indent) {
		if i > 0 || head == "" {
			head = strings.Repeat(" ", indent)
		}
		t.WriteString(head + strings.ReplaceAll(line, glue, " ") + "\n")
	}
}

// say writes text with a hanging indent of two.
func (t *table) say(text string) {
	for i, line := range wrap(text, t.width-2) {
		if i > 0 {
			line = "  " + line
		}
		t.WriteString(line + "\n")
	}
}

func (t *table) summary() {
	said := t.bySeverity()
	if said == "" {
		said = "no findings"
	} else {
		said += " (hourthree audit checks explain ID tells what to do)"
	}
	t.say(said)
	t.say(clean(t.coverage()))
	if d := t.Diff; d != nil {
		t.say(clean(fmt.Sprintf("against %s: %d new (marked +), %d unchanged, %d fixed", d.File, d.New, d.Unchanged, len(d.Fixed))))
		t.past("fixed", d.Fixed)
		t.past("not looked for", d.Unknown)
	}
	if why := t.reasons(); len(why) > 0 {
		t.WriteString("\nNot evaluated, and so not passed:\n")
		for _, r := range why {
			t.say("- " + clean(r.text) + ": " + strings.Join(r.ids, ", "))
		}
	}
	if len(t.problems) > 0 {
		t.WriteString("\nThe input:\n")
		for _, p := range t.problems {
			t.say("- " + problem(p))
		}
	}
}

func (t *table) past(what string, list []audit.Past) {
	for _, p := range list {
		t.say("- " + what + ": " + clean(p.ID+" "+owner(p.Object, p.Container)))
	}
}

func (t *table) paint(colour, s string) string {
	if t.colour == Plain || colour == "" {
		return s
	}
	return colour + s + reset
}

func severityColour(s audit.Severity) string {
	switch s {
	case audit.Critical:
		return bold + red
	case audit.High:
		return red
	case audit.Medium:
		return yellow
	}
	return cyan
}
