package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/rollout"
)

// pair is a model behind two upstreams, of which one at a time is configured: a
// change of the address is the new version.
type pair struct {
	workloads int
	to        string // upstream
	stages    string // the rollout's settings
	provider  string // further settings of the provider
	target    string // further settings of the target
	more      string // further settings
}

func (p pair) yaml() string {
	var b strings.Builder
	b.WriteString("listen: 127.0.0.1:8080\nadmin: {listen: 127.0.0.1:8081}\nmemory: {limit: 512MiB}\n")
	fmt.Fprintf(&b, "providers:\n  p: {type: openai, base_url: \"http://%s.test/v1\", api_key: secret-of-p%s}\n", p.to, p.provider)
	fmt.Fprintf(&b, "models: {m: {targets: [{provider: p, model: real%s}]}}\nworkloads:\n", p.target)
	for i := range p.workloads {
		fmt.Fprintf(&b, "  w%d: {keys: [%s]}\n", i, keyOf(i))
	}
	if p.stages != "" {
		fmt.Fprintf(&b, "rollout: {%s}\n", p.stages)
	}
	return b.String() + p.more
}

const quick = "stages: [10%, 50%, 100%], bake: 1m, requests: 50, patience: 20m"

func keyOf(workload int) string { return fmt.Sprintf("key-of-workload-%d", workload) }

// take writes the configuration and reads it again.
func (r *rig) take(p pair) {
	r.t.Helper()
	r.configure(setup{whole: p.yaml()})
	if err := r.app.Reload(); err != nil {
		r.t.Fatal(err)
	}
}

// got is one answer in a flow.
type got struct {
	answer
	workload int
	at       time.Duration
}

// flow asks once each period, workload by workload, until stop says so.
func (r *rig) flow(workloads int, each time.Duration, stop func(since time.Duration) bool) []got {
	var mu sync.Mutex
	var out []got
	var wg sync.WaitGroup
	began := time.Now()
	for i := 0; !stop(time.Since(began)); i++ {
		wg.Go(func() {
			g := got{workload: i % workloads, at: time.Since(began)}
			g.answer = r.do(ask{key: keyOf(g.workload)})
			mu.Lock()
			out = append(out, g)
			mu.Unlock()
		})
		time.Sleep(each)
	}
	wg.Wait()
	return out
}

func lasting(d time.Duration) func(time.Duration) bool {
	return func(since time.Duration) bool { return since >= d }
}

// rolled is the state of the newest rollout.
func (r *rig) rolled() rollout.Status {
	r.t.Helper()
	s, ok := r.app.RolloutStatus(time.Now())
	if !ok {
		r.t.Fatal("there was no rollout")
	}
	return s
}

// over reports that the newest rollout has ended, or that it takes too long.
func (r *rig) over(most time.Duration) func(time.Duration) bool {
	return func(since time.Duration) bool { return since >= most || r.rolled().State != rollout.Baking }
}

// TestRolloutToTheEnd: a good version reaches everything, stage by stage; nobody
// notices; a workload that it serves stays with it; afterwards its targets are the
// targets.
func TestRolloutToTheEnd(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 10, to: "old", stages: quick}.yaml()}, func(r *rig) {
		r.flow(10, 50*time.Millisecond, lasting(2*time.Minute))
		if next.count() != 0 {
			t.Fatal("the new upstream is called already")
		}
		r.take(pair{workloads: 10, to: "new", stages: quick})
		all := r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		s := r.rolled()
		if s.State != rollout.Promoted || len(s.Timeline) != 4 {
			t.Fatalf("%s: %s %+v", s.State, s.Why, s.Timeline)
		}
		byNew := map[int]bool{} // workloads whose last answer was of the new one while they were whole
		first, third := 0, 0
		for _, g := range all {
			r.good(g.answer, "of ")
			served := strings.Contains(g.body, "of new")
			switch {
			case g.at < time.Minute && served:
				first++
			case g.at < time.Minute:
				third++
			}
			byNew[g.workload] = byNew[g.workload] || served
		}
		if share := float64(first) / float64(first+third); share < 0.05 || share > 0.15 {
			t.Errorf("the first stage reached %.3f", share)
		}
		if len(byNew) != 10 {
			t.Errorf("%d workloads", len(byNew))
		}
		n := old.count()
		for _, g := range r.flow(10, 50*time.Millisecond, lasting(time.Minute)) {
			r.good(g.answer, "of new")
		}
		if old.count() != n {
			t.Error("the old upstream is called still")
		}
		if list := r.app.state(time.Now()); len(list.Targets) != 1 || list.Targets[0].Name != "p/real" || list.ConfigID != s.Version {
			t.Errorf("%+v, %s", list.Targets, list.ConfigID)
		}
	})
}

