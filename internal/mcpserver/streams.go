package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// lastWait is how long the end of the input waits for the answers to what was
// asked before it.
const lastWait = 10 * time.Second

// pair is a client's two streams. It holds the end of the input back until what
// was asked has been answered: `printf ... | hourthree mcp` has its answers.
type pair struct {
	ctx context.Context
	in  io.ReadCloser
	out io.WriteCloser

	asked, told lines
	closed      sync.Once
	closing     error

	mu   sync.Mutex
	open map[string]bool // ids of requests without an answer
	less chan struct{}   // told that an answer was written
}

func newPair(ctx context.Context, in io.ReadCloser, out io.WriteCloser) *pair {
	return &pair{ctx: ctx, in: in, out: out, open: map[string]bool{}, less: make(chan struct{}, 1)}
}

// Read is the client's.
func (p *pair) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.asked.each(b[:n], func(id string, request bool) {
		if request {
			p.mu.Lock()
			p.open[id] = true
			p.mu.Unlock()
		}
	})
	if n == 0 && errors.Is(err, io.EOF) {
		p.wait()
	}
	return n, err
}

// wait waits until nothing is open any more, within bounds.
func (p *pair) wait() {
	late := time.NewTimer(lastWait)
	defer late.Stop()
	for {
		p.mu.Lock()
		n := len(p.open)
		p.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-p.less:
		case <-late.C:
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// Write is the server's.
func (p *pair) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	p.told.each(b[:n], func(id string, request bool) {
		if request {
			return
		}
		p.mu.Lock()
		delete(p.open, id)
		p.mu.Unlock()
		select {
		case p.less <- struct{}{}:
		default: // it was told already
		}
	})
	return n, err
}

// Close closes both, once: each end of the transport calls it.
func (p *pair) Close() error {
	p.closed.Do(func() { p.closing = errors.Join(p.in.Close(), p.out.Close()) })
	return p.closing
}

// lines finds the messages of a stream, one a line.
type lines struct{ part []byte }

// each calls f for every message that ends in b and has an id.
func (l *lines) each(b []byte, f func(id string, request bool)) {
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if len(l.part)+len(line) <= maxBody { // longer ones are refused unread
			l.part = append(l.part, line...)
		}
		if !whole {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(l.part, &m) == nil && len(m.ID) > 0 && string(m.ID) != "null" {
			f(string(m.ID), m.Method != "")
		}
		l.part, b = nil, rest
	}
}
