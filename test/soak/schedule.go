package main

import (
	"context"
	"math/rand/v2"
	"sort"
	"sync"
	"time"
)

// kind is one way in which a client behaves.
type kind int

// The kinds. What each does is in traffic.go.
const (
	unary      kind = iota // a small question, a whole answer
	streamed               // a small question, a stream
	large                  // up to 10 MiB, announced or chunked
	huge                   // 10 MiB, for an upstream that does not answer
	leaver                 // leaves at a random moment
	queued                 // asks for the model that has few slots
	slowReader             // reads little and late
	deaf                   // reads nothing of a long answer
	unsent                 // announces a body and does not send it
	muteStream             // opens a stream on which nothing comes
	quietOne               // likewise, behind one piece of content
	repeating              // repeats a failed request with its number
	equalBody              // repeats it with the same body and no number
	wrongKey
	wrongJSON
	wrongModel // a different name each time
	upload     // a body that is passed on as it comes
	uploadHalf // likewise, left in the middle
	numKinds
)

var kindNames = [numKinds]string{
	"unary", "stream", "to 10 MiB", "10 MiB", "leaver", "queue", "slow reader", "deaf", "unsent body", "mute stream",
	"quiet stream", "repeats", "equal body", "wrong key", "wrong JSON", "wrong model", "upload", "half upload",
}

// phase is a stretch of the run: how many of each kind come a second, and what
// the upstreams do meanwhile.
type phase struct {
	name   string
	well   bool // every upstream is healthy: the small workload is to be served
	rates  [numKinds]float64
	once   [numKinds]int // come at the beginning
	faults bool          // of a and b, c stays healthy
	storm  bool          // of a, b and c
}

// ordinary is what always comes.
func ordinary() [numKinds]float64 {
	return [numKinds]float64{
		unary: 12, streamed: 8, large: 1, leaver: 6, queued: 6, slowReader: 0.4, unsent: 0.4, wrongKey: 2, wrongJSON: 2,
		wrongModel: 5, upload: 0.5, uploadHalf: 0.5, repeating: 1, equalBody: 1,
	}
}

// phases are those that a run is made of.
func phases() []phase {
	calm := phase{name: "calm", well: true, rates: ordinary()}
	over := phase{name: "overload", well: true, rates: ordinary()}
	for _, k := range []kind{unary, streamed, queued, leaver, wrongModel} {
		over.rates[k] *= 10
	}
	bodies := phase{name: "large bodies", well: true, rates: ordinary()}
	bodies.rates[huge], bodies.rates[large] = 10, 4
	mutes := phase{name: "mute streams", well: true, rates: ordinary()}
	mutes.once[muteStream], mutes.once[quietOne], mutes.once[deaf] = 300, 500, 200
	mutes.rates[slowReader], mutes.rates[unsent] = 4, 10
	faulty := phase{name: "faults", rates: ordinary(), faults: true}
	storm := phase{name: "storm", rates: ordinary(), storm: true}
	storm.rates[repeating], storm.rates[equalBody] = 30, 30
	return []phase{calm, over, bodies, faulty, mutes, storm}
}

const (
	tick      = 20 * time.Millisecond
	atOnce    = 2500 // exchanges under way in this process, at most
	smallRate = 10   // of the small workload, a second
)

// schedule is what the seed decides: the order of phases, the faults, and the
// sequence of clients with their sizes and moments.
type schedule struct {
	rnd   *rand.Rand
	order []phase
	debt  [numKinds]float64
	small float64
	turn  int // of the reloads
}

func newSchedule(seed uint64) *schedule {
	return &schedule{rnd: rand.New(rand.NewPCG(seed, 0))}
}

// next is the phase that follows: the healthy ones in random order, then the
// others, again and again.
func (s *schedule) next() phase {
	if len(s.order) == 0 {
		s.order = phases()
		s.rnd.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
		sort.SliceStable(s.order, func(i, j int) bool { return s.order[i].well && !s.order[j].well })
	}
	p := s.order[0]
	s.order = s.order[1:]
	return p
}

// mode is the fault of one upstream in a phase.
func (s *schedule) mode(p phase, name string) string {
	wanted := p.storm && name <= "c" || p.faults && name <= "b"
	switch {
	case !wanted:
		return healthy
	case p.storm:
		return []string{down, broken, hang, reset, limited}[s.rnd.IntN(5)]
	}
	return faults[s.rnd.IntN(len(faults))]
}

// run plays one phase; faults change half-way. It does not wait for what it
// has started.
func (s *schedule) run(ctx context.Context, p phase, length time.Duration, t *traffic) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	began := time.Now()
	if t.phase = p.name; !p.well {
		t.well = time.Time{}
		t.outages.Add(1)
	} else if t.well.IsZero() {
		t.well = began
	}
	if err := s.weather(p, t); err != nil {
		return err
	}
	if err := s.reload(t); err != nil {
		return err
	}
	for k := range p.once {
		for range p.once[k] {
			t.begin(kind(k), s.rnd.Uint64())
		}
	}
	turned := false
	clock := time.NewTicker(tick)
	defer clock.Stop()
	for last := began; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-clock.C:
			s.come(p, now.Sub(last).Seconds(), t)
			last = now
			if !turned && now.Sub(began) > length/2 {
				turned = true
				if err := s.weather(p, t); err != nil {
					return err
				}
			}
		}
	}
}

// weather sets the upstreams' faults.
func (s *schedule) weather(p phase, t *traffic) error {
	for _, name := range providers {
		if err := t.up.set(name, s.mode(p, name)); err != nil {
			return err
		}
	}
	return nil
}

// reload changes a limit; every fourth file is bad and is replaced at once.
func (s *schedule) reload(t *traffic) error {
	s.turn++
	if s.turn%4 == 0 {
		if err := t.router.reload(4, true); err != nil {
			return err
		}
	}
	return t.router.reload(3+s.turn%2, false)
}

// come starts the clients that are due after seconds.
func (s *schedule) come(p phase, seconds float64, t *traffic) {
	seconds = min(seconds, 0.5) // what a stalled machine has missed is not made up for
	for k := range p.rates {
		for s.debt[k] += p.rates[k] * seconds; s.debt[k] >= 1; s.debt[k]-- {
			t.begin(kind(k), s.rnd.Uint64())
		}
	}
	for s.small += smallRate * seconds; s.small >= 1; s.small-- {
		t.wellBehaved(s.rnd.Uint64())
	}
}

// crowd bounds what is under way and waits for its end.
type crowd struct {
	wg    sync.WaitGroup
	slots chan struct{}
}

// enter runs f beside the others, or says that there are too many.
func (c *crowd) enter(f func()) bool {
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	c.wg.Go(func() {
		defer func() { <-c.slots }()
		f()
	})
	return true
}
