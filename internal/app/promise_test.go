package app

import (
	"testing"
	"time"
)

// outcome counts what clients got.
func outcome(as []answer, slow time.Duration) (good, late int) {
	for _, a := range as {
		if a.err == nil && a.status == 200 {
			good++
			if a.took > slow {
				late++
			}
		}
	}
	return good, late
}

const steady = 20 * time.Millisecond // 50 requests a second

func TestPromiseAHangIsPaidByFew(t *testing.T) {
	healthy := after(300*time.Millisecond, answers("x"))
	u1, u2 := upstream("u1", healthy), upstream("u2", healthy)
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.every(steady, 3000, ask{stream: true}) // a minute to learn from
		u1.mu.Lock()
		u1.peak = u1.inflight
		u1.mu.Unlock()
		u1.use(script{hold()})
		hung := u1.count()
		as := r.every(steady, 3000, ask{stream: true})
		good, late := outcome(as, time.Second)
		if good != len(as) {
			t.Errorf("%d of %d requests failed", len(as)-good, len(as))
		}
		if late > 80 { // those that wait when the hang is noticed, and the probes
			t.Errorf("%d slow requests", late)
		}
		u1.mu.Lock()
		peak := u1.peak
		u1.mu.Unlock()
		if peak > 75 {
			t.Errorf("%d calls in flight at the hung target", peak)
		}
		t.Logf("%d slow, %d in flight at most, %d calls to the hung target", late, peak, u1.count()-hung)
		u1.use(healthy)
	})
}

// halves fails every other request of an upstream, unevenly: by a fixed
// pseudo-random sequence.
func halves(u *fake, seed uint64) {
	u.pick = func(int, *seen) script {
		seed = seed*6364136223846793005 + 1442695040888963407
		if seed>>63 == 0 {
			return after(50*time.Millisecond, script{status(500, "")})
		}
		return after(300*time.Millisecond, answers("x"))
	}
}

func TestPromiseBothTargetsHalfBroken(t *testing.T) {
	healthy := after(300*time.Millisecond, answers("x"))
	u1, u2 := upstream("u1", healthy), upstream("u2", healthy)
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.every(steady, 3000, ask{})
		u1.mu.Lock()
		halves(u1, 1)
		u1.mu.Unlock()
		u2.mu.Lock()
		halves(u2, 2)
		u2.mu.Unlock()
		r.every(steady, 1500, ask{}) // half a minute to find out
		before := u1.count() + u2.count()
		as := r.every(steady, 3000, ask{})
		good, _ := outcome(as, time.Second)
		share := float64(good) / float64(len(as))
		attempts := float64(u1.count()+u2.count()-before) / float64(len(as))
		if share < 0.83 {
			t.Errorf("%.1f %% of requests succeeded", 100*share)
		}
		if attempts > 1.9 {
			t.Errorf("%.2f attempts a request", attempts)
		}
		t.Logf("%.1f %% succeeded with %.2f attempts a request", 100*share, attempts)
	})
}

func TestPromiseATotalOutageIsNotMadeWorse(t *testing.T) {
	healthy := after(300*time.Millisecond, answers("x"))
	dead := after(10*time.Millisecond, script{status(500, "")})
	u1, u2 := upstream("u1", healthy), upstream("u2", healthy)
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.every(steady, 3000, ask{})
		u1.use(dead)
		u2.use(dead)
		r.every(steady, 1500, ask{})
		before := u1.count() + u2.count()
		as := r.every(steady, 1500, ask{})
		if n := u1.count() + u2.count() - before; n > len(as) {
			t.Errorf("%d calls for %d requests", n, len(as))
		} else {
			t.Logf("%.2f calls a request", float64(n)/float64(len(as)))
		}
		u1.use(healthy)
		u2.use(healthy)
		back := time.Now()
		as = r.every(steady, 500, ask{})
		last := 0
		for i, a := range as {
			if a.status != 200 {
				last = i + 1
			}
		}
		full := time.Duration(last) * steady
		if full > 1500*time.Millisecond {
			t.Errorf("full service %s after the recovery", full)
		}
		t.Logf("full service %s after the recovery, %s watched", full, time.Since(back))
	})
}

// TestPromiseASlowTargetIsBetterThanNone: the only target becomes eight times
// as slow. Trials that end at the age at which a call was slow before, and
// waiting calls that are told to move on where there is nowhere to go, fail it.
func TestPromiseASlowTargetIsBetterThanNone(t *testing.T) {
	u := upstream("u1", after(200*time.Millisecond, answers("x")))
	run(t, setup{upstreams: []*fake{u}}, func(r *rig) {
		r.every(steady, 3000, ask{})
		u.use(after(1600*time.Millisecond, answers("x")))
		as := r.every(40*time.Millisecond, 500, ask{})
		good, waited, proven := 0, 0, len(as)
		for i, a := range as {
			switch {
			case a.status != 200:
				continue
			case i < 30: // they waited when it opened
				waited++
			case i > 50:
				proven = min(proven, i)
			}
			good++
		}
		if waited < 28 || proven > 100 || good < 300 {
			t.Errorf("of the 30 that waited %d were answered, then number %d, %d of %d in all", waited, proven, good, len(as))
		}
		t.Logf("%d of 30 that waited, then number %d, %d of %d", waited, proven, good, len(as))
	})
}
