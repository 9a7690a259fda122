package provider

import (
	"net/http"
	"testing"
)

// Breaks when any of the three sources of secrets, or the escaped form, is
// left out of Redact.
func TestRedact(t *testing.T) {
	p, err := New(Spec{
		Name: "p", Type: OpenAI, APIKey: "sk-secret/of+p", Headers: map[string]string{"OpenAI-Organization": "org-of-ours", "X-Turn": "1"},
	}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	sent := http.Header{"Authorization": {"Bearer token-of-ours"}}
	for in, want := range map[string]string{
		"":                              "",
		`{"m":"nothing 1 here"}`:        `{"m":"nothing 1 here"}`,
		`{"m":"key: sk-secret/of+p."}`:  `{"m":"key: [redacted]."}`,
		`{"m":"key: sk-secret\/of+p."}`: `{"m":"key: [redacted]."}`,
		"sk-secret/of+psk-secret/of+p":  "[redacted][redacted]",
		"Bearer token-of-ours":          "Bearer [redacted]",
		"organization org-of-ours":      "organization [redacted]",
		"sk-secret/of and token-of":     "sk-secret/of and token-of",
	} {
		text := []byte(in)
		if got := p.Redact(text, sent); string(got) != want || string(text) != in {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
