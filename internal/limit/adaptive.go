package limit

import (
	"math"
	"slices"
	"time"
)

// How a target's limit follows what it bears. The factors and thresholds are
// those of the algorithm notes, 4.3; the rest was found in the simulation in
// adaptive_test.go.
const (
	adaptTick = time.Second
	leastHold = time.Second // between two decreases
	mostHold  = 10 * time.Second

	refusedFactor = 0.8  // behind a refusal
	slowFactor    = 0.95 // behind slow answers
	growFactor    = 1.05 // a tick, where the limit is used,
	fasterEach    = 8    // ticks of growth in a row, by twice as much,
	backFactor    = 1.25 // and this much up to what was good, and at the most
	leastGrowth   = 0.5  // calls
	leastCalls    = 2
	mostLevel     = 1e15
	usedShare     = 0.8 // of the limit counts as used
	goodShare     = 0.9 // of a level that was refused counts as good

	refusedShare = 0.02 // of the calls of a tick
	refusedCalls = 10   // where so many ended

	slowRatio = 2.0 // of the usual times
	slowTicks = 2
	slowLeast = 5 // samples that are judged together
	paceLeast = 3 // likewise, each the median of twenty gaps or more
	// When the limit was lowered by a quarter and the times have not fallen by a
	// fifth, it is not our calls that make the target slow.
	futileLimit = 0.75
	futileRatio = 0.8
	futileFor   = time.Minute

	// The level that was refused last is tried again after two seconds, then
	// after twice as long each time that it is refused once more.
	firstProbe = 2 * time.Second
	lastProbe  = 32 * time.Second
	sameLevel  = 0.85 // of the level refused before, and above, is the same one
	newLevel   = 1.1  // of it shows that more is borne now

	// levelMemory is how far back, once to twice, the use counts that a refusal
	// is measured by: what was in flight when the target refused may have been
	// refused itself or ended since.
	levelMemory = 10 * time.Second
	// adaptMemory is how long a limit outlives the last sign that there is one.
	adaptMemory = 10 * time.Minute
)

// Adaptive learns how much may be in flight at a target: tokens, and calls
// beside them. It has no limit until the target refuses a call for want of
// capacity. Then it is four fifths of what was in flight; it falls by a fifth
// with further refusals, once a hold at most, and by a twentieth while first
// contents or tokens come at less than half their usual pace. It grows while it
// is used and answers come: quickly up to nine tenths of the level that was
// refused, then slowly at first, and the more rarely the more often that level was
// refused. Ten minutes without a refusal end it.
//
// Refusals that go on alike at a lower limit are not about how much is in
// flight: the limit is again what it was, and they are not listened to for a
// minute, and longer if they go on. Not so where nearly everything is refused.
//
// Slow answers alone make no limit: a target that is slow for everybody is no
// faster for those we send away. How long answers are has no part in it. A
// target that hangs leaves the limit as it is.
//
// The zero value is ready. The owner holds a lock.
type Adaptive struct {
	calls, tokens level
	on            bool
	sign          time.Time // of the last refusal
	lowered       time.Time
	hold          time.Time // no decrease before
	probe         time.Time // no growth past what was good before
	wait          time.Duration

	tick                  time.Time
	begun, refused, ended int  // calls of the tick
	served, dropped       bool // an answer came, the limit was lowered, in the tick

	first, pace window // ratios to the usual times
	slow        int    // ticks in a row
	grown       int    // likewise
	from, ratio float64
	futile      time.Time

	vain vain // refusals that lowering does not end
}

// level is the limit in one of the two units.
type level struct {
	limit   float64
	good    float64 // up to which it returns quickly
	bad     float64 // what was refused last
	used    float64 // the most of this tick
	denied  bool    // a call found no room in this tick
	peak    peaks
	largest peaks // single call: a limit below it would starve large ones
}

// Limit is what was learned; zero for none.
func (a *Adaptive) Limit() Load {
	if !a.on {
		return Load{}
	}
	return Load{Calls: int(a.calls.limit), Tokens: int64(a.tokens.limit)}
}

