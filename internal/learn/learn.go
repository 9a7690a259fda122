// Package learn knows how long healthy calls to a target take, and derives
// from it the timers of the next call: when it is slow, when the target's
// silence is a sign, and when to give up. It also keeps the one latency by
// which targets are compared.
//
// Times are kept per class of call (stream or not, size of the prompt):
// behind 100k tokens of prompt a first token takes long and nothing is wrong.
// What is measured is the first content of a stream, not its headers and not
// its first empty event, and the complete answer of a call that does not
// stream. The length of a stream is the answer's and says nothing.
//
// The package is pure: no clock, no goroutine, no I/O. A Latency is not safe
// for concurrent use; the target that owns it holds the lock. One takes about
// 3.5 KB, whatever the traffic.
package learn

import (
	"math"
	"time"
)

// Mode is what is waited for.
type Mode uint8

// The modes.
const (
	Unary  Mode = iota // the complete answer
	Stream             // first content
)

const sizes = 4 // prompt classes a mode

// sizeLimits are the upper bounds of all prompt classes but the last, in
// tokens.
var sizeLimits = [sizes - 1]int{1 << 10, 8 << 10, 32 << 10}

// NumClasses is the number of classes.
const NumClasses = 2 * sizes

// Class is a kind of call with times of its own, below NumClasses.
type Class uint8

// ClassOf returns the class of a call whose prompt has about so many tokens.
func ClassOf(m Mode, promptTokens int) Class {
	c := 0
	for c < len(sizeLimits) && promptTokens > sizeLimits[c] {
		c++
	}
	return Class(int(m&1)*sizes + c)
}

// Streams reports a class whose first content comes before the whole answer.
func (c Class) Streams() bool { return c.mode() == Stream }

func (c Class) mode() Mode { return Mode(int(c) / sizes & 1) }
func (c Class) size() int  { return int(c) % sizes }

const (
	enough    = 50              // samples of a class before its times are learned
	halveEach = 5 * time.Minute // the past weighs half as much after that
	shareEach = time.Minute     // likewise for the share of time-outs
	maxShare  = 0.01            // of time-outs; above it the estimates are frozen
	meanDecay = 30 * time.Second
)

// Factors and floors from the 99th percentile, and limits, by Mode. The
// breaker asks for far more than age before it opens (twenty verdicts, or
// five overdue calls and dozens of missing answers), so age may be judged
// early: floors of 1 s and 1.25 s, not the 3 s and 5 s of a rule that rests on
// age alone. With them a hung target at 50 requests a second holds 80 calls
// when it is recognised, not 250. A time-out ends a call and rests on age
// alone; hence its factor and its floor.
var (
	giveUpFloor   = [2]time.Duration{10 * time.Second, 2 * time.Second}
	giveUpCeiling = [2]time.Duration{10 * time.Minute, 60 * time.Second}
)

const (
	giveUpFactor  = 3
	slowFactor    = 2
	silenceFactor = 3
	slowFloor     = time.Second
	silenceFloor  = 1250 * time.Millisecond
	censorFactor  = 2 // the true time of a call timed out at d is above d: count it as 2d
)

// What holds before enough is known, by Mode and prompt class. A call that
// does not stream waits for its complete answer.
var (
	slowUnlearned = [2][sizes]time.Duration{
		Unary:  {30 * time.Second, 40 * time.Second, 60 * time.Second, 60 * time.Second},
		Stream: {5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second},
	}
	giveUpUnlearned = [2][sizes]time.Duration{
		Unary:  {120 * time.Second, 180 * time.Second, 300 * time.Second, 300 * time.Second},
		Stream: {10 * time.Second, 20 * time.Second, 40 * time.Second, 60 * time.Second},
	}
	// typical turns times of different classes into one currency for Mean:
	// a target with long prompts is not a slow target.
	typical = [2][sizes]time.Duration{
		Unary:  {4 * time.Second, 6 * time.Second, 8 * time.Second, 12 * time.Second},
		Stream: {meanUnlearned, time.Second, 2 * time.Second, 4 * time.Second},
	}
)

const meanUnlearned = 500 * time.Millisecond

// Bounds are what the configuration says. Zero leaves the field to be
// learned, or unbounded.
type Bounds struct {
	Headers      time.Duration // fixed time until response headers
	FirstContent time.Duration // fixed time until first content
	Min, Max     time.Duration // of the learned FirstContent; they replace the built-in ones
	Total        time.Duration // no timer is longer
}

// Median is what half of the answers of all classes took at most, or up to 19 % less;
// 0 when there are none.
func (l *Latency) Median() time.Duration {
	var all histogram
	for i := range l.classes {
		for b, n := range l.classes[i].hist.counts {
			all.counts[b] += n
			all.n += n
		}
	}
	return all.quantile(0.5)
}

// Timeouts are the timers of one call. Slow, Silence and Headers are never
// above FirstContent, and nothing is above Bounds.Total.
type Timeouts struct {
	Headers      time.Duration // until response headers
	FirstContent time.Duration // until first content (stream) or the complete answer (unary)
	Slow         time.Duration // age without content at which the call counts as slow
	Silence      time.Duration // age of a waiting call from which the target's silence counts
	Learned      bool          // from at least 50 samples of the class
}

// Latency is what is known about one target.
type Latency struct {
	classes [NumClasses]class
	halved  time.Time // the past was last halved
	shared  time.Time // the shares of time-outs were last halved
	mean    float64   // in calls of a typical length
	meanAt  time.Time
}

