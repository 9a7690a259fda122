package drill

import (
	"slices"
	"sync"
	"time"
)

// books are what a run writes down, by steps of equal length. Safe for
// concurrent use.
type books struct {
	step  time.Duration
	steps int

	mu        sync.Mutex
	workloads map[string]*workloadBook
	targets   map[string]*targetBook
}

type workloadBook struct {
	Series
	took [][]time.Duration // of good answers, by the step they were asked in
}

// targetBook is one target's. It is written under its server's lock.
type targetBook struct {
	TargetRun
	step time.Duration
}

// newBooks makes at most 600 steps of at least a second.
func newBooks(s *Scenario) *books {
	b := &books{step: max(time.Second, (s.Length / 600).Round(time.Second)), workloads: map[string]*workloadBook{}, targets: map[string]*targetBook{}}
	b.steps = int(s.Length/b.step) + 1
	for _, w := range s.Workloads {
		b.workloads[w.Name] = &workloadBook{Series: Series{Name: w.Name, Steps: make([]Counts, b.steps)}, took: make([][]time.Duration, b.steps)}
	}
	for _, t := range s.Targets {
		b.targets[t.Name] = &targetBook{TargetRun: TargetRun{Name: t.Name, Steps: make([]TargetStep, b.steps)}, step: b.step}
	}
	return b
}

func (b *books) in(workload string, at time.Duration, f func(*workloadBook, *Counts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.workloads[workload]
	f(w, &w.Steps[min(int(at/b.step), b.steps-1)])
}

func (b *books) fresh(workload string, at time.Duration) {
	b.in(workload, at, func(_ *workloadBook, c *Counts) { c.Fresh++ })
}

func (b *books) inbound(workload string, at time.Duration) {
	b.in(workload, at, func(_ *workloadBook, c *Counts) { c.Inbound++ })
}

func (b *books) upstream(workload string, at time.Duration) {
	b.in(workload, at, func(_ *workloadBook, c *Counts) { c.Upstream++ })
}

// done books the end of a logical request in the step it was asked in.
func (b *books) done(workload string, at, took time.Duration, r reply) {
	b.in(workload, at, func(w *workloadBook, c *Counts) {
		switch {
		case r.good:
			c.Good++
			if r.degraded {
				c.Degraded++
			}
			i := min(int(at/b.step), b.steps-1)
			w.took[i] = append(w.took[i], took)
		case r.late:
			c.Late++
		default:
			c.Refused++
		}
	})
}

// moved books a change of a breaker's phase.
func (b *books) moved(target string, at time.Duration, to, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.targets[target]; t != nil {
		t.Moves = append(t.Moves, Move{At: at, To: to, Reason: reason})
	}
}

// begin books a call at a target.
func (t *targetBook) begin(at time.Duration, a answer, inflight int, load float64) {
	s := &t.Steps[min(int(at/t.step), len(t.Steps)-1)]
	s.Calls++
	switch {
	case a.mode != "" && a.mode != ModeSlow:
		s.Failed++
	case a.status == 200:
		s.OK++
	default:
		s.Refused++
	}
	s.InFlight, s.Load = max(s.InFlight, inflight), max(s.Load, load)
}

// run closes the books.
func (b *books) run(s *Scenario) Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := Run{Step: b.step}
	for _, w := range s.Workloads {
		k := b.workloads[w.Name]
		for i := range k.Steps {
			k.Totals.add(k.Steps[i])
			k.P50, k.P99 = append(k.P50, quantile(k.took[i], 0.5)), append(k.P99, quantile(k.took[i], 0.99))
		}
		r.Workloads = append(r.Workloads, k.Series)
		r.Totals.add(k.Totals)
	}
	for _, t := range s.Targets {
		r.Targets = append(r.Targets, b.targets[t.Name].TargetRun)
	}
	return r
}

func (c *Counts) add(o Counts) {
	c.Fresh += o.Fresh
	c.Good += o.Good
	c.Degraded += o.Degraded
	c.Refused += o.Refused
	c.Late += o.Late
	c.Inbound += o.Inbound
	c.Upstream += o.Upstream
}

// quantile is in milliseconds, 0 for none.
func quantile(v []time.Duration, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return float64(v[min(int(q*float64(len(v))), len(v)-1)].Microseconds()) / 1000
}
