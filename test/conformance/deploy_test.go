//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
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

// TestOperatorSidecar: nginx with the sidecar's configuration passes on metrics
// and health, and nothing with which something can be seen or changed.
func TestOperatorSidecar(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
	}
	text, err := os.ReadFile(root + "/deploy/kubernetes/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	r := busyRouter(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	c := strings.NewReplacer("listen 8082", "listen "+addr, "http://127.0.0.1:8081", r.admin, "/tmp/", dir+"/", "/dev/stderr", dir+"/log").Replace(object.Data["nginx.conf"])
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(c), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nginx, "-c", path, "-g", "daemon off;")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() })
	for i := 0; ; i++ {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			break
		} else if i > 100 {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for path, want := range map[string]int{
		"/metrics": 200, "/readyz": 200, "/livez": 200,
		"/": 404, "/api/v1/state": 404, "/api/v1/limits": 404, "/mcp": 404, "/incidents": 404, "/metrics/../api/v1/state": 404, "/metrics%2f..%2fapi/v1/state": 404,
	} {
		if status, _, _ := get(t, "http://"+addr+path); status != want {
			t.Errorf("%s is answered %d, not %d", path, status, want)
		}
	}
	q, err := http.NewRequest("PUT", "http://"+addr+"/api/v1/workloads/users/quarantine", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != 404 {
		t.Errorf("a change is answered %d", answer.StatusCode)
	}
}
