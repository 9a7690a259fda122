package drill

import (
	"sync"
	"time"
)

// gatekeeper says whether a target may be called: a breaker, a cool-down, an
// ejection. It has no clock of its own. Safe for concurrent use.
type gatekeeper interface {
	admit(now time.Time) bool
	report(now time.Time, r reply)
	phase(now time.Time) string // closed, open or half-open
}

// open lets everything through.
type open struct{}

func (open) admit(time.Time) bool    { return true }
func (open) phase(time.Time) string  { return "closed" }
func (open) report(time.Time, reply) {}

// inARow opens after so many failures in a row; any success closes it, and
// after the pause every call is let through.
type inARow struct {
	limit int
	pause time.Duration

	mu    sync.Mutex
	run   int
	until time.Time
}

func (b *inARow) admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.until)
}

func (b *inARow) report(now time.Time, r reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.good {
		b.run, b.until = 0, time.Time{}
		return
	}
	if b.run++; b.run >= b.limit {
		b.until = now.Add(b.pause)
	}
}

func (b *inARow) phase(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return phaseOf(now, b.until)
}

// phaseOf names the phase of a breaker that is closed without a time.
func phaseOf(now, until time.Time) string {
	switch {
	case now.Before(until):
		return "open"
	case !until.IsZero():
		return "half-open"
	}
	return "closed"
}

// ratio opens at a share of failures within a window that begins anew when it
// is over; after the pause one call decides.
type ratio struct {
	least  int
	share  float64
	window time.Duration
	pause  time.Duration

	mu          sync.Mutex
	from        time.Time
	good, bad   int
	until       time.Time
	half, taken bool
}

func (b *ratio) admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return true
	}
	if now.Before(b.until) || b.taken {
		return false
	}
	b.half, b.taken = true, true
	return true
}

func (b *ratio) report(now time.Time, r reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.half {
		b.half, b.taken = false, false
		if b.until = now.Add(b.pause); r.good {
			b.until, b.good, b.bad, b.from = time.Time{}, 0, 0, now
		}
		return
	}
	if now.Sub(b.from) > b.window {
		b.from, b.good, b.bad = now, 0, 0
	}
	if r.good {
		b.good++
	} else {
		b.bad++
	}
	if n := b.good + b.bad; n >= b.least && float64(b.bad) >= b.share*float64(n) {
		b.until = now.Add(b.pause)
	}
}

func (b *ratio) phase(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return phaseOf(now, b.until)
}

// cooling pauses a target when more than a share of at least so many calls of
// a window failed, and at once after a 429. It does not forget at the end of the
// pause: until the window ends, one more failure pauses again.
type cooling struct {
	least  int
	share  float64
	window time.Duration // from its first call
	pause  time.Duration

	mu     sync.Mutex
	from   time.Time
	n, bad int
	until  time.Time
}

func (b *cooling) admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !now.Before(b.until)
}

func (b *cooling) report(now time.Time, r reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.from) >= b.window {
		b.from, b.n, b.bad = now, 0, 0
	}
	b.n++
	if !r.failed() {
		return
	}
	b.bad++
	if r.status == 429 || b.n >= b.least && float64(b.bad) > b.share*float64(b.n) {
		b.until = now.Add(b.pause)
	}
}

func (b *cooling) phase(now time.Time) string {
	if b.admit(now) {
		return "closed"
	}
	return "open"
}

// passive takes a target out for the window after so many failures within it.
// Then one call at most in a window is a trial, and its success brings the
// target back.
type passive struct {
	limit  int
	window time.Duration
	counts func(reply) bool // what is a failure

	mu              sync.Mutex
	fails           int
	failed, checked time.Time // the last failure; that, or the last trial
}

func (b *passive) admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	over := now.Sub(b.checked) > b.window
	if b.fails >= b.limit && !over {
		return false
	}
	if over {
		b.checked = now
	}
	return true
}

func (b *passive) report(now time.Time, r reply) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts(r) {
		b.fails++
		b.failed, b.checked = now, now
	} else if b.failed.Before(b.checked) {
		b.fails = 0
	}
}

func (b *passive) phase(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.fails < b.limit:
		return "closed"
	case now.Sub(b.checked) > b.window || b.checked.After(b.failed):
		return "half-open"
	}
	return "open"
}

// crowd is a set of targets of which a share may be ejected at once; one may
// always be.
type crowd struct {
	limit   int           // failures in a row until an ejection
	base    time.Duration // of an ejection, times the number of ejections in a row
	most    time.Duration // of an ejection
	sweep   time.Duration // between the moments at which targets come back
	percent int           // of the targets, at which no more are ejected

	mu      sync.Mutex
	members []*ejection
}

// ejection is a member of a crowd. It is ejected after so many of its failures
// in a row, each time longer, and comes back with the first sweep after that.
// Every sweep that finds it there takes one ejection off its number.
type ejection struct {
	*crowd

	// Guarded by the mutex of the crowd.
	run   int
	times int       // ejections in a row
	back  time.Time // when it comes or came back, zero before the first ejection
}

// join makes the gates of a crowd of n.
func (c *crowd) join(n int) (gates []gatekeeper) {
	for range n {
		e := &ejection{crowd: c}
		c.members, gates = append(c.members, e), append(gates, e)
	}
	return gates
}

func (e *ejection) admit(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !now.Before(e.back)
}

func (e *ejection) report(now time.Time, r reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Before(e.back) {
		return
	}
	if !local(r) && r.status < 500 {
		e.run = 0
		return
	}
	if e.run++; e.run < e.limit {
		return
	}
	e.run = 0
	if e.full(now) {
		return
	}
	if !e.back.IsZero() {
		e.times = max(0, e.times-int(now.Sub(e.back)/e.sweep))
	}
	e.times = min(e.times+1, int(max(e.most, e.base)/e.base))
	until := now.Add(e.base * time.Duration(e.times))
	if e.back = until.Truncate(e.sweep); e.back.Before(until) {
		e.back = e.back.Add(e.sweep)
	}
}

// full reports whether no more members may be ejected.
func (c *crowd) full(now time.Time) bool {
	out := 0
	for _, m := range c.members {
		if now.Before(m.back) {
			out++
		}
	}
	return out > 0 && out*100 >= c.percent*len(c.members)
}

func (e *ejection) phase(now time.Time) string {
	if e.admit(now) {
		return "closed"
	}
	return "open"
}
