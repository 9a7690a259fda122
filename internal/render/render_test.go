package render

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/audit"
)

var update = flag.Bool("update", false, "write the expected outputs anew")

// TestOutputs holds what each format looks like.
func TestOutputs(t *testing.T) {
	for _, c := range []struct {
		name string
		a    *Audit
	}{{"audit", fixture(t)}, {"baseline", against(t)}, {"clean", &Audit{Report: &audit.Report{Coverage: audit.Coverage{Objects: 1, Checks: 84, Pass: 5, Percent: 100}}, Version: "v0.1.0"}}} {
		for _, f := range Formats() {
			name := filepath.Join("testdata", c.name+"."+string(f))
			got := written(t, c.a, f)
			if *update {
				if err := os.WriteFile(name, got, 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; go test ./internal/render -update writes it anew\n%s", name, got)
			}
		}
	}
}

// TestOrderOfTheReportDoesNotMatter: lists are sorted before they are written.
func TestOrderOfTheReportDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := against(t)
	for _, f := range Formats() {
		want := written(t, a, f)
		for range 20 {
			if got := written(t, shuffled(a, r), f); !bytes.Equal(got, want) {
				t.Fatalf("%s differs by the order of the report:\n%s\n%s", f, got, want)
			}
		}
	}
}

// TestNothingIsLost: each finding, check that was not evaluated, fault of the
// input, waiver and change is in each format.
func TestNothingIsLost(t *testing.T) {
	a := against(t)
	for _, f := range Formats() {
		got := string(written(t, a, f))
		for _, want := range []string{
			"RTY-006", "PTH-001", "MEM-001", "WVR-003", "RLM-005", "RLM-006", "TMO-004", // checks
			"deploy/copilot.yaml", "deploy/route.yaml", "cluster/llm/Deployment/server.yaml", // places
			"49 attempts on 5xx", "numRetries: 6", "no limit", // what was found
			"the sidecar is measured", "2027-01-31", // the waiver
			"HT-0001",                                                                           // incidents
			"networkpolicies list", "spec.streamIdleTimeout", "this is not YAML", "there twice", // the gaps
			"gone", "unseen", // the baseline's
			"40", "31", "84", "12", // coverage
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q", f, want)
			}
		}
	}
}

// TestTheTableFits: no line is wider than the terminal, whatever is in it.
func TestTheTableFits(t *testing.T) {
	a := against(t)
	a.Report.Findings[0].Place.File = strings.Repeat("a/very/long/path/", 12) + "x.yaml"
	a.Report.Findings[1].Object.Name = strings.Repeat("n", 253)
	a.Report.Findings[2].Observed = strings.Repeat("語", 90)
	for _, n := range []int{0, 20, 40, 60, 80, 120, 400} {
		var b bytes.Buffer
		if err := a.Write(&b, Table, Screen{Width: n}); err != nil {
			t.Fatal(err)
		}
		most := min(max(n, narrowest), widest)
		if n == 0 {
			most = 80
		}
		for line := range strings.Lines(b.String()) {
			if w := columns(strings.TrimSuffix(line, "\n")); w > most {
				t.Errorf("width %d: %d columns: %s", n, w, line)
			}
		}
	}
}

// TestColoursAreAsked: without them the table has no escape sequence, with them
// it has the same text.
func TestColoursAreAsked(t *testing.T) {
	var plain, coloured bytes.Buffer
	a := fixture(t)
	if err := a.Write(&plain, Table, Screen{}); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(&coloured, Table, Screen{Colour: Coloured}); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(plain.Bytes(), '\x1b') || !bytes.ContainsRune(coloured.Bytes(), '\x1b') {
		t.Error("colours are not as asked")
	}
	text := coloured.String()
	for _, c := range []string{reset, bold, dim, red, yellow, cyan} {
		text = strings.ReplaceAll(text, c, "")
	}
	if text != plain.String() {
		t.Error("the coloured table says something else")
	}
}

// TestMarkdownIsBounded: with more findings than fit it says how many it leaves
// out, and keeps the coverage.
func TestMarkdownIsBounded(t *testing.T) {
	a := fixture(t)
	one := a.Report.Findings[3]
	for i := range 5000 {
		f := one
		f.Object.Name = fmt.Sprintf("%s-%d", strings.Repeat("long", 50), i)
		f.Check = &audit.Check{ID: fmt.Sprintf("RTY-%03d", i), Why: strings.Repeat("why ", 100)}
		f.ID = f.Check.ID
		a.Report.Findings = append(a.Report.Findings, f)
		a.Report.Open = append(a.Report.Open, audit.Open{ID: f.ID, Reason: audit.Forbidden, Detail: f.ID})
		p := a.Report.Problems[0]
		p.What = strings.Repeat("wrong ", 100)
		a.Report.Problems = append(a.Report.Problems, p)
	}
	got := string(written(t, a, Markdown))
	if len(got) > 65_000 {
		t.Errorf("%d bytes", len(got))
	}
	for _, want := range []string{"more findings, no more severe", "more checks is left out", "PTH-001", "40 pass", "more lines"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := ParseFormat("yaml"); err == nil || !strings.Contains(err.Error(), "table, json, sarif, junit, markdown") {
		t.Errorf("%v", err)
	}
	if err := fixture(t).Write(&bytes.Buffer{}, "yaml", Screen{}); err == nil {
		t.Error("wrote a format that there is not")
	}
}

// TestJSONIsReadAsBaseline: the next run can take this one's output, and against
// itself nothing is new.
func TestJSONIsReadAsBaseline(t *testing.T) {
	a := fixture(t)
	b, err := audit.ReadBaseline("out.json", written(t, a, JSON))
	if err != nil {
		t.Fatal(err)
	}
	d := audit.Compare(a.Report, b, audit.Options{})
	if d.New != 0 || d.Unchanged != 4 || len(d.Fixed) != 0 || len(d.Unknown) != 0 {
		t.Errorf("%+v", d)
	}
	if !json.Valid(written(t, a, SARIF)) {
		t.Error("SARIF is not JSON")
	}
	if _, err := audit.ReadBaseline("out.sarif", written(t, a, SARIF)); err == nil || !strings.Contains(err.Error(), "is SARIF") {
		t.Errorf("%v", err)
	}
}
