package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

var start = time.Date(2026, 5, 29, 9, 0, 0, 0, time.UTC)

// behaviour is what one version makes of requests.
type behaviour struct {
	outage, capacity, client float64 // shares of first calls
	calls                    int     // 1 for none extra
	content                  time.Duration
	left                     float64 // share of requests whose callers leave
	hangs                    float64 // share of requests that never end
	leak                     int64   // bytes a request
	again                    float64 // share of requests that are repeats
}

// world is a stream of requests, without a router.
type world struct {
	rnd       *rand.Rand
	workloads []string
	rate      float64 // requests a second, of all of them
	skew      bool    // the first has a half of the traffic
	of        rule
	held      [arms]int64
	open      [arms]int64 // requests that hang
	hit       map[string]bool
	candidate int64
}

func (w *world) traffic() Traffic {
	t := Traffic{Workloads: map[string]float64{}}
	for i, name := range w.workloads {
		t.Workloads[name] = w.rate * w.share(i)
	}
	return t
}

func (w *world) share(i int) float64 {
	n := float64(len(w.workloads))
	if !w.skew || n == 1 {
		return 1 / n
	}
	if i == 0 {
		return 0.5
	}
	return 0.5 / (n - 1)
}

func (w *world) pick() string {
	u := w.rnd.Float64()
	for i, name := range w.workloads {
		if u -= w.share(i); u < 0 {
			return name
		}
	}
	return w.workloads[len(w.workloads)-1]
}

// fill runs d of traffic into seen.
func (w *world) fill(seen *Seen, e *Exposure, at, d time.Duration) {
	n := poisson(w.rnd, w.rate*d.Seconds())
	for range n {
		name := w.pick()
		arm := e.Arm(name, w.rnd.Float64())
		w.request(seen, name, arm, at)
	}
	for _, arm := range []event.Arm{event.Control, event.Candidate} {
		seen.InFlight(arm, w.open[arm])
		seen.Memory(arm, 200<<10+w.held[arm]+int64(w.rnd.IntN(100<<10)))
	}
}

func (w *world) request(seen *Seen, name string, arm event.Arm, at time.Duration) {
	b := w.of(name, arm, at)
	r := event.Request{Workload: name, Model: "m", Target: "a/m", Class: fault.OK, Attempts: max(1, b.calls), Arm: arm, BytesIn: 500 << w.rnd.IntN(5)}
	if b.hangs > 0 && w.rnd.Float64() < b.hangs {
		w.open[arm]++
		return
	}
	switch u := w.rnd.Float64(); {
	case u < b.outage:
		r.Class = fault.Outage
	case u < b.outage+b.capacity:
		r.Class = fault.Capacity
	case u < b.outage+b.capacity+b.client:
		r.Class = fault.Client
	case u < b.outage+b.capacity+b.client+b.left:
		r.Class = fault.Canceled
	default:
		c := b.content
		if c == 0 {
			c = 400 * time.Millisecond
		}
		r.Content = time.Duration(float64(c) * (1 + float64(r.BytesIn)/4000) * math.Exp(0.5*w.rnd.NormFloat64()))
	}
	if arm == event.Candidate {
		w.candidate++
		w.hit[name] = true
	}
	w.held[arm] += b.leak
	r.Repeat = w.rnd.Float64() < b.again
	seen.Attempt(&event.Attempt{Workload: name, Model: "m", Target: "a/m", Number: 1, Class: r.Class, Arm: arm})
	seen.Request(&r)
}

type end struct {
	r     *Rollout
	after time.Duration
}

// run plays a rollout until it is over or some stages are through.
func (w *world) run(c Config, history, tick, limit time.Duration, stages int) end {
	w.hit = map[string]bool{}
	seen := &Seen{}
	w.fill(seen, nil, 0, history)
	seen.memory = [arms]track{}
	r := New(c, fmt.Sprint("v", w.rnd.Uint64()), "v0", nil, w.traffic(), start)
	at := time.Duration(0)
	for !r.Done() && at < limit && r.stage < stages {
		at += tick
		w.fill(seen, r.Exposure(), at, tick)
		r.Tick(start.Add(at), seen, w.traffic())
	}
	return end{r, at}
}

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("w%02d", i)
	}
	return out
}

func newWorld(seed uint64, n int, rate float64, of rule) *world {
	return &world{rnd: rand.New(rand.NewPCG(seed, 1)), workloads: names(n), rate: rate, of: of}
}

func usualRun(_ string, _ event.Arm, _ time.Duration) behaviour {
	return behaviour{outage: 0.008, capacity: 0.01, client: 0.01}
}

func poisson(rnd *rand.Rand, mean float64) int {
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rnd.NormFloat64())))
	}
	limit, p, n := math.Exp(-mean), 1.0, -1
	for p > limit {
		p *= rnd.Float64()
		n++
	}
	return n
}
