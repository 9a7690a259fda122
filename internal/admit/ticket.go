package admit

import (
	"sync"
	"sync/atomic"
	"time"
)

// Ticket is leave to call upstreams for one request. Admission is the only place
// that issues one, and package provider makes no call without: nothing has a way
// around the limits, traffic of one's own included. What was granted (memory,
// slots, rates) stays the ticket's until Leave. It is safe for concurrent use.
type Ticket struct {
	lease Lease

	mu      sync.Mutex
	permits [MaxLimits]Permit
	n       int
	gone    bool

	calls atomic.Int64 // upstream calls made with it
	open  atomic.Bool
}

// MaxLimits: a request is bound by the limits of its workload, its key, its
// model, and its workload for that model; while new limits of a model are rolled
// out, by those before too.
const MaxLimits = 5

// Ask is what a request needs in order to come in.
type Ask struct {
	Now    time.Time
	Tokens int64 // estimated, for what is known of the request so far
	Bytes  int64 // of memory besides the body
	Claim  Claim
	// Limits are taken in this order; nil ones limit nothing.
	Limits [MaxLimits]*Limiter
}

// ReasonMemory is the reason of a Refusal by the ledger.
const ReasonMemory = "memory"

// Admit takes all limits and the memory, or nothing. It is called before a byte
// of the request's body has been read.
func (l *Ledger) Admit(ask Ask) (*Ticket, Refusal) {
	t := &Ticket{lease: Lease{ledger: l, claim: ask.Claim}}
	for _, limiter := range ask.Limits {
		if refusal, ok := t.Enter(ask.Now, limiter, ask.Tokens); !ok {
			t.undo(ask.Now)
			return nil, refusal
		}
	}
	if !l.take(ask.Bytes, &ask.Claim, false) {
		t.undo(ask.Now)
		return nil, Refusal{Reason: ReasonMemory}
	}
	t.lease.held = ask.Bytes
	t.open.Store(true)
	return t, Refusal{}
}

// undo gives back what was taken by a request that did not come in.
func (t *Ticket) undo(now time.Time) {
	for i := range t.permits[:t.n] {
		t.permits[i].Undo(now)
	}
}

// Enter takes a further limit, one that depends on the request's body. It is not
// called more often than there are kinds of limits. What a refused request holds
// is given back by Leave.
func (t *Ticket) Enter(now time.Time, limiter *Limiter, tokens int64) (Refusal, bool) {
	if limiter == nil {
		return Refusal{}, true
	}
	p, refusal, ok := limiter.Enter(now, tokens)
	if !ok {
		return refusal, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone { // nobody would give it back
		p.Undo(now)
		return Refusal{}, false
	}
	t.permits[t.n] = p
	t.n++
	return Refusal{}, true
}

// Revise replaces the estimate in every limit that was taken, once the body
// tells more. Where one of them has no room for a larger estimate it refuses;
// what the request holds is given back by Leave all the same.
func (t *Ticket) Revise(now time.Time, use Use) (Refusal, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return Refusal{}, true
	}
	for i := range t.permits[:t.n] {
		if refusal, ok := t.permits[i].Revise(now, use); !ok {
			return refusal, false
		}
	}
	return Refusal{}, true
}

// Metered reports that the real use of tokens or money counts.
func (t *Ticket) Metered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.permits[:t.n] {
		if t.permits[i].metered {
			return true
		}
	}
	return false
}

// Lease is the memory that the request may use.
func (t *Ticket) Lease() *Lease { return &t.lease }

// Call notes that an upstream call is about to be made. It reports whether the
// ticket is good: issued by admission and not given back.
func (t *Ticket) Call() bool {
	if t == nil || !t.open.Load() {
		return false
	}
	t.calls.Add(1)
	return true
}

// Calls is the number of upstream calls made.
func (t *Ticket) Calls() int64 { return t.calls.Load() }

// Leave gives everything back and replaces what was estimated by what was
// really used. Only the first call counts, and a nil ticket has nothing to give
// back.
func (t *Ticket) Leave(now time.Time, use Use) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return
	}
	t.gone = true
	t.open.Store(false)
	for i := range t.permits[:t.n] {
		t.permits[i].Leave(now, use)
	}
	t.lease.Release()
}
