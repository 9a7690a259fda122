// Package breaker decides whether a target may be used. One Breaker is one
// target's state machine:
//
//	Closed ---a rule trips--------------> Open       for a cool-down
//	Open -----cool-down over------------> HalfOpen   one call at a time
//	HalfOpen -probe failed or lost------> Open       for longer
//	HalfOpen -probes succeed in a row---> Ramp       5 % and rising
//	Ramp -----a rule trips--------------> Open       for longer
//	Ramp -----full share----------------> Closed
//
// How a call is used: Acquire gives a Permit or a reason why not;
// FirstContent says that the target has begun to answer; Settle says how it
// ended. Poll lets time pass where nothing happens: that is how a hang shows.
//
// What differs from the usual breaker:
//
//   - A hang trips it before any call times out. A call gets a provisional
//     verdict at the age at which a healthy one would long have answered, and
//     the silence of the whole target counts by itself (rules.go).
//   - A verdict is counted in the second in which it was reached, not the one
//     in which the call began, and calls in flight are in no denominator.
//   - Every permit carries the generation it was given in. What a call from
//     before a change of phase says after it changes nothing, and neither
//     does anything said twice.
//   - The probe is leased. One that never reports ends with its lease and
//     counts as failed; it cannot keep the machine half open.
//   - Cancelled calls and capacity refusals are neither success nor failure.
//   - Traffic returns through a ramp that waits while failures do.
//   - Breaks of few streams among many that run on are one event. Who lost one
//     comes back at once, and has to wait for a place.
//   - When a caller has nowhere else to go, or only where it would have to
//     queue, AcquireLastResort admits by the measured share of successes
//     instead of refusing everybody. What a target that was dead is trusted
//     with grows with its answers.
//
// It never decides which target is better, when a caller gives up, or
// whether a failure is the target's fault: those come in as arguments.
//
// The package is pure: no clock, no goroutine, no I/O; time and random
// numbers are arguments. A Breaker is not safe for concurrent use; the target
// that owns it holds the lock. One takes about 7 KB and 120 bytes a call in
// flight.
package breaker

import "time"

// Phase is where the machine stands.
type Phase uint8

// The phases.
const (
	Closed Phase = iota
	Ramp
	HalfOpen
	Open
)

var phaseNames = [...]string{"closed", "ramp", "half-open", "open"}

// String returns the name used in logs and on the dashboard.
func (p Phase) String() string { return phaseNames[p] }

// Number is the value of the metric: 0 closed, 1 ramp, 2 half-open, 3 open.
func (p Phase) Number() int { return int(p) }

// Outcome is how a call ended, as far as health is concerned.
type Outcome uint8

// The outcomes.
const (
	Success  Outcome = iota
	Failure          // an outage
	Ignored          // the caller's mistake, a cancel, our own deadline
	Capacity         // refused for want of capacity: alive, but no proof of health
)

// Verdict ends a call.
type Verdict struct {
	Outcome Outcome
	Connect bool    // the failure was to connect at all
	Left    bool    // Ignored, because the caller left or had no more time
	Rand    float64 // in [0,1): spreads the cool-down
}

// Refusal says why Acquire gave no permit.
type Refusal uint8

// The refusals.
const (
	None            Refusal = iota
	IsOpen                  // the cool-down is not over, or an operator holds it open
	ProbeBusy               // the one probe is out
	RampShare               // the ramp lets another call go first
	RampConcurrency         // as many calls in flight as the ramp allows yet
	Herd                    // many streams broke off a moment ago, and as many calls wait as usually do
)

// Forced is an operator's decision that overrides the rules.
type Forced uint8

// What an operator may decide.
const (
	Auto         Forced = iota // the rules decide
	ForcedOpen                 // nothing goes in, not even as a last resort
	ForcedClosed               // everything goes in, no rule trips
)

var forcedNames = [...]string{"", "open", "closed"}

// Call is what a permit is asked for.
type Call struct {
	Class   uint8         // latency class, 0..7
	Slow    time.Duration // age without content at which the call is slow; 0 for never
	Silence time.Duration // age of a waiting call from which silence counts; 0 for never
	Lease   time.Duration // life of a probe; at most MaxLease, or Slow if that is longer
	Rand    float64       // in [0,1)
	Need    Need          // of a last-resort call
}

// Need is what a caller has instead of a last-resort call.
type Need uint8

