package drill

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Sweep says what of a scenario is varied.
type Sweep struct {
	Contenders []string
	Seeds      []uint64
	Loads      []float64       // offered, as a share of the first target's capacity
	Depths     []float64       // of every fault: 1 as written, 0.5 half as deep
	Durations  []time.Duration // of every fault; none leaves them as written
	Progress   func(done, of int)
}

// Point is one run of a sweep.
type Point struct {
	Contender string        `json:"contender"`
	Seed      uint64        `json:"seed"`
	Load      float64       `json:"load"`
	Depth     float64       `json:"depth"`
	Duration  time.Duration `json:"duration_ns"` // of the longest fault
	Before    float64       `json:"before"`      // good answers a request, before the first fault
	During    float64       `json:"during"`
	After     float64       `json:"after"` // from Grace after the last fault
	Amp       float64       `json:"amp"`   // calls at targets a request, during the faults
	// Recovery is the time from the end of the last fault to the first step
	// from which on every step is as good as before; negative when there is none.
	Recovery time.Duration `json:"recovery_ns"`
}

// What a recovery is: 95 % of the goodput before the trigger, at the same load,
// within 30 s of its end and a ramp of 60 s.
const (
	recoveredShare = 0.95
	// Grace is the time from the end of the trigger to that.
	Grace = 90 * time.Second
	// watched is how long the end is watched at least.
	watched = 60 * time.Second
)

// Recovers reports that the contender came back.
func (p *Point) Recovers() bool { return p.After >= recoveredShare*p.Before }

// Run plays every combination, as many at once as there are processors. The
// points come in the order of contenders, loads, depths, durations, seeds.
func (w Sweep) Run(s *Scenario) ([]Point, error) {
	if len(s.Faults) == 0 {
		return nil, fmt.Errorf("%s has no faults to vary", s.Name)
	}
	if s.offered() == 0 {
		return nil, fmt.Errorf("%s: nobody calls at its beginning, so that there is no load to vary", s.Name)
	}
	var points []Point
	durations := w.Durations
	if len(durations) == 0 {
		durations = []time.Duration{0}
	}
	for _, c := range w.Contenders {
		if _, ok := find(c); !ok {
			return nil, fmt.Errorf("contender %q does not exist; there are %v", c, slices.Concat(Names(), Without()))
		}
		for _, l := range w.Loads {
			for _, d := range w.Depths {
				for _, t := range durations {
					for _, seed := range w.Seeds {
						points = append(points, Point{Contender: c, Seed: seed, Load: l, Depth: d, Duration: t})
					}
				}
			}
		}
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	done := 0
	for i := range points {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := points[i].play(s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			if done++; w.Progress != nil {
				w.Progress(done, len(points))
			}
		})
	}
	running.Wait()
	return points, failed
}

// play runs the scenario as the point says and measures.
func (p *Point) play(s *Scenario) error {
	varied := s.vary(p.Load, p.Depth, p.Duration)
	kind, _ := find(p.Contender) // looked for before
	run, err := playOne(varied, kind, Options{Seed: p.Seed})
	if err != nil {
		return fmt.Errorf("%s at %.0f %%: %w", p.Contender, 100*p.Load, err)
	}
	from, until := varied.trouble()
	p.Duration = until - from
	share := func(a, b time.Duration) float64 {
		c := run.counts("", a.Seconds(), b.Seconds())
		return float64(c.Good) / max(float64(c.Fresh), 1)
	}
	p.Before, p.During, p.After = share(0, from), share(from, until), share(until+Grace, varied.Length)
	c := run.counts("", from.Seconds(), until.Seconds())
	p.Amp = float64(c.Upstream) / max(float64(c.Fresh), 1)
	p.Recovery = -1
	for at := varied.Length - run.Step; at >= until; at -= run.Step {
		if share(at, at+run.Step) < recoveredShare*p.Before {
			break
		}
		p.Recovery = at - until
	}
	return nil
}

// trouble is from the first fault's beginning to the last one's end.
func (s *Scenario) trouble() (from, until time.Duration) {
	from = s.Faults[0].At
	for _, f := range s.Faults {
		from, until = min(from, f.At), max(until, f.At, f.Until)
	}
	return from, until
}

// offered is the load at the beginning, in requests a second.
func (s *Scenario) offered() (rps float64) {
	for _, w := range s.Workloads {
		if len(w.Rate) > 0 {
			rps += w.Rate[0].RPS * float64(w.Callers)
		}
	}
	return rps
}

// vary is the scenario at a share of its first target's capacity, with faults
// of another depth and, unless duration is 0, length.
func (s *Scenario) vary(load, depth float64, duration time.Duration) *Scenario {
	out := *s
	out.Workloads, out.Faults = slices.Clone(s.Workloads), slices.Clone(s.Faults)
	offered := s.offered()
	for i := range out.Workloads {
		w := &out.Workloads[i]
		w.Rate = slices.Clone(w.Rate)
		for k := range w.Rate {
			w.Rate[k].RPS *= load * s.Targets[0].Capacity / offered
		}
		w.RPM = 0 // a limit belongs to the load as written
	}
	for i := range out.Faults {
		f := &out.Faults[i]
		f.Share *= depth
		f.To *= depth
		switch f.Mode {
		case ModeLess, ModeCold:
			f.Share, f.Factor = 1, 1-(1-f.Factor)*depth
		case ModeSlow, ModeFirst, ModeDrip:
			f.Factor = 1 + (f.Factor-1)*depth
		}
		if duration > 0 {
			f.Until = f.At + duration
		}
	}
	_, until := out.trouble()
	out.Length = max(until+Grace+watched, s.Length)
	if duration > 0 {
		out.Length = until + Grace + watched
	}
	return &out
}
