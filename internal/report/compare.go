package report

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/drill"
)

// Comparison is what differs between two runs of the same scenarios.
type Comparison struct {
	Scenarios []ScenarioChange
	Gone, New []string // scenarios that only the old, or only the new run has
}

// ScenarioChange is one scenario, old and new.
type ScenarioChange struct {
	Name, Title string
	Gone, New   []string // contenders
	Runs        []RunChange
}

// RunChange is one contender in one scenario, old and new.
type RunChange struct {
	Contender string
	Verdict   Change
	Success   Change
	Amp       Change // calls at targets for one request
	P99       Change // worst
	Criteria  []CriterionChange
}

// Change is a figure as text, old and new.
type Change struct{ Old, New string }

// Same reports that nothing changed.
func (c Change) Same() bool { return c.Old == c.New }

// String is "old -> new", or the one value.
func (c Change) String() string {
	if c.Same() {
		return c.New
	}
	return c.Old + " -> " + c.New
}

// The kinds of a CriterionChange.
const (
	Worse   = "worse"   // was met, is missed
	Better  = "better"  // was missed, is met
	Moved   = "moved"   // another value or word, the same verdict
	Same    = "same"    // nothing
	Gone    = "gone"    // the new run has it not
	Added   = "new"     // the old run has it not
	Changed = "changed" // asks for something else now
)

// CriterionChange is one criterion, old and new.
type CriterionChange struct {
	Name, Expr string
	Kind       string
	Word, Said Change
}

// Compare puts two runs side by side, by scenario, contender and criterion. It
// is an error when no scenario is in both, or when one was played with another
// seed or length: then figures differ for no reason of the contenders'.
func Compare(old, now []*drill.Result) (*Comparison, error) {
	c := &Comparison{}
	byName := func(list []*drill.Result, name string) int {
		return slices.IndexFunc(list, func(r *drill.Result) bool { return r.Scenario == name })
	}
	for i, n := range now {
		k := byName(old, n.Scenario)
		if k < 0 {
			c.New = append(c.New, clean(n.Scenario))
			continue
		}
		if o := old[k]; o.Seed != n.Seed || o.Length != n.Length {
			return nil, fmt.Errorf("results[%d], %s: seed %d and length %s, where results[%d] of the old run has seed %d and length %s",
				i, clean(n.Scenario), n.Seed, short(n.Length), k, o.Seed, short(o.Length))
		}
		c.Scenarios = append(c.Scenarios, scenarioChange(old[k], n))
	}
	for _, o := range old {
		if byName(now, o.Scenario) < 0 {
			c.Gone = append(c.Gone, clean(o.Scenario))
		}
	}
	if len(c.Scenarios) == 0 {
		return nil, fmt.Errorf("no scenario of the old run is in it: %s, where the old run has %s", strings.Join(c.New, ", "), strings.Join(c.Gone, ", "))
	}
	return c, nil
}

func scenarioChange(old, now *drill.Result) ScenarioChange {
	c := ScenarioChange{Name: clean(now.Scenario), Title: titleOf(now)}
	o, n := Summarize([]*drill.Result{old})[0], Summarize([]*drill.Result{now})[0]
	find := func(list []RunSummary, name string) int {
		return slices.IndexFunc(list, func(r RunSummary) bool { return r.Contender == name })
	}
	for _, run := range n.Runs {
		if k := find(o.Runs, run.Contender); k >= 0 {
			c.Runs = append(c.Runs, runChange(o.Runs[k], run))
		} else {
			c.New = append(c.New, clean(run.Contender))
		}
	}
	for _, run := range o.Runs {
		if find(n.Runs, run.Contender) < 0 {
			c.Gone = append(c.Gone, clean(run.Contender))
		}
	}
	return c
}

func runChange(old, now RunSummary) RunChange {
	c := RunChange{
		Contender: clean(now.Contender),
		Verdict:   Change{old.Verdict, now.Verdict},
		Success:   Change{old.Success(), now.Success()},
		Amp:       Change{old.Amplification(), now.Amplification()},
		P99:       Change{old.Slowest(), now.Slowest()},
	}
	find := func(list []drill.Judgement, name string) int {
		return slices.IndexFunc(list, func(j drill.Judgement) bool { return j.Name == name })
	}
	for _, j := range now.Criteria {
		word, said := now.Said(j)
		change := CriterionChange{Name: clean(j.Name), Expr: clean(j.Expr), Kind: Added, Word: Change{none, word}, Said: Change{"", said}}
		if k := find(old.Criteria, j.Name); k >= 0 {
			was := old.Criteria[k]
			change.Word.Old, change.Said.Old = old.Said(was)
			change.Kind = kindOf(was, j, now.Contender, change)
		}
		c.Criteria = append(c.Criteria, change)
	}
	for _, j := range old.Criteria {
		if find(now.Criteria, j.Name) < 0 {
			word, said := old.Said(j)
			c.Criteria = append(c.Criteria, CriterionChange{Name: clean(j.Name), Expr: clean(j.Expr), Kind: Gone, Word: Change{word, none}, Said: Change{said, ""}})
		}
	}
	return c
}

