package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/workload"
)

// tell sends an operator's request and returns what is said to it.
func (r *rig) tell(method, path, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://127.0.0.1:8081"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// give orders an action, which must be taken.
func (r *rig) give(order string) steer.Taken {
	r.t.Helper()
	status, body := r.tell("POST", "/api/v1/actions", order)
	var taken steer.Taken
	if err := json.Unmarshal([]byte(body), &taken); err != nil || status != http.StatusCreated {
		r.t.Fatalf("%s: %d %s", order, status, body)
	}
	return taken
}

func (r *rig) undo(id string) {
	r.t.Helper()
	if status, body := r.tell("DELETE", "/api/v1/actions/"+id, `{"why":"enough"}`); status != 200 {
		r.t.Fatalf("undo %s: %d %s", id, status, body)
	}
}

// quiet asserts that the detectors have found nothing.
func (r *rig) quiet() {
	r.t.Helper()
	if report := r.app.watch.Report(time.Now()); len(report.Outages) > 0 {
		r.t.Errorf("taken for an outage: %+v", report.Outages[0].Outage)
	}
}

// ordered asserts a refusal that an operator has ordered.
func (r *rig) ordered(a answer, class, code string) {
	r.t.Helper()
	r.failed(a, 503, class)
	if !strings.Contains(a.body, `"code":"`+code+`"`) {
		r.t.Errorf("%s", a.body)
	}
	if after, _ := strconv.Atoi(a.header.Get("Retry-After")); after < 1 || after > 60 {
		r.t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
}

// TestDrainATarget: streams run on to their end, new requests go elsewhere, and none
// where every target is drained, until the drain is over; nothing of it is a failure.
func TestDrainATarget(t *testing.T) {
	u1, u2 := upstream("u1", slowStream(90, time.Second)), upstream("u2", answers("other"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		out := make(chan []answer)
		go func() { out <- r.each(5, func(int) ask { return ask{stream: true} }) }()
		time.Sleep(10 * time.Second)
		u1.use(answers("fine"))
		one := r.give(`{"kind":"drain","subject":"u1/real","for":"30m","why":"maintenance"}`)
		for range 20 {
			r.good(r.do(ask{}), "other")
		}
		for _, a := range <-out {
			r.good(a, done)
		}
		s := r.state("u1")
		if !s.Drained || s.Steered != "drained" || s.Phase != "closed" || s.Breaker.Failed != 0 || s.Success < 1 {
			t.Errorf("%+v", s)
		}
		r.counts(map[*fake]int{u1: 5})
		two := r.give(`{"kind":"drain","subject":"u2/real","for":"2m","why":"both"}`)
		if len(two.Warnings) != 1 || !strings.Contains(two.Warnings[0], "model m has no target left") {
			t.Errorf("%v", two.Warnings)
		}
		r.ordered(r.do(ask{}), "outage", "drained")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r.good(r.do(ask{}), "other")
		time.Sleep(time.Until(one.Until) + pollEvery)
		synctest.Wait()
		if s := r.state("u1"); s.Steered != "" || s.Phase != "ramp" {
			t.Errorf("behind its end: %+v", s)
		}
		fine := 0
		for range 120 {
			if strings.Contains(r.do(ask{}).body, "fine") {
				fine++
			}
			time.Sleep(time.Second)
		}
		if fine < 60 || fine == 120 || r.state("u1").Phase != "closed" {
			t.Errorf("%d of 120 went to it, %s", fine, r.state("u1").Phase)
		}
	})
}

// TestAllDrainedDegrades: an operator's decision gets the degraded answer too.
func TestAllDrainedDegrades(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	run(t, setup{upstreams: []*fake{u1}, model: `degraded: {message: "come back later"}`}, func(r *rig) {
		one := r.give(`{"kind":"drain","subject":"u1/real","why":"x"}`)
		a := r.do(ask{})
		if r.good(a, "come back later"); a.header.Get("Hourthree-Degraded") != "message" {
			t.Errorf("%v", a.header)
		}
		r.undo(one.ID)
		r.good(r.do(ask{}), "fine")
	})
}

// TestForceOpen: nothing goes to the target, not even a probe, and it is no outage;
// behind it one call tries, whatever else comes in.
func TestForceOpen(t *testing.T) {
	u1, u2 := upstream("u1", answers("fine")), upstream("u2", answers("other"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		for range 300 {
			r.good(r.do(ask{}), "fine")
			time.Sleep(100 * time.Millisecond)
		}
		r.give(`{"kind":"force-open","subject":"u1/real","for":"10m","why":"their status page"}`)
		before := u1.count()
		for range 594 {
			r.good(r.do(ask{}), "other")
			time.Sleep(time.Second)
		}
		s := r.state("u1")
		if u1.count() != before || s.Steered != "forced open" || s.Phase != "open" {
			t.Errorf("%d calls, %+v", u1.count()-before, s)
		}
		if m := r.operator("/metrics"); !strings.Contains(m, `hourthree_actions_in_force{kind="force-open"} 1`) || !strings.Contains(m, `hourthree_target_held{target="u1/real"} 1`) {
			t.Error("the metrics do not show it")
		}
		r.quiet()
		time.Sleep(10 * time.Second)
		u1.use(after(2*time.Second, answers("fine")))
		for _, a := range r.each(50, func(int) ask { return ask{} }) {
			if a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		if n := u1.count() - before; n != 1 {
			t.Errorf("%d calls at once behind it, want one probe", n)
		}
	})
}

// TestForceClosed: calls go to a target whose breaker is open, within the allowance of
// extra attempts and its limits; behind it the breaker counts again.
func TestForceClosed(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, `{"error":{"message":"x"}}`)}), upstream("u2", answers("other"))
	run(t, setup{upstreams: []*fake{u1, u2}, target: map[string]string{"u1": "limits: {concurrency: 3}"}}, func(r *rig) {
		for range 100 {
			r.do(ask{})
			time.Sleep(50 * time.Millisecond)
		}
		if s := r.state("u1"); s.Phase == "closed" {
			t.Fatalf("%+v", s)
		}
		r.give(`{"kind":"force-closed","subject":"u1/real","for":"1m","why":"it is well, they say"}`)
		before, attempts := u1.count(), 0
		for range 500 {
			n, _ := strconv.Atoi(r.do(ask{}).header.Get("Hourthree-Attempts"))
			attempts += n
			time.Sleep(100 * time.Millisecond)
		}
		if n := u1.count() - before; n < 400 {
			t.Errorf("%d of 500 went to it", n)
		}
		if s := r.state("u1"); s.Steered != "forced closed" || s.Phase != "closed" {
			t.Errorf("%+v", s)
		}
		if attempts > 1000 {
			t.Errorf("%d attempts for 500 requests", attempts)
		}
		u1.use(after(time.Second, answers("fine")))
		r.each(30, func(int) ask { return ask{} })
		if u1.peak > 3 {
			t.Errorf("%d calls at once in 3 slots", u1.peak)
		}
		u1.use(script{status(500, `{"error":{"message":"x"}}`)})
		time.Sleep(time.Minute)
		synctest.Wait()
		before = u1.count()
		for range 100 {
			r.do(ask{})
			time.Sleep(20 * time.Millisecond)
		}
		if n := u1.count() - before; n > 2 {
			t.Errorf("%d calls behind it", n)
		}
	})
}

