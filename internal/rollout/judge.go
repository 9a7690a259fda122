package rollout

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// kind is a share that is judged by the sequential test.
type kind int

const (
	success kind = iota
	client
	left
	capacity
	out
	in
	relabelled
	kinds
)

var kindNames = [kinds]string{"success", "client", "left", "capacity", "amplification_out", "amplification_in", "relabelled"}

// of is how many there were of what a share is of, and how many of them were bad.
func (c *counts) of(k kind) (n, bad float64) {
	all := float64(c.distinct())
	switch k {
	case success:
		n = all - float64(c.class[fault.Client]+c.class[fault.ContentPolicy]+c.class[fault.Canceled])
		return n, n - float64(c.class[fault.OK])
	case client:
		return all, float64(c.class[fault.Client] + c.class[fault.ContentPolicy])
	case left:
		return all, float64(c.class[fault.Canceled])
	case capacity:
		for _, f := range c.first {
			n += float64(f)
		}
		return n + float64(c.over), float64(c.first[fault.Capacity] + c.over)
	case out:
		return all, float64(c.extra) / mostExtra
	case in:
		return all + float64(c.repeats), float64(c.repeats)
	}
	bad = float64(c.first[fault.Outage])
	return bad + float64(c.first[fault.Capacity]), bad
}

// margins are by how much each share may be higher; that of success is configured.
func (j *judge) margin(k kind) float64 {
	return [kinds]float64{j.cfg.Margin, 0.01, 0.05, 0.02, 0.05, 0.05, 0.2}[k]
}

// usual is what a share is thought to be where nothing is known, and the weight of
// that in requests.
func usual(k kind) (rate, weight float64) {
	if k == relabelled {
		return 0.5, 20
	}
	return 0.005, 200
}

// stratum is what is known of one workload with one model.
type stratum struct {
	key      cellKey
	base     counts // before the rollout
	baseline times
	lately   counts          // under the version before, in the last stage that had any
	stage    [arms]counts    // of this one
	times    [arms]times     // likewise
	tick     [arms]counts    // since the last tick
	sides    [kinds][2]side  // of the tick: control, candidate
	pend     [kinds]block    // not yet weighed
	found    [kinds]evidence // of this stage
}

// group is what is known of all workloads with one model: of those that the
// candidate serves whole.
type group struct {
	model string
	of    []*stratum // by workload
	pend  [kinds]block
}

// judge compares the two versions in one stage.
type judge struct {
	cfg    Config
	groups []*group // by model
	known  int      // strata
	pool   [kinds]evidence
	memory [arms]held
	look   int64 // times to first content at which they are compared next
	slow   Measure
	// weight is what was made of so many samples of memory.
	weight  Measure
	weighed int
	// flying are requests that have not ended, ended those of the stage that have, and
	// lasts how many seconds one of the version before takes.
	flying, ended [arms]int64
	lasts         float64
}

// mostOpen is up to which share of a stage's requests may not have ended when it
// passes.
const mostOpen = 0.05

// firstLook is how many times to first content of the candidate must be known
// before they are compared for the first time; from there at every doubling.
const firstLook = 64

func newJudge(c Config) *judge { return &judge{cfg: c, look: firstLook} }

// stratum finds or makes the entry of a pair. What is beyond the bound is judged
// together.
func (j *judge) stratum(k cellKey) *stratum {
	i, ok := slices.BinarySearchFunc(j.groups, k.model, func(g *group, m string) int { return cmp.Compare(g.model, m) })
	at := 0
	if ok {
		g := j.groups[i]
		if at, ok = slices.BinarySearchFunc(g.of, k.workload, func(s *stratum, w string) int { return cmp.Compare(s.key.workload, w) }); ok {
			return g.of[at]
		}
	}
	if j.known >= maxCells && k != (cellKey{}) {
		return j.stratum(cellKey{})
	}
	j.known++
	if i == len(j.groups) || j.groups[i].model != k.model {
		j.groups = slices.Insert(j.groups, i, &group{model: k.model})
	}
	g := j.groups[i]
	g.of = slices.Insert(g.of, at, &stratum{key: k})
	return g.of[at]
}

func (j *judge) strata(yield func(*stratum) bool) {
	for _, g := range j.groups {
		for _, s := range g.of {
			if !yield(s) {
				return
			}
		}
	}
}

// came is what came in during a tick: requests of both versions, and those of the
// candidate that say something of it. That neither a caller's mistake does, nor one
// that its caller left, nor one of a workload that the stage does not reach, for only
// the new version knows it.
type came struct{ control, candidate, telling int64 }