type class struct {
	hist              histogram
	answers, timeouts float64 // of the last minutes, for the share
	heard             bool    // an answer since the past was last halved
	cut               bool    // a time-out since then
}

// frozen reports that time-outs are more than stray ones. Then the answers
// still seen are the fast ones, and learning from them would shorten the
// timers, which would cut more calls off, and so on down.
func (k *class) frozen() bool {
	return k.timeouts > 1 && k.timeouts > maxShare*(k.answers+k.timeouts)
}

// NewLatency returns an empty record.
func NewLatency() *Latency { return new(Latency) }

// Observe notes that a call of class c was answered after d: first content of
// a stream, complete answer otherwise.
func (l *Latency) Observe(now time.Time, c Class, d time.Duration) {
	l.age(now)
	k := &l.classes[c%NumClasses]
	k.answers++
	k.heard = true
	// Frozen estimates may still rise: a target that has become slower shows
	// it by the answers that come just in time.
	if !k.frozen() || d > k.hist.quantile(0.99) {
		k.hist.add(d)
	}
	l.fold(now, max(d, 0).Seconds()/typical[c.mode()][c.size()].Seconds())
}

// Censor notes that one of our own timers ended a call of class c at age d.
func (l *Latency) Censor(now time.Time, c Class, d time.Duration) {
	l.age(now)
	k := &l.classes[c%NumClasses]
	k.timeouts++
	k.cut = true
	if !k.frozen() {
		k.hist.add(scale(d, censorFactor))
	}
}

// age lets the past fade.
func (l *Latency) age(now time.Time) {
	for range steps(&l.shared, now, shareEach) {
		for i := range l.classes {
			l.classes[i].answers /= 2
			l.classes[i].timeouts /= 2
		}
	}
	for range steps(&l.halved, now, halveEach) {
		for i := range l.classes {
			k := &l.classes[i]
			switch {
			case k.cut && !k.heard: // nothing but time-outs: perhaps the timer is wrong, not the target
				k.hist = histogram{}
			case !k.frozen(): // what is frozen gets no new samples and would be forgotten
				k.hist.halve()
			}
			k.cut, k.heard = false, false
		}
	}
}

// steps is how many whole periods have passed since *at, which moves on by
// them. After 32 nothing is left to halve.
func steps(at *time.Time, now time.Time, period time.Duration) int {
	if at.IsZero() {
		*at = now
	}
	n := int(now.Sub(*at) / period)
	if n <= 0 {
		return 0
	}
	*at = at.Add(time.Duration(n) * period)
	return min(n, 32)
}

// fold keeps a mean that rises at once and sinks slowly. It rises half of the
// way: times of language models have long tails, and one long call is no
// reason to shun a target.
func (l *Latency) fold(now time.Time, x float64) {
	if l.meanAt.IsZero() {
		l.mean, l.meanAt = x, now
		return
	}
	w := 0.5
	if x < l.mean {
		w = math.Exp(-max(now.Sub(l.meanAt), 0).Seconds() / meanDecay.Seconds())
	}
	l.mean = l.mean*w + x*(1-w)
	l.meanAt = now
}

// Known reports that at least one call has been timed.
func (l *Latency) Known() bool { return !l.meanAt.IsZero() }

// Mean is the expected time of a short streamed call, for comparing targets;
// other classes count by their ratio to a typical call of theirs. A target
// that is not used drifts back to the time of an unknown one (500 ms), or it
// would never be tried again.
func (l *Latency) Mean(now time.Time) time.Duration {
	if l.meanAt.IsZero() {
		return meanUnlearned
	}
	x := l.mean
	if x > 1 {
		x = 1 + (x-1)*math.Exp(-max(now.Sub(l.meanAt), 0).Seconds()/meanDecay.Seconds())
	}
	return max(scale(meanUnlearned, x), time.Microsecond)
}

// Quantile returns the q-quantile of a class, at most 19 % too high, and the
// number of samples behind it; 0, 0 when there are none.
func (l *Latency) Quantile(c Class, q float64) (time.Duration, int) {
	h := &l.classes[c%NumClasses].hist
	return h.quantile(q), int(h.n)
}

// Timeouts are the timers of a call of class c.
func (l *Latency) Timeouts(c Class, b Bounds) Timeouts {
	m, s := c.mode(), c.size()
	t := Timeouts{FirstContent: giveUpUnlearned[m][s], Slow: slowUnlearned[m][s]}
	t.Silence = t.Slow
	floor, ceiling := giveUpFloor[m], giveUpCeiling[m]
	if p99, n := l.Quantile(c, 0.99); n >= enough {
		t.Learned = true
		t.FirstContent = scale(p99, giveUpFactor)
		t.Slow = max(scale(p99, slowFactor), slowFloor)
		t.Silence = max(scale(p99, silenceFactor), silenceFloor)
	}
	if b.Min > 0 {
		floor = b.Min
	}
	if b.Max > 0 {
		ceiling = b.Max
	}
	t.FirstContent = min(max(t.FirstContent, floor), ceiling)
	if b.FirstContent > 0 {
		t.FirstContent = b.FirstContent
	}
	if b.Total > 0 {
		t.FirstContent = min(t.FirstContent, b.Total)
	}
	t.Headers = t.FirstContent
	if b.Headers > 0 {
		t.Headers = min(t.Headers, b.Headers)
	}
	t.Slow, t.Silence = min(t.Slow, t.FirstContent), min(t.Silence, t.FirstContent)
	return t
}

func scale(d time.Duration, f float64) time.Duration {
	return time.Duration(min(f*max(float64(d), 0), math.MaxInt64/2))
}
