package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// costing is an ask of about 500 tokens, on each endpoint.
func costing(path string, stream bool) ask {
	long := strings.Repeat("word ", 400)
	body := map[string]string{
		"/v1/chat/completions": `"messages":[{"role":"user","content":"` + long + `"}]`,
		"/v1/completions":      `"prompt":"` + long + `"`,
		"/v1/embeddings":       `"input":"` + long + `"`,
		"/v1/responses":        `"input":"` + long + `"`,
	}[path]
	return ask{path: path, body: fmt.Sprintf(`{"model":"m","stream":%v,%s}`, stream, body)}
}

// Breaks when inbound.used gives nothing for a call whose usage is unknown.
func TestF05LeavingEarlyIsNotFree(t *testing.T) {
	for name, s := range map[string]script{
		"before headers": {hold()},
		"held back":      {head(), sse(roleChunk), hold()},
		"after content":  {head(), sse(chunk("x")), sse(slices.Repeat([]string{chunk("word")}, 50)...), hold()},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", s)
			run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 2000}"}, func(r *rig) {
				for range 2 {
					r.leaving(200*time.Millisecond, costing("/v1/chat/completions", true))
					synctest.Wait()
				}
				u1.use(answers("from one"))
				r.failed(r.do(costing("/v1/chat/completions", true)), http.StatusTooManyRequests, "capacity")
				r.counts(map[*fake]int{u1: 2})
				time.Sleep(time.Minute) // what was used comes back
				r.good(r.do(costing("/v1/chat/completions", true)), "from one")
			})
		})
	}
}

// Breaks when a request that never reached an upstream costs its estimate.
func TestF05WhatNeverWentUpIsFree(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 1200}"}, func(r *rig) {
		a := costing("/v1/chat/completions", false)
		unknown := ask{body: strings.Replace(a.body, `"m"`, `"x"`, 1)}
		for range 10 {
			r.failed(r.do(unknown), 404, "client")
		}
		r.good(r.do(a), "from one")
	})
}

// Breaks when a reported zero counts as not reported, so that the estimate
// stands; the second half breaks when a missing report counts as zero.
func TestF07ReportedZerosCostNothing(t *testing.T) {
	const used = `"prompt_tokens":0,"completion_tokens":0,"total_tokens":0`
	const used2 = `"input_tokens":0,"output_tokens":0,"total_tokens":0`
	zero := map[string]script{
		"/v1/chat/completions":        {status(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{`+used+`}}`)},
		"/v1/chat/completions stream": {head(), sse(chunk("x"), finishChunk, `{"choices":[],"usage":{`+used+`}}`, done)},
		"/v1/completions":             {status(200, `{"choices":[{"index":0,"text":"x","finish_reason":"stop"}],"usage":{`+used+`}}`)},
		"/v1/embeddings":              {status(200, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"usage":{"prompt_tokens":0,"total_tokens":0}}`)},
		"/v1/responses":               {status(200, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}],"usage":{`+used2+`}}`)},
		"/v1/responses stream":        {head(), raw(strings.Replace(responseEvents("x"), `"input_tokens":1,"output_tokens":1,"total_tokens":2`, used2, 1))},
	}
	for name, s := range zero {
		path, stream, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", s)
			run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 1200}"}, func(r *rig) {
				for range 10 {
					r.good(r.do(costing(path, stream != "")), "")
				}
				r.counts(map[*fake]int{u1: 10})
				if m := r.operator("/metrics"); strings.Contains(m, "hourthree_tokens_total{") && !strings.Contains(m, `type="output",workload="team"} 0`) {
					t.Errorf("tokens were counted: %s", m)
				}
			})
		})
	}
	t.Run("no report", func(t *testing.T) {
		u1 := upstream("u1", script{status(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}`)})
		run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 2000}"}, func(r *rig) {
			for range 2 {
				r.good(r.do(costing("/v1/chat/completions", false)), "")
			}
			r.failed(r.do(costing("/v1/chat/completions", false)), 429, "capacity")
		})
	})
}

// Breaks when the real use, larger than the estimate, is not charged.
func TestF07TheReportReplacesTheEstimate(t *testing.T) {
	u1 := upstream("u1", script{status(200, strings.Replace(chatBody("x"), `"completion_tokens":2`, `"completion_tokens":1300`, 1))})
	run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 1200}"}, func(r *rig) {
		r.good(r.do(ask{}), "x")
		r.failed(r.do(ask{}), 429, "capacity")
	})
}

// Breaks when anything but the model and stream_options of a body changes, or
// when a header of the router's own or of its bookkeeping goes up.
func TestI08NothingOfTheRouterGoesUp(t *testing.T) {
	allowed := map[string]bool{
		"Accept": true, "Accept-Encoding": true, "Api-Key": true, "Authorization": true, "Content-Length": true, "Content-Type": true,
		"User-Agent": true, "X-Request-Id": true, "X-Stainless-Retry-Count": true,
	}
	headers := []string{
		"Hourthree-Deadline-Ms", "60000", "X-Stainless-Timeout", "60", "X-Stainless-Read-Timeout", "60", "X-Server-Timeout", "60", "Grpc-Timeout", "60S",
		"X-Envoy-Expected-Rq-Timeout-Ms", "60000", "X-Envoy-Attempt-Count", "1", "X-Stainless-Retry-Count", "0", "X-Request-Id", "of-the-caller",
		"Prefer", "respond-async", "Hourthree-Class", "x", "Forwarded", "for=1.2.3.4", "X-Real-Ip", "1.2.3.4", "Via", "1.1 x", "Origin", "https://x", "Accept", "*/*",
	}
	for _, kind := range []string{"openai", "azure", "openai-compatible"} {
		for _, limits := range []string{"", "limits: {tpm: 1000000, rpm: 1000, concurrency: 5}"} {
			for _, route := range append(routes[:len(routes):len(routes)], struct{ path, body string }{"/v1/moderations", `{"model":"m","input":"x"}`}) {
				t.Run(kind+limits+route.path+route.body, func(t *testing.T) {
					body := strings.TrimSuffix(route.body, "}") + `,"metadata":{"a":"1"},"user":"u","safety_identifier":"s","x_own":[1]}`
					u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
					run(t, setup{upstreams: []*fake{u1, u2}, kind: kind, workload: limits}, func(r *rig) {
						r.good(r.do(ask{path: route.path, body: body, headers: headers}), "")
						if u1.count() != 1 || u2.count() != 1 {
							t.Errorf("%d and %d calls", u1.count(), u2.count())
							return
						}
						for _, s := range []seen{u1.request(0), u2.request(0)} {
							if got := unedited(t, s.body); got != unedited(t, body) {
								t.Errorf("went up as %s, from %s", s.body, body)
							}
							if streams := strings.Contains(body, `"stream":true`); strings.Contains(s.body, "stream_options") && (!streams || limits == "" || strings.Contains(route.path, "responses")) {
								t.Errorf("stream_options in %s", s.body)
							}
							for key := range s.header {
								if !allowed[key] {
									t.Errorf("%s: %q went up", key, s.header[key])
								}
							}
						}
					})
				})
			}
		}
	}
}

// unedited is a body without what the router may edit.
func unedited(t *testing.T, body string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	delete(m, "model")
	delete(m, "stream_options")
	b, err := json.Marshal(m)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
