package limit

import (
	"math"
	"time"
)

// When refusals are not about how much is in flight. A target that has no room
// refuses at the level that it refused last, or above, and hardly below; where
// it suddenly bears less, it refuses a share, and the rest is what it bears. One
// that refuses by chance, or for what others do, refuses the same share at every
// level, and a lower limit costs more calls than it saves. The numbers were
// found in the simulations in adaptive_test.go and adaptive_futile_test.go.
const (
	// lowLevel of the level that was refused last, and below, is low: a little
	// above goodShare, where the limit rests before it is tried again. So is
	// futileLimit of where it began.
	lowLevel = 0.94
	// lowDrops is how many times a low limit must have been refused. It is then
	// at about 3/4 of where it began.
	lowDrops = 2
	// helpedShare: where fewer than this part of the share that was refused
	// before are refused at a low level, and not by chance, lowering helps.
	helpedShare = 0.5
	// mostVain: who refuses more of the calls at a low level is as good as
	// refusing everything, where the least limit is right.
	mostVain = 0.5
	// vainMemory is how long drops belong together.
	vainMemory = 5 * time.Minute
	// Refusals that lowering does not end are not listened to for futileFor, then
	// for twice as long each time, up to lastVain.
	lastVain = 16 * time.Minute
	// Unless so many are refused of late, and so many times the share, or half of
	// what was served as well: it helped.
	wrongCalls = 10
	wrongRatio = 3.0
	lateFor    = 20 * time.Second // time constant of what was refused of late
)

// tally counts calls.
type tally struct{ refused, all float64 }

func (t tally) plus(o tally) tally { return tally{t.refused + o.refused, t.all + o.all} }

func (t tally) times(f float64) tally { return tally{f * t.refused, f * t.all} }

func (t tally) share() float64 {
	if t.all <= 0 {
		return 0
	}
	return t.refused / t.all
}

// sure is the share without one refusal, which may be chance.
func (t tally) sure() float64 { return tally{max(0, t.refused-1), t.all}.share() }

// vain finds out whether lowering the limit ends the refusals.
type vain struct {
	late      tally      // decays
	low, high tally      // calls at a low limit, and at others
	drops     int        // of a low limit
	since     time.Time  // of the first drop, low or not
	top       float64    // calls in flight that were refused first, or the most since
	from      [2]float64 // limits of calls and tokens before, 0 for none
	depth     float64    // of the limit as the tick began: low as a part of what is served

	until time.Time // refusals are not listened to
	span  time.Duration
	share float64   // of the calls that was refused anyway
	pause time.Time // no judgement before: the last one was wrong
}

// ticked are the calls of the tick so far: those that began, since answers may
// take minutes more than refusals.
func (a *Adaptive) ticked() tally {
	return tally{float64(a.refused), float64(max(a.begun, a.refused))}
}

// depth is the limit as a part of the level that was refused; half a call
// more, for limits of a few. The least limit is as deep as can be.
func (a *Adaptive) depth() float64 {
	switch {
	case !a.on || a.calls.bad <= 0 || a.vain.top <= 0:
		return math.Inf(1)
	case a.calls.limit <= leastCalls:
		return 0
	}
	return (a.calls.limit + leastGrowth) * min(1/a.calls.bad, lowLevel/futileLimit/a.vain.top)
}

// low reports that the tick's limit is lower than what the target, by what it
// refuses, may bear.
func (a *Adaptive) low() bool {
	t := a.ticked()
	served := 1 - max(t.sure(), a.vain.late.plus(t).sure())
	return a.on && a.vain.depth <= lowLevel*served
}

// count ends a tick that took so long.
func (a *Adaptive) count(took time.Duration) {
	t, v := a.ticked(), &a.vain
	if a.low() {
		v.low = v.low.plus(t)
	} else if a.on {
		v.high = v.high.plus(t)
	}
	v.late = v.late.plus(t).times(math.Exp(-took.Seconds() / lateFor.Seconds()))
}

// deaf reports that refusals are not listened to.
func (a *Adaptive) deaf(now time.Time) bool {
	v := &a.vain
	if !now.Before(v.until) {
		return false
	}
	late := v.late.plus(a.ticked())
	if late.refused < wrongCalls || late.share() <= min(wrongRatio*v.share, (1+v.share)/2) {
		return true
	}
	v.until, v.span, v.pause = now, v.span/2, now.Add(futileFor)
	return false
}

// helps reports that lowering the limit helps, or may. Where it does not, the
// limit is again what it was.
func (a *Adaptive) helps(now time.Time) bool {
	v := &a.vain
	if v.since.IsZero() || now.Sub(v.since) >= vainMemory {
		a.descend(now)
	}
	v.top = max(v.top, a.calls.bad)
	if !a.low() {
		return true
	}
	v.drops++
	low := v.low.plus(a.ticked())
	if v.drops < lowDrops || now.Before(v.pause) || low.share() > mostVain || helped(low, v.high) {
		return true
	}
	a.restore(now, max(low.share(), low.plus(v.high).share()))
	return false
}

// helped reports that fewer were refused at a low limit, by more than two
// standard deviations.
func helped(low, high tally) bool {
	return low.refused+2*math.Sqrt(low.refused) < helpedShare*high.share()*low.all
}

// descend begins to count.
func (a *Adaptive) descend(now time.Time) {
	v := &a.vain
	v.since, v.drops, v.low, v.high = now, 0, tally{}, v.late
	v.top, v.from = a.calls.peak.top(now, levelMemory, 0), [2]float64{}
	if a.on {
		v.top = min(v.top, a.calls.limit)
		v.from = [2]float64{a.calls.limit, a.tokens.limit}
	}
}

// restore takes back what lowering did, and listens to no such refusals for a
// while.
func (a *Adaptive) restore(now time.Time, share float64) {
	v := &a.vain
	if now.Sub(v.until) >= adaptMemory {
		v.span = 0
	}
	v.span = min(max(2*v.span, futileFor), lastVain)
	v.until, v.share, v.since = now.Add(v.span), share, time.Time{}
	a.on, a.lowered, a.wait, a.probe = v.from[0] > 0, now, 0, now
	a.calls.restore(v.from[0])
	a.tokens.restore(v.from[1])
}

func (l *level) restore(limit float64) {
	l.limit = max(l.limit, limit)
	l.good, l.bad = l.limit, l.limit
}
