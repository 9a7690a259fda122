package admit

import (
	"context"
	"sync"
	"time"
)

// Queue bounds a wait. With any of the three at 0 or less nobody waits.
type Queue struct {
	Length int           // requests waiting
	Bytes  int64         // memory held by them
	Wait   time.Duration // of one request
}

// Gate is where requests wait when every candidate is at its concurrency
// limit: few, not for long, first come first served. Whoever frees a slot
// calls Notify; nobody polls.
type Gate struct {
	mu    sync.Mutex
	queue Queue
	first *waiter
	last  *waiter
	count int
	bytes int64
}

// waiter is one request in line.
type waiter struct {
	wake       chan struct{} // holds at most one signal
	signalled  bool
	bytes      int64
	prev, next *waiter
}

// NewGate returns an empty gate.
func NewGate(q Queue) *Gate { return &Gate{queue: q} }

// Reconfigure changes the bounds for those who come from now on.
func (g *Gate) Reconfigure(q Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = q
}

// Waiting is the number of requests in line and the bytes they hold.
func (g *Gate) Waiting() (requests int, bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count, g.bytes
}

// Notify says that a slot has become free: the first in line that has not been
// told yet looks for it.
func (g *Gate) Notify() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell(g.first)
}

// tell signals the first waiter from w on that has no signal.
func (g *Gate) tell(w *waiter) {
	for ; w != nil; w = w.next {
		if !w.signalled {
			w.signalled = true
			w.wake <- struct{}{} // never blocks: the channel is empty
			return
		}
	}
}

// WaitFor waits until try returns true, and returns false when the gate is
// full, when the wait is over or when ctx ends. lease is what the request
// holds. try runs on the caller's goroutine, once on entry and again after
// each signal; a signal that does not help is passed down the line, so that
// requests for different targets can share a gate.
func (g *Gate) WaitFor(ctx context.Context, lease *Lease, try func() bool) bool {
	w, wait, ok := g.join(lease.Bytes())
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer g.leave(w)
	if try() {
		return true
	}
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return false
		}
		g.heard(w)
		if try() {
			return true
		}
		g.pass(w)
	}
}

func (g *Gate) join(bytes int64) (w *waiter, wait time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queue
	if g.count >= q.Length || q.Wait <= 0 || bytes > q.Bytes-g.bytes {
		return nil, 0, false
	}
	w = &waiter{wake: make(chan struct{}, 1), bytes: bytes, prev: g.last}
	if g.last == nil {
		g.first = w
	} else {
		g.last.next = w
	}
	g.last = w
	g.count++
	g.bytes += bytes
	return w, q.Wait, true
}

// heard takes note that w is about to look: a signal from now on is news.
func (g *Gate) heard(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.signalled = false
}

// pass hands on a signal that did not help w.
func (g *Gate) pass(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell(w.next)
}

// leave takes w out of line. A signal it has not acted on goes to the next.
func (g *Gate) leave(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.prev == nil {
		g.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		g.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	g.count--
	g.bytes -= w.bytes
	if w.signalled {
		g.tell(g.first)
	}
}
