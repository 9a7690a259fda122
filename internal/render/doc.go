// Package render writes what an audit found: as a table for a terminal, as JSON
// with a schema, as SARIF 2.1.0, as JUnit and as Markdown for a comment on a
// pull request; and the catalogue of checks as text.
//
// It judges nothing and drops nothing: every finding, waived ones too, every
// check that could not be decided and every fault of the input is in each
// format, but for Markdown, which is bounded and says what it leaves out. Names
// and values come from manifests that somebody else may have written: they can
// change no format's structure and no terminal's state.
package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// Audit is what is rendered. It is only read.
type Audit struct {
	Report  *audit.Report
	Checks  []*audit.Check    // the catalogue
	Library *incident.Library // for the titles of incidents; nil for ids alone
	Diff    *audit.Diff       // against a baseline; nil for none
	Version string            // of the program
}

// Format is a way of writing an audit.
type Format string

// The formats.
const (
	Table    Format = "table"
	JSON     Format = "json"
	SARIF    Format = "sarif"
	JUnit    Format = "junit"
	Markdown Format = "markdown"
)

// Formats are all of them.
func Formats() []Format { return []Format{Table, JSON, SARIF, JUnit, Markdown} }

// ParseFormat reads a format's name.
func ParseFormat(text string) (Format, error) {
	if slices.Contains(Formats(), Format(text)) {
		return Format(text), nil
	}
	return "", fmt.Errorf("format %q is none of table, json, sarif, junit, markdown", text)
}

// Write writes the audit in a format. The screen is for the table alone.
func (a *Audit) Write(w io.Writer, f Format, s Screen) error {
	v := viewOf(a)
	var err error
	switch f {
	case Table:
		_, err = io.WriteString(w, Inert(string(v.table(s))))
	case JSON:
		err = v.json(w)
	case SARIF:
		err = v.sarif(w)
	case JUnit:
		err = v.junit(w)
	case Markdown:
		_, err = w.Write(v.markdown())
	default:
		_, err = ParseFormat(string(f))
	}
	return err
}

const (
	home      = "https://github.com/hourthree/hourthree"
	pages     = home + "/blob/main/docs/"
	checkPage = pages + "checks.md"
)

// helpURI is where a check is described.
func helpURI(id string) string { return checkPage + "#" + strings.ToLower(id) }

// view is an audit with its lists in order and its checks and incidents found.
type view struct {
	*Audit
	findings []audit.Finding
	open     []audit.Open
	problems []manifest.Problem
	roles    []topology.RoleOf
	checks   map[string]*audit.Check
}

func viewOf(a *Audit) *view {
	v := &view{
		Audit: a, findings: slices.Clone(a.Report.Findings), open: slices.Clone(a.Report.Open),
		problems: slices.Clone(a.Report.Problems), roles: slices.Clone(a.Report.Roles), checks: map[string]*audit.Check{},
	}
	for _, c := range a.Checks {
		v.checks[c.ID] = c
	}
	slices.SortFunc(v.findings, compareFindings)
	slices.SortFunc(v.open, compareOpen)
	slices.SortFunc(v.problems, func(x, y manifest.Problem) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), strings.Compare(x.What, y.What))
	})
	slices.SortFunc(v.roles, func(x, y topology.RoleOf) int {
		return cmp.Or(compareRefs(x.Object, y.Object), strings.Compare(string(x.Role), string(y.Role)))
	})
	return v
}

// compareFindings orders by severity, id, namespace and name, and then by all
// else that tells two findings apart.
func compareFindings(x, y audit.Finding) int {
	return cmp.Or(
		cmp.Compare(y.Severity, x.Severity), strings.Compare(x.ID, y.ID), compareRefs(x.Object, y.Object),
		strings.Compare(x.Container, y.Container), strings.Compare(x.Place.File, y.Place.File),
		cmp.Compare(x.Place.Line, y.Place.Line), cmp.Compare(x.Place.Column, y.Place.Column),
		strings.Compare(x.Path, y.Path), strings.Compare(x.Observed, y.Observed), strings.Compare(x.Key, y.Key),
		strings.Compare(string(x.State), string(y.State)),
	)
}

func compareRefs(x, y manifest.Ref) int {
	return cmp.Or(
		strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name),
		strings.Compare(x.Kind, y.Kind), strings.Compare(x.Group, y.Group), strings.Compare(x.Version, y.Version),
	)
}

