package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// secretOfU1 is what setup gives u1 as its key.
const secretOfU1 = "secret-of-u1"

// quoting is an error body that quotes the key it refuses.
func quoting(kind, code string) string {
	return fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s (Bearer %[1]s).","type":%q,"code":%q,"param":%[1]q}}`, secretOfU1, kind, code)
}

// whole is everything of an answer that a client can see.
func (a answer) whole() string { return fmt.Sprint(a.status, a.header, a.body, a.err) }

// Breaks when exchange.do no longer redacts what an upstream refused with.
func TestAQuotedKeyOfOursStaysInside(t *testing.T) {
	invalid := quoting("invalid_request_error", "invalid_value")
	scripts := map[string]script{
		"200 with an error":  {status(200, quoting("server_error", "server_error"))},
		"200 with a mistake": {status(200, invalid)},
		"event first":        {head(), sse(quoting("server_error", "server_error"))},
		"event of a mistake": {head(), sse(invalid)},
		"not JSON":           {status(400, "bad key "+secretOfU1, "Content-Type", "text/plain")},
		"policy":             {status(400, quoting("invalid_request_error", "content_policy_violation"))},
		"escaped":            {status(422, `{"error":{"message":"`+secretOfU1+`\u002f","type":"invalid_request_error"}}`)},
	}
	for _, code := range []int{400, 401, 402, 403, 404, 409, 413, 418, 422, 429, 500, 502, 503, 529} {
		scripts[fmt.Sprint(code)] = script{status(code, quoting("invalid_request_error", "invalid_api_key"))}
		scripts[fmt.Sprint(code, " plain")] = script{status(code, invalid)}
	}
	for _, kind := range []string{"openai", "azure", "openai-compatible"} {
		for name, s := range scripts {
			for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/moderations"} {
				if path == "/v1/moderations" && (strings.Contains(name, "200") || strings.Contains(name, "event")) {
					continue // what a passed-through path answers is not read
				}
				t.Run(kind+" "+name+" "+path, func(t *testing.T) {
					u1 := upstream("u1", s)
					run(t, setup{upstreams: []*fake{u1}, kind: kind}, func(r *rig) {
						a := r.do(ask{path: path, stream: strings.Contains(name, "event")})
						synctest.Wait()
						if got := a.whole() + r.logs.String(); strings.Contains(got, secretOfU1) {
							t.Errorf("our key is in %s", got)
						}
						if a.status == http.StatusOK {
							t.Errorf("passed as a whole answer: %s", a.body)
						}
						if u1.count() == 0 {
							t.Error("the upstream was not asked")
						}
					})
				})
			}
		}
	}
}

// Breaks when Redact changes a body that quotes no key.
func TestARefusalWithoutAKeyIsVerbatim(t *testing.T) {
	body := `{ "error" : {"message":"bad \u00e9 secret-of-u2", "type":"invalid_request_error","code":"x","innererror":{"n":1.50}} }`
	u1 := upstream("u1", script{status(400, body)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		if a := r.do(ask{}); a.status != 400 || a.body != body {
			t.Errorf("status %d, body %q", a.status, a.body)
		}
	})
}

// Breaks when a key, an Authorization header or an upstream's message becomes
// part of a log line, a label, the state or an error.
func TestKeysAreShownNowhere(t *testing.T) {
	var n atomic.Int64
	refusing := func(name string) *fake {
		u, secret := upstream(name), "secret-of-"+name
		quote := func(kind, code string) string { return strings.ReplaceAll(quoting(kind, code), secretOfU1, secret) }
		scripts := []script{
			{status(401, quote("invalid_request_error", "invalid_api_key"))}, {status(400, quote("invalid_request_error", "x"))},
			{status(429, quote("rate_limit_error", "rate_limit_exceeded"))}, {status(500, quote("server_error", "x"))},
			{head(), sse(chunk("x")), cut()}, {cut()}, {wireText("HTTP/1.1 " + secret + "\r\n\r\n")},
			{wireText("HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n")}, {hold()}, answers("fine"),
		}
		u.pick = func(int, *seen) script { return scripts[int(n.Add(1))%len(scripts)] }
		return u
	}
	u1, u2 := refusing("u1"), refusing("u2")
	s := setup{upstreams: []*fake{u1, u2}, together: true, more: "passthrough: {/v1/files: u1}\n", defaults: "breaker: {min_requests: 5, cool_down: 1s}"}
	run(t, s, func(r *rig) {
		var seen strings.Builder
		paths := append(routes[:len(routes):len(routes)],
			struct{ path, body string }{"/v1/files?key=" + callerKey, `{"x":1}`}, struct{ path, body string }{"/v1/nothing?api_key=" + callerKey, `{}`},
			struct{ path, body string }{"/nowhere?token=" + callerKey, `{}`}, struct{ path, body string }{"/v1/chat/completions", `{"model":`})
		for range 12 {
			for _, p := range paths {
				seen.WriteString(r.do(ask{path: p.path, body: p.body}).whole())
				r.do(ask{path: p.path, body: p.body, key: "wrong-" + callerKey})
				r.leaving(time.Millisecond, ask{path: p.path, body: p.body})
				time.Sleep(30 * time.Second)
			}
		}
		for _, broken := range []string{
			strings.Replace(s.yaml(), "api_key: "+secretOfU1, "api_kye: "+secretOfU1, 1),
			strings.Replace(s.yaml(), "api_key: "+secretOfU1, "type: "+secretOfU1, 1),
			strings.Replace(s.yaml(), "["+callerKey+"]", "["+callerKey+", "+callerKey+"]", 1),
			strings.Replace(s.yaml(), "["+callerKey+"]", callerKey, 1),
		} {
			if err := os.WriteFile(r.file, []byte(broken), 0o600); err != nil {
				r.t.Fatal(err)
			}
			if err := r.app.Reload(); err == nil {
				t.Errorf("taken: %s", broken)
			} else {
				seen.WriteString(err.Error())
			}
			seen.WriteString(r.operator("/api/v1/state") + r.operator("/"))
		}
		seen.WriteString(r.operator("/metrics") + r.logs.String())
		for _, secret := range []string{secretOfU1, "secret-of-u2", callerKey} {
			if _, rest, found := strings.Cut(seen.String(), secret); found {
				t.Errorf("%s is shown before %.200q", secret, rest)
			}
		}
		if u1.count() < 20 || u2.count() < 20 || !strings.Contains(seen.String(), "hourthree_attempts_total{") {
			t.Errorf("%d and %d calls: too little was seen", u1.count(), u2.count())
		}
	})
}