// The needs.
const (
	Nothing  Need = iota // nothing: every target is open
	Busy                 // a target that is well and has refused for capacity
	Queue                // one that would make the call wait in its own queue
	Degraded             // a degraded model, besides one that is busy
)

// Breaker is one target's state machine.
type Breaker struct {
	cfg       Config
	phase     Phase
	forced    Forced
	overruled Phase  // what it was when an operator had it closed
	cold      bool   // in the ramp only because it was not asked for long
	gen       uint32 // moves with every change of phase that makes older verdicts stale
	since     time.Time
	until     time.Time // Open: the end of the cool-down; zero when it has none
	floor     time.Time // an upstream's own wait
	trips     int       // doublings of the next cool-down
	eased     time.Time // when trips last fell
	reason    string    // of the last trip
	// slowest is the longest that an answer was away which was taken for silence;
	// 0 once the target is closed again.
	slowest  time.Duration
	silenced time.Time // when the last silence was taken for one

	window   window
	waiting  waiting
	streams  streams
	inflight int
	late     int               // calls in flight that have reached the age of slow without content
	peak     peak              // calls at once
	queue    peak              // of these, without content
	trust    float64           // calls without content at once, since it was dead; 0 when it is as before
	contents uint64            // first contents so far
	content  time.Time         // the last of them
	capacity time.Time         // the last capacity refusal
	run      int               // failures in a row
	first    uint64            // the first call of this phase
	connects int               // of these, failed connects at the end
	connect  [maxRun]time.Time // the last of them

	probe    *call // the leased probe
	leaseEnd time.Time
	long     *call     // a last-resort probe that has become slow and still may answer
	proofs   int       // probe successes in a row
	trickled time.Time // the last last-resort call to a dead target
	vain     int       // of these in a row, without an answer to any call

	share  float64 // of the ramp, in [minShare,1]
	credit float64 // share not yet used for a whole call
	step   time.Time
	halved time.Time

	forcedUntil time.Time

	nextID uint64
	free   *call
	events []Transition
}

// New returns a closed breaker.
func New(cfg Config) *Breaker {
	b := &Breaker{share: 1}
	b.Reconfigure(cfg)
	return b
}

// Reconfigure changes the rules' numbers and keeps the state. A cool-down
// that runs keeps its end.
func (b *Breaker) Reconfigure(cfg Config) {
	b.cfg = cfg.normal()
	b.window.resize(b.cfg)
}

// Acquire asks for a permit. Whoever gets one settles it exactly once.
func (b *Breaker) Acquire(now time.Time, c Call) (Permit, Refusal) {
	b.advance(now, c.Rand)
	switch b.phase {
	case Open:
		return Permit{}, IsOpen
	case HalfOpen:
		if b.probe != nil && !b.cfg.Herd {
			return Permit{}, ProbeBusy
		}
		p := b.begin(now, c, kindProbe)
		b.probe, b.leaseEnd = p.c, now.Add(b.lease(c))
		return p, None
	case Ramp:
		if b.inflight >= b.rampSlots() {
			return Permit{}, RampConcurrency
		}
		// The accumulator admits exactly the share, evenly, without chance.
		if b.credit += b.share; b.credit < 1 {
			return Permit{}, RampShare
		}
		b.credit--
	case Closed:
		if b.herded(now) {
			return Permit{}, Herd
		}
	}
	return b.begin(now, c, kindOrdinary), None
}

// herded reports that many streams have just broken off and that as many calls
// wait for content as the target carried before: those who come back would
// overrun it.
func (b *Breaker) herded(now time.Time) bool {
	d := now.Sub(b.streams.herd)
	if d >= herdFor || d < 0 || b.forced != Auto {
		return false
	}
	most := float64(b.keepsWaiting()) * (1 + d.Seconds()/herdStep.Seconds())
	return b.waiting.n-b.waiting.late >= int(most)
}

// Herding reports that calls may be held back for that reason.
func (b *Breaker) Herding(now time.Time) bool {
	return b.phase == Closed && now.Sub(b.streams.herd) < herdFor
}

// lease is the life of a probe.
func (b *Breaker) lease(c Call) time.Duration {
	longest := max(b.cfg.MaxLease, c.Slow) // a whole unary answer may take longer than MaxLease
	if c.Lease <= 0 {
		return longest
	}
	return min(c.Lease, longest)
}

// rampSlots caps calls in flight during the ramp at its share of what the
// target carried when it was well.
func (b *Breaker) rampSlots() int {
	return max(2, int(b.share*float64(b.carries())))
}

