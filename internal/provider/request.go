package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// oneWrite is the largest body, in bytes, that is laid out in one piece so
// that head and body leave in one write.
const oneWrite = 16 << 10

// Call is one upstream call to be made.
type Call struct {
	Method   string
	Path     string      // after /v1, decoded: "/chat/completions"
	RawQuery string      // the client's
	Model    string      // the upstream's model or deployment name, "" for none
	Header   http.Header // the client's; not changed

	// ContentLength is the length of Body in bytes, -1 when unknown.
	ContentLength int64
	// Body must stay as it is until the answer's body is closed. It should be
	// in memory: a client's connection handed on as body has been seen to cut
	// streamed answers short.
	Body io.Reader
}

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
	header, err := p.headers(ctx, c.Header)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.spec.Name, err)
	}
	out := (&http.Request{
		Method: c.Method, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	return out, setBody(out, c)
}

// headers is what goes out: the client's by the allow-list, then the
// configured ones, then our own.
func (p *Provider) headers(ctx context.Context, client http.Header) (http.Header, error) {
	h := make(http.Header, len(client)+len(p.fixed)+2)
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
func setBody(out *http.Request, c Call) error {
	if c.Body == nil || c.ContentLength == 0 {
		out.Body = http.NoBody
		switch c.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
			out.Body = nothing{}
		}
		return nil
	}
	out.ContentLength = c.ContentLength
	r, plain := c.Body.(*bytes.Reader)
	if _, inMemory := c.Body.(io.Seeker); !plain && inMemory && c.ContentLength > 0 && c.ContentLength <= oneWrite {
		flat := make([]byte, c.ContentLength)
		if _, err := io.ReadFull(c.Body, flat); err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		r, plain = bytes.NewReader(flat), true
	}
	if !plain {
		out.Body = io.NopCloser(c.Body)
		return nil
	}
	start := *r
	out.Body = io.NopCloser(r)
	out.GetBody = func() (io.ReadCloser, error) {
		again := start
		return io.NopCloser(&again), nil
	}
	return nil
}

// nothing is the empty body of a GET. Unlike http.NoBody it does not make
// net/http repeat the request on another connection.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
func (nothing) Close() error             { return nil }
