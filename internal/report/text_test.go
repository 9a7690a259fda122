package report

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/drill"
)

var update = flag.Bool("update", false, "write the golden files")

func text(t *testing.T, results ...*drill.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, results); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	return b.String()
}

func TestTextGolden(t *testing.T) {
	second := fixture()
	second.Scenario, second.Title, second.Incident = "gray-failure", "One in five answers hangs", ""
	second.Runs = second.Runs[:3]
	for name, got := range map[string]string{
		"testdata/one.txt":     text(t, fixture()),
		"testdata/several.txt": text(t, fixture(), second),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (-update writes it):\n%s", name, got)
		}
	}
}

func TestTextFits(t *testing.T) {
	r := fixture()
	long := strings.Repeat("long ", 30) + strings.Repeat("x", 200)
	r.Title, r.Incident, r.Scenario = long, long, long
	for i := range r.Runs {
		run := &r.Runs[i]
		run.Contender += long
		run.Totals = drill.Counts{Fresh: 999_999, Good: 999_999, Upstream: math.MaxInt32, Inbound: 99_999_999}
		run.Targets[0].Crashes = 123_456
		run.Targets[0].Steps[3].Calls = 999_999
		for k := range run.Criteria {
			run.Criteria[k].Name, run.Criteria[k].Value, run.Criteria[k].Needs = long, long, long
		}
	}
	for range 3 {
		r.Runs = append(r.Runs, r.Runs...)
	}
	for i := range r.Runs {
		r.Runs[i].Contender = strings.Repeat("y", i) + r.Runs[i].Contender
	}
	got := text(t, r, r, fixture())
	if !strings.Contains(got, "32: ") || !strings.Contains(got, strings.Repeat("y", 30)) {
		t.Error("a contender is missing in the summary")
	}
}

func TestTextExtremes(t *testing.T) {
	for name, r := range extremes() {
		t.Run(name, func(t *testing.T) {
			got := text(t, r)
			for _, bad := range []string{"NaN", "Inf", "\x1b", "%!"} {
				if strings.Contains(got, bad) {
					t.Errorf("%q in\n%s", bad, got)
				}
			}
		})
	}
	if text(t) != "" || text(t, nil) != "" {
		t.Error("no result is not empty")
	}
}

func TestVerdict(t *testing.T) {
	met, missed := drill.Judgement{Met: true}, drill.Judgement{}
	needs, wrong := drill.Judgement{Needs: "x"}, drill.Judgement{Err: "x"}
	for want, list := range map[string][]drill.Judgement{
		none:    nil,
		"pass":  {met, met},
		"lacks": {met, needs},
		"FAIL":  {needs, missed},
		"FAIL ": {met, wrong},
	} {
		if got := verdict(&drill.Run{Criteria: list}); got != strings.TrimSpace(want) {
			t.Errorf("%v: %s, want %s", list, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range [][2]string{
		{count(0), "0"}, {Figure("1.321e+04"), "13,210"}, {Figure("+Inf"), "never"}, {Figure("0.9968"), "0.9968"}, {Figure("a\tb"), "a b"}, {count(999), "999"}, {count(1000), "1,000"}, {count(12_045), "12,045"},
		{count(1_234_567), "1.23M"}, {count(-1500), "-1,500"},
		{percent(1, 0), "-"}, {percent(9999, 10_000), "99.9%"}, {percent(3, 3), "100.0%"},
		{ratio(1, 0), "-"}, {ratio(48, 1), "48.0"}, {ratio(1, 3), "0.33"}, {ratio(1234, 1), "1234"},
		{millis(0), "-"}, {millis(math.NaN()), "-"}, {millis(851.2), "851ms"}, {millis(12_340), "12.3s"},
		{short(90e9), "1m30s"}, {short(3600e9), "1h"}, {short(0), "0s"}, {short(600e9), "10m"},
		{clean("a\x1b[31m\nb\u202ec"), "a [31m b c"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteErrors(t *testing.T) {
	results := []*drill.Result{fixture()}
	if Text(broken{}, results) == nil {
		t.Error("the writer's error is lost")
	}
}

// extremes are results that a scenario should not give, but might.
func extremes() map[string]*drill.Result {
	one := fixture()
	holes := fixture()
	for i := range one.Runs {
		run := &one.Runs[i]
		for k := range run.Workloads {
			s := &run.Workloads[k]
			s.Steps, s.P50, s.P99 = s.Steps[:1], s.P50[:1], s.P99[:1]
		}
		for k := range run.Targets {
			run.Targets[k].Steps = run.Targets[k].Steps[:1]
		}
		holes.Runs[i].Totals = drill.Counts{}
		s := holes.Runs[i].Workloads[0]
		s.P99[0], s.P99[5], s.P99[9] = math.NaN(), math.Inf(1), 0
		holes.Runs[i].Targets[0].Steps[7].Load = math.NaN()
		holes.Runs[i].Targets[0].Steps[8].Load = math.Inf(1)
	}
	empty := &drill.Result{Runs: []drill.Run{
		{Contender: "a"},
		{Workloads: []drill.Series{{}}, Targets: []drill.TargetRun{{}}, Criteria: []drill.Judgement{{}}},
	}}
	hostile := fixture()
	hostile.Title = "\x1b[31m</title><script>alert(1)</script>"
	return map[string]*drill.Result{
		"zero": {}, "empty": empty, "one step": one, "holes": holes, "hostile": hostile, "long": lengthy(5000),
	}
}

// lengthy is a fixture with n steps, in each of which a breaker moves.
func lengthy(n int) *drill.Result {
	r := fixture()
	r.Length = fixtureStep * time.Duration(n)
	for i := range r.Runs {
		run := &r.Runs[i]
		for k := range run.Workloads {
			s := &run.Workloads[k]
			s.Steps, s.P50, s.P99 = repeat(s.Steps, n), repeat(s.P50, n), repeat(s.P99, n)
		}
		for k := range run.Targets {
			t := &run.Targets[k]
			t.Steps, t.Moves = repeat(t.Steps, n), nil
			for j := range n {
				t.Moves = append(t.Moves, drill.Move{At: time.Duration(j) * run.Step, To: []string{"open", "closed"}[j%2]})
			}
		}
	}
	return r
}

func repeat[T any](list []T, n int) []T {
	var out []T
	for len(out) < n {
		out = append(out, list...)
	}
	return out[:n]
}