// Began notes a call of so many tokens, with what is in flight with it.
func (a *Adaptive) Began(now time.Time, tokens int64, used Load) {
	a.begun++
	a.calls.began(now, 1, float64(used.Calls))
	a.tokens.began(now, float64(tokens), float64(used.Tokens))
}

func (l *level) began(now time.Time, size, used float64) {
	l.used = max(l.used, used)
	l.peak.top(now, levelMemory, used)
	l.largest.top(now, levelMemory, size)
}

// Denied notes that a call was not made for want of room.
func (a *Adaptive) Denied(d Denial) {
	switch d {
	case DeniedCalls:
		a.calls.denied = true
	case DeniedTokens:
		a.tokens.denied = true
	case DeniedShare:
		a.calls.denied, a.tokens.denied = true, true
	}
}

// Served notes that an answer came, or began to.
func (a *Adaptive) Served() { a.served = true }

// Ended notes the end of a call that was not refused.
func (a *Adaptive) Ended() { a.ended++ }

// Slow notes a first content that took so many times what is usual for a
// prompt of its size.
func (a *Adaptive) Slow(ratio float64) { a.first.add(ratio) }

// Pace notes that tokens came so many times as far apart as usual, by the median
// of at least twenty gaps.
func (a *Adaptive) Pace(ratio float64) { a.pace.add(ratio) }

// Refusal is a call that the target refused for want of capacity.
type Refusal struct {
	Start time.Time // of the call: one from before the last decrease says nothing new
	// Explained says that our own quota gate was as good as empty: the refusal is
	// about the rate. It counts only as a share of the calls.
	Explained bool
	Hold      time.Duration // until a change shows: the usual first content; 1 to 10 s
}

// Refused notes a refusal. Advance with the same time comes before.
func (a *Adaptive) Refused(now time.Time, r Refusal) {
	a.refused++
	if r.Explained && !a.many() || a.deaf(now) {
		return
	}
	a.sign = now
	if now.Before(a.hold) || !r.Start.After(a.lowered) || !a.helps(now) {
		return
	}
	a.lower(now, r.Hold)
}

// many reports that the refusals are a share of the tick's calls that counts.
func (a *Adaptive) many() bool {
	n := a.refused + a.ended
	return n >= refusedCalls && float64(a.refused) >= refusedShare*float64(n)
}

func (a *Adaptive) lower(now time.Time, hold time.Duration) {
	old := a.calls.bad
	a.calls.refused(now, a.on)
	a.tokens.refused(now, a.on)
	a.wait = min(max(2*a.wait, firstProbe), lastProbe)
	if a.calls.bad < sameLevel*old || a.calls.limit >= a.calls.bad { // it bears less than before, or nothing
		a.wait = firstProbe
	}
	a.probe = now.Add(a.wait)
	a.on, a.dropped, a.lowered = true, true, now
	a.hold = now.Add(min(max(hold, leastHold), mostHold))
}

func (l *level) refused(now time.Time, on bool) {
	most := l.peak.top(now, levelMemory, 0)
	if on {
		most = min(most, l.limit)
	}
	l.bad, l.good = most, goodShare*most
	l.limit = max(refusedFactor*most, l.floor(now))
}

// floor is room for two calls of the largest size of late: a refusal of the only
// call says nothing about how many there may be, and large ones would starve.
func (l *level) floor(now time.Time) float64 {
	return leastCalls * max(1, l.largest.top(now, levelMemory, 0))
}

// Advance lets time pass, with what is in flight. ceiling is the operator's
// limit of calls, 0 for none. It is to be called before anything else is noted,
// and now and then while calls wait; what it does depends on whole seconds only.
func (a *Adaptive) Advance(now time.Time, used Load, ceiling int) {
	if a.tick.IsZero() {
		a.tick = now
	}
	if now.Sub(a.tick) < adaptTick {
		return
	}
	a.count(now.Sub(a.tick))
	a.tick = now.Add(-(now.Sub(a.tick) % adaptTick))
	if a.on && now.Sub(a.sign) >= adaptMemory {
		a.end()
	}
	if a.on {
		a.judge(now)
	}
	if ceiling > 0 {
		a.calls.limit = min(a.calls.limit, float64(ceiling))
	}
	a.refused, a.ended, a.begun, a.served, a.dropped = 0, 0, 0, false, false
	a.vain.depth = a.depth()
	a.calls.used, a.calls.denied = float64(used.Calls), false
	a.tokens.used, a.tokens.denied = float64(used.Tokens), false
}

