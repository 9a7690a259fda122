package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
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
	rest := "store: {path: memory}\nadmin: {listen: 127.0.0.1:0}\nproviders: {a: {type: simulated}}\nmodels: {m: {targets: [{provider: a}]}}\n"
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

// TestTheLastResortGetsItsCall: two failing targets do not use up the call
// that the degraded model needs. It fails when the first walk may make all
// three calls.
func TestTheLastResortGetsItsCall(t *testing.T) {
	broken := script{status(500, "")}
	u1, u2, u3, small := upstream("u1", broken), upstream("u2", broken), upstream("u3", broken), upstream("small", answers("from the small one"))
	s := setup{upstreams: []*fake{u1, u2, u3}, model: "degraded: {model: small}"}
	s.whole = strings.Replace(s.yaml(), "models:\n", "  small: {type: openai, base_url: \"http://small.test/v1\", api_key: x}\nmodels:\n  small: {targets: [{provider: small}]}\n", 1)
	s.upstreams = append(s.upstreams, small)
	run(t, s, func(r *rig) {
		a := r.do(ask{})
		r.good(a, "from the small one")
		if a.header.Get("Hourthree-Degraded") != "model" || a.header.Get("Hourthree-Attempts") != "3" {
			t.Errorf("headers %v", a.header)
		}
		r.counts(map[*fake]int{u1: 1, u2: 1, u3: 0, small: 1})
	})
}

