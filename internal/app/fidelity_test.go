package app

import (
	"strings"
	"testing"
)

func TestH01AzureFirstChunk(t *testing.T) {
	filter := `{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`
	async := `{"choices":[{"content_filter_offsets":{"check_offset":1},"content_filter_results":{},"finish_reason":null,"index":0}],"id":"","object":""}` // H02
	text := "data: " + filter + "\n\ndata: " + roleChunk + "\n\ndata: " + chunk("x") + "\n\ndata: " + async + "\n\ndata: " + finishChunk + "\n\ndata: [DONE]\n\n"
	u1 := upstream("u1", script{head(), raw(text)})
	run(t, setup{upstreams: []*fake{u1}, kind: "azure"}, func(r *rig) {
		if a := r.do(ask{stream: true}); a.err != nil || a.body != text {
			t.Errorf("error %v, body %q", a.err, a.body)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestH03AzurePaths(t *testing.T) {
	for name, tc := range map[string]struct{ version, path, body, want string }{
		"dated chat":      {"2024-10-21", "/v1/chat/completions", `{"model":"m"}`, "/openai/deployments/real/chat/completions?api-version=2024-10-21"},
		"dated embedding": {"2024-10-21", "/v1/embeddings", `{"model":"m","input":"x"}`, "/openai/deployments/real/embeddings?api-version=2024-10-21"},
		"dated from path": {"2024-10-21", "/openai/deployments/m/chat/completions?api-version=2023-01-01", `{}`, "/openai/deployments/real/chat/completions?api-version=2024-10-21"},
		"undated":         {"", "/v1/chat/completions", `{"model":"m"}`, "/openai/v1/chat/completions"},
		"responses":       {"2025-03-01-preview", "/v1/responses", `{"model":"m","input":"x"}`, "/openai/responses?api-version=2025-03-01-preview"},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("from one"))
			s := setup{upstreams: []*fake{u1}, kind: "azure"}
			if tc.version != "" {
				s.provider = map[string]string{"u1": "api_version: " + tc.version}
			}
			run(t, s, func(r *rig) {
				r.good(r.do(ask{path: tc.path, body: tc.body}), "from one")
				r.counts(map[*fake]int{u1: 1})
				if got := u1.request(0).uri; got != tc.want {
					t.Errorf("asked at %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestI02PassThroughIsByteExact(t *testing.T) {
	text := "data: " + roleChunk + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}],"x_unknown":{"k":[1,2.50,1e2]}}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}}]}` + "\n\n" +
		"id: 9\nretry: 100\nevent: odd\ndata: " + toolChunk("1}") + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	u1 := upstream("u1", script{head(), raw(text)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		if a := r.do(ask{stream: true}); a.err != nil || a.body != text {
			t.Errorf("error %v, body %q", a.err, a.body)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestI04UsageWhereverItIs(t *testing.T) {
	usage := `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`
	for name, events := range map[string][]string{
		"no choices":   {chunk("x"), finishChunk, usageChunk, done},
		"empty delta":  {chunk("x"), finishChunk, `{"choices":[{"index":0,"delta":{}}],` + usage + `}`, done},
		"finish chunk": {chunk("x"), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage + `}`, done},
		"no key":       {chunk("x"), finishChunk, `{` + usage + `}`, done},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", script{head(), sse(events...)})
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{body: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}`})
				if want := "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"; a.body != want {
					t.Errorf("body %q, want %q", a.body, want)
				}
				if logs := r.logs.String(); !strings.Contains(logs, `"output_tokens":2`) {
					t.Errorf("usage is not recorded: %s", logs)
				}
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

func TestI05UsageNobodyAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		options string
		limited bool
		asked   bool
		shown   int
	}{
		"unset, no limit":  {"", false, false, 0},
		"unset, limit":     {"", true, true, 0},
		"false, limit":     {`"stream_options":{"include_usage":false},`, true, true, 0},
		"true, limit":      {`"stream_options":{"include_usage":true},`, true, true, 1},
		"true, no limit":   {`"stream_options":{"include_usage":true},`, false, true, 1},
		"other key, limit": {`"stream_options":{"x":1},`, true, true, 0},
		"null, limit":      {`"stream_options":null,`, true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1")
			u1.pick = func(_ int, s *seen) script {
				if strings.Contains(s.body, `"include_usage":true`) {
					return script{head(), sse(chunk("x"), finishChunk, usageChunk, done)}
				}
				return script{head(), sse(chunk("x"), finishChunk, done)}
			}
			s := setup{upstreams: []*fake{u1}}
			if tc.limited {
				s.workload = "limits: {tpm: 1000000}"
			}
			run(t, s, func(r *rig) {
				a := r.do(ask{body: `{"model":"m",` + tc.options + `"stream":true,"messages":[]}`})
				r.good(a, done)
				if n := strings.Count(a.body, `"usage"`); n != tc.shown {
					t.Errorf("%d usage chunks reached the client, want %d", n, tc.shown)
				}
				if asked := strings.Contains(u1.request(0).body, `"include_usage":true`); asked != tc.asked {
					t.Errorf("asked the upstream: %v, want %v", asked, tc.asked)
				}
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

func TestI07OnlyTheModelIsEdited(t *testing.T) {
	for name, body := range map[string]string{
		"odd values":     `{ "z":9007199254740993, "e":1e400, "f":-0.0, "model" : "m" ,"dup":1,"dup":2,"nested":{"model":"m","model":"m","a":[null,true]},"u":"\ud83d\ude00é\/" }`,
		"unknown fields": `{"provider":{"order":["x"]},"model":"m","messages":[{"role":"user","content":"m"}],"transforms":[]}`,
		"white space":    "\n\t{\r\n\"model\":\t\"m\"\n,\"messages\":[ ] }\n",
		"escaped name":   `{"mod\u0065l":"\u006d","messages":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("from one"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				r.good(r.do(ask{body: body}), "from one")
				r.counts(map[*fake]int{u1: 1})
				want := strings.Replace(body, `"m"`, `"real"`, 1)
				if name == "escaped name" {
					want = strings.Replace(body, `"\u006d"`, `"real"`, 1)
				}
				if got := u1.request(0).body; got != want {
					t.Errorf("went up as %q, want %q", got, want)
				}
			})
		})
	}
}

func TestI07EveryAttemptSendsTheWholeBody(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("long ", 200_000) + `"}]}`
	u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.good(r.do(ask{body: body}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 1})
		if u1.request(0).body != u2.request(0).body || len(u1.request(0).body) != len(body)+3 {
			t.Errorf("%d and %d bytes went up for %d", len(u1.request(0).body), len(u2.request(0).body), len(body))
		}
	})
}

// TestUpstreamsKnowTheRouter: the User-Agent is the router's with its version,
// never the caller's.
func TestUpstreamsKnowTheRouter(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.do(ask{headers: []string{"User-Agent", "OpenAI/Python 1.0"}})
		if got := u1.request(0).header.Get("User-Agent"); got != "hourthree/test" {
			t.Errorf("User-Agent %q", got)
		}
	})
}