// TestShed: what matters less is refused before it is read, told when to come back,
// and no outage; critical work is never refused.
func TestShed(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	s := two(u1)
	s.workload = "priority: critical"
	s.more = "  other: {keys: [" + otherKey + "], priority: batch}\n"
	run(t, s, func(r *rig) {
		for range 300 {
			r.good(r.do(ask{key: otherKey}), "fine")
			time.Sleep(100 * time.Millisecond)
		}
		one := r.give(`{"kind":"shed","subject":"interactive","for":"10m","why":"room for the rest"}`)
		c := r.dialRaw()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", otherKey)
		if a, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || a.StatusCode != 503 {
			t.Errorf("unread: %v, %v", a, err)
		}
		c.Close()
		for range 300 {
			r.ordered(r.do(ask{key: otherKey}), "overload", "shed")
			r.good(r.do(ask{}), "fine")
			time.Sleep(100 * time.Millisecond)
		}
		r.failed(r.do(ask{key: otherKey, headers: []string{"User-Agent", "langchainjs-openai/1.0.0"}}), 429, "overload")
		if n := r.app.gateway.Shed(); n != 0 {
			t.Errorf("the rule of quarantine takes %d of them for want of room", n)
		}
		r.quiet()
		if !strings.Contains(r.logs.String(), `"reason":"shed"`) {
			t.Error("the log does not say so")
		}
		r.undo(one.ID)
		r.good(r.do(ask{key: otherKey}), "fine")
		if status, body := r.tell("POST", "/api/v1/actions", `{"kind":"shed","subject":"critical","why":"x"}`); status != 400 || !strings.Contains(body, "never shed") {
			t.Errorf("%d %s", status, body)
		}
	})
}

