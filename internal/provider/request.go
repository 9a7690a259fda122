package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Call is one upstream call to be made.
type Call struct {
	Method   string
	Path     string      // after /v1, decoded: "/chat/completions"
	RawQuery string      // the client's
	Model    string      // the upstream's model or deployment name, "" for none
	Header   http.Header // the client's; not changed
	// Trace takes the place of the client's trace context; nil passes that on.
	Trace *TraceContext

	// Bytes is a body that lies in one piece in memory; nil for none or for
	// Body. It must stay as it is until the answer's body is closed.
	Bytes []byte
	// ContentLength is the length of Body in bytes, -1 when unknown.
	ContentLength int64
	// Body is any other; it too must stay until the answer's body is closed.
	Body io.Reader
}

// TraceContext is the values of traceparent and tracestate; "" sends none.
type TraceContext struct{ Parent, State string }

// Request builds the request of a call, ready for RoundTrip. It fails with
// ErrPath when the path leaves the API, and with the token source's error
// when there is no credential; nothing has been sent then.
//
// net/http repeats a request on its own when a kept connection turns out to
// be dead. Here that is possible only while not one byte of it was written:
// everything else is reported as an error, see ConnInfo.
func (p *Provider) Request(ctx context.Context, c Call) (*http.Request, error) {
	u, err := p.at.url(c.Path, c.Model, c.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.spec.Name, err)
	}
	header, err := p.headers(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.spec.Name, err)
	}
	out := template.WithContext(ctx)
	out.Method, out.URL, out.Host, out.Header = c.Method, u, u.Host, header
	setBody(out, c)
	return out, nil
}

// template is what all requests have in common. It is not changed.
var template = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

// headers is what goes out: the client's by the allow-list, then the
// configured ones, then our own.
func (p *Provider) headers(ctx context.Context, c Call) (http.Header, error) {
	client, n := c.Header, len(p.fixed)
	for key := range client {
		if passed[key] {
			n++
		}
	}
	h := make(http.Header, n)
	for key, values := range client {
		if passed[key] {
			h[key] = values[:len(values):len(values)]
		}
	}
	if v := h["Content-Type"]; len(v) > 1 { // the first is the one that was judged
		h["Content-Type"] = v[:1:1]
	}
	// net/http takes these two names as leave to repeat a POST. Written in
	// lower case they mean the same to the upstream and nothing to net/http.
	for _, key := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := h[key]; ok {
			delete(h, key)
			h[strings.ToLower(key)] = v
		}
	}
	c.Trace.set(h)
	for key, values := range p.fixed {
		h[key] = values
	}
	if p.tokens != nil {
		token, err := p.tokens.get(ctx)
		if err != nil {
			return nil, err
		}
		h["Authorization"] = []string{"Bearer " + token}
	}
	return h, nil
}

func (t *TraceContext) set(h http.Header) {
	if t == nil {
		return
	}
	delete(h, "Traceparent")
	delete(h, "Tracestate")
	if t.Parent != "" {
		h["Traceparent"] = []string{t.Parent}
	}
	if t.State != "" {
		h["Tracestate"] = []string{t.State}
	}
}

// fixedHeaders are the headers that are the same in every call: configured
// ones, our name, and the key. Streams are scanned, so no coding is asked for.
func (s Spec) fixedHeaders(agent string) http.Header {
	h := http.Header{"User-Agent": {agent}, "Accept-Encoding": {"identity"}}
	for name, value := range s.Headers {
		h.Set(name, value)
	}
	switch {
	case s.APIKey == "" || s.Auth != AuthKey:
	case s.Type == Azure:
		h.Set("Api-Key", s.APIKey)
	default:
		h.Set("Authorization", "Bearer "+s.APIKey)
	}
	return h
}

// setBody gives the request its body in the form that net/http handles best
// and repeats least.
func setBody(out *http.Request, c Call) {
	switch {
	case len(c.Bytes) > 0:
		out.ContentLength = int64(len(c.Bytes))
		out.Body = inMemory(c.Bytes)
		if !repeatable(c.Method) { // else net/http would repeat it of its own accord
			out.GetBody = func() (io.ReadCloser, error) { return inMemory(c.Bytes), nil }
		}
	case c.Body != nil && c.ContentLength != 0:
		out.ContentLength, out.Body = c.ContentLength, io.NopCloser(c.Body)
	default:
		out.Body = http.NoBody
		if repeatable(c.Method) {
			out.Body = nothing{}
		}
	}
}

// repeatable are the methods that net/http repeats on another connection when
// it can have the body again.
func repeatable(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// inMemory is a body in one piece, of the very type for which net/http writes
// head and body together.
func inMemory(p []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(p)) }

// nothing is the empty body of a GET. Unlike http.NoBody it does not make
// net/http repeat the request on another connection.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
func (nothing) Close() error             { return nil }
