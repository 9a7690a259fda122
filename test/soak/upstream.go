package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The faults of an upstream, as written on the upstream process's standard
// input: a name and a fault a line.
const (
	healthy    = "healthy"
	slow       = "slow"  // thirty times as long to the first content
	hang       = "hang"  // nothing at all
	reset      = "reset" // the connection breaks before the headers
	limited    = "429"   // with Retry-After: 1
	broken     = "500"
	down       = "503"
	cut        = "cut"      // the answer breaks off in the middle
	errorIn200 = "in-200"   // an error where the answer should be
	errorMid   = "mid"      // an error event in the middle of a stream
	flaky      = "half-500" // every second call
)

var faults = []string{slow, hang, reset, limited, broken, down, cut, errorIn200, errorMid, flaky}

// The models of the upstream that behave like no fault: they are always so.
const (
	modelReal  = "real"  // follows the fault
	modelMute  = "mute"  // headers of a stream, then nothing
	modelQuiet = "quiet" // one piece of content, then nothing
	modelFlood = "flood" // floodBytes as fast as they are taken
)

const (
	floodBytes = 4 << 20
	longHold   = 5 * time.Minute // an upstream that answers nothing gives up, too
)

const (
	chunkText = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":{"content":"word word word word word word word word"},"finish_reason":null}]}`
	finish    = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	failure   = `{"error":{"message":"The fake upstream fails on purpose.","type":"server_error","param":null,"code":null}}`
	whole     = `{"id":"c","object":"chat.completion","created":1,"model":"real","choices":[{"index":0,"message":{"role":"assistant","content":"soak answer"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`
)

// provider is one fake upstream.
type provider struct {
	fault atomic.Pointer[string]
	calls atomic.Int64
}

// runUpstream is the process: it serves every name on a port of its own, says
// the addresses in one line on out, takes faults from in and ends with it.
func runUpstream(names []string, in io.Reader, out io.Writer) error {
	all, addrs := map[string]*provider{}, make([]string, len(names))
	failed := make(chan error, len(names)+1)
	for i, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		p, mode := new(provider), healthy
		p.fault.Store(&mode)
		all[name], addrs[i] = p, l.Addr().String()
		// Connections that idle, or were never used, end soon: they are not to be
		// taken for a leak.
		s := &http.Server{Handler: p, ReadHeaderTimeout: 2 * time.Second, IdleTimeout: 2 * time.Second}
		go func() { failed <- s.Serve(l) }()
	}
	if _, err := fmt.Fprintln(out, strings.Join(addrs, " ")); err != nil {
		return err
	}
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			name, fault, _ := strings.Cut(lines.Text(), " ")
			if p := all[name]; p != nil {
				p.fault.Store(&fault)
			}
		}
		failed <- lines.Err()
	}()
	return <-failed
}

// question is what an upstream looks for in a request.
type question struct {
	model  string
	stream bool
}

// ask reads the whole body and looks at its beginning.
func ask(r *http.Request) (question, error) {
	start := make([]byte, 256)
	n, err := io.ReadFull(r.Body, start)
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && int64(n) == r.ContentLength {
		err = nil
	}
	text := string(start[:n])
	_, model, _ := strings.Cut(text, `"model":"`)
	model, _, _ = strings.Cut(model, `"`)
	return question{model: model, stream: strings.Contains(text, `"stream":true`)}, err
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, err := ask(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch q.model {
	case modelMute, modelQuiet, modelFlood:
		p.odd(w, r, q.model)
		return
	}
	fault, n := *p.fault.Load(), p.calls.Add(1)
	if fault == flaky && n%2 == 0 {
		fault = broken
	}
	wait := time.Duration(10+n%40) * time.Millisecond
	switch fault {
	case hang:
		rest(r.Context(), longHold)
		panic(http.ErrAbortHandler)
	case reset:
		hangUp(w)
		return
	case limited:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, failure)
		return
	case broken, down:
		status, _ := strconv.Atoi(fault) // a constant
		answer(w, status, failure)
		return
	case slow:
		wait *= 30
	}
	if !rest(r.Context(), wait) {
		return
	}
	if q.stream {
		stream(w, r, fault)
		return
	}
	switch fault {
	case cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
		_, _ = io.WriteString(w, whole[:len(whole)/2])
		panic(http.ErrAbortHandler)
	case errorIn200, errorMid:
		answer(w, http.StatusOK, failure)
	default:
		answer(w, http.StatusOK, whole)
	}
}

// odd serves the models that are always the same.
func (p *provider) odd(w http.ResponseWriter, r *http.Request, model string) {
	begin(w)
	switch model {
	case modelQuiet:
		event(w, chunkText)
	case modelFlood:
		for n := 0; n < floodBytes; n += len(chunkText) {
			if _, err := io.WriteString(w, "data: "+chunkText+"\n\n"); err != nil {
				return
			}
		}
		event(w, finish)
		event(w, "[DONE]")
		return
	}
	rest(r.Context(), longHold)
}

func stream(w http.ResponseWriter, r *http.Request, fault string) {
	begin(w)
	if fault == errorIn200 {
		event(w, failure)
		return
	}
	for i := range 10 {
		if i == 4 && fault == cut {
			panic(http.ErrAbortHandler)
		}
		if i == 4 && fault == errorMid {
			event(w, failure)
			return
		}
		event(w, chunkText)
		if !rest(r.Context(), 15*time.Millisecond) {
			return
		}
	}
	event(w, finish)
	event(w, "[DONE]")
}

func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // a router that has left is told nothing
}

func event(w http.ResponseWriter, data string) {
	_, _ = io.WriteString(w, "data: "+data+"\n\n") // likewise
	_ = http.NewResponseController(w).Flush()
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // likewise
}

// hangUp breaks the connection so that the router sees a reset.
func hangUp(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// rest reports whether ctx has lasted for d.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// roleUpstream is the first argument of the process that is the upstreams.
const roleUpstream = "role:upstream"

// dispatch plays that role, if this process has it, and does not return then.
func dispatch() {
	if len(os.Args) < 2 || os.Args[1] != roleUpstream {
		return
	}
	if err := runUpstream(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, roleUpstream, err)
		os.Exit(1)
	}
	os.Exit(0)
}
