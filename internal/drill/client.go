package drill

import (
	"context"
	"slices"
	"time"
)

// call is one call of a client.
type call struct {
	*Workload
	caller  int    // of the workload, from 0
	id      uint64 // of the logical request
	attempt uint64 // of this client, from 1
	bytes   int64  // of the body
	key     int    // of the workload's users
}

// reply is how one call ended, as its caller sees it.
type reply struct {
	good     bool
	degraded bool
	wrong    bool // good to look at
	status   int  // 0 when there was none
	late     bool // the caller gave up
	broken   bool // reset, or cut off
	early    bool // refused, or given up by its caller, before the body was read
	unsent   bool // broken before there was a connection
	begun    bool // broken after its beginning
	stop     bool // x-should-retry: false
	after    time.Duration
}

// ask makes a logical request through the retry layers of its client.
func (p *play) ask(c call) reply {
	once := func() reply {
		c.attempt++
		p.books.inbound(c.Name, p.since())
		ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
		defer cancel()
		return p.relabel(c.Workload, p.contender.call(ctx, c))
	}
	for i := range slices.Backward(c.Retries) {
		once = p.layer(&c.Retries[i], c.id, uint64(i), once)
	}
	return once()
}

// relabel is a fault of the workload's own stack.
func (p *play) relabel(w *Workload, r reply) reply {
	if r.status != 429 {
		return r
	}
	at := p.since()
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Mode == ModeRelabel && f.Workload == w.Name && at >= f.At && at < f.Until {
			r.status, r.stop, r.after = 500, false, 0
		}
	}
	return r
}

// layer wraps a call into one layer of retries.
func (p *play) layer(l *Layer, id, depth uint64, once func() reply) func() reply {
	return func() reply {
		pause := l.Backoff
		for n := 1; ; n++ {
			r := once()
			if r.good || n == l.Attempts || !l.repeats(r) {
				return r
			}
			wait := pause
			if l.Jitter {
				wait = times(pause, chance(p.seed, "backoff", id<<8|depth<<4|uint64(n)))
			}
			if l.Obeys && r.after > 0 {
				wait = r.after
			}
			time.Sleep(wait)
			pause *= 2
		}
	}
}

// repeats reports whether the layer takes the reply as a reason to call again.
func (l *Layer) repeats(r reply) bool {
	if l.Obeys && r.stop {
		return false
	}
	on := func(what string) bool { return slices.Contains(l.On, what) }
	switch {
	case r.late:
		return on("timeout")
	case r.broken, r.status == 0:
		return on("reset")
	case r.status == 429:
		return on("429")
	case r.status >= 500:
		return on("5xx")
	}
	return r.status >= 400 && on("4xx")
}

// arrive offers the requests of one of a workload's callers, evenly spaced at
// its rate, until the scenario ends. The callers of a workload are spread over
// the first interval.
func (p *play) arrive(w *Workload, number, caller int) {
	id := uint64(number)<<40 | uint64(caller)<<28
	next, i := time.Duration(0), 0
	if len(w.Rate) > 0 && w.Rate[0].RPS > 0 {
		next = times(time.Second, float64(caller)/float64(w.Callers)/w.Rate[0].RPS)
	}
	for len(w.Rate) > 0 && next < p.Length {
		for i+1 < len(w.Rate) && next >= w.Rate[i+1].At {
			i++
		}
		switch now := w.Rate[i]; {
		case next < now.At:
			next = now.At
		case now.RPS == 0 && i+1 < len(w.Rate):
			next = w.Rate[i+1].At
		case now.RPS == 0:
			return
		default:
			time.Sleep(next - p.since())
			id++
			p.offer(w, caller, id)
			next += time.Duration(float64(time.Second) / now.RPS)
		}
	}
}

// offer begins a logical request.
func (p *play) offer(w *Workload, caller int, id uint64) {
	c := call{
		Workload: w, caller: caller, id: id, bytes: w.Body.size(chance(p.seed, "body", id)),
		key: p.keys[w.Name].draw(chance(p.seed, "key", id)),
	}
	at := p.since()
	p.running.Go(func() {
		p.books.fresh(w.Name, at)
		r := p.ask(c)
		p.books.done(w.Name, at, p.since()-at, r)
	})
}