// carries is how many calls at once the target is known to bear.
func (b *Breaker) carries() int { return max(leastPeak, b.peak.most) }

// keepsWaiting is how many of them may be without content.
func (b *Breaker) keepsWaiting() int { return max(leastPeak, b.queue.most) }

// full reports that a target which is not closed has as many calls as it is
// trusted with. Calls that hang are a load only up to as much again.
func (b *Breaker) full() bool {
	waiting, most := b.waiting.n-b.waiting.late, b.keepsWaiting()
	if b.trust > 0 {
		most = min(most, int(b.trust))
	}
	return waiting >= most || b.inflight-b.late >= b.carries() || b.inflight >= 2*b.carries()
}

// earn lets the trust in a target that was dead grow with an answer: fourfold
// in the time of one where callers have nothing else, twofold where they have.
func (b *Breaker) earn(c *call) {
	if b.trust == 0 {
		return
	}
	step := 1.0
	if c.alone {
		step = 3
	}
	if b.trust += step; b.trust >= float64(b.keepsWaiting()) {
		b.trust = 0
	}
}

// spend takes trust back for a failure. Where callers have nothing else it is
// so little that a target which answers 5 % of its calls still earns more.
func (b *Breaker) spend(c *call) {
	step := 0.5
	if c.alone {
		step = 0.125
	}
	if b.trust > 0 {
		b.trust = max(1, b.trust-step)
	}
}

// AcquireLastResort admits a call that no other target will take: ask it only
// when every candidate has refused. A target that still answers some calls is
// used up to the load it is known to carry, in whatever phase; one that answers
// none gets one call at a time, now and then, which is how its recovery is seen
// at once, and then more with each answer. Where another target is only busy,
// the pauses between such calls grow. A call that somebody else takes too is
// admitted by chance, the more of its last calls have succeeded.
func (b *Breaker) AcquireLastResort(now time.Time, c Call) (Permit, bool) {
	b.advance(now, c.Rand)
	switch {
	case b.forced == ForcedOpen:
		return Permit{}, false
	case b.phase == Closed:
		if b.herded(now) {
			return Permit{}, false
		}
		return b.begin(now, c, kindOrdinary), true
	case b.cold && c.Need == Nothing:
		return b.begin(now, c, kindOrdinary), true
	case b.window.recentShare(now) >= aliveShare:
		if b.full() || !b.spares(now, c) {
			return Permit{}, false
		}
		return b.begin(now, c, kindLast), true
	}
	b.trust = 1 // dead
	switch {
	case c.Need == Queue:
		return Permit{}, false
	case b.probe != nil || !b.trickled.IsZero() && now.Sub(b.trickled) < b.trickle(c.Need):
		return Permit{}, false
	}
	b.trickled = now
	b.vain++
	p := b.begin(now, c, kindLast)
	p.probe = true
	b.probe, b.leaseEnd = p.c, now.Add(b.lease(c))
	if c.Slow > 0 { // others wait for this one: it may not be slow
		b.leaseEnd = now.Add(min(b.lease(c), c.Slow))
	}
	// Where there is nothing else a slow answer is better than none: one at a
	// time may run on while the next is out.
	p.long = c.Need == Nothing && b.long == nil
	p.c.long = p.long
	return p, true
}

// spares reports whether a call that somebody else takes too may be admitted.
func (b *Breaker) spares(now time.Time, c Call) bool {
	switch c.Need {
	case Queue:
		good, n := b.window.last(now, kept, recentFor)
		return c.Rand < (float64(good)/float64(max(n, 1))-queueNone)/(queueAll-queueNone)
	case Degraded:
		return c.Rand < (b.window.recentShare(now)-degradedNone)/(degradedAll-degradedNone)
	}
	return true
}

// trickle is the pause between last-resort calls to a dead target.
func (b *Breaker) trickle(n Need) time.Duration {
	d := b.cfg.Trickle
	if n == Nothing {
		return d
	}
	for i := 1; i < b.vain && d < maxTrickle; i++ {
		d *= 2
	}
	return max(b.cfg.Trickle, min(d, maxTrickle))
}

// FirstContent notes that the call is being answered. It is a provisional
// success: a stream may run for minutes, and to hear of successes only at
// their end, of failures at once, would make a healthy target look ill. For a
// probe it is the proof.
func (b *Breaker) FirstContent(now time.Time, p Permit) {
	c := p.valid()
	if c == nil || c.answered {
		return
	}
	b.waiting.remove(c)
	b.arrive(c)
	c.answered = true
	b.streams.begin(now, c)
	switch {
	case c.gen == b.gen && !c.lost:
		b.answer(now, c)
	case b.refutes(c):
		b.refute(now, c)
	}
}

