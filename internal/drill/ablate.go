package drill

import (
	"slices"
	"strings"
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
// are to miss a criterion. Progress may be nil.
func Ablate(scenarios []*Scenario, seed uint64, progress func(contender string, at, of time.Duration)) ([]Ablation, error) {
	var out []Ablation
	for _, w := range withouts {
		a := Ablation{Protection: w.name, About: w.about}
		for _, s := range scenarios {
			if !s.names(without + w.name) {
				continue
			}
			r, err := Play(s, Options{Contenders: []string{"router", without + w.name}, Seed: seed, Progress: progress})
			if err != nil {
				return nil, err
			}
			a.Proofs = append(a.Proofs, proof(r))
		}
		out = append(out, a)
	}
	return out, nil
}

// names reports that a criterion is to be missed by the contender.
func (s *Scenario) names(contender string) bool {
	return slices.ContainsFunc(s.Criteria, func(c Criterion) bool { return slices.Contains(c.Fails, contender) })
}

// proof compares the router with its weakened self.
func proof(r *Result) Proof {
	p := Proof{Scenario: r.Scenario}
	whole, weak := r.Runs[0], r.Runs[1]
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

// String names the drills.
func (a *Ablation) String() string {
	var names []string
	for _, p := range a.Proofs {
		names = append(names, p.Scenario)
	}
	return strings.Join(names, ", ")
}
