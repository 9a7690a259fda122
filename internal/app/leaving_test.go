package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
)

// leaving makes a request and leaves after d.
func (r *rig) leaving(d time.Duration, a ask) answer {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	a.ctx = ctx
	return r.do(a)
}

func TestF01TheCallEndsWithItsClient(t *testing.T) {
	for name, tc := range map[string]struct {
		script script
		stream bool
	}{
		"whole answer":         {after(10*time.Second, answers("late")), false},
		"stream, no headers":   {after(10*time.Second, answers("late")), true},
		"stream, held back":    {script{head(), sse(roleChunk), wait(10 * time.Second), sse(chunk("late"))}, true}, // F03
		"stream with content":  {script{head(), sse(chunk("early")), wait(10 * time.Second), sse(chunk("late"))}, true},
		"body that stops half": {script{func(t *talk) bool { return t.send(`{"id":`) }, wait(10 * time.Second)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", tc.script), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				start := time.Now()
				r.leaving(200*time.Millisecond, ask{stream: tc.stream})
				synctest.Wait()
				s := u1.request(0)
				if d := s.closed.Sub(start); d < 200*time.Millisecond || d > 300*time.Millisecond {
					t.Errorf("upstream call closed after %s", d)
				}
				if st := r.state("u1"); st.Breaker.Failed != 0 {
					t.Errorf("%d failures counted", st.Breaker.Failed)
				}
				if !strings.Contains(r.logs.String(), "canceled") { // F11, N17
					t.Errorf("no record of the client's leaving: %s", r.logs)
				}
				r.counts(map[*fake]int{u1: 1, u2: 0})
			})
		})
	}
}

func TestF02AStreamStopsWithItsClient(t *testing.T) {
	s := script{head()}
	for range 100 {
		s = append(s, sse(chunk("x")), wait(200*time.Millisecond))
	}
	u1 := upstream("u1", s)
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		start := time.Now()
		r.leaving(500*time.Millisecond, ask{stream: true})
		synctest.Wait()
		if d := u1.request(0).closed.Sub(start); d <= 0 || d > 700*time.Millisecond {
			t.Errorf("upstream call closed after %s", d)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestF08ReservationsComeBack(t *testing.T) {
	u1 := upstream("u1", script{hold()})
	s := setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 6000000, concurrency: 2000}"}
	run(t, s, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() { r.leaving(time.Duration(1+i)*time.Millisecond, ask{}) })
		}
		wg.Wait()
		synctest.Wait()
		u1.use(answers("from one"))
		r.good(r.do(ask{}), "from one")
		r.counts(map[*fake]int{u1: 1001})
	})
}

func TestF09LeavingBehindTheLastEvent(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(chunk("x"), finishChunk, done), hold()})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			r.t.Fatal(err)
		}
		var got string
		p := make([]byte, 4096)
		for !strings.Contains(got, done) {
			n, err := resp.Body.Read(p)
			if got += string(p[:n]); err != nil {
				break
			}
		}
		_ = resp.Body.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if st := r.state("u1"); st.Breaker.OK != 1 {
			t.Errorf("counted as %d successes", st.Breaker.OK)
		}
		if strings.Contains(r.logs.String(), `"canceled"`) {
			t.Errorf("a whole answer was recorded as canceled: %s", r.logs)
		}
	})
}

// The same of a probe: that its caller has left behind the last event takes nothing
// back, although the probe would have run on without it.
func TestF09LeavingBehindTheLastEventOfAProbe(t *testing.T) {
	u1 := upstream("u1", script{status(500, "")})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.every(steady, 250, ask{})
		time.Sleep(10 * time.Second)
		u1.use(script{head(), sse(chunk("x"), finishChunk, done), hold()})
		if p := r.state("u1").Phase; p != breaker.HalfOpen.String() && p != breaker.Open.String() {
			t.Fatalf("breaker %s", p)
		}
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			r.t.Fatal(err)
		}
		var got string
		p := make([]byte, 4096)
		for !strings.Contains(got, done) {
			n, err := resp.Body.Read(p)
			if got += string(p[:n]); err != nil {
				break
			}
		}
		_ = resp.Body.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if !strings.Contains(got, done) {
			t.Errorf("not the whole answer: %q", got)
		}
		if strings.Contains(r.logs.String(), `"canceled"`) {
			t.Error("a whole answer was recorded as canceled")
		}
	})
}

func TestF10NoSlotIsLost(t *testing.T) {
	phases := []script{
		{hold()},
		{head(), hold()},
		{head(), sse(roleChunk), hold()},
		{head(), sse(chunk("x")), hold()},
		{head(), sse(chunk("x")), wait(30 * time.Millisecond), cut()},
		{head(), sse(chunk("x")), wait(30 * time.Millisecond), rst()},
		{status(500, "")},
		{wait(20 * time.Millisecond), cut()},
		after(40*time.Millisecond, answers("x")),
	}
	u1 := upstream("u1")
	u1.pick = func(n int, _ *seen) script { return phases[n%len(phases)] }
	s := setup{
		upstreams: []*fake{u1}, workload: "limits: {concurrency: 200}", target: map[string]string{"u1": "limits: {concurrency: 10}"},
		defaults: "breaker: {cool_down: 1s, ramp: 1s}",
	}
	run(t, s, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { r.leaving(time.Duration(1+i*7%60)*time.Millisecond, ask{stream: i%3 > 0}) })
			if i%10 == 9 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		wg.Wait()
		synctest.Wait()
		if st := r.state("u1"); st.InFlight != 0 {
			t.Errorf("%d slots taken", st.InFlight)
		}
		if n := r.app.queued(); n != 0 {
			t.Errorf("%d still in the queue", n)
		}
		u1.use(answers("from one"))
		r.every(100*time.Millisecond, 200, ask{}) // the failures among them may have opened the target
		for _, a := range r.each(10, func(int) ask { return ask{} }) {
			r.good(a, "from one")
		}
	})
}

