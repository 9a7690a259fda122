// Package simulate is a provider without a network: a round tripper that
// answers like an OpenAI endpoint, with a latency, a capacity and failures
// that are configured. It is part of the product: the demo of a router
// without providers, load tests and drills run on it.
//
// It decides nothing about the request path. Text and vectors are made up,
// the same for the same request; what is random (jitter, which calls fail)
// comes from an argument. Waiting uses timers and contexts only, so it runs in
// virtual time too.
//
// simulate.go is the call with its capacity and failures, answer.go what is
// said, chat.go, responses.go and embeddings.go how each endpoint says it,
// schema.go the smallest value of a JSON schema, paced.go its time.
//
// A Transport is safe for concurrent use and starts no goroutine.
package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The failure modes.
const (
	None     = "none"
	Hang     = "hang"         // no answer at all, until the caller gives up
	Reset    = "reset"        // the connection breaks before headers
	Error500 = "500"          // at once
	Error503 = "503"          // at once
	Limited  = "429"          // at once, with Retry-After when one is configured
	InBody   = "error-in-200" // an error where the answer should be
	Truncate = "truncate"     // the answer breaks off in the middle
	Slow     = "slow"         // the first content takes slowdown times as long
)

const (
	slowdown = 100
	// busyRetry is the Retry-After, in seconds, of a target with all its
	// places taken.
	busyRetry = 1
	rateUnit  = time.Minute
)

// Options are one simulated target. The zero value answers at once, with one
// token, without limit.
type Options struct {
	FirstContent time.Duration // until the first content, of a stream or of a whole answer
	Jitter       float64       // share of FirstContent, to either side, 0 to 1
	PerToken     time.Duration // for each further token
	Tokens       int           // in an answer, at least 1
	Mode         string        // of failure, "" is None
	Share        float64       // of calls that fail, 0 to 1
	RetryAfter   time.Duration // of Limited, in whole seconds
	Concurrency  int           // calls at once before 429, 0 for no limit
	RPM          int           // calls a minute before 429, 0 for no limit
}

// Transport answers calls.
type Transport struct {
	opt Options

	mu       sync.Mutex
	rnd      func() float64
	inflight int
	minute   time.Time // start of the current one
	calls    int       // in it
	total    int       // calls ever, for ids
}

// New returns a transport; rnd returns numbers in [0,1) and is called under a
// lock.
func New(o Options, rnd func() float64) *Transport {
	o.Tokens = max(o.Tokens, 1)
	return &Transport{opt: o, rnd: rnd}
}

// entry is what was decided about a call when it came.
type entry struct {
	id    string
	mode  string
	wait  time.Duration // until the first content
	retry int           // seconds; above 0 the call is refused for capacity
}

// RoundTrip implements http.RoundTripper. A call holds its place until the
// answer's body is closed.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	e := t.enter(time.Now())
	if e.retry > 0 {
		return limited(r, e.retry), nil
	}
	resp, err := t.answer(r, body, e)
	if err != nil {
		t.leave()
		return nil, err
	}
	resp.Header.Set("X-Request-Id", e.id)
	resp.Body = &place{ReadCloser: resp.Body, leave: sync.OnceFunc(t.leave)}
	return resp, nil
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	return body, errors.Join(err, r.Body.Close())
}

// place is an answer's body that frees the call's place when closed.
type place struct {
	io.ReadCloser
	leave func()
}

func (p *place) Close() error {
	p.leave()
	return p.ReadCloser.Close()
}

// enter counts the call in and draws its fate.
func (t *Transport) enter(now time.Time) entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.minute) >= rateUnit {
		t.minute, t.calls = now, 0
	}
	if t.opt.RPM > 0 && t.calls >= t.opt.RPM {
		left := t.minute.Add(rateUnit).Sub(now)
		return entry{retry: int((left + time.Second - 1) / time.Second)}
	}
	if t.opt.Concurrency > 0 && t.inflight >= t.opt.Concurrency {
		return entry{retry: busyRetry}
	}
	t.calls++
	t.inflight++
	t.total++
	e := entry{id: fmt.Sprintf("sim-%x-%d", now.Unix(), t.total), mode: None}
	e.wait = time.Duration(float64(t.opt.FirstContent) * (1 + t.opt.Jitter*(2*t.rnd()-1)))
	if t.opt.Mode != "" && t.opt.Mode != None && t.rnd() < t.opt.Share {
		e.mode = t.opt.Mode
	}
	if e.mode == Slow {
		e.wait *= slowdown
	}
	return e
}

func (t *Transport) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inflight--
}

// answer is the fate of a call that has a place.
func (t *Transport) answer(r *http.Request, body []byte, e entry) (*http.Response, error) {
	switch e.mode {
	case Hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case Reset:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case Error500, Error503:
		status, _ := strconv.Atoi(e.mode) // a constant
		return respond(r, status, errorBody("simulated failure", "server_error", nil)), nil
	case Limited:
		return limited(r, int(t.opt.RetryAfter/time.Second)), nil
	}
	kind := kindOf(r.Method, r.URL.Path)
	if kind == unknown {
		return respond(r, http.StatusNotFound, errorBody("a simulated provider has nothing at this path", "invalid_request_error", "not_found")), nil
	}
	var q request
	if kind != models {
		if err := json.Unmarshal(body, &q); err != nil || q.Model == "" {
			return respond(r, http.StatusBadRequest, errorBody("the body must be a JSON object with a model", "invalid_request_error", nil)), nil
		}
	}
	a := &answer{kind: kind, request: q, id: e.id, created: time.Now().Unix(), prompt: len(body) / bytesPerToken}
	a.say(t.opt.Tokens)
	return t.paced(r, a, e)
}

// bytesPerToken turns sizes into token counts.
const bytesPerToken = 4

// kind is the endpoint of a call.
type kind uint8

const (
	unknown kind = iota
	chat
	completions
	responses
	embeddings
	models
)

func kindOf(method, path string) kind {
	switch {
	case method == http.MethodGet && strings.HasSuffix(path, "/models"):
		return models
	case method != http.MethodPost:
		return unknown
	case strings.HasSuffix(path, "/chat/completions"):
		return chat
	case strings.HasSuffix(path, "/completions"):
		return completions
	case strings.HasSuffix(path, "/responses"):
		return responses
	case strings.HasSuffix(path, "/embeddings"):
		return embeddings
	}
	return unknown
}

// limited is a refusal for capacity; retry in seconds, 0 for no Retry-After.
func limited(r *http.Request, retry int) *http.Response {
	resp := respond(r, http.StatusTooManyRequests, errorBody("simulated limit", "requests", "rate_limit_exceeded"))
	if retry > 0 {
		resp.Header.Set("Retry-After", strconv.Itoa(retry))
	}
	return resp
}

func errorBody(message, kind string, code any) string {
	return marshal(object{"error": object{"message": message, "type": kind, "param": nil, "code": code}})
}

func respond(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
