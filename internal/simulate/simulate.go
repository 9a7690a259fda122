// Package simulate is a provider without a network: a round tripper that
// answers like an OpenAI endpoint, with a latency, a capacity and failures
// that are configured. It is part of the product: the demo of a router
// without providers, load tests and drills run on it. Waiting uses timers and
// contexts only, so it runs in virtual time too.
//
// A Transport is safe for concurrent use and starts no goroutine.
package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The failure modes.
const (
	Hang     = "hang"         // no answer at all
	Reset    = "reset"        // the connection breaks before headers
	Error500 = "500"          //
	Error503 = "503"          //
	Limited  = "429"          // with Retry-After when one is configured
	InBody   = "error-in-200" // an error where the answer should be
	Truncate = "truncate"     // the answer breaks off in the middle
	Slow     = "slow"         // content takes a hundred times as long
)

// Options are one simulated target.
type Options struct {
	FirstContent time.Duration
	Jitter       float64 // share of FirstContent, either way
	PerToken     time.Duration
	Tokens       int // in an answer
	Mode         string
	Share        float64 // of calls that fail
	RetryAfter   time.Duration
	Concurrency  int // calls at once before 429, 0 for no limit
	RPM          int // calls a minute before 429, 0 for no limit
}

// Transport answers calls.
type Transport struct {
	opt Options
	rnd func() float64

	mu       sync.Mutex
	inflight int
	minute   time.Time
	calls    int
}

// New returns a transport; rnd returns numbers in [0,1) and is called under a
// lock.
func New(o Options, rnd func() float64) *Transport { return &Transport{opt: o, rnd: rnd} }

// request is what the simulation reads of a body.
type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens  int             `json:"max_tokens"`
	Messages   json.RawMessage `json:"messages"`
	Prompt     json.RawMessage `json:"prompt"`
	Input      json.RawMessage `json:"input"`
	Tools      []tool          `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Format     struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

type tool struct {
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = joined(err, r.Body.Close()); err != nil {
			return nil, err
		}
	}
	mode, wait, full := t.enter()
	if full {
		return t.limited(r, "1"), nil
	}
	done := sync.OnceFunc(t.leave)
	resp, err := t.answer(r, body, mode, wait)
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = &leaving{resp.Body, done}
	return resp, nil
}

func joined(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

type leaving struct {
	io.ReadCloser
	done func()
}

func (l *leaving) Close() error {
	l.done()
	return l.ReadCloser.Close()
}

// enter counts the call in and draws its fate.
func (t *Transport) enter() (mode string, wait time.Duration, full bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.minute) >= time.Minute {
		t.minute, t.calls = now, 0
	}
	if t.opt.Concurrency > 0 && t.inflight >= t.opt.Concurrency || t.opt.RPM > 0 && t.calls >= t.opt.RPM {
		return "", 0, true
	}
	t.calls++
	t.inflight++
	wait = time.Duration(float64(t.opt.FirstContent) * (1 + t.opt.Jitter*(2*t.rnd()-1)))
	if t.opt.Mode != "" && t.opt.Mode != "none" && t.rnd() < t.opt.Share {
		mode = t.opt.Mode
	}
	if mode == Slow {
		wait *= 100
	}
	return mode, wait, false
}

func (t *Transport) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inflight--
}

func (t *Transport) answer(r *http.Request, body []byte, mode string, wait time.Duration) (*http.Response, error) {
	switch mode {
	case Hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case Reset:
		return nil, io.ErrUnexpectedEOF
	case Error500, Error503:
		status, _ := strconv.Atoi(mode)
		return respond(r, status, "application/json", `{"error":{"message":"simulated failure","type":"server_error","param":null,"code":null}}`), nil
	case Limited:
		after := ""
		if s := int(t.opt.RetryAfter / time.Second); s > 0 {
			after = strconv.Itoa(s)
		}
		return t.limited(r, after), nil
	}
	var q request
	if len(body) > 0 && json.Unmarshal(body, &q) != nil {
		return respond(r, http.StatusBadRequest, "application/json", `{"error":{"message":"the body is not JSON","type":"invalid_request_error","param":null,"code":null}}`), nil
	}
	s := script{t: t, q: q, path: r.URL.Path, prompt: len(body) / 4, mode: mode, id: fmt.Sprintf("sim-%x", time.Now().UnixNano())}
	parts, contentType := s.write()
	resp := respond(r, http.StatusOK, contentType, "")
	resp.Body = &paced{ctx: r.Context(), parts: parts, first: wait, gap: t.opt.PerToken, cut: mode == Truncate}
	if contentType == "application/json" {
		if err := sleep(r.Context(), wait+time.Duration(s.tokens())*t.opt.PerToken); err != nil {
			return nil, err
		}
		resp.Body.(*paced).first, resp.Body.(*paced).gap = 0, 0
	}
	return resp, nil
}

func (t *Transport) limited(r *http.Request, after string) *http.Response {
	resp := respond(r, http.StatusTooManyRequests, "application/json", `{"error":{"message":"simulated limit","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)
	if after != "" {
		resp.Header.Set("Retry-After", after)
	}
	return resp
}

func respond(r *http.Request, status int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1, Request: r,
	}
}