// TestACorrectedKeyCountsAtOnce: what was refused to the old key is no
// reason to keep the new one waiting. It fails when accounts are found again
// by their provider's name alone.
func TestACorrectedKeyCountsAtOnce(t *testing.T) {
	for name, refusal := range map[string]script{
		"key":        {status(401, `{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}`)},
		"account":    {status(429, `{"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}`)},
		"deployment": {status(404, `{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", refusal)
			s := setup{upstreams: []*fake{u1}}
			class := "credential"
			if name == "account" {
				class = "account"
			}
			run(t, s, func(r *rig) {
				r.failed(r.do(ask{}), 502, class)
				r.failed(r.do(ask{}), 502, class) // and not as a limit
				r.counts(map[*fake]int{u1: 1})
				if err := r.app.Reload(); err != nil { // nothing was corrected
					t.Fatal(err)
				}
				r.failed(r.do(ask{}), 502, class)
				r.counts(map[*fake]int{u1: 1})
				u1.use(answers("served"))
				s.whole = strings.ReplaceAll(s.yaml(), "secret-of-u1", "corrected")
				r.configure(s)
				if err := r.app.Reload(); err != nil {
					t.Fatal(err)
				}
				r.good(r.do(ask{}), "served")
			})
		})
	}
}

// TestPassThroughAnswersOfAnyKind: what says nothing against the target is
// passed on as it is. Each fails when only a 2xx in JSON counts as an answer.
func TestPassThroughAnswersOfAnyKind(t *testing.T) {
	for _, c := range []struct {
		name, method string
		script       script
		status       int
		body, header string // a header that must be there, with its value
	}{
		{"not modified", "GET", script{wireText("HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\nContent-Length: 99\r\n\r\n")}, 304, "", `Etag: "a"`},
		{"redirect", "GET", script{status(302, "", "Location", "https://files.test/x")}, 302, "", "Location: https://files.test/x"},
		{"redirect with a page", "GET", script{status(307, "<html>", "Location", "https://files.test/x", "Content-Type", "text/html")}, 307, "<html>", "Location: https://files.test/x"},
		{"HTML", "GET", script{status(200, "<html>a file</html>", "Content-Type", "text/html")}, 200, "<html>a file</html>", "Content-Type: text/html"},
		{"no content", "DELETE", script{wireText("HTTP/1.1 204 No Content\r\n\r\n")}, 204, "", ""},
		{"length without a body", "HEAD", script{wireText("HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 12345\r\n\r\n")}, 200, "", "Content-Length: 12345"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u1 := upstream("u1", c.script)
			run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
				r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				for range 30 {
					a := r.do(ask{path: "/v1/files/x/content", method: c.method, bare: true})
					if a.err != nil || a.status != c.status || a.body != c.body {
						t.Fatalf("status %d, error %v, body %q", a.status, a.err, a.body)
					}
					if name, value, ok := strings.Cut(c.header, ": "); ok && a.header.Get(name) != value {
						t.Fatalf("%s: %q, want %q", name, a.header.Get(name), value)
					}
				}
				if s := r.state("u1"); s.Phase != "closed" || s.Success < 1 {
					t.Errorf("counted against the target: %s, success %v", s.Phase, s.Success)
				}
			})
		})
	}
}

// endless is a body that never ends by itself: pieces, then silence.
type endless struct {
	pieces int
	size   int
	after  chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.pieces == 0 {
		<-e.after
		return 0, io.EOF
	}
	e.pieces--
	return copy(p, make([]byte, e.size)), nil
}

// TestAnUploadRefusedEarly: the client is answered at once though it has more
// to send, and what it does wrong is not the target's fault. It fails when
// the read deadline is lifted, or when every failed call is an outage.
func TestAnUploadRefusedEarly(t *testing.T) {
	for _, c := range []struct {
		name   string
		script script
		http   string
		pieces int
		within time.Duration
		status int
		class  string
	}{
		{"by the upstream", script{status(400, `{"error":{"message":"no such purpose","type":"invalid_request_error"}}`)}, "", 8, time.Second, 400, "client"},
		{"by an outage", script{status(500, "")}, "", 8, time.Second, 503, "outage"},
		{"too large", script{func(t *talk) bool { _, _ = io.Copy(io.Discard, t.r.Body); return false }}, "max_body: 16KiB, max_upload: 64KiB", 1000, time.Second, 413, "client"},
		{"too slow", script{func(t *talk) bool { _, _ = io.Copy(io.Discard, t.r.Body); return false }}, "", 8, 17 * time.Second, 408, "client"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u1 := upstream("u1", c.script)
			u1.early = true
			run(t, setup{upstreams: []*fake{u1}, http: c.http, more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
				body := &endless{pieces: c.pieces, size: 4 << 10, after: make(chan struct{})}
				req := r.request(ask{path: "/v1/files"})
				req.Body, req.ContentLength = io.NopCloser(body), -1
				req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
				start := time.Now()
				resp, err := r.client.Do(req)
				took := time.Since(start)
				close(body.after)
				if err != nil {
					t.Fatalf("after %s: %v", took, err)
				}
				defer resp.Body.Close()
				if resp.StatusCode != c.status || resp.Header.Get("Hourthree-Class") != c.class || took > c.within {
					text, _ := io.ReadAll(resp.Body)
					t.Errorf("status %d, class %s after %s: %s", resp.StatusCode, resp.Header.Get("Hourthree-Class"), took, text)
				}
				if s := r.state("u1"); c.class == "client" && s.Success < 1 {
					t.Errorf("counted against the target: %v", s.Success)
				}
			})
		})
	}
}

// TestStoppingWhileABodyArrives: a client whose request is not whole yet is
// told so. It fails when every cancelled read is the client's leaving.
func TestStoppingWhileABodyArrives(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, http: "drain: 2s"}, func(r *rig) {
		c := r.dialRaw()
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", callerKey)
		time.Sleep(time.Second)
		out := make(chan string)
		go func() {
			text, _ := io.ReadAll(c)
			out <- string(text)
		}()
		_ = r.app.Stop()
		if text := <-out; !strings.HasPrefix(text, "HTTP/1.1 503") || !strings.Contains(text, "Hourthree-Class: overload") {
			t.Errorf("told %q", text)
		}
	})
}

// TestReloadOfTheWriteTimeout: the newest value bounds the next answer. It
// fails when the value is taken once at the start.
func TestReloadOfTheWriteTimeout(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	u1 := upstream("u1", answers(big))
	s := setup{upstreams: []*fake{u1}, http: "write_timeout: 10m"}
	run(t, s, func(r *rig) {
		s.http = "write_timeout: 2s"
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		c := r.dialRaw()
		defer c.Close()
		body := chatAsk(false)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callerKey, len(body), body)
		time.Sleep(5 * time.Second) // without reading
		if n := r.app.gateway.InFlight(); n != 0 {
			t.Errorf("%d requests wait for a client that does not read", n)
		}
	})
}

// TestLeavingEarlyIsNotFree: tokens of a stream whose use never arrived are
// charged as estimated. It fails when an unknown use counts as none.
func TestLeavingEarlyIsNotFree(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(roleChunk, chunk("begun")), hold()})
	run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 12000}"}, func(r *rig) {
		body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":%q}]}`, strings.Repeat("word ", 1200))
		refused := 0
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			if a := r.do(ask{body: body, ctx: ctx}); a.status == 429 {
				refused++
			}
			cancel()
		}
		if n := u1.count(); refused == 0 || n > 10 {
			t.Errorf("%d streams of about 1,500 tokens were begun and %d refused", n, refused)
		}
	})
}

