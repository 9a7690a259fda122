package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/bench/internal/upstream"
)

const (
	roleProvider = "role:provider" // SLOTS, first argument of this binary started again

	service     = 200 * time.Millisecond // mean time a call holds its slot
	refusalCost = 2 * time.Millisecond   // of a slot's time, for each call refused
	queueSecs   = 10                     // calls that may wait, in seconds of capacity
	debtMost    = 100 * time.Millisecond // that one call pays for others' refusals
	chunks      = 8                      // content chunks of a stream
	booksPath   = "/books"
	peekBytes   = 4096 // of a body that are looked at
)

// books are what the provider has counted.
type books struct {
	Calls   int64 `json:"calls"`   // chat calls read to the end
	Refused int64 `json:"refused"` // of those, for want of room in the queue
	Wasted  int64 `json:"wasted"`  // served to a caller that had left
	Waiting int64 `json:"waiting"` // now
}

// provider is an upstream with a fixed capacity. Calls wait their turn, first
// come first served, whether or not their callers still do. Its fields are
// atomic or channels; one goroutine a connection.
type provider struct {
	slots chan struct{}
	queue int64 // the most that may wait

	calls, refused, wasted, waiting atomic.Int64
	debt                            atomic.Int64 // slot time owed for refusals, ns
}

func newProvider(slots int) *provider {
	perSecond := float64(slots) / service.Seconds()
	return &provider{slots: make(chan struct{}, slots), queue: int64(queueSecs * perSecond)}
}

// runProvider is the process: it names its address in one line on out and ends
// when in does, that is with its parent.
func runProvider(slots string, in io.Reader, out io.Writer) error {
	n, err := strconv.Atoi(slots)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no number of slots", slots)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- newProvider(n).serve(l) }()
	go func() {
		_, err := io.Copy(io.Discard, in)
		failed <- err
	}()
	fmt.Fprintln(out, l.Addr())
	return <-failed
}

func (p *provider) serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go p.connection(c)
	}
}

func (p *provider) connection(c net.Conn) {
	defer c.Close()
	in, head := bufio.NewReaderSize(c, peekBytes), make([]byte, peekBytes)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		n, _ := io.ReadFull(r.Body, head)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if err := p.answer(c, r.URL.Path, string(head[:n])); err != nil || r.Close {
			return
		}
	}
}

func (p *provider) answer(w io.Writer, path, body string) error {
	switch {
	case path == booksPath:
		text, _ := json.Marshal(books{p.calls.Load(), p.refused.Load(), p.wasted.Load(), p.waiting.Load()})
		return write(w, "200 OK", string(text))
	case !strings.HasSuffix(path, "/chat/completions"):
		return write(w, "404 Not Found", `{"error":{"message":"Unknown path.","type":"invalid_request_error"}}`)
	}
	p.calls.Add(1)
	if p.waiting.Add(1) > p.queue {
		p.waiting.Add(-1)
		p.refused.Add(1)
		p.debt.Add(int64(refusalCost))
		return write(w, "503 Service Unavailable", `{"error":{"message":"The engine is overloaded.","type":"server_error"}}`)
	}
	p.slots <- struct{}{} // waiting senders of a channel are served in order
	p.waiting.Add(-1)
	time.Sleep(p.owed())
	err := p.work(w, strings.Contains(body, `"stream":true`))
	<-p.slots
	if err != nil {
		p.wasted.Add(1)
	}
	return err
}

// owed takes what this slot pays of the debt.
func (p *provider) owed() time.Duration {
	for {
		all := p.debt.Load()
		part := min(all, int64(debtMost))
		if p.debt.CompareAndSwap(all, all-part) {
			return time.Duration(part)
		}
	}
}

// work holds its slot to the end even when the caller has left.
func (p *provider) work(w io.Writer, stream bool) error {
	took := time.Duration(float64(service) * (0.75 + 0.5*rand.Float64()))
	if !stream {
		time.Sleep(took)
		return write(w, "200 OK", answerJSON)
	}
	_, err := io.WriteString(w, streamHead)
	for range chunks {
		time.Sleep(took / chunks)
		if err == nil {
			_, err = io.WriteString(w, streamChunk)
		}
	}
	if err == nil {
		_, err = io.WriteString(w, streamEnd)
	}
	return err
}

const (
	answerHead = `{"id":"chatcmpl-bench","object":"chat.completion","created":1764460800,"model":"` + upstream.Model + `","choices":[{"index":0,"message":{"role":"assistant",` + upstream.Whole
	answerTail = `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":100,"total_tokens":600}}`
	chunkHead  = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764460800,"model":"` + upstream.Model + `","choices":[{"index":0,"delta":{`
)

var (
	answerJSON  = answerHead + strings.Repeat("word ", 160) + answerTail
	streamHead  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	streamChunk = framed(chunkHead + contentMark + strings.Repeat("word ", 20) + `"},"finish_reason":null}]}` + "\n\n")
	streamEnd   = framed(chunkHead+`},"finish_reason":"stop"}]}`+"\n\n") + framed("data: [DONE]\n\n") + "0\r\n\r\n"
)

// contentMark is in every content chunk.
const contentMark = `"content":"chunk `

func framed(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func write(w io.Writer, status, body string) error {
	_, err := fmt.Fprintf(w, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	return err
}

// dispatch plays the provider in a process started for that, and exits.
func dispatch() {
	if len(os.Args) != 3 || os.Args[1] != roleProvider {
		return
	}
	if err := runProvider(os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
