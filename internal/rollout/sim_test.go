package rollout

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// rollouts is of how many the rates of errors are measured; ten thousand take about
// four minutes of one processor.
var rollouts = flag.Int("rollouts", 60, "simulated rollouts for each rate of errors")

type rule = func(workload string, arm event.Arm, at time.Duration) behaviour

// candidateIs is a version that does otherwise than the one before.
func candidateIs(change func(*behaviour)) rule {
	return func(w string, a event.Arm, at time.Duration) behaviour {
		b := usualRun(w, a, at)
		if a == event.Candidate {
			change(&b)
		}
		return b
	}
}

// relabelling is that of 29 May 2026: what is refused for capacity reaches the
// router as a server fault.
func relabelling(full float64) rule {
	return func(_ string, a event.Arm, _ time.Duration) behaviour {
		if a == event.Candidate {
			return behaviour{outage: 0.008 + full, client: 0.01}
		}
		return behaviour{outage: 0.008, capacity: full, client: 0.01}
	}
}

// Versions that would be outages are taken back, at the first stage but for those
// whose harm is too small to show in a thousand requests.
func TestHarmIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		of    rule
		why   []string
		stage int
	}{
		{"D05: 75 % 400, 15 % 429", candidateIs(func(b *behaviour) { b.client, b.capacity, b.outage = 0.75, 0.15, 0 }), []string{"client"}, 0},
		{"29 May, 5 % of the calls", relabelling(0.05), []string{"relabelled"}, 0},
		{"29 May, 25 % of the calls", relabelling(0.25), []string{"relabelled"}, 0},
		{"5 points worse", candidateIs(func(b *behaviour) { b.outage += 0.05 }), []string{"success"}, 0},
		{"2 points worse", candidateIs(func(b *behaviour) { b.outage += 0.02 }), []string{"success"}, 4},
		{"15 % more 429", candidateIs(func(b *behaviour) { b.capacity += 0.15 }), []string{"success", "capacity", "class_mix"}, 0},
		{"twice the first content", candidateIs(func(b *behaviour) { b.content = 800 * time.Millisecond }), []string{"first_content"}, 0},
		{"3 calls instead of 1", candidateIs(func(b *behaviour) { b.calls = 3 }), []string{"amplification_out"}, 0},
		{"1 MiB left by each request", candidateIs(func(b *behaviour) { b.leak = 1 << 20 }), []string{"memory"}, 0},
		{"nothing comes and the callers leave", candidateIs(func(b *behaviour) { *b = behaviour{left: 1} }), []string{"left"}, 0},
		{"a fifth of the callers leave", candidateIs(func(b *behaviour) { b.left = 0.2 }), []string{"left"}, 0},
		{"half of all come again", candidateIs(func(b *behaviour) { b.again = 0.5 }), []string{"amplification_in"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				w := newWorld(seed, 20, 20, c.of)
				e := w.run(DefaultConfig(), time.Hour, time.Second, 6*time.Hour, 5)
				t.Logf("%s at stage %d after %v, %d requests of %d workloads: %s", e.r.state, e.r.stage+1, e.after, w.candidate, len(w.hit), e.r.why)
				named := false
				for _, why := range c.why {
					named = named || strings.HasPrefix(e.r.why, why+":")
				}
				if e.r.state != Reverted || e.r.stage > c.stage || !named {
					t.Errorf("it is %s at stage %d: %s", e.r.state, e.r.stage+1, e.r.why)
				}
			}
		})
	}
}

// quick is a rollout of which thousands can be played: in three stages, a minute at
// least and 500 requests each.
func quick() Config {
	c := DefaultConfig()
	c.Stages, c.Bake, c.Requests = []Stage{{Share: 0.05}, {Share: 0.25}, {Share: 1}}, time.Minute, 500
	return c
}

// rate plays many rollouts and returns the share of which something holds.
func rate(t *testing.T, n int, make func(seed uint64) *world, c Config, stages int, holds func(end) bool) float64 {
	t.Helper()
	var hit, next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1); seed <= int64(n); seed = next.Add(1) {
				if e := make(uint64(1000+seed)).run(c, 10*time.Minute, 10*time.Second, 12*time.Hour, stages); holds(e) && hit.Add(1) < 6 {
					t.Logf("seed %d: %s at stage %d: %s", seed, e.r.state, e.r.stage+1, e.r.why)
				}
				if seed%1000 == 0 {
					t.Logf("%d of %d so far", hit.Load(), seed)
				}
			}
		})
	}
	wg.Wait()
	share := float64(hit.Load()) / float64(n)
	t.Logf("%d of %d: %.3f %%", hit.Load(), n, 100*share)
	return share
}

func reverted(e end) bool { return e.r.state == Reverted }

// Equal versions are hardly ever taken back.
func TestEqualVersionsPass(t *testing.T) {
	t.Parallel()
	many := func(seed uint64) *world {
		w := newWorld(seed, 5, 20, usualRun)
		w.skew = seed%2 == 0
		return w
	}
	if r := rate(t, *rollouts, many, quick(), 3, reverted); r > 0.01+2/float64(*rollouts) {
		t.Errorf("%v of the rollouts of equal versions are taken back", r)
	}
}

// A version with five points more failures hardly ever passes its first stage.
func TestFivePointsAreNotMissed(t *testing.T) {
	t.Parallel()
	worse := func(seed uint64) *world {
		return newWorld(seed, 5, 20, candidateIs(func(b *behaviour) { b.outage += 0.05 }))
	}
	missed := func(e end) bool { return !reverted(e) }
	c := quick()
	c.Requests = DefaultConfig().Requests
	if r := rate(t, *rollouts, worse, c, 1, missed); r > 0.01+2/float64(*rollouts) {
		t.Errorf("%v of the bad versions pass", r)
	}
}

