package rollout

import (
	"fmt"
	"math"
	"strings"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// What a class mix must differ by, and how unlikely that must be. There is one look
// a tick: of a few thousand looks at a time one in a million each is left over.
const (
	mixBits   = 0.05
	mixChance = 1e-6
	mixLeast  = 30 // of either version
	// fewChance is how unlikely it must be that so few refusals for capacity came by
	// chance.
	fewChance = 0.01
)

// measures are the comparisons of a stage, always the same in the same order.
func (j *judge) measures(e *Exposure, enough bool) []Measure {
	out := make([]Measure, 0, kinds+3)
	for k := range kinds {
		out = append(out, j.share(k, e))
	}
	out = append(out, j.mix(e), j.content(e), j.inFlight(e))
	if mix := &out[kinds]; mix.Verdict == Fail && j.moved(e) { // the same by another name
		out[relabelled].Verdict = Fail
	}
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
	m.Candidate, m.Control = k.value(m.Candidate), k.value(m.Control)
	if evidence < math.Log(1/alpha) || n < least || k == relabelled && !j.moved(e) {
		return m
	}
	m.Verdict = Fail
	if top >= mean(j.pool[k][:]) {
		a, b := worst.stage[event.Candidate].of(k)
		c, d := worst.against(e).of(k)
		m.Text = fmt.Sprintf("%s: %s", worst.key, k.text(b/a, d/max(c, 1)))
	}
	return m
}

// against is what a candidate's requests are shown next to.
func (s *stratum) against(e *Exposure) *counts {
	if s.pairing(e) == paired {
		return &s.stage[event.Control]
	}
	if s.base.distinct() < 5*doubt && s.lately.distinct() > 0 {
		return &s.lately
	}
	return &s.base
}

// value is what a kind's name says, from the share of its bad ones.
func (k kind) value(bad float64) float64 {
	switch k {
	case success:
		return 1 - bad
	case out:
		return 1 + bad*mostExtra
	case in:
		return 1 / max(1-bad, 0.01)
	}
	return bad
}

func (k kind) text(candidate, control float64) string {
	candidate, control = k.value(candidate), k.value(control)
	switch k {
	case success:
		return fmt.Sprintf("success %s, of the version before %s", percent(candidate), percent(control))
	case client:
		return fmt.Sprintf("%s refused as the caller's mistake, by the version before %s", percent(candidate), percent(control))
	case left:
		return fmt.Sprintf("%s of the callers leave before the end, under the version before %s", percent(candidate), percent(control))
	case capacity:
		return fmt.Sprintf("%s refused for capacity or a limit, under the version before %s", percent(candidate), percent(control))
	case out:
		return fmt.Sprintf("%.2f calls for a request, under the version before %.2f", candidate, control)
	case in:
		return fmt.Sprintf("%.2f requests for a distinct one, under the version before %.2f", candidate, control)
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
		a, b := calls(c), calls(o)
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
	chance := chiSquareTail(2*wasFull, 2*int(full)+2) // of so few, by Poisson's distribution
	return n > 0 && fell > 0.002*n && rose >= fell/2 && chance < fewChance
}

// row are the classes of calls by which mixes are compared: a caller that leaves is
// nobody's doing.
func row(c *[classes]uint32) (out mixture) {
	for i, n := range c {
		if i != int(fault.Canceled) {
			out[i] = float64(n)
		}
	}
	return out
}

type mixture [classes]float64

func (m *mixture) total() float64 { return total(m[:]) }

func calls(c *counts) (n float64) {
	for _, k := range c.first {
		n += float64(k)
	}
	return n
}

// mix compares the classes of what came of requests and of first calls. Where a
// workload has one version only, it must differ both from what is usual for it and
// from what others have at the same time.
func (j *judge) mix(e *Exposure) Measure {
	m := Measure{Name: "class_mix", Text: "the classes of errors are alike"}
	for _, g := range j.groups {
		now, was := g.control()
		for _, s := range g.of {
			one := s.mix(e, now, was)
			if one.N > 0 && (one.Verdict == Fail && m.Verdict != Fail || one.Verdict == m.Verdict && one.Candidate >= m.Candidate) {
				m = one
			}
		}
	}
	return m
}

// control is what the control of a model has come to in the stage, and what was
// usual for the same workloads, in the same proportions.
func (g *group) control() (now, was [2]mixture) {
	for _, s := range g.of {
		for i, of := range rows {
			a, b := row(of(&s.stage[event.Control])), row(of(&s.base))
			n, m := a.total(), b.total()
			for c := range a {
				now[i][c] += a[c]
				if m > 0 {
					was[i][c] += b[c] / m * n
				}
			}
		}
	}
	return now, was
}

// rows are what mixes are made of: what came of requests, and of first calls.
var rows = [2]func(*counts) *[classes]uint32{
	func(c *counts) *[classes]uint32 { return &c.class }, func(c *counts) *[classes]uint32 { return &c.first },
}

// along is a mix that has changed as the control has: what the control has lost in
// whole answers is lost, and goes where it went there.
func (m mixture) along(now, was *mixture) mixture {
	n, before, all := now.total(), was.total(), m.total()
	if n == 0 || before == 0 || now[fault.OK] == 0 || was[fault.OK] == 0 {
		return m
	}
	keep := min(1, now[fault.OK]/n/(was[fault.OK]/before))
	var gained mixture
	for c := range m {
		gained[c] = max(0, now[c]/n-keep*was[c]/before)
	}
	gained[fault.OK] = 0
	sum := max(gained.total(), 1e-9)
	for c := range m {
		m[c] = m[c]*keep + gained[c]/sum*(1-keep)*all
	}
	return m
}

func (s *stratum) mix(e *Exposure, ctlNow, ctlWas [2]mixture) Measure {
	m := Measure{Name: "class_mix", Text: "the classes of errors are alike"}
	if s.stage[event.Candidate].distinct() < mixLeast {
		return m
	}
	before := s.base
	if e.all {
		before.add(&s.lately)
	}
	for i, of := range rows {
		now, base := row(of(&s.stage[event.Candidate])), row(of(&before))
		refs := []mixture{row(of(&s.stage[event.Control]))}
		if s.pairing(e) != paired {
			refs = []mixture{base, ctlNow[i], base.along(&ctlNow[i], &ctlWas[i])}
		}
		one := now.compare(refs)
		if one.N == 0 || m.N > 0 && one.Candidate <= m.Candidate && one.Verdict != Fail {
			continue
		}
		m.Candidate, m.N, m.M = one.Candidate, one.N, one.M
		if one.Verdict == Fail {
			m.Verdict = Fail
			m.Text = fmt.Sprintf("%s: the classes differ by %.3f bits: %s", s.key, one.Candidate, one.Text)
			return m
		}
	}
	return m
}

// compare is a failure where a mix differs from each of some that it is held
// against and of which enough is known.
func (m *mixture) compare(refs []mixture) (out Measure) {
	n, failed, bits := m.total(), true, 1.0
	for i := range refs {
		ref := &refs[i]
		if ref.total() < mixLeast || n < mixLeast {
			continue
		}
		d := divergence(m[:], ref[:])
		failed = failed && d > mixBits && gTest(m[:], ref[:]) < mixChance
		if bits = min(bits, d); bits == d {
			risen, text := differ(m, ref)
			failed = failed && risen != fault.OK // to become better is no fault
			out = Measure{N: int64(n), M: int64(ref.total()), Candidate: d, Text: text}
		}
	}
	if failed && out.N > 0 {
		out.Verdict = Fail
	}
	return out
}

// differ names the class whose share has risen most.
func differ(now, was *mixture) (fault.Class, string) {
	most, at := -1.0, 0
	for i := range now {
		if d := now[i]/now.total() - was[i]/was.total(); d > most {
			most, at = d, i
		}
	}
	return fault.Class(at), fmt.Sprintf("%s %s, before %s", fault.Class(at), percent(now[at]/now.total()), percent(was[at]/was.total()))
}

// unseen names the models that the control has used and the candidate hardly has:
// the stage proves nothing about them (HT-0004).
func (j *judge) unseen() string {
	var names []string
	for _, g := range j.groups {
		var control, candidate int64
		for _, s := range g.of {
			control += s.stage[event.Control].distinct()
			candidate += s.stage[event.Candidate].distinct()
		}
		if control >= 10*least && candidate < least {
			names = append(names, "model "+g.model)
		}
	}
	if len(names) > 3 {
		names = append(names[:3], fmt.Sprintf("%d more", len(names)-3))
	}
	return strings.Join(names, ", ")
}
