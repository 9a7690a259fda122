package drill

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/virtual"
)

// contender is what stands between the clients and the targets.
type contender interface {
	// call makes one call; ctx ends when the caller gives up.
	call(ctx context.Context, c call) reply
	// act does what an operator does; it returns when that is done.
	act(a Action)
	// close ends everything that it started.
	close()
}

// play is one contender's run of a scenario.
type play struct {
	*Scenario
	seed      uint64
	patience  time.Duration
	start     time.Time
	books     *books
	servers   []*server
	keys      map[string]*zipf
	contender contender
	running   sync.WaitGroup // logical requests
	changed   atomic.Bool    // the configuration has changed
}

// Options say how to play.
type Options struct {
	Contenders []string // by name; see Names
	Seed       uint64
	Config     *Mine // of a user, for the router; nil for the scenario's own
	// Patience is a modelled gateway's own limit of a call; 0 is half of what its
	// caller has, which leaves time for another.
	Patience time.Duration
	// Progress hears the virtual time of a contender, about every 2 % of the
	// way, from several goroutines; nil for nobody.
	Progress func(contender string, at, of time.Duration)
}

// slots bounds what is played at once, in all plays, to the processors.
var slots = make(chan struct{}, runtime.GOMAXPROCS(0))

// Play runs the scenario with each contender, as many at once as there are
// processors, and judges its criteria. Several may be called at once.
func Play(s *Scenario, o Options) (*Result, error) {
	r := &Result{
		Scenario: s.Name, Title: s.Title, Incident: s.Incident, Seed: o.Seed, Length: s.Length,
		Start: s.Start, Compressed: s.Compression, Facts: s.Facts, Ours: s.Assumptions, Runs: make([]Run, len(o.Contenders)),
	}
	for _, m := range s.Marks {
		r.Marks = append(r.Marks, Mark(m))
	}
	var running sync.WaitGroup
	errs := make([]error, len(o.Contenders))
	for i, name := range o.Contenders {
		kind, ok := find(name)
		if !ok {
			return nil, fmt.Errorf("contender %q does not exist; there are %v", name, slices.Concat(Names(), Without()))
		}
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if r.Runs[i], errs[i] = playOne(s, kind, o); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", name, errs[i])
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// playOne runs in a bubble of virtual time and judges.
func playOne(s *Scenario, kind kind, o Options) (run Run, err error) {
	began := time.Now()
	bubble := virtual.Run(func() {
		p := &play{Scenario: s, seed: o.Seed, patience: o.Patience, start: time.Now(), books: newBooks(s), keys: map[string]*zipf{}}
		for i := range s.Targets {
			p.servers = append(p.servers, newServer(s, &s.Targets[i], o.Seed, p.books.targets[s.Targets[i].Name]))
		}
		for _, w := range s.Workloads {
			p.keys[w.Name] = newZipf(w.Keys)
		}
		if p.contender, err = kind.make(p, o); err != nil {
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
	if err = errors.Join(bubble, err); err != nil {
		return Run{}, err
	}
	run.Contender, run.About, run.Took = kind.name, kind.about, time.Since(began)
	for _, c := range s.Criteria {
		run.Criteria = append(run.Criteria, s.judge(c, &run))
	}
	return run, nil
}

// run lets everybody arrive and waits for the last answer.
func (p *play) run(progress func(at time.Duration)) {
	var arriving sync.WaitGroup
	for i := range p.Workloads {
		w := &p.Workloads[i]
		for caller := range w.Callers {
			arriving.Go(func() { p.arrive(w, i+1, caller) })
		}
		if w.Once > 0 {
			arriving.Go(func() {
				time.Sleep(w.Once)
				p.offer(w, 0, uint64(i+1)<<40|1<<27)
			})
		}
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
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
	for _, a := range p.Actions {
		others.Go(func() {
			p.at(a.At, stop, func() {
				if a.Do == "configure" {
					p.changed.Store(true)
				}
				p.contender.act(a)
			})
		})
	}
	for _, f := range p.Faults {
		if f.Mode == ModeDrop {
			others.Go(func() { p.at(f.At, stop, func() { p.server(f.Target).breakOff(f.At, f.Share) }) })
		}
	}
	arriving.Wait()
	p.running.Wait()
	close(stop)
	others.Wait()
}

// at does something at a virtual time, unless everything is over before.
func (p *play) at(t time.Duration, stop <-chan struct{}, do func()) {
	timer := time.NewTimer(t - p.since())
	defer timer.Stop()
	select {
	case <-timer.C:
		do()
	case <-stop:
	}
}

// since is the virtual time.
func (p *play) since() time.Duration { return time.Since(p.start) }

func (p *play) server(name string) *server {
	i := slices.IndexFunc(p.servers, func(v *server) bool { return v.Name == name })
	return p.servers[i]
}

// serving is the targets of a model, in order, those of a last resort behind.
func (p *play) serving(model string) (out []*server) {
	for _, last := range []bool{false, true} {
		for _, v := range p.servers {
			if v.Model == model && v.Degraded == last && v.Replaces == "" {
				out = append(out, p.server(p.called(v.Name)))
			}
		}
	}
	return out
}

// called is the target that is called where the configuration has the one of that
// name: another, once it has changed.
func (p *play) called(name string) string {
	if p.changed.Load() {
		for i := range p.Targets {
			if p.Targets[i].Replaces == name {
				return p.Targets[i].Name
			}
		}
	}
	return name
}
