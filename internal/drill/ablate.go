package drill

import (
	"slices"
	"time"
)

// Ablation says what one of the router's protections is worth: the criteria
// that the router misses without it.
type Ablation struct {
	Protection string  // as in the contender's name
	About      string  // what the router does without it
	Proofs     []Proof // none: the drills prove nothing about it
}

// Proof is a scenario in which the protection counts.
type Proof struct {
	Scenario string
	Missed   []string // criteria that the router meets and its weakened self does not
	Met      []string // those that it was to miss, and met
}

// Ablate plays every scenario that names a weakened router among those that
// are to miss a criterion, with the router and all of them. Progress may be
// nil.
func Ablate(scenarios []*Scenario, seed uint64, progress func(contender string, at, of time.Duration)) ([]Ablation, error) {
	var out []Ablation
	for _, w := range withouts {
		out = append(out, Ablation{Protection: w.name, About: w.about})
	}
	for _, s := range scenarios {
		against := []string{"router"}
		for _, name := range Without() {
			if s.names(name) {
				against = append(against, name)
			}
		}
		if len(against) == 1 {
			continue
		}
		r, err := Play(s, Options{Contenders: against, Seed: seed, Progress: progress})
		if err != nil {
			return nil, err
		}
		for _, weak := range r.Runs[1:] {
			i := slices.IndexFunc(withouts, func(w lacking) bool { return without+w.name == weak.Contender })
			out[i].Proofs = append(out[i].Proofs, proof(s.Name, r.Runs[0], weak))
		}
	}
	return out, nil
}

// names reports that a criterion is to be missed by the contender.
func (s *Scenario) names(contender string) bool {
	return slices.ContainsFunc(s.Criteria, func(c Criterion) bool { return slices.Contains(c.Fails, contender) })
}

// proof compares the router with its weakened self.
func proof(scenario string, whole, weak Run) Proof {
	p := Proof{Scenario: scenario}
	for i, j := range weak.Criteria {
		switch {
		case whole.Criteria[i].Met && !j.Met:
			p.Missed = append(p.Missed, j.Name)
		case j.Met && slices.Contains(j.Fails, weak.Contender):
			p.Met = append(p.Met, j.Name)
		}
	}
	return p
}

// Proven reports that some drill fails without the protection, and that none
// passes that was to fail.
func (a *Ablation) Proven() bool {
	missed := false
	for _, p := range a.Proofs {
		if len(p.Met) > 0 {
			return false
		}
		missed = missed || len(p.Missed) > 0
	}
	return missed
}
