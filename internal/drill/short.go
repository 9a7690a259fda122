package drill

import "slices"

// Short is the scenario with fewer requests, as its thin says: rates, and what
// bears them, are that share of what is written. Ratios and times stay, and so
// should the verdicts.
func (s *Scenario) Short() *Scenario {
	f := s.Thin
	if f == 0 || f == 1 {
		return s
	}
	out := *s
	out.Workloads, out.Targets, out.Faults = slices.Clone(s.Workloads), slices.Clone(s.Targets), slices.Clone(s.Faults)
	part := func(n int) int {
		if n == 0 {
			return 0
		}
		return max(1, int(float64(n)*f+0.5))
	}
	if s.Gateway != nil {
		g := *s.Gateway
		g.Capacity *= f
		g.Memory = Size(float64(g.Memory) * f)
		out.Gateway = &g
	}
	for i := range out.Workloads {
		w := &out.Workloads[i]
		w.Rate = slices.Clone(w.Rate)
		for k := range w.Rate {
			w.Rate[k].RPS *= f
		}
		w.RPM, w.Concurrency, w.tpm = part(w.RPM), part(w.Concurrency), int64(part(int(w.tpm)))
	}
	for i := range out.Targets {
		t := &out.Targets[i]
		t.Capacity *= f
		t.Memory = Size(float64(t.Memory) * f)
		t.RPM, t.Concurrency, t.own.tpm = part(t.RPM), part(t.Concurrency), int64(part(int(t.own.tpm)))
		if t.Keys != nil {
			k := *t.Keys
			k.Capacity *= f
			t.Keys = &k
		}
		if t.Verdict != nil {
			v := *t.Verdict
			v.RPS *= f
			t.Verdict = &v
		}
	}
	for i := range out.Faults {
		out.Faults[i].Warm = part(out.Faults[i].Warm)
	}
	return &out
}

// Against is the contenders that the scenario says something about: the router
// and those that are to miss a criterion.
func (s *Scenario) Against() []string {
	out := []string{"router"}
	for _, name := range Names() {
		if s.names(name) {
			out = append(out, name)
		}
	}
	return out
}
