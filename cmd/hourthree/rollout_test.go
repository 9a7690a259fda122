package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/rollout"
)

// shownRollout is one that was taken back, as docs/rollout.md shows it.
func shownRollout() rollout.Status {
	at := time.Date(2026, 3, 9, 21, 30, 0, 0, time.UTC)
	return rollout.Status{
		Version: "5b1c0d2e", Before: "9f3a77c1", State: rollout.Reverted, Since: at.Add(125 * time.Second), Began: at,
		Stages: []rollout.Stage{{Share: 0.01}, {Share: 0.05}, {Share: 0.25}, {Share: 0.5}, {Share: 1}}, Verdict: rollout.Fail,
		Why: "client: workload teams-7, model m: 87.5 % refused as the caller's mistake, by the version before 0 %",
		Measures: []rollout.Measure{
			{Name: "success", N: 12, M: 1240, Verdict: rollout.Insufficient, Text: "success 100 %, of the version before 100 %"},
			{Name: "client", N: 12, M: 1240, Verdict: rollout.Fail, Text: "workload teams-7, model m: 87.5 % refused as the caller's mistake, by the version before 0 %"},
		},
		Diff: []string{"providers.azure.base_url: https://contoso-swe.openai.azure.com -> https://contoso-frc.openai.azure.com", "providers.azure.api_key: changed"},
		Timeline: []rollout.Moment{
			{At: at, What: "rollout of 5b1c0d2e began: stage 1 of 5, 1 % of the traffic"},
			{At: at.Add(125 * time.Second), What: "reverted to 9f3a77c1 in stage 1: client: workload teams-7, model m: 87.5 % refused as the caller's mistake, by the version before 0 %"},
		},
	}
}

// TestRolloutText: what is shown is what the document shows, and fits a terminal.
func TestRolloutText(t *testing.T) {
	text := rolloutText(shownRollout(), time.Date(2026, 3, 9, 21, 40, 0, 0, time.UTC))
	for _, l := range strings.Split(text, "\n") {
		if len([]rune(l)) > rolloutWidth {
			t.Errorf("wider than a terminal: %q", l)
		}
	}
	const path = "../../docs/rollout.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), "```text\n")
	shown, tail, ok2 := strings.Cut(rest, "```\n")
	if !ok || !ok2 {
		t.Fatal("the page shows no rollout")
	}
	if shown == text {
		return
	}
	if os.Getenv("UPDATE_SCRIPTS") == "" {
		t.Errorf("docs/rollout.md is not what is shown; with UPDATE_SCRIPTS=1 it is:\n%s", text)
	} else if err := os.WriteFile(path, []byte(head+"```text\n"+text+"```\n"+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTheRolloutDocumentIsRight runs each command of docs/rollout.md that shows its
// output.
func TestTheRolloutDocumentIsRight(t *testing.T) { documentIsRight(t, "docs/rollout.md", 4) }

// TestRolloutCommand: what the commands ask for, and what they make of answers.
func TestRolloutCommand(t *testing.T) {
	var path, body string
	status, answer := http.StatusOK, `{"state":"none"}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		path, body = r.Method+" "+r.URL.Path, string(text)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := rolloutCommand()
		c.SetArgs(append(args, "--admin", s.URL))
		c.SetOut(&out)
		c.SetErr(io.Discard)
		err := c.Execute()
		return out.String(), err
	}
	if out, err := run("status"); err != nil || out != "There has been no rollout since the router started.\n" || path != "GET /api/v1/rollout" {
		t.Errorf("%q, %v, %s", out, err, path)
	}
	if out, err := run("status", "--json"); err != nil || out != answer {
		t.Errorf("%q, %v", out, err)
	}
	text, err := json.Marshal(shownRollout())
	if err != nil {
		t.Fatal(err)
	}
	answer = string(text)
	var e exit
	if out, err := run("status"); !errors.As(err, &e) || e.code != exitFindings || !strings.Contains(out, "reverted to 9f3a77c1") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("status", "--watch"); !errors.As(err, &e) || strings.Count(out, "what differs") != 1 {
		t.Errorf("%v: %s", err, out)
	}
	status, answer = http.StatusNoContent, ""
	for _, do := range []string{"promote", "halt", "retry"} {
		if out, err := run(do, "--why", "it is time"); err != nil || out == "" || path != "POST /api/v1/rollout/"+do || !strings.Contains(body, `"why":"it is time"`) {
			t.Errorf("%s: %q, %v, %s %s", do, out, err, path, body)
		}
		if _, err := run(do); err == nil || !strings.Contains(err.Error(), "--why") {
			t.Errorf("%s without a reason: %v", do, err)
		}
	}
	status, answer = http.StatusConflict, `{"error":"no configuration is being rolled out"}`
	if _, err := run("halt", "--why", "x"); !errors.As(err, &e) || e.code != exitRun || err.Error() != "no configuration is being rolled out" {
		t.Error(err)
	}
}
