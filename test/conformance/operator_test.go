//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// busyRouter is a router that has something to show: one target that works
// and one that has been opened by failures.
func busyRouter(t *testing.T) *router {
	t.Helper()
	f := startFake(t)
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads("nightly-batch"),
		"models": conf{"good": order("plain/ok.plain"), "broken": order("azure/500.azure")}})
	for i := range 40 {
		post(t, r.origin+"/v1/chat/completions", userKey, `{"model":"good","messages":[]}`).Body.Close()
		post(t, r.origin+"/v1/chat/completions", userKey, fmt.Sprintf(`{"model":"broken","messages":[],"seed":%d}`, i)).Body.Close() // equal ones would be repeats
	}
	if !slices.ContainsFunc(r.state(t).Targets, func(s targetState) bool { return s.Name == "azure/500.azure" && s.Breaker == "open" }) {
		t.Fatalf("the failing target is not open: %+v", r.state(t).Targets)
	}
	return r
}

// run runs a program of the machine and returns what it prints.
func run(t *testing.T, stdin []byte, name string, args ...string) (stdout string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out.String(), errs.String())
	}
	return out.String()
}

// TestMetrics: Prometheus' own checker accepts what /metrics says, and the
// promised names are there.
func TestMetrics(t *testing.T) {
	r := busyRouter(t)
	status, body, _ := get(t, r.admin+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if said := run(t, body, "promtool", "check", "metrics"); said != "" {
		t.Errorf("promtool: %s", said)
	}
	for _, want := range []string{
		`hourthree_requests_total{class="ok",model="good",workload="users"} 40`,
		`hourthree_requests_total{class="outage",model="broken",workload="users"} 40`,
		`hourthree_attempts_total{class="ok",target="plain/ok.plain"} 40`,
		`hourthree_breaker_state{target="azure/500.azure"} 3`,
		`hourthree_breaker_state{target="plain/ok.plain"} 0`,
		`hourthree_amplification_ratio{side="in",workload="users"}`,
		`hourthree_amplification_ratio{side="out",workload="users"}`,
		`hourthree_first_content_seconds_bucket`, `hourthree_request_seconds_bucket`, `hourthree_retry_budget_tokens`,
		`hourthree_memory_reserved_bytes`, `hourthree_memory_limit_bytes`, `hourthree_inflight`, `hourthree_queue_length`,
	} {
		if !strings.Contains(string(body), "\n"+want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// TestPages opens the pages of targets and workloads in a real browser, of a router
// that has seen every kind of answer.
func TestPages(t *testing.T) {
	r := busyRouter(t)
	flags := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--no-first-run", "--user-data-dir=" + t.TempDir(), "--window-size=1400,900"}
	for path, words := range map[string][]string{
		"/targets":   {"plain/ok.plain", "azure/500.azure", "closed", "open"},
		"/workloads": {"users", "nightly-batch"},
	} {
		dom := run(t, nil, "chromium", append(flags, "--dump-dom", r.admin+path)...)
		text := strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(dom, " "))
		for _, want := range words {
			if !slices.Contains(text, want) {
				t.Errorf("%s does not show %q", path, want)
			}
		}
	}
}