// unsupported answers as an engine that does not support its settings: most calls 400,
// some 429, a few well.
func unsupported(n int, _ *seen) script {
	switch {
	case n%20 < 15:
		return script{status(400, `{"error":{"message":"unsupported setting","type":"invalid_request_error"}}`)}
	case n%20 < 18:
		return script{status(429, `{"error":{"message":"busy","type":"rate_limit_exceeded"}}`)}
	}
	return answers("of new")
}

// TestRolloutReverts: a version whose upstream answers 400 and 429 is taken back in
// its first stage by itself; few requests met it, none after; the target in force has
// kept its health; and the same file is not tried again by itself.
func TestRolloutReverts(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new")
	next.pick = unsupported
	v1, v2 := pair{workloads: 10, to: "old", stages: quick}, pair{workloads: 10, to: "new", stages: quick}
	run(t, setup{upstreams: []*fake{old, next}, whole: v1.yaml()}, func(r *rig) {
		r.flow(10, 50*time.Millisecond, lasting(2*time.Minute))
		before := r.state("p")
		r.take(v2)
		all := r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		s := r.rolled()
		if s.State != rollout.Reverted || s.Stage != 0 {
			t.Fatalf("%s in stage %d: %s", s.State, s.Stage, s.Why)
		}
		bad := 0
		for _, g := range all {
			if g.status != 200 {
				bad++
			}
		}
		t.Logf("reverted after %s, %d of %d requests: %s", all[len(all)-1].at, bad, len(all), s.Why)
		if bad == 0 || bad > 60 {
			t.Errorf("%d requests met it", bad)
		}
		n := next.count()
		for _, g := range r.flow(10, 50*time.Millisecond, lasting(time.Minute)) {
			r.good(g.answer, "of old")
		}
		if next.count() != n {
			t.Error("it is called still")
		}
		after := r.state("p")
		if after.Phase != "closed" || before.Phase != "closed" || after.CoolUntil != nil {
			t.Errorf("the target in force has suffered: %+v", after)
		}
		r.take(v2)
		if s := r.rolled(); s.State != rollout.Reverted {
			t.Errorf("it is tried again by itself: %s", s.State)
		}
		if err := r.app.RetryRollout(ada, "it is mended"); err != nil {
			t.Fatal(err)
		}
		next.use(answers("of new"))
		r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		if s := r.rolled(); s.State != rollout.Promoted {
			t.Errorf("%s: %s", s.State, s.Why)
		}
	})
}

