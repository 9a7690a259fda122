package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
)

type detailView struct{ *library.Detail }

func (v detailView) data() any { return v.Detail }

func (v detailView) table(p *paper) {
	p.wrap(v.ID+"  ", v.Title)
	p.WriteString("\n")
	v.facts(p)
	p.section("Summary", v.Summary)
	if len(v.Timeline) > 0 {
		p.heading("Timeline (UTC)")
		for _, m := range v.Timeline {
			p.wrap(fmt.Sprintf("  %-17s ", library.Moment(m.At)), m.What)
		}
	}
	p.section("Trigger", v.Trigger)
	p.section("Root cause", v.RootCause)
	p.section("Detection", v.Detection)
	p.section("Remediation", v.Remediation...)
	p.section("Lessons", v.Lessons...)
	v.ledger(p)
	v.sources(p)
	v.exposures(p)
	if len(v.Replays) > 0 {
		p.heading("Drills")
		for _, r := range v.Replays {
			p.WriteString("  " + plainText(r.Command) + "\n")
		}
	}
	if len(v.Relations) > 0 {
		p.heading("Related")
		for _, r := range v.Relations {
			p.wrap("  "+r.ID+"  ", r.Title)
		}
	}
}

func (v detailView) facts(p *paper) {
	p.labelled("provider", v.Provider)
	p.labelled("service", v.Service)
	p.labelled("when", library.When(v.Record))
	p.labelled("regions", strings.Join(v.Regions, "; "))
	p.labelled("domain", v.Domain)
	p.labelled("times", v.times())
	p.labelled("counted", v.TimeBasis)
	p.labelled("causes", strings.Join(v.Tags.Causes, ", "))
	p.labelled("symptoms", strings.Join(v.Tags.Symptoms, ", "))
	p.labelled("topics", strings.Join(v.Tags.Topics, ", "))
	p.labelled("components", strings.Join(v.Tags.Components, ", "))
	p.labelled("evidence", library.Arithmetic(v.Evidence))
}

func (v detailView) times() string {
	var parts []string
	for _, t := range []struct {
		what string
		n    *int
	}{{"detected", v.TimeToDetect}, {"acknowledged", v.TimeToAcknowledge}, {"resolved", v.TimeToResolve}} {
		if t.n != nil {
			parts = append(parts, t.what+" after "+library.Minutes(*t.n))
		}
	}
	return strings.Join(parts, ", ")
}

// loud is a kind as the ledger shows it: what is no fact stands out.
func loud(k incident.Kind) string {
	switch k {
	case incident.Unconfirmed, incident.Illustrative:
		return strings.ToUpper(string(k))
	}
	return string(k)
}

func (v detailView) ledger(p *paper) {
	p.heading("Claims, the best carried first")
	for _, c := range v.Ledger {
		p.wrap(fmt.Sprintf("  %3d %-13s", c.Rank, loud(c.Claim.Kind)), c.Claim.Text+" ["+cited(c.Claim)+"]"+basis(c.Claim))
	}
	for _, k := range []incident.Kind{incident.Unconfirmed, incident.Illustrative} {
		if v.Evidence.Kinds[k] > 0 {
			p.wrap("  ", loud(k)+": "+noFact[k])
		}
	}
	if len(v.Figures) > 0 {
		p.heading("Figures")
		for _, f := range v.Figures {
			p.wrap(fmt.Sprintf("  %-30s ", spoken(f.Name)), strconv.FormatFloat(f.Value, 'f', -1, 64)+" "+f.Unit+" ["+v.carried(f)+"]")
		}
	}
}

// carried is the claim that a figure is from, with its kind where that is no fact.
func (v detailView) carried(f incident.Figure) string {
	for _, c := range v.Claims {
		if c.ID == f.Claim && noFact[c.Kind] != "" {
			return f.Claim + ", " + loud(c.Kind)
		}
	}
	return f.Claim
}

// noFact says why a kind of claim is not to be taken for a fact.
var noFact = map[incident.Kind]string{
	incident.Unconfirmed:  "the source does not vouch for it, or sources disagree.",
	incident.Illustrative: "an assumption for modelling, not a fact about the incident.",
}

// basis is what a claim was got from, or what is against it.
func basis(c incident.Claim) string {
	if c.Basis == "" {
		return ""
	}
	return " Basis: " + c.Basis
}

// cited is a claim's own id and where it comes from.
func cited(c incident.Claim) string {
	s := c.ID + ", " + c.Source
	if c.Second != "" {
		s += " and " + c.Second
	}
	return s
}

func described(s incident.Source) string {
	text := s.Title + "; " + s.Publisher
	if s.Date != "" {
		text += ", " + s.Date
	}
	text += "; " + library.Reading(s.Access)
	if s.Official {
		text += "; the operator's own"
	}
	if s.Via != "" {
		text += "; via " + s.Via
	}
	return text
}

