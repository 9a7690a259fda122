package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotifyTest: what is sent, what is said of the answer, and that no secret is in
// it.
func TestNotifyTest(t *testing.T) {
	status, got := http.StatusOK, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(text)
		w.WriteHeader(status)
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "h.yaml")
	conf := "providers: {sim: {type: simulated}}\nmodels: {m: {targets: [{provider: sim}]}}\nnotify: {webhooks: {ops: {url: '" + s.URL + "/path-of-the-secret', kind: slack}, gone: {url: 'http://127.0.0.1:1/path-of-the-secret'}}}\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := notifyCommand()
		c.SetArgs(append(args, "-c", file))
		c.SetOut(&out)
		c.SetErr(io.Discard)
		c.SilenceUsage, c.SilenceErrors = true, true
		err := c.Execute()
		return out.String(), err
	}
	out, err := run("test", "ops")
	if err != nil || !strings.HasPrefix(out, "ops: delivered, answers 200 OK after ") || !strings.HasPrefix(got, "/path-of-the-secret ") || !strings.Contains(got, "This is a test") {
		t.Errorf("%q, %v, sent %s", out, err, got)
	}
	status = http.StatusForbidden
	for name, want := range map[string]string{"ops": "ops: not delivered: answers 403 Forbidden", "gone": "gone: not delivered: dial tcp", "opa": "did you mean ops?"} {
		if _, err := run("test", name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
