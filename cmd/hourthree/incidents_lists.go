package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
)

// The columns of a list, after the id; the title has the rest.
const (
	dateColumn     = 11
	providerColumn = 16
	evidenceColumn = 4
)

func listHead(p *paper, ids int) {
	fmt.Fprintf(p, "%-*s%-*s%-*s%*s %s\n", ids, "", dateColumn, "date", providerColumn, "provider", evidenceColumn-1, "ev.", "title")
}

func listRow(p *paper, ids int, b library.Brief) {
	date := b.Date
	if date == "" {
		date = "unknown"
	}
	p.wrap(fmt.Sprintf("%s%s%s%*d ", columned(b.ID, ids), columned(date, dateColumn), columned(clip(b.Provider, providerColumn-1), providerColumn), evidenceColumn-1, b.Evidence), b.Title)
}

func listRows(p *paper, list []library.Brief) {
	if len(list) == 0 {
		p.WriteString("no incident\n")
		return
	}
	ids := 0
	for _, b := range list {
		ids = max(ids, len(b.ID)+1)
	}
	listHead(p, ids)
	for _, b := range list {
		listRow(p, ids, b)
	}
}

func listMarkdown(p *paper, list []library.Brief) {
	p.head("id", "date", "provider", "evidence", "title")
	for _, b := range list {
		p.row(b.ID, b.Date, md(b.Provider), strconv.Itoa(b.Evidence), md(b.Title))
	}
}

type listView struct{ *library.Listing }

func (v listView) data() any { return v.Listing }

func (v listView) table(p *paper) {
	listRows(p, v.Incidents)
	if len(v.Incidents) > 0 {
		fmt.Fprintf(p, "\n%s; ev. is the evidence score, of 100\n", shown(len(v.Incidents), v.Total))
	}
}

func (v listView) markdown(p *paper) { listMarkdown(p, v.Incidents) }

func shown(n, total int) string {
	if n < total {
		return fmt.Sprintf("%d of %d incidents", n, total)
	}
	if n == 1 {
		return "1 incident"
	}
	return fmt.Sprintf("%d incidents", n)
}

type foundView struct{ *library.Findings }

func (v foundView) data() any { return v.Findings }

func (v foundView) table(p *paper) {
	if len(v.Incidents) == 0 {
		p.WriteString("nothing found; use other words, or see hourthree incidents vocab\n")
		return
	}
	for i, f := range v.Incidents {
		if i > 0 {
			p.WriteString("\n")
		}
		p.wrap(f.ID+"  ", f.Title)
		indent := strings.Repeat(" ", len(f.ID)+2)
		p.wrap(indent, strings.TrimPrefix(fmt.Sprintf("%s, %s, evidence %d", f.Date, f.Provider, f.Evidence), ", "))
		p.wrap(indent+where(f.Fragment)+": ", f.Fragment.Text)
	}
	fmt.Fprintf(p, "\n%s; hourthree incidents get %s shows the first\n", shown(len(v.Incidents), v.Total), v.Incidents[0].ID)
}

// where is what a fragment is of; a claim is never shown without its kind.
func where(f library.Fragment) string {
	if f.Kind != "" {
		return loud(f.Kind) + " claim"
	}
	return spoken(f.Field)
}

// spoken is a name of a field or kind as one says it.
func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

func (v foundView) markdown(p *paper) {
	for _, f := range v.Incidents {
		fmt.Fprintf(p, "- **%s** %s (%s, evidence %d)  \n  %s: %s\n", f.ID, md(f.Title), md(f.Provider), f.Evidence, where(f.Fragment), md(f.Fragment.Text))
	}
}

type subjectView struct{ *library.Subject }

func (v subjectView) data() any { return v.Subject }

func (v subjectView) table(p *paper) {
	fmt.Fprintf(p, "%s %s\n", v.Kind, v.Slug)
	meaning(p, "  ", v.Word)
	if len(v.Checks) > 0 {
		p.wrap("  checks: ", strings.Join(v.Checks, ", "))
	}
	p.WriteString("\n")
	listRows(p, v.Incidents)
	counts(p, "Words that come with it", v.Together)
	counts(p, "Conditions that come with it", v.Conditions)
}

func counts(p *paper, heading string, list []incident.Count) {
	if len(list) == 0 {
		return
	}
	p.heading(heading)
	for _, c := range list {
		fmt.Fprintf(p, "  %4d  %-10s %s\n", c.Records, c.Facet, c.Slug)
	}
}

// meaning writes what a word means.
func meaning(p *paper, indent string, w incident.Word) {
	if w.Title != "" {
		p.wrap(indent, w.Title)
	}
	p.wrap(indent, w.Meaning)
	if w.Fails != "" {
		p.wrap(indent+"fails when: ", w.Fails)
	}
	if len(w.Also) > 0 {
		p.wrap(indent+"also: ", strings.Join(w.Also, ", "))
	}
}

