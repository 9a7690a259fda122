// Package breaker decides whether a target may be used. One Breaker is one
// target's state machine:
//
//	Closed --(a rule trips)--> Open --(cool-down over)--> HalfOpen
//	HalfOpen --(a probe fails or is lost)--> Open, for longer
//	HalfOpen --(probes succeed in a row)--> Ramp --(full share)--> Closed
//
// What differs from the usual breaker:
//
//   - A hang trips it before any call times out. Calls are judged at the age
//     at which a healthy call would long have answered, and silence of the
//     whole target counts by itself.
//   - Verdicts are put into the second in which they were reached, not the one
//     in which the call began, and calls in flight are not in the denominator.
//   - Every permit carries the generation it was given in. What a call from
//     before an outage says after it changes nothing.
//   - Half-open has one leased probe. A probe that never reports cannot wedge
//     the machine: the lease ends and counts as a failure.
//   - Cancelled calls and capacity refusals are neither success nor failure.
//   - Traffic returns through a ramp that waits while failures do.
//   - When a caller has nowhere else to go, AcquireLastResort admits by the
//     measured share of successes instead of refusing everybody.
//
// The package is pure: no clock, no goroutine, no I/O; time and random
// numbers are arguments. A Breaker is not safe for concurrent use; the target
// that owns it holds the lock.
package breaker

import (
	"time"
)

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

// String returns the name used in logs and on the state page.
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
	Rand    float64 // in [0,1): spreads the cool-down
}

// Refusal says why Acquire gave no permit.
type Refusal uint8

// The refusals.
const (
	None      Refusal = iota
	IsOpen            // the cool-down is not over
	ProbeBusy         // the one probe is out
	RampShare         // the ramp lets another call go first
)

// Config holds the rules' numbers. Sources: algorithm notes, sections 1.3,
// 1.4 and 3.3.
type Config struct {
	Window       time.Duration // ratio window, whole seconds up to LongWindow
	MinRequests  int           // verdicts needed in Window
	FailureRatio float64       // share of failures that trips, in (0,1]
	Last         int           // the same share of this many last verdicts trips too, at most 64
	Run          int           // failures in a row that trip
	LongWindow   time.Duration // second window for little traffic, at most 120 s
	LongMin      int           // verdicts needed in LongWindow
	SlowRatio    float64       // share of slow verdicts that trips
	Waiting      int           // waiting calls needed before silence counts
	Connects     int           // failed connects in a row that trip, within Window
	CoolDown     time.Duration // first cool-down; doubles with each trip
	MaxCoolDown  time.Duration
	MaxFloor     time.Duration // longest wait of an upstream that is obeyed
	Probes       int           // successes in a row that close
	MaxLease     time.Duration // longest life of a probe
	Ramp         time.Duration // time from the first share to full share
	Trickle      time.Duration // pause between last-resort calls to a dead target
}

// Default returns the numbers of the design.
func Default() Config {
	return Config{
		Window: 10 * time.Second, MinRequests: 20, FailureRatio: 0.5, Last: 50, Run: 10,
		LongWindow: 120 * time.Second, LongMin: 10, SlowRatio: 0.8, Waiting: 5, Connects: 3,
		CoolDown: 5 * time.Second, MaxCoolDown: 60 * time.Second, MaxFloor: 120 * time.Second,
		Probes: 3, MaxLease: 30 * time.Second, Ramp: 60 * time.Second, Trickle: time.Second,
	}
}

const (
	classes   = 8    // latency classes kept apart, each first in first out
	minShare  = 0.05 // the ramp starts here
	maxTrips  = 16   // beyond it the cool-down has long reached its maximum
	healthyIn = 60   // seconds of verdicts behind SuccessShare and Healthy
	// silenceProof is how many first contents must be missing, at the rate
	// seen before the silence, before it counts: a quiet target is not a
	// hung one. e^-12 is one false alarm in 160,000.
	silenceProof = 12
)

// Call is what a permit is asked for.
type Call struct {
	Class   uint8         // latency class, 0..7
	Slow    time.Duration // age without content at which the call is slow
	Silence time.Duration // age of the oldest waiting call from which silence counts
	Lease   time.Duration // life of a probe, bounded by MaxLease
	Rand    float64       // in [0,1)
}

