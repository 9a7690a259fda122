package drill

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	gateways  []*targetBook // by instance
	marks     []Mark        // what the contender said
}

type workloadBook struct {
	Series
	took [][]time.Duration // of good answers, by the step they were asked in
}

// targetBook is one target's, or one gateway's. It is written under its
// owner's lock.
type targetBook struct {
	TargetRun
	step   time.Duration
	memory int64 // 0 for no bound
	down   time.Duration
	phases map[int]string // of its breaker, by instance
	half   atomic.Int64   // instances at which it is half open
}

// newBooks makes at most 600 steps of at least a second.
func newBooks(s *Scenario) *books {
	b := &books{step: max(time.Second, (s.Length / 600).Round(time.Second)), workloads: map[string]*workloadBook{}, targets: map[string]*targetBook{}}
	b.steps = int(s.Length/b.step) + 1
	for _, w := range s.Workloads {
		b.workloads[w.Name] = &workloadBook{Series: Series{Name: w.Name, Steps: make([]Counts, b.steps)}, took: make([][]time.Duration, b.steps)}
	}
	book := func(name string, memory Size, down time.Duration) *targetBook {
		return &targetBook{phases: map[int]string{}, TargetRun: TargetRun{Name: name, Steps: make([]TargetStep, b.steps)}, step: b.step, memory: int64(memory), down: down}
	}
	for _, t := range s.Targets {
		b.targets[t.Name] = book(t.Name, t.Memory, t.Down)
	}
	g := s.Gateway
	if g == nil {
		g = &Gateway{Instances: 1}
	}
	for i := range g.Instances {
		b.gateways = append(b.gateways, book(gatewayName(i), g.Memory, g.Down))
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
		if r.status > 0 {
			if c.Status == nil {
				c.Status = map[int]int{}
			}
			c.Status[r.status]++
		}
		switch {
		case r.wrong:
			c.Wrong++
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

// moved books a change of a breaker's phase, at one instance of the contender.
func (b *books) moved(target string, instance int, at time.Duration, to, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.targets[target]; t != nil {
		t.enter(instance, to)
		t.Moves = append(t.Moves, Move{At: at, Instance: instance, To: to, Reason: reason})
	}
}

// maxSaid bounds what is written down of what a contender says.
const maxSaid = 1000

// said books what the contender reports of the incident.
func (b *books) said(at time.Duration, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.marks) < maxSaid {
		b.marks = append(b.marks, Mark{at, text})
	}
}

// outage books that a target is in the scope of an outage that the contender
// speaks of, once.
func (b *books) outage(target string, instance int, id string, at time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.targets[target]
	if t == nil {
		return
	}
	if name := strconv.Itoa(instance) + " " + id; !slices.ContainsFunc(t.Outages, func(m Mark) bool { return m.Text == name }) {
		t.Outages = append(t.Outages, Mark{at, name})
	}
}

// begun books that an instance begins: it knows nothing.
func (b *books) begun(instance int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.targets {
		t.enter(instance, "closed")
	}
}

// enter counts the instances at which the breaker is half open.
func (t *targetBook) enter(instance int, phase string) {
	before := t.phases[instance]
	t.phases[instance] = phase
	if before != halfOpen && phase == halfOpen {
		t.half.Add(1)
	} else if before == halfOpen && phase != halfOpen {
		t.half.Add(-1)
	}
}

// halfOpen is a breaker's phase, as its moves name it.
const halfOpen = "half-open"

func (t *targetBook) halfOpen() bool { return t.half.Load() > 0 }

func (t *targetBook) at(at time.Duration) *TargetStep {
	return &t.Steps[min(int(at/t.step), len(t.Steps)-1)]
}

// begin books a call at a target; probing are those made while its breaker was
// half open.
func (t *targetBook) begin(at time.Duration, a answer, m *machine, now time.Time, probing int) {
	s := t.beginAt(at, m, now, !a.fails() && a.status != 200, m.held)
	s.Probing = max(s.Probing, probing)
	switch {
	case a.fails():
		s.Failed++
	case a.status == 200:
		s.OK++
	}
}

// beginAt books a call on a machine that holds so many bytes.
func (t *targetBook) beginAt(at time.Duration, m *machine, now time.Time, refused bool, held int64) *TargetStep {
	s := t.at(at)
	s.Calls++
	if refused {
		s.Refused++
	}
	s.InFlight, s.Load = max(s.InFlight, m.inflight), max(s.Load, m.load(now))
	t.holds(at, held)
	return s
}

// holds books what a machine holds.
func (t *targetBook) holds(at time.Duration, bytes int64) {
	if s := t.at(at); t.memory > 0 {
		s.Memory = max(s.Memory, float64(bytes)/float64(t.memory))
	}
}

// killed books a crash, and the time until there is service again.
func (t *targetBook) killed(at time.Duration) {
	t.Crashes++
	first := min(int(at/t.step), len(t.Steps)-1)
	last := min(int((at+t.down-1)/t.step), len(t.Steps)-1)
	for i := first; i <= max(first, last); i++ {
		t.Steps[i].Down = true
	}
}

// run closes the books.
func (b *books) run(s *Scenario) Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := Run{Step: b.step, Said: b.marks}
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
	if s.Gateway != nil {
		for _, g := range b.gateways {
			r.Gateways = append(r.Gateways, g.TargetRun)
		}
	}
	return r
}

func (c *Counts) add(o Counts) {
	c.Fresh += o.Fresh
	c.Good += o.Good
	c.Degraded += o.Degraded
	c.Refused += o.Refused
	c.Late += o.Late
	c.Wrong += o.Wrong
	c.Inbound += o.Inbound
	c.Upstream += o.Upstream
	for status, n := range o.Status {
		if c.Status == nil {
			c.Status = map[int]int{}
		}
		c.Status[status] += n
	}
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
