package rollout

import (
	"fmt"
	"math"
	"slices"

	"github.com/hourthree/hourthree/internal/event"
)

// What times to first content must differ by: Kayenta's effect of 25 %. Its
// confidence of 0.98 is for one comparison; here the chance of 0.02 is spread over
// two hundred, for a rollout looks at every doubling in each of its stages.
const (
	slower     = 1.25
	slowChance = 0.02 / 200
	slowLeast  = 24 // of either version, of one workload
	thinned    = 1000
)

// content compares times to first content, at looks that lie farther and farther
// apart: of all workloads together, and of each by itself.
func (j *judge) content(e *Exposure) Measure {
	n := int64(0)
	for s := range j.strata {
		n += int64(s.times[event.Candidate].n)
	}
	if n < j.look || j.slow.Verdict == Fail {
		if j.slow.Name == "" {
			return Measure{Name: "first_content", N: n, Text: "not enough was seen of it"}
		}
		return j.slow
	}
	for j.look <= n {
		j.look *= 2
	}
	j.slow = j.slowed(e)
	return j.slow
}

// slowed is one look. Each workload has its part of the chance, so that many of them
// make no more false alarms than few. Where a workload has one version only, it must
// have become slower than before by more than the others have, and differ from what
// the others have become as well.
func (j *judge) slowed(e *Exposure) Measure {
	type place struct {
		*stratum
		now, was []float64
		how      pairing
	}
	var places []place
	var now, was, apart []float64
	others := j.others()
	for s := range j.strata {
		a, b := s.centred(e, others.drift)
		now, was = append(now, a...), append(was, b...)
		how := s.pairing(e)
		if how != paired {
			apart = append(apart, a...)
		}
		if len(a) >= slowLeast && len(b) >= slowLeast {
			places = append(places, place{s, a, b, how})
		}
	}
	m := compare(thin(now), thin(was), slowChance/2)
	if m.Verdict == Fail && (len(apart) < len(now)/2 || others.slower(apart, slowChance/2)) {
		return m
	}
	m.Verdict = ""
	chance := slowChance / 4 / float64(len(places))
	for _, p := range places {
		if mannWhitney(p.now, p.was) > 10*chance {
			continue // whatever lies far out
		}
		one := compare(p.now, p.was, chance)
		if one.Verdict == Fail && (p.how == paired || others.slower(p.now, chance)) && (m.Verdict != Fail || one.Candidate > m.Candidate) {
			m = one
			m.Text = fmt.Sprintf("%s: %s", p.key, m.Text)
		}
	}
	return m
}

// compare is the verdict on two rows of logarithms. The figures are relative to
// what both have in common.
func compare(now, was []float64, chance float64) Measure {
	now, was = without(now), without(was)
	m := Measure{Name: "first_content", N: int64(len(now)), M: int64(len(was)), Control: 1}
	if len(now) < slowLeast || len(was) < slowLeast {
		m.Text = "not enough was seen of it"
		return m
	}
	m.Candidate = math.Exp(shift(now, was))
	m.Text = fmt.Sprintf("first content takes %.2f times as long as under the version before", m.Candidate)
	if m.Candidate >= slower && mannWhitney(now, was) < chance {
		m.Verdict = Fail
	}
	return m
}

// centred are the times of a workload under both versions, without what the size of
// the prompt makes of them. What the candidate is compared with is the control of
// the same time or, where there is none, what was before; and by how much everybody
// has become slower since is taken off.
func (s *stratum) centred(e *Exposure, drift float64) (now, was []float64) {
	ref := s.times[event.Control].all()
	if s.pairing(e) == paired {
		drift = 0
	} else {
		ref = s.baseline.all()
	}
	return centre(s.times[event.Candidate].all(), ref, drift)
}

func centre(a, b []sample, drift float64) (now, was []float64) {
	for size := range uint8(sizes) {
		x, y := ofSize(a, size), ofSize(b, size)
		if len(x) == 0 || len(y) < 3 {
			continue
		}
		both := slices.Concat(x, y)
		slices.Sort(both)
		mid := quantile(both, 0.5)
		for _, v := range x {
			now = append(now, v-mid-drift)
		}
		for _, v := range y {
			was = append(was, v-mid)
		}
	}
	return now, was
}

func ofSize(all []sample, size uint8) (out []float64) {
	for _, s := range all {
		if s.size == size {
			out = append(out, float64(s.log))
		}
	}
	return out
}

// rest is what has become of the workloads that have both a before and a control.
type rest struct {
	drift float64   // by how much they have become slower, as a logarithm; 0 for faster
	now   []float64 // without the drift
}

func (j *judge) others() (r rest) {
	var was []float64
	for s := range j.strata {
		a, b := centre(s.times[event.Control].all(), s.baseline.all(), 0)
		r.now, was = append(r.now, a...), append(was, b...)
	}
	if len(r.now) < slowLeast || len(was) < slowLeast {
		return rest{}
	}
	r.now = thin(r.now)
	r.drift = max(0, shift(without(r.now), without(thin(was))))
	for i := range r.now {
		r.now[i] -= r.drift
	}
	return r
}

// slower reports that times without the drift lie above those of the others, or
// that there are no others.
func (r *rest) slower(now []float64, chance float64) bool {
	return len(r.now) == 0 || compare(thin(now), r.now, chance).Verdict == Fail
}

// thin leaves some thousand of many numbers, evenly.
func thin(a []float64) []float64 {
	step := len(a)/thinned + 1
	if step == 1 {
		return a
	}
	out := make([]float64, 0, thinned)
	for i := 0; i < len(a); i += step {
		out = append(out, a[i])
	}
	return out
}
