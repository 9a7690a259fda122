package provider

import (
	"net/http"
	"strings"
)

// passed are the client headers that go upstream. It is an allow-list: a
// header nobody thought of may hold a credential or say who the caller is.
// Neither Authorization, x-api-key, api-key and cookies nor X-Forwarded-*,
// Hourthree-*, OpenAI-Organization and OpenAI-Project are in it: account
// headers are set in the provider's configuration.
var passed = map[string]bool{
	"Accept":                      true,
	"Accept-Language":             true,
	"Content-Language":            true,
	"Content-Type":                true,
	"Conversation_id":             true, // session affinity of prompt caches
	"Http-Referer":                true, // attribution at OpenRouter
	"Idempotency-Key":             true,
	"If-Match":                    true,
	"If-Modified-Since":           true,
	"If-None-Match":               true,
	"Openai-Beta":                 true,
	"Range":                       true, // parts of files
	"Session-Id":                  true,
	"Session_id":                  true,
	"Thread-Id":                   true,
	"Traceparent":                 true,
	"Tracestate":                  true,
	"X-Client-Request-Id":         true,
	"X-Idempotency-Key":           true,
	"X-Ms-Client-Request-Id":      true,
	"X-Ms-Spillover-Deployment":   true,
	"X-Request-Id":                true,
	"X-Title":                     true,
	"X-Stainless-Arch":            true,
	"X-Stainless-Async":           true,
	"X-Stainless-Helper-Method":   true,
	"X-Stainless-Lang":            true,
	"X-Stainless-Os":              true,
	"X-Stainless-Package-Version": true,
	"X-Stainless-Retry-Count":     true, // the caller's own count stays true
	"X-Stainless-Runtime":         true,
	"X-Stainless-Runtime-Version": true,
}

// hopByHop belong to one connection (RFC 9110, 7.6.1, and the older names).
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Http2-Settings": true,
}

// notReturned are upstream headers that mean nothing, or the wrong thing, to
// a client of the router.
var notReturned = map[string]bool{
	"Content-Length": true, // the caller decides
	"Set-Cookie":     true, // a session of ours, not of the client's
	// When to come back is the router's to say.
	"Retry-After": true, "Retry-After-Ms": true, "X-Ms-Retry-After-Ms": true, "X-Should-Retry": true,
	// Facts about the upstream's own front door.
	"Server": true, "Via": true, "X-Powered-By": true, "Alt-Svc": true, "Date": true,
	"Strict-Transport-Security": true, "Content-Security-Policy": true, "Www-Authenticate": true,
	"Nel": true, "Report-To": true, "Reporting-Endpoints": true, "Location": true,
	// Facts about our account.
	"Openai-Organization": true, "Openai-Project": true, "Anthropic-Organization-Id": true, "Anthropic-Workspace-Id": true,
}

// notReturnedPrefixes are families of the same. Rate headers state the limits
// of one of several targets, in a unit that differs by provider; the limits
// that bind a client are its workload's.
// Their first letters are in hasAnyPrefix.
var notReturnedPrefixes = []string{
	"Access-Control-", "Cf-", "Hourthree-", "X-Ratelimit-", "X-Tokenlimit-", "Anthropic-Ratelimit-", "X-Accel-", "X-Envoy-",
}

// CopyResponseHeaders copies to dst the headers of an upstream's answer that
// a client may see. The upstream's request id becomes X-Upstream-Request-Id.
// Content-Encoding stays: RoundTrip takes it away from what it decodes. Other
// values already in dst stay.
func CopyResponseHeaders(dst, src http.Header) {
	_, named := src["Connection"]
	for key, values := range src {
		switch {
		case len(values) == 0, hopByHop[key] || notReturned[key], hasAnyPrefix(key), named && namedByConnection(src, key):
		case key == "X-Request-Id":
			dst["X-Upstream-Request-Id"] = values[:1:1]
		case key == "Content-Type": // the one that was judged
			dst[key] = values[:1:1]
		default:
			dst[key] = values[:len(values):len(values)]
		}
	}
}

func hasAnyPrefix(key string) bool {
	if !strings.ContainsRune("ACHX", rune(key[0])) {
		return false
	}
	for _, p := range notReturnedPrefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// namedByConnection reports whether the Connection header claims key.
func namedByConnection(h http.Header, key string) bool {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(name), key) {
				return true
			}
		}
	}
	return false
}
