package app

import (
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func slowStream(events int, pause time.Duration) script {
	s := script{head()}
	for range events {
		s = append(s, sse(chunk("x")), wait(pause))
	}
	return append(s, sse(finishChunk, done))
}

func TestN06DrainLetsStreamsEnd(t *testing.T) {
	u1 := upstream("u1", slowStream(60, time.Second))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		out := make(chan []answer)
		go func() { out <- r.each(20, func(int) ask { return ask{stream: true} }) }()
		time.Sleep(10 * time.Second)
		stopped := make(chan error)
		start := time.Now()
		go func() { stopped <- r.app.Stop() }()
		synctest.Wait()
		if r.app.notReady() == nil {
			t.Error("still ready while draining")
		}
		late := r.do(ask{})
		if late.err == nil {
			t.Errorf("a new request was taken: %d", late.status)
		}
		for _, a := range <-out {
			r.good(a, done)
		}
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
		if d := time.Since(start); d < 49*time.Second || d > 52*time.Second {
			t.Errorf("the drain took %s", d)
		}
		r.counts(map[*fake]int{u1: 20})
	})
}

func TestN06DrainHasAnEnd(t *testing.T) {
	u1 := upstream("u1", slowStream(600, time.Second))
	s := setup{upstreams: []*fake{u1}, http: "drain: 20s"}
	run(t, s, func(r *rig) {
		out := make(chan answer)
		go func() { out <- r.do(ask{stream: true}) }()
		time.Sleep(5 * time.Second)
		start := time.Now()
		if err := r.app.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if d := time.Since(start); d > 22*time.Second {
			t.Errorf("the drain took %s", d)
		}
		a := <-out
		if a.err == nil || strings.Contains(a.body, done) || !strings.Contains(a.body, "upstream_draining") {
			t.Errorf("a cut stream ended as if it were whole: %v, %q", a.err, a.body[max(0, len(a.body)-100):])
		}
		synctest.Wait()
		if u1.request(0).closed.IsZero() {
			t.Error("the upstream call was not closed")
		}
	})
}

func TestN08ReloadsCutNothing(t *testing.T) {
	u1 := upstream("u1", slowStream(30, time.Second))
	s := setup{upstreams: []*fake{u1}}
	run(t, s, func(r *rig) {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { r.good(r.do(ask{stream: true}), done) })
		}
		for i := range 25 {
			time.Sleep(time.Second)
			s.provider = map[string]string{"u1": "headers: {X-Turn: \"" + strings.Repeat("i", i+1) + "\"}"}
			r.configure(s)
			if err := r.app.Reload(); err != nil {
				t.Errorf("reload: %v", err)
			}
		}
		wg.Wait()
		u1.use(answers("new"))
		r.good(r.do(ask{}), "new")
		if got := u1.request(10).header.Get("X-Turn"); len(got) != 25 {
			t.Errorf("the newest settings are not used: %q", got)
		}
		r.counts(map[*fake]int{u1: 11})
	})
}

// A probe that has outlived its caller does not hold up the end.
func TestNobodysProbeDoesNotHoldUpADrain(t *testing.T) {
	u1 := upstream("u1", after(200*time.Millisecond, answers("x")))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.every(steady, 250, ask{})
		u1.use(script{status(500, "")})
		r.every(steady, 250, ask{})
		time.Sleep(10 * time.Second)
		u1.use(script{hold()})
		before := u1.count()
		r.leaving(100*time.Millisecond, ask{})
		if n := u1.count() - before; n != 1 {
			t.Fatalf("%d probes", n)
		}
		if r.app.gateway.InFlight() != 1 {
			t.Fatal("the probe has ended with its caller")
		}
		start := time.Now()
		if err := r.app.Stop(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("stopped after %s", d)
		}
	})
}

func TestN08BadReloadChangesNothing(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		if err := os.WriteFile(r.file, []byte("providers: {u1: {type: openai, api_key_evn: X}}\n"), 0o600); err != nil {
			r.t.Fatal(err)
		}
		err := r.app.Reload()
		if err == nil || !strings.Contains(err.Error(), "api_key_evn") {
			t.Errorf("reload of a misspelt file: %v", err)
		}
		r.good(r.do(ask{}), "from one")
	})
}

func TestN10NewKeysCountFromTheNextRequest(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	s := setup{upstreams: []*fake{u1}}
	run(t, s, func(r *rig) {
		r.good(r.do(ask{}), "from one")
		text := strings.ReplaceAll(s.yaml(), "secret-of-u1", "second-secret")
		s.whole = strings.ReplaceAll(text, callerKey, "second-key")
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			r.t.Fatal(err)
		}
		r.failed(r.do(ask{}), 401, "client")
		r.good(r.do(ask{key: "second-key"}), "from one")
		if got := u1.request(1).header.Get("Authorization"); got != "Bearer second-secret" {
			t.Errorf("asked with %q", got)
		}
		r.counts(map[*fake]int{u1: 2})
	})
}

func TestN18CountsAgree(t *testing.T) {
	u1, u2 := upstream("u1"), upstream("u2", answers("from two"))
	u1.pick = func(n int, _ *seen) script {
		if n%3 == 0 {
			return script{status(500, "")}
		}
		return answers("from one")
	}
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.every(50*time.Millisecond, 100, ask{})
		w := r.app.builder.workloadsInForce()[0].State(time.Now()) // N15
		if calls := u1.count() + u2.count(); w.Inbound != 100 || int(w.Attempts) != calls {
			t.Errorf("the state says %d in and %d out, the upstreams had %d", w.Inbound, w.Attempts, calls)
		}
	})
}
