package app

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is what one direction of a connection holds, as a socket would.
const pipeBuffer = 64 << 10

// memNet is a network in memory. Its waits are condition variables and
// timers, so that it runs in virtual time. A name without a listener refuses;
// names in unknown do not resolve, names in silent never answer a dial.
type memNet struct {
	mu        sync.Mutex
	listeners map[string]*memListener
	unknown   map[string]bool
	silent    map[string]bool
	dials     map[string]int
}

func newMemNet() *memNet {
	return &memNet{listeners: map[string]*memListener{}, unknown: map[string]bool{}, silent: map[string]bool{}, dials: map[string]int{}}
}

type memListener struct {
	net    *memNet
	addr   memAddr
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

type memAddr string

func (memAddr) Network() string  { return "tcp" }
func (a memAddr) String() string { return string(a) }

func (n *memNet) listen(_, addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &memListener{net: n, addr: memAddr(addr), queue: make(chan net.Conn, 1024), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Addr() net.Addr { return l.addr }

func (l *memListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		if l.net.listeners[string(l.addr)] == l {
			delete(l.net.listeners, string(l.addr))
		}
	})
	return nil
}

func (n *memNet) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials[addr]++
	l, unknown, silent := n.listeners[addr], n.unknown[addr], n.silent[addr]
	n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memAddr(addr), Err: err}
	}
	switch {
	case unknown:
		return fail(&net.DNSError{Err: "no such host", Name: addr, IsNotFound: true})
	case silent:
		<-ctx.Done()
		return fail(ctx.Err())
	case l == nil:
		return fail(syscall.ECONNREFUSED)
	}
	there, back := newHalf(), newHalf()
	client := &memConn{in: back, out: there, local: "client", remote: memAddr(addr)}
	server := &memConn{in: there, out: back, local: memAddr(addr), remote: "client"}
	select {
	case l.queue <- server:
		return client, nil
	case <-l.closed:
		return fail(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

// dialled is how often an address was dialled.
func (n *memNet) dialled(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

// half is one direction of a connection.
type half struct {
	mu       sync.Mutex
	moved    sync.Cond
	buf      []byte
	ended    error // what a reader gets behind buf; nil while open
	shut     bool  // the reader is gone
	readBy   limitTimer
	writeBy  limitTimer
	capacity int
}

type limitTimer struct {
	at    time.Time
	timer *time.Timer
}

func newHalf() *half {
	h := &half{capacity: pipeBuffer}
	h.moved.L = &h.mu
	return h
}

func (h *half) set(l *limitTimer, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.at, l.timer = at, nil
	if !at.IsZero() {
		l.timer = time.AfterFunc(time.Until(at), h.wake)
	}
	h.moved.Broadcast()
}

func (h *half) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved.Broadcast()
}

func (l *limitTimer) over() bool { return !l.at.IsZero() && !time.Now().Before(l.at) }

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.shut:
			return 0, net.ErrClosed
		case h.readBy.over():
			return 0, os.ErrDeadlineExceeded
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			h.moved.Broadcast()
			return n, nil
		case h.ended != nil:
			return 0, h.ended
		case len(p) == 0:
			return 0, nil
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
		case h.shut:
			return n, syscall.EPIPE
		case h.writeBy.over():
			return n, os.ErrDeadlineExceeded
		}
		m := min(len(p), h.capacity-len(h.buf))
		h.buf = append(h.buf, p[:m]...)
		n, p = n+m, p[m:]
		if m > 0 {
			h.moved.Broadcast()
		}
		if len(p) == 0 {
			return n, nil
		}
		h.moved.Wait()
	}
}

func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = err
	}
	if errors.Is(err, syscall.ECONNRESET) {
		h.buf = nil
	}
	h.moved.Broadcast()
}

func (h *half) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shut = true
	for _, l := range []*limitTimer{&h.readBy, &h.writeBy} {
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	h.moved.Broadcast()
}

// memConn is one end of a connection.
type memConn struct {
	in, out       *half
	local, remote memAddr
}

func (c *memConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memConn) Write(p []byte) (int, error) { return c.out.write(p) }

func (c *memConn) Close() error {
	c.out.end(io.EOF)
	c.in.hangUp()
	return nil
}

// reset ends the connection so that what is under way is lost.
func (c *memConn) reset() {
	c.out.end(syscall.ECONNRESET)
	c.in.hangUp()
}

func (c *memConn) LocalAddr() net.Addr  { return c.local }
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

func (c *memConn) SetDeadline(t time.Time) error {
	c.in.set(&c.in.readBy, t)
	c.out.set(&c.out.writeBy, t)
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.set(&c.in.readBy, t)
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.set(&c.out.writeBy, t)
	return nil
}
