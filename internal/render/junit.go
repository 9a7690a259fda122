package render

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/manifest"
)

type junitAll struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Properties *junitProps     `xml:"properties"`
	Cases      []junitTestCase `xml:"testcase"`
}

type junitProps struct {
	List []junitProp `xml:"property"`
}

type junitProp struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitTestCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	File    string     `xml:"file,attr,omitempty"`
	Line    int        `xml:"line,attr,omitempty"`
	Failure *junitSaid `xml:"failure"`
	Error   *junitSaid `xml:"error"`
	Skipped *junitSaid `xml:"skipped"`
}

type junitSaid struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",cdata"`
}

// junit has a suite for each group of checks and a case for each check and
// object.
func (v *view) junit(w io.Writer) error {
	all := junitAll{Name: "hourthree audit"}
	suites := map[string]*junitSuite{}
	suite := func(name string) *junitSuite {
		if suites[name] == nil {
			suites[name] = &junitSuite{Name: name}
		}
		return suites[name]
	}
	for _, cases := range v.byCase() {
		s := suite(groupOf(cases[0].ID))
		s.Cases = append(s.Cases, v.testCase(cases))
	}
	for _, p := range v.passed() {
		s := suite(groupOf(p.ID))
		s.Cases = append(s.Cases, junitTestCase{Class: clean(p.ID), Name: clean(p.ID + " " + p.Object.String())})
	}
	for _, o := range v.open {
		s := suite(groupOf(o.ID))
		s.Cases = append(s.Cases, openCase(o))
	}
	for _, p := range v.problems {
		s := suite("input")
		s.Cases = append(s.Cases, problemCase(p))
	}
	s := suite("coverage")
	s.Properties = v.properties()
	s.Cases = append(s.Cases, junitTestCase{Class: "coverage", Name: clean(v.coverage())})
	for _, s := range suites {
		slices.SortStableFunc(s.Cases, func(a, b junitTestCase) int {
			return cmp.Or(strings.Compare(a.Class, b.Class), strings.Compare(a.Name, b.Name))
		})
		s.count()
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, *s)
	}
	slices.SortFunc(all.Suites, func(a, b junitSuite) int { return strings.Compare(a.Name, b.Name) })
	_, err := io.WriteString(w, xml.Header)
	if err == nil {
		enc := xml.NewEncoder(w)
		enc.Indent("", "  ")
		err = enc.Encode(all)
	}
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	if err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}

// passed are the pairs that did, in order.
func (v *view) passed() []audit.Passed {
	return slices.SortedFunc(slices.Values(v.Report.Passed), func(a, b audit.Passed) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), compareRefs(a.Object, b.Object))
	})
}

func groupOf(id string) string {
	letters, _, _ := strings.Cut(id, "-")
	return cmp.Or(clean(letters), "other")
}

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

// byCase are the findings by check and object, by id.
func (v *view) byCase() [][]*audit.Finding {
	type pair struct {
		id     string
		object manifest.Ref
	}
	at := map[pair]int{}
	var cases [][]*audit.Finding
	for i := range v.findings {
		f := &v.findings[i]
		p := pair{f.ID, f.Object}
		n, ok := at[p]
		if !ok {
			n = len(cases)
			at[p] = n
			cases = append(cases, nil)
		}
		cases[n] = append(cases[n], f)
	}
	slices.SortStableFunc(cases, func(a, b []*audit.Finding) int { return strings.Compare(a[0].ID, b[0].ID) })
	return cases
}

func (v *view) testCase(findings []*audit.Finding) junitTestCase {
	first := findings[0]
	c := junitTestCase{
		Class: clean(first.ID), Name: clean(first.ID + " " + first.Object.String()),
		File: clean(first.Place.File), Line: max(first.Place.Line, 1),
	}
	var failed, waived []string
	for _, f := range findings {
		if f.State == audit.Waived {
			waived = append(waived, v.detail(f))
			continue
		}
		if len(failed) == 0 {
			c.Failure = &junitSaid{Message: clean(f.Title + ": " + said(f)), Type: f.Severity.String()}
			c.File, c.Line = clean(f.Place.File), max(f.Place.Line, 1)
		}
		failed = append(failed, v.detail(f))
	}
	switch {
	case c.Failure != nil:
		c.Failure.Text = "\n" + strings.Join(append(failed, waived...), "\n")
	case first.Waiver != nil:
		c.Skipped = &junitSaid{Message: clean("waived until " + first.Waiver.Until + ": " + first.Waiver.Reason), Text: "\n" + strings.Join(waived, "\n")}
	default:
		c.Skipped = &junitSaid{Message: "waived", Text: "\n" + strings.Join(waived, "\n")}
	}
	return c
}

// detail is all of a finding as lines of text.
func (v *view) detail(f *audit.Finding) string {
	var b strings.Builder
	line := func(name, text string) {
		if text = clean(text); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	k := v.check(f)
	line("place", at(f.Place))
	line("path", f.Path)
	line("part", f.Container)
	line("found", f.Observed)
	line("expected", f.Expected)
	if f.Waiver != nil {
		line("waived", "until "+f.Waiver.Until+": "+f.Waiver.Reason)
	}
	line("baseline", string(f.Change))
	line("why", k.Why)
	line("fix", k.Fix)
	for _, r := range f.Related {
		line("related", at(r.Place)+": "+r.Note)
	}
	for _, id := range f.Incidents {
		line("incident", id+" "+v.title(id))
	}
	if f.Drill != "" {
		line("drill", "hourthree drill run "+f.Drill)
	}
	line("help", helpURI(f.ID))
	return b.String()
}

func openCase(o audit.Open) junitTestCase {
	name := o.ID + " all objects"
	if o.Object != nil {
		name = o.ID + " " + o.Object.String()
	}
	said := "not evaluated: " + strings.ReplaceAll(string(o.Reason), "_", " ")
	if o.Detail != "" {
		said += ": " + o.Detail
	}
	return junitTestCase{Class: clean(o.ID), Name: clean(name), Skipped: &junitSaid{Message: clean(said)}}
}

// problemCase is an error where something was not read that may hold objects.
func problemCase(p manifest.Problem) junitTestCase {
	c := junitTestCase{Class: "input", Name: clean(p.File), File: clean(p.File), Line: max(p.Line, 1)}
	said := &junitSaid{Message: problem(p)}
	if p.Lost {
		c.Error = said
	} else {
		c.Skipped = said
	}
	return c
}

func (v *view) properties() *junitProps {
	c := v.Report.Coverage
	p := junitProps{[]junitProp{{"version", clean(v.Version)}}}
	for _, n := range []struct {
		name string
		n    int
	}{
		{"objects", c.Objects}, {"checks", c.Checks}, {"pass", c.Pass}, {"fail", c.Fail},
		{"waived", c.Waived}, {"not_evaluated", c.NotEvaluated}, {"percent", c.Percent},
	} {
		p.List = append(p.List, junitProp{n.name, fmt.Sprint(n.n)})
	}
	if d := v.Diff; d != nil {
		p.List = append(p.List, junitProp{"baseline", clean(d.File)}, junitProp{"new", fmt.Sprint(d.New)}, junitProp{"fixed", fmt.Sprint(len(d.Fixed))})
		for _, f := range d.Fixed {
			p.List = append(p.List, junitProp{"fixed." + clean(f.Key), clean(f.ID + " " + owner(f.Object, f.Container))})
		}
		for _, f := range d.Unknown {
			p.List = append(p.List, junitProp{"not_looked_for." + clean(f.Key), clean(f.ID + " " + owner(f.Object, f.Container))})
		}
	}
	return &p
}
