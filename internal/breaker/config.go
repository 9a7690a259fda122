package breaker

import "time"

// Config holds the rules' numbers.
type Config struct {
	Window       time.Duration // of the ratio and slow rules: whole seconds, 1 s to 120 s
	MinRequests  int           // verdicts needed in Window
	FailureRatio float64       // share of failures that trips, in (0,1]
	Last         int           // the same share of so many last verdicts trips too: 1 to 64
	Run          int           // failures in a row that trip
	LongWindow   time.Duration // second window, for little traffic: Window to 120 s
	LongMin      int           // verdicts needed in LongWindow
	SlowRatio    float64       // share of slow verdicts that trips, in (0,1]
	Waiting      int           // overdue calls needed before silence counts
	Connects     int           // failed connects in a row, within Window, that trip: 1 to 8
	CoolDown     time.Duration // first cool-down; doubles with each trip
	MaxCoolDown  time.Duration // last cool-down
	MaxFloor     time.Duration // longest wait of an upstream that is obeyed
	Probes       int           // successes in a row that start the ramp
	MaxLease     time.Duration // longest life of a probe, unless Call.Slow is longer
	Ramp         time.Duration // from the first share to full share; 0 for at once
	Trickle      time.Duration // pause between last-resort calls to a dead target

	// What a protection is worth is shown by a drill without it. Both are off
	// in every router that serves.
	Herd    bool // every call is let in as a probe when the cool-down is over
	Patient bool // calls are judged at their end alone, however long they wait
}

// Default returns the numbers of the design. 20 verdicts and a half: a
// target that fails a fifth of its calls trips in 0.26 % of windows, one that
// fails half in most of them. At a steady rate a target that fails altogether
// shows as half of a 10 s window only after 5 s, so the last verdicts count by
// themselves: ten failures in a row (one in a thousand calls where half fail,
// one in ten million where a fifth does), or half of the last fifty (one in
// five million at a fifth). Ten verdicts in the long window: a base of 5 %
// failures trips in 6 of 100,000. Three connects, five waiting calls, the
// cool-downs, three probes and the ramp of a minute come from measurements
// with a cold target, which a ramp brought back in 81 s without a failure and
// full traffic at once never.
func Default() Config {
	return Config{
		Window: 10 * time.Second, MinRequests: 20, FailureRatio: 0.5, Last: 50, Run: 10,
		LongWindow: 120 * time.Second, LongMin: 10,
		SlowRatio: 0.8, Waiting: 5, Connects: 3,
		CoolDown: 5 * time.Second, MaxCoolDown: 60 * time.Second, MaxFloor: 120 * time.Second,
		Probes: 3, MaxLease: 30 * time.Second, Ramp: 60 * time.Second, Trickle: 750 * time.Millisecond,
	}
}

// normal brings every number into the range in which the rules mean
// something.
func (c Config) normal() Config {
	c.Window = min(max(c.Window, time.Second), (seconds-8)*time.Second)
	c.LongWindow = min(max(c.LongWindow, c.Window), (seconds-8)*time.Second)
	c.MinRequests, c.LongMin = max(c.MinRequests, 1), max(c.LongMin, 1)
	c.FailureRatio, c.SlowRatio = ratio(c.FailureRatio), ratio(c.SlowRatio)
	c.Last, c.Run = min(max(c.Last, 1), kept), max(c.Run, 1)
	c.Waiting, c.Probes = max(c.Waiting, 1), max(c.Probes, 1)
	c.Connects = min(max(c.Connects, 1), maxRun)
	c.CoolDown = max(c.CoolDown, 0)
	c.MaxCoolDown = max(c.MaxCoolDown, c.CoolDown)
	if c.MaxLease <= 0 {
		c.MaxLease = 30 * time.Second
	}
	return c
}

// ratio keeps a share in (0,1]; what is none (also NaN) is a half.
func ratio(f float64) float64 {
	if !(f > 0) {
		return 0.5
	}
	return min(f, 1)
}

const (
	classes   = 8    // latency classes kept apart, each first in first out
	minShare  = 0.05 // the ramp starts here
	holdAt    = 0.05 // share of failures in 5 s at which the ramp waits
	halveAt   = 0.20 // and at which it goes back by half
	maxTrips  = 16   // beyond it the cool-down has long reached its maximum
	maxRun    = 8    // failed connects remembered
	leastPeak = 8    // calls at once that any target is trusted with

	// Of the last verdicts: a target that answers one call in twenty is
	// alive, one that answers four in five is well.
	aliveShare = 0.05
	wellShare  = 0.8
	// Calls that somebody else takes too go to a target that is not closed
	// where more than the first share of its last calls succeeded, all of them
	// from the second share on. A queue may soon refuse, but where most
	// calls fail it is the better place; a degraded model answers, and is left
	// alone only for a fair chance of the real answer.
	queueNone, queueAll       = 0.25, 0.35
	degradedNone, degradedAll = 0.3, 0.45
	// Waiting calls are not told to move on where this share succeeded.
	spareShare = 0.25

	// maxTrickle is the longest pause between last-resort calls to a dead
	// target while another is only busy.
	maxTrickle = 15 * time.Second

	// A target is proven healthy by so many verdicts in 60 s, of which this
	// share succeeded, and no capacity refusal for a while.
	healthyMin   = 10
	healthyShare = 0.9
	capacityRest = 10 * time.Second

	// silenceProof is how many first contents must be missing before silence
	// counts, as overdue calls or at the rate seen before the silence: a quiet
	// target is not a hung one. With answers at random, e^-12 is one false
	// alarm in 160,000. Where no answer is younger than rateFor there is no
	// rate, and Waiting overdue calls decide.
	silenceProof = 12
	rateFor      = time.Minute
	// longWait is how long a caller must have waited to be a witness, by leaving,
	// of a target that has never answered anybody.
	longWait = 10 * time.Second

	// overdue is the part of its Silence at which a waiting call is overdue:
	// Silence is three times the 99th percentile.
	overdue = 3
)
