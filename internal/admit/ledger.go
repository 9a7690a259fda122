package admit

import (
	"sync"
	"sync/atomic"

	"github.com/hourthree/hourthree/internal/queue"
)

// Watermarks: how full the ledger may become by new requests of a priority. What
// matters least is refused first; the rest up to the limit is for what requests
// that are being served still need (algorithm notes, section 7).
var watermarks = [queue.NumPriorities]float64{queue.Critical: 0.95, queue.Interactive: 0.85, queue.Batch: 0.70}

// contended is how full the ledger is when no workload may have more than its
// share of it any more.
const contended = 0.5

// Ledger is the byte budget for everything the router holds for its clients.
// What is reserved never exceeds the limit, and is 0 when no request is being
// served.
type Ledger struct {
	limit    atomic.Int64
	reserved atomic.Int64
}

// Holder is what one workload holds of a ledger. The zero value holds nothing.
type Holder struct{ held atomic.Int64 }

// Bytes is what the workload holds.
func (h *Holder) Bytes() int64 { return h.held.Load() }

// Claim says for whom memory is asked. The zero value is for critical work of
// nobody in particular.
type Claim struct {
	Priority queue.Priority
	Holder   *Holder // nil for nobody in particular
	// Share of the ledger, above 0 and below 1, that Holder may have once half of
	// it is taken. Any other number is all of it.
	Share float64
	// Strict bounds Holder by Share however empty the ledger is.
	Strict bool
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

// take grants n bytes: up to the claim's watermark, or with admitted up to the
// limit itself.
func (l *Ledger) take(n int64, c *Claim, admitted bool) bool {
	if n < 0 {
		return false
	}
	for {
		used, limit := l.reserved.Load(), l.limit.Load()
		most := limit
		if !admitted {
			most = int64(watermarks[c.Priority] * float64(limit))
		}
		if n > 0 && n > most-used { // no overflow: used is never negative
			return false
		}
		if !c.hold(n, used, limit) {
			return false
		}
		if l.reserved.CompareAndSwap(used, used+n) {
			return true
		}
		c.release(n)
	}
}

// hold adds n bytes to what the holder has, unless they are more than its share.
func (c *Claim) hold(n, used, limit int64) bool {
	if c.Holder == nil {
		return true
	}
	if now := c.Holder.held.Add(n); n > 0 && c.Share > 0 && c.Share < 1 &&
		(c.Strict || float64(used+n) > contended*float64(limit)) && float64(now) > c.Share*float64(limit) {
		c.release(n)
		return false
	}
	return true
}

func (c *Claim) release(n int64) {
	if c.Holder != nil {
		c.Holder.held.Add(-n)
	}
}

// Lease is one request's part of a ledger. A nil lease holds nothing and cannot
// grow. It is safe for concurrent use.
type Lease struct {
	ledger *Ledger
	claim  Claim

	mu       sync.Mutex
	held     int64
	also     *atomic.Int64 // follows held, nil for none
	admitted bool
	released bool
}

// CountIn has a sum follow what the lease holds, until it is released.
func (x *Lease) CountIn(sum *atomic.Int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.also == nil && !x.released {
		x.also = sum
		sum.Add(x.held)
	}
}

// set is the one place where what is held changes. The lock is held.
func (x *Lease) set(held int64) {
	if x.also != nil {
		x.also.Add(held - x.held)
	}
	x.held = held
}

// Admitted says that the request has been read: what it needs from now on is
// bounded by the ledger's limit alone, for refusing it would waste its work.
func (x *Lease) Admitted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.admitted = true
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
	if !x.ledger.take(n, &x.claim, x.admitted) {
		return false
	}
	x.set(x.held + n)
	return true
}

// Fits reports that n more bytes would be granted now.
func (x *Lease) Fits(n int64) bool {
	if !x.Grow(n) {
		return false
	}
	x.Shrink(n)
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
	x.set(x.held - n)
	x.giveBack(n)
}

func (x *Lease) giveBack(n int64) {
	x.claim.release(n)
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
	x.giveBack(x.held)
	x.set(0)
	x.released = true
}
