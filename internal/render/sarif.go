package render

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// The part of SARIF 2.1.0 that is written.
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Automation  sarifID           `json:"automationDetails"`
	Invocations []sarifInvocation `json:"invocations"`
	Artifacts   []sarifArtifact   `json:"artifacts,omitempty"`
	Results     []sarifResult     `json:"results"`
	ColumnKind  string            `json:"columnKind"`
	Properties  map[string]any    `json:"properties"`
}

type sarifID struct {
	ID string `json:"id"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name        string      `json:"name"`
	Version     string      `json:"version,omitempty"`
	Information string      `json:"informationUri"`
	Rules       []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID         string         `json:"id"`
	Short      sarifText      `json:"shortDescription"`
	Full       sarifText      `json:"fullDescription"`
	HelpURI    string         `json:"helpUri"`
	Help       sarifHelp      `json:"help"`
	Default    sarifDefault   `json:"defaultConfiguration"`
	Properties map[string]any `json:"properties"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifHelp struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown"`
}

type sarifDefault struct {
	Level string `json:"level"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Descriptor sarifID         `json:"descriptor"`
	Rule       *sarifRuleRef   `json:"associatedRule,omitempty"`
	Level      string          `json:"level"`
	Message    sarifText       `json:"message"`
	Locations  []sarifLocation `json:"locations,omitempty"`
}

type sarifRuleRef struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

type sarifArtifact struct {
	Location    sarifURI  `json:"location"`
	Description sarifText `json:"description"`
}

type sarifURI struct {
	URI string `json:"uri"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	RuleIndex    int                `json:"ruleIndex"`
	Kind         string             `json:"kind"`
	Level        string             `json:"level"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations"`
	Related      []sarifLocation    `json:"relatedLocations,omitempty"`
	Fingerprints map[string]string  `json:"partialFingerprints"`
	Baseline     string             `json:"baselineState,omitempty"`
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	Properties   map[string]any     `json:"properties"`
}

type sarifLocation struct {
	ID       int            `json:"id,omitempty"`
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	Message  *sarifText     `json:"message,omitempty"`
}

type sarifPhysical struct {
	Artifact sarifURI    `json:"artifactLocation"`
	Region   sarifRegion `json:"region"`
}

type sarifRegion struct {
	Line   int `json:"startLine"`
	Column int `json:"startColumn"`
}

type sarifLogical struct {
	Name          string `json:"name"`
	Qualified     string `json:"fullyQualifiedName"`
	DecoratedName string `json:"decoratedName,omitempty"`
	Kind          string `json:"kind"`
}

type sarifSuppression struct {
	Kind          string         `json:"kind"`
	Status        string         `json:"status"`
	Justification string         `json:"justification"`
	Location      *sarifLocation `json:"location,omitempty"`
}

type sarif struct {
	*view
	index map[string]int
	live  map[string]string // URIs of live objects and what they stand for
}

