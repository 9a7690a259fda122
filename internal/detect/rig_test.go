package detect

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// rig feeds a detector by the second and keeps what it says.
type rig struct {
	t       *testing.T
	d       *Detector
	tally   *Tally
	now     time.Time
	start   time.Time
	random  *rand.Rand
	notices []Notice
}

func newRig(t *testing.T, start time.Time) *rig {
	c := Default()
	return &rig{t: t, d: New(c), tally: NewTally(c.MaxSeries), now: start, start: start, random: rand.New(rand.NewPCG(1, 2))}
}

// poisson draws how many there are of mean.
func (r *rig) poisson(mean float64) int {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.random.NormFloat64())))
	}
	n, p, limit := 0, r.random.Float64(), math.Exp(-mean)
	for p > limit {
		n++
		p *= r.random.Float64()
	}
	return n
}

// ask states requests of a second, with the calls made for them.
func (r *rig) ask(workload, model, target string, rps, failing float64, class fault.Class) {
	for range r.poisson(rps) {
		c := fault.OK
		if r.random.Float64() < failing {
			c = class
		}
		r.one(workload, model, target, c)
	}
}

func (r *rig) one(workload, model, target string, c fault.Class) {
	status := 200
	if c == fault.Outage {
		status = 500
	}
	r.tally.Attempt(&event.Attempt{Workload: workload, Model: model, Target: target, Class: c, Status: status})
	r.tally.Request(&event.Request{Workload: workload, Model: model, Target: target, Class: c, Attempts: 1})
}

// repeat states repeats of a second, which a retry loop makes of failed requests.
func (r *rig) repeat(workload, model string, rps float64) {
	for range r.poisson(rps) {
		r.tally.Request(&event.Request{Workload: workload, Model: model, Class: fault.Outage, Repeat: true})
	}
}

func (r *rig) tick() {
	r.now = r.now.Add(time.Second)
	r.notices = append(r.notices, r.d.Tick(r.now, r.tally)...)
}

// run feeds for so long.
func (r *rig) run(long time.Duration, feed func()) {
	for end := r.now.Add(long); r.now.Before(end); {
		feed()
		r.tick()
	}
}

// first is the first notice of a sort after a time that says so.
func (r *rig) first(after time.Time, is func(Notice) bool) (Notice, bool) {
	for _, n := range r.notices {
		if !n.At.Before(after) && is(n) {
			return n, true
		}
	}
	return Notice{}, false
}

func isDetector(name string, s Subject) func(Notice) bool {
	return func(n Notice) bool {
		return n.Detector == name && len(n.Scope) > 0 && (s == Subject{} || meets(n.Scope, []Subject{s}))
	}
}

func entered(s State) func(Notice) bool {
	return func(n Notice) bool { return n.State == s && (n.What == "state" || n.What == "closed") }
}
