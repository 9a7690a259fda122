package detect

import (
	"math"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// The detectors.
const (
	Drop     = "success_drop"
	Broken   = "broken_answers"
	In       = "amplification_in"
	Out      = "amplification_out"
	Mix      = "class_mix"
	Relabel  = "capacity_relabelled"
	Theirs   = "provider_4xx"
	SlowerBy = "first_content"
	Left     = "breaker_open"
	SloBurn  = "slo_burn"
)

// The detectors that compare a window with what was before look at it once a part
// has passed. Their thresholds are far apart for coming and going.
const (
	leastMix     = 100             // calls that a comparison of mixes needs, and five times that before
	mixEnds      = 7 * time.Minute // over which what was found is looked at where a minute has fewer
	mixApart     = 0.05            // Jensen-Shannon divergence, in bits
	mixCertain   = 38.0            // G statistic, five degrees of freedom: one in a million
	leastZ       = 6.0
	relabelZ     = 5.0
	relabelled   = 0.02 // of all calls no longer refused for capacity
	theirsRise   = 0.2  // of a caller's calls refused as its mistake, on top of before
	theirsCalls  = 10   // that a caller needs to count
	theirsLeast  = 3    // callers
	calmShare    = 1.2  // of what is usual, behind which amplification is back
	leastContent = 30
	priorContent = 300
	calmSlower   = 1.3
	slowFor      = 30 * time.Second
)

func (d *Detector) judgeWindows() {
	for _, s := range d.order {
		switch s.key.kind {
		case Workload:
			d.amplifies(s)
		case Target:
			d.mixes(s)
			d.refusesAll(s)
		}
	}
}

// amplifies compares what comes in, and what goes out, with distinct requests.
func (d *Detector) amplifies(s *series) {
	w := s.window(d.now, d.cfg.Window)
	now, before := w.amplification(), max(1, s.base.amplification())
	switch on := s.on[In]; {
	case !on && w.Repeats > 0 && w.Excess() >= d.cfg.LeastExcess && now >= d.cfg.AmplificationIn && now >= 1.5*before,
		on && (now <= calmShare*before || w.Excess() < d.cfg.LeastExcess/6):
		d.found(s, In, !on, Finding{Since: d.now.Add(-d.cfg.Window / 2), Before: before, Now: now, N: w.Distinct() + w.Excess(), Share: d.excess(s, &w)})
	}
	now, before = w.out(), max(1, s.base.out())
	switch on := s.on[Out]; {
	case !on && w.Calls >= leastMix && now >= d.cfg.AmplificationOut && now >= 1.3*before, on && now <= calmShare*before:
		d.found(s, Out, !on, Finding{Since: d.now.Add(-d.cfg.Window / 2), Before: before, Now: now, N: int64(w.Calls)})
	}
}

// excess is the part of all excess that is this workload's.
func (d *Detector) excess(s *series, own *Counts) float64 {
	all := int64(0)
	for _, o := range d.order {
		if o.key.kind == Workload {
			w := o.window(d.now, d.cfg.Window)
			all += w.Excess()
		}
	}
	return share(own.Excess(), all)
}

// mixes compares the classes of a target's answers with those before. A mix that
// has become better is none of its concern.
func (d *Detector) mixes(s *series) {
	w := s.window(d.now, d.cfg.Window)
	n, before := w.Work(), s.base.Work()
	if n < leastMix && (s.on[Mix] || s.on[Relabel]) { // with less traffic it ends as well
		w = s.window(d.now, mixEnds)
		n = w.Work()
	}
	if n < leastMix || before < 5*leastMix {
		return
	}
	apart, certain := divergence(shares(&w), shares(&s.base))
	now, then := share(w.Bad(), n), share(s.base.Bad(), before)
	worse := now >= then
	switch on := s.on[Mix]; {
	case !on && worse && apart > mixApart && certain > mixCertain, on && (apart < mixApart/2 || !worse):
		d.found(s, Mix, !on, Finding{Since: d.now.Add(-d.cfg.Window / 2), Before: then, Now: now, N: n, Score: apart})
	}
	capacity, faults := share(int64(w.Class[fault.Capacity]), n), share(int64(w.Server), n)
	less := share(int64(s.base.Class[fault.Capacity]), before) - capacity
	more := faults - share(int64(s.base.Server), before)
	switch on := s.on[Relabel]; {
	case !on && less >= relabelled && more >= less/2 && certainly(less, less+capacity, n) && certainly(more, faults, n), on && (more < less/4 || less < relabelled/2):
		d.found(s, Relabel, !on, Finding{Since: d.now.Add(-d.cfg.Window / 2), Before: less + capacity, Now: capacity, N: n, Score: more})
	}
}

// certainly reports that a share has moved by more than chance moves it.
func certainly(by, share float64, n int64) bool {
	return by/math.Sqrt(max(share*(1-share), 1e-4)/float64(n)) >= relabelZ
}

// divergence is Jensen and Shannon's, in bits, and the G statistic of the counts.
func divergence(a, b [6]float64) (bits, g float64) {
	sumA, sumB := 0.0, 0.0
	for i := range a {
		sumA += a[i]
		sumB += b[i]
	}
	for i := range a {
		p, q := a[i]/sumA, b[i]/sumB
		middle := (p + q) / 2
		both := (a[i] + b[i]) / (sumA + sumB)
		if p > 0 {
			bits += p / 2 * math.Log2(p/middle)
			g += 2 * a[i] * math.Log(p/both)
		}
		if q > 0 {
			bits += q / 2 * math.Log2(q/middle)
			g += 2 * b[i] * math.Log(q/both)
		}
	}
	return bits, g
}

// refusesAll finds a target that takes many callers' requests for mistakes at
// once: that is its fault and not theirs.
func (d *Detector) refusesAll(s *series) {
	busy, refused := 0, 0
	for _, c := range d.order {
		if c.key.kind != call || c.key.of != s.key.name {
			continue
		}
		w := c.window(d.now, d.cfg.Window)
		if w.Distinct() < theirsCalls {
			continue
		}
		busy++
		if share(int64(w.Class[fault.Client]), w.Distinct()) >= share(int64(c.base.Class[fault.Client]), c.base.Distinct())+theirsRise {
			refused++
		}
	}
	switch on := s.on[Theirs]; {
	case !on && refused >= theirsLeast && 2*refused > busy, on && refused == 0 && busy > 0:
		w := s.window(d.now, d.cfg.Window)
		d.found(s, Theirs, !on, Finding{
			Since: d.now.Add(-d.cfg.Window / 2), Before: share(int64(s.base.Class[fault.Client]), s.base.Distinct()),
			Now: share(int64(w.Class[fault.Client]), w.Distinct()), N: w.Distinct(), Score: float64(refused),
		})
	}
}

// pace is how long first content takes of a target, for requests of one size.
type pace struct {
	recent, usual moments
	since         time.Time // it has been slow
	on            bool
}

// stepPaces takes the times of a tick.
func (d *Detector) stepPaces(t *Tally, span time.Duration) {
	for k, m := range t.content {
		p := d.slow[k]
		if p == nil {
			if *m == (moments{}) || len(d.slow) >= d.cfg.MaxSeries {
				continue
			}
			p = new(pace)
			d.slow[k] = p
		}
		p.recent.fade(math.Exp(-span.Seconds()/d.cfg.Window.Seconds()), *m)
		if !p.on && p.since.IsZero() {
			p.usual.fade(math.Exp(-span.Seconds()/time.Hour.Seconds()), *m)
		}
		*m = moments{}
		d.paced(k, p)
	}
}

// paced compares a pace with the usual one.
func (d *Detector) paced(k contentKey, p *pace) {
	s := d.series[key{Target, k.target, ""}]
	if s == nil || p.recent.n < leastContent || p.usual.n < priorContent {
		return
	}
	by := p.recent.mean() - p.usual.mean()
	slow := by >= math.Log(d.cfg.Slower) && by/(p.usual.deviation()/math.Sqrt(p.recent.n)) >= leastZ
	switch {
	case !slow && !p.on:
		p.since = time.Time{}
	case !p.on && p.since.IsZero():
		p.since = d.now
	case !p.on && d.now.Sub(p.since) >= slowFor, p.on && by < math.Log(calmSlower):
		p.on = !p.on
		if s.on[SlowerBy] != p.on && (p.on || !d.anySlow(k.target)) {
			d.found(s, SlowerBy, p.on, Finding{Since: p.since, Before: math.Exp(p.usual.mean()), Now: math.Exp(p.recent.mean()), N: int64(p.recent.n)})
		}
		if !p.on {
			p.since = time.Time{}
		}
	}
}

func (d *Detector) anySlow(target string) bool {
	for k, p := range d.slow {
		if k.target == target && p.on {
			return true
		}
	}
	return false
}

// leaves finds a target whose breaker opened and has not closed since, for as long
// as evidence of a drop takes: the first probe of a passing fault closes it earlier.
// What it opened for may be too little for the other detectors, for the router asks
// no more of such a target. A target that is no longer configured is none.
func (d *Detector) leaves(s *series) {
	if s.opened.IsZero() && !s.on[Left] {
		return
	}
	if _, there := d.top.Targets[s.key.name]; !there {
		s.opened = time.Time{}
	}
	away := !s.opened.IsZero() && d.now.Sub(s.opened) >= d.cfg.Spread
	if away == s.on[Left] {
		return
	}
	w := s.window(d.now, d.cfg.Window)
	d.found(s, Left, away, Finding{Since: s.opened, Before: share(s.base.Bad(), s.base.Work()), Now: share(w.Bad(), w.Work()), N: w.Work()})
}