func (v *view) sarif(w io.Writer) error {
	s := sarif{view: v, index: map[string]int{}, live: map[string]string{}}
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "hourthree", Version: v.Version, Information: home, Rules: s.rules()}},
		Automation: sarifID{"hourthree-audit/"}, ColumnKind: "unicodeCodePoints",
		Results: []sarifResult{}, Properties: map[string]any{"coverage": v.Report.Coverage},
	}
	for i := range v.findings {
		run.Results = append(run.Results, s.result(&v.findings[i]))
	}
	run.Invocations = []sarifInvocation{{Successful: true, Notifications: s.notifications()}}
	run.Artifacts = s.artifacts()
	if d := v.Diff; d != nil {
		// A result with baselineState absent would be an open alert to readers that
		// do not know that property.
		run.Properties["fixed"], run.Properties["notLookedFor"] = d.Fixed, d.Unknown
	}
	return indented(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

// rules are the catalogue's, and checks of findings that it does not have.
func (s *sarif) rules() []sarifRule {
	rules := []sarifRule{}
	add := func(c *audit.Check) {
		if _, ok := s.index[c.ID]; ok {
			return
		}
		s.index[c.ID] = len(rules)
		rules = append(rules, rule(c))
	}
	for _, c := range s.Checks {
		add(c)
	}
	for i := range s.findings {
		add(s.check(&s.findings[i]))
	}
	return rules
}

func rule(c *audit.Check) sarifRule {
	why := cmp.Or(c.Why, c.Title, c.ID)
	text, mark := "Why: "+why+"\n\nFix: "+c.Fix, "**Why:** "+escape(why)+"\n\n**Fix:** "+escape(c.Fix)
	if c.Patch != "" {
		text += "\n\n" + c.Patch
		mark += "\n\n" + fenced("yaml", c.Patch)
	}
	if c.Caution != "" {
		text += "\n\nCaution: " + c.Caution
		mark += "\n\n**Caution:** " + escape(c.Caution)
	}
	return sarifRule{
		ID: c.ID, Short: sarifText{cmp.Or(c.Title, c.ID)}, Full: sarifText{cmp.Or(c.Condition, c.Title, c.ID)},
		HelpURI: helpURI(c.ID), Help: sarifHelp{text, mark}, Default: sarifDefault{level(c.Severity)},
		Properties: map[string]any{
			"cause": list(c.Causes), "severity": c.Severity.String(), "confidence": c.Confidence,
			"precision": cmp.Or(c.Confidence, "medium"), "tags": tags(c),
		},
	}
}

func tags(c *audit.Check) []string {
	t := append([]string{"reliability"}, c.Causes...)
	slices.Sort(t)
	return slices.Compact(t)
}

func level(s audit.Severity) string {
	switch {
	case s >= audit.High:
		return "error"
	case s == audit.Medium:
		return "warning"
	}
	return "note"
}

func (s *sarif) result(f *audit.Finding) sarifResult {
	r := sarifResult{
		RuleID: f.ID, RuleIndex: s.index[f.ID], Kind: "fail", Level: level(f.Severity),
		Message: sarifText{s.message(f)}, Locations: []sarifLocation{s.location(f.Place, f.Object, f.Container)},
		Fingerprints: map[string]string{"hourthree/v1": f.Key}, Baseline: string(f.Change),
		Properties: map[string]any{
			"severity": f.Severity.String(), "observed": f.Observed, "expected": f.Expected,
			"path": f.Path, "incidents": list(f.Incidents),
		},
	}
	if f.Drill != "" {
		r.Properties["drill"] = f.Drill
	}
	for i, p := range f.Related {
		l := s.location(p.Place, p.Object, "")
		l.ID, l.Message = i+1, &sarifText{plain(cmp.Or(clean(p.Note), clean(p.Object.String())))}
		r.Related = append(r.Related, l)
	}
	if f.State == audit.Waived {
		r.Suppressions = []sarifSuppression{suppression(f.Waiver)}
	}
	return r
}

// message is plain text.
func (s *sarif) message(f *audit.Finding) string {
	text := clean(owner(f.Object, f.Container)) + ": " + cmp.Or(clean(f.Title), f.ID) + "."
	if said := clean(said(f)); said != "" {
		text += " " + strings.TrimRight(upper(said), ".") + "."
	}
	if fix := s.check(f).Fix; fix != "" {
		text += " Fix: " + clean(fix)
	}
	for i, id := range f.Incidents {
		if i == 3 {
			text += fmt.Sprintf(" and %d more", len(f.Incidents)-i)
			break
		}
		if i == 0 {
			text += " Seen in"
		} else {
			text += ";"
		}
		text += " " + clean(strings.TrimSpace(id+" "+s.title(id)))
	}
	return plain(text)
}

// placeholder is what SARIF takes for an argument of a message.
var placeholder = regexp.MustCompile(`\{(\d+)\}`)

// plain takes from text what SARIF would make a link or an argument of, and
// leaves all else readable to those that show messages as they are.
func plain(text string) string {
	if strings.Contains(text, "](") {
		text = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(text)
	}
	if !strings.Contains(text, "{") {
		return text
	}
	return placeholder.ReplaceAllString(text, "{{$1}}")
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func suppression(w *audit.Waiver) sarifSuppression {
	out := sarifSuppression{Kind: "external", Status: "accepted"}
	if w == nil {
		return out
	}
	out.Justification = clean(w.Reason) + " (until " + clean(w.Until) + ")"
	if w.Inline {
		out.Kind = "inSource"
	}
	if w.Place.File != "" {
		p := physical(w.Place)
		out.Location = &sarifLocation{Physical: &p}
	}
	return out
}

func (s *sarif) location(p topology.Place, o manifest.Ref, container string) sarifLocation {
	ph := physical(p)
	if p.Live {
		s.live[ph.Artifact.URI] = "live object: " + clean(o.String())
	}
	l := sarifLocation{Physical: &ph, Logical: []sarifLogical{{Name: clean(o.Name), Qualified: clean(o.String()), Kind: "object"}}}
	if container != "" {
		l.Logical = append(l.Logical, sarifLogical{Name: clean(container), Qualified: clean(owner(o, container)), Kind: "element"})
	}
	return l
}

func physical(p topology.Place) sarifPhysical {
	line, column := max(p.Line, 1), max(p.Column, 1)
	if p.Live {
		line, column = 1, 1
	}
	return sarifPhysical{sarifURI{fileURI(p.File)}, sarifRegion{line, column}}
}

// fileURI is a file's name as a URI: relative where the name is, so that it is
// found in the repository.
func fileURI(name string) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, `\`, "/"), "\uFFFD")
	switch {
	case name == "" || name == "-":
		return "stdin"
	case path.IsAbs(name):
		return (&url.URL{Scheme: "file", Path: path.Clean(name)}).String()
	}
	u := strings.TrimPrefix((&url.URL{Path: path.Clean(name)}).String(), "./")
	return strings.ReplaceAll(u, ":", "%3A") // which would end a scheme
}

// artifacts say that files of live objects do not exist.
func (s *sarif) artifacts() []sarifArtifact {
	var out []sarifArtifact
	for uri, what := range s.live {
		out = append(out, sarifArtifact{sarifURI{uri}, sarifText{what}})
	}
	slices.SortFunc(out, func(a, b sarifArtifact) int { return strings.Compare(a.Location.URI, b.Location.URI) })
	return out
}

func (s *sarif) notifications() []sarifNotification {
	var out []sarifNotification
	for _, p := range s.problems {
		n := sarifNotification{Descriptor: sarifID{"input"}, Level: "warning", Message: sarifText{plain(problem(p))}}
		if p.Lost {
			n.Level = "error"
		}
		ph := physical(topology.Place{File: p.File, Line: p.Line, Column: p.Column})
		n.Locations = []sarifLocation{{Physical: &ph}}
		out = append(out, n)
	}
	for _, o := range s.open {
		text := o.ID + " was not evaluated"
		if o.Object != nil {
			text += " for " + clean(o.Object.String())
		}
		text += ": " + clean(strings.ReplaceAll(string(o.Reason), "_", " "))
		if o.Detail != "" {
			text += ": " + clean(o.Detail)
		}
		n := sarifNotification{Descriptor: sarifID{"not-evaluated"}, Level: "warning", Message: sarifText{plain(text)}}
		if i, ok := s.index[o.ID]; ok {
			n.Rule = &sarifRuleRef{o.ID, i}
		}
		out = append(out, n)
	}
	return out
}
