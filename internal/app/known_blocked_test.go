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
