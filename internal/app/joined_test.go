package app

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/steer"
)

// stored is a setting for a store on disk.
func stored(t *testing.T) string {
	return fmt.Sprintf("store: {path: %q}\n", filepath.Join(t.TempDir(), "h.db"))
}

// inForceActions are the IDs of the actions in force.
func (r *rig) inForceActions() string {
	var ids []string
	for _, a := range r.app.actions(time.Now()).InForce {
		ids = append(ids, a.ID)
	}
	return strings.Join(ids, " ")
}

// second is the pair with another target, and a workload, that only this version has.
func (p pair) second() string {
	text := strings.Replace(p.yaml(), "\nmodels:", "\n  q: {type: openai, base_url: \"http://third.test/v1\", api_key: secret-of-q}\nmodels:", 1)
	text = strings.Replace(text, "model: real}]", "model: real}, {provider: q, model: real}]", 1)
	return strings.Replace(text, "\nworkloads:\n", "\nworkloads:\n  extra: {keys: [key-of-extra]}\n", 1)
}

// TestOrdersOfTheCandidate: what was ordered of something that only a configuration on
// its way has holds when a newer one, which has it too, takes its place, when the
// router starts again, and when the rollout is through; it ends when it is taken back.
func TestOrdersOfTheCandidate(t *testing.T) {
	db := stored(t)
	old, next, third := upstream("old", answers("of old")), upstream("new", answers("of new")), upstream("third", answers("of third"))
	v := func(to, more string) pair { return pair{workloads: 2, to: to, stages: quick, more: db + more} }
	run(t, setup{upstreams: []*fake{old, next, third}, whole: v("old", "").yaml()}, func(r *rig) {
		defer func() { _ = r.app.Stop() }()
		reload := func(text string) {
			t.Helper()
			r.configure(setup{whole: text})
			if err := r.app.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		holds := func(when string) {
			t.Helper()
			if got := r.inForceActions(); got != "A-2 A-1" {
				t.Errorf("%s: %q in force", when, got)
			}
			drained := false
			for _, s := range r.app.shownTargets(time.Now()) {
				drained = drained || strings.HasPrefix(s.Name, "q/real") && s.Drained
			}
			if !drained {
				t.Errorf("%s: the target is not drained", when)
			}
			if p := r.lane("extra"); p.Share != 0.5 {
				t.Errorf("%s: the workload is in %+v", when, p)
			}
		}
		reload(v("new", "").second())
		r.give(`{"kind":"drain","subject":"q/real","for":"10h","why":"it is not ready"}`)
		r.give(`{"kind":"quarantine","subject":"extra","share":0.5,"for":"10h","why":"a storm"}`)
		holds("while it is rolled out")
		reload(v("new", "defaults: {timeouts: {total: 5m}}\n").second())
		holds("replaced")
		r.stop()
		r.again()
		holds("started again")
		for r.rolled().State == rollout.Baking {
			if err := r.app.PromoteRollout(ada, "on"); err != nil {
				t.Fatal(err)
			}
		}
		holds("through")
		reload(v("old", "").yaml())
		holds("while it is rolled out that they go")
		for r.rolled().State == rollout.Baking {
			if err := r.app.PromoteRollout(ada, "on"); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.inForceActions(); got != "" {
			t.Errorf("gone: %q in force", got)
		}
		reload(v("new", "").second())
		r.give(`{"kind":"drain","subject":"q/real","for":"10h","why":"it is not ready"}`)
		if err := r.app.HaltRollout(ada, "no"); err != nil {
			t.Fatal(err)
		}
		if got := r.inForceActions(); got != "" {
			t.Errorf("taken back: %q in force", got)
		}
	})
}

// TestFirstRollout: the first file that is rolled out is kept apart from the one before,
// which says nothing of rollouts, also across a restart.
func TestFirstRollout(t *testing.T) {
	db := stored(t)
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 2, to: "old", more: db}.yaml()}, func(r *rig) {
		defer func() { _ = r.app.Stop() }()
		r.take(pair{workloads: 2, to: "new", stages: quick, more: db})
		r.stop()
		r.again()
		if s, ok := r.app.RolloutStatus(time.Now()); !ok || s.State != rollout.Baking {
			t.Fatalf("on its way: %v %s", ok, s.State)
		}
		r.flow(2, 50*time.Millisecond, func(time.Duration) bool { return r.rolled().Stage > 0 })
		if err := r.app.HaltRollout(ada, "no"); err != nil {
			t.Fatal(err)
		}
		r.stop()
		r.again()
		for i := range 10 {
			r.good(r.do(ask{key: keyOf(i % 2)}), "of old")
		}
		if s, ok := r.app.RolloutStatus(time.Now()); !ok || s.State != rollout.Halted {
			t.Errorf("taken back: %v %s", ok, s.State)
		}
	})
}

