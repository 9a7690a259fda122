package app

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
)

// leavingEvery makes n requests, one each period, and leaves each after d.
func (r *rig) leavingEvery(period time.Duration, n int, d time.Duration, a ask) []answer {
	out := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = r.leaving(d, a) })
		time.Sleep(period)
	}
	wg.Wait()
	return out
}

// A target whose callers all leave before it answers must still be able to prove
// itself: its probe is not theirs.
func TestAProbeOutlivesItsCaller(t *testing.T) {
	u := upstream("u1", after(200*time.Millisecond, answers("x")))
	run(t, setup{upstreams: []*fake{u}}, func(r *rig) {
		r.every(steady, 1500, ask{})
		u.use(script{status(500, "")})
		r.every(steady, 250, ask{})
		if p := r.state("u1").Phase; p != breaker.Open.String() && p != breaker.HalfOpen.String() {
			t.Fatalf("breaker %s behind an outage", p)
		}
		u.use(after(1500*time.Millisecond, answers("late")))
		r.leavingEvery(200*time.Millisecond, 300, time.Second, ask{})
		synctest.Wait()
		if p := r.state("u1").Phase; p != breaker.Ramp.String() && p != breaker.Closed.String() {
			t.Errorf("breaker %s after a minute of answers that nobody waited for", p)
		}
	})
}

// A request that has no answer when its caller leaves ends as canceled, also where
// its probe runs on, and is not tried elsewhere.
func TestAProbeWithoutACallerIsNotTriedElsewhere(t *testing.T) {
	u := upstream("u1", after(200*time.Millisecond, answers("x")))
	second := upstream("u2", script{status(500, "")})
	run(t, setup{upstreams: []*fake{u, second}}, func(r *rig) {
		r.every(steady, 1500, ask{})
		u.use(script{status(500, "")})
		r.every(steady, 250, ask{})
		u.use(after(1500*time.Millisecond, script{status(500, "")}))
		before := second.count()
		var leaving []answer
		for range 20 {
			leaving = append(leaving, r.leaving(time.Second, ask{}))
			time.Sleep(time.Second)
		}
		for _, a := range leaving {
			if a.status == 200 {
				t.Errorf("answered: %+v", a)
			}
		}
		if n := second.count() - before; n > 20 {
			t.Errorf("%d calls at the second target for 20 requests", n)
		}
	})
}

// Where a target has become too slow for one workload and not for another, the
// calls of the first are not made: they would only keep the others waiting.
func TestASlowTargetServesWhoCanWait(t *testing.T) {
	healthy, slow := after(200*time.Millisecond, answers("x")), after(1600*time.Millisecond, answers("x"))
	u := upstream("u1", healthy)
	run(t, setup{upstreams: []*fake{u}, more: "  other: {keys: [" + otherKey + "]}\n"}, func(r *rig) {
		both := func(d time.Duration) (patient, impatient []answer) {
			var wg sync.WaitGroup
			wg.Go(func() { patient = r.every(300*time.Millisecond, int(d/(300*time.Millisecond)), ask{key: otherKey}) })
			wg.Go(func() {
				impatient = r.leavingEvery(50*time.Millisecond, int(d/(50*time.Millisecond)), time.Second, ask{})
			})
			wg.Wait()
			return patient, impatient
		}
		both(time.Minute)
		u.use(slow)
		patient, _ := both(time.Minute)
		// While it learns: 166 to 191 of 200 in 40 runs, and 158 once beside other work.
		if good, _ := outcome(patient, 0); good < len(patient)*70/100 {
			t.Errorf("%d of %d patient requests answered", good, len(patient))
		}
		before := u.count()
		patient, _ = both(30 * time.Second)
		if good, _ := outcome(patient, 0); good != len(patient) {
			t.Errorf("%d of %d patient requests answered", good, len(patient))
		}
		if n := u.count() - before - len(patient); n > 35 {
			t.Errorf("%d calls in 30 s for a workload that hears none of the answers", n)
		}
		a := r.leaving(time.Second, ask{})
		if a.status != 0 && a.status != 504 {
			t.Errorf("status %d", a.status)
		}
		u.use(healthy)
		both(5 * time.Second)
		_, impatient := both(5 * time.Second)
		if good, _ := outcome(impatient, 0); good != len(impatient) {
			t.Errorf("%d of %d answered once the target was fast again", good, len(impatient))
		}
	})
}
