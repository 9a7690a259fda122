package app

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// agents are User-Agents as clients send them, and what makes each stop: the
// status of an outage and the bounds of Retry-After in seconds. A most of 0
// is no Retry-After at all.
var agents = map[string]struct {
	agent       string
	outage      int // of every class that is not capacity or the caller's deadline
	least, most int
}{
	"openai-python":       {"OpenAI/Python 2.6.1", 503, 1, 60},
	"openai-python async": {"AsyncOpenAI/Python 2.6.1", 503, 1, 60},
	"openai-node":         {"OpenAI/JS 6.3.0", 503, 1, 60},
	"openai azure client": {"AzureOpenAI/Python 2.6.1", 503, 1, 60},
	"ai-sdk":              {"ai/5.0.52 ai-sdk/openai/2.0.32 ai-sdk/provider-utils/3.0.9 runtime/node.js/22", 429, 1, 59},
	"ai-sdk, provider":    {"ai-sdk/openai/2.0.32", 429, 1, 59},
	"langchain js":        {"langchainjs-openai/1.0.0 OpenAI/JS 6.3.0", 429, 61, 75},
	"langchain python":    {"OpenAI/Python 2.6.1", 503, 1, 60},
	"azure sdk python":    {"azsdk-python-ai-inference/1.0.0b9 Python/3.12", 429, 61, 75},
	"azure sdk net":       {"azsdk-net-AI.OpenAI/2.1.0 (.NET 9.0)", 429, 61, 75},
	"codex":               {"codex_cli_rs/0.46.0 (Mac OS 15.5; arm64)", 429, 0, 0},
	"cohere":              {"cohere-ai/5.0.0", 429, 50, 60},
	"google":              {"google-genai-sdk/1.40.0 gl-python/3.12", 429, 1, 60},
	"aws":                 {"aws-sdk-js/3.9", 429, 1, 60},
	"unknown":             {"curl/8.5.0", 503, 1, 60},
	"email about ai/":     {"Mail/1.0 email/ai/1", 503, 1, 60}, // a prefix is no part
	"none":                {"", 503, 1, 60},
}

// Breaks when a row of the table of clients is not found by its User-Agent,
// when the upstream's own advice passes, or when the shape loses the class.
func TestEveryClientIsToldToStop(t *testing.T) {
	for name, c := range agents {
		for class, tc := range map[string]struct {
			script script
			status int // for clients that obey x-should-retry
			wait   bool
		}{
			"capacity":   {script{status(429, `{"error":{"code":"rate_limit_exceeded","message":"x"}}`, "Retry-After", "7", "X-Should-Retry", "true")}, 429, true},
			"outage":     {script{status(500, "", "X-Should-Retry", "true", "Retry-After-Ms", "1")}, 503, true},
			"credential": {script{status(401, `{"error":{"code":"invalid_api_key","message":"x"}}`)}, 502, false},
			"account":    {script{status(429, `{"error":{"code":"insufficient_quota","message":"x"}}`)}, 502, false},
		} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", class, " ", stream), func(t *testing.T) {
					u1 := upstream("u1", tc.script)
					run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
						a := r.do(ask{stream: stream, headers: []string{"User-Agent", c.agent}})
						want := tc.status
						if c.outage == 429 {
							want = 429
						}
						r.failed(a, want, class)
						told := (tc.wait || want == 429) && c.most > 0
						r.advised(a, told, c.least, c.most)
						if class == "capacity" && told && c.least == 1 {
							r.advised(a, true, 5, 9) // the upstream's 7 s, spread
						}
						if !strings.Contains(a.body, `"class":"`+class+`"`) {
							t.Errorf("the class is not in %s", a.body)
						}
						r.counts(map[*fake]int{u1: 1})
					})
				})
			}
		}
	}
}

// advised asserts a Retry-After between least and most seconds, or none.
func (r *rig) advised(a answer, told bool, least, most int) {
	r.t.Helper()
	after, ms := a.header.Get("Retry-After"), a.header.Get("Retry-After-Ms")
	if !told {
		if after != "" || ms != "" {
			r.t.Errorf("Retry-After %q, Retry-After-Ms %q, want none", after, ms)
		}
		return
	}
	s, err := strconv.Atoi(after)
	if err != nil || s < least || s > most {
		r.t.Errorf("Retry-After %q, want %d to %d", after, least, most)
	}
	if n, err := strconv.Atoi(ms); err != nil || time.Duration(n)*time.Millisecond != time.Duration(s)*time.Second {
		r.t.Errorf("Retry-After-Ms %q beside Retry-After %q", ms, after)
	}
}

// Breaks when a refusal of the router's own, without a call, takes another
// way than those of upstreams.
func TestRefusalsOfTheRouterHaveTheClientsShape(t *testing.T) {
	for name, c := range agents {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("from one"))
			run(t, setup{upstreams: []*fake{u1}, workload: "limits: {rpm: 1}"}, func(r *rig) {
				headers := []string{"User-Agent", c.agent}
				r.good(r.do(ask{headers: headers}), "from one")
				a := r.do(ask{headers: headers})
				r.failed(a, 429, "capacity")
				r.advised(a, c.most > 0, c.least, c.most)
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

// Breaks when a caller's mistake leaves without x-should-retry: false, with the
// upstream's own advice, or reshaped to a status that is repeated.
func TestMistakesHaveOneShapeForAll(t *testing.T) {
	for name, c := range agents {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", script{status(400, `{"error":{"message":"bad","type":"invalid_request_error","code":null}}`, "X-Should-Retry", "true", "Retry-After", "1")})
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				for want, a := range map[int]ask{400: {}, 401: {key: "wrong"}, 404: {body: `{"model":"other"}`}} {
					a.headers = []string{"User-Agent", c.agent}
					got := r.do(a)
					r.failed(got, want, "client")
					r.advised(got, false, 0, 0)
				}
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

// Breaks when x-should-retry of a 409 reaches the client, or makes the router
// repeat the call: the caller's state conflicts, not the target's.
func TestG10AConflictIsTheCallers(t *testing.T) {
	body := `{"error":{"message":"conflict","type":"invalid_request_error","code":null}}`
	for _, advice := range []string{"", "true", "false"} {
		t.Run(advice, func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(409, body, "X-Should-Retry", advice)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{})
				r.failed(a, 409, "client")
				if a.body != body {
					t.Errorf("body %q", a.body)
				}
				r.counts(map[*fake]int{u1: 1, u2: 0})
				if s := r.state("u1"); s.Breaker.Failed != 0 || s.CoolUntil != nil {
					t.Errorf("%d failures, cool-down %v", s.Breaker.Failed, s.CoolUntil)
				}
			})
		})
	}
}