// TestWaitersOfBothVersions: who waits for room that calls of the other version hold
// gets it when they end, also behind the end of the rollout.
func TestWaitersOfBothVersions(t *testing.T) {
	for _, end := range []string{"halt", "halt, the candidate's wait", "promote"} {
		t.Run(end, func(t *testing.T) {
			u := upstream("old", after(5*time.Second, answers("fine")))
			v := func(rpm int) pair {
				return pair{workloads: 1, to: "old", stages: "stages: [100%], bake: 1m, requests: 50, patience: 20m", target: fmt.Sprintf(", limits: {concurrency: 1, rpm: %d}", rpm), more: "defaults: {queue: {wait: 60s}}\n"}
			}
			run(t, setup{upstreams: []*fake{u}, whole: v(60000).yaml()}, func(r *rig) {
				began := time.Now()
				var wg sync.WaitGroup
				ask1 := func() {
					wg.Go(func() { r.good(r.do(ask{key: keyOf(0)}), "fine") })
					time.Sleep(time.Second)
				}
				if end != "halt" { // a call of the version before
					ask1()
				}
				r.take(v(120000))
				if end != "promote" {
					ask1() // of the candidate
					if err := r.app.HaltRollout(ada, "no"); err != nil {
						t.Fatal(err)
					}
				} else if err := r.app.PromoteRollout(ada, "on"); err != nil {
					t.Fatal(err)
				}
				if end != "halt, the candidate's wait" {
					ask1()
				}
				wg.Wait()
				if took := time.Since(began); took > 11*time.Second {
					t.Errorf("two calls of 5s took %v", took)
				}
			})
		})
	}
}

// TestReadingEndsNothing: who looks at the actions just as one ends does not keep its end
// from the log.
func TestReadingEndsNothing(t *testing.T) {
	run(t, setup{upstreams: []*fake{upstream("u1", answers("fine"))}}, func(r *rig) {
		r.give(`{"kind":"shed","subject":"batch","for":"1m","why":"x"}`)
		at := r.app.actions(time.Now()).InForce[0].Until
		time.Sleep(time.Until(at))
		if list := r.app.actions(at); len(list.InForce) != 0 || len(list.Ended) != 1 || list.Ended[0].EndedBy != steer.ByExpiry {
			t.Errorf("%+v", list)
		}
		time.Sleep(time.Second)
		r.checkLog([]string{"configuration", "shed", "expire"})
	})
}

