package drill

import (
	"context"
	"sync"
	"time"
)

// kind is a contender that can be made for a play.
type kind struct {
	name  string
	about string
	make  func(*play, Options) (contender, error)
}

var kinds = []kind{
	{"router", "this router as it is shipped, with its default policies", newRouter},
	{"naive", "no protection: calls go to the first target, and clients retry as the scenario says", func(p *play, _ Options) (contender, error) {
		return newFront(p, func() caller { return &direct{play: p} }), nil
	}},
	{"sample-breaker", "fallback loop over targets, each behind a breaker: 5 failures in a row open it for 30 s, then every call is let through and one success closes it", func(p *play, _ Options) (contender, error) {
		return newFront(p, func() caller {
			return newLoop(p, func() gatekeeper { return &inARow{limit: 5, pause: 30 * time.Second} }, 1)
		}), nil
	}},
	{"ratio-breaker", "fallback loop over targets, each behind a breaker: half of at least 10 calls within 10 s open it for 30 s, then one call decides", func(p *play, _ Options) (contender, error) {
		return newFront(p, func() caller {
			return newLoop(p, func() gatekeeper {
				return &ratio{least: 10, share: 0.5, window: 10 * time.Second, pause: 30 * time.Second}
			}, 1)
		}), nil
	}},
	{"retry-3", "fallback loop without a breaker: 3 calls at each target with a pause of 0.5 s, doubled (num_retries 3, as in the examples of a widely used gateway)", func(p *play, _ Options) (contender, error) {
		return newFront(p, func() caller { return newLoop(p, func() gatekeeper { return open{} }, 3) }), nil
	}},
}

// Names lists the contenders that a scenario is played with.
func Names() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Without lists the router's variants, each without one of its protections.
func Without() (names []string) {
	for _, w := range withouts {
		names = append(names, without+w.name)
	}
	return names
}

func find(name string) (kind, bool) {
	for _, k := range kinds {
		if k.name == name {
			return k, true
		}
	}
	for _, w := range withouts {
		if without+w.name == name {
			return w.kind(), true
		}
	}
	return kind{}, false
}

// caller is a modelled gateway's policy: it makes the calls at targets that one
// call of a client causes.
type caller interface {
	call(ctx context.Context, c call) reply
}

// target calls a server in virtual time, without a network: the caller waits
// as long as the answer takes. n tells the calls of one client's call apart.
func (p *play) target(ctx context.Context, v *server, c call, n uint64) reply {
	p.books.upstream(c.Name, p.since())
	a, d := v.take(time.Now(), p.since(), asked{workload: c.Workload, caller: c.caller, bytes: c.bytes, key: c.key, call: c.id<<16 | c.attempt<<8 | n})
	defer v.leave(&a, d)
	wait := a.wait
	if c.Stream && a.status == 200 {
		wait += a.rest
	}
	if a.mode == ModeHang {
		wait = time.Hour * 1000
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.life:
		return reply{broken: true}
	case <-a.drop:
		return reply{broken: true}
	case <-ctx.Done():
		return reply{late: true}
	}
	switch a.mode {
	case ModeReset, ModeConnect, ModeCut:
		return reply{broken: true}
	case ModeInside: // passed on as the success it is not
		return reply{status: 200}
	}
	return reply{good: a.status == 200, status: a.status, after: a.retryAfter, degraded: v.Degraded, wrong: a.mode == ModeWrong}
}

// direct is no protection at all.
type direct struct{ *play }

func (d *direct) call(ctx context.Context, c call) reply {
	return d.target(ctx, d.serving(c.Model)[0], c, 0)
}

// gatekeeper is a breaker as libraries and examples have it.
type gatekeeper interface {
	admit(now time.Time) bool
	report(now time.Time, good bool)
	phase(now time.Time) string // closed, open or half-open
}

// loop is the usual gateway: one target after the other, each so many times.
type loop struct {
	*play
	each  int
	gates map[*server]gatekeeper

	mu     sync.Mutex
	phases map[*server]string // that were booked last
}

func newLoop(p *play, gate func() gatekeeper, each int) *loop {
	l := &loop{play: p, each: each, gates: map[*server]gatekeeper{}, phases: map[*server]string{}}
	for _, v := range p.servers {
		l.gates[v], l.phases[v] = gate(), "closed"
	}
	return l
}

// look books the phase of a gate when it has changed.
func (l *loop) look(v *server) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if phase := l.gates[v].phase(now); phase != l.phases[v] {
		l.phases[v] = phase
		l.books.moved(v.Name, l.since(), phase, "")
	}
}

func (l *loop) call(ctx context.Context, c call) reply {
	last := reply{status: 503}
	for i, v := range l.serving(c.Model) {
		pause := 500 * time.Millisecond
		for n := range l.each {
			admitted := l.gates[v].admit(time.Now())
			l.look(v)
			if !admitted {
				break
			}
			// A gateway's own limit leaves time for the next target.
			each, cancel := context.WithTimeout(ctx, max(c.Timeout/2, time.Second))
			last = l.target(each, v, c, uint64(i)<<4|uint64(n))
			cancel()
			l.gates[v].report(time.Now(), last.good)
			l.look(v)
			if last.good || ctx.Err() != nil {
				return last
			}
			if n < l.each-1 {
				time.Sleep(pause)
				pause *= 2
			}
		}
	}
	if last.late { // of the gateway, not of the caller
		last = reply{status: 504}
	}
	return last
}

// open lets everything through.
type open struct{}

func (open) admit(time.Time) bool   { return true }
func (open) phase(time.Time) string { return "closed" }
func (open) report(time.Time, bool) {}

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

func (b *inARow) report(now time.Time, good bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if good {
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

func (b *ratio) report(now time.Time, good bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.half {
		b.half, b.taken = false, false
		if b.until = now.Add(b.pause); good {
			b.until, b.good, b.bad, b.from = time.Time{}, 0, 0, now
		}
		return
	}
	if now.Sub(b.from) > b.window {
		b.from, b.good, b.bad = now, 0, 0
	}
	if good {
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
