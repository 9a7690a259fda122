package audit

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

func TestReadBaselineRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                                     "is not JSON at byte 0",
		`{"schema_version"`:                    "is not JSON at byte 17",
		`[]`:                                   "it has another form at byte 1 (array)",
		`{}`:                                   "has no schema_version",
		`{"findings":[]}`:                      "has no schema_version",
		`{"schema_version":1}`:                 "has no findings",
		`{"schema_version":2,"findings":[]}`:   "has schema_version 2, and this program reads 1",
		`{"schema_version":7,"findings":{}}`:   "has schema_version 7",
		`{"version":"2.1.0","runs":[]}`:        "is SARIF",
		`{"schema_version":1,"findings":[{}]}`: "findings[0] has no key or check",
		`{"schema_version":1,"findings":[{"key":1}]}`:                     "(number)",
		`{"schema_version":1,"findings":[{"key":"a","severity":"dire"}]}`: "dire",
	} {
		_, err := ReadBaseline("b.json", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "baseline b.json: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadBaseline(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"findings":[{"key":"a","check":"RTY-001","severity":"high"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ReadBaseline("b.json", data)
		if (b == nil) == (err == nil) {
			t.Errorf("%v, %v", b, err)
		}
	})
}

func TestCompare(t *testing.T) {
	past := func(key string, s State) Past {
		return Past{Key: key, ID: "RTY-" + key, State: s, Severity: High, Object: manifest.Ref{Kind: "K", Namespace: "n" + key, Name: key}, Place: topology.Place{File: key + ".yaml"}}
	}
	now := func(key string, s State) Finding {
		return Finding{Key: key, ID: "RTY-" + key, State: s, Severity: High}
	}
	b := &Baseline{File: "b.json", Findings: []Past{
		past("same", Fail), past("gone", Fail), past("accepted", Fail), past("lapsed", Waived), past("kept", Waived), past("dropped", Waived),
		past("twice", Fail), past("thrice", Fail), past("thrice", Fail), past("thrice", Fail), past("unseen", Fail), past("unread", Fail),
	}}
	r := &Report{
		Findings: []Finding{
			now("same", Fail), now("new", Fail), now("accepted", Waived), now("lapsed", Fail), now("kept", Waived), now("thought", Waived),
			now("twice", Fail), now("twice", Fail), now("thrice", Fail),
		},
		Open:     []Open{{ID: "RTY-unseen"}},
		Problems: []manifest.Problem{{File: "unread.yaml", Lost: true}, {File: "gone.yaml"}},
	}
	d := Compare(r, b, Options{})
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Key+" "+string(f.Change))
	}
	want := "same unchanged, new new, accepted unchanged, lapsed new, kept unchanged, thought new, twice unchanged, twice new, thrice unchanged"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	keys := func(list []Past) (s string) {
		for _, p := range list {
			s += p.Key + " "
		}
		return s
	}
	if d.New != 3 || d.Unchanged != 3 || keys(d.Fixed) != "gone thrice thrice " || keys(d.Unknown) != "unseen unread " {
		t.Errorf("%d new, %d unchanged, fixed %s, unknown %s", d.New, d.Unchanged, keys(d.Fixed), keys(d.Unknown))
	}
	// What a run leaves out is neither fixed nor unknown.
	d = Compare(&Report{}, b, Options{Namespaces: []string{"ngone"}})
	if keys(d.Fixed) != "gone " {
		t.Error("of other namespaces", keys(d.Fixed))
	}
	d = Compare(&Report{}, b, Options{Checks: []string{"RTY-gone"}})
	if keys(d.Fixed) != "gone " {
		t.Error("of other checks", keys(d.Fixed))
	}
}

// TestNothingIsNewAgainstItself: for any report, and the counts add up against
// any other.
func TestNothingIsNewAgainstItself(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string) *Report {
			var report Report
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 20).Draw(r, name) {
				state := Fail
				if n > 7 {
					state = Waived
				}
				report.Findings = append(report.Findings, Finding{Key: fmt.Sprint(n % 5), ID: "RTY-001", State: state})
			}
			return &report
		}
		baseline := func(of *Report) *Baseline {
			var b Baseline
			for _, f := range of.Findings {
				b.Findings = append(b.Findings, Past{Key: f.Key, ID: f.ID, State: f.State})
			}
			return &b
		}
		failing := func(of *Report) (n int) {
			for _, f := range of.Findings {
				if f.State == Fail {
					n++
				}
			}
			return n
		}
		a, b := draw("now"), draw("before")
		if d := Compare(a, baseline(a), Options{}); d.New != 0 || len(d.Fixed) != 0 || d.Unchanged != failing(a) {
			r.Fatalf("against itself: %+v", d)
		}
		d := Compare(a, baseline(b), Options{})
		if d.New+d.Unchanged != failing(a) || d.Unchanged+len(d.Fixed) > failing(b) {
			r.Fatalf("%d now, %d before: %+v", failing(a), failing(b), d)
		}
	})
}

func TestGate(t *testing.T) {
	finding := func(s Severity, state State, c Change) *Report {
		return &Report{Findings: []Finding{{Severity: s, State: state, Change: c}}, Coverage: Coverage{Percent: 80}}
	}
	for _, c := range []struct {
		name string
		gate Gate
		r    *Report
		want Verdict
	}{
		{"below", Gate{FailOn: High}, finding(Medium, Fail, ""), Clean},
		{"at", Gate{FailOn: High}, finding(High, Fail, ""), Found},
		{"above", Gate{FailOn: High}, finding(Critical, Fail, ""), Found},
		{"none", Gate{}, finding(Critical, Fail, ""), Clean},
		{"waived", Gate{FailOn: Low}, finding(Critical, Waived, ""), Clean},
		{"known", Gate{FailOn: Low, OnlyNew: true}, finding(Critical, Fail, Unchanged), Clean},
		{"new", Gate{FailOn: Low, OnlyNew: true}, finding(Critical, Fail, New), Found},
		{"new and below", Gate{FailOn: High, OnlyNew: true}, finding(Low, Fail, New), Clean},
		{"uncovered", Gate{FailOn: High, Coverage: 81}, finding(Low, Fail, ""), Uncovered},
		{"covered", Gate{FailOn: High, Coverage: 80}, finding(Low, Fail, ""), Clean},
		{"lost", Gate{Coverage: 100}, &Report{Coverage: Coverage{Percent: 100}, Problems: []manifest.Problem{{Lost: true}}}, Uncovered},
		{"not lost", Gate{Coverage: 100}, &Report{Coverage: Coverage{Percent: 100}, Problems: []manifest.Problem{{}}}, Clean},
		{"both", Gate{FailOn: High, Coverage: 81}, finding(High, Fail, ""), Found},
	} {
		if got := c.gate.Judge(c.r); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