func compareOpen(x, y audit.Open) int {
	return cmp.Or(
		strings.Compare(x.ID, y.ID), compareRefs(refOf(x.Object), refOf(y.Object)),
		strings.Compare(string(x.Reason), string(y.Reason)), strings.Compare(x.Detail, y.Detail),
	)
}

func refOf(r *manifest.Ref) manifest.Ref {
	if r == nil {
		return manifest.Ref{}
	}
	return *r
}

// title is an incident's, "" for one that is not in the library.
func (v *view) title(id string) string {
	if v.Library == nil {
		return ""
	}
	r, ok := v.Library.Get(id)
	if !ok {
		return ""
	}
	return r.Title
}

// check is the finding's, an empty one where neither it nor the catalogue has it.
func (v *view) check(f *audit.Finding) *audit.Check {
	if f.Check != nil {
		return f.Check
	}
	if c := v.checks[f.ID]; c != nil {
		return c
	}
	return &audit.Check{ID: f.ID, Title: f.Title, Severity: f.Severity}
}

// count are the findings of a state and severity.
func (v *view) count(s audit.State, severity audit.Severity) int {
	n := 0
	for i := range v.findings {
		if v.findings[i].State == s && v.findings[i].Severity == severity {
			n++
		}
	}
	return n
}

// bySeverity says "1 critical, 3 high", "" for nothing.
func (v *view) bySeverity() string {
	var parts []string
	for s := audit.Critical; s >= audit.Low; s-- {
		if n := v.count(audit.Fail, s); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// waived are the findings that are.
func (v *view) waived() int {
	n := 0
	for s := audit.Low; s <= audit.Critical; s++ {
		n += v.count(audit.Waived, s)
	}
	return n
}

// coverage is the line that every output has.
func (v *view) coverage() string {
	c := v.Report.Coverage
	s := fmt.Sprintf("%s on %s: %d pass, %d fail, %d waived, %d not evaluated",
		many(c.Checks, "check"), many(c.Objects, "object"), c.Pass, c.Fail, c.Waived, c.NotEvaluated)
	if why := v.reasons(); len(why) > 0 {
		most := why[0].text
		if len(why) > 1 {
			most += fmt.Sprintf(" and %s", many(len(why)-1, "other reason"))
		}
		s += " (" + most + ")"
	}
	if v.Report.Empty && c.Objects > 0 {
		s += "; none of them was found to be on the way to a model, a label " + topology.RoleLabel + " says that one is"
	}
	return s
}

// reason is why checks were not evaluated, and which.
type reason struct {
	text string
	ids  []string
}

// reasons are those of the report, the one that concerns most checks first.
func (v *view) reasons() []reason {
	at := map[string]int{}
	var list []reason
	for _, o := range v.open {
		text := clean(strings.ReplaceAll(string(o.Reason), "_", " "))
		if d := clean(o.Detail); d != "" {
			text += ": " + d
		}
		i, ok := at[text]
		if !ok {
			i = len(list)
			at[text] = i
			list = append(list, reason{text: text})
		}
		if !slices.Contains(list[i].ids, o.ID) {
			list[i].ids = append(list[i].ids, o.ID)
		}
	}
	slices.SortStableFunc(list, func(x, y reason) int { return cmp.Compare(len(y.ids), len(x.ids)) })
	return list
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// at is a place as file:line.
func at(p topology.Place) string {
	if p.Line <= 0 || p.Live {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// owner names the object of a finding, and the container, or route of a gateway,
// where it is one's.
func owner(r manifest.Ref, part string) string {
	s := r.String()
	if part != "" {
		s += " (" + part + ")"
	}
	return s
}

// said is what was found and what was expected, in one sentence.
func said(f *audit.Finding) string {
	switch {
	case f.Observed == "":
		return f.Expected
	case f.Expected == "":
		return f.Observed
	case strings.HasPrefix(f.ID, "WVR-"):
		return f.Observed + "; " + f.Expected
	}
	return f.Observed + "; expected " + f.Expected
}

// seen are the incidents that had it: the first, and how many more.
func seen(f *audit.Finding) string {
	switch n := len(f.Incidents); n {
	case 0:
		return ""
	case 1:
		return clean(f.Incidents[0])
	default:
		return clean(f.Incidents[0]) + fmt.Sprintf(" +%d", n-1)
	}
}
