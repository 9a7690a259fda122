package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
)

// page is text of a width, with a hanging indent.
type page struct {
	strings.Builder
	width int
}

func newPage(s Screen) *page {
	return &page{width: min(max(cmp.Or(s.Width, 80), narrowest), widest)}
}

// line writes text behind a head; what does not fit is indented as wide as the
// head.
func (p *page) line(head, text string) {
	first := head
	for _, l := range wrap(clean(text), p.width-columns(head)) {
		p.WriteString(strings.TrimRight(first+l, " ") + "\n")
		first = strings.Repeat(" ", columns(head))
	}
}

func (p *page) to(w io.Writer) error {
	_, err := io.WriteString(w, Inert(p.String()))
	return err
}

// Checks lists the catalogue, by group.
func Checks(w io.Writer, groups []audit.Group, s Screen) error {
	p := newPage(s)
	n := 0
	for _, g := range groups {
		p.line("", g.ID+" "+g.Title)
		for _, c := range g.Checks {
			p.line(fmt.Sprintf("  %-7s  %-8s  ", clean(c.ID), c.Severity), c.Title)
			n++
		}
		p.WriteString("\n")
	}
	p.line("", many(n, "check")+"; hourthree audit checks explain ID tells more.")
	return p.to(w)
}

// ChecksJSON writes the catalogue with everything that it says.
func ChecksJSON(w io.Writer, groups []audit.Group) error {
	return indented(w, struct {
		Version int           `json:"schema_version"`
		Groups  []audit.Group `json:"groups"`
	}{audit.SchemaVersion, groups})
}

// Explain tells all about a check: what it looks for, why, what to do, who says
// so, and which incidents had it.
func Explain(w io.Writer, c *audit.Check, l *incident.Library, s Screen) error {
	p := newPage(s)
	p.line(c.ID+"  ", c.Title)
	p.line("", strings.Join(about(c), ", "))
	for _, part := range []struct{ head, text string }{
		{"When", c.Condition}, {"Why", c.Why}, {"Fix", c.Fix}, {"Take care", c.Caution},
	} {
		if part.text != "" {
			p.WriteString("\n" + part.head + "\n")
			p.line("  ", part.text)
		}
	}
	if c.Patch != "" {
		p.WriteString("\nPatch\n")
		for line := range strings.Lines(c.Patch) {
			p.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	explainSources(p, c)
	explainIncidents(p, c, l)
	if c.Drill != "" {
		p.WriteString("\nSee it happen\n")
		p.line("  ", "hourthree drill run "+c.Drill)
	}
	if c.Scope != "waiver" {
		p.WriteString("\nLive with it, for a time\n")
		p.line("  ", "an annotation of the object or of its pod template:")
		p.line("  ", "hourthree.dev/waive."+c.ID+`: "REASON; until=YYYY-MM-DD"`)
	}
	return p.to(w)
}

// about are a check's few words.
func about(c *audit.Check) []string {
	list := []string{"severity " + c.Severity.String()}
	if c.Confidence != "" {
		list = append(list, "confidence "+c.Confidence)
	}
	switch c.Scope {
	case "graph":
		list = append(list, "looks at several objects")
	case "path":
		list = append(list, "looks at the way from client to model")
	}
	if c.Live {
		list = append(list, "needs a running cluster")
	}
	if len(c.Kinds) > 0 {
		list = append(list, "on "+strings.Join(c.Kinds, " and "))
	}
	return list
}

func explainSources(p *page, c *audit.Check) {
	if len(c.Sources) == 0 {
		return
	}
	p.WriteString("\nSources\n")
	for _, key := range c.Sources {
		source, ok := audit.SourceOf(key)
		if !ok {
			source.Title = key
		}
		p.line("  - ", source.Title)
		if source.URL != "" {
			p.WriteString("    " + clean(source.URL) + "\n") // whole, to be copied
		}
	}
}

func explainIncidents(p *page, c *audit.Check, l *incident.Library) {
	if l == nil {
		return
	}
	const most = 8
	all := l.Citing(c.ID, c.Drill)
	if len(all) == 0 {
		return
	}
	p.WriteString("\nIncidents that had it, those that the drill replays first\n")
	for _, r := range all[:min(len(all), most)] {
		p.line("  "+clean(r.ID)+"  ", r.Title)
	}
	if len(all) > most {
		p.line("  ", fmt.Sprintf("and %d more", len(all)-most))
	}
}