// operator reads a page of the operator's listener.
func (r *rig) operator(path string) string {
	r.t.Helper()
	resp, err := r.client.Get("http://127.0.0.1:8081" + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.t.Errorf("%s: status %d, %v", path, resp.StatusCode, err)
	}
	return string(b)
}

// Breaks when the provider's own error frame goes to a client that already has
// content with our key in it.
func TestAQuotedKeyOfOursStaysInsideAStream(t *testing.T) {
	for name, tc := range map[string]struct{ path, body, first, event string }{
		"chat":       {"/v1/chat/completions", chatAsk(true), chunk("x"), "data: " + quoting("server_error", "x") + "\n\n"},
		"completion": {"/v1/completions", `{"model":"m","stream":true,"prompt":"x"}`, `{"choices":[{"index":0,"text":"x","finish_reason":null}]}`, "data: " + quoting("server_error", "x") + "\n\n"},
		"responses": {"/v1/responses", `{"model":"m","stream":true,"input":"x"}`, `{"type":"response.output_text.delta","sequence_number":1,"delta":"x"}`,
			"event: error\ndata: {\"type\":\"error\",\"code\":\"x\",\"message\":\"bad key " + secretOfU1 + "\"}\n\n"},
		"failed": {"/v1/responses", `{"model":"m","stream":true,"input":"x"}`, `{"type":"response.output_text.delta","sequence_number":1,"delta":"x"}`,
			"event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"x\",\"message\":\"" + secretOfU1 + "\"}}}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", script{head(), sse(tc.first), raw(tc.event)})
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{path: tc.path, body: tc.body})
				synctest.Wait()
				if got := a.whole() + r.logs.String(); strings.Contains(got, secretOfU1) || !strings.Contains(got, "[redacted]") {
					t.Errorf("got %s", got)
				}
				if a.err == nil {
					t.Errorf("a broken stream ended cleanly: %q", a.body)
				}
			})
		})
	}
}

// Breaks when the operator's log does not say why a provider refused our key,
// or says it with the key, or when the client is told.
func TestM06TheReasonOfARefusedKeyIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
	}{
		"openai":   {401, `{"error":{"message":"Incorrect API key provided: ` + secretOfU1 + `.","type":"invalid_request_error","code":"invalid_api_key"}}`, "Incorrect API key provided: [redacted]."},
		"address":  {401, `{"error":{"message":"Your IP is not authorized.","type":"invalid_request_error","code":"ip_not_authorized"}}`, "Your IP is not authorized."},
		"billing":  {429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`, "You exceeded your current quota."},
		"no JSON":  {401, "key " + secretOfU1 + " expired", "key [redacted] expired"},
		"too long": {401, `{"error":{"message":"` + strings.Repeat("a", 299) + `é","code":"invalid_api_key"}}`, strings.Repeat("a", 299) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", script{status(tc.status, tc.body)})
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{})
				synctest.Wait()
				logs := r.logs.String()
				if a.status != 502 || !strings.Contains(logs, `"detail":"`+tc.want) || strings.Contains(a.whole()+logs, secretOfU1) {
					t.Errorf("status %d, logged %s", a.status, logs)
				}
				if strings.Contains(a.body, tc.want) {
					t.Errorf("the client is told: %s", a.body)
				}
			})
		})
	}
	t.Run("nothing of a prompt", func(t *testing.T) {
		u1 := upstream("u1", script{status(400, `{"error":{"message":"bad prompt: words","type":"invalid_request_error"}}`)}, script{status(500, `{"error":{"message":"bad prompt: words"}}`)})
		run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
			r.do(ask{})
			r.do(ask{})
			synctest.Wait()
			if strings.Contains(r.logs.String(), "words") {
				t.Errorf("logged %s", r.logs)
			}
		})
	})
}

// Breaks when response headers are passed on as they came.
func TestAKeyInAHeaderStaysInside(t *testing.T) {
	u1 := upstream("u1", script{status(200, chatBody("x"), "X-Echo", "Bearer "+secretOfU1)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{})
		r.good(a, "x")
		if a.header.Get("X-Echo") != "Bearer [redacted]" {
			t.Errorf("headers %v", a.header)
		}
	})
}