// TestHeldFramesAreLeased: frames held before content count as memory, and
// what does not fit is the router's affair. It fails without the lease, and
// when a full ledger counts as an outage.
func TestHeldFramesAreLeased(t *testing.T) {
	frame := `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"pad":"` + strings.Repeat("p", 8<<10) + `"}`
	u1 := upstream("u1", script{head(), sse(slices.Repeat([]string{frame}, 24)...), wait(5 * time.Second), sse(chunk("at last"), finishChunk, done)})
	s := setup{upstreams: []*fake{u1}, target: map[string]string{"u1": "timeouts: {first_content: 20s}"}}
	run(t, s, func(r *rig) {
		var wg sync.WaitGroup
		wg.Go(func() { r.good(r.do(ask{stream: true}), "at last") })
		time.Sleep(2 * time.Second)
		if n := r.app.gateway.Ledger.Reserved(); n < 24*8<<10 {
			t.Errorf("%d bytes reserved while %d are held", n, 24*8<<10)
		}
		wg.Wait()
	})
	s.whole = strings.Replace(s.yaml(), "512MiB", "128KiB", 1)
	run(t, s, func(r *rig) {
		r.failed(r.do(ask{stream: true}), 503, "overload")
		if state := r.state("u1"); state.Success < 1 {
			t.Errorf("counted against the target: %v", state.Success)
		}
	})
}

// TestAModelListBindsPassThrough: a body that shows no model may use any. It
// fails when only the paths with a model look at the list.
func TestAModelListBindsPassThrough(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, workload: "models: [m]", more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
		for _, kind := range []string{"text/plain", "multipart/form-data; boundary=x", ""} {
			r.failed(r.do(ask{path: "/v1/files", body: `{"model":"another"}`, headers: []string{"Content-Type", kind}}), 403, "client")
		}
		r.failed(r.do(ask{path: "/v1/files", body: `{"model":"another"}`}), 404, "client")
		r.counts(map[*fake]int{u1: 0})
	})
}

// TestReloadOfTheQueue: its newest bounds count. It fails when the gate is
// made once.
func TestReloadOfTheQueue(t *testing.T) {
	u1 := upstream("u1", after(time.Second, answers("served")))
	s := setup{upstreams: []*fake{u1}, target: map[string]string{"u1": "limits: {concurrency: 1}"}, defaults: "queue: {wait: 0s}"}
	run(t, s, func(r *rig) {
		both := func() (served int) {
			for _, a := range r.each(2, func(int) ask { return ask{} }) {
				if a.status == 200 {
					served++
				}
			}
			return served
		}
		if n := both(); n != 1 {
			t.Errorf("%d served without a queue", n)
		}
		s.defaults = "queue: {wait: 5s}"
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		if n := both(); n != 2 {
			t.Errorf("%d served with a queue", n)
		}
	})
}

// TestAnAbandonedUploadEndsItsConnection: nothing waits for the rest of a
// body that nobody reads. It fails when only the pause of a body bounds it.
func TestAnAbandonedUploadEndsItsConnection(t *testing.T) {
	u1 := upstream("u1", script{status(400, `{"error":{"message":"no","type":"invalid_request_error"}}`)})
	u1.early = true
	run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
		c := r.dialRaw()
		defer c.Close()
		start := time.Now()
		fmt.Fprintf(c, "POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/csv\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na,b\r\n", callerKey)
		text, _ := io.ReadAll(c)
		if took := time.Since(start); took > 2*time.Second || !strings.HasPrefix(string(text), "HTTP/1.1 400") {
			t.Errorf("after %s: %q", took, text)
		}
	})
}