// Breaker is one target's state machine.
type Breaker struct {
	cfg    Config
	phase  Phase
	gen    uint32 // moves with every phase change that makes older verdicts stale
	since  time.Time
	until  time.Time // end of the cool-down
	floor  time.Time // an upstream's own wait
	trips  int       // exponent of the next cool-down
	eased  time.Time // when trips last fell
	reason string    // of the last trip

	window   window
	rulesSec int64 // verdicts up to this second belong to an earlier phase
	fresh    int   // verdicts since then
	run      int   // failures in a row
	connects int   // failed connects in a row
	connect  time.Time
	waiting  waiting
	inflight int
	peak     peak
	content  time.Time // last first content
	capacity time.Time // last capacity refusal

	probe    *call // the leased probe
	leaseEnd time.Time
	proofs   int // probe successes in a row

	share  float64 // of the ramp
	credit float64
	step   time.Time // the ramp's last step
	tried  time.Time // last last-resort call to a dead target

	nextID uint64
	free   *call
	events []Transition
}

// Transition is a change of phase.
type Transition struct {
	From, To Phase
	Reason   string
	At       time.Time
}

// New returns a closed breaker.
func New(cfg Config) *Breaker {
	b := &Breaker{cfg: cfg, share: 1}
	b.waiting.init()
	return b
}

// Reconfigure changes the rules' numbers and keeps the state.
func (b *Breaker) Reconfigure(cfg Config) { b.cfg = cfg }

// Events returns the transitions since the last call.
func (b *Breaker) Events() []Transition {
	if len(b.events) == 0 {
		return nil
	}
	e := b.events
	b.events = nil
	return e
}

// Phase is the phase at now: an open breaker whose cool-down is over is
// half-open.
func (b *Breaker) Phase(now time.Time) Phase {
	if b.phase == Open && !now.Before(b.until) {
		return HalfOpen
	}
	return b.phase
}

// Reopens is when asking again makes sense; zero when now.
func (b *Breaker) Reopens(now time.Time) time.Time {
	switch {
	case b.phase == Open && now.Before(b.until):
		return b.until
	case b.probe != nil:
		return b.leaseEnd
	}
	return time.Time{}
}

// Acquire asks for a permit.
func (b *Breaker) Acquire(now time.Time, c Call) (Permit, Refusal) {
	b.advance(now, c.Rand)
	switch b.phase {
	case Open:
		return Permit{}, IsOpen
	case HalfOpen:
		if b.probe != nil {
			return Permit{}, ProbeBusy
		}
		p := b.begin(now, c, kindProbe)
		b.probe, b.leaseEnd = p.c, now.Add(min(c.Lease, b.cfg.MaxLease))
		return p, None
	case Ramp:
		if b.inflight >= b.rampSlots() {
			return Permit{}, RampShare
		}
		if b.credit += b.share; b.credit < 1 {
			return Permit{}, RampShare
		}
		b.credit--
	}
	return b.begin(now, c, kindOrdinary), None
}

// AcquireLastResort admits a call that no other target will take. A target
// that still answers some calls is used up to the load it is known to carry;
// one that answers none gets a single call now and then, which is how its
// recovery is seen.
func (b *Breaker) AcquireLastResort(now time.Time, c Call) (Permit, bool) {
	b.advance(now, c.Rand)
	if b.phase == Closed {
		p, r := b.Acquire(now, c)
		return p, r == None
	}
	if b.window.recentShare(now) > 0 {
		if b.inflight >= max(8, b.peak.of(now)) {
			return Permit{}, false
		}
		return b.begin(now, c, kindLast), true
	}
	if b.probe != nil || now.Sub(b.tried) < b.cfg.Trickle && !b.tried.IsZero() {
		return Permit{}, false
	}
	b.tried = now
	p := b.begin(now, c, kindLast)
	p.probe = true
	b.probe, b.leaseEnd = p.c, now.Add(min(c.Slow, c.Lease, b.cfg.MaxLease))
	return p, true
}

// rampSlots caps calls in flight during the ramp at its share of what the
// target carried when it was well.
func (b *Breaker) rampSlots() int {
	return max(2, int(b.share*float64(max(8, b.peak.last))))
}

