package budget

import "math"

// When the ratio grows and when it comes back. Amounts of noise are in
// standard deviations; the growth factor reaches 1.0 from 0.1 in four steps of
// a tenth of the window, so that both targets failing half their calls are met
// within seconds.
const (
	growthNum, growthDen = 2, 1 // x2 a step

	minExtras   = 10  // extra attempts in the window that make evidence
	minSample   = 10  // first attempts that make a rate
	goodSample  = 30  // first attempts that make a rate worth comparing at once
	alike       = 0.8 // extra attempts succeed as often as first ones from this share on
	minFirst    = 0.2 // below this rate of first attempts nothing helps
	slowShare   = 0.1 // of failures that may be slow
	growNoise   = 1   // extra attempts may be worse by this while it grows
	worseNoise  = 2   // extra attempts are worse beyond this
	fallenNoise = 3   // first attempts have become worse beyond this
	baseSample  = 200 // first attempts that make a baseline; a window of them does too
	maxPause    = 16  // longest pause after harm, in windows
	settled     = 6   // windows of grown ratio after which a pause is short again
)

// sample is a number of attempts and how many of them succeeded.
type sample struct{ ok, all int64 }

func (s sample) rate() float64 {
	if s.all == 0 {
		return 0
	}
	return float64(s.ok) / float64(s.all)
}

func (s *sample) add(t sample) {
	s.ok += t.ok
	s.all += t.all
}

// growth is the story of a grown ratio.
type growth struct {
	steps    int
	short    int64  // slots in a row in which failures outnumbered what the ratio pays for
	baseline sample // first attempts of these, before it grew
	since    int64  // number of the last slot before it grew
	pause    int64  // length of the next pause, slots
	resume   int64  // no growth before this slot
}

func (g *growth) reset() { *g = growth{pause: numSlots} }

// evidence is what the window says.
type evidence struct {
	extra    sample
	expected float64 // successes the extra attempts would have had as first ones
	spread   float64 // variance of extra.ok - expected, without the factor p(1-p)
	failures int64
	slow     int64
	trouble  int64
}

// review runs whenever a slot ends. The ratio grows by a step when, over the
// window,
//
//   - extra attempts succeed about as often as first ones did at that moment,
//   - and first ones still do so now and then,
//   - failures are fast, and nothing was refused for capacity or timed out,
//   - first attempts succeed no less often than before the ratio grew, by more
//     than noise: of targets that are short of capacity and say so by failing,
//     each extra attempt takes from the first ones,
//   - and failures outnumber what the ratio pays for.
//
// When any of the first four fails, or evidence is short, the ratio is back at
// its base at once. After harm it also pauses, longer each time, so that a
// target whose failures come from load is not probed over and over.
func (b *Budget) review() {
	e := b.evidence()
	b.count()
	switch {
	case e.extra.all < minExtras, e.trouble > 0, e.slowed(), e.hopeless():
		b.back()
	case e.worse(worseNoise), b.fallen():
		b.harm()
	case b.mayGrow(e):
		b.grow()
	}
}

func (b *Budget) evidence() evidence {
	var e evidence
	var first sample
	for i := range b.slots {
		first.add(b.slots[i].first)
	}
	for i := range b.slots {
		s := &b.slots[i]
		e.failures += s.first.all - s.first.ok + s.extra.all - s.extra.ok
		e.slow += s.slow
		e.trouble += s.trouble
		e.extra.add(s.extra)
		base := s.first // compared with first attempts of the same moment
		if base.all == 0 {
			base = first
		}
		n := float64(s.extra.all)
		e.expected += n * base.rate()
		e.spread += n + n*n/float64(max(1, base.all))
	}
	return e
}

func (e evidence) slowed() bool {
	return e.slow > 1 && float64(e.slow) > slowShare*float64(e.failures)
}

func (e evidence) hopeless() bool { return e.expected < minFirst*float64(e.extra.all) }

// worse reports that extra attempts succeed less often than first ones, by
// more than so much noise.
func (e evidence) worse(noise float64) bool {
	p := e.expected / float64(e.extra.all)
	deviation := math.Sqrt(e.spread * p * (1 - p))
	return float64(e.extra.ok) < alike*e.expected-noise*deviation
}

// recent is the newest first attempts that ended after slot since, at least n
// of them if the window has as many.
func (b *Budget) recent(since, n int64) sample {
	var sum sample
	for t := b.tick; t > since && t > b.tick-numSlots && t >= 0 && sum.all < n; t-- {
		sum.add(b.slots[t%numSlots].first)
	}
	return sum
}

// fallen reports that first attempts succeed less often than before the ratio
// grew, lately or over all the time since, beyond noise.
func (b *Budget) fallen() bool {
	if b.grown.steps == 0 {
		return false
	}
	return lower(b.recent(b.grown.since, goodSample), b.grown.baseline) ||
		lower(b.recent(b.grown.since, math.MaxInt64), b.grown.baseline)
}

// lower reports that a's rate is below b's by more than noise.
func lower(a, b sample) bool {
	if a.all < minSample || b.all < minSample {
		return false
	}
	both := sample{a.ok + b.ok, a.all + b.all}.rate()
	noise := math.Sqrt(both * (1 - both) * (1/float64(a.all) + 1/float64(b.all)))
	return b.rate()-a.rate() > fallenNoise*noise
}

// count counts the slots in a row that call for more.
func (b *Budget) count() {
	s := &b.slots[b.tick%numSlots]
	failed := s.first.all - s.first.ok + s.extra.all - s.extra.ok
	if s.first.all > 0 && failed*unit > b.ratio*s.first.all {
		b.grown.short++
	} else if s.first.all > 0 {
		b.grown.short = 0
	}
}

func (b *Budget) mayGrow(e evidence) bool {
	return b.ratio < b.ratioMax && b.ratioBase > 0 && b.tick >= b.grown.resume &&
		b.grown.short > 0 && !e.worse(growNoise)
}

// grow makes a step. The first one waits until the baseline can tell a loss of
// a seventh from chance: what it cannot see, a grown ratio would do for ever.
func (b *Budget) grow() {
	g := &b.grown
	if g.steps == 0 {
		g.baseline, g.since = b.recent(b.tick-g.short, math.MaxInt64), b.tick
		if g.baseline.all < baseSample && (g.short < numSlots || g.baseline.all < minSample) {
			return
		}
	}
	g.steps++
	b.ratio = min(b.ratioMax, b.ratio*growthNum/growthDen)
}

// back brings the ratio, and what was earned by it, to its base.
func (b *Budget) back() {
	if b.ratio > b.ratioBase {
		b.restart()
	}
}

func (b *Budget) restart() {
	g := &b.grown
	if g.steps > 0 && b.tick-g.since >= settled*numSlots {
		g.pause = numSlots
	}
	*g = growth{pause: g.pause, resume: g.resume, short: g.short}
	b.ratio = b.ratioBase
	for i := range b.slots {
		s := &b.slots[i]
		s.tokens = min(s.tokens, b.ratioBase*s.requests)
	}
}

// harm is back with a pause that doubles each time.
func (b *Budget) harm() {
	if b.ratio <= b.ratioBase {
		return
	}
	b.back()
	g := &b.grown
	g.resume = b.tick + g.pause
	g.pause = min(2*g.pause, maxPause*numSlots)
}
