package provider

import (
	"bytes"
	"net/http"
	"strings"
)

// leastSecret is the length, in bytes, from which a value is looked for:
// shorter ones are placeholders of local servers and would hit common words.
const leastSecret = 8

var redacted = []byte("[redacted]")

// Redact returns text of an upstream with every credential of this provider
// taken out, for providers quote a key that they refuse. sent are the headers
// of the call that was answered, which may hold a token that has been renewed
// since. The text itself is not changed.
func (p *Provider) Redact(text []byte, sent http.Header) []byte {
	if len(text) == 0 {
		return text
	}
	text = redact(text, p.spec.APIKey)
	text = redact(text, strings.TrimPrefix(sent.Get("Authorization"), "Bearer "))
	for _, value := range p.spec.Headers {
		text = redact(text, value)
	}
	return text
}

func redact(text []byte, secret string) []byte {
	if len(secret) < leastSecret {
		return text
	}
	// JSON may write a slash, as keys in base64 have, with a backslash.
	for _, form := range []string{secret, strings.ReplaceAll(secret, "/", `\/`)} {
		if bytes.Contains(text, []byte(form)) {
			text = bytes.ReplaceAll(text, []byte(form), redacted)
		}
	}
	return text
}
