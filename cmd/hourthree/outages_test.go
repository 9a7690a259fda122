package main

import (
	"strings"
	"testing"
)

// TestOutagesCommand: what the command asks, and what it makes of the answer.
func TestOutagesCommand(t *testing.T) {
	answer := `{"open":0,"outages":[]}`
	url := answering(t, "/api/v1/outages", &answer)
	run := func(args ...string) (string, error) { return said(outagesCommand(), args...) }
	if out, err := run("--admin", url); err != nil || out != "No outage has been noticed.\n" {
		t.Errorf("%q, %v", out, err)
	}
	answer = `{"open":1,"outages":[{"id":"O-1","state":"unverified","words":"unverified: traffic at 15 % of onset","onset":"2026-05-29T09:20:00Z","waves":2,
		"scope":[{"kind":"model","name":"m"}],"suspects":[{"kind":"workload","name":"suite","score":0.97,"text":"has part"},{"kind":"target","name":"a/m","score":0.5,"text":"fails"}],
		"changes":[{"kind":"change","name":"rollout","score":0.9,"text":"came before"}],"similar":[{"id":"HT-0001","title":"A storm","drills":["azure-2026-05-29"]}]}]}`
	out, err := run("--admin", strings.TrimPrefix(url, "http://"))
	for _, want := range []string{
		"O-1  unverified  since 2026-05-29 09:20:00 UTC  2 wave(s)", "traffic at 15 % of onset", "concerns  model m", "0.97  workload suite: has part",
		"0.50  target a/m", "change rollout", "HT-0001  A storm  (hourthree drill run azure-2026-05-29)",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is not in %q, %v", want, out, err)
		}
	}
	if out, err := run("--admin", url, "--json"); err != nil || out != answer {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := run("--admin", url+"/elsewhere"); err == nil || !strings.Contains(err.Error(), "operator's listener") {
		t.Errorf("%v", err)
	}
}