// TestTheReservedCall: the last call is the degraded model's unless a target
// that is proven healthy, or the content-policy fallback, can have it. It
// fails when the call is kept from everybody.
func TestTheReservedCall(t *testing.T) {
	down := script{status(503, `{"error":{"message":"down","type":"server_error"}}`)}
	u1, u2, u3, small := upstream("u1", down), upstream("u2", down), upstream("u3", answers("from three")), upstream("small", answers("from the small one"))
	run(t, withSmall(setup{upstreams: []*fake{u1, u2, u3}}, small), func(r *rig) {
		r.good(r.do(ask{}), "from the small one") // three is not proven
		for range 40 {
			r.do(ask{})
			time.Sleep(100 * time.Millisecond)
		}
		small.use(script{status(500, "")})
		for range 20 { // the breakers of one and two are open, three is proven
			r.good(r.do(ask{}), "from three")
			time.Sleep(100 * time.Millisecond)
		}
	})
	filtered := script{status(400, `{"error":{"message":"no","type":"invalid_request_error","code":"content_filter"}}`)}
	a, b, other := upstream("u1", down), upstream("u2", filtered), upstream("other", answers("from the other one"))
	s := withSmall(setup{upstreams: []*fake{a, b}}, small)
	s.whole = strings.Replace(s.whole, "    degraded: {model: small}\n", "    degraded: {model: small}\n    content_policy_fallback: [other]\n", 1)
	s.whole = strings.Replace(s.whole, "models:\n", "  other: {type: openai, base_url: \"http://other.test/v1\", api_key: x}\nmodels:\n  other: {targets: [{provider: other, model: real}]}\n", 1)
	s.upstreams = append(s.upstreams, other)
	run(t, s, func(r *rig) { r.good(r.do(ask{}), "from the other one") })
}

// TestAnOldKeyBlamesNoNewOne: a request from before a reload is made with the
// key of then, and so is what it is refused. It fails when the refusal cools
// the account of now.
func TestAnOldKeyBlamesNoNewOne(t *testing.T) {
	u1 := upstream("u1")
	u1.pick = func(_ int, s *seen) script {
		if s.header.Get("Authorization") == "Bearer corrected-key" {
			return answers("served")
		}
		return script{status(401, `{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}`)}
	}
	s := setup{upstreams: []*fake{u1}}
	run(t, s, func(r *rig) {
		pr, pw := io.Pipe()
		body := chatAsk(false)
		req := r.request(ask{})
		req.Body, req.ContentLength = pr, int64(len(body))
		old := make(chan int)
		go func() {
			resp, err := r.client.Do(req)
			if err != nil {
				old <- 0
				return
			}
			resp.Body.Close()
			old <- resp.StatusCode
		}()
		_, _ = io.WriteString(pw, body[:10]) // the request loads its snapshot
		time.Sleep(time.Second)
		s.whole = strings.ReplaceAll(s.yaml(), "secret-of-u1", "corrected-key")
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(pw, body[10:])
		_ = pw.Close()
		if status := <-old; status != 502 {
			t.Errorf("the old request ended with %d", status)
		}
		r.good(r.do(ask{}), "served")
	})
}

// TestHarmlessHeadersAreNoSecrets: a configured Accept says nothing that an
// answer might not say too. It fails when every configured value is redacted.
func TestHarmlessHeadersAreNoSecrets(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	run(t, setup{upstreams: []*fake{u1}, provider: map[string]string{"u1": "headers: {Accept: text/event-stream, X-Corp: application/json}"}}, func(r *rig) {
		r.good(r.do(ask{stream: true}), "from one")
		if a := r.do(ask{}); a.header.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", a.header)
		}
	})
}

// TestAnEscapedKeyIsAKey: JSON may write any character in two ways. It fails
// when only the plain spelling is looked for, or the log's text is not looked
// at once more.
func TestAnEscapedKeyIsAKey(t *testing.T) {
	const key, escaped = "abcdEFGH+ijkl/MNOP==", `abcdEFGH\u002Bijkl\/MNOP\u003d=`
	for _, code := range []int{400, 401} {
		u1 := upstream("u1", script{status(code, `{"error":{"message":"Incorrect API key provided: `+escaped+`.","type":"invalid_request_error","code":"x"}}`)})
		s := setup{upstreams: []*fake{u1}}
		s.whole = strings.ReplaceAll(s.yaml(), "secret-of-u1", `"`+key+`"`)
		run(t, s, func(r *rig) {
			a := r.do(ask{})
			if all := a.body + r.logs.String(); strings.Contains(all, key) || strings.Contains(all, escaped) || strings.Contains(all, "ijkl") {
				t.Errorf("shown: %s", all)
			}
		})
	}
}

