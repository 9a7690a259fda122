package drill

import (
	"context"
	"time"
)

// kind is a contender that can be made for a play.
type kind struct {
	name  string
	about string
	make  func(*play) (contender, error)
}

var kinds = append([]kind{
	{"router", "this router as it is shipped, with its default policies", newRouter},
	{"naive", "no gateway: clients call the first target and retry as the scenario says", func(p *play) (contender, error) {
		return &direct{play: p}, nil
	}},
	{"sample-breaker", "fallback loop over targets, each behind a breaker: 5 failures in a row open it for 30 s, then every call is let through and one success closes it", func(p *play) (contender, error) {
		return newLoop(p, policy{each: 1}, func() gatekeeper { return &inARow{limit: 5, pause: 30 * time.Second} }), nil
	}},
	{"ratio-breaker", "fallback loop over targets, each behind a breaker: half of at least 10 calls within 10 s open it for 30 s, then one call decides", func(p *play) (contender, error) {
		return newLoop(p, policy{each: 1}, func() gatekeeper {
			return &ratio{least: 10, share: 0.5, window: 10 * time.Second, pause: 30 * time.Second}
		}), nil
	}},
	{"retry-3", "fallback loop without a breaker: 3 calls at each target with a pause of 0.5 s, doubled (num_retries 3, as in the examples of a widely used gateway)", func(p *play) (contender, error) {
		return newLoop(p, policy{each: 3, pause: backoff{base: 500 * time.Millisecond}}, func() gatekeeper { return open{} }), nil
	}},
}, proxies...)

// Names lists the contenders.
func Names() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func find(name string) (kind, bool) {
	for _, k := range kinds {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// target calls a server in virtual time, without a network: the caller waits
// as long as the answer takes.
func (p *play) target(ctx context.Context, v *server, w *Workload, id, attempt uint64) reply {
	p.books.upstream(w.Name, p.since())
	a := v.take(time.Now(), p.since(), id<<8|attempt)
	defer v.leave()
	wait := a.wait
	if w.Stream && a.status == 200 {
		wait += a.rest
	}
	if a.mode == ModeHang {
		<-ctx.Done()
		return reply{late: true}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return reply{late: true}
	}
	switch a.mode {
	case ModeReset, ModeConnect, ModeCut:
		return reply{broken: true, unsent: a.mode == ModeConnect, begun: a.mode == ModeCut}
	case ModeInside: // passed on as the success it is not
		return reply{status: 200}
	}
	return reply{good: a.status == 200, status: a.status, after: a.retryAfter, degraded: v.Degraded}
}

// direct is no gateway at all.
type direct struct{ *play }

func (d *direct) call(ctx context.Context, w *Workload, id, attempt uint64) reply {
	return d.target(ctx, d.servers[0], w, id, attempt)
}

func (d *direct) close() {}
