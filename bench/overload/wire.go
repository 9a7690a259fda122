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
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// reply is what one attempt came to.
type reply struct {
	status     int // 0 without an answer
	whole      bool
	retryAfter time.Duration // 0 without
	should     string        // x-should-retry
	up, down   int64         // bytes on the wire
	late       bool          // the time-out passed
}

// wire makes attempts at one address. It keeps connections until Close. Safe
// for concurrent use.
type wire struct {
	addr string
	body [2]string // by whether it asks for a stream

	mu   sync.Mutex
	idle []*link
}

// link is one connection; one goroutine at a time reads it, one writes.
type link struct {
	net.Conn
	in   *bufio.Reader
	down atomic.Int64
	used bool
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.down.Add(int64(n))
	return n, err
}

func newWire(addr string, size int) *wire {
	w := &wire{addr: addr}
	for i, stream := range []string{"", `"stream":true,`} {
		head := `{"model":"` + upstream.Model + `",` + stream + `"messages":[{"role":"user","content":"`
		w.body[i] = head + strings.Repeat("word ", max(1, (size-len(head)-4)/5)) + `"}]}`
	}
	return w
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.idle {
		l.Close()
	}
	w.idle = nil
}

// take returns a kept connection, or a new one when there is none or fresh.
func (w *wire) take(ctx context.Context, fresh bool) (*link, error) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 && !fresh {
		l := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		return l, nil
	}
	w.mu.Unlock()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", w.addr)
	if err != nil {
		return nil, err
	}
	_ = c.(*net.TCPConn).SetWriteBuffer(sendBuffer)
	l := &link{Conn: c}
	l.in = bufio.NewReaderSize(l, 4096)
	return l, nil
}

func (w *wire) give(l *link) {
	l.used = true
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, l)
}

// sendBuffer keeps what counts as sent close to what was read at the far end.
const sendBuffer = 64 << 10

// errStale is a kept connection that the server had closed already.
var errStale = errors.New("stale connection")

// attempt makes one call, the number try of its request, and gives up when
// ctx ends.
func (w *wire) attempt(ctx context.Context, key string, stream bool, try int) reply {
	r, err := w.once(ctx, key, stream, try, false)
	if errors.Is(err, errStale) {
		r, err = w.once(ctx, key, stream, try, true)
	}
	if err != nil {
		r.whole = false
		r.late = errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	}
	return r
}

func (w *wire) once(ctx context.Context, key string, stream bool, try int, fresh bool) (r reply, err error) {
	l, err := w.take(ctx, fresh)
	if err != nil {
		return r, err
	}
	deadline, _ := ctx.Deadline()
	_ = l.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	l.down.Store(0)
	sent := w.send(l, key, stream, try)
	keep, err := l.receive(stream, &r)
	r.down = l.down.Load()
	if !stop() || err != nil || !keep {
		// As a client that leaves: what is still on its way is thrown away.
		_ = l.Conn.(*net.TCPConn).SetLinger(0)
		l.Close()
		r.up = (<-sent).n
		return r, err
	}
	out := answered(sent)
	r.up = out.n
	if out.err != nil || !out.done {
		l.Close()
		if !out.done {
			r.up = (<-sent).n
		}
		return r, nil
	}
	w.give(l)
	return r, nil
}

// sending is what became of a request's bytes.
type sending struct {
	n    int64
	err  error
	done bool
}

// answered is what was sent by the time the answer was read.
func answered(sent chan sending) sending {
	select {
	case s := <-sent:
		return s
	case <-time.After(time.Millisecond):
		return sending{}
	}
}

// send writes the request beside the reading of the answer, which may come
// before a large body has gone out.
func (w *wire) send(l *link, key string, stream bool, try int) chan sending {
	kind := 0
	if stream {
		kind = 1
	}
	body := w.body[kind]
	// The headers of the official SDKs that say what the client will do.
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nUser-Agent: hourthree-bench\r\nX-Stainless-Retry-Count: %d\r\nX-Stainless-Timeout: %d\r\nContent-Length: %d\r\n\r\n",
		w.addr, key, try, int(patience.Seconds()), len(body))
	sent := make(chan sending, 1)
	if len(body) < 16<<10 {
		n, err := io.WriteString(l.Conn, head+body)
		sent <- sending{int64(n), err, true}
		return sent
	}
	go func() {
		n, err := io.WriteString(l.Conn, head)
		if err == nil {
			var m int
			m, err = io.WriteString(l.Conn, body)
			n += m
		}
		sent <- sending{int64(n), err, true}
	}()
	return sent
}

// receive reads an answer to its end and says whether the connection may stay.
func (l *link) receive(stream bool, r *reply) (keep bool, err error) {
	if _, err := l.in.Peek(1); err != nil {
		if l.used && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
			return false, errStale
		}
		return false, err
	}
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	r.status, r.should = resp.StatusCode, resp.Header.Get("X-Should-Retry")
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil {
		r.retryAfter = time.Duration(s * float64(time.Second))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return false, err
	}
	r.whole = resp.StatusCode == http.StatusOK && whole(string(body), stream)
	return !resp.Close, nil
}

// whole reports whether an answer has everything the provider said.
func whole(body string, stream bool) bool {
	if !stream {
		return strings.Contains(body, upstream.Whole) && strings.HasSuffix(strings.TrimSpace(body), "}")
	}
	return strings.Count(body, contentMark) == chunks && strings.Contains(body, "data: [DONE]")
}