// A workload that has always failed a lot is not taken for a bad version, whether it
// is exposed whole or in part, and neither is an outage that begins meanwhile.
func TestNoisyNeighbours(t *testing.T) {
	t.Parallel()
	noisy := func(seed uint64) *world {
		bad := names(5)[seed%5]
		return newWorld(seed, 5, 20, func(w string, a event.Arm, at time.Duration) behaviour {
			b := usualRun(w, a, at)
			if w == bad {
				b = behaviour{outage: 0.3, capacity: 0.1, client: 0.1, content: time.Second}
			}
			if seed%3 == 0 && at > 2*time.Minute && at < 9*time.Minute { // and the model is out, for all
				b.outage += (1 - b.outage) * 0.4
				b.content = 2 * max(b.content, 400*time.Millisecond)
			}
			return b
		})
	}
	if r := rate(t, *rollouts, noisy, quick(), 3, reverted); r > 0.01+2/float64(*rollouts) {
		t.Errorf("%v of the rollouts are taken back", r)
	}
}

// When everything becomes slower as the rollout begins, that is not its doing.
func TestEverybodyIsSlower(t *testing.T) {
	c := quick()
	c.Stages[0].Share = 0.5
	for seed := range uint64(5) {
		w := newWorld(seed, 8, 20, func(w string, a event.Arm, at time.Duration) behaviour {
			b := usualRun(w, a, at)
			if at > 0 {
				b.content = 900 * time.Millisecond
			}
			return b
		})
		if e := w.run(c, 20*time.Minute, time.Second, time.Hour, 1); e.r.state != Baking || e.r.stage != 1 {
			t.Errorf("it is %s at stage %d: %s", e.r.state, e.r.stage+1, e.r.why)
		}
	}
}

// A version that breaks one workload is not hidden by those that are well.
func TestOneBrokenWorkload(t *testing.T) {
	t.Parallel()
	broken := func(seed uint64) *world {
		bad := names(5)[seed%5]
		return newWorld(seed, 5, 20, func(w string, a event.Arm, at time.Duration) behaviour {
			b := usualRun(w, a, at)
			if w == bad && a == event.Candidate {
				b.outage = 0.3
			}
			return b
		})
	}
	hidden := func(e end) bool { return !reverted(e) || !strings.Contains(e.r.why, ": workload ") }
	if r := rate(t, *rollouts, broken, quick(), 3, hidden); r > 0.02+2/float64(*rollouts) {
		t.Errorf("%v of the versions are not found out by that workload", r)
	}
}

// With a request a minute there is nothing to go by: the stage fails when its
// patience is over.
func TestNoDataIsNoPass(t *testing.T) {
	w := newWorld(1, 3, 1.0/60, usualRun)
	e := w.run(DefaultConfig(), time.Hour, time.Second, 6*time.Hour, 5)
	t.Logf("%s after %v: %s", e.r.state, e.after, e.r.why)
	if e.r.state != Reverted || e.after != DefaultConfig().Patience || !strings.Contains(e.r.why, "no data is no pass") {
		t.Errorf("it is %s after %v", e.r.state, e.after)
	}
}

// Requests that have not ended say nothing yet: a version that never answers a tenth
// of them does not pass for what it makes of the others.
func TestHangingIsNoPass(t *testing.T) {
	w := newWorld(1, 20, 200, candidateIs(func(b *behaviour) { b.hangs = 0.1 }))
	e := w.run(DefaultConfig(), time.Hour, time.Second, 6*time.Hour, 5)
	t.Logf("%s in stage %d after %v: %s", e.r.state, e.r.stage+1, e.after, e.r.why)
	if e.r.state != Reverted || e.r.stage != 0 {
		t.Errorf("it is %s in stage %d", e.r.state, e.r.stage+1)
	}
	both := newWorld(1, 20, 200, func(w string, a event.Arm, at time.Duration) behaviour {
		b := usualRun(w, a, at)
		b.hangs = 0.02
		return b
	})
	if e := both.run(DefaultConfig(), time.Hour, time.Second, 6*time.Hour, 1); e.r.stage != 1 {
		t.Errorf("where both are alike it is %s in stage %d: %s", e.r.state, e.r.stage+1, e.r.why)
	}
}

// A thousand requests of a workload whose every request is a mistake, and of one that
// only the new version knows, are no evidence for it.
func TestWhatSaysNothingIsNoData(t *testing.T) {
	for _, kind := range []string{"mistakes", "new"} {
		c := DefaultConfig()
		c.Stages = []Stage{{Share: 0.5}, {Share: 1}}
		seen := &Seen{}
		traffic := Traffic{Workloads: map[string]float64{"w": 10}}
		class, who := fault.Client, "w"
		if kind == "new" {
			class, who = fault.OK, "unknown to the one in force"
		}
		for range 2000 {
			seen.Request(&event.Request{Workload: "w", Model: "m", Class: class})
		}
		r := New(c, "v1", "v0", nil, traffic, start)
		for i := range 1000 {
			for range 4 {
				seen.Request(&event.Request{Workload: who, Model: "m", Class: class, Arm: event.Candidate})
				seen.Request(&event.Request{Workload: "w", Model: "m", Class: class, Arm: event.Control})
			}
			r.Tick(start.Add(time.Duration(i+1)*time.Second), seen, traffic)
		}
		if r.stage != 0 || r.state != Baking {
			t.Errorf("%s: it is %s in stage %d: %s", kind, r.state, r.stage+1, r.why)
		}
	}
}
