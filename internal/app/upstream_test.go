package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
)

// fake is a scripted upstream. Each request is logged and answered by the
// script of its number; the last script serves all that follow.
type fake struct {
	name    string
	scripts []script
	early   bool                        // answers without reading the body
	pick    func(n int, s *seen) script // instead of scripts

	mu       sync.Mutex
	log      []*seen
	inflight int
	peak     int
}

// seen is one request as the upstream saw it.
type seen struct {
	at      time.Time
	remote  string
	method  string
	uri     string
	header  http.Header
	body    string
	closed  time.Time // when the router's side gave up before the answer's end
	written int       // bytes of answer that went out
}

// script is the steps of one answer.
type script []step

// step is one verb of a script. It returns false to end the answer there.
type step func(*talk) bool

// talk is one answer being given.
type talk struct {
	w    http.ResponseWriter
	r    *http.Request
	seen *seen
	fake *fake
}

func upstream(name string, scripts ...script) *fake { return &fake{name: name, scripts: scripts} }

// count is the number of requests seen.
func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// request is the n-th request seen, from 0.
func (f *fake) request(n int) seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *f.log[n]
}

// use replaces the scripts from now on.
func (f *fake) use(scripts ...script) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := len(f.log)
	f.scripts, f.pick = nil, func(n int, _ *seen) script { return scripts[min(n-at, len(scripts)-1)] }
}

func (f *fake) begin(s *seen) script {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.log)
	f.log = append(f.log, s)
	f.inflight++
	f.peak = max(f.peak, f.inflight)
	if f.pick != nil {
		return f.pick(n, s)
	}
	return f.scripts[min(n, len(f.scripts)-1)]
}

func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inflight--
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if f.early {
		w.Header().Set("Connection", "close") // or net/http waits for the body
	} else {
		body, _ = io.ReadAll(r.Body) // a cut body shows in the log
	}
	s := &seen{at: time.Now(), remote: r.RemoteAddr, method: r.Method, uri: r.RequestURI, header: r.Header.Clone(), body: string(body)}
	steps := f.begin(s)
	defer f.end()
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-r.Context().Done():
			f.mu.Lock()
			s.closed = time.Now()
			f.mu.Unlock()
		case <-done:
		}
	}()
	defer func() {
		close(done)
		<-watched
	}()
	t := &talk{w: w, r: r, seen: s, fake: f}
	for _, do := range steps {
		if !do(t) {
			return
		}
	}
}

func (t *talk) send(p string) bool {
	n, err := io.WriteString(t.w, p)
	t.fake.mu.Lock()
	t.seen.written += n
	t.fake.mu.Unlock()
	if err != nil {
		return false
	}
	return http.NewResponseController(t.w).Flush() == nil
}

// status answers with headers, given as pairs, and the body at once.
func status(code int, body string, headers ...string) step {
	return func(t *talk) bool {
		for i := 0; i < len(headers); i += 2 {
			t.w.Header()[http.CanonicalHeaderKey(headers[i])] = []string{headers[i+1]}
		}
		if t.w.Header().Get("Content-Type") == "" {
			t.w.Header().Set("Content-Type", "application/json")
		}
		t.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		t.w.WriteHeader(code)
		return t.send(body)
	}
}

// head sends status 200 and the headers of an event stream.
func head() step {
	return func(t *talk) bool {
		t.w.Header().Set("Content-Type", "text/event-stream")
		t.w.WriteHeader(http.StatusOK)
		return http.NewResponseController(t.w).Flush() == nil
	}
}

// sse sends events.
func sse(data ...string) step {
	return func(t *talk) bool {
		for _, d := range data {
			if !t.send("data: " + d + "\n\n") {
				return false
			}
		}
		return true
	}
}

// raw sends bytes, each piece in a write of its own.
func raw(pieces ...string) step {
	return func(t *talk) bool {
		for _, p := range pieces {
			if !t.send(p) {
				return false
			}
		}
		return true
	}
}

// wait lets time pass, unless the router gives up.
func wait(d time.Duration) step {
	return func(t *talk) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-t.r.Context().Done():
			return false
		}
	}
}

// hold sends nothing more until the router gives up. As a first step it is an
// upstream that never answers.
func hold() step {
	return func(t *talk) bool {
		<-t.r.Context().Done()
		return false
	}
}

// cut closes the connection without an end of the answer.
func cut() step { return hijacked(func(c net.Conn) { _ = c.Close() }) }

// rst resets the connection.
func rst() step {
	return hijacked(func(c net.Conn) {
		c.(*memnet.Conn).Reset()
	})
}

func hijacked(do func(net.Conn)) step {
	return func(t *talk) bool {
		c, _, err := http.NewResponseController(t.w).Hijack()
		if err != nil {
			panic(err)
		}
		do(c)
		return false
	}
}

// wireText answers with bytes that net/http would not write.
func wireText(text string) step {
	return func(t *talk) bool {
		c, rw, err := http.NewResponseController(t.w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		_, _ = io.WriteString(rw, text) // what the router does not take is its choice
		_ = rw.Flush()
		return false
	}
}

// The answers of a healthy upstream, with its name in the text.

func chatBody(text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, text)
}

func chunk(text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text)
}

const (
	roleChunk   = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	finishChunk = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usageChunk  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	done        = "[DONE]"
)

func chatEvents(text string) string {
	var b strings.Builder
	for _, e := range []string{roleChunk, chunk(text), finishChunk, done} {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// answers is a whole answer of whatever kind was asked for.
func answers(text string) script {
	return script{func(t *talk) bool {
		path, _, _ := strings.Cut(t.seen.uri, "?")
		streams := strings.Contains(t.seen.body, `"stream":true`)
		switch {
		case strings.HasSuffix(path, "/embeddings"):
			return status(200, fmt.Sprintf(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1]}],"model":%q,"usage":{"prompt_tokens":1,"total_tokens":1}}`, text))(t)
		case strings.HasSuffix(path, "/responses") && streams:
			return head()(t) && raw(responseEvents(text))(t)
		case strings.HasSuffix(path, "/responses"):
			return status(200, fmt.Sprintf(`{"id":"r1","object":"response","status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`, text))(t)
		case strings.HasSuffix(path, "/chat/completions") && streams:
			return head()(t) && raw(chatEvents(text))(t)
		case strings.HasSuffix(path, "/chat/completions"):
			return status(200, chatBody(text))(t)
		case streams:
			return head()(t) && sse(fmt.Sprintf(`{"id":"t1","object":"text_completion","created":1,"model":"x","choices":[{"index":0,"text":%q,"finish_reason":null}]}`, text),
				`{"id":"t1","object":"text_completion","created":1,"model":"x","choices":[{"index":0,"text":"","finish_reason":"stop"}]}`, done)(t)
		}
		return status(200, fmt.Sprintf(`{"id":"t1","object":"text_completion","created":1,"model":"x","choices":[{"index":0,"text":%q,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, text))(t)
	}}
}

func responseEvents(text string) string {
	return "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r1\",\"status\":\"in_progress\"}}\n\n" +
		fmt.Sprintf("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":%q}\n\n", text) +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1,\"total_tokens\":2}}}\n\n"
}

// after is s behind a wait.
func after(d time.Duration, s script) script { return append(script{wait(d)}, s...) }
