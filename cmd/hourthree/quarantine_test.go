package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestQuarantineCommand: what the command sends, and what it makes of answers.
func TestQuarantineCommand(t *testing.T) {
	var method, path, body string
	status, answer := http.StatusNoContent, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		method, path, body = r.Method, r.URL.EscapedPath(), string(text)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := quarantineCommand()
		c.SetArgs(append(args, "--admin", strings.TrimPrefix(s.URL, "http://")))
		c.SetOut(&out)
		c.SetErr(io.Discard)
		err := c.Execute()
		return out.String(), err
	}
	if out, err := run("test suite", "--why", "a storm"); err != nil || out != "test suite: in quarantine\n" {
		t.Errorf("%q, %v", out, err)
	}
	if method != "PUT" || path != "/api/v1/workloads/test%20suite/quarantine" || !strings.Contains(body, `"why":"a storm"`) || strings.Contains(body, "share") {
		t.Errorf("%s %s %s", method, path, body)
	}
	for _, args := range [][]string{{"a"}, {"a", "--release"}, {"a", "--why", "  "}} {
		method = ""
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), "say why") || method != "" {
			t.Errorf("%v without a reason: %v, %s", args, err, method)
		}
	}
	if _, err := run("a", "--share", "0", "--why", "x"); err != nil || !strings.Contains(body, `"share":0`) {
		t.Errorf("%v, %s", err, body)
	}
	if out, err := run("a", "--release", "--why", "x"); err != nil || out != "a: released\n" || method != "DELETE" {
		t.Errorf("%s %q, %v", method, out, err)
	}
	status, answer = 404, `{"error":"There is no workload \"a\"."}`
	var e exit
	if _, err := run("a", "--why", "x"); !errors.As(err, &e) || e.code != exitRun || err.Error() != `There is no workload "a".` {
		t.Error(err)
	}
	status, answer = 502, "<html>"
	if _, err := run("a", "--why", "x"); err == nil || !strings.Contains(err.Error(), "is it the operator's listener") {
		t.Error(err)
	}
	s.Close()
	if _, err := run("a", "--why", "x"); !errors.As(err, &e) || e.code != exitRun || !strings.Contains(err.Error(), "no router answers") {
		t.Error(err)
	}
}
