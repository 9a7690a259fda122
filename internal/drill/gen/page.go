package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/report"
)

const generated = "<!-- Made by go generate ./internal/drill; do not edit. -->\n\n"

// router is the contender that a page gives figures of.
const router = "router"

// index lists the drills.
func index(all []*drill.Scenario, recorded []report.Summary) []byte {
	b := bytes.NewBufferString(generated)
	b.WriteString("# The drills\n\nHow to run, read and write one is in [drills.md](../drills.md). Verdicts are those of\n" +
		"[results.json](results.json); each page says of which version and seed.\n\n")
	var rows [][]string
	for _, s := range all {
		verdict, missed := "not recorded", ""
		if r := find(recorded, s.Name); r != nil {
			var failing []string
			for _, run := range r.Runs {
				if run.Contender == router {
					verdict = run.Verdict
				} else if run.Verdict == "FAIL" {
					failing = append(failing, run.Contender)
				}
			}
			if n := len(r.Runs); n > 1 {
				missed = fmt.Sprintf("%d of %d", len(failing), n-1)
			}
		}
		rows = append(rows, []string{fmt.Sprintf("[%s](%s.md)", s.Name, s.Name), escape(s.Incident), escape(s.Title), verdict, missed})
	}
	writeTable(b, []string{"drill", "incident", "what happens", "router", "others that fail"}, rows)
	return b.Bytes()
}

// page is one drill's; r is its record, or nil.
func page(s *drill.Scenario, r *report.Summary) []byte {
	b := bytes.NewBufferString(generated)
	fmt.Fprintf(b, "# %s\n\n", escape(s.Title))
	fmt.Fprintf(b, "- scenario: [%s](../../internal/drill/drills/%s.yaml)\n", s.Name, s.Name)
	if s.Incident != "" {
		fmt.Fprintf(b, "- incident: %s\n", escape(s.Incident))
	}
	fmt.Fprintf(b, "- time: %s\n", when(s))
	if seed := uint64(1); r != nil {
		seed = r.Seed
		fmt.Fprintf(b, "- replay: `hourthree drill run %s --seed %d --html %s.html`\n", s.Name, seed, s.Name)
	} else {
		fmt.Fprintf(b, "- replay: `hourthree drill run %s --html %s.html`\n", s.Name, s.Name)
	}
	bullets(b, "What the sources say", s.Facts)
	bullets(b, "What is assumed", s.Assumptions)
	result(b, s, r)
	criteria(b, s, r)
	marks(b, s)
	if s.Gateway != nil {
		section(b, "Gateway", []drill.Gateway{*s.Gateway})
	}
	section(b, "Workloads", s.Workloads)
	section(b, "Targets", s.Targets)
	section(b, "Faults", s.Faults)
	section(b, "Actions", s.Actions)
	b.WriteString("\nThe columns are the settings of the scenario file; [drills.md](../drills.md) says what they mean.\n")
	return b.Bytes()
}

// when says what time of the incident the drill covers.
func when(s *drill.Scenario) string {
	factor := cmp.Or(s.Compression, 1)
	text := fmt.Sprintf("%s virtual", span(s.Length))
	if factor != 1 {
		text += fmt.Sprintf(", one second for %g of the incident", factor)
	}
	if s.Start.IsZero() {
		return text
	}
	const form = "2006-01-02 15:04:05"
	return fmt.Sprintf("%s to %s UTC, %s", s.Start.UTC().Format(form), clock(s, s.Length).Format(form), text)
}

// clock is the incident's at a virtual time.
func clock(s *drill.Scenario, at time.Duration) time.Time {
	return s.Start.Add(time.Duration(float64(at) * cmp.Or(s.Compression, 1))).UTC()
}

func bullets(b *bytes.Buffer, title string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, text := range list {
		fmt.Fprintf(b, "- %s\n", escape(text))
	}
}

func marks(b *bytes.Buffer, s *drill.Scenario) {
	if len(s.Marks) == 0 {
		return
	}
	b.WriteString("\n## What happened when\n\n")
	head := []string{"virtual", "UTC", "event"}
	var rows [][]string
	for _, m := range s.Marks {
		at := ""
		if !s.Start.IsZero() {
			at = clock(s, m.At).Format("2 Jan 15:04:05")
		}
		rows = append(rows, []string{span(m.At), at, escape(m.Text)})
	}
	writeTable(b, head, rows)
}

// result is the verdict on each contender.
func result(b *bytes.Buffer, s *drill.Scenario, r *report.Summary) {
	b.WriteString("\n## Result\n\n")
	if r == nil {
		b.WriteString("Not recorded yet.\n")
		return
	}
	fmt.Fprintf(b, "Of version %s, with seed %d.", cmp.Or(r.Version, "unknown"), r.Seed)
	if r.Length != s.Length {
		b.WriteString(" The scenario has another length now.")
	}
	b.WriteString("\n\n")
	var rows [][]string
	for _, run := range r.Runs {
		rows = append(rows, []string{
			escape(run.Contender), run.Verdict, run.Success(), run.Amplification(), run.Slowest(), fmt.Sprint(run.Crashes),
		})
	}
	writeTable(b, []string{"contender", "verdict", "good answers", "calls at targets a request", "worst p99", "crashes"}, rows)
}

// said is how a criterion ended, with its figure also where it is not counted.
func said(run report.RunSummary, j drill.Judgement) string {
	word, text := run.Said(j)
	if j.Needs != "" && j.Err == "" {
		text = report.Figure(j.Value)
	}
	return escape(word + " " + text)
}

// criteria are what is asked, the router's figures, and who missed it.
func criteria(b *bytes.Buffer, s *drill.Scenario, r *report.Summary) {
	b.WriteString("\n## Criteria\n\n")
	var rows [][]string
	for _, c := range s.Criteria {
		ours, missed := "not recorded", []string{}
		if r != nil {
			for _, run := range r.Runs {
				i := slices.IndexFunc(run.Criteria, func(j drill.Judgement) bool { return j.Name == c.Name && j.Expr == c.Expr })
				if i < 0 {
					continue
				}
				j := run.Criteria[i]
				j.Needs, j.Fails = c.Needs, c.Fails
				if run.Contender == router {
					ours = said(run, j)
				} else if !j.Met {
					missed = append(missed, run.Contender)
				}
			}
		}
		rows = append(rows, []string{
			escape(c.Name), code(c.Expr), ours, escape(strings.Join(missed, ", ")), escape(strings.Join(c.Fails, ", ")), escape(c.Needs),
		})
	}
	writeTable(b, []string{"what must hold", "expression", "router", "missed by", "is to be missed by", "needs, and is not counted"}, rows)
}
