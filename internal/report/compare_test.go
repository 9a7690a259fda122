package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/drill"
)

// clone is a deep copy by way of a file.
func clone(t *testing.T, r *drill.Result) *drill.Result {
	t.Helper()
	data, err := json.Marshal([]*drill.Result{r})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func compared(t *testing.T, old, now *drill.Result) *Comparison {
	t.Helper()
	c, err := Compare([]*drill.Result{old}, []*drill.Result{now})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compareText80(t *testing.T, c *Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := CompareText(&b, c); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return b.String()
}

func TestCompareSame(t *testing.T) {
	c := compared(t, fixture(), clone(t, fixture()))
	if got := compareText80(t, c); len(c.Worse()) > 0 || !strings.Contains(got, "nothing changed") || !strings.Contains(got, "nothing got worse") {
		t.Error(got)
	}
}

func TestCompareKinds(t *testing.T) {
	for want, pair := range map[string][2]drill.Judgement{
		Worse:         {{Met: true}, {}},
		Worse + " 2":  {{Met: true}, {Err: "x"}},
		Worse + " 3":  {{Fails: []string{"c"}}, {Met: true, Fails: []string{"c"}}},
		Worse + " 4":  {{Met: true, Expr: "a"}, {Expr: "b"}},
		Worse + " 5":  {{Met: true, Needs: "x"}, {Needs: "x"}},
		Better:        {{}, {Met: true}},
		Better + " 2": {{Met: true, Fails: []string{"c"}}, {Fails: []string{"c"}}},
		Moved:         {{Value: "1"}, {Value: "2"}},
		Moved + " 2":  {{Needs: "x"}, {}},
		Changed:       {{Expr: "a"}, {Expr: "b"}},
		Same:          {{Met: true, Value: "1", Fails: []string{"d"}}, {Met: true, Value: "1"}},
	} {
		run := func(j drill.Judgement) RunSummary {
			return RunSummary{Contender: "c", Criteria: []drill.Judgement{j}}
		}
		kind, _, _ := strings.Cut(want, " ")
		if got := runChange(run(pair[0]), run(pair[1])).Criteria[0].Kind; got != kind {
			t.Errorf("%+v: %s, want %s", pair, got, kind)
		}
	}
}

func TestCompareTells(t *testing.T) {
	old, now := fixture(), fixture()
	now.Runs[0].Criteria[0].Met, now.Runs[0].Criteria[0].Value = false, "0.912"
	now.Runs[0].Criteria[0].Name, old.Runs[0].Criteria[0].Name = "same", "same"
	now.Runs[0].Totals.Good -= 900
	now.Runs[1].Criteria[3].Name = strings.Repeat("other ", 30)
	now.Runs[3].Contender = "newcomer"
	c := compared(t, old, now)
	got := compareText80(t, c)
	for _, want := range []string{
		"hourthree: verdict lacks -> FAIL, success 98.0% -> 95.7%", "worse    same: met 0.980 -> MISSED 0.912", "gone     batch work", "new      other",
		"only the old run has the contenders breaker only", "only the new run has the contenders newcomer", "worse:\n  retry-storm, hourthree: same\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if len(c.Worse()) != 1 {
		t.Errorf("%v", c.Worse())
	}
}

func TestComparePage(t *testing.T) {
	evil := `"><script>alert(1)</script>`
	old, now := fixture(), fixture()
	for _, r := range []*drill.Result{old, now} {
		r.Title, r.Runs[0].Contender, r.Runs[0].Criteria[0].Name = evil, evil, evil
	}
	now.Runs[0].Criteria[0].Met = false
	var b bytes.Buffer
	if err := CompareHTML(&b, compared(t, old, now)); err != nil {
		t.Fatal(err)
	}
	balanced(t, b.String())
	if strings.Contains(b.String(), "<script") || strings.Contains(b.String(), "http") && strings.Contains(b.String(), "://") || !strings.Contains(b.String(), `verdict FAIL">worse`) {
		t.Error(b.String())
	}
	if CompareHTML(broken{}, compared(t, old, now)) == nil || CompareText(broken{}, compared(t, old, now)) == nil || CompareHTML(&b, nil) == nil {
		t.Error("an error is lost")
	}
}

func TestCompareUnlike(t *testing.T) {
	seed, length, other := fixture(), fixture(), fixture()
	seed.Seed++
	length.Length *= 2
	other.Scenario = "other"
	for want, r := range map[string]*drill.Result{
		"results[0], retry-storm: seed 43 and length 10m, where results[0] of the old run has seed 42": seed,
		"length 20m": length, "no scenario of the old run is in it: other, where the old run has retry-storm": other,
	} {
		if _, err := Compare([]*drill.Result{fixture()}, []*drill.Result{r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c, err := Compare([]*drill.Result{fixture(), other}, []*drill.Result{fixture()})
	if err != nil || len(c.Gone) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "line 1, column 1: the file ends too early",
		"[\n{]":                          "line 2, column 3: no JSON",
		"[{\"a\":1":                      "the file ends too early",
		"{}":                             "line 1, column 2: object is not what",
		"[]":                             "has no result",
		"[] []":                          "something follows",
		"[null]":                         "results[0]: has no scenario",
		"[\n {\"scenario\": 3}]":         "line 2, column 16: number at scenario",
		`[{"scenario":"a"}]`:             "no runs",
		`[{"scenario":"a","runs":[{}]}]`: "results[0].runs[0]",
		`[{"scenario":"a","runs":[{"contender":"c"},{"contender":"c"}]}]`:                           "results[0].runs[1]",
		`[{"scenario":"a","runs":[{"contender":"c"}]},{"scenario":"a","runs":[{"contender":"c"}]}]`: "results[1]: scenario a is there twice",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
