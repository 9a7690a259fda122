package limit

import (
	"math"
	"math/bits"
	"time"
)

// debtBursts bounds what one estimate can owe: one burst for what the bucket
// holds and one extra. A wrong one then delays the next requests by at most one
// burst's refill instead of locking them out. What was really used is owed in
// full, up to longestDebt: otherwise requests larger than the burst would pass at
// many times the rate.
const (
	debtBursts  = 2
	longestDebt = time.Minute
)

// GCRA is a rate limit by the generic cell rate algorithm: a bucket that
// refills evenly and is kept as a single number, the theoretical arrival time
// (TAT) at which it would be full again. A nil GCRA limits nothing.
type GCRA struct {
	perMinute int64
	burst     int64
	base      time.Time // origin of tat; set by the first use
	tat       int64     // ns after base; at or before now means full
}

// NewGCRA allows perMinute units a minute and burst units at once. It returns
// nil, no limit, when perMinute is not positive. A burst below 1 becomes 1.
func NewGCRA(perMinute, burst int64) *GCRA {
	if perMinute <= 0 {
		return nil
	}
	return &GCRA{perMinute: perMinute, burst: min(max(1, burst), math.MaxInt64/8)}
}

// Take asks for n units. When they are there it charges them and returns true;
// otherwise it charges nothing and returns how long to wait for them, more
// than 0.
//
// A request for more than the burst passes when the bucket is full, so that a
// large one is never starved; it is charged for up to two bursts. A negative n
// counts as 0.
func (g *GCRA) Take(now time.Time, n int64) (wait time.Duration, ok bool) {
	if g == nil {
		return 0, true
	}
	t := g.at(now)
	tat := max(g.tat, t)
	if over := g.over(tat-t, n); over > 0 {
		return time.Duration(over), false
	}
	g.tat = tat + g.cost(g.charge(n))
	return 0, true
}

// Peek tells what Take would answer, without charging anything.
func (g *GCRA) Peek(now time.Time, n int64) (wait time.Duration, ok bool) {
	if g == nil {
		return 0, true
	}
	t := g.at(now)
	over := g.over(max(g.tat, t)-t, n)
	return time.Duration(max(0, over)), over <= 0
}

// Burst is how many units may go at once; 0 for no limit.
func (g *GCRA) Burst() int64 {
	if g == nil {
		return 0
	}
	return g.burst
}

// over is how long n units are to wait when the bucket is full in tat.
func (g *GCRA) over(tat, n int64) int64 { return tat + g.cost(min(n, g.burst)) - g.full() }

// full is what the bucket holds: a burst, also one taken unit by unit, with what
// that adds by rounding.
func (g *GCRA) full() int64 {
	if one := g.cost(1); g.burst <= maxCost/one {
		return max(g.cost(g.burst), g.burst*one)
	}
	return g.cost(g.burst)
}

// Settle replaces the estimate that Take charged by what was really used.
// actual 0 gives everything back. Owing more than a minute, or one extra burst
// where that is longer, is forgiven.
func (g *GCRA) Settle(now time.Time, estimated, actual int64) {
	if g == nil {
		return
	}
	t := g.at(now)
	delta := g.cost(max(0, actual)) - g.cost(g.charge(estimated))
	if delta <= 0 {
		g.tat = max(g.tat+delta, min(g.tat, t)) // full is full
		return
	}
	tat := max(g.tat, t)
	g.tat = max(tat, min(tat+delta, t+max(int64(longestDebt), g.cost(debtBursts*g.burst))))
}

func (g *GCRA) charge(n int64) int64 {
	return max(0, min(n, debtBursts*g.burst))
}

// at is now as nanoseconds after base.
func (g *GCRA) at(now time.Time) int64 {
	if g.base.IsZero() {
		g.base = now
	}
	return int64(now.Sub(g.base))
}

// maxCost keeps sums of a few costs and a time within int64.
const maxCost = math.MaxInt64 / 8

// cost is the time in which n units flow back, in ns, rounded up so that the
// rate is never exceeded.
func (g *GCRA) cost(n int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(time.Minute))
	d := uint64(g.perMinute)
	if hi >= d {
		return maxCost
	}
	q, r := bits.Div64(hi, lo, d)
	if r > 0 {
		q++
	}
	return int64(min(q, maxCost))
}
