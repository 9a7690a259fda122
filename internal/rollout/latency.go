package rollout

import (
	"fmt"
	"math"
	"slices"

	"github.com/hourthree/hourthree/internal/event"
)

// What times to first content must differ by: Kayenta's effect of 25 % and its
// confidence of 0.98, which is spent over ten looks.
const (
	slower      = 1.25
	slowChance  = 0.02 / 10
	slowLeast   = 24 // of either version, of one workload
	heldMore    = 1.5
	heldBytes   = 64 << 10
	trendChance = 1e-4
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
	drift := j.drift(e)
	var now, was []float64
	worst := Measure{}
	for s := range j.strata {
		a, b := s.centred(e, drift)
		now, was = append(now, a...), append(was, b...)
		if len(a) < slowLeast || len(b) < slowLeast {
			continue
		}
		// With several places to look at each has a part of the chance.
		m := compare(a, b, slowChance/10)
		m.Text = fmt.Sprintf("workload %s, model %s: %s", s.key.workload, s.key.model, m.Text)
		if m.Verdict == Fail && m.Candidate > worst.Candidate {
			worst = m
		}
	}
	j.slow = compare(now, was, slowChance)
	if j.slow.Verdict != Fail && worst.Verdict == Fail {
		j.slow = worst
	}
	return j.slow
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
	if e.pairing(s.key.workload) == paired {
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

// drift is by how much the workloads that have both a before and a control have
// become slower, as a logarithm; getting faster is not held against anybody.
func (j *judge) drift(e *Exposure) float64 {
	var now, was []float64
	for s := range j.strata {
		a, b := centre(s.times[event.Control].all(), s.baseline.all(), 0)
		now, was = append(now, a...), append(was, b...)
	}
	if len(now) < slowLeast || len(was) < slowLeast {
		return 0
	}
	return max(0, shift(without(now), without(was)))
}

// held compares the memory that a request in flight holds: by how much it grows in
// the stage, and, where both versions serve the same workload and nothing else, how
// much it is.
func (j *judge) held(e *Exposure) Measure {
	now, was := j.memory[event.Candidate].all(), j.memory[event.Control].all()
	m := Measure{Name: "memory", N: int64(len(now)), M: int64(len(was))}
	if len(now) == 0 {
		m.Text = "nothing was seen of it"
		return m
	}
	a, b := slices.Sorted(slices.Values(now)), slices.Sorted(slices.Values(was))
	m.Candidate, m.Control = quantile(a, 0.5), quantile(b, 0.5)
	m.Text = fmt.Sprintf("%.0f KiB for a request in flight, under the version before %.0f KiB", m.Candidate/1024, m.Control/1024)
	p, rise := trend(now)
	_, usual := trend(was)
	if least := max(heldBytes, m.Control/2); p < trendChance && rise-max(0, usual) >= least {
		m.Verdict = Fail
		m.Text = fmt.Sprintf("memory of a request in flight grew by %.0f KiB, under the version before by %.0f KiB", rise/1024, usual/1024)
		return m
	}
	if e.any() && !e.all && len(e.whole) == 0 && len(now) >= slowLeast && len(was) >= slowLeast &&
		m.Candidate >= m.Control*heldMore+heldBytes && mannWhitney(now, was) < trendChance {
		m.Verdict = Fail
	}
	return m
}
