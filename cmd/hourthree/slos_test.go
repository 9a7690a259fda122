package main

import (
	"strings"
	"testing"
)

// TestSLOsCommand: what the command asks, and what it makes of the answer, within 80
// columns.
func TestSLOsCommand(t *testing.T) {
	answer := `{"slos":[]}`
	url := answering(t, "/api/v1/slos", &answer)
	run := func(args ...string) (string, error) { return said(slosCommand(), args...) }
	if out, err := run("--admin", url); err != nil || !strings.HasPrefix(out, "No SLO is configured.") {
		t.Errorf("%q, %v", out, err)
	}
	answer = `{"slos":[{"name":"` + strings.Repeat("checkout", 9) + `","model":"gpt-5","workload":"shop","objective":0.999,"window":"30d","good":1200000,"bad":700,"known_seconds":1036800,"budget_left":0.766,
		"burning":"page","since":"2026-05-29T09:20:00Z","outage":"O-1","burns":[{"window":"30s","burn_rate":0},{"window":"5m","burn_rate":61.25},{"window":"3d","burn_rate":1000}]},
		{"name":"all","objective":0.99,"window":"7d","known_seconds":30,"budget_left":-40,"burns":[]}]}`
	out, err := run("--admin", url)
	for _, want := range []string{
		"checkoutcheckoutcheckoutchec…  ", "99.9 %", "30d", "76.6 %", "12d", "page", "of requests of workload shop for model gpt-5: 1200000 good, 700 bad",
		"burn rate over 30s 0, 5m 61.2, 3d 1000", "burns since 2026-05-29 09:20:00 UTC, outage O-1", "< -999 %", "of all requests: 0 good, 0 bad",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s%v", want, out, err)
		}
	}
	for l := range strings.Lines(out) {
		if n := len([]rune(strings.TrimRight(l, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, l)
		}
	}
	if out, err := run("--admin", url, "--json"); err != nil || out != answer {
		t.Errorf("%q, %v", out, err)
	}
}
