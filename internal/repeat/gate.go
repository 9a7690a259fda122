// Package repeat keeps the repeats of callers in bounds: it knows which of a
// workload's requests repeat one that failed, and how many of those may come in.
//
// A repeat is known by what the caller says (an attempt number, an idempotency
// key seen before) or, for clients whose loop is outside their SDK, by a request
// that is the same, byte for byte, as one that failed in the last minute. Each
// costs a token; first requests and time bring tokens in. Past them repeats are
// refused, before their body is read where their headers tell, and cost no
// upstream anything.
//
// The package reads no clock, does no I/O and starts no goroutine. Its types are
// not safe for concurrent use: package workload holds the lock.
package repeat

import (
	"math"
	"time"
)

// The allowance (algorithm notes, 2.4 and 12.2: 10 % + 1/s).
const (
	ratio     = 0.1 // tokens for each first request
	perSecond = 1.0 // tokens that time brings
	reserve   = 10  // tokens at the start, and that an idle workload saves up
	span      = 10 * time.Second

	longestWait = time.Minute // that is advised

	// waste is how many bytes a second may be read of repeats that only their
	// bodies show, and that are then refused.
	waste = 4 << 20
)

// Gate is the allowance of one workload's repeats. The zero value is ready.
type Gate struct {
	tokens float64
	first  decaying // first requests
	turned decaying // repeats refused
	at     time.Time

	read   decaying // bytes of bodies
	wasted decaying // of these, of repeats refused behind their bodies
	unread float64  // share of a request that is due to be refused unread
}

// Read notes that a body was read; wasted says that it showed a repeat which was
// refused.
func (g *Gate) Read(now time.Time, bytes int, wasted bool) {
	g.read.add(now, span, float64(bytes))
	if wasted {
		g.wasted.add(now, span, float64(bytes))
	}
}

// Unread reports that a request is to be refused before its body is read: so much
// was read lately of repeats that were refused that only a part of the workload's
// requests can be looked at. What is refused is the share that was wasted, evenly
// spread; the first of them to be read is new work still.
func (g *Gate) Unread(now time.Time) bool {
	wasted := g.wasted.at(now, span)
	if wasted <= waste*span.Seconds() {
		g.unread = 0
		return false
	}
	if g.unread += wasted / g.read.at(now, span); g.unread < 1 {
		return false
	}
	g.unread--
	return true
}

// First notes a request that repeats none.
func (g *Gate) First(now time.Time) {
	g.refill(now)
	g.first.add(now, span, 1)
	g.tokens = min(g.tokens+ratio, g.most(now))
}

// Take lets a repeat in, or returns after how long it might be: as long as the
// tokens for those that were refused lately take to come.
//
// In every stretch of time at most a tenth of the first requests, one a second
// and 10 repeats, with a tenth of what came in the 10 s before, are let in.
func (g *Gate) Take(now time.Time) (wait time.Duration, ok bool) {
	g.refill(now)
	if g.tokens >= 1 {
		g.tokens--
		return 0, true
	}
	g.turned.add(now, span, 1)
	rate := perSecond + ratio*g.first.at(now, span)/span.Seconds()
	seconds := (g.turned.at(now, span) + 1 - g.tokens) / rate
	return min(longestWait, time.Duration(seconds*float64(time.Second))), false
}

// Tokens is what is left.
func (g *Gate) Tokens(now time.Time) float64 {
	g.refill(now)
	return g.tokens
}

func (g *Gate) refill(now time.Time) {
	if g.at.IsZero() {
		g.at, g.tokens = now, reserve
		return
	}
	if d := now.Sub(g.at); d > 0 {
		g.at = now
		g.tokens += perSecond * d.Seconds()
	}
	g.tokens = min(g.tokens, g.most(now))
}

// most is what can be saved up: that of an idle workload, and a tenth of what
// came in lately.
func (g *Gate) most(now time.Time) float64 { return reserve + ratio*g.first.at(now, span) }

// decaying is a count that halves every so often.
type decaying struct {
	n    float64
	last time.Time
}

func (d *decaying) at(now time.Time, tau time.Duration) float64 {
	return d.n * math.Exp(-max(now.Sub(d.last), 0).Seconds()/tau.Seconds())
}

func (d *decaying) add(now time.Time, tau time.Duration, n float64) {
	d.n = d.at(now, tau) + n
	if now.After(d.last) {
		d.last = now
	}
}