// post sends an order to the operator's listener.
func (r *rig) post(path, body string) (int, string) {
	r.t.Helper()
	resp, err := r.client.Post("http://127.0.0.1:8081"+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestRolloutByHand: an operator sees the rollout, widens it and ends it; a stream
// that the new version serves runs on; what is asked for out of turn is refused with
// the reason.
func TestRolloutByHand(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", script{head(), sse(roleChunk, chunk("of new")), wait(20 * time.Second), sse(finishChunk, done)})
	v1, v2 := pair{workloads: 2, to: "old", stages: quick}, pair{workloads: 2, to: "new", stages: quick}
	run(t, setup{upstreams: []*fake{old, next}, whole: v1.yaml()}, func(r *rig) {
		resp, err := r.client.Get("http://127.0.0.1:8081/api/v1/rollout")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(text), `"state": "none"`) {
			t.Errorf("%s", text)
		}
		for _, do := range []string{"promote", "halt", "retry"} {
			if code, body := r.post("/api/v1/rollout/"+do, `{"why":"I say so"}`); code != http.StatusConflict || !strings.Contains(body, "error") {
				t.Errorf("%s: %d %s", do, code, body)
			}
		}
		r.take(v2)
		if code, _ := r.post("/api/v1/rollout/promote", `{}`); code != http.StatusBadRequest {
			t.Errorf("promoted without a reason: %d", code)
		}
		for range 2 {
			if code, body := r.post("/api/v1/rollout/promote", `{"why":"it is urgent","who":"ada"}`); code != http.StatusNoContent {
				t.Fatalf("%d %s", code, body)
			}
		}
		if s := r.rolled(); s.Stage != 2 || s.Timeline[2].By != "ada" || !strings.Contains(s.Timeline[2].What, "urgent") {
			t.Fatalf("%+v", s)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if a := r.do(ask{key: keyOf(0), stream: true}); a.err != nil || !strings.Contains(a.body, "of new") || !strings.Contains(a.body, done) {
				t.Errorf("the stream of the new version: %v %s", a.err, a.body)
			}
		})
		time.Sleep(time.Second)
		if code, body := r.post("/api/v1/rollout/halt", `{"why":"too slow","who":"ada"}`); code != http.StatusNoContent {
			t.Fatalf("%d %s", code, body)
		}
		r.good(r.do(ask{key: keyOf(0)}), "of old")
		var s rollout.Status
		if resp, err = r.client.Get("http://127.0.0.1:8081/api/v1/rollout"); err != nil {
			t.Fatal(err)
		}
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil || s.State != rollout.Halted || len(s.Diff) != 1 || s.Diff[0] != "providers.p.base_url: http://old.test/v1 -> http://new.test/v1" {
			t.Errorf("%v %+v", err, s)
		}
		resp.Body.Close()
		wg.Wait()
	})
}

// TestRolloutAcrossRestarts: with a store a restart goes on where the rollout stood and
// no further; a version that was taken back is not in force afterwards, whatever the
// file says; one that is through is.
func TestRolloutAcrossRestarts(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	db := fmt.Sprintf("store: {path: %q}\n", filepath.Join(t.TempDir(), "h.db"))
	v1, v2 := pair{workloads: 10, to: "old", stages: quick, more: db}, pair{workloads: 10, to: "new", stages: quick, more: db}
	run(t, setup{upstreams: []*fake{old, next}, whole: v1.yaml()}, func(r *rig) {
		defer func() { _ = r.app.Stop() }()
		r.flow(10, 50*time.Millisecond, lasting(2*time.Minute))
		r.take(v2)
		r.flow(10, 50*time.Millisecond, func(time.Duration) bool { return r.rolled().Stage == 1 })
		r.stop()
		r.again()
		if s := r.rolled(); s.State != rollout.Baking || s.Stage != 1 || r.app.current.Load().id == s.Version {
			t.Fatalf("after a restart: %s in stage %d", s.State, s.Stage)
		}
		n, m := 0, 0
		for _, g := range r.flow(10, 50*time.Millisecond, lasting(20*time.Second)) {
			if r.good(g.answer, "of "); strings.Contains(g.body, "of new") {
				n++
			} else {
				m++
			}
		}
		if share := float64(n) / float64(n+m); share < 0.3 || share > 0.7 {
			t.Errorf("after a restart in the second stage %.2f are served by the new version", share)
		}
		next.pick = unsupported
		r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		r.stop()
		r.again()
		if s := r.rolled(); s.State != rollout.Reverted || s.Before != r.app.current.Load().id {
			t.Errorf("%s, in force is %s and not %s", s.State, r.app.current.Load().id, s.Before)
		}
		for range 20 {
			r.good(r.do(ask{key: keyOf(1)}), "of old")
		}
		if err := r.app.RetryRollout(ada, "it is mended"); err != nil {
			t.Fatal(err)
		}
		next.use(answers("of new"))
		r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		r.stop()
		r.again()
		if _, ok := r.app.RolloutStatus(time.Now()); ok {
			t.Error("what is through is rolled out again")
		}
		r.good(r.do(ask{key: keyOf(1)}), "of new")
	})
}

