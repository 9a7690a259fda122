package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/app"
)

const operatingDoc = "../../docs/operating.md"

const operatingConfig = `listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
store: {path: memory}
providers: {azure-sweden: {type: simulated}, openai: {type: simulated}}
models:
  gpt-5:
    targets:
      - {provider: azure-sweden, model: gpt-5-prod}
      - {provider: openai, model: gpt-5, order: 2}
workloads:
  copilot: {keys: [a-key-of-copilot-itself], priority: critical}
  suite: {keys: [a-key-of-the-test-suite], priority: batch}
`

// TestDocumentedActions runs every command of the handbook, one after the other, at a
// router, and compares what is printed. With UPDATE_SCRIPTS=1 the document is rewritten.
func TestDocumentedActions(t *testing.T) {
	t.Setenv("USER", "ada")
	file := filepath.Join(t.TempDir(), "h.yaml")
	if err := os.WriteFile(file, []byte(operatingConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(app.Options{ConfigPath: file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: io.Discard, Version: "test", Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Stop() }()
	old, err := os.ReadFile(operatingDoc)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(old), "```console\n")
	var b strings.Builder
	b.WriteString(parts[0])
	for _, p := range parts[1:] {
		block, rest, _ := strings.Cut(p, "```\n")
		b.WriteString("```console\n")
		for l := range strings.SplitSeq(block, "\n") {
			if cmd, ok := strings.CutPrefix(l, "$ "); ok {
				b.WriteString(l + "\n" + steered(t, cmd, a.AdminAddr().String()))
			}
		}
		b.WriteString("```\n" + rest)
	}
	if b.String() == string(old) {
		return
	}
	if os.Getenv("UPDATE_SCRIPTS") == "" {
		t.Errorf("docs/operating.md is not what the commands print; with UPDATE_SCRIPTS=1 it is:\n%s", b.String())
		return
	}
	if err := os.WriteFile(operatingDoc, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// moment is a time in the audit log, which the document has another of.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// steered is what a command prints.
func steered(t *testing.T, cmd, admin string) string {
	t.Helper()
	args := words(cmd)
	if args[0] != "hourthree" {
		t.Fatalf("what is %q?", cmd)
	}
	out := atRouter(admin, args[1:]...)
	for l := range strings.SplitSeq(out, "\n") {
		if len([]rune(l)) > 80 && !strings.HasPrefix(l, "hourthree: ") && !strings.HasPrefix(l, "note: ") {
			t.Errorf("%s prints more than 80 columns: %s", cmd, l)
		}
	}
	return moment.ReplaceAllString(out, "2026-05-29 13:37:00")
}

// atRouter is what a command prints at a router.
func atRouter(admin string, args ...string) string {
	var out bytes.Buffer
	c := rootCommand()
	c.SetArgs(append(args, "--admin", admin))
	c.SetOut(&out)
	if err := c.Execute(); err != nil {
		fmt.Fprintln(&out, "hourthree:", harmless(err.Error()))
	}
	return out.String()
}

// TestSteerUsage: what is wrong with a command is said with what would be right, and
// nothing is sent.
func TestSteerUsage(t *testing.T) {
	for args, says := range map[string]string{
		"drain":                   "name one target: hourthree drain TARGET",
		"force ajar a/b":          "say which way",
		"force open":              "say which way",
		"shed":                    "hourthree shed batch",
		"budget workload:suite":   "say whose and by how much",
		"budget workload:suite x": `"x" is no number`,
		"pin m":                   "name a model and one of its targets",
		"undo":                    "hourthree actions lists them",
		"drain a/b --why x":       "no router answers",
		"actions":                 "no router answers",
	} {
		if out := atRouter("127.0.0.1:1", strings.Fields(args)...); !strings.Contains(out, says) {
			t.Errorf("hourthree %s: %s", args, out)
		}
	}
}

// TestSteerCompletion: Tab offers the router's names, and nothing where there is none.
func TestSteerCompletion(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"models":[{"name":"gpt-5"}],"targets":[{"name":"a/b"},{"name":"c/d"}],"workloads":[{"name":"suite"}]}`)
	}))
	defer s.Close()
	for _, c := range []struct{ args, want string }{
		{"drain", "a/b c/d"}, {"force", "open closed"}, {"force open", "a/b c/d"}, {"pin", "gpt-5"}, {"pin gpt-5", "a/b c/d"},
		{"budget", "workload:suite target:a/b target:c/d"}, {"shed", "batch interactive"},
	} {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(io.Discard)
		args := append([]string{"__complete"}, strings.Fields(c.args)...)
		root.SetArgs(append(args, "--admin", s.URL, ""))
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		offered, _, _ := strings.Cut(out.String(), ":4")
		if got := strings.Join(strings.Fields(offered), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
	if out := atRouter("127.0.0.1:1", "__complete", "drain", ""); strings.Contains(out, "/") {
		t.Errorf("without a router: %q", out)
	}
}

// TestActionsTable: what has ended is listed with why, and no line is too long.
func TestActionsTable(t *testing.T) {
	now := time.Now()
	long := strings.Repeat("long ", 40)
	a := ordered{ID: "A-1", Kind: "drain", Subject: long, By: long, Why: long, Until: now.Add(90*time.Minute - time.Second), Ended: &now, EndedBy: "configuration", EndedWhy: "a/b is no longer configured"}
	text := actionsTable(now, []ordered{a}, []ordered{a})
	if !strings.Contains(text, "1h30m") || !strings.Contains(text, "ended: configuration, a/b is no longer configured") {
		t.Error(text)
	}
	for l := range strings.SplitSeq(text, "\n") {
		if len([]rune(l)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(l)), l)
		}
	}
	if text := actionsTable(now, nil, nil); text != "No action is in force.\n" {
		t.Error(text)
	}
}
