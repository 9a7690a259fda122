package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// faulty is an upstream whose calls panic inside the router, in one way.
type faulty struct {
	how  string
	kind string // Content-Type
	ok   instant
	good atomic.Bool
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.good.Load() {
		return f.ok.RoundTrip(r)
	}
	if f.how == "" {
		panic("round trip with the caller's " + callerKey)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {f.kind}}, ContentLength: -1, Request: r,
		Body: &trap{Reader: strings.NewReader(f.how)},
	}, nil
}

// trap is an answer whose reading panics at its end, once.
type trap struct {
	io.Reader
	sprung bool
}

func (t *trap) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err == io.EOF && !t.sprung {
		t.sprung = true
		return int(p[n:][len(p)]), nil // out of range
	}
	return n, err
}

func (*trap) Close() error { return nil }

// TestJ11APanicEndsOneRequest: a mistake of the router's own costs the one
// request that ran into it. What that held comes back, others are served, and
// an operator sees it: it does not count as an answer. It fails when
// Gateway.finish does not recover.
func TestJ11APanicEndsOneRequest(t *testing.T) {
	for name, tc := range map[string]struct{ how, kind string }{
		"round trip":           {"", ""},
		"whole answer":         {`{"id":`, "application/json"},
		"stream, held back":    {"data: " + roleChunk + "\n\n", "text/event-stream"},
		"stream, with content": {"data: " + chunk("early") + "\n\n", "text/event-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "hourthree.yaml")
			text := "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nproviders: {a: {type: openai, api_key: secret-of-a}}\n" +
				"models: {m: {targets: [{provider: a, model: real, limits: {concurrency: 1}}]}}\nworkloads: {team: {keys: [" + callerKey + "], limits: {concurrency: 1}}}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			up := &faulty{how: tc.how, kind: tc.kind, ok: instant{json: chatBody("from one"), stream: "data: " + chunk("from one") + "\n\ndata: " + finishChunk + "\n\ndata: [DONE]\n\n"}}
			logs := new(lockedBuffer)
			a, err := New(Options{ConfigPath: file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: logs, Version: "test", trip: up})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Stop()
			ask := func() (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.Addr().String()+"/v1/chat/completions", strings.NewReader(chatAsk(tc.kind == "text/event-stream")))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+callerKey)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					return "", err
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				return string(body), err
			}
			if body, err := ask(); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the answer ended as if it were whole: %q, %v", body, err)
			}
			up.good.Store(true)
			if body, err := ask(); err != nil || !strings.Contains(body, "from one") {
				t.Errorf("the next request got %q, %v", body, err)
			}
			for end := time.Now().Add(5 * time.Second); a.gateway.InFlight() > 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			s := a.state(time.Now())
			if s.InFlight != 0 || s.Reserved != 0 || s.Targets[0].InFlight != 0 || s.Workloads[0].InFlight != 0 {
				t.Errorf("held: %d requests, %d bytes, %d calls", s.InFlight, s.Reserved, s.Targets[0].InFlight)
			}
			resp, err := http.Get("http://" + a.AdminAddr().String() + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			metrics, _ := io.ReadAll(resp.Body)
			for _, line := range []string{"hourthree_panics_total 1", `hourthree_requests_total{class="outage",model="m",workload="team"} 1`, `hourthree_requests_total{class="ok",model="m",workload="team"} 1`} {
				if !strings.Contains(string(metrics), line+"\n") {
					t.Errorf("no metric %s", line)
				}
			}
			a.lines.Flush()
			if log := logs.String(); !strings.Contains(log, `"level":"ERROR","msg":"panic"`) || !strings.Contains(log, "panic_test.go") || strings.Contains(log, callerKey) {
				t.Errorf("logged: %s", log)
			}
		})
	}
}