// TestOrderedRefusalsAreNoVerdict: what an operator has refused says nothing of a version.
func TestOrderedRefusalsAreNoVerdict(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	v := func(to string) string {
		text := pair{workloads: 10, to: to, stages: quick}.yaml()
		for i := range 5 {
			text = strings.Replace(text, "["+keyOf(i)+"]", "["+keyOf(i)+"], priority: batch", 1)
		}
		return text
	}
	run(t, setup{upstreams: []*fake{old, next}, whole: v("old")}, func(r *rig) {
		r.flow(10, 50*time.Millisecond, lasting(2*time.Minute))
		r.configure(setup{whole: v("new")})
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		r.flow(10, 50*time.Millisecond, func(time.Duration) bool { return r.rolled().Stage > 0 })
		r.give(`{"kind":"shed","subject":"batch","for":"20m","why":"x"}`)
		r.flow(10, 50*time.Millisecond, r.over(15*time.Minute))
		if s := r.rolled(); s.State != rollout.Promoted {
			t.Errorf("%s: %s", s.State, s.Why)
		}
	})
}

// TestStrangersAreOfNoVersion: a key that neither version knows is not counted for one.
func TestStrangersAreOfNoVersion(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 1, to: "old", stages: quick}.yaml()}, func(r *rig) {
		r.take(pair{workloads: 1, to: "new", stages: quick})
		if a := r.do(ask{key: "nobody"}); a.status != http.StatusUnauthorized {
			t.Fatal(a.status)
		}
		if _, text := r.tell("GET", "/metrics", ""); strings.Contains(text, `hourthree_rollout_requests_total{arm="candidate"`) {
			t.Error("it is counted for the candidate")
		}
	})
}

// TestNobodyWaitsForTheStore: while the store does not answer, a rollout goes on, is
// steered and seen, and the poller polls.
func TestNobodyWaitsForTheStore(t *testing.T) {
	db := stored(t)
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 2, to: "old", stages: quick, more: db}.yaml()}, func(r *rig) {
		defer func() { _ = r.app.Stop() }()
		hang, hangs := make(chan struct{}), make(chan struct{})
		if !r.app.journal.add(job{write: func() error { close(hangs); <-hang; return nil }}) {
			t.Fatal("full")
		}
		<-hangs
		r.take(pair{workloads: 2, to: "new", stages: quick, more: db})
		r.flow(2, 50*time.Millisecond, r.over(time.Hour))
		s := r.rolled()
		if s.State != rollout.Promoted {
			t.Errorf("%s: %s", s.State, s.Why)
		}
		if _, found, _ := r.app.store.Get(keptRollout, newestID); found {
			t.Error("somebody wrote past the journal")
		}
		close(hang)
		r.stop()
		r.again()
		r.good(r.do(ask{key: keyOf(0)}), "of new")
		if _, ok := r.app.RolloutStatus(time.Now()); ok {
			t.Error("what is through is rolled out again")
		}
	})
}

// TestListsAreNoVerdict: who asks which models there are has not tried the version.
func TestListsAreNoVerdict(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 1, to: "old", stages: quick}.yaml()}, func(r *rig) {
		r.take(pair{workloads: 1, to: "new", stages: "stages: [100%], bake: 1m, requests: 50, patience: 5m"})
		for range 200 {
			if a := r.do(ask{key: keyOf(0), method: "GET", path: "/v1/models"}); a.status != http.StatusOK {
				t.Fatal(a.status)
			}
			time.Sleep(time.Second)
		}
		if s := r.rolled(); s.State != rollout.Baking {
			t.Errorf("%s: %s", s.State, s.Why)
		}
	})
}

// TestArmsHoldWhatIsHeld: the memory of a version's requests is what they hold, the
// frames of an answer that is kept back too, and is nothing once they are over.
func TestArmsHoldWhatIsHeld(t *testing.T) {
	frame := ": " + strings.Repeat("x", 10<<10) + "\n\n"
	long := script{head(), raw(frame, frame, frame, frame), wait(5 * time.Second)}
	old, next := upstream("old", answers("of old")), upstream("new", long)
	v := func(to string) pair { return pair{workloads: 1, to: to, stages: "stages: [100%], bake: 1m"} }
	run(t, setup{upstreams: []*fake{old, next}, whole: v("old").yaml()}, func(r *rig) {
		r.take(v("new"))
		var wg sync.WaitGroup
		wg.Go(func() { r.do(ask{key: keyOf(0), stream: true}) })
		time.Sleep(time.Second)
		if n, bytes := r.app.gateway.Arms().Held(event.Candidate); n != 1 || bytes < 100<<10 {
			t.Errorf("%d requests hold %d bytes", n, bytes)
		}
		wg.Wait()
		r.leaving(time.Second, ask{key: keyOf(0), stream: true})
		r.do(ask{key: keyOf(0), body: "{"})
		time.Sleep(time.Second)
		if n, bytes := r.app.gateway.Arms().Held(event.Candidate); n != 0 || bytes != 0 {
			t.Errorf("%d requests hold %d bytes when all are over", n, bytes)
		}
	})
}

