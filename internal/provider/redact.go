package provider

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// leastSecret is the length, in bytes, from which a value is looked for:
// shorter ones are placeholders of local servers and would hit common words.
const leastSecret = 8

const redacted = "[redacted]"

// secret is one credential and how JSON may spell it: any character may be
// escaped, and writers differ in which they do.
type secret struct {
	plain   string
	spelled *regexp.Regexp
}

// harmless are headers that may be configured and hold no credential.
var harmless = map[string]bool{
	"Accept": true, "Accept-Language": true, "Content-Type": true, "Content-Language": true, "User-Agent": true, "Cache-Control": true,
	"Anthropic-Version": true, "Anthropic-Beta": true, "Openai-Beta": true,
	"Http-Referer": true, "Referer": true, "Origin": true, "X-Title": true,
}

// framing are response headers whose values say how to read the answer.
var framing = map[string]bool{
	"Content-Type": true, "Content-Encoding": true, "Content-Length": true, "Content-Range": true, "Etag": true, "Last-Modified": true,
}

// secrets are what an upstream may quote of the Spec.
func (s Spec) secrets() (all []secret) {
	add := func(value string) {
		value = value[strings.LastIndexByte(value, ' ')+1:] // behind a scheme, as in "Basic x"
		if len(value) >= leastSecret {
			all = append(all, secret{value, spelling(value)})
		}
	}
	add(s.APIKey)
	for name, value := range s.Headers {
		if !harmless[http.CanonicalHeaderKey(name)] {
			add(value)
		}
	}
	return all
}

func spelling(value string) *regexp.Regexp {
	var b strings.Builder
	for _, r := range value {
		fmt.Fprintf(&b, `(?:\\*%s|\\+u(?i:%04x))`, regexp.QuoteMeta(string(r)), r)
	}
	return regexp.MustCompile(b.String())
}

// Redact returns text of an upstream with every credential of this provider
// taken out, for providers quote a key that they refuse. sent are the headers
// of the call that was answered, which may hold a token that has been renewed
// since. The text itself is not changed.
func (p *Provider) Redact(text []byte, sent http.Header) []byte {
	if len(text) == 0 {
		return text
	}
	for _, s := range p.secrets {
		if bytes.Contains(text, []byte(s.plain)) || bytes.IndexByte(text, '\\') >= 0 {
			text = s.spelled.ReplaceAllLiteral(text, []byte(redacted))
		}
	}
	if token := p.token(sent); token != "" && strings.Contains(string(text), token) {
		text = []byte(strings.ReplaceAll(string(text), token, redacted))
	}
	return text
}

// token is the one that a call was made with, unless it is the key; its
// alphabet needs no escapes.
func (p *Provider) token(sent http.Header) string {
	token := strings.TrimPrefix(sent.Get("Authorization"), "Bearer ")
	if len(token) < leastSecret || token == p.spec.APIKey {
		return ""
	}
	return token
}

// redactHeader does the same to the headers of an answer, in place: some
// proxies quote what they were sent.
func (p *Provider) redactHeader(h, sent http.Header) {
	token := p.token(sent)
	for name, values := range h {
		if framing[name] {
			continue
		}
		for i, v := range values {
			for _, s := range p.secrets {
				if strings.Contains(v, s.plain) {
					values[i] = strings.ReplaceAll(values[i], s.plain, redacted)
				}
			}
			if token != "" && strings.Contains(v, token) {
				values[i] = strings.ReplaceAll(values[i], token, redacted)
			}
		}
	}
}