// take moves what was seen into the strata and empties it.
func (j *judge) take(now time.Time, seen *Seen, e *Exposure) (in came) {
	for s := range j.strata {
		s.tick = [arms]counts{}
	}
	for k, c := range seen.cells { // the order does not matter: each has a place of its own
		if !c.busy && c.counts == ([arms]counts{}) {
			continue
		}
		s := j.stratum(k)
		for a := range arms {
			s.tick[a].add(&c.counts[a])
		}
		s.base.add(&c.counts[event.NoArm])
		for _, t := range c.times[event.NoArm].all() {
			s.baseline.add(t)
		}
		for a := event.Control; a <= event.Candidate; a++ {
			s.stage[a].add(&c.counts[a])
			for _, t := range c.times[a].all() {
				s.times[a].add(t)
			}
		}
		in.control += c.counts[event.Control].distinct()
		in.candidate += c.counts[event.Candidate].distinct()
		if e.share(k.workload) > 0 || k == (cellKey{}) {
			n, _ := c.counts[event.Candidate].of(success)
			in.telling += int64(n)
		}
	}
	for a, n := range [arms]int64{event.Control: in.control, event.Candidate: in.candidate} {
		j.memory[a].take(now, seen.memory[a].all(), n)
	}
	j.flying = seen.flying
	j.ended[event.Control] += in.control
	j.ended[event.Candidate] += in.candidate
	seen.clear()
	return in
}

// unfinished is how many requests of the candidate have not ended, where that is more
// than one in twenty of the stage's and they take more than twice the time that those
// of the version before do: what they come to is not known yet. Both times by Little's
// law.
func (j *judge) unfinished(age time.Duration) (n int64) {
	if c, ended := float64(j.flying[event.Control]), float64(j.ended[event.Control]); ended > 0 {
		j.lasts = c * age.Seconds() / ended
	}
	n = j.flying[event.Candidate]
	ended := float64(j.ended[event.Candidate])
	if n < least || float64(n) <= mostOpen*(float64(n)+ended) || float64(n)*age.Seconds() <= 2*j.lasts*ended {
		return 0
	}
	return n
}

// step weighs what came in since the last tick.
func (j *judge) step(now time.Time, e *Exposure) {
	for k := range kinds {
		var pool evidence
		all := j.spread(k, e)
		for _, g := range j.groups {
			pool.add(g.weigh(now, k, j.margin(k), e, all))
		}
		for i, more := range pool {
			j.pool[k][i] += min(more, most)
		}
	}
}

// spread fills the sides of all strata for a tick, with what is usual for each, and
// returns the control as a whole.
func (j *judge) spread(k kind, e *Exposure) (all side) {
	rate, weight := usual(k)
	n, bad := weight, rate*weight
	for s := range j.strata {
		a, b := s.base.of(k)
		n, bad = n+a, bad+b
	}
	common := bad / n
	for s := range j.strata {
		before := s.base
		if e.all || before.distinct() < 5*doubt {
			before.add(&s.lately)
		}
		for i, arm := range [2]event.Arm{event.Control, event.Candidate} {
			s.sides[k][i] = before.side(k, &s.tick[arm], common)
		}
		all.join(s.sides[k][0])
	}
	return all
}

// side is what came in, next to what was usual before.
func (c *counts) side(k kind, now *counts, common float64) side {
	n, bad := now.of(k)
	if n == 0 {
		return side{}
	}
	m, was := c.of(k)
	rate := (was + doubt*common) / (m + doubt)
	return side{n: n, bad: bad, usual: n * rate, wrong: n * math.Sqrt(rate*(1-rate)/(m+doubt+1))}
}

// pairing is what the candidate's requests of a stratum are compared with.
func (s *stratum) pairing(e *Exposure) pairing {
	switch {
	case e.both(s.key.workload) && (!e.all || s.stage[event.Control].distinct() > 0):
		return paired
	case e.all:
		return alone
	}
	return others
}

// weigh weighs what came in of a model, and returns the evidence that is new.
func (g *group) weigh(now time.Time, k kind, margin float64, e *Exposure, all side) (pool evidence) {
	var control, whole side
	var known counts
	for _, s := range g.of {
		control.join(s.sides[k][0])
		known.add(&s.stage[event.Control])
	}
	if n, _ := known.of(k); n == 0 {
		control = all // nobody else uses the model
	}
	for _, s := range g.of {
		how, own := s.pairing(e), s.sides[k]
		atLeast := 0.0
		if how != paired {
			atLeast = few
			whole.join(own[1])
			own[0] = control
		}
		more := s.pend[k].take(now, k, own, margin, atLeast, how)
		s.found[k].add(more)
		if how == paired {
			pool.add(more)
		}
	}
	how := others
	if e.all {
		how = alone
	}
	pool.add(g.pend[k].take(now, k, [2]side{control, whole}, margin, 0, how))
	return pool
}

// again begins a stage: what the control came to in the one before is kept.
func (j *judge) again() {
	for s := range j.strata {
		if c := &s.stage[event.Control]; c.distinct() > 0 {
			s.lately = *c
		}
		if s.baseline.n < slowLeast {
			for _, t := range s.times[event.Control].all() {
				s.baseline.add(t)
			}
		}
		*s = stratum{key: s.key, base: s.base, baseline: s.baseline, lately: s.lately}
	}
	for _, g := range j.groups {
		g.pend = [kinds]block{}
	}
	*j = judge{cfg: j.cfg, groups: j.groups, known: j.known, look: firstLook, lasts: j.lasts}
}
