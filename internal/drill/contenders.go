package drill

import (
	"context"
	"time"
)

// kind is a contender that can be made for a play.
type kind struct {
	name  string
	about string
	make  func(*play, Options) (contender, error)
}

var kinds = append([]kind{
	{"router", "this router as it is shipped, with its default policies", newRouter},
	{"naive", "no protection: calls go to the first target, and clients retry as the scenario says", modelled(naive).make},
	{"naive-limited", "the same, behind limits for each workload as the router has them, refused before the body is read", limited(naive).make},
	{"sample-breaker", "fallback loop over targets, each behind a breaker: 5 failures in a row open it for 30 s, then every call is let through and one success closes it", looping(
		func() policy { return policy{each: 1} },
		func() gatekeeper { return &inARow{limit: 5, pause: 30 * time.Second} },
	).make},
	{"ratio-breaker", "fallback loop over targets, each behind a breaker: half of at least 10 calls within 10 s open it for 30 s, then one call decides", ratioBreaker.make},
	{"ratio-breaker-limited", "the same, behind limits for each workload as the router has them, refused before the body is read", limited(ratioBreaker).make},
	{"retry-3", "fallback loop without a breaker: 3 calls at each target with a pause of 0.5 s, doubled (num_retries 3, as in the examples of a widely used gateway)", looping(
		func() policy { return policy{each: 3, pause: backoff{base: 500 * time.Millisecond}} },
		func() gatekeeper { return open{} },
	).make},
}, proxies...)

// naive calls the first target.
func naive(p *play, _ int) caller { return &direct{play: p} }

var ratioBreaker = looping(
	func() policy { return policy{each: 1} },
	func() gatekeeper {
		return &ratio{least: 10, share: 0.5, window: 10 * time.Second, pause: 30 * time.Second}
	},
)

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
// as long as the answer takes.
func (p *play) target(ctx context.Context, v *server, c call) reply {
	p.books.upstream(c.Name, p.since())
	a, d := v.take(time.Now(), p.since(), asked{workload: c.Workload, caller: c.caller, bytes: c.bytes, key: c.key, call: v.number(c.id, c.attempt)})
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
		return reply{broken: true, begun: true}
	case <-ctx.Done():
		return reply{late: true}
	}
	switch a.mode {
	case ModeReset, ModeConnect, ModeCut:
		return reply{broken: true, unsent: a.mode == ModeConnect, begun: a.mode == ModeCut}
	case ModeInside: // passed on as the success it is not
		return reply{status: 200}
	}
	return reply{good: a.status == 200, status: a.status, after: a.retryAfter, degraded: v.Degraded, wrong: a.mode == ModeWrong}
}

// direct is no protection at all.
type direct struct{ *play }

func (d *direct) call(ctx context.Context, c call) reply {
	return d.target(ctx, d.serving(c.Model)[0], c)
}
