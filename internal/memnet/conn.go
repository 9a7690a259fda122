package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// window is what one direction of a connection holds, in bytes, before the
// writer waits for the reader.
const window = 64 << 10

// Conn is one end of a connection. It implements net.Conn.
type Conn struct {
	id            int
	in, out       *half
	local, remote net.Addr
}

// pair makes both ends of a connection to addr.
func pair(id int, addr string) (client, server *Conn) {
	there, back := newHalf(), newHalf()
	from, to := hostAddr("client:"+strconv.Itoa(id)), hostAddr(addr)
	return &Conn{id: id, in: back, out: there, local: from, remote: to}, &Conn{id: id, in: there, out: back, local: to, remote: from}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.fail("read", err)
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.fail("write", err)
}

func (c *Conn) fail(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends both directions in order: the peer reads what was sent, then EOF.
func (c *Conn) Close() error {
	c.out.end(io.EOF)
	c.in.drop()
	return nil
}

// EndWrite closes the sending side alone: the peer reads the end, and may
// still answer. It is not named CloseWrite, which net/http would wait behind.
func (c *Conn) EndWrite() { c.out.end(io.EOF) }

// Reset ends both directions at once: what is under way is lost.
func (c *Conn) Reset() {
	c.out.end(syscall.ECONNRESET)
	c.in.drop()
}

// Gone is closed when the peer has ended the connection, in either way.
func (c *Conn) Gone() <-chan struct{} { return c.in.over }

// Closed is closed when this side has ended it.
func (c *Conn) Closed() <-chan struct{} { return c.in.left }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.limit(&c.in.readBy, t)
	c.out.limit(&c.out.writeBy, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.limit(&c.in.readBy, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.limit(&c.out.writeBy, t)
	return nil
}

// half is one direction of a connection.
type half struct {
	over chan struct{} // closed when the writer has ended it
	left chan struct{} // closed when the reader is gone

	mu      sync.Mutex
	moved   sync.Cond
	buf     []byte
	ended   error // what the reader gets behind buf; nil while open
	dropped bool  // the reader is gone
	readBy  deadline
	writeBy deadline
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newHalf() *half {
	h := &half{over: make(chan struct{}), left: make(chan struct{})}
	h.moved.L = &h.mu
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.dropped:
			return 0, net.ErrClosed
		case h.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(h.buf) > 0 || len(p) == 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			h.moved.Broadcast()
			return n, nil
		case h.ended != nil:
			return 0, h.ended
		}
		h.moved.Wait()
	}
}

func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.ended != nil:
			return n, net.ErrClosed
		case h.dropped:
			return n, syscall.EPIPE
		case h.writeBy.passed():
			return n, os.ErrDeadlineExceeded
		}
		k := min(len(p), window-len(h.buf))
		h.buf = append(h.buf, p[:k]...)
		n, p = n+k, p[k:]
		h.moved.Broadcast()
		if len(p) == 0 {
			return n, nil
		}
		h.moved.Wait()
	}
}

// end is the writer's last word.
func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = err
		close(h.over)
	}
	if errors.Is(err, syscall.ECONNRESET) {
		h.buf = nil
	}
	h.moved.Broadcast()
}

// drop is the reader's last word.
func (h *half) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dropped {
		close(h.left)
	}
	h.dropped, h.buf = true, nil
	for _, d := range []*deadline{&h.readBy, &h.writeBy} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
	h.moved.Broadcast()
}

func (h *half) limit(d *deadline, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at, d.timer = at, nil
	// Of a moment that is over those who wait learn below. A timer for it would run
	// at once in a bubble of virtual time, where the race detector crashes.
	if left := time.Until(at); !at.IsZero() && left > 0 && !h.dropped {
		d.timer = time.AfterFunc(left, h.wake)
	}
	h.moved.Broadcast()
}

func (h *half) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved.Broadcast()
}