// end forgets the limit.
func (a *Adaptive) end() {
	*a = Adaptive{tick: a.tick, first: a.first, pace: a.pace, vain: a.vain, refused: a.refused, ended: a.ended, begun: a.begun}
}

// judge ends a tick.
func (a *Adaptive) judge(now time.Time) {
	slow := a.slowed(now)
	switch {
	case a.dropped:
		a.grown = 0
	case slow && !now.Before(a.hold):
		a.ease(now)
	case slow || a.slow > 0 || !a.served:
	default:
		a.grow(!now.Before(a.probe))
		if a.calls.limit > newLevel*a.calls.bad {
			a.wait = 0 // more is borne than was
		}
	}
}

// grow lets the units grow that are used, by half a call at least. What goes
// well for long goes faster.
func (a *Adaptive) grow(probe bool) {
	step := max(growFactor-1, leastGrowth/a.calls.limit)
	factor := 1 + min(math.Ldexp(step, a.grown/fasterEach), max(backFactor-1, step))
	before := a.calls.limit
	a.calls.grow(factor, probe)
	a.tokens.grow(factor, probe)
	if probe && a.calls.limit > before {
		a.grown++
	}
}

func (l *level) grow(factor float64, probe bool) {
	switch {
	case !l.denied && l.used < usedShare*l.limit:
	case l.limit < l.good:
		l.limit = min(l.limit*backFactor, l.good)
	case probe:
		l.limit = min(l.limit*factor, mostLevel)
	}
}

// slowed judges the times of a tick, or of several where there are few.
func (a *Adaptive) slowed(now time.Time) bool {
	ratio, judged := a.first.take(slowLeast)
	if judged && ratio > slowRatio {
		a.slow++
	} else if judged {
		a.slow = 0
	}
	pace, paced := a.pace.take(paceLeast)
	slow := a.slow >= slowTicks && judged || paced && pace > slowRatio
	if judged && a.slow == 0 && !slow {
		a.from = 0
	}
	return slow && a.ours(now, max(ratio, pace))
}

// ours reports that lowering the limit helps, or may.
func (a *Adaptive) ours(now time.Time, ratio float64) bool {
	switch {
	case now.Before(a.futile):
		return false
	case a.from == 0:
		a.from, a.ratio = a.calls.limit, ratio
	case a.calls.limit <= futileLimit*a.from && ratio > futileRatio*a.ratio:
		a.calls.limit, a.tokens.limit = a.from, a.tokens.limit*a.from/a.calls.limit
		a.from, a.slow, a.futile = 0, 0, now.Add(futileFor)
		return false
	}
	return true
}

// ease lowers the limit a little.
func (a *Adaptive) ease(now time.Time) {
	a.lowered, a.hold, a.grown = now, now.Add(leastHold), 0
	a.calls.ease(now)
	a.tokens.ease(now)
}

func (l *level) ease(now time.Time) {
	l.limit = max(l.limit*slowFactor, l.floor(now))
	l.good = min(l.good, l.limit)
}

// window holds the last values until there are enough for a median.
type window struct {
	values [31]float64
	n      int
}

func (w *window) add(v float64) {
	w.values[w.n%len(w.values)] = v
	w.n++
}

// take returns the median of what was added since it last did, where that is at
// least so much.
func (w *window) take(least int) (float64, bool) {
	if w.n < least {
		return 0, false
	}
	v := w.values[:min(w.n, len(w.values))]
	w.n = 0
	slices.Sort(v)
	return v[len(v)/2], true
}
