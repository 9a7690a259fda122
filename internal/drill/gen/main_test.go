package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/report"
)

// TestFilesAreCurrent: schema and pages are those of the types, the scenario
// files and the record, and there is no page of a drill that is no more.
func TestFilesAreCurrent(t *testing.T) {
	files, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile("../" + path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./internal/drill", path, err)
		}
		if bytes.Contains(got, []byte("ot recorded")) {
			t.Errorf("%s has something without a result: run make drill-results", path)
		}
	}
	stale, err := leftover("..", files)
	if err != nil || len(stale) > 0 {
		t.Errorf("pages of no drill: %v (%v)", stale, err)
	}
}

// TestPageOfMuch: all parts of a scenario are shown, the default ones too, and
// nothing leaves its cell.
func TestPageOfMuch(t *testing.T) {
	s := &drill.Scenario{
		Name: "x", Title: "A | B", Length: time.Hour, Facts: []string{"*one*"},
		Gateway:   &drill.Gateway{Instances: 3, Memory: 512 << 20},
		Workloads: []drill.Workload{{Name: "w", Rate: []drill.Rate{{RPS: 2}, {At: time.Minute, RPS: 0}}, Retries: []drill.Layer{{Attempts: 2, Obeys: true}}, Body: drill.Body{P50: 1000}}},
		Targets:   []drill.Target{{Name: "t", Capacity: 5, Keys: &drill.KeyStore{Capacity: 7}}, {Name: "u", Capacity: 5}},
		Actions:   []drill.Action{{Do: "kill"}, {Do: "reload", At: time.Minute}},
		Criteria:  []drill.Criterion{{Name: "c", Expr: "a || b", Fails: []string{"naive"}}, {Name: "gone", Expr: "d"}},
	}
	r := &report.Summary{Seed: 7, Length: time.Hour, Runs: []report.RunSummary{
		{Contender: router, Verdict: "FAIL", Criteria: []drill.Judgement{{Name: "c", Expr: "a || b", Value: "3"}}},
		{Contender: "naive", Verdict: "pass", Criteria: []drill.Judgement{{Name: "c", Expr: "a || b", Met: true}}},
	}}
	got := string(page(s, r))
	for _, want := range []string{
		`A \| B`, `\*one\*`, "| 3 | 512MiB |", "2 a second from 0s; 0 a second from 1m", "attempts 2, obeys", "p50 1000", "| 5 | capacity 7 |",
		"| reload |", "version unknown, with seed 7", "`a \\|\\| b` | MISSED 3 |", "| not recorded |", "--seed 7",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if !strings.Contains(string(page(s, nil)), "Not recorded yet") {
		t.Error("a page without a record")
	}
}

// TestRecord: results come in by scenario, the others stay, and pages of no
// drill go.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "internal", "drill")
	pages := filepath.Join(dir, docs, "drills")
	for _, d := range []string{filepath.Join(dir, "drills"), pages} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile("../scenario.go")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "scenario.go"): string(source), filepath.Join(pages, "old.md"): "x",
		filepath.Join(pages, "results.json"): `[{"scenario":"b"},{"scenario":"z","seed":3}]`,
		filepath.Join(dir, "new.json"):       `[{"scenario":"b","seed":9,"runs":[{"contender":"router"}]}]`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(dir, filepath.Join(dir, "new.json"), "v1"); err != nil {
		t.Fatal(err)
	}
	all, err := recordIn(dir)
	if err != nil || len(all) != 2 || all[0].Seed != 9 || all[0].Version != "v1" || all[1].Seed != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(pages, "old.md")); err == nil {
		t.Error("the page of no drill stays")
	}
}
