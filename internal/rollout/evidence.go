package rollout

import (
	"math"
	"time"
)

// The sequential test behind every share that is judged.
const (
	// alpha is the chance of one measure to fail in one stage, ever, for a version
	// that is worse by exactly the margin; for equal versions it is far smaller.
	alpha = 0.01
	// most is the evidence that one tick may bring: three ticks at least make a
	// verdict, one burst of a second does not.
	most = 3.0
	// least is how many requests of the candidate a failure rests on.
	least = 10
	// few is how many requests of one workload are weighed together, or what comes in
	// during soon: a workload by itself is not looked at every second.
	few  = 5
	soon = 10 * time.Second
	// linger is how long a block waits for requests of the control.
	linger = time.Minute
	// sure is how many standard deviations the rate of a workload before the rollout
	// is taken to be wrong at most, to its disfavour: one in a thousand.
	sure = 3.1
	// doubt is the weight, in requests, of what all workloads have in common in what
	// is thought of one with little history.
	doubt = 20
)

// effects are the differences that are looked for, all at once: a mixture of tests
// costs each of them ln 5 of evidence.
var effects = [...]float64{0.01, 0.03, 0.08, 0.25, 0.6}

// block is what came in of a share under both versions in some time. Parts of
// requests may be bad: what is counted is any number from 0 to 1 each.
type block struct {
	cand, ctl side
	since     time.Time // it began
	// lateN and lateBad are what came in of the control in the blocks before, the
	// older the less.
	lateN, lateBad float64
}

// side is one version's part of a block.
type side struct {
	n, bad float64
	usual  float64 // sum of what is usual for each request
	wrong  float64 // how far that sum may be off: one standard deviation
}

// add adds what came in later: what is wrong about what is usual is wrong again.
func (s *side) add(o side) {
	s.n += o.n
	s.bad += o.bad
	s.usual += o.usual
	s.wrong += o.wrong
}

// join adds what came in at the same time of another workload, whose usual rate is
// wrong by itself.
func (s *side) join(o side) {
	wrong := math.Hypot(s.wrong, o.wrong)
	s.add(o)
	s.wrong = wrong
}

// rate is what is usual, and how far that may be off.
func (s *side) rate() (usual, wrong float64) { return s.usual / s.n, s.wrong / s.n }

// line is a null hypothesis: the candidate's rate is at most c + r times the
// control's.
type line struct{ c, r float64 }

// fair is the line of a block: for one workload with both versions, the control's
// rate and the margin. For different workloads what is usual for each is taken into
// account: the success of the candidate's may fall by the factor by which that of
// the control's falls. An outage that takes away the same share of everything is
// then nobody's fault. Where there is no control, the rate may be the usual one.
func (b *block) fair(margin float64, how pairing) line {
	usual, wrong := b.cand.rate()
	switch {
	case b.ctl.n <= 0:
		return line{c: min(1, usual+sure*wrong+margin)}
	case how == paired:
		return line{c: margin, r: 1}
	}
	ctl, ctlWrong := b.ctl.rate()
	well, ctlWell := max(1-usual, 1e-3), max(1-ctl, 1e-3)
	r := well / ctlWell * math.Exp(-sure*math.Hypot(wrong/well, ctlWrong/ctlWell))
	return line{c: 1 - r + margin, r: r}
}

// pairing is what a workload's candidate is compared with.
type pairing uint8

const (
	paired pairing = iota // its own requests under the version before, at the same time
	others                // what is usual for it, and how others fare at the same time
	alone                 // what is usual for it
)

// evidence holds, for each effect, the logarithm of how many times more likely
// what was seen is if the candidate is that much worse than the margin allows.
type evidence [len(effects)]float64

func (e *evidence) add(o evidence) {
	for j := range e {
		e[j] += o[j]
	}
}

// take adds what came in, control first, and returns its evidence once there is
// something of both versions. Without a control it goes by what is usual: at once
// when there is none, and after a while when nothing of it came in.
func (b *block) take(now time.Time, k kind, sides [2]side, margin, atLeast float64, how pairing) (e evidence) {
	if b.since.IsZero() {
		b.since = now
	}
	if how != alone {
		b.ctl.add(sides[0])
	}
	b.cand.add(sides[1])
	age := now.Sub(b.since)
	old := age >= linger
	switch {
	case b.cand.n < atLeast && age < soon, b.cand.n == 0 && !old, b.cand.n > 0 && b.ctl.n == 0 && how != alone && !old:
		return e
	case b.cand.n == 0, b.ctl.n == 0 && how != alone && k == relabelled:
		// Nothing to weigh.
	default:
		e = b.weigh(b.fair(margin, how), b.rate())
	}
	keep := math.Exp(-b.ctl.n / 500)
	*b = block{since: now, lateN: b.lateN*keep + b.ctl.n, lateBad: b.lateBad*keep + b.ctl.bad}
	return e
}

// rate is what is thought of the control's rate from what came in before the block.
func (b *block) rate() float64 {
	if b.ctl.n == 0 {
		return 0.5 // it plays no part
	}
	was, _ := b.ctl.rate()
	return (b.lateBad + doubt*was) / (b.lateN + doubt)
}

// weigh is the evidence of one block against a line.
func (b *block) weigh(l line, rate float64) (e evidence) {
	rate = min(max(rate, 1e-4), 1-1e-4)
	fair := l.c + l.r*rate
	if fair >= 0.99 {
		return e // nothing can be worse
	}
	for j, effect := range effects {
		e[j] = min(b.against(l, rate, min(max(fair+effect, 1e-3), 0.999)), most)
	}
	return e
}

// against is the logarithm of the likelihood of a block if the rates are rate and
// worse, over that under the nearest pair of rates on the line.
func (b *block) against(l line, rate, worse float64) float64 {
	near := b.nearest(l, rate, worse)
	same := min(max(l.c+l.r*near, 1e-9), 1-1e-9)
	log := b.cand.bad*math.Log(worse/same) + (b.cand.n-b.cand.bad)*math.Log((1-worse)/(1-same))
	if b.ctl.n > 0 {
		log += b.ctl.bad*math.Log(rate/near) + (b.ctl.n-b.ctl.bad)*math.Log((1-rate)/(1-near))
	}
	return log
}

// nearest is the control's rate of the pair of rates on the line that is nearest to
// the given one in relative entropy, weighted by the requests.
func (b *block) nearest(l line, rate, worse float64) float64 {
	if b.ctl.n <= 0 || l.r <= 0 {
		return rate
	}
	low, high := max(1e-9, -l.c/l.r), min(1-1e-9, (1-l.c)/l.r)
	x := min(max(rate, low), high)
	for range 50 { // Newton's method, kept between bounds
		same := min(max(l.c+l.r*x, 1e-9), 1-1e-9)
		u, v := b.ctl.n/(x*(1-x)), b.cand.n*l.r/(same*(1-same))
		slope := u*(x-rate) + v*(same-worse)
		if slope > 0 {
			high = x
		} else {
			low = x
		}
		bend := u*(1-(x-rate)*(1-2*x)/(x*(1-x))) + l.r*v*(1-(same-worse)*(1-2*same)/(same*(1-same)))
		next := x - slope/bend
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-x) <= 1e-9*x {
			return next
		}
		x = next
	}
	return x
}

// mean is the logarithm of the mean of what the logarithms stand for.
func mean(logs []float64) float64 {
	top := math.Inf(-1)
	for _, l := range logs {
		top = max(top, l)
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - top)
	}
	return top + math.Log(sum/float64(len(logs)))
}
