package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
)

//go:generate go run ./gen

// Catalogue is the page that describes every check, docs/checks.md. Each has a
// heading of its own, so that the addresses of helpURI lead to it.
func Catalogue(groups []audit.Group, l *incident.Library) []byte {
	var b bytes.Buffer
	n := 0
	for _, g := range groups {
		n += len(g.Checks)
	}
	fmt.Fprintf(&b, `# Checks of the audit

%d conditions that [hourthree audit](audit.md) looks for. An id means one
condition, in every version. This page is written from the catalogue in
internal/audit/checks by go generate ./internal/render.

`, n)
	for _, g := range groups {
		fmt.Fprintf(&b, "- [%s %s](#%s): ", g.ID, escape(g.Title), strings.ToLower(g.ID))
		for i, c := range g.Checks {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "[%s](#%s)", strings.TrimPrefix(c.ID, g.ID+"-"), strings.ToLower(c.ID))
		}
		b.WriteString("\n")
	}
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n**%s.** %s\n", g.ID, escape(g.Title), escape(g.About))
		for _, c := range g.Checks {
			catalogued(&b, c, l)
		}
	}
	return b.Bytes()
}

func catalogued(b *bytes.Buffer, c *audit.Check, l *incident.Library) {
	fmt.Fprintf(b, "\n### %s\n\n**%s** (%s)\n", c.ID, escape(c.Title), escape(strings.Join(about(c), ", ")))
	for _, part := range []struct{ head, text string }{
		{"When", c.Condition}, {"Why", c.Why}, {"Fix", c.Fix}, {"Take care", c.Caution},
	} {
		if part.text != "" {
			fmt.Fprintf(b, "\n%s: %s\n", part.head, escape(part.text))
		}
	}
	if c.Patch != "" {
		b.WriteString("\n" + fenced("yaml", c.Patch) + "\n")
	}
	var last []string
	for _, key := range c.Sources {
		source, ok := audit.SourceOf(key)
		switch {
		case !ok:
		case source.URL == "":
			last = append(last, escape(source.Title))
		default:
			last = append(last, fmt.Sprintf("[%s](%s)", escape(source.Title), source.URL))
		}
	}
	if len(last) > 0 {
		fmt.Fprintf(b, "\nSources: %s.\n", strings.Join(last, ", "))
	}
	if l != nil {
		list := l.Citing(c.ID)
		for i, r := range list[:min(len(list), 3)] {
			if i == 0 {
				b.WriteString("\nSeen in:\n\n")
			}
			fmt.Fprintf(b, "- %s %s\n", escape(r.ID), escape(r.Title))
		}
	}
	if c.Drill != "" {
		fmt.Fprintf(b, "\nDrill: %s.\n", code("hourthree drill run "+c.Drill))
	}
}
