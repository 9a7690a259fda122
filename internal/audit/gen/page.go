package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
)

const intro = `<!-- Made by go generate ./internal/audit; do not edit. -->

# The checks of the audit

Each looks for one condition that made a public incident possible, or worse. A
check applies to objects on the way from a client to a model only. ` + "`hourthree audit`" + `
runs them, [audit.md](audit.md) says how. What a check could not decide is said
and is never a pass.

Severity is how much a finding weighs. *Extended* checks concern fewer stacks or
weigh less; they run like the others. Confidence below high means that what the
audit sees may not be all there is.

`

// cited bounds the incidents of an entry; the library has them all.
const cited = 5

// page is the reference: a table of all checks, then an entry for each.
func page(groups []audit.Group, library *incident.Library) []byte {
	b := bytes.NewBufferString(intro)
	for _, g := range groups {
		fmt.Fprintf(b, "## %s: %s\n\n%s\n\n| check | severity | title |\n|---|---|---|\n", g.ID, escape(g.Title), escape(g.About))
		for _, c := range g.Checks {
			fmt.Fprintf(b, "| [%s](#%s) | %s | %s |\n", c.ID, strings.ToLower(c.ID), c.Severity, escape(c.Title))
		}
		b.WriteString("\n")
	}
	for _, g := range groups {
		for _, c := range g.Checks {
			entry(b, c, library)
		}
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// entry is one check's. Its heading is the id alone, so that a link to it lasts.
func entry(b *bytes.Buffer, c *audit.Check, library *incident.Library) {
	fmt.Fprintf(b, "### %s\n\n**%s**\n\n", c.ID, escape(c.Title))
	facts := []string{c.Severity.String()}
	if c.Extended {
		facts = append(facts, "extended")
	}
	if c.Live {
		facts = append(facts, "needs the status of a running cluster")
	}
	facts = append(facts, "confidence "+c.Confidence)
	if len(c.Kinds) > 0 {
		facts = append(facts, "on "+strings.Join(c.Kinds, ", "))
	}
	fmt.Fprintf(b, "%s\n\n", strings.Join(facts, " · "))
	for _, part := range []struct{ name, text string }{
		{"Fires when", c.Condition}, {"Expected", c.Expected}, {"Why", c.Why}, {"Fix", c.Fix}, {"Mind", c.Caution},
	} {
		if part.text != "" {
			fmt.Fprintf(b, "- %s: %s\n", part.name, escape(part.text))
		}
	}
	evidence(b, c, library)
	if c.Patch != "" {
		fmt.Fprintf(b, "\n```yaml\n%s\n```\n", strings.TrimRight(c.Patch, "\n"))
	}
	b.WriteString("\n")
}

// evidence is what stands behind a check: incidents, a drill, sources.
func evidence(b *bytes.Buffer, c *audit.Check, library *incident.Library) {
	if records := library.Citing(c.ID, c.Drill); len(records) > 0 {
		var list []string
		for _, r := range records[:min(len(records), cited)] {
			list = append(list, r.ID+" "+escape(strings.TrimSpace(r.Title)))
		}
		if more := len(records) - cited; more > 0 {
			list = append(list, fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(b, "- Incidents: %s\n", strings.Join(list, "; "))
	}
	if c.Drill != "" {
		fmt.Fprintf(b, "- Drill: [%s](drills/%s.md)\n", c.Drill, c.Drill)
	}
	var list []string
	for _, key := range c.Sources {
		if s, ok := audit.SourceOf(key); ok {
			list = append(list, fmt.Sprintf("[%s](%s)", escape(s.Title), s.URL))
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(b, "- Sources: %s\n", strings.Join(list, "; "))
	}
}

var special = strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "_", `\_`, "[", `\[`, "]", `\]`)

// escape keeps what Markdown would read as its own.
func escape(text string) string { return special.Replace(text) }
