package rollout

import (
	"fmt"
	"math"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// What a class mix must differ by, and how unlikely that must be. There is one look
// a tick: of a few thousand looks at a time one in a million each is left over.
const (
	mixBits   = 0.05
	mixChance = 1e-6
	mixLeast  = 30 // of either version
)

// measures are the comparisons of a stage, always the same in the same order.
func (j *judge) measures(e *Exposure, enough bool) []Measure {
	out := make([]Measure, 0, kinds+3)
	for k := range kinds {
		out = append(out, j.share(k, e))
	}
	out = append(out, j.mix(e), j.content(e), j.held(e))
	for i := range out {
		m := &out[i]
		switch {
		case m.Verdict == Fail:
		case enough:
			m.Verdict = Pass
		default:
			m.Verdict = Insufficient
		}
	}
	return out
}

// share is the verdict of a sequential test: the mean of the evidence over all
// workloads together and over each by itself, so that neither a small difference
// everywhere nor a great one in one place is missed, and looking at many places
// costs no false alarms.
func (j *judge) share(k kind, e *Exposure) Measure {
	m := Measure{Name: kindNames[k]}
	var each []float64
	var worst *stratum
	top, n, bad, usual, m0 := math.Inf(-1), 0.0, 0.0, 0.0, 0.0
	for s := range j.strata {
		a, b := s.stage[event.Candidate].of(k)
		c, d := s.against(e).of(k)
		m0 += c
		if a == 0 {
			continue
		}
		n, bad = n+a, bad+b
		if c > 0 {
			usual += a * d / c
		}
		each = append(each, s.found[k][:]...)
		if x := mean(s.found[k][:]); x > top {
			top, worst = x, s
		}
	}
	if n == 0 {
		m.Text = "nothing was seen of it"
		return m
	}
	m.N, m.M, m.Candidate, m.Control = int64(n), int64(m0), bad/n, usual/n
	evidence := mean([]float64{mean(j.pool[k][:]), mean(each)})
	m.Text = k.text(m.Candidate, m.Control)
	if evidence < math.Log(1/alpha) || n < least || k == relabelled && !j.moved(e) {
		return m
	}
	m.Verdict = Fail
	if top >= mean(j.pool[k][:]) {
		a, b := worst.stage[event.Candidate].of(k)
		c, d := worst.against(e).of(k)
		m.Text = fmt.Sprintf("workload %s, model %s: %s", worst.key.workload, worst.key.model, k.text(b/a, d/max(c, 1)))
	}
	return m
}

// against is what a candidate's requests are shown next to.
func (s *stratum) against(e *Exposure) *counts {
	if e.pairing(s.key.workload) == paired {
		return &s.stage[event.Control]
	}
	if s.base.distinct() < 5*doubt && s.lately.distinct() > 0 {
		return &s.lately
	}
	return &s.base
}

func (k kind) text(candidate, control float64) string {
	switch k {
	case success:
		return fmt.Sprintf("success %s, of the version before %s", percent(1-candidate), percent(1-control))
	case client:
		return fmt.Sprintf("%s refused as the caller's mistake, by the version before %s", percent(candidate), percent(control))
	case capacity:
		return fmt.Sprintf("%s refused for capacity or a limit, under the version before %s", percent(candidate), percent(control))
	case out:
		return fmt.Sprintf("%.2f calls for a request, under the version before %.2f", 1+candidate*mostExtra, 1+control*mostExtra)
	case in:
		return fmt.Sprintf("%.2f requests for a distinct one, under the version before %.2f", 1/max(1-candidate, 0.01), 1/max(1-control, 0.01))
	}
	return fmt.Sprintf("%s of the refusals for capacity and the server faults are faults, under the version before %s", percent(candidate), percent(control))
}

func percent(x float64) string { return fmt.Sprintf("%.4g %%", 100*x) }

// moved reports that capacity refusals have become server faults, as on 29 May 2026
// (HT-0001): fewer of the calls are refused for capacity, and at least half as many
// as those that are missing fail instead.
func (j *judge) moved(e *Exposure) bool {
	var n, full, broken, wasFull, wasBroken float64
	for s := range j.strata {
		c, o := &s.stage[event.Candidate], s.against(e)
		a, b := total(row(&c.first)), total(row(&o.first))
		if a == 0 || b == 0 {
			continue
		}
		n += a
		full += float64(c.first[fault.Capacity])
		broken += float64(c.first[fault.Outage])
		wasFull += a * float64(o.first[fault.Capacity]) / b
		wasBroken += a * float64(o.first[fault.Outage]) / b
	}
	fell, rose := wasFull-full, broken-wasBroken
	return n > 0 && fell > 0.002*n && rose >= fell/2
}

// row are the classes of calls by which mixes are compared: a caller that leaves is
// nobody's doing.
func row(c *[classes]uint32) []float64 {
	out := make([]float64, classes)
	for i, n := range c {
		if i != int(fault.Canceled) {
			out[i] = float64(n)
		}
	}
	return out
}

// mix compares the classes of what came of requests and of first calls. Where a
// workload has one version only, it must differ both from what is usual for it and
// from what others have at the same time.
func (j *judge) mix(e *Exposure) Measure {
	m := Measure{Name: "class_mix", Text: "the classes of errors are alike"}
	for _, g := range j.groups {
		var control counts
		for _, s := range g.of {
			control.add(&s.stage[event.Control])
		}
		for _, s := range g.of {
			one := s.mix(e, &control)
			if one.N > 0 && (one.Verdict == Fail && m.Verdict != Fail || one.Verdict == m.Verdict && one.Candidate >= m.Candidate) {
				m = one
			}
		}
	}
	return m
}

func (s *stratum) mix(e *Exposure, others *counts) Measure {
	m := Measure{Name: "class_mix", Text: "the classes of errors are alike"}
	c := &s.stage[event.Candidate]
	if c.distinct() < mixLeast {
		return m
	}
	refs := []*counts{&s.stage[event.Control]}
	if e.pairing(s.key.workload) != paired {
		refs = []*counts{&s.base, others}
	}
	for _, of := range []func(*counts) *[classes]uint32{
		func(c *counts) *[classes]uint32 { return &c.class }, func(c *counts) *[classes]uint32 { return &c.first },
	} {
		now, failed, compared, bits := row(of(c)), true, 0, 1.0
		var last []float64
		for _, ref := range refs {
			was := row(of(ref))
			if total(was) < mixLeast || total(now) < mixLeast {
				continue
			}
			compared++
			last = was
			d := divergence(now, was)
			bits = min(bits, d)
			failed = failed && d > mixBits && gTest(now, was) < mixChance
		}
		if compared == 0 || m.N > 0 && bits < m.Candidate {
			continue
		}
		m.Candidate, m.N, m.M = bits, int64(total(now)), int64(total(last))
		if failed {
			m.Verdict = Fail
			m.Text = fmt.Sprintf("workload %s, model %s: the classes differ by %.3f bits: %s", s.key.workload, s.key.model, bits, differ(now, last))
			return m
		}
	}
	return m
}

// differ names the class whose share has risen most.
func differ(now, was []float64) string {
	most, at := -1.0, 0
	for i := range now {
		if d := now[i]/total(now) - was[i]/total(was); d > most {
			most, at = d, i
		}
	}
	return fmt.Sprintf("%s %s, before %s", fault.Class(at), percent(now[at]/total(now)), percent(was[at]/total(was)))
}