func (v subjectView) markdown(p *paper) {
	fmt.Fprintf(p, "# %s: %s\n\n%s\n\n", v.Kind, v.Slug, md(v.Word.Meaning))
	if v.Word.Fails != "" {
		fmt.Fprintf(p, "Fails when: %s\n\n", md(v.Word.Fails))
	}
	if len(v.Checks) > 0 {
		fmt.Fprintf(p, "Checks: %s\n\n", strings.Join(v.Checks, ", "))
	}
	listMarkdown(p, v.Incidents)
}

type wordsView struct{ *library.Words }

func (v wordsView) data() any { return v.Words }

func (v wordsView) table(p *paper) {
	for i, k := range v.Kinds {
		if i > 0 {
			p.WriteString("\n")
		}
		fmt.Fprintf(p, "%s\n", k.Kind)
		for _, w := range k.Words {
			p.wrap(fmt.Sprintf("  %4d  %-30s ", w.Records, w.Slug), headline(w.Word))
		}
	}
}

// headline is a word's title, or its meaning.
func headline(w incident.Word) string {
	if w.Title != "" {
		return w.Title
	}
	return w.Meaning
}

func (v wordsView) markdown(p *paper) {
	for i, k := range v.Kinds {
		if i > 0 {
			p.WriteString("\n")
		}
		fmt.Fprintf(p, "## %s\n\n", k.Kind)
		p.head("word", "incidents", "meaning", "also")
		for _, w := range k.Words {
			p.row(w.Slug, strconv.Itoa(w.Records), md(w.Word.Meaning), md(strings.Join(w.Word.Also, ", ")))
		}
	}
}

type meaningView struct{ *library.Meanings }

func (v meaningView) data() any { return v.Meanings }

func (v meaningView) table(p *paper) {
	for i, f := range v.Found {
		if i > 0 {
			p.WriteString("\n")
		}
		fmt.Fprintf(p, "%s %s, %s\n", f.Facet, f.Slug, shown(f.Records, f.Records))
		meaning(p, "  ", f.Word)
		if len(f.Word.Checks) > 0 {
			p.wrap("  checks: ", strings.Join(f.Word.Checks, ", "))
		}
		fmt.Fprintf(p, "  hourthree incidents topic %s %s\n", f.Facet, f.Slug)
	}
}

func (v meaningView) markdown(p *paper) {
	for _, f := range v.Found {
		fmt.Fprintf(p, "- **%s** (%s, %s): %s\n", f.Slug, f.Facet, shown(f.Records, f.Records), md(f.Word.Meaning))
	}
}

type statsView struct{ *incident.Stats }

func (v statsView) data() any { return v.Stats }

// mostStats is how many words of each kind the table has.
const mostStats = 8

func (v statsView) table(p *paper) {
	fmt.Fprintf(p, "%d incidents, %d claims, %d sources of %d publishers\n", v.Records, v.Claims, v.Sources, v.Publishers)
	fmt.Fprintf(p, "%d can be replayed as a drill; of %d the date is not known\n", v.WithDrills, v.Undated)
	for _, m := range []struct {
		what string
		m    incident.Median
	}{{"detect", v.Detect}, {"resolve", v.Resolve}} {
		if m.m.Records > 0 {
			p.wrap("", fmt.Sprintf("median time to %s: %s, over the %d whose sources give it", m.what, library.Minutes(int(m.m.Minutes+0.5)), m.m.Records))
		}
	}
	p.heading("Claims")
	for _, k := range incident.Kinds() {
		fmt.Fprintf(p, "  %4d  %s\n", v.Kinds[k], k)
	}
	p.heading("Years")
	for _, y := range v.Years {
		fmt.Fprintf(p, "  %4d  %s\n", y.Records, y.Year)
	}
	for _, f := range incident.Facets() {
		p.heading("Most frequent: " + string(f))
		for _, c := range v.Words[f][:min(mostStats, len(v.Words[f]))] {
			fmt.Fprintf(p, "  %4d  %s\n", c.Records, c.Slug)
		}
	}
}

func (v statsView) markdown(p *paper) {
	p.head("", "number")
	p.row("incidents", strconv.Itoa(v.Records))
	p.row("claims", strconv.Itoa(v.Claims))
	p.row("sources", strconv.Itoa(v.Sources))
	p.row("publishers", strconv.Itoa(v.Publishers))
	for _, k := range incident.Kinds() {
		p.row("claims that are "+string(k), strconv.Itoa(v.Kinds[k]))
	}
}

// faultsView is what is wrong with files.
type faultsView struct {
	faults incident.Faults
	files  int
}

func (v faultsView) data() any {
	if v.faults == nil {
		return incident.Faults{}
	}
	return v.faults
}

func (v faultsView) table(p *paper) {
	for _, f := range v.faults {
		p.WriteString(plainText(f.Error()) + "\n")
	}
	if len(v.faults) == 0 {
		fmt.Fprintf(p, "good: %s\n", records(v.files))
		return
	}
	fmt.Fprintf(p, "\n%s\n", plural(len(v.faults), "fault"))
}

func records(n int) string { return plural(n, "record") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (v faultsView) markdown(p *paper) {
	p.head("place", "fault", "remedy")
	for _, f := range v.faults {
		p.row(md(fmt.Sprintf("%s:%d:%d %s", f.File, f.Line, f.Column, f.Path)), md(f.Message), md(f.Remedy))
	}
}