// refutes reports that the call is one of those whose waiting opened the breaker
// as silence: by being answered after all it shows that the target is slow, not
// dead. Only callers who had nowhere else to go are still there.
func (b *Breaker) refutes(c *call) bool {
	return b.reason == silence && b.phase >= HalfOpen && b.forced == Auto && c.gen == b.gen-1 && c.verdict != ok
}

// refute takes the silence back: the cool-down is over, what it said of the calls
// that wait is void, and the answer is a proof like that of a last resort.
func (b *Breaker) refute(now time.Time, c *call) {
	b.window.void(b.silenced)
	if b.phase == Open {
		b.trips = max(0, b.trips-1)
		b.move(now, HalfOpen, "answered")
		b.trust = 0
	}
	b.slowest = max(b.slowest, now.Sub(c.start))
	c.gen, c.kind, c.alone, c.verdict = b.gen, kindLast, true, none
	b.answer(now, c)
}

// arrive notes that a call is no longer late.
func (b *Breaker) arrive(c *call) {
	if c.late {
		c.late = false
		b.late--
	}
}

// answer counts a first content, or the whole of an answer without one.
func (b *Breaker) answer(now time.Time, c *call) {
	c.answered = true
	b.contents++
	b.content = now
	b.run, b.connects, b.vain = 0, 0, 0
	b.window.add(now, content)
	b.mark(now, c, ok)
	switch {
	case b.Herding(now): // what waits now is let in by what waited before
	case b.phase == Closed:
		b.peak.note(now, b.inflight)
		b.queue.note(now, b.waiting.n+1)
	case b.window.recentShare(now) < wellShare:
	default: // it bears this: one more with each answer
		if 2*b.inflight >= b.carries() {
			b.peak.note(now, b.carries()+1)
		}
		if 2*b.waiting.n >= b.keepsWaiting() {
			b.queue.note(now, b.keepsWaiting()+1)
		}
	}
	b.earn(c)
	probe := c == b.probe
	if probe {
		b.probe = nil
	}
	if c == b.long {
		b.long = nil
	}
	if b.phase >= HalfOpen && (probe || c.kind == kindLast) {
		b.prove(now, c)
	}
}

// Settle ends a call. Only the first Settle of a permit counts, and a verdict
// from an earlier generation changes nothing but the count of calls.
func (b *Breaker) Settle(now time.Time, p Permit, v Verdict) {
	c := p.valid()
	if c == nil {
		return
	}
	b.waiting.remove(c)
	b.arrive(c)
	b.inflight--
	b.streams.end(now, c)
	if c.gen == b.gen {
		b.advance(now, v.Rand)
	}
	if c.gen == b.gen && !c.lost { // time alone may have moved the machine on
		b.record(now, c, v)
		b.conclude(now, c, v)
	}
	if c == b.long {
		b.long = nil
	}
	b.recycle(c)
}

// record puts a verdict into the window.
func (b *Breaker) record(now time.Time, c *call, v Verdict) {
	switch v.Outcome {
	case Success:
		if !c.answered {
			b.answer(now, c)
		}
		b.window.end(c)
	case Failure:
		age := time.Duration(0) // of the stream that broke
		if c.answered {
			age = b.window.age(now, c)
			if b.excuse(now, c) {
				return
			}
		}
		b.mark(now, c, failed)
		b.window.end(c)
		b.spend(c)
		b.run = b.window.run(now, b.first, age)
		if !v.Connect {
			b.connects = 0
			break
		}
		b.connect[b.connects%maxRun] = now
		b.connects++
	case Capacity:
		b.capacity = now
		if b.trust > 0 {
			b.trust = max(1, b.trust/2)
		}
		b.unmark(now, c)
	case Ignored:
		b.unmark(now, c)
		if v.Left && b.deserted(now, c) {
			b.window.add(now, slow)
			b.mark(now, c, failed)
		}
	}
}

// deserted reports that a caller has waited long at a target that has given no
// content yet. A router that has just begun does not know what is slow here; if
// its callers leave before it does, it would never learn that a target hangs.
// From the first answer on, who leaves may just have less patience than the
// target needs.
func (b *Breaker) deserted(now time.Time, c *call) bool {
	return b.contents == 0 && !c.answered && c.verdict == none && now.Sub(c.start) >= longWait
}

