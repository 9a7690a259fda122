package app

import (
	"strings"
	"testing"
	"testing/synctest"
)

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