// TestOtherWaysToCountChoices: see each case. They fail when n is read as a
// whole number only, when prompts count for chats, or when fewer choices than
// asked for are never whole.
func TestOtherWaysToCountChoices(t *testing.T) {
	two := script{head(), sse(choiceChunk(0, "one", "null"), choiceChunk(1, "two", "null"), choiceChunk(0, "", "stop")), wait(5 * time.Second), sse(choiceChunk(1, "rest", "stop"), done)}
	one := script{head(), sse(choiceChunk(0, "rest", "null"), choiceChunk(0, "", "stop"))}
	for name, c := range map[string]struct {
		n string
		s script
	}{
		"a fraction": {`"n":2.0`, two}, "an exponent": {`"n":2e0`, two}, "too many": {`"n":1000`, two},
		"n ignored": {`"n":2`, one}, "n of nothing": {`"n":0`, one}, "n below": {`"n":-1`, one}, "null": {`"n":null`, one}, "a chat's stray prompt": {`"prompt":["a","b"]`, one},
		"n ignored, cut by length": {`"n":2`, script{head(), sse(choiceChunk(0, "", "length"), done+" ")}},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", c.s)
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{body: `{"model":"m","stream":true,` + c.n + `,"messages":[]}`})
				if a.err != nil || a.status != 200 || !strings.Contains(a.body, "[DONE]") || strings.Contains(name, "a ") && !strings.Contains(a.body, "rest") {
					t.Errorf("status %d, error %v, %q", a.status, a.err, a.body)
				}
			})
		})
	}
}

// TestACommentBeforeAMovingEvent: it does not hide that data arrives.
func TestACommentBeforeAMovingEvent(t *testing.T) {
	long := chunk("abcdefghij")
	u1 := upstream("u1", script{head(), sse(chunk("x")), raw(": note\ndata: " + long[:20]), wait(20 * time.Second), raw(long[20:40]), wait(20 * time.Second), raw(long[40:] + "\n\n"), sse(finishChunk, done)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) { r.good(r.do(ask{stream: true}), "[DONE]") })
}

// TestACallerThatHasLeftGetsNothing: one that closed only its sending side is
// not to read an empty success. It fails when the handler just returns.
func TestACallerThatHasLeftGetsNothing(t *testing.T) {
	u1 := upstream("u1", after(time.Minute, answers("x")))
	for _, cut := range []int{0, 5} {
		run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
			c := r.dialRaw()
			defer c.Close()
			body := chatAsk(false)
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callerKey, len(body), body[:len(body)-cut])
			time.Sleep(time.Second)
			c.(*memnet.Conn).EndWrite()
			if text, _ := io.ReadAll(c); len(text) > 0 {
				t.Errorf("cut %d: read %q", cut, text)
			}
		})
	}
}

// TestTheLastLogLines: the lines of requests that were cut off are written
// before Stop returns.
func TestTheLastLogLines(t *testing.T) {
	big := chunk(strings.Repeat("z", 60000))
	u1 := upstream("u1", script{head(), func(t *talk) bool {
		for t.send("data: " + big + "\n\n") {
		}
		return false
	}})
	run(t, setup{upstreams: []*fake{u1}, http: "drain: 1s, write_timeout: 30s"}, func(r *rig) {
		c := r.dialRaw()
		defer c.Close()
		body := chatAsk(true)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: cut-off\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callerKey, len(body), body)
		time.Sleep(time.Second) // without reading
		r.logs.flush = nil
		_ = r.app.Stop()
		if text := r.logs.String(); !strings.Contains(text, `"id":"cut-off","method"`) {
			t.Errorf("logged %s", text)
		}
	})
}

// TestAStaleConnectionIsNoEvidence: an upstream that ends kept connections
// without a word is healthy. It fails when the reset of a reused connection
// counts against the target.
func TestAStaleConnectionIsNoEvidence(t *testing.T) {
	u1 := upstream("u1")
	used := map[string]bool{}
	u1.pick = func(_ int, s *seen) script { // called under the fake's lock
		if used[s.remote] {
			return script{rst()}
		}
		used[s.remote] = true
		return answers("served")
	}
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		for range 40 {
			r.good(r.do(ask{}), "served")
			time.Sleep(time.Second)
		}
		if s := r.state("u1"); s.Success < 1 || s.Phase != "closed" {
			t.Errorf("%s, success %v", s.Phase, s.Success)
		}
	})
}