// TestBudget: by 0 nobody pays for an extra attempt, neither the workload nor the
// target, from the next request on; undone, it is as it was.
func TestBudget(t *testing.T) {
	for _, subject := range []string{"workload:team", "target:u2/real"} {
		u1, u2 := upstream("u1", script{status(500, `{"error":{"message":"x"}}`)}), upstream("u2", answers("other"))
		run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
			r.good(r.do(ask{}), "other")
			one := r.give(`{"kind":"budget","subject":"` + subject + `","factor":0,"why":"they make it worse"}`)
			r.failed(r.do(ask{}), 503, "outage")
			r.undo(one.ID)
			r.good(r.do(ask{}), "other")
			if s := r.state("u2"); s.Budget.Factor != 1 {
				t.Errorf("%+v", s.Budget)
			}
		})
	}
}

// TestPin: the model's requests go to that target alone, for better or worse; its last
// resort stays. A reload keeps it.
func TestPin(t *testing.T) {
	u1, u2, u3 := upstream("u1", answers("fine")), upstream("u2", answers("other")), upstream("u3", answers("small"))
	run(t, setup{whole: pinYAML, upstreams: []*fake{u1, u2, u3}}, func(r *rig) {
		if status, body := r.tell("POST", "/api/v1/actions", `{"kind":"pin","subject":"m","target":"u3/real","why":"x"}`); status != 404 || !strings.Contains(body, "u1/real, u2/real") {
			t.Errorf("%d %s", status, body)
		}
		one := r.give(`{"kind":"pin","subject":"m","target":"u2/real","why":"the new region"}`)
		for range 10 {
			r.good(r.do(ask{}), "other")
		}
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		r.good(r.do(ask{}), "other")
		state := r.app.state(time.Now())
		if m := state.Models[0]; m.Pinned != "u2/real" || len(m.Targets) != 2 || len(state.Actions) != 1 {
			t.Errorf("%+v", state.Models)
		}
		u2.use(script{status(500, `{"error":{"message":"x"}}`)})
		a := r.do(ask{})
		if r.good(a, "small"); a.header.Get("Hourthree-Degraded") != "model" {
			t.Errorf("%v", a.header)
		}
		r.counts(map[*fake]int{u1: 0})
		status, body := r.tell("POST", "/api/v1/actions", `{"kind":"drain","subject":"u2/real","why":"x"}`)
		if status != 201 || !strings.Contains(body, one.ID) {
			t.Errorf("drained while pinned: %d %s", status, body)
		}
		r.good(r.do(ask{}), "fine")
		if status, body := r.tell("POST", "/api/v1/actions", `{"kind":"pin","subject":"m","target":"u2/real","why":"x"}`); status != 409 || !strings.Contains(body, "held back by A-2") {
			t.Errorf("%d %s", status, body)
		}
	})
}