// TestRolloutWithoutStore: the file is taken as it stands, and that is said.
func TestRolloutWithoutStore(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 1, to: "old", stages: quick}.yaml()}, func(r *rig) {
		defer func() { _ = r.app.Stop() }()
		r.take(pair{workloads: 1, to: "new", stages: quick})
		r.stop()
		r.again()
		r.good(r.do(ask{key: keyOf(0)}), "of new")
		if !strings.Contains(r.logs.String(), "without a store nothing is known") {
			t.Error("nobody is told")
		}
	})
}

// TestRolloutReplaced: a newer file takes the place of the one on its way and begins
// at its first stage, from the version in force; a bad file changes nothing; the file in
// force ends the rollout; one that changes only what no request can be told apart by
// is taken at once.
func TestRolloutReplaced(t *testing.T) {
	old, next, third := upstream("old", answers("of old")), upstream("new", answers("of new")), upstream("third", answers("of third"))
	v := func(to, more string) pair { return pair{workloads: 4, to: to, stages: quick, more: more} }
	run(t, setup{upstreams: []*fake{old, next, third}, whole: v("old", "").yaml()}, func(r *rig) {
		base := r.app.current.Load().id
		r.take(v("new", ""))
		first := r.rolled()
		if err := r.app.PromoteRollout(ada, "in a hurry"); err != nil {
			t.Fatal(err)
		}
		r.take(v("new", "")) // read again
		if s := r.rolled(); s.Stage != 1 || s.Version != first.Version {
			t.Errorf("the same file again: %s in stage %d", s.Version, s.Stage)
		}
		if err := os.WriteFile(r.file, []byte("models: ["), 0o600); err != nil {
			t.Fatal(err)
		}
		if r.app.Reload() == nil || r.rolled().State != rollout.Baking {
			t.Error("a bad file ends the rollout")
		}
		r.take(v("third", ""))
		if s := r.rolled(); s.Stage != 0 || s.Version == first.Version || s.Before != base || s.State != rollout.Baking {
			t.Errorf("replaced: %+v", s)
		}
		r.take(v("old", "")) // back
		if s := r.rolled(); s.State != rollout.Replaced || r.app.gateway.Snapshot().Rollout != nil {
			t.Errorf("the file in force is back: %s", s.State)
		}
		r.good(r.do(ask{key: keyOf(0)}), "of old")
		r.take(v("old", "quarantine: {automatic: false}\n"))
		if r.app.current.Load().config.Quarantine.Automatic || r.app.gateway.Snapshot().Rollout != nil {
			t.Error("a setting of the process is rolled out")
		}
		if n := next.count() + third.count(); n != 0 {
			t.Errorf("%d requests nobody made", n)
		}
	})
}

// ada moves rollouts by hand.
var ada = admin.By{Name: "ada", Role: "operate", Via: "key"}

// TestRolloutIsToldOf: what happens to a rollout is in the log, among the changes, and
// among those that an outage is compared with.
func TestRolloutIsToldOf(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	run(t, setup{upstreams: []*fake{old, next}, whole: pair{workloads: 2, to: "old", stages: quick}.yaml()}, func(r *rig) {
		r.take(pair{workloads: 2, to: "new", stages: quick})
		if err := r.app.HaltRollout(ada, "callers complain"); err != nil {
			t.Fatal(err)
		}
		list := r.app.changes()
		if len(list) != 2 || list[0].What != "rollout" || list[0].Who != "ada" || !strings.Contains(list[0].Why, "callers complain") || list[1].Who != byRollout {
			t.Errorf("%+v", list)
		}
		if all, err := r.app.entries(0, 2); err != nil || len(all) != 2 || all[0].Role != "operate" || all[0].Via != "key" || all[1].Via != "" {
			t.Errorf("who halted it is not in the audit log as known: %+v %v", all, err)
		}
		if log := r.logs.String(); !strings.Contains(log, "callers complain") || !strings.Contains(log, "providers.p.base_url: http://old.test/v1 -> http://new.test/v1") || strings.Contains(log, "secret-of-p") {
			t.Errorf("%s", log)
		}
	})
}
