package render

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif" // carries the schema
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hourthree/hourthree/internal/audit"
)

// officialSchema is the one of OASIS, as the library carries it.
func officialSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	once.Do(func() { theSchema = readOfficial(t) })
	return theSchema
}

var (
	once      sync.Once
	theSchema *jsonschema.Schema
)

func readOfficial(t testing.TB) *jsonschema.Schema {
	t.Helper()
	p, err := build.Import("github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif", ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "schema.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ = strconv.Unquote(l.Value)
		}
		return true
	})
	return compiled(t, strings.NewReader(text))
}

func compiled(t testing.TB, r io.Reader) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func follows(t testing.TB, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// TestSARIFIsValid holds the output to the schema of SARIF 2.1.0. The last case
// shows that the check has teeth.
func TestSARIFIsValid(t *testing.T) {
	schema := officialSchema(t)
	for _, a := range []*Audit{fixture(t), against(t), {Report: &audit.Report{}}} {
		if err := follows(t, schema, written(t, a, SARIF)); err != nil {
			t.Error(err)
		}
	}
	good := string(written(t, fixture(t), SARIF))
	for _, wrong := range [][2]string{{`"ruleIndex"`, `"ruleNumber"`}, {`"level": "error"`, `"level": "bad"`}, {`"startLine": 31`, `"startLine": 0`}} {
		if follows(t, schema, []byte(strings.Replace(good, wrong[0], wrong[1], 1))) == nil {
			t.Errorf("%s is taken for SARIF", wrong[1])
		}
	}
}

// TestSARIFSaysWhatCodeScanningNeeds: each result has a rule, a file, a line and
// a fingerprint; what is waived is suppressed, and a path has its layers.
func TestSARIFSaysWhatCodeScanningNeeds(t *testing.T) {
	var log sarifLog
	if err := json.Unmarshal(written(t, against(t), SARIF), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if len(run.Results) != 5 || len(run.Tool.Driver.Rules) != len(fixtureChecks) {
		t.Fatalf("%d results, %d rules", len(run.Results), len(run.Tool.Driver.Rules))
	}
	for _, r := range run.Results {
		p := r.Locations[0].Physical
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || p.Artifact.URI == "" || p.Region.Line < 1 || r.Fingerprints["hourthree/v1"] == "" || r.Baseline == "" {
			t.Errorf("%+v", r)
		}
		if (len(r.Suppressions) > 0) != strings.Contains(r.Message.Text, "sidecar") {
			t.Errorf("suppressions %+v of %s", r.Suppressions, r.Message.Text)
		}
		if r.RuleID == "PTH-001" && (len(r.Related) != 2 || r.Related[1].Physical.Artifact.URI != "deploy/route.yaml") {
			t.Errorf("layers %+v", r.Related)
		}
	}
	if s := run.Results[3].Suppressions; run.Results[3].RuleID != "MEM-001" && len(s) == 0 {
		t.Error("the fixture has changed")
	}
	if len(run.Artifacts) != 1 || run.Artifacts[0].Location.URI != "cluster/llm/Deployment/server.yaml" {
		t.Errorf("%+v", run.Artifacts)
	}
	n := run.Invocations[0].Notifications
	if len(n) != 5 || n[0].Level != "error" || n[1].Level != "warning" || !strings.Contains(n[2].Message.Text, "networkpolicies list") {
		t.Errorf("%+v", n)
	}
	if u := run.Tool.Driver.Rules[0].HelpURI; u != "https://github.com/hourthree/hourthree/blob/main/docs/checks.md#rty-006" {
		t.Error(u)
	}
}

func TestFileURI(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.yaml": "a/b.yaml", "./a/b.yaml": "a/b.yaml", "../b.yaml": "../b.yaml", "-": "stdin", "": "stdin",
		"/etc/a b.yaml": "file:///etc/a%20b.yaml", "a b#c?d.yaml": "a%20b%23c%3Fd.yaml", `a\b.yaml`: "a/b.yaml",
		"cluster/llm/Deployment/x.yaml": "cluster/llm/Deployment/x.yaml", "a:b.yaml": "a%3Ab.yaml",
	} {
		if got := fileURI(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestMessagesAreText: what SARIF would take for a link or an argument is not.
func TestMessagesAreText(t *testing.T) {
	for text, want := range map[string]string{
		"spec.http[0]": "spec.http[0]", "{a: 1}": "{a: 1}", "{0} of {12}": "{{0}} of {{12}}", "[x](1)": `\[x\](1)`,
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestJSONFollowsItsSchema holds the output to docs/audit.schema.json, which
// lets nothing through that it does not describe.
func TestJSONFollowsItsSchema(t *testing.T) {
	file, err := os.Open("../../docs/audit.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	schema := compiled(t, file)
	for _, a := range []*Audit{fixture(t), against(t), {Report: &audit.Report{}}} {
		if err := follows(t, schema, written(t, a, JSON)); err != nil {
			t.Error(err)
		}
	}
	good := string(written(t, against(t), JSON))
	for _, wrong := range [][2]string{{`"schema_version": 1`, `"schema_version": 2`}, {`"observed"`, `"seen"`}, {`"critical",`, `"dire",`}} {
		if follows(t, schema, []byte(strings.Replace(good, wrong[0], wrong[1], 1))) == nil {
			t.Errorf("%s passes", wrong[1])
		}
	}
}