// excuse judges the break of a stream that had begun well, and reports that it
// is no failure of its own: few have broken of those that it ran with, and the
// event has been counted. Once as many have broken as run on, what was excused
// counts after all.
func (b *Breaker) excuse(now time.Time, c *call) bool {
	if b.phase > Ramp || c.begun == 0 || c.verdict != ok {
		return false
	}
	older, all := b.streams.cut(now, c)
	switch {
	case all >= b.cfg.FailureRatio:
		for range b.streams.excused {
			b.window.add(now, failed)
		}
		b.window.charge(now, c, min(b.streams.excused, kept))
		b.streams.excused = 0
		return false
	case older >= b.cfg.FailureRatio || b.streams.counts(now, b.cfg.Window):
		return false
	}
	if b.streams.excused++; b.streams.excused >= b.keepsWaiting() && b.streams.herd.Before(b.streams.event) {
		b.streams.herd = now
	}
	b.window.take(c.sec, c.verdict)
	b.window.forget(c)
	c.verdict = none
	return true
}

// conclude draws the consequence of a verdict for the phase.
func (b *Breaker) conclude(now time.Time, c *call, v Verdict) {
	probe := c == b.probe
	if probe {
		b.probe = nil
	}
	switch {
	case v.Outcome != Failure && c.verdict != failed:
	case b.phase <= Ramp:
		b.judge(now, v.Rand)
	case v.Outcome != Failure: // who leaves a probe lets the next one try
	case probe && c.kind == kindProbe:
		b.open(now, "probe_failed", v.Rand)
	default: // a last-resort call, or a proof that broke off: not a trip of its own
		b.proofs = 0
	}
}

// prove counts a successful probe; enough of them in a row start the ramp.
// Last-resort calls are many, and of many calls to a target that fails half
// of them three in a row soon succeed: they prove something only when the
// share agrees.
func (b *Breaker) prove(now time.Time, c *call) {
	b.proofs++
	if b.proofs < b.cfg.Probes || c.kind == kindLast && b.window.recentShare(now) < wellShare {
		return
	}
	b.share, b.credit, b.step = minShare, 1, now
	// The call that proved it goes over into the ramp with its verdict, for it
	// may still say how it ended.
	b.window.take(c.sec, c.verdict)
	b.move(now, Ramp, "proved")
	c.gen, c.sec = b.gen, b.window.add(now, c.verdict)
}

// Floor notes an upstream's own wait: a cool-down does not end before it, as
// far as it is not beyond MaxFloor.
func (b *Breaker) Floor(now, until time.Time) {
	if limit := now.Add(b.cfg.MaxFloor); until.After(limit) {
		until = limit
	}
	if until.After(b.floor) {
		b.floor = until
	}
	if b.phase == Open && b.forced == Auto && until.After(b.until) {
		b.until = until
	}
}

// Force overrides the rules until a time, or until changed when it is zero.
// Verdicts are kept meanwhile. Back in Auto, a target that was held open has to prove
// itself, and so has one that was not closed when it was held closed, unless it has
// shown since that it is well.
func (b *Breaker) Force(now time.Time, f Forced, until time.Time) {
	was := b.forced
	b.forced, b.forcedUntil = f, until
	switch {
	case f == was:
		if f == ForcedOpen {
			b.until = until
		}
	case f == ForcedOpen:
		b.move(now, Open, "forced_open")
		b.until = until
	case f == ForcedClosed:
		b.overruled = b.phase
		b.share, b.eased = 1, now
		b.move(now, Closed, "forced_closed")
	case was == ForcedOpen:
		b.until = now
	case b.overruled != Closed && !b.Healthy(now):
		b.move(now, HalfOpen, "forced_closed_over")
	}
}

// Ease brings traffic back through the ramp to a closed target that was kept from it,
// and has answered nobody for as long as a ramp takes: it may be cold. Who has nowhere
// else to go is let in all the same, for nothing speaks against the target.
func (b *Breaker) Ease(now time.Time) {
	if b.phase != Closed || b.forced != Auto || b.cfg.Ramp <= 0 || b.contents == 0 || now.Sub(b.content) < b.cfg.Ramp {
		return
	}
	b.share, b.credit, b.step = minShare, 1, now
	b.move(now, Ramp, "undrained")
	b.cold = true
}
