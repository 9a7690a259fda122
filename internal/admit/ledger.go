package admit

import (
	"sync"
	"sync/atomic"
)

// Ledger is the byte budget for everything the router holds for its clients.
// What is reserved never exceeds the limit, and is 0 when no request is being
// served.
type Ledger struct {
	limit    atomic.Int64
	reserved atomic.Int64
}

// NewLedger returns a ledger of limit bytes. A limit of 0 or less grants
// nothing.
func NewLedger(limit int64) *Ledger {
	l := new(Ledger)
	l.limit.Store(limit)
	return l
}

// Limit is the budget in bytes.
func (l *Ledger) Limit() int64 { return l.limit.Load() }

// SetLimit changes the budget. Lowered below what is reserved, it takes
// nothing back: the ledger grants nothing until enough has been released.
func (l *Ledger) SetLimit(limit int64) { l.limit.Store(limit) }

// Reserved is the number of bytes granted and not yet given back.
func (l *Ledger) Reserved() int64 { return l.reserved.Load() }

// Reserve grants n bytes, or returns nil and false when they are not there. A
// negative n is refused; 0 is a lease to grow.
func (l *Ledger) Reserve(n int64) (*Lease, bool) {
	if n < 0 || !l.take(n) {
		return nil, false
	}
	return &Lease{ledger: l, held: n}, true
}

func (l *Ledger) take(n int64) bool {
	for {
		used := l.reserved.Load()
		if n > 0 && n > l.limit.Load()-used { // no overflow: used is never negative
			return false
		}
		if l.reserved.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// Lease is one request's part of a ledger. Its owner calls Release when the
// request is over; a nil lease holds nothing and cannot grow. It is safe for
// concurrent use.
type Lease struct {
	ledger *Ledger

	mu       sync.Mutex
	held     int64
	released bool
}

// Grow adds n bytes, or returns false and changes nothing when they are not
// there or the lease has been released. An n of 0 or less changes nothing.
func (x *Lease) Grow(n int64) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.released {
		return false
	}
	if n <= 0 {
		return true
	}
	if !x.ledger.take(n) {
		return false
	}
	x.held += n
	return true
}

// Shrink gives n bytes back, at most what the lease holds.
func (x *Lease) Shrink(n int64) {
	if x == nil || n <= 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, x.held)
	x.held -= n
	x.ledger.reserved.Add(-n)
}

// Bytes is what the lease holds.
func (x *Lease) Bytes() int64 {
	if x == nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.held
}

// Release gives everything back for good. Later calls do nothing.
func (x *Lease) Release() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ledger.reserved.Add(-x.held)
	x.held, x.released = 0, true
}
