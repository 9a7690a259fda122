package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/rollout"
)

// TestRolloutKeepsLimits: a new version of a target at the same upstream has its own
// health, and both together are never sent more than was promised for the one in
// force; afterwards the new limit holds.
func TestRolloutKeepsLimits(t *testing.T) {
	u := upstream("old", after(2*time.Second, answers("of old")))
	v := func(limit int) pair {
		return pair{workloads: 4, to: "old", stages: quick, target: fmt.Sprintf(", limits: {concurrency: %d}", limit), more: "defaults: {queue: {wait: 2s}}\n"}
	}
	run(t, setup{upstreams: []*fake{u}, whole: v(4).yaml()}, func(r *rig) {
		r.take(v(6))
		if err := r.app.PromoteRollout(ada, "half of it"); err != nil {
			t.Fatal(err)
		}
		if n := len(r.app.builder.candidates()); n != 1 {
			t.Fatalf("%d targets of its own", n)
		}
		r.each(40, func(i int) ask { return ask{key: keyOf(i % 4)} })
		if u.peak != 4 {
			t.Errorf("%d calls at once at an upstream that was promised 4", u.peak)
		}
		names := map[string]bool{}
		for _, s := range r.app.shownTargets(time.Now()) {
			names[s.Name] = true
		}
		if !names["p/real"] || !names["p/real"+Besides] {
			t.Errorf("%v", names)
		}
		resp, err := r.client.Get("http://127.0.0.1:8081/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `hourthree_breaker_state{target="p/real@candidate"}`) || !strings.Contains(string(text), `hourthree_rollout_state{state="baking"} 1`) || !strings.Contains(string(text), `hourthree_rollout_requests_total{arm="candidate",class="ok"}`) {
			t.Errorf("%d %.300s", resp.StatusCode, text) // a name that is there twice is an error
		}
		for r.rolled().State == rollout.Baking {
			if err := r.app.PromoteRollout(ada, "all of it"); err != nil {
				t.Fatal(err)
			}
		}
		u.peak = 0
		r.each(40, func(i int) ask { return ask{key: keyOf(i % 4)} })
		if u.peak != 6 {
			t.Errorf("%d calls at once behind the rollout, 6 are promised", u.peak)
		}
	})
}

