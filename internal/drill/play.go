package drill

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// contender is what stands between the clients and the targets.
type contender interface {
	// call makes one call for a workload; ctx ends when the caller gives up.
	call(ctx context.Context, w *Workload, id, attempt uint64) reply
	// close ends everything that it started.
	close()
}

// play is one contender's run of a scenario.
type play struct {
	*Scenario
	seed      uint64
	start     time.Time
	books     *books
	servers   []*server
	contender contender
	running   sync.WaitGroup // logical requests
}

// Options say how to play.
type Options struct {
	Contenders []string // by name; see Contenders
	Seed       uint64
	// Progress hears the virtual time of a contender, about every 2 % of the
	// way; nil for nobody.
	Progress func(contender string, at, of time.Duration)
}

// Play runs the scenario with each contender in turn and judges its criteria.
func Play(s *Scenario, o Options) (*Result, error) {
	r := &Result{
		Scenario: s.Name, Title: s.Title, Incident: s.Incident, Seed: o.Seed, Length: s.Length,
		Start: s.Start, Compressed: s.Compression, Facts: s.Facts, Ours: s.Assumptions,
	}
	for _, m := range s.Marks {
		r.Marks = append(r.Marks, Mark(m))
	}
	for _, name := range o.Contenders {
		kind, ok := find(name)
		if !ok {
			return nil, fmt.Errorf("contender %q does not exist; there are %v", name, Names())
		}
		run, err := playOne(s, kind, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.Runs = append(r.Runs, run)
	}
	return r, nil
}

// playOne runs in a bubble of virtual time. synctest is made for tests, and
// works in any binary: it needs a testing.T only to report through.
func playOne(s *Scenario, kind kind, o Options) (run Run, err error) {
	began := time.Now()
	synctest.Test(&testing.T{}, func(*testing.T) {
		p := &play{Scenario: s, seed: o.Seed, start: time.Now(), books: newBooks(s)}
		for _, t := range s.Targets {
			p.servers = append(p.servers, newServer(s, t, o.Seed, p.books.targets[t.Name]))
		}
		if p.contender, err = kind.make(p); err != nil {
			return
		}
		p.run(func(at time.Duration) {
			if o.Progress != nil {
				o.Progress(kind.name, at, s.Length)
			}
		})
		p.contender.close()
		run = p.books.run(s)
	})
	if err != nil {
		return Run{}, err
	}
	run.Contender, run.About, run.Took = kind.name, kind.about, time.Since(began)
	for _, c := range s.Criteria {
		run.Criteria = append(run.Criteria, judge(c, &run))
	}
	return run, nil
}

// run lets everybody arrive and waits for the last answer.
func (p *play) run(progress func(at time.Duration)) {
	var arriving sync.WaitGroup
	for i := range p.Workloads {
		arriving.Go(func() { p.arrive(&p.Workloads[i], i+1) })
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(max(p.Length/50, time.Second))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				progress(p.since())
			case <-stop:
				return
			}
		}
	})
	arriving.Wait()
	p.running.Wait()
	close(stop)
	watching.Wait()
}

// since is the virtual time.
func (p *play) since() time.Duration { return time.Since(p.start) }
