//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAlertRules: promtool takes the rules and plays their tests.
func TestAlertRules(t *testing.T) {
	run(t, nil, "promtool", "check", "rules", root+"/deploy/prometheus/rules.yaml")
	out, err := exec.Command("promtool", "test", "rules", root+"/deploy/prometheus/rules_test.yaml").CombinedOutput() // takes most of a minute
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	run(t, nil, "promtool", "check", "config", "--syntax-only", root+"/deploy/compose/prometheus.yaml")
}

// TestQueries: Prometheus parses every query of the dashboard and the runbooks.
func TestQueries(t *testing.T) {
	text, err := os.ReadFile(root + "/deploy/grafana/hourthree.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries = append(queries, strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*").Replace(q.Expr))
		}
	}
	pages, _ := filepath.Glob(root + "/docs/runbooks/*.md")
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			queries = append(queries, strings.Split(strings.TrimSpace(m[1]), "\n")...)
		}
	}
	if len(queries) < 70 {
		t.Fatalf("only %d queries", len(queries))
	}
	var rules []conf
	for i, q := range queries {
		rules = append(rules, conf{"record": fmt.Sprintf("query_%d", i), "expr": q})
	}
	file, err := json.Marshal(conf{"groups": []conf{{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "promtool", "check", "rules", path)
}
