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

// quotes reports whether a header's value holds a credential.
func (p *Provider) quotes(value string, sent http.Header) bool {
	if len(value) < leastSecret {
		return false
	}
	if in(value, p.spec.APIKey) || in(value, strings.TrimPrefix(sent.Get("Authorization"), "Bearer ")) {
		return true
	}
	for _, secret := range p.spec.Headers {
		if in(value, secret) {
			return true
		}
	}
	return false
}

func in(value, secret string) bool {
	return len(secret) >= leastSecret && strings.Contains(value, secret)
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