const pinYAML = `listen: 127.0.0.1:8080
admin: {listen: 127.0.0.1:8081}
memory: {limit: 512MiB}
providers:
  u1: {type: openai, base_url: "http://u1.test/v1", api_key: a}
  u2: {type: openai, base_url: "http://u2.test/v1", api_key: b}
  u3: {type: openai, base_url: "http://u3.test/v1", api_key: c}
models:
  m:
    targets: [{provider: u1, model: real}, {provider: u2, model: real, order: 2}]
    degraded: {model: small}
  small: {targets: [{provider: u3, model: real}]}
workloads: {team: {keys: [` + callerKey + `]}}
`

// TestActionsOutliveReloadAndRestart: what is in force stays so, what is over is not
// revived, what leaves the configuration ends with a note, and the audit log has it all.
func TestActionsOutliveReloadAndRestart(t *testing.T) {
	u1, u2 := upstream("u1", answers("fine")), upstream("u2", answers("other"))
	s := setup{upstreams: []*fake{u1, u2}, more: "store: {path: " + filepath.Join(t.TempDir(), "h.db") + "}\n"}
	run(t, s, func(r *rig) {
		r.give(`{"kind":"drain","subject":"u1/real","for":"2h","why":"maintenance","who":"ada"}`)
		r.give(`{"kind":"quarantine","subject":"team","share":0.5,"for":"2h","why":"a storm"}`)
		r.give(`{"kind":"budget","subject":"workload:team","factor":0.5,"for":"5m","why":"short"}`)
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		r.good(r.do(ask{}), "other")
		if err := r.app.Stop(); err != nil {
			t.Fatal(err)
		}
		r.client.CloseIdleConnections()
		time.Sleep(time.Hour)
		a, err := New(Options{ConfigPath: r.file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: r.logs, Version: "test", Network: over(r.net)})
		if err != nil {
			t.Fatal(err)
		}
		r.app = a
		defer func() { _ = a.Stop() }()
		r.good(r.do(ask{}), "other")
		if p := r.lane("team"); p.Lane != workload.Quarantine || p.Share != 0.5 {
			t.Errorf("%+v", p)
		}
		inForce := a.actions(time.Now()).InForce
		if len(inForce) != 2 || inForce[1].ID != "A-1" || inForce[1].By != "ada" {
			t.Errorf("%+v", inForce)
		}
		if ended := a.actions(time.Now()).Ended; len(ended) != 1 || ended[0].EndedBy != steer.ByExpiry {
			t.Errorf("%+v", ended)
		}
		again := s
		again.upstreams = s.upstreams[1:]
		r.configure(again)
		if err := a.Reload(); err != nil {
			t.Fatal(err)
		}
		r.give(`{"kind":"shed","subject":"batch","why":"x"}`)
		r.checkLog([]string{"configuration", "drain", "quarantine", "budget", "configuration", "expire", "configuration", "configuration", "end", "shed"})
		r.client.CloseIdleConnections()
	})
}

// checkLog asserts what the audit log has, the oldest first, and that it is whole.
func (r *rig) checkLog(want []string) {
	r.t.Helper()
	var what []string
	before := int64(0)
	for range 20 {
		var page admin.AuditPage
		_, text := r.tell("GET", fmt.Sprintf("/api/v1/audit?limit=3&before=%d", before), "")
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			r.t.Fatal(err)
		}
		for _, e := range page.Entries {
			what = append(what, e.What)
			if e.What == "drain" && (e.Who != "ada" || e.Via != "loopback" || e.Role != "operate" || e.Action != "A-1" || e.Undo == "" || e.Digest == "") {
				r.t.Errorf("%+v", e)
			}
		}
		if before = page.Before; before == 0 {
			break
		}
	}
	slices.Reverse(what)
	if !slices.Equal(what, want) {
		r.t.Errorf("the audit log has %q, want %q", what, want)
	}
	if err := r.app.store.VerifyLog(); err != nil {
		r.t.Error(err)
	}
}