// TestRolloutKeepsLimitsOfModels: while the limit of a model is rolled out a request
// of the new version keeps to both.
func TestRolloutKeepsLimitsOfModels(t *testing.T) {
	u := upstream("old", after(time.Second, answers("of old")))
	v := func(limit int) string {
		return strings.Replace(pair{workloads: 2, to: "old", stages: quick}.yaml(), "targets: [", fmt.Sprintf("limits: {concurrency: %d}, targets: [", limit), 1)
	}
	run(t, setup{upstreams: []*fake{u}, whole: v(5)}, func(r *rig) {
		reload := func(text string) {
			r.configure(setup{whole: text})
			if err := r.app.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		served := func() (n int) {
			for _, a := range r.each(20, func(i int) ask { return ask{key: keyOf(i % 2)} }) {
				if a.status == 200 {
					n++
				}
			}
			time.Sleep(5 * time.Second)
			return n
		}
		reload(v(9))
		for range 2 { // to the last stage
			if err := r.app.PromoteRollout(ada, "all"); err != nil {
				t.Fatal(err)
			}
		}
		if n := served(); n != 5 {
			t.Errorf("%d at once, 5 are in force", n)
		}
		reload(v(2)) // replaced, from the first stage
		for range 2 {
			if err := r.app.PromoteRollout(ada, "all"); err != nil {
				t.Fatal(err)
			}
		}
		if n := served(); n != 2 {
			t.Errorf("%d at once, the new version allows 2", n)
		}
	})
}

// TestRolloutOfWorkloads: a workload is configured as one of the versions, never as
// both: as before while it is split, and as it is to be once it is wholly served by
// the new one. A key that only the new version knows is served by it, and one that it
// does not know any more until it is through.
func TestRolloutOfWorkloads(t *testing.T) {
	u := upstream("old", answers("of old"))
	v := func(rpm int, keys string) string {
		return "listen: 127.0.0.1:8080\nadmin: {listen: 127.0.0.1:8081}\nproviders: {p: {type: openai, base_url: \"http://old.test/v1\", api_key: k}}\n" +
			"models: {m: {targets: [{provider: p, model: real}]}}\nrollout: {" + quick + "}\n" +
			fmt.Sprintf("workloads: {w0: {keys: [%s], limits: {rpm: %d}}}\n", keys, rpm)
	}
	run(t, setup{upstreams: []*fake{u}, whole: v(600, "key-a, key-b")}, func(r *rig) {
		rate := func(key string) string { return r.do(ask{key: key}).header.Get("X-Ratelimit-Limit-Requests") }
		r.do(ask{key: "key-a"}) // there is traffic, so the workload is split
		r.configure(setup{whole: v(1200, "key-a, key-c")})
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		if s := r.rolled(); s.Split != "w0" || len(s.Exposed) != 0 {
			t.Fatalf("%+v", s)
		}
		for _, key := range []string{"key-a", "key-b", "key-c"} {
			if got := rate(key); got != "600" {
				t.Errorf("%s, split: %s", key, got)
			}
		}
		for range 2 {
			if err := r.app.PromoteRollout(ada, "all"); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"key-a", "key-b", "key-c"} {
			if got := rate(key); got != "1200" {
				t.Errorf("%s, whole: %s", key, got)
			}
		}
		if err := r.app.HaltRollout(ada, "not so"); err != nil {
			t.Fatal(err)
		}
		if a, b, c := rate("key-a"), rate("key-b"), r.do(ask{key: "key-c"}); a != "600" || b != "600" || c.status != http.StatusUnauthorized {
			t.Errorf("taken back: %s, %s, %d", a, b, c.status)
		}
		if err := r.app.RetryRollout(ada, "after all"); err != nil {
			t.Fatal(err)
		}
		for r.rolled().State == rollout.Baking {
			if err := r.app.PromoteRollout(ada, "all"); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := rate("key-a"), r.do(ask{key: "key-b"}); a != "1200" || b.status != http.StatusUnauthorized {
			t.Errorf("through: %s, %d", a, b.status)
		}
	})
}

// TestRolloutByRegion: the region with the least traffic is first; where the rollout
// has not been, the targets are those in force, and their calls are what it is
// compared with.
func TestRolloutByRegion(t *testing.T) {
	names := []string{"east", "west"}
	var fakes []*fake
	for _, n := range names {
		fakes = append(fakes, upstream(n, answers("of old "+n)), upstream(n+"2", answers("of new "+n)))
	}
	v := func(suffix string) string {
		var b strings.Builder
		b.WriteString("listen: 127.0.0.1:8080\nadmin: {listen: 127.0.0.1:8081}\nproviders:\n")
		for _, n := range names {
			fmt.Fprintf(&b, "  %s: {type: openai, base_url: \"http://%s%s.test/v1\", api_key: k, region: %s}\n", n, n, suffix, n)
		}
		b.WriteString("models: {m: {targets: [{provider: east, model: real, weight: 4}, {provider: west, model: real}]}}\n")
		b.WriteString("rollout: {by: region, bake: 1m, requests: 50, patience: 20m}\nworkloads:\n")
		for i := range 4 {
			fmt.Fprintf(&b, "  w%d: {keys: [%s]}\n", i, keyOf(i))
		}
		return b.String()
	}
	run(t, setup{upstreams: fakes, whole: v("")}, func(r *rig) {
		r.flow(4, 50*time.Millisecond, lasting(2*time.Minute))
		r.configure(setup{whole: v("2")})
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		if s := r.rolled(); len(s.Stages) != 2 || len(s.Stages[0].Regions) != 1 || s.Stages[0].Regions[0] != "west" {
			t.Fatalf("%+v", s.Stages)
		}
		next := r.app.gateway.Snapshot().Rollout.Next.Load()
		for _, e := range next.Models["m"].Entries { // calls elsewhere speak for the version before
			if region := e.Spec().Region; next.Upstreams[e.Target].Before != (region == "east") {
				t.Errorf("a call in %s is counted for the wrong version", region)
			}
		}
		seen := map[string]int{}
		var end time.Duration
		for _, g := range r.flow(4, 50*time.Millisecond, func(at time.Duration) bool { end = at; return r.rolled().Stage == 1 }) {
			if r.good(g.answer, "of "); end-g.at < time.Second { // the stage may have ended as it came
				continue
			}
			for _, of := range []string{"of old east", "of old west", "of new east", "of new west"} {
				if strings.Contains(g.body, of) {
					seen[of]++
				}
			}
		}
		if seen["of new west"] == 0 || seen["of old east"] == 0 || seen["of new east"]+seen["of old west"] > 0 {
			t.Errorf("the first stage: %v", seen)
		}
		r.flow(4, 50*time.Millisecond, r.over(time.Hour))
		if s := r.rolled(); s.State != rollout.Promoted {
			t.Errorf("%s: %s", s.State, s.Why)
		}
	})
}

// TestRolloutOfAChoice: one request sees one version from its key to its last attempt,
// also while it waits for a slot and the version is taken back.
func TestRolloutOfAChoice(t *testing.T) {
	old := upstream("old", answers("of old"))
	next := upstream("new", script{wait(5 * time.Second), status(500, "{}")}, answers("of new"))
	v := func(to string) pair {
		return pair{workloads: 1, to: to, stages: quick, more: "defaults: {retry: {attempts: 2, max_ratio: 1, ratio: 1}}\n"}
	}
	run(t, setup{upstreams: []*fake{old, next}, whole: v("old").yaml()}, func(r *rig) {
		r.take(v("new"))
		for range 2 {
			if err := r.app.PromoteRollout(ada, "all"); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if a := r.do(ask{key: keyOf(0)}); strings.Contains(a.body, "of old") {
				t.Errorf("answered by the other version: %s", a.body)
			}
		})
		time.Sleep(time.Second)
		if err := r.app.HaltRollout(ada, "it hangs"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if old.count() != 0 {
			t.Error("a request of the new version was tried at the old one")
		}
	})
}

// TestRolloutLosesNothing: whatever is done with configurations while requests are
// served, none is cut, none is refused, none is answered by a version that was never in
// the file, and everything that was held comes back.
func TestRolloutLosesNothing(t *testing.T) {
	type op struct {
		do, to, limit int
		pause         time.Duration
	}
	some := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) op {
		return op{rapid.IntRange(0, 4).Draw(rt, "do"), rapid.IntRange(0, 2).Draw(rt, "to"), rapid.IntRange(4, 6).Draw(rt, "limit"), time.Duration(rapid.IntRange(0, 90_000).Draw(rt, "pause")) * time.Millisecond}
	}), 1, 12)
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var fakes []*fake
			for i := range 3 {
				fakes = append(fakes, upstream(fmt.Sprintf("u%d", i), after(time.Duration(i*300)*time.Millisecond, answers("fine"))))
			}
			v := func(i, limit int) pair {
				return pair{workloads: 3, to: fmt.Sprintf("u%d", i), stages: quick, target: fmt.Sprintf(", limits: {concurrency: %d}", limit), more: "defaults: {queue: {wait: 30s}}\n"}
			}
			run(t, setup{upstreams: fakes, whole: v(0, 5).yaml()}, func(r *rig) {
				var stop atomic.Bool
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, g := range r.flow(3, 250*time.Millisecond, func(time.Duration) bool { return stop.Load() }) {
						r.good(g.answer, "fine")
					}
				})
				for _, o := range some.Example(seed) {
					switch o.do {
					case 0, 1:
						r.configure(setup{whole: v(o.to, o.limit).yaml()})
						_ = r.app.Reload() // most of these say what they think of it
					case 2:
						_ = r.app.PromoteRollout(ada, "on")
					case 3:
						_ = r.app.HaltRollout(ada, "back")
					case 4:
						_ = r.app.RetryRollout(ada, "again")
					}
					time.Sleep(o.pause)
				}
				stop.Store(true)
				wg.Wait()
				time.Sleep(11 * time.Minute)
				r.app.builder.mu.Lock()
				n := len(r.app.builder.leaving)
				r.app.builder.mu.Unlock()
				if n != 0 {
					t.Errorf("%d targets out of force are still kept", n)
				}
				for _, target := range r.app.builder.candidates() {
					if s := target.State(time.Now()); s.InFlight != 0 {
						t.Errorf("%d calls of %s", s.InFlight, s.Name)
					}
				}
			})
		})
	}
}
