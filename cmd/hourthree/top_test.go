package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTopOnce: without a terminal one picture is printed as text, of a router that
// serves more and of one that serves less, with the operator's key.
func TestTopOnce(t *testing.T) {
	t.Setenv(adminKeyVariable, "an-operators-key-of-some-length")
	key := ""
	paths := map[string]string{"/api/v1/state": `{"at":"2026-05-29T09:20:00Z","version":"1.0","config_id":"ab12","in_flight":3,"targets":[{"name":"a/m","domain":"a","breaker":"open","success_share":0.5}],"workloads":[{"name":"te\u001b[2Jam","inbound":5,"lane":{"name":"normal"}}]}`}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Authorization")
		text, ok := paths[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	defer s.Close()
	run := func(args ...string) (string, error) { return said(topCommand(), args...) }
	out, err := run("--once", "--admin", s.URL)
	for _, want := range []string{"configuration ab12", "Nothing is noticed to be wrong.", "in flight 3", "a/m ", " open ", "50.0 %", "te�[2Jam"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is not in %q, %v", want, out, err)
		}
	}
	if strings.Contains(out, "ACTIONS") || strings.Contains(out, "ROLLOUT") || strings.Contains(out, "\x1b") || key != "Bearer an-operators-key-of-some-length" {
		t.Errorf("%q with %q", out, key)
	}
	paths["/api/v1/actions"] = `{"in_force":[{"id":"A-1","kind":"drain","subject":"a/m","by":"ann","why":"slow","until":"2026-05-29T10:20:00Z"}],"ended":[]}`
	paths["/api/v1/rollout"] = `{"version":"cd34","state":"reverted","stages":[{"share":0.01}],"verdict":"fail","why":"success fell"}`
	out, err = run("--admin", strings.TrimPrefix(s.URL, "http://"))
	for _, want := range []string{"A-1  drain a/m  1 h 0 m left  by ann: slow", "cd34  reverted", "fail: success fell"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q is not in %q, %v", want, out, err)
		}
	}
	paths["/api/v1/state"] = "<html>"
	if _, err := run("--admin", s.URL); err == nil || !strings.Contains(err.Error(), "/api/v1/state is not understood") {
		t.Errorf("%v", err)
	}
	if _, err := run("--admin", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "no router answers at http://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
	if _, err := run("--every", "1ms"); err == nil {
		t.Error("a thousand pictures a second")
	}
}