// FirstContent notes that the call no longer waits. For a probe it is the
// proof: a stream may run for minutes, and the target has answered.
func (b *Breaker) FirstContent(now time.Time, p Permit) {
	c := p.valid()
	if c == nil || c.answered {
		return
	}
	c.answered = true
	b.waiting.remove(c)
	if c.gen != b.gen {
		return
	}
	b.content = now
	b.window.at(now).content++
	if c == b.probe || c.kind == kindLast && b.phase >= HalfOpen {
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
	defer b.recycle(c)
	b.waiting.remove(c)
	b.inflight--
	if c.gen != b.gen {
		return
	}
	b.advance(now, v.Rand)
	if c.gen != b.gen {
		return // time alone has moved the machine on
	}
	b.record(now, c, v)
	switch {
	case c == b.probe:
		b.settleProbe(now, c, v)
	case c.kind == kindLast && b.phase >= HalfOpen:
		if v.Outcome == Success && !c.proven {
			b.prove(now, c)
		} else if v.Outcome == Failure {
			b.proofs = 0
		}
	case v.Outcome == Failure && b.phase <= Ramp:
		b.judge(now, v.Rand)
	}
}

// record puts a verdict into the windows.
func (b *Breaker) record(now time.Time, c *call, v Verdict) {
	switch v.Outcome {
	case Success:
		b.connects, b.run = 0, 0
		b.fresh++
		b.window.success(now, c)
	case Failure:
		b.run++
		b.fresh++
		b.window.failure(now, c)
		if !v.Connect {
			break
		}
		if now.Sub(b.connect) > b.cfg.Window {
			b.connects = 0
		}
		b.connects++
		b.connect = now
	case Capacity:
		b.capacity = now
		b.window.amend(c)
	case Ignored:
		b.window.amend(c)
	}
}

func (b *Breaker) settleProbe(now time.Time, c *call, v Verdict) {
	b.probe = nil
	switch v.Outcome {
	case Success:
		b.prove(now, c)
	case Failure:
		if c.kind == kindProbe {
			b.open(now, "probe_failed", v.Rand)
		} else {
			b.proofs = 0
		}
	}
}

// prove counts a successful probe; enough of them in a row start the ramp.
func (b *Breaker) prove(now time.Time, c *call) {
	if c == b.probe {
		b.probe = nil
	}
	c.proven = true
	if b.proofs++; b.proofs < b.cfg.Probes {
		return
	}
	b.share, b.credit, b.step = minShare, 1, now
	b.move(now, Ramp, "proved")
	c.gen = b.gen // the call that proved it may still say how it ended
}

// judge applies the rules after a verdict. The time windows are slow on a
// target with much healthy traffic behind it: at a steady rate, failing
// altogether shows as half of a 10 s window only after 5 s. So the last
// verdicts count by themselves: ten failures in a row (one in a thousand
// where half of all calls fail, one in ten million where a fifth does), or
// half of the last fifty (one in five million at a fifth).
func (b *Breaker) judge(now time.Time, rnd float64) {
	sec := now.Unix()
	short := b.window.sum(max(b.rulesSec, sec-int64(b.cfg.Window/time.Second)), sec)
	long := b.window.sum(max(b.rulesSec, sec-int64(b.cfg.LongWindow/time.Second)), sec)
	switch {
	case tripped(short, b.cfg.MinRequests, b.cfg.FailureRatio):
		b.open(now, "failure_ratio", rnd)
	case tripped(long, b.cfg.LongMin, b.cfg.FailureRatio):
		b.open(now, "failure_ratio_long", rnd)
	case short.verdicts() >= b.cfg.MinRequests && float64(short.slow) >= b.cfg.SlowRatio*float64(short.verdicts()):
		b.open(now, "slow", rnd)
	case b.run >= b.cfg.Run:
		b.open(now, "failures_in_a_row", rnd)
	case b.fresh >= b.cfg.Last && 1-b.window.lastShare(now, b.cfg.Last, b.cfg.Window) >= b.cfg.FailureRatio:
		b.open(now, "failure_ratio_last", rnd)
	case b.connects >= b.cfg.Connects:
		b.open(now, "connect", rnd)
	}
}

func tripped(s bucket, least int, ratio float64) bool {
	n := s.verdicts()
	return n >= least && float64(s.failed) >= ratio*float64(n)
}

// open starts a cool-down. Each trip doubles it, up to the maximum; health
// halves it again with time. The spread keeps replicas from probing at once.
func (b *Breaker) open(now time.Time, reason string, rnd float64) {
	d := b.cfg.CoolDown << min(b.trips, maxTrips)
	if d > b.cfg.MaxCoolDown || d <= 0 {
		d = b.cfg.MaxCoolDown
	}
	b.trips = min(b.trips+1, maxTrips)
	b.until = now.Add(time.Duration(float64(d) * (0.8 + 0.4*rnd)))
	if limit := now.Add(b.cfg.MaxFloor); b.floor.After(limit) {
		b.floor = limit
	}
	if b.floor.After(b.until) {
		b.until = b.floor
	}
	b.reason = reason
	b.move(now, Open, reason)
}

// Floor notes an upstream's own wait: a cool-down does not end before it.
func (b *Breaker) Floor(now, until time.Time) {
	if limit := now.Add(b.cfg.MaxFloor); until.After(limit) {
		until = limit
	}
	if until.After(b.floor) {
		b.floor = until
	}
	if b.phase == Open && until.After(b.until) {
		b.until = until
	}
}

// move changes the phase. Calls given out before it no longer count, except
// that opening for half a chance (Open to HalfOpen) keeps the generation:
// last-resort calls run across it.
func (b *Breaker) move(now time.Time, to Phase, reason string) {
	b.events = append(b.events, Transition{From: b.phase, To: to, Reason: reason, At: now})
	if to != HalfOpen {
		b.gen++
		b.probe = nil
		b.waiting.clear()
		b.rulesSec = now.Unix()
		b.connects, b.run, b.fresh = 0, 0, 0
	}
	if to == Open {
		b.proofs = 0
	}
	b.phase, b.since = to, now
}

// advance applies what time alone brings: the end of a cool-down, of a lease,
// the ramp's progress, the easing of the cool-down.
func (b *Breaker) advance(now time.Time, rnd float64) {
	if b.probe != nil && !now.Before(b.leaseEnd) {
		lost := b.probe
		b.probe = nil
		b.window.failure(now, lost)
		if b.phase == HalfOpen && lost.kind == kindProbe {
			b.open(now, "probe_lost", rnd)
		} else {
			b.proofs = 0
		}
	}
	switch b.phase {
	case Open:
		if !now.Before(b.until) {
			b.move(now, HalfOpen, "cool_down_over")
		}
	case Ramp:
		b.rise(now)
	case Closed:
		b.peak.note(now, b.inflight)
		if b.trips > 0 && now.Sub(b.since) >= time.Minute && now.Sub(b.eased) >= time.Minute {
			b.trips, b.eased = b.trips-1, now
		}
	}
}

// rise moves the ramp on: not while failures of the last 5 s are 5 % or more,
// and back by half at 20 %.
func (b *Breaker) rise(now time.Time) {
	dt := now.Sub(b.step)
	if dt < 100*time.Millisecond {
		return
	}
	b.step = now
	sec := now.Unix()
	last := b.window.sum(max(b.rulesSec, sec-5), sec)
	if n := last.verdicts(); n > 0 {
		bad := float64(last.failed) / float64(n)
		if bad >= 0.2 && n >= 5 {
			b.share = max(minShare, b.share*pow(0.5, dt))
			return
		}
		if bad >= 0.05 {
			return
		}
	}
	b.share += dt.Seconds() / max(b.cfg.Ramp.Seconds(), 0.001)
	if b.share >= 1 {
		b.share = 1
		b.eased = now
		b.phaseClosed(now)
	}
}

// phaseClosed ends the ramp. The calls of the ramp stay valid: nothing has
// been interrupted.
func (b *Breaker) phaseClosed(now time.Time) {
	b.events = append(b.events, Transition{From: b.phase, To: Closed, Reason: "full_share", At: now})
	b.phase, b.since = Closed, now
}

// pow halves once a second, whatever the step.
func pow(f float64, dt time.Duration) float64 {
	if dt >= time.Second {
		return f
	}
	return 1 - (1-f)*dt.Seconds()
}

// Poll applies the rules that need time to pass. It returns when it wants to
// be called again; zero when nothing waits for time.
func (b *Breaker) Poll(now time.Time, rnd float64) time.Time {
	b.advance(now, rnd)
	if b.phase == Closed || b.phase == Ramp {
		if b.judgeWaiting(now, rnd) {
			return time.Time{}
		}
	}
	switch {
	case b.phase == Open:
		return b.until
	case b.probe != nil:
		return b.leaseEnd
	case b.phase == Ramp || b.waiting.n > 0:
		return now.Add(100 * time.Millisecond)
	}
	return time.Time{}
}

// judgeWaiting gives slow verdicts to the calls that have reached their age,
// each once, and looks for silence. It reports whether the breaker opened.
func (b *Breaker) judgeWaiting(now time.Time, rnd float64) bool {
	gen := b.gen
	for i := range b.waiting.lists {
		for c := b.waiting.oldest(i); c != nil && now.Sub(c.start) >= c.slow; c = b.waiting.oldest(i) {
			c.judged, c.judgedSec = true, now.Unix()
			b.window.slow(now)
			b.waiting.pass(c)
		}
	}
	b.judge(now, rnd)
	if b.gen == gen && b.silent(now) {
		b.open(now, "silence", rnd)
	}
	return b.gen != gen
}

// silent reports that calls wait and nothing has been heard for longer than
// the oldest of them should have taken, although at the rate before that much
// should have come.
func (b *Breaker) silent(now time.Time) bool {
	c := b.waiting.first()
	if b.waiting.n < b.cfg.Waiting || c == nil {
		return false
	}
	quiet := c.start
	if b.content.After(quiet) { // answers to others came while it already waited
		quiet = b.content
	}
	if now.Sub(quiet) < c.silence {
		return false
	}
	if b.content.IsZero() || now.Sub(b.content) > time.Minute {
		return true
	}
	sec := b.content.Unix()
	before := b.window.sum(sec-10, sec)
	rate := float64(before.content) / 10
	return rate*now.Sub(b.content).Seconds() >= silenceProof
}
