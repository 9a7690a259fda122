// Package learn knows how long healthy calls to a target take, and derives
// from it the timers of the next call: when it is slow, when the target's
// silence is a sign, and when to give up.
//
// Times are kept per class of call (stream or not, size of the prompt), for a
// first token behind 100k tokens of prompt is no slower than it should be. It
// measures the first content of a stream and the whole answer of a call that
// does not stream; never the whole of a stream, whose length is the answer's.
//
// The package is pure: no clock, no goroutine, no I/O. A Latency is not safe
// for concurrent use; the target that owns it holds the lock.
package learn

import (
	"math"
	"time"
)

// Mode is what is waited for.
type Mode uint8

// The modes.
const (
	Unary  Mode = iota // the whole answer
	Stream             // first content
)

// Class is a kind of call with its own times.
type Class uint8

// sizes are the upper bounds of the prompt classes, in tokens.
var sizes = [...]int{1 << 10, 8 << 10, 32 << 10}

// NumClasses is the number of classes.
const NumClasses = 2 * (len(sizes) + 1)

// ClassOf returns the class of a call.
func ClassOf(m Mode, promptTokens int) Class {
	c := 0
	for c < len(sizes) && promptTokens > sizes[c] {
		c++
	}
	return Class(int(m)*(len(sizes)+1) + c)
}

func (c Class) mode() Mode { return Mode(int(c) / (len(sizes) + 1)) }
func (c Class) size() int  { return int(c) % (len(sizes) + 1) }

const (
	enough     = 50              // samples of a class before its times are learned
	halfLife   = 5 * time.Minute // after which all counts are halved
	freezeFrom = 0.01            // share of time-outs from which estimates stand still
	meanDecay  = 30 * time.Second
)

// Bounds are what the configuration fixes. Zero leaves a timer to be learned.
type Bounds struct {
	Headers      time.Duration
	FirstContent time.Duration
	Total        time.Duration // no timer is longer
}

// Timeouts are the timers of one call.
type Timeouts struct {
	Headers      time.Duration // until response headers
	FirstContent time.Duration // until first content (stream) or the whole answer (unary)
	Slow         time.Duration // age without content at which the call counts as slow
	Silence      time.Duration // age of the oldest waiting call from which silence counts
	Learned      bool
}

// Before enough is known: by mode and prompt class. The stream figures are
// the class defaults of the algorithm notes (12.5); a call that does not
// stream waits for its whole answer.
var (
	slowUnlearned  = [2][len(sizes) + 1]time.Duration{{30 * time.Second, 40 * time.Second, 60 * time.Second, 60 * time.Second}, {5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second}}
	giveUpUnknown  = [2][len(sizes) + 1]time.Duration{{2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 5 * time.Minute}, {20 * time.Second, 30 * time.Second, 45 * time.Second, 60 * time.Second}}
	giveUpLeast    = [2]time.Duration{10 * time.Second, 2 * time.Second}
	giveUpMost     = [2]time.Duration{10 * time.Minute, 60 * time.Second}
	slowLeast      = time.Second             // a breaker asks for more than age, so the floor can be low
	silenceLeast   = 1500 * time.Millisecond // likewise
	factorGiveUp   = 3.0
	factorSlow     = 2.0
	factorSilence  = 3.0
	meanUnlearned  = 500 * time.Millisecond
	censoredFactor = 2.0 // a time-out is a sample of at least that age: count it higher
)

// Latency is what is known about one target.
type Latency struct {
	classes [NumClasses]class
	halved  time.Time
	mean    float64 // seconds, peak-sensitive
	meanAt  time.Time
}

type class struct {
	hist     histogram
	timeouts float64
	answers  float64
}

// NewLatency returns an empty record.
func NewLatency() *Latency { return new(Latency) }

// Observe notes a healthy call's time.
func (l *Latency) Observe(now time.Time, c Class, d time.Duration) {
	l.age(now)
	k := &l.classes[c]
	k.hist.add(d)
	k.answers++
	l.fold(now, d)
}

// Censor notes that one of our own timers ended a call at age d. The true
// time is longer, so it counts at twice the age; when time-outs are more than
// a few the target is ill and the estimates stand still.
func (l *Latency) Censor(now time.Time, c Class, d time.Duration) {
	l.age(now)
	k := &l.classes[c]
	k.timeouts++
	if k.timeouts <= freezeFrom*(k.answers+k.timeouts) {
		k.hist.add(time.Duration(censoredFactor * float64(d)))
	}
}

func (l *Latency) age(now time.Time) {
	if l.halved.IsZero() {
		l.halved = now
	}
	for n := 0; n < 8 && now.Sub(l.halved) >= halfLife; n++ {
		l.halved = l.halved.Add(halfLife)
		for i := range l.classes {
			k := &l.classes[i]
			k.hist.halve()
			k.timeouts, k.answers = k.timeouts/2, k.answers/2
		}
	}
	if now.Sub(l.halved) >= halfLife {
		l.halved = now
	}
}

// fold keeps a mean that jumps up to a peak and sinks slowly, as Finagle's
// peak EWMA does.
func (l *Latency) fold(now time.Time, d time.Duration) {
	x := d.Seconds()
	if x >= l.mean || l.meanAt.IsZero() {
		l.mean, l.meanAt = x, now
		return
	}
	w := math.Exp(-now.Sub(l.meanAt).Seconds() / meanDecay.Seconds())
	l.mean = l.mean*w + x*(1-w)
	l.meanAt = now
}

// Mean is the expected time of a call, for choosing between targets.
func (l *Latency) Mean(time.Time) time.Duration {
	if l.meanAt.IsZero() {
		return meanUnlearned
	}
	return time.Duration(l.mean * float64(time.Second))
}

// Quantile returns the q-quantile of a class and the number of samples behind
// it; 0, 0 when there are none.
func (l *Latency) Quantile(c Class, q float64) (time.Duration, int) {
	h := &l.classes[c].hist
	if h.n == 0 {
		return 0, 0
	}
	return h.quantile(q), int(h.n)
}

// Timeouts are the timers of a call of class c.
func (l *Latency) Timeouts(c Class, b Bounds) Timeouts {
	m, s := c.mode(), c.size()
	t := Timeouts{FirstContent: giveUpUnknown[m][s], Slow: slowUnlearned[m][s], Silence: slowUnlearned[m][s]}
	if p99, n := l.Quantile(c, 0.99); n >= enough {
		t.Learned = true
		t.FirstContent = min(max(scale(p99, factorGiveUp), giveUpLeast[m]), giveUpMost[m])
		t.Slow = max(scale(p99, factorSlow), slowLeast)
		t.Silence = max(scale(p99, factorSilence), silenceLeast)
	}
	if b.FirstContent > 0 {
		t.FirstContent = b.FirstContent
	}
	t.Headers = t.FirstContent
	if b.Headers > 0 {
		t.Headers = b.Headers
	}
	if b.Total > 0 {
		t.FirstContent, t.Headers = min(t.FirstContent, b.Total), min(t.Headers, b.Total)
	}
	t.Slow, t.Silence = min(t.Slow, t.FirstContent), min(t.Silence, t.FirstContent)
	return t
}

func scale(d time.Duration, f float64) time.Duration { return time.Duration(f * float64(d)) }