func (v detailView) sources(p *paper) {
	p.heading("Sources")
	for _, s := range v.Sources {
		prefix := fmt.Sprintf("  %-4s", s.ID)
		p.wrap(prefix, described(s))
		if s.URL != "" {
			p.WriteString("      " + strings.TrimSpace(plainText(s.URL)) + "\n") // an address is not broken
		}
	}
}

func (v detailView) exposures(p *paper) {
	if len(v.Conditions) == 0 {
		return
	}
	p.heading("Conditions that made it possible")
	for _, c := range v.Conditions {
		p.wrap("  ", c.Title+" ("+c.Slug+")")
		p.wrap("    here: ", c.Text)
		p.wrap("    fails when: ", c.Fails)
		if len(c.Checks) > 0 {
			p.wrap("    checks: ", strings.Join(c.Checks, ", "))
		}
	}
}

func (v detailView) markdown(p *paper) {
	fmt.Fprintf(p, "# %s: %s\n\n", v.ID, md(v.Title))
	p.head("", "")
	for _, f := range [][2]string{
		{"provider", v.Provider}, {"service", v.Service}, {"when", library.When(v.Record)}, {"regions", strings.Join(v.Regions, "; ")}, {"domain", v.Domain},
		{"times", v.times()}, {"counted", v.TimeBasis}, {"causes", strings.Join(v.Tags.Causes, ", ")}, {"symptoms", strings.Join(v.Tags.Symptoms, ", ")},
		{"topics", strings.Join(v.Tags.Topics, ", ")}, {"components", strings.Join(v.Tags.Components, ", ")}, {"evidence", library.Arithmetic(v.Evidence)},
	} {
		if f[1] != "" {
			p.row(f[0], md(f[1]))
		}
	}
	fmt.Fprintf(p, "\n%s\n", md(v.Summary))
	v.markdownTimeline(p)
	for _, s := range []struct {
		heading string
		texts   []string
	}{{"Trigger", []string{v.Trigger}}, {"Root cause", []string{v.RootCause}}, {"Detection", []string{v.Detection}}, {"Remediation", v.Remediation}, {"Lessons", v.Lessons}} {
		markdownSection(p, s.heading, s.texts)
	}
	p.WriteString("\n## Claims\n\n")
	p.head("rank", "kind", "claim", "source")
	for _, c := range v.Ledger {
		p.row(strconv.Itoa(c.Rank), "**"+loud(c.Claim.Kind)+"**", md(c.Claim.Text+basis(c.Claim)), md(cited(c.Claim)))
	}
	v.markdownFigures(p)
	p.WriteString("\n## Sources\n\n")
	for _, s := range v.Sources {
		fmt.Fprintf(p, "- %s: %s %s\n", s.ID, md(described(s)), md(s.URL))
	}
	v.markdownConditions(p)
}

func (v detailView) markdownFigures(p *paper) {
	for _, k := range []incident.Kind{incident.Unconfirmed, incident.Illustrative} {
		if v.Evidence.Kinds[k] > 0 {
			fmt.Fprintf(p, "\n**%s**: %s\n", loud(k), md(noFact[k]))
		}
	}
	if len(v.Figures) == 0 {
		return
	}
	p.WriteString("\n## Figures\n\n")
	p.head("figure", "value", "claim")
	for _, f := range v.Figures {
		p.row(md(spoken(f.Name)), md(strconv.FormatFloat(f.Value, 'f', -1, 64)+" "+f.Unit), md(v.carried(f)))
	}
}

func (v detailView) markdownTimeline(p *paper) {
	if len(v.Timeline) == 0 {
		return
	}
	p.WriteString("\n## Timeline\n\n")
	p.head("UTC", "what")
	for _, m := range v.Timeline {
		p.row(library.Moment(m.At), md(m.What))
	}
}

func markdownSection(p *paper, heading string, texts []string) {
	if len(texts) == 0 || texts[0] == "" {
		return
	}
	fmt.Fprintf(p, "\n## %s\n\n", heading)
	if len(texts) == 1 {
		p.WriteString(md(texts[0]) + "\n")
		return
	}
	for _, t := range texts {
		p.WriteString("- " + md(t) + "\n")
	}
}

func (v detailView) markdownConditions(p *paper) {
	if len(v.Conditions) > 0 {
		p.WriteString("\n## Conditions\n\n")
		p.head("condition", "here", "checks")
		for _, c := range v.Conditions {
			p.row(md(c.Title), md(c.Text), strings.Join(c.Checks, ", "))
		}
	}
	if len(v.Replays) > 0 {
		p.WriteString("\n## Drills\n\n")
		for _, r := range v.Replays {
			fmt.Fprintf(p, "    %s\n", plainText(r.Command))
		}
	}
	if len(v.Relations) > 0 {
		p.WriteString("\n## Related\n\n")
		for _, r := range v.Relations {
			fmt.Fprintf(p, "- %s %s\n", r.ID, md(r.Title))
		}
	}
}