// TestQuarantineEnds: an operator's quarantine ends by itself; where the rule held the
// workload before, the rule does so again, and a release is one.
func TestQuarantineEnds(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	run(t, two(u1), func(r *rig) {
		r.give(`{"kind":"quarantine","subject":"team","for":"10m","why":"x"}`)
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if p := r.lane("team"); p.Lane != workload.Normal {
			t.Errorf("%+v", p)
		}
		now := time.Now()
		rule := workload.Placement{Lane: workload.Quarantine, Share: 0.05, Since: &now, By: byRule, ByRule: true, Why: "a storm", Demand: 1}
		r.app.workload("team").Move(rule)
		one := r.give(`{"kind":"quarantine","subject":"team","share":0,"why":"all of it"}`)
		r.failed(r.do(ask{}), 429, "capacity")
		r.give(`{"kind":"quarantine","subject":"team","share":0.2,"why":"a little"}`)
		if p := r.lane("team"); p.Share != 0.2 {
			t.Errorf("%+v", p)
		}
		r.undo("A-3")
		if p := r.lane("team"); p.Share != 0 || r.heldBy("team") != one.ID {
			t.Errorf("%+v", p)
		}
		r.undo(one.ID)
		if p := r.lane("team"); p != rule {
			t.Errorf("%+v", p)
		}
		for range 3 {
			r.give(`{"kind":"quarantine","subject":"team","why":"again"}`)
		}
		if err := r.app.Release("team", admin.Quarantine{By: admin.By{Name: "ada"}}); err != nil {
			t.Fatal(err)
		}
		if p := r.lane("team"); p.Lane != workload.Normal || len(r.app.actions(time.Now()).InForce) > 0 {
			t.Errorf("%+v", p)
		}
	})
}

func (r *rig) heldBy(name string) string { return r.app.heldBy(name) }

// TestActionsAreTold: an outage lists what was done since its onset.
func TestActionsAreTold(t *testing.T) {
	u1 := upstream("u1", after(50*time.Millisecond, answers("fine")))
	run(t, two(u1), func(r *rig) {
		both := func(n int) {
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() { r.do(ask{}) })
				wg.Go(func() { r.do(ask{key: otherKey}) })
				time.Sleep(100 * time.Millisecond)
			}
			wg.Wait()
		}
		both(600)
		u1.use(script{status(500, `{"error":{"message":"x"}}`)})
		both(600)
		if r.app.watch.Open() == 0 {
			t.Fatal("nothing was noticed")
		}
		r.give(`{"kind":"force-open","subject":"u1/real","for":"1m","why":"x"}`)
		one := r.give(`{"kind":"shed","subject":"batch","why":"x"}`)
		r.undo(one.ID)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		var done []string
		for _, a := range r.app.watch.Report(time.Now()).Outages[0].Actions {
			done = append(done, a.What+" "+a.Scope)
		}
		want := []string{"force-open u1/real", "shed batch ", "undo shed batch ", "expire force-open u1/real"}
		if !slices.Equal(done, want) {
			t.Errorf("%q, want %q", done, want)
		}
	})
}

// TestOrdersInAnyOrder: whatever is ordered while requests run, each gets an answer,
// and behind it all is as it was.
func TestOrdersInAnyOrder(t *testing.T) {
	u1, u2 := upstream("u1", after(300*time.Millisecond, answers("fine"))), upstream("u2", after(200*time.Millisecond, answers("other")))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if a := r.do(ask{stream: i%2 == 0}); a.err != nil || a.status == 0 {
					t.Errorf("%+v", a)
				}
			})
			if i%10 == 5 {
				orders := []string{
					`{"kind":"drain","subject":"u1/real","for":"1m","why":"x"}`, `{"kind":"force-open","subject":"u2/real","for":"1m","why":"x"}`,
					`{"kind":"pin","subject":"m","target":"u1/real","for":"1m","why":"x"}`, `{"kind":"force-closed","subject":"u2/real","for":"1m","why":"x"}`,
				}
				r.tell("POST", "/api/v1/actions", orders[i/10%len(orders)])
			}
			time.Sleep(50 * time.Millisecond)
		}
		wg.Wait()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(r.app.actions(time.Now()).InForce); n != 0 {
			t.Errorf("%d in force", n)
		}
		r.good(r.do(ask{}), "")
	})
}