// Breaks when a ticket's Leave forgets one of the limits it has entered.
func TestF10SlotsOfEveryLevelComeBack(t *testing.T) {
	for _, tc := range []struct{ workload, model string }{
		{"limits: {concurrency: 10}", ""}, {"key_limits: {concurrency: 10}", ""}, {"model_limits: {m: {concurrency: 10}}", ""}, {"", "limits: {concurrency: 10}"},
	} {
		t.Run(tc.workload+tc.model, func(t *testing.T) {
			u1 := upstream("u1", script{hold()})
			run(t, setup{upstreams: []*fake{u1}, workload: tc.workload, model: tc.model}, func(r *rig) {
				for range 10 {
					var wg sync.WaitGroup
					for range 10 {
						wg.Go(func() { r.leaving(50*time.Millisecond, ask{stream: true}) })
					}
					wg.Wait()
					synctest.Wait()
				}
				u1.use(answers("from one"))
				r.good(r.do(ask{}), "from one")
				r.counts(map[*fake]int{u1: 101})
			})
		})
	}
}

func TestF11AnUpstreamsCancelIsNoClients(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, `{"error":{"message":"context canceled","type":"server_error","code":null}}`)}), upstream("u2", script{status(500, "")})
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.failed(r.do(ask{}), 503, "outage")
		r.counts(map[*fake]int{u1: 1, u2: 1})
	})
}

func TestM01NoCredentialOfTheCallerGoesUp(t *testing.T) {
	headers := []string{
		"X-Api-Key", callerKey, "Api-Key", callerKey, "Cookie", "session=" + callerKey, "Proxy-Authorization", "Basic " + callerKey,
		"X-Forwarded-For", "10.1.2.3", "Openai-Organization", "org-of-the-caller", "Ocp-Apim-Subscription-Key", callerKey, "X-Amz-Security-Token", callerKey,
	}
	for _, kind := range []string{"openai", "azure", "openai-compatible"} {
		all := append(routes[:len(routes):len(routes)], []struct{ path, body string }{
			{"/v1/files?api-key=" + callerKey, `{"x":1}`}, {"/v1/moderations", `{"model":"m","input":"x"}`},
		}...)
		for _, route := range all {
			t.Run(kind+" "+route.path, func(t *testing.T) {
				u1 := upstream("u1", answers("x"))
				run(t, setup{upstreams: []*fake{u1}, kind: kind, more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
					path := route.path
					if !strings.Contains(path, "?") {
						path += "?key=" + callerKey
					}
					r.do(ask{path: path, body: route.body, headers: headers})
					r.counts(map[*fake]int{u1: 1})
					s := u1.request(0)
					if all := fmt.Sprint(s.header, s.uri, s.body); strings.Contains(all, callerKey) {
						t.Errorf("the caller's key went up: %s", all)
					}
					for _, name := range []string{"Cookie", "Proxy-Authorization", "X-Api-Key", "X-Forwarded-For", "Ocp-Apim-Subscription-Key"} {
						if v := s.header.Get(name); v != "" {
							t.Errorf("%s: %s went up", name, v)
						}
					}
					own := s.header.Get("Authorization")
					if kind == "azure" {
						own = s.header.Get("Api-Key")
					}
					if strings.TrimPrefix(own, "Bearer ") != "secret-of-u1" {
						t.Errorf("the target's own credential is %q", own)
					}
				})
			})
		}
	}
}

func TestM04AnswersAndKeysAreNotMixedUp(t *testing.T) {
	echo := func(name string) *fake {
		u := upstream(name)
		u.pick = func(n int, s *seen) script {
			_, marker, _ := strings.Cut(s.body, "marker-")
			marker, _, _ = strings.Cut(marker, ".")
			text := fmt.Sprintf("%s %s %s", name, marker, s.header.Get("Authorization"))
			return after(time.Duration(n%7)*time.Millisecond, answers(text))
		}
		return u
	}
	us := []*fake{echo("u1"), echo("u2"), echo("u3")}
	run(t, setup{upstreams: us, together: true}, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				a := ask{body: fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"marker-%d."}]}`, i%2 == 0, i)}
				if i%5 == 4 {
					r.leaving(time.Duration(1+i%4)*time.Millisecond, a)
					return
				}
				got := r.do(a)
				at, _, _ := strings.Cut(got.header.Get("Hourthree-Target"), "/")
				r.good(got, fmt.Sprintf("%s %d Bearer secret-of-%s", at, i, at))
			})
		}
		wg.Wait()
		if n := us[0].count() + us[1].count() + us[2].count(); n > 300 {
			t.Errorf("%d calls for 300 requests", n)
		}
	})
}

func TestM05RefusedKeysAreTheRoutersAffair(t *testing.T) {
	reason := `{"error":{"message":"Incorrect API key provided: secret-of-u1","type":"invalid_request_error","code":"invalid_api_key"}}`
	u1 := upstream("u1", script{status(401, reason)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{})
		r.failed(a, 502, "credential")
		if strings.Contains(a.body+r.logs.String(), "secret-of-u1") {
			t.Errorf("the key is in %s or %s", a.body, r.logs)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}
