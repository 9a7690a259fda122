package app

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queueing is one target with so many slots, each call taking 100 ms, and a
// second workload.
func queueing(u *fake, slots int, team, other string) setup {
	s := setup{
		upstreams: []*fake{u}, target: map[string]string{u.name: fmt.Sprintf("limits: {concurrency: %d}", slots)},
		defaults: "queue: {wait: 2s, length: 100}",
	}
	s.whole = strings.Replace(s.yaml(), "keys: ["+callerKey+"]", "keys: ["+callerKey+"]"+team, 1)
	s.whole = strings.Replace(s.whole, "workloads:\n", "workloads:\n  other: {keys: ["+otherKey+"]"+other+"}\n", 1)
	return s
}

// flood keeps n requests of a key under way until stop, which waits for them.
func (r *rig) flood(n int, key func(i int) string) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			for {
				r.do(ask{key: key(i)})
				select {
				case <-done:
					return
				case <-time.After(300 * time.Millisecond): // a refused one comes back soon
				}
			}
		})
	}
	return func() { close(done); wg.Wait() }
}

func is(key string) func(int) string { return func(int) string { return key } }

// TestOneWorkloadDoesNotKeepAnotherWaiting: 150 requests of one workload are
// under way at 4 slots and more than the line takes; each one of the other waits
// for its turn and no longer. It fails with one flow for all, or when a full line
// refuses whoever comes.
func TestOneWorkloadDoesNotKeepAnotherWaiting(t *testing.T) {
	u1 := upstream("u1", after(100*time.Millisecond, answers("served")))
	run(t, queueing(u1, 4, "", ""), func(r *rig) {
		stop := r.flood(150, is(callerKey))
		time.Sleep(time.Second)
		for range 10 {
			a := r.do(ask{key: otherKey})
			r.good(a, "served")
			if a.took > 400*time.Millisecond {
				t.Errorf("took %s", a.took)
			}
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		synctest.Wait()
		if n := r.app.queued(); n != 0 {
			t.Errorf("%d left in line", n)
		}
	})
}

// TestCallersWithoutWorkloads: where nobody is configured, a caller with many
// requests keeps no other one out. It fails when the open workload is one flow.
func TestCallersWithoutWorkloads(t *testing.T) {
	u1 := upstream("u1", after(100*time.Millisecond, answers("served")))
	s := queueing(u1, 4, "", "")
	before, rest, _ := strings.Cut(s.whole, "workloads:\n")
	s.whole = before + rest[strings.Index(rest, "defaults:"):]
	run(t, s, func(r *rig) {
		r.each(25, func(int) ask { return ask{key: "early"} }) // tell how long answers are
		stop := r.flood(150, is("greedy"))
		time.Sleep(time.Second)
		for range 10 {
			a := r.do(ask{key: "modest"})
			r.good(a, "served")
			if a.took > 600*time.Millisecond {
				t.Errorf("took %s", a.took)
			}
			time.Sleep(100 * time.Millisecond)
		}
		stop()
	})
}

// TestPriorityInLine: batch work gets what is left over and a sixteenth, and
// gives its place in a full line.
func TestPriorityInLine(t *testing.T) {
	u1 := upstream("u1", after(100*time.Millisecond, answers("served")))
	run(t, queueing(u1, 4, ", priority: batch", ""), func(r *rig) {
		stop := r.flood(150, is(callerKey))
		time.Sleep(time.Second)
		for _, a := range r.each(40, func(int) ask { return ask{key: otherKey} }) {
			r.good(a, "served")
			if a.took > 1300*time.Millisecond { // 40 calls at 40 a second, the guard and what was under way
				t.Errorf("took %s", a.took)
			}
		}
		stop()
	})
}

// TestARateIsWaitedOut: a call that has no room for its target's rate is made
// when it has, although no other call ends meanwhile.
func TestARateIsWaitedOut(t *testing.T) {
	u1 := upstream("u1", answers("served"))
	s := setup{upstreams: []*fake{u1}, target: map[string]string{"u1": "limits: {rpm: 120}"}, defaults: "queue: {wait: 3s}"}
	run(t, s, func(r *rig) {
		var last time.Duration
		for _, a := range r.each(6, func(int) ask { return ask{} }) {
			r.good(a, "served")
			last = max(last, a.took)
		}
		if last < 2*time.Second || last > 2100*time.Millisecond {
			t.Errorf("six calls at two a second, two of them at once, took %s", last)
		}
	})
}

// TestWhoRunsOutOfTimeInLine is answered as if there were no slot, and has
// cost no call.
func TestWhoRunsOutOfTimeInLine(t *testing.T) {
	u1 := upstream("u1", after(10*time.Second, answers("served")))
	run(t, queueing(u1, 1, "", ""), func(r *rig) {
		var wg sync.WaitGroup
		wg.Go(func() { r.good(r.do(ask{}), "served") })
		synctest.Wait()
		for _, a := range r.each(5, func(int) ask { return ask{} }) {
			r.failed(a, 429, "capacity")
			if message, _ := errorOf(a.body); !strings.Contains(message, "no_capacity") || a.took != 2*time.Second || a.header.Get("Retry-After") == "" {
				t.Errorf("%q after %s", message, a.took)
			}
		}
		wg.Wait()
		r.counts(map[*fake]int{u1: 1})
	})
}

// TestWaitersHearOfATargetThatReturns: a request that waits for a slot of one
// target takes another one when its cool-down is over, though nobody's call ends
// then. It fails when what is far off is not kept in mind for those in line.
func TestWaitersHearOfATargetThatReturns(t *testing.T) {
	u1, u2 := upstream("u1", after(8*time.Second, answers("from one"))), upstream("u2", script{status(429, "", "Retry-After", "3")}, answers("from two"))
	run(t, setup{
		upstreams: []*fake{u1, u2}, workload: "priority: critical", target: map[string]string{"u1": "limits: {concurrency: 1}"},
		defaults: "queue: {wait: 1s, length: 100}",
	}, func(r *rig) {
		var wg sync.WaitGroup
		for range 2 { // one has the slot, the other finds the second target refusing
			wg.Go(func() { r.do(ask{}) })
			time.Sleep(100 * time.Millisecond)
		}
		a := r.do(ask{})
		r.good(a, "from two")
		if a.took > 4*time.Second {
			t.Errorf("took %s", a.took)
		}
		wg.Wait()
	})
}

// TestInFlightIsWhatIsLikely: an answer counts as long as the workload's are, not
// as nothing where the caller sets no bound, nor as the bound where that is far
// off. It fails when the caller's bound is what counts.
func TestInFlightIsWhatIsLikely(t *testing.T) {
	for _, bound := range []string{"", `"max_tokens":100000,`} {
		u1 := upstream("u1", after(time.Second, answers("served")))
		run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
			var wg sync.WaitGroup
			wg.Go(func() {
				r.do(ask{body: `{"model":"m",` + bound + `"messages":[{"role":"user","content":"hello"}]}`})
			})
			time.Sleep(500 * time.Millisecond)
			if n := r.state("u1").Load.Tokens; n < 512 || n > 600 {
				t.Errorf("with %q: %d tokens in flight", bound, n)
			}
			wg.Wait()
		})
	}
}
