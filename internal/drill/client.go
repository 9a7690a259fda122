package drill

import (
	"context"
	"slices"
	"time"
)

// reply is how one call ended, as its caller sees it.
type reply struct {
	good     bool
	degraded bool
	status   int  // 0 when there was none
	late     bool // the caller gave up
	broken   bool // reset, or cut off
	unsent   bool // broken before there was a connection
	begun    bool // broken after its beginning
	stop     bool // x-should-retry: false
	after    time.Duration
}

// ask makes a logical request through the retry layers of its client.
func (p *play) ask(w *Workload, id uint64) reply {
	var attempt uint64
	call := func() reply {
		attempt++
		p.books.inbound(w.Name, p.since())
		ctx, cancel := context.WithTimeout(context.Background(), w.Timeout)
		defer cancel()
		return p.contender.call(ctx, w, id, attempt)
	}
	for i := range slices.Backward(w.Retries) {
		call = p.layer(&w.Retries[i], id, uint64(i), call)
	}
	return call()
}

// layer wraps a call into one layer of retries.
func (p *play) layer(l *Layer, id, depth uint64, call func() reply) func() reply {
	return func() reply {
		pause := l.Backoff
		for n := 1; ; n++ {
			r := call()
			if r.good || n == l.Attempts || !l.repeats(r) {
				return r
			}
			wait := pause
			if l.Jitter {
				wait = time.Duration(chance(p.seed, "backoff", id<<8|depth<<4|uint64(n)) * float64(pause))
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
	}
	return r.status >= 500 && on("5xx")
}

// arrive offers a workload's requests, evenly spaced at its rate, until the
// scenario ends.
func (p *play) arrive(w *Workload, number int) {
	id := uint64(number) << 40
	next := time.Duration(0)
	for i := 0; next < p.Length; {
		for i+1 < len(w.Rate) && next >= w.Rate[i+1].At {
			i++
		}
		if w.Rate[i].RPS == 0 || next < w.Rate[i].At {
			if next < w.Rate[i].At {
				next = w.Rate[i].At
			} else if i+1 < len(w.Rate) {
				next = w.Rate[i+1].At
			} else {
				return
			}
			continue
		}
		time.Sleep(next - p.since())
		id++
		one, at := id, p.since()
		p.running.Go(func() {
			p.books.fresh(w.Name, at)
			r := p.ask(w, one)
			p.books.done(w.Name, at, p.since()-at, r)
		})
		next += time.Duration(float64(time.Second) / w.Rate[i].RPS)
	}
}