// kindOf judges a change. What a contender is to miss does not get worse by
// being missed; a criterion that asks for something else is compared by its
// verdict all the same.
func kindOf(old, now drill.Judgement, contender string, c CriterionChange) string {
	was, is := old.Met && old.Err == "", now.Met && now.Err == ""
	switch toMiss := slices.Contains(now.Fails, contender); {
	case was && !is && !toMiss, !was && is && toMiss:
		return Worse
	case was && !is, !was && is:
		return Better
	case old.Expr != now.Expr:
		return Changed
	case !c.Word.Same() || !c.Said.Same():
		return Moved
	}
	return Same
}

// Worse lists what was met and is missed now, or proves nothing now for who is
// to miss it meets it, each with its scenario and contender.
func (c *Comparison) Worse() (out []string) {
	for _, s := range c.Scenarios {
		for _, r := range s.Runs {
			for _, j := range r.Criteria {
				if j.Kind == Worse {
					out = append(out, fmt.Sprintf("%s, %s: %s", s.Name, r.Contender, j.Name))
				}
			}
		}
	}
	return out
}

// Figures is a criterion's change in words.
func (c CriterionChange) Figures() string {
	part := func(word, said string) string { return strings.TrimSpace(word + " " + said) }
	return Change{part(c.Word.Old, c.Said.Old), part(c.Word.New, c.Said.New)}.String()
}

// CompareText writes a comparison as text of 80 columns. Criteria that did not
// change are left out.
func CompareText(w io.Writer, c *Comparison) error {
	var b bytes.Buffer
	for _, s := range c.Scenarios {
		wrap(&b, "", s.Name+": "+s.Title)
		same := true
		for _, r := range s.Runs {
			same = r.text(&b) && same
		}
		only(&b, "  ", "contenders", s.Gone, s.New)
		if same && len(s.Gone)+len(s.New) == 0 {
			b.WriteString("  nothing changed\n")
		}
		b.WriteString("\n")
	}
	only(&b, "", "scenarios", c.Gone, c.New)
	worse := c.Worse()
	if len(worse) == 0 {
		b.WriteString("nothing got worse\n")
	} else {
		b.WriteString("worse:\n")
		for _, line := range worse {
			wrap(&b, "  ", line)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func only(b *bytes.Buffer, prefix, what string, gone, added []string) {
	if len(gone) > 0 {
		wrap(b, prefix, "only the old run has the "+what+" "+strings.Join(gone, ", "))
	}
	if len(added) > 0 {
		wrap(b, prefix, "only the new run has the "+what+" "+strings.Join(added, ", "))
	}
}

// text writes what changed and reports that nothing did.
func (r RunChange) text(b *bytes.Buffer) (same bool) {
	if r.Same() {
		return true
	}
	var totals []string
	for _, f := range r.Totals() {
		if !f.Change.Same() {
			totals = append(totals, f.Name+" "+f.Change.String())
		}
	}
	changed := slices.DeleteFunc(slices.Clone(r.Criteria), func(c CriterionChange) bool { return c.Kind == Same })
	line := r.Contender
	if len(totals) > 0 {
		line += ": " + strings.Join(totals, ", ")
	}
	wrap(b, "  ", line)
	for _, c := range changed {
		wrap(b, fmt.Sprintf("    %-7s  ", c.Kind), c.Name+": "+c.Figures())
	}
	return false
}

// Same reports that nothing changed.
func (r RunChange) Same() bool {
	return !slices.ContainsFunc(r.Totals(), func(t Total) bool { return !t.Change.Same() }) &&
		!slices.ContainsFunc(r.Criteria, func(c CriterionChange) bool { return c.Kind != Same })
}

// Total is one of a run's totals.
type Total struct {
	Name   string
	Change Change
}

// Totals are the verdict and the totals, in order.
func (r RunChange) Totals() []Total {
	return []Total{{"verdict", r.Verdict}, {"success", r.Success}, {"calls a request", r.Amp}, {"worst p99", r.P99}}
}

//go:embed compare.html
var compareText string

var compareTemplate = template.Must(template.New("compare").Parse(compareText))

// CompareHTML writes a comparison as one page that needs nothing else.
func CompareHTML(w io.Writer, c *Comparison) error {
	if c == nil {
		return errors.New("there is no comparison")
	}
	var b bytes.Buffer
	if err := compareTemplate.Execute(&b, struct {
		CSS template.CSS
		*Comparison
	}{template.CSS(pageCSS), c}); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Class is the style of a kind of change.
func (c CriterionChange) Class() string {
	switch c.Kind {
	case Worse:
		return "FAIL"
	case Better:
		return "pass"
	case Gone, Added, Changed:
		return "lacks"
	}
	return "quiet"
}
