package detect

import (
	"math"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

const (
	partWidth = 5 * time.Second
	numParts  = 96 // 8 minutes
	pastWidth = 10 * time.Minute
	numPast   = 8 // of which the newest is not yet past
	// recently is over what a load is measured.
	recently = 5 * time.Minute
)

type key struct {
	kind     Kind
	name, of string
}

// series is what is known of one subject over time.
type series struct {
	key    key
	began  time.Time
	last   time.Time // something came in
	cur    Counts    // since the last tick
	recent ring
	past   ring   // without the time in which something was wrong
	base   Counts // an hour of it, from ten minutes ago back

	opened       time.Time // the target's breaker, zero while it is closed
	drop, broken cusum
	on           map[string]bool // detectors that find something
}

func newSeries(k key, now time.Time) *series {
	s := &series{key: k, began: now, recent: ring{width: partWidth, parts: make([]Counts, numParts)}}
	if k.kind != use {
		s.past = ring{width: pastWidth, parts: make([]Counts, numPast)}
	}
	return s
}

// window is what came in during the last d.
func (s *series) window(now time.Time, d time.Duration) Counts {
	return s.recent.sum(now.Add(partWidth-d), now.Add(partWidth))
}

// rate is the load from one time to another, in requests a second, as far as they are
// remembered and the series is that old. What callers leave, or are refused as their
// mistake, is none: nobody knows whether it would have been answered.
func (s *series) rate(from, to time.Time) float64 {
	if from.Before(s.began) {
		from = s.began
	}
	c := s.recent.sum(from, to)
	return float64(c.Work()) / max(to.Sub(from).Seconds(), partWidth.Seconds())
}

// ring counts by parts of equal length.
type ring struct {
	width  time.Duration
	newest int64
	parts  []Counts
}

func (r *ring) turn(now time.Time) {
	n := now.UnixNano() / int64(r.width)
	if n-r.newest > int64(len(r.parts)) || n < r.newest-1 { // or the clock was set back: nothing is known of then
		clear(r.parts)
		r.newest = n
	}
	for r.newest < n {
		r.newest++
		r.parts[r.newest%int64(len(r.parts))] = Counts{}
	}
}

func (r *ring) add(now time.Time, c *Counts) {
	r.turn(now)
	r.parts[r.newest%int64(len(r.parts))].add(c)
}

// sum is of the parts that begin from from on and before to.
func (r *ring) sum(from, to time.Time) (out Counts) {
	size := int64(r.width)
	first, last := (from.UnixNano()+size-1)/size, (to.UnixNano()-1)/size
	first, last = max(first, r.newest-int64(len(r.parts))+1), min(last, r.newest)
	for n := first; n <= last; n++ {
		out.add(&r.parts[n%int64(len(r.parts))])
	}
	return out
}

// cusum adds up what speaks for a rise of a share of failures, and from the rise
// on what speaks for its end. Both are sequential tests of p1 against p0: where
// failures are independent and no more frequent than p0, it takes at least e^limit
// of them on average for a false alarm.
type cusum struct {
	bad, good float64
	rose      time.Time // when bad left zero
	on        bool
}

const enough = 3.0 // -ln 0.05: of twenty failing series one is taken for well, for a while

type evidence struct {
	n, bad float64
	p0, p1 float64
	limit  float64
	most   float64 // that one step may add
}

// step takes one tick's evidence and reports a change.
func (c *cusum) step(at time.Time, e evidence) (changed bool) {
	llr := e.bad*math.Log(e.p1/e.p0) + (e.n-e.bad)*math.Log((1-e.p1)/(1-e.p0))
	if c.on {
		if c.good = max(0, c.good-llr); c.good >= enough {
			*c = cusum{}
			return true
		}
		return false
	}
	if c.bad == 0 && llr > 0 {
		c.rose = at
	}
	if c.bad = max(0, c.bad+min(llr, e.most)); c.bad >= e.limit {
		c.on, c.good = true, 0
		return true
	}
	return false
}

// usual is the share of failures up to which a series is taken for well, and the
// one that is looked for. Without a history one in two hundred is taken for usual.
func usual(bad, n int64) (p0, p1 float64) {
	base := (float64(bad) + 1) / (float64(n) + 200)
	p0 = min(1.5*base+0.005, 0.45)
	return p0, min(2*p0+0.02, 0.95)
}

// step closes a tick of one series.
func (d *Detector) step(s *series, span time.Duration) {
	c := s.cur
	s.cur = Counts{}
	if c != (Counts{}) {
		s.last = d.now
	}
	s.recent.add(d.now, &c)
	if s.past.parts != nil && !s.failing() {
		old := s.past.newest
		s.past.add(d.now, &c)
		if s.past.newest != old {
			s.base = s.past.sum(d.now.Add(-numPast*pastWidth), d.now.Add(-pastWidth))
		}
	}
	if s.key.kind == use || s.key.kind == call || c.Work() == 0 {
		return
	}
	d.sequential(s, Drop, &s.drop, span, [2]int64{c.Work(), c.Bad()}, [2]int64{s.base.Work(), s.base.Bad()})
	if s.key.kind == Target {
		d.sequential(s, Broken, &s.broken, span, [2]int64{c.Work(), int64(c.Broken)}, [2]int64{s.base.Work(), int64(s.base.Broken)})
	}
}

// failing reports that what comes in now is not what is usual.
func (s *series) failing() bool { return s.drop.on || s.broken.on || len(s.on) > 0 }

// sequential runs one of a series' tests; now and base are how much there was, and
// how much of it failed.
func (d *Detector) sequential(s *series, name string, c *cusum, span time.Duration, now, base [2]int64) {
	p0, p1 := usual(base[1], base[0])
	day := max(1e5, float64(s.base.Work())*24)
	limit := math.Log(day / d.cfg.FalseAlarm)
	e := evidence{n: float64(now[0]), bad: float64(now[1]), p0: p0, p1: p1, limit: limit, most: limit * min(1, span.Seconds()/d.cfg.Spread.Seconds())}
	if !c.step(d.now.Add(-span), e) {
		return
	}
	w := s.window(d.now, d.cfg.Window)
	bad := w.Bad()
	if name == Broken {
		bad = int64(w.Broken)
	}
	d.found(s, name, c.on, Finding{
		Since: c.rose, Before: share(base[1], base[0]), Now: share(bad, w.Work()), N: w.Work(),
	})
}

// shares are the classes that mixes are compared by.
func shares(c *Counts) [6]float64 {
	k := func(of ...fault.Class) (n float64) {
		for _, one := range of {
			n += float64(c.Class[one])
		}
		return n
	}
	return [6]float64{
		k(fault.OK), k(fault.Capacity), k(fault.Outage), k(fault.Deadline), k(fault.Account, fault.Credential), k(fault.Overload),
	}
}
