package budget

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// world is a small simulation of a router in front of two targets: 50 requests
// a second, at most three attempts each, every extra attempt charged to the
// workload and the target. A second try of a target needs both to be wide.
type world struct {
	rps      int
	workload *Budget
	targets  [2]*Budget
	rand     *rand.Rand
	// outcome decides one attempt that starts at the given second.
	outcome func(w *world, at float64, target int) (Result, time.Duration)
	load    [2]float64 // attempts of the last second, smoothed
	lately  [2]time.Time

	log []tally // by second
}

// tally is one second of the simulation, by the start of the request.
type tally struct{ requests, good, attempts int }

func newWorld(cfg Config, seed uint64, outcome func(*world, float64, int) (Result, time.Duration)) *world {
	return &world{
		rps: 50, workload: New(cfg), targets: [2]*Budget{New(cfg), New(cfg)},
		rand: rand.New(rand.NewPCG(seed, 1)), outcome: outcome,
	}
}

type step struct {
	at      time.Duration
	order   int
	second  int // of the request
	target  int // of the attempt
	attempt int // 1 to 3
	result  *Result
}

type agenda []step

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(step)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// run plays the given number of seconds.
func (w *world) run(seconds int) {
	var todo agenda
	w.log = make([]tally, seconds)
	n := 0
	push := func(s step) {
		n++
		s.order = n
		heap.Push(&todo, s)
	}
	for i := range seconds * w.rps {
		at := time.Duration(i) * time.Second / time.Duration(w.rps)
		push(step{at: at, second: int(at / time.Second), target: w.rand.IntN(2), attempt: 1})
	}
	for len(todo) > 0 {
		s := heap.Pop(&todo).(step)
		if s.result == nil {
			push(w.begin(s))
			continue
		}
		if again, ok := w.end(s); ok {
			push(again)
		}
	}
}

// begin makes the attempt and returns its end.
func (w *world) begin(s step) step {
	now := start.Add(s.at)
	t := &w.log[s.second]
	if s.attempt == 1 {
		t.requests++
		w.workload.Request(now)
		w.targets[s.target].Request(now)
	}
	t.attempts++
	for i := range w.load {
		w.load[i] *= max(0, 1-now.Sub(w.lately[i]).Seconds())
		w.lately[i] = now
	}
	w.load[s.target]++
	r, took := w.outcome(w, s.at.Seconds(), s.target)
	r.Extra = s.attempt > 1
	s.at += took
	s.result = &r
	return s
}

// end settles the attempt and returns the next one, if there is one.
func (w *world) end(s step) (step, bool) {
	now := start.Add(s.at)
	w.workload.Settle(now, *s.result)
	w.targets[s.target].Settle(now, *s.result)
	if s.result.OK {
		w.log[s.second].good++
		return step{}, false
	}
	next := 1 - s.target
	if s.attempt == 2 && !(w.workload.Wide(now) && w.targets[next].Wide(now)) || s.attempt == 3 {
		return step{}, false
	}
	if !w.workload.Take(now) { // both pay or none, as in package route
		return step{}, false
	}
	if !w.targets[next].Take(now) {
		w.workload.Refund(now)
		return step{}, false
	}
	return step{at: s.at, second: s.second, target: next, attempt: s.attempt + 1}, true
}

// between sums up the seconds from and before to.
func (w *world) between(from, to int) (success, amplification float64) {
	var sum tally
	for _, t := range w.log[from:to] {
		sum.requests += t.requests
		sum.good += t.good
		sum.attempts += t.attempts
	}
	return float64(sum.good) / float64(sum.requests), float64(sum.attempts) / float64(sum.requests)
}

// failing returns targets that fail a share of their calls, independently and
// within 20 ms, from the given second on.
func failing(share, from float64) func(*world, float64, int) (Result, time.Duration) {
	return func(w *world, at float64, _ int) (Result, time.Duration) {
		if at >= from && w.rand.Float64() < share {
			return Result{Failure: true, Fast: true}, 20 * time.Millisecond
		}
		return Result{OK: true}, 300 * time.Millisecond
	}
}

const seeds = 20

// Two targets failing half their calls independently: three attempts at most
// would give 87.5 % at 1.75 attempts.
func TestHalfFailing(t *testing.T) {
	for healthy, least := range map[int]float64{0: 0.74, 60: 0.77} { // seconds before; success of the first 30 s
		var good, amp, early float64
		for seed := range uint64(seeds) {
			w := newWorld(Default(), seed, failing(0.5, float64(healthy)))
			w.run(healthy + 90)
			s, a := w.between(healthy+30, healthy+90)
			if s < 0.80 || a > 1.9 {
				t.Errorf("healthy for %d s, seed %d: success %.3f at %.2f attempts", healthy, seed, s, a)
			}
			e, _ := w.between(healthy, healthy+30)
			good, amp, early = good+s/seeds, amp+a/seeds, early+e/seeds
		}
		t.Logf("healthy for %d s: first 30 s %.3f, then %.3f at %.2f attempts", healthy, early, good, amp)
		if early < least {
			t.Errorf("healthy for %d s: mean success %.3f in the first 30 s", healthy, early)
		}
		if good < 0.83 || amp > 1.9 {
			t.Errorf("healthy for %d s: mean success %.3f at %.2f attempts; want 0.83 at 1.9", healthy, good, amp)
		}
	}
}

