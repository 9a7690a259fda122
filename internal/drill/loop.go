package drill

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// policy is how a proxy repeats a failed call and takes it to the next target,
// as data. It holds no state but its allowance, and decides through a course.
type policy struct {
	each    int              // calls at a target, the first included, before the next one
	total   int              // calls a request in all; 0 for no limit but each
	around  bool             // the first target comes after the last; needs total
	repeats func(reply) bool // what is repeated at the same target; nil is any failure
	moves   func(reply) bool // what is taken to the next target; nil is any failure
	pause   backoff          // before a repeat
	paced   bool             // it comes before the next target as well
	// obeys is the longest sum of Retry-After, after 429, that one target is
	// waited for; a longer one ends the repeats there. 0 ignores the header.
	obeys  time.Duration
	budget *allowance // of repeats under way; nil for no limit
	empty  int        // status when no gate admits; 0 is 503
	panics bool       // a target is called although no gate admits
}

// backoff is the pause before repeat n, counted from 1: base doubled each time.
// With jitter it is drawn from [0, (2^n-1) base). most bounds it, 0 does not.
type backoff struct {
	base, most time.Duration
	jitter     bool
}

// before is the pause before repeat n; draw is in [0,1).
func (b backoff) before(n int, draw float64) time.Duration {
	full := b.base << (n - 1)
	if b.jitter {
		full = b.base<<n - b.base
	}
	if b.most > 0 {
		full = min(full, b.most)
	}
	if b.jitter {
		full = time.Duration(draw * float64(full))
	}
	return full
}

// failed is a failure that a proxy sees while it still can do something: not an
// error inside a success, and not the end of an answer it has begun to pass on.
func (r reply) failed() bool {
	return !r.good && r.status != 200 && !r.begun
}

// course is the way of one request through the targets.
type course struct {
	*policy
	targets int
	at      int           // the target to call
	made    int           // calls in all
	here    int           // calls at this target since it was reached
	waited  time.Duration // for its Retry-After
}

// next decides after the call at the target: whether there is another one,
// where, and after what pause. draw is in [0,1).
func (c *course) next(r reply, draw float64) (pause time.Duration, again bool) {
	c.made++
	c.here++
	if !r.failed() || c.total > 0 && c.made >= c.total {
		return 0, false
	}
	if c.here < c.each && (c.repeats == nil || c.repeats(r)) {
		if pause, again = c.wait(r, draw); again {
			return pause, true
		}
	}
	if c.moves != nil && !c.moves(r) || !c.step() {
		return 0, false
	}
	if c.paced {
		pause = c.pause.before(c.made, draw)
	}
	return pause, true
}

// wait is the pause before a repeat at the same target. A target whose
// Retry-After was obeyed is waited for no longer than it says.
func (c *course) wait(r reply, draw float64) (time.Duration, bool) {
	if c.obeys > 0 && r.status == 429 && r.after > 0 {
		if c.waited += r.after; c.waited > c.obeys || r.after >= c.obeys {
			return 0, false
		}
		return r.after, true
	}
	if c.waited > 0 {
		return 0, true
	}
	return c.pause.before(c.here, draw), true
}

// step goes to the next target, if there is one.
func (c *course) step() bool {
	c.here, c.waited = 0, 0
	if c.at++; c.at < c.targets {
		return true
	}
	c.at = 0
	return c.around
}

// allowance bounds the repeats under way at once by a share of the requests
// under way, and never to fewer than least. A nil one allows everything. Safe
// for concurrent use.
type allowance struct {
	share float64
	least int

	mu               sync.Mutex
	active, repeated int
}

// enter counts a request, until leave.
func (a *allowance) enter() { a.count(1) }
func (a *allowance) leave() { a.count(-1) }

func (a *allowance) count(n int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.active += n
	a.mu.Unlock()
}

// take allows a repeat or does not; what it allows lasts until give.
func (a *allowance) take() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.repeated >= max(a.least, int(a.share*float64(a.active))) {
		return false
	}
	a.repeated++
	return true
}

func (a *allowance) give() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.repeated--
	a.mu.Unlock()
}

// loop is a policy over the targets of a model, each behind a gate.
type loop struct {
	*play
	servers  []*server
	instance int // of the gateway, from 1
	policy   policy
	gates    []gatekeeper

	mu     sync.Mutex
	phases []string // that were booked last
}

func newLoop(p *play, servers []*server, how policy, gates []gatekeeper) *loop {
	return &loop{play: p, servers: servers, policy: how, gates: gates, phases: slices.Repeat([]string{"closed"}, len(gates))}
}

// look books the phase of a gate when it has changed.
func (l *loop) look(i int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if phase := l.gates[i].phase(now); phase != l.phases[i] {
		l.phases[i] = phase
		l.books.moved(l.servers[i].Name, l.instance, l.since(), phase, "")
	}
}

// admitted takes the course to the next target whose gate admits a call.
func (l *loop) admitted(c *course) bool {
	first := c.at
	for range l.servers {
		ok := l.gates[c.at].admit(time.Now())
		l.look(c.at)
		if ok {
			return true
		}
		if !c.step() {
			break
		}
	}
	c.at = first
	return c.panics
}

func (l *loop) call(ctx context.Context, q call) reply {
	l.policy.budget.enter()
	defer l.policy.budget.leave()
	c := course{policy: &l.policy, targets: len(l.servers)}
	last := reply{status: cmp.Or(l.policy.empty, 503)}
	held := false // a part of the budget
	defer func() {
		if held {
			l.policy.budget.give()
		}
	}()
	for l.admitted(&c) {
		last = l.try(ctx, q, c.at)
		if held {
			l.policy.budget.give()
			held = false
		}
		if last.good || ctx.Err() != nil {
			return last
		}
		pause, again := c.next(last, chance(l.seed, "pause", q.id<<16|q.attempt<<8|uint64(c.made)))
		if !again {
			break
		}
		if held = l.policy.budget.take(); !held {
			break
		}
		if !wait(pause, ctx.Done()) {
			return reply{late: true}
		}
	}
	if last.late { // of the proxy, not of the caller
		last = reply{status: 504}
	}
	return last
}

// try makes one call. A proxy's own limit leaves time for another one.
func (l *loop) try(ctx context.Context, q call, i int) reply {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.patience, max(q.Timeout/2, time.Second)))
	defer cancel()
	r := l.target(ctx, l.servers[i], q)
	l.gates[i].report(time.Now(), r)
	l.look(i)
	return r
}
