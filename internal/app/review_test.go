package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReloadKeepsItsListenersSafe: a router that listens for everybody with
// keys must not take a file without keys, whatever address that file names:
// addresses change with a restart only.
func TestReloadKeepsItsListenersSafe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hourthree.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rest := "admin: {listen: 127.0.0.1:0}\nproviders: {a: {type: simulated}}\nmodels: {m: {targets: [{provider: a}]}}\n"
	write("listen: 0.0.0.0:0\n" + rest + "workloads: {w: {keys: [0123456789abcdef0123]}}\n")
	a, err := New(Options{ConfigPath: path, Env: os.LookupEnv, Stdout: new(strings.Builder), Stderr: new(strings.Builder)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	write("listen: 127.0.0.1:0\n" + rest)
	if err := a.Reload(); err == nil {
		t.Fatal("keys were dropped on a public listener")
	}
	if a.gateway.Snapshot().Directory.Identify("") != nil {
		t.Error("a caller without a key is served")
	}
}

// choiceChunk is a piece of one of several choices.
func choiceChunk(index int, text, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":%d,"delta":{"content":%q},"finish_reason":%s}]}`, index, text, finish)
}

// TestSeveralChoicesAreOneAnswer: the first choice's end is not the answer's.
// It fails when one finish_reason makes the stream whole.
func TestSeveralChoicesAreOneAnswer(t *testing.T) {
	first := []string{choiceChunk(0, "one", "null"), choiceChunk(1, "two", "null"), choiceChunk(0, "", "stop")}
	for _, c := range []struct {
		name, body string
		script     script
		whole      bool
	}{
		{"the second is cut off", `{"model":"m","stream":true,"n":2,"messages":[]}`, script{head(), sse(first...), cut()}, false},
		{"the second takes its time", `{"model":"m","stream":true,"n":2,"messages":[]}`,
			script{head(), sse(first...), wait(10 * time.Second), sse(choiceChunk(1, "late", "stop"), done)}, true},
		{"both finished, no marker", `{"model":"m","stream":true,"n":2,"messages":[]}`,
			script{head(), sse(first...), sse(choiceChunk(1, "late", "length")), cut()}, true},
		{"one said it twice", `{"model":"m","stream":true,"n":2,"messages":[]}`, script{head(), sse(first...), sse(first[2]), cut()}, false},
		{"a list of prompts", `{"model":"m","stream":true,"prompt":["a","b"]}`, script{head(), sse(first...), cut()}, false},
		{"one prompt of tokens", `{"model":"m","stream":true,"prompt":[1,2,3]}`, script{head(), sse(first...), cut()}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := upstream("u1", c.script)
			run(t, setup{upstreams: []*fake{u}}, func(r *rig) {
				path := "/v1/chat/completions"
				if strings.Contains(c.body, "prompt") {
					path = "/v1/completions"
				}
				a := r.do(ask{path: path, body: c.body})
				whole := a.err == nil && strings.HasSuffix(a.body, "data: [DONE]\n\n")
				if whole != c.whole {
					t.Errorf("whole %v (error %v), want %v: %q", whole, a.err, c.whole, a.body)
				}
			})
		})
	}
}

// TestCommentsDoNotKeepAStreamAlive: a proxy may send them for ever when what
// is behind it has died. It fails when every read moves the idle limit on.
func TestCommentsDoNotKeepAStreamAlive(t *testing.T) {
	comments := script{head(), sse(roleChunk, chunk("begun"))}
	for range 100 {
		comments = append(comments, wait(time.Second), raw(": ping\n\n"))
	}
	u := upstream("u1", comments)
	run(t, setup{upstreams: []*fake{u}, defaults: "timeouts: {idle: 5s}"}, func(r *rig) {
		if a := r.do(ask{stream: true}); a.took > 6*time.Second || !strings.Contains(a.body, "idle_timeout") {
			t.Errorf("after %s: %q", a.took, a.body)
		}
	})
	pieces := script{head(), sse(roleChunk, chunk("begun")), raw("data: ")}
	for _, b := range []byte(chunk("slow")) {
		pieces = append(pieces, wait(time.Second), raw(string(b)))
	}
	v := upstream("u1", append(pieces, raw("\n\n"), sse(finishChunk, done)))
	run(t, setup{upstreams: []*fake{v}, defaults: "timeouts: {idle: 5s}"}, func(r *rig) {
		r.good(r.do(ask{stream: true}), "slow")
	})
}