// A total outage that fails fast: from the start only the reserve is spent;
// after a healthy time what successes saved up goes first, within the ratio.
func TestTotalOutage(t *testing.T) {
	for _, healthy := range []int{0, 120} {
		w := newWorld(Default(), 1, failing(1, float64(healthy)))
		w.run(healthy + 60)
		extras := 0
		for _, x := range w.log[healthy:] {
			extras += x.attempts - x.requests
		}
		cfg := Default()
		if most := int(cfg.Reserve); healthy == 0 && extras > most {
			t.Errorf("from the start: %d extra attempts, reserve %d", extras, most)
		}
		if _, a := w.between(healthy, healthy+30); a > 1.1 {
			t.Errorf("healthy for %d s: %.3f attempts in the first 30 s, want at most 1.1", healthy, a)
		}
		if _, a := w.between(healthy+30, healthy+60); a != 1 {
			t.Errorf("healthy for %d s: %.3f attempts after 30 s, want 1", healthy, a)
		}
	}
}

// An outage by time-outs, total and in half of the calls: the ratio stays.
func TestTimeouts(t *testing.T) {
	for _, share := range []float64{0.5, 1} {
		w := newWorld(Default(), 1, func(w *world, at float64, _ int) (Result, time.Duration) {
			if at >= 30 && w.rand.Float64() < share {
				return Result{Failure: true, TimedOut: true}, 2 * time.Second
			}
			return Result{OK: true}, 300 * time.Millisecond
		})
		w.run(120)
		if _, a := w.between(30, 120); a > 1.12 {
			t.Errorf("share %v: %.3f attempts", share, a)
		}
		if r := w.workload.Snapshot(start.Add(2 * time.Minute)).Ratio; r != 0.1 {
			t.Errorf("share %v: ratio %v", share, r)
		}
	}
}

// Targets whose failures come from load: 40 % of the calls fail in any case,
// and beyond a load a little above that without repeats many more do. The
// ratio must come back, stay back most of the time, and cost little. It fails
// when review leaves out fallen, or harm does not pause.
func TestCorrelatedOverload(t *testing.T) {
	overload := func(w *world, _ float64, target int) (Result, time.Duration) {
		fail := 0.4
		if over := w.load[target] - 30; over > 0 { // 25 is the load without retries
			fail += over * 0.06
		}
		if w.rand.Float64() < fail {
			return Result{Failure: true, Fast: true}, 20 * time.Millisecond
		}
		return Result{OK: true}, 300 * time.Millisecond
	}
	fixed := Default()
	fixed.MaxRatio = fixed.Ratio
	var good, plain, amp float64
	for seed := range uint64(seeds) {
		w, v := newWorld(Default(), seed, overload), newWorld(fixed, seed, overload)
		w.run(300)
		v.run(300)
		s, a := w.between(60, 300)
		p, _ := v.between(60, 300)
		good, plain, amp = good+s/seeds, plain+p/seeds, amp+a/seeds
	}
	t.Logf("success %.3f at %.2f attempts; with a fixed ratio %.3f", good, amp, plain)
	if good < plain-0.02 || amp > 1.25 {
		t.Errorf("success %.3f at %.2f attempts; with a fixed ratio %.3f", good, amp, plain)
	}
}

// Targets that do three quarters of what is asked of them, refuse the rest with
// a failure, and spend a third of an answer on a refusal: every extra attempt
// takes from the first ones, little by little, and extra attempts succeed as
// often as they. It fails when the baseline is a slot's, or moves as the ratio
// grows.
func TestExtraAttemptsTakeFromFirstOnes(t *testing.T) {
	short := func(w *world, at float64, target int) (Result, time.Duration) {
		if at >= 60 {
			if served := (0.75*25/max(w.load[target], 1) - 0.3) / 0.7; w.rand.Float64() >= served {
				return Result{Failure: true, Fast: true}, 5 * time.Millisecond
			}
		}
		return Result{OK: true}, 200 * time.Millisecond
	}
	fixed := Default()
	fixed.MaxRatio = fixed.Ratio
	for seed := range uint64(seeds) {
		w, v := newWorld(Default(), seed, short), newWorld(fixed, seed, short)
		w.run(360)
		v.run(360)
		s, a := w.between(60, 360)
		p, _ := v.between(60, 360)
		if s < p-0.03 || a > 1.16 {
			t.Errorf("seed %d: success %.3f at %.2f attempts; with a fixed ratio %.3f", seed, s, a, p)
		}
	}
}

// From half failing to total outage: the grown ratio is back within seconds.
func TestHalfFailingTurnsTotal(t *testing.T) {
	for seed := range uint64(seeds) {
		w := newWorld(Default(), seed, func(w *world, at float64, _ int) (Result, time.Duration) {
			share := 0.5
			if at >= 60 {
				share = 1
			}
			return failing(share, 0)(w, at, 0)
		})
		w.run(120)
		if r := w.workload.Snapshot(start.Add(65 * time.Second)).Ratio; r != 0.1 {
			t.Errorf("seed %d: ratio %v", seed, r)
		}
		if _, a := w.between(63, 90); a > 1.15 {
			t.Errorf("seed %d: %.3f attempts after three seconds", seed, a)
		}
		if _, a := w.between(90, 120); a > 1.01 {
			t.Errorf("seed %d: %.3f attempts after thirty seconds", seed, a)
		}
	}
}