// TestPollerGoesOn: while a file is read, which may take its time, the poller does not
// wait for its turn.
func TestPollerGoesOn(t *testing.T) {
	u := upstream("old", answers("fine"))
	run(t, setup{upstreams: []*fake{u}, whole: pair{workloads: 1, to: "old", stages: quick}.yaml()}, func(r *rig) {
		r.app.rolling.mu.Lock()
		r.app.roll(time.Now()) // hangs for good if it waits
		r.app.rolling.mu.Unlock()
	})
}

// TestHandedOnAcrossARestart: what waits for the end of a newer order does so after a
// restart, too.
func TestHandedOnAcrossARestart(t *testing.T) {
	u1, u2 := upstream("u1", answers("one")), upstream("u2", answers("two"))
	run(t, setup{upstreams: []*fake{u1, u2}, more: stored(t)}, func(r *rig) {
		defer func() { _ = r.app.Stop() }()
		r.give(`{"kind":"pin","subject":"m","target":"u2/real","why":"x"}`)
		r.give(`{"kind":"drain","subject":"u2/real","why":"x"}`)
		r.give(`{"kind":"pin","subject":"m","target":"u1/real","why":"x"}`)
		r.undo("A-2")
		r.stop()
		r.again()
		r.good(r.do(ask{}), "one")
		r.undo("A-3")
		if got := r.inForceActions(); got != "A-1" {
			t.Errorf("%q in force", got)
		}
		r.good(r.do(ask{}), "two")
		r.client.CloseIdleConnections()
	})
}

// TestOrdersHoldInBothVersions: a pin and a drain hold for the target in force and for
// the one of the same name that the new version has for itself, whichever came first.
func TestOrdersHoldInBothVersions(t *testing.T) {
	u1, u2 := upstream("u1", answers("one")), upstream("u2", answers("two"))
	s := func(limit string) setup {
		return setup{upstreams: []*fake{u1, u2}, target: map[string]string{"u2": "limits: {concurrency: " + limit + "}"}, more: "rollout: {stages: [50%, 100%], bake: 1m, requests: 50, patience: 20m}\n"}
	}
	run(t, s("50"), func(r *rig) {
		r.do(ask{}) // there is traffic, so it is divided
		all := func(when, text string) {
			t.Helper()
			for range 20 {
				r.good(r.do(ask{}), text)
			}
		}
		r.give(`{"kind":"pin","subject":"m","target":"u2/real","why":"x"}`)
		r.configure(s("60"))
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		if len(r.app.builder.candidates()) != 1 || r.rolled().Split == "" {
			t.Fatalf("nothing is divided: %+v", r.rolled())
		}
		all("pinned before", "two")
		r.give(`{"kind":"drain","subject":"u2/real","why":"x"}`) // which ends the pin
		all("drained", "one")
		r.undo("A-2")
		all("pinned again", "two")
		if err := r.app.PromoteRollout(ada, "on"); err != nil {
			t.Fatal(err)
		}
		all("in the next stage", "two")
		if err := r.app.PromoteRollout(ada, "on"); err != nil {
			t.Fatal(err)
		}
		all("through", "two")
		r.undo("A-1")
		all("undone", "one")
	})
}
