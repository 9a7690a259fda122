package app

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const overloadedBody = `{"error":{"message":"busy","type":"server_error","code":"server_is_overloaded"}}`

func TestA01ErrorAfterTheFirstValidEvent(t *testing.T) {
	for name, first := range map[string]script{
		"responses": {head(), raw("event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"no\",\"status\":\"in_progress\"}}\n\n"),
			raw("event: error\ndata: {\"type\":\"error\",\"code\":\"insufficient_quota\",\"message\":\"m\"}\n\n")},
		"responses failed": {head(), raw("event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"no\",\"status\":\"in_progress\"}}\n\n"),
			raw("event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"no\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"m\"}}}\n\n")},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", first), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{path: "/v1/responses", body: `{"model":"m","stream":true,"input":"hi"}`})
				r.good(a, "from two")
				if strings.Contains(a.body, `"id":"no"`) {
					t.Errorf("bytes of the failed answer reached the client: %q", a.body)
				}
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestA02ErrorInsideAnAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		first  script
		stream bool
	}{
		"whole":        {script{status(200, overloadedBody)}, false},
		"stream":       {script{head(), sse(overloadedBody)}, true},
		"JSON instead": {script{status(200, overloadedBody)}, true},
		"after a role": {script{head(), sse(roleChunk, overloadedBody)}, true},
		"server error": {script{status(200, `{"error":{"message":"oops","type":"server_error","code":null}}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", tc.first), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				r.good(r.do(ask{stream: tc.stream}), "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestA04RefusalsOfStreams(t *testing.T) {
	for _, code := range []int{401, 403, 404, 408, 429, 500, 502, 503, 504, 520, 529} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(code, `{}`)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				r.good(r.do(ask{stream: true}), "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestA05EveryServerErrorMovesOn(t *testing.T) {
	u1 := upstream("u1", script{status(500, "oops")}, script{status(502, "<html>")}, script{status(503, "")})
	u2 := upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		for range 3 {
			r.good(r.do(ask{}), "from two")
		}
		r.counts(map[*fake]int{u2: 3})
	})
}

func TestA06FailuresBeforeAnyAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*rig)
		script  script
		calls   int
	}{
		"name unknown":   {func(r *rig) { r.net.Listener("u1.test").Hide() }, answers("from one"), 0},
		"dial hangs":     {func(r *rig) { r.net.Listener("u1.test").Silence() }, answers("from one"), 0},
		"port closed":    {func(r *rig) { r.net.Listener("u1.test").Close() }, answers("from one"), 0},
		"closed at once": {nil, script{cut()}, 1},
		"reset":          {nil, script{rst()}, 1},
		"not HTTP":       {nil, script{wireText("SSH-2.0-OpenSSH\r\n")}, 1},
		"head too long":  {nil, script{wireText("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 128<<10) + "\r\n\r\n")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", tc.script), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				if tc.prepare != nil {
					tc.prepare(r)
				}
				a := r.do(ask{})
				r.good(a, "from two")
				if a.took > 7*time.Second {
					t.Errorf("took %s", a.took)
				}
				r.counts(map[*fake]int{u1: tc.calls, u2: 1})
			})
		})
	}
}

func TestA07TheFirstRequestOfAllMovesOn(t *testing.T) {
	u1, u2 := upstream("u1", script{status(503, "")}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.good(r.do(ask{}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 1})
	})
}

func TestA08BareThrottle(t *testing.T) {
	u1, u2 := upstream("u1", script{status(429, "")}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.good(r.do(ask{}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 1})
		if s := r.state("u1"); s.CoolUntil == nil || s.Phase != "closed" {
			t.Errorf("after a throttle: cool-down %v, breaker %s", s.CoolUntil, s.Phase)
		}
		r.good(r.do(ask{}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 2})
	})
}

func TestA09KeyRefused(t *testing.T) {
	for _, code := range []int{401, 402, 403} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(code, `{"error":{"message":"no","type":"x","code":"x"}}`)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				for range 3 {
					r.good(r.do(ask{}), "from two")
				}
				r.counts(map[*fake]int{u1: 1, u2: 3})
			})
		})
	}
}

func TestA10OneKeyIsRefusedOnceForAllItsTargets(t *testing.T) {
	u1, u2 := upstream("u1", script{status(401, `{"error":{"message":"no","type":"x","code":"invalid_api_key"}}`)}), upstream("u2", answers("from two"))
	s := setup{upstreams: []*fake{u1, u2}}
	s.model = "degraded: {message: none}\n  n:\n    targets:\n      - {provider: u1, model: a, order: 1}\n      - {provider: u1, model: b, order: 2}\n      - {provider: u1, model: c, order: 3}\n      - {provider: u2, model: d, order: 4}"
	run(t, s, func(r *rig) {
		r.good(r.do(ask{body: `{"model":"n","messages":[]}`}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 1})
	})
}

const policyBody = `{"error":{"message":"no","type":"invalid_request_error","code":"content_policy_violation"}}`

func TestA11ContentPolicyIsNotAnOutage(t *testing.T) {
	u1, u2 := upstream("u1", script{status(400, policyBody)}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		a := r.do(ask{})
		r.failed(a, 400, "content_policy")
		if a.body != policyBody {
			t.Errorf("body %q", a.body)
		}
		r.counts(map[*fake]int{u1: 1, u2: 0})
	})
}

func TestA11ContentPolicyFallback(t *testing.T) {
	u1, u2 := upstream("u1", script{status(400, policyBody)}), upstream("u2", answers("from two"))
	s := setup{upstreams: []*fake{u1, u2}, model: "content_policy_fallback: [p]\n  p:\n    targets: [{provider: u2, model: lenient}]"}
	run(t, s, func(r *rig) {
		r.good(r.do(ask{}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 1})
		if got := u2.request(0).body; !strings.Contains(got, `"model":"lenient"`) {
			t.Errorf("the fallback was asked for %q", got)
		}
	})
}

func TestA12PromptFilterByCodeOnly(t *testing.T) {
	for name, body := range map[string]string{
		"straight": `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{}}}}`,
		"curly":    `{"error":{"message":"… Azure OpenAI’s content management policy.","param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
		"german":   `{"error":{"message":"Die Antwort wurde gefiltert.","code":"content_filter","status":400,"innererror":{"code":"ContentFiltered"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(400, body)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}, kind: "azure"}, func(r *rig) {
				a := r.do(ask{})
				r.failed(a, 400, "content_policy")
				if a.body != body { // H05: details are kept
					t.Errorf("body %q", a.body)
				}
				r.counts(map[*fake]int{u1: 1, u2: 0})
			})
		})
	}
}

func TestA14EmptyAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		good bool
	}{
		"no choices":   {`{"id":"x","object":"chat.completion","choices":[]}`, false},
		"empty text":   {`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, false},
		"null text":    {`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, false},
		"tool call":    {`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, true},
		"refusal":      {`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}`, true},
		"filtered":     {`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"content_filter"}],"usage":{"completion_tokens":3}}`, true},
		"out of space": {`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"completion_tokens":9}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(200, tc.body)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{})
				if tc.good {
					if a.body != tc.body {
						t.Errorf("body %q", a.body)
					}
					r.counts(map[*fake]int{u1: 1, u2: 0})
					return
				}
				r.good(a, "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
				if got := r.state("u1").Breaker; got.Failed != 1 || got.OK != 0 {
					t.Errorf("an empty answer counted as %d successes, %d failures", got.OK, got.Failed)
				}
			})
		})
	}
}

func TestA15AnswersThatAreNoAnswers(t *testing.T) {
	for name, tc := range map[string]struct{ body, contentType string }{
		"null":     {"null", "application/json"},
		"list":     {"[]", "application/json"},
		"string":   {`"x"`, "application/json"},
		"number":   {"0", "application/json"},
		"nothing":  {"", "application/json"},
		"page":     {"<html><body>Welcome</body></html>", "text/html"},
		"cut JSON": {`{"id":"x","choices":[{"index":0,`, "application/json"},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", name, stream), func(t *testing.T) {
				u1, u2 := upstream("u1", script{status(200, tc.body, "Content-Type", tc.contentType)}), upstream("u2", answers("from two"))
				run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
					r.good(r.do(ask{stream: stream}), "from two")
					r.counts(map[*fake]int{u1: 1, u2: 1})
				})
			})
		}
	}
}

// routes are the paths with a model and a body for each.
var routes = []struct{ path, body string }{
	{"/v1/chat/completions", `{"model":"m","messages":[]}`},
	{"/v1/chat/completions", `{"model":"m","stream":true,"messages":[]}`},
	{"/v1/completions", `{"model":"m","prompt":"x"}`},
	{"/v1/completions", `{"model":"m","stream":true,"prompt":"x"}`},
	{"/v1/embeddings", `{"model":"m","input":"x"}`},
	{"/v1/responses", `{"model":"m","input":"x"}`},
	{"/v1/responses", `{"model":"m","stream":true,"input":"x"}`},
	{"/openai/deployments/m/chat/completions?api-version=2024-10-21", `{"messages":[]}`},
	{"/openai/deployments/m/embeddings?api-version=2024-10-21", `{"input":"x"}`},
	{"/openai/v1/chat/completions", `{"model":"m","stream":true,"messages":[]}`},
}

func TestA17EveryRouteDecidesAlike(t *testing.T) {
	for name, first := range map[string]script{
		"500":    {status(500, "")},
		"429":    {status(429, "")},
		"401":    {status(401, "{}")},
		"inside": {status(200, overloadedBody)},
		"null":   {status(200, "null")},
		"cut":    {cut()},
		"empty":  {head()},
	} {
		for _, kind := range []string{"openai", "azure"} {
			for _, route := range routes {
				t.Run(name+" "+kind+" "+route.path, func(t *testing.T) {
					u1, u2 := upstream("u1", first), upstream("u2", answers("from two"))
					run(t, setup{upstreams: []*fake{u1, u2}, kind: kind}, func(r *rig) {
						r.good(r.do(ask{path: route.path, body: route.body}), "from two")
						r.counts(map[*fake]int{u1: 1, u2: 1})
					})
				})
			}
		}
	}
}

func TestA18NothingFollowsABrokenAnswer(t *testing.T) {
	for name, end := range map[string]step{"cut": cut(), "reset": rst(), "clean end": func(*talk) bool { return false }} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", script{head(), sse(roleChunk, chunk("Hello wor")), wait(time.Millisecond), end}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{stream: true})
				r.brokenOff(a, "Hello wor")
				r.counts(map[*fake]int{u1: 1, u2: 0})
			})
		})
	}
}

// brokenOff asserts a stream with some text, one error event behind it, no
// terminal marker and no proper end.
func (r *rig) brokenOff(a answer, text string) {
	r.t.Helper()
	events := strings.Split(strings.TrimSuffix(a.body, "\n\n"), "\n\n")
	last := events[len(events)-1]
	switch {
	case a.status != 200 || !strings.Contains(a.body, text):
		r.t.Errorf("status %d, body %q; want 200 with %q", a.status, a.body, text)
	case strings.Contains(a.body, done):
		r.t.Errorf("a broken answer ends with its marker: %q", a.body)
	case strings.Count(a.body, `"error":{`) != 1 || !strings.Contains(last, `"error":{`):
		r.t.Errorf("the last of %d events is no single error: %q", len(events), last)
	case a.err == nil:
		r.t.Error("a broken answer ended as if it were whole")
	}
}

func TestA19TriesAreBounded(t *testing.T) {
	us := []*fake{upstream("u1", script{status(429, "")}), upstream("u2", script{status(429, "")}), upstream("u3", script{status(429, "")}), upstream("u4", answers("from four"))}
	run(t, setup{upstreams: us}, func(r *rig) {
		r.failed(r.do(ask{}), 429, "capacity")
		r.counts(map[*fake]int{us[0]: 1, us[1]: 1, us[2]: 1, us[3]: 0})
		r.good(r.do(ask{}), "from four")
		r.counts(map[*fake]int{us[0]: 1, us[1]: 1, us[2]: 1, us[3]: 1})
	})
}

func TestA20MutualFallbackEnds(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", script{status(500, "")})
	s := setup{upstreams: []*fake{u1, u2}, model: "degraded: {model: n}\n  n:\n    targets: [{provider: u2, model: real}, {provider: u1, model: real, order: 2}]"}
	run(t, s, func(r *rig) {
		r.failed(r.do(ask{}), 503, "outage")
		if n := u1.count() + u2.count(); n > 3 {
			t.Errorf("%d calls for one request", n)
		}
	})
}

func TestA22ReasonPhrasesMeanNothing(t *testing.T) {
	for _, phrase := range []string{"Too Many Requests", "OK", "", "quota exceeded, content_filter, invalid key"} {
		t.Run(phrase, func(t *testing.T) {
			u1 := upstream("u1", script{wireText("HTTP/1.1 429 " + phrase + "\r\nContent-Length: 0\r\n\r\n")})
			u2 := upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				r.good(r.do(ask{}), "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
				if s := r.state("u1"); s.Phase != "closed" || s.CoolUntil == nil {
					t.Errorf("breaker %s, cool-down %v", s.Phase, s.CoolUntil)
				}
			})
		})
	}
}

func TestA24NobodySleepsThroughAThrottle(t *testing.T) {
	u1, u2 := upstream("u1"), upstream("u2", answers("from two"))
	u1.pick = func(n int, _ *seen) script {
		if n%11 == 10 {
			return script{status(429, "", "Retry-After", "50")}
		}
		return answers("from one")
	}
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		for i, a := range r.every(time.Second, 120, ask{}) {
			if a.status != 200 || a.took > time.Second {
				t.Errorf("request %d: status %d after %s", i, a.status, a.took)
			}
		}
		if n := u1.count() + u2.count(); n > 123 {
			t.Errorf("%d calls for 120 requests", n)
		}
	})
}
