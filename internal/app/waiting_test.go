package app

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestD01SilenceBeforeHeaders(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint(stream), func(t *testing.T) {
			u1, u2 := upstream("u1", script{hold()}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {headers: 300ms}"}, func(r *rig) {
				start := time.Now()
				a := r.do(ask{stream: stream})
				r.good(a, "from two")
				if a.took > 500*time.Millisecond {
					t.Errorf("took %s", a.took)
				}
				synctest.Wait()
				if closed := u1.request(0).closed.Sub(start); closed < 300*time.Millisecond || closed > 350*time.Millisecond {
					t.Errorf("the silent call was given up after %s", closed)
				}
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestD02StallAfterTheFirstContent(t *testing.T) {
	u1, u2 := upstream("u1", script{head(), sse(chunk("tok")), hold()}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {idle: 1s}"}, func(r *rig) {
		start := time.Now()
		a := r.do(ask{stream: true})
		r.brokenOff(a, "tok")
		if !strings.Contains(a.body, `"code":"upstream_idle_timeout"`) { // D13
			t.Errorf("body %q", a.body)
		}
		if a.took < time.Second || a.took > 1100*time.Millisecond {
			t.Errorf("took %s", a.took)
		}
		synctest.Wait()
		if closed := u1.request(0).closed.Sub(start); closed < time.Second || closed > 1100*time.Millisecond {
			t.Errorf("the stalled call was given up after %s", closed)
		}
		if s := r.state("u1"); s.Breaker.Failed != 1 {
			t.Errorf("%d failures counted", s.Breaker.Failed)
		}
		r.counts(map[*fake]int{u1: 1, u2: 0})
	})
}

func TestD03StallsOpenTheBreaker(t *testing.T) {
	u1, u2 := upstream("u1", script{head(), sse(chunk("tok")), hold()}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {idle: 1s}"}, func(r *rig) {
		r.each(10, func(int) ask { return ask{stream: true} })
		if s := r.state("u1"); s.Phase != "open" {
			t.Errorf("breaker %s after ten stalls", s.Phase)
		}
		r.good(r.do(ask{stream: true}), "from two")
		r.counts(map[*fake]int{u1: 10, u2: 1})
	})
}

func toolChunk(args string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%q}}]},"finish_reason":null}]}`, args)
}

func TestD04SmallToolArgumentsAreProgress(t *testing.T) {
	s := script{head(), sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":""}}]}}]}`)}
	for range 60 {
		s = append(s, wait(500*time.Millisecond), sse(toolChunk("x")))
	}
	s = append(s, sse(finishChunk, done))
	u1 := upstream("u1", s)
	run(t, setup{upstreams: []*fake{u1}, defaults: "timeouts: {idle: 1s}"}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, done)
		if n := strings.Count(a.body, `"arguments":"x"`); n != 60 {
			t.Errorf("%d pieces of arguments", n)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestD05WhatIsNoContent(t *testing.T) {
	for name, opening := range map[string]step{
		"role":          sse(roleChunk),
		"comment":       raw(": waiting\n\n"),
		"empty choices": sse(`{"id":"","object":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`),
		"empty text":    sse(roleChunk, chunk("")),
		"headers only":  raw(""),
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", script{head(), opening, hold()}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {first_content: 1s}"}, func(r *rig) {
				a := r.do(ask{stream: true})
				r.good(a, "from two")
				if a.took < time.Second || a.took > 1100*time.Millisecond {
					t.Errorf("took %s", a.took)
				}
				if n := strings.Count(a.body, `"role":"assistant"`); n != 1 {
					t.Errorf("%d role frames reached the client", n)
				}
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestD05PingsDoNotFeedTheFirstContentTimer(t *testing.T) {
	s := script{head(), sse(roleChunk)}
	for range 100 {
		s = append(s, wait(200*time.Millisecond), raw(": ping\n\n"))
	}
	u1, u2 := upstream("u1", s), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {first_content: 1s}"}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, "from two")
		if a.took > 1100*time.Millisecond {
			t.Errorf("took %s", a.took)
		}
		r.counts(map[*fake]int{u1: 1, u2: 1})
	})
}

func TestD08EveryRouteObeysEveryTimer(t *testing.T) {
	for timer, first := range map[string]script{
		"headers":       {hold()},
		"first_content": {head(), hold()},
	} {
		for _, route := range routes {
			if timer == "first_content" && !strings.Contains(route.body, "stream") {
				continue
			}
			t.Run(timer+" "+route.path, func(t *testing.T) {
				u1, u2 := upstream("u1", first), upstream("u2", answers("from two"))
				run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {" + timer + ": 700ms}"}, func(r *rig) {
					a := r.do(ask{path: route.path, body: route.body})
					r.good(a, "from two")
					if a.took < 700*time.Millisecond || a.took > 800*time.Millisecond {
						t.Errorf("took %s", a.took)
					}
					r.counts(map[*fake]int{u1: 1, u2: 1})
				})
			})
		}
	}
}

func TestD09NoHiddenLimitCutsALongStream(t *testing.T) {
	s := script{head()}
	for range 96 {
		s = append(s, sse(chunk("x")), wait(10*time.Second))
	}
	s = append(s, sse(finishChunk, done))
	u1 := upstream("u1", s)
	run(t, setup{upstreams: []*fake{u1}, defaults: "timeouts: {total: 20m}"}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, done)
		if n := strings.Count(a.body, `"content":"x"`); n != 96 || a.took != 16*time.Minute {
			t.Errorf("%d events in %s", n, a.took)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestD09TheTotalEndsAStream(t *testing.T) {
	s := script{head()}
	for range 100 {
		s = append(s, sse(chunk("x")), wait(time.Second))
	}
	u1 := upstream("u1", s)
	run(t, setup{upstreams: []*fake{u1}, defaults: "timeouts: {total: 10s}"}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.brokenOff(a, "x")
		if a.took != 10*time.Second {
			t.Errorf("took %s", a.took)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestD10WriteTimeoutIsPerWrite(t *testing.T) {
	s := script{head()}
	for range 120 {
		s = append(s, sse(chunk("x")), wait(time.Second))
	}
	s = append(s, sse(finishChunk, done))
	u1 := upstream("u1", s, after(100*time.Second, answers("slow")))
	run(t, setup{upstreams: []*fake{u1}, http: "write_timeout: 5s, header_timeout: 5s"}, func(r *rig) {
		r.good(r.do(ask{stream: true}), done)
		r.good(r.do(ask{}), "slow")
		r.counts(map[*fake]int{u1: 2})
	})
}

func TestD10AClientThatDoesNotReadIsDropped(t *testing.T) {
	flood := script{head()}
	for range 2000 {
		flood = append(flood, sse(chunk(strings.Repeat("y", 4000))))
	}
	u1 := upstream("u1", flood)
	run(t, setup{upstreams: []*fake{u1}, http: "write_timeout: 5s"}, func(r *rig) {
		resp, err := r.client.Do(r.request(ask{stream: true}))
		if err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := r.app.gateway.InFlight(); n != 0 {
			t.Errorf("a client that does not read still holds %d requests", n)
		}
		if s := u1.request(0); s.closed.IsZero() || s.written > 2<<20 {
			t.Errorf("upstream call closed at %v after %d bytes", s.closed, s.written)
		}
		_ = resp.Body.Close()
		if s := r.state("u1"); s.Breaker.Failed != 0 {
			t.Errorf("%d failures counted", s.Breaker.Failed)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestD11HangsOfOneTargetSlowNoOther(t *testing.T) {
	u1, u2 := upstream("u1", script{hold()}), upstream("u2", after(50*time.Millisecond, answers("from two")))
	s := setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {headers: 20s}"}
	s.model = "content_policy_fallback: [n]\n  n:\n    targets: [{provider: u2, model: real}]"
	run(t, s, func(r *rig) {
		out := make(chan []answer)
		go func() { out <- r.each(500, func(int) ask { return ask{} }) }()
		synctest.Wait()
		for _, a := range r.every(20*time.Millisecond, 100, ask{body: `{"model":"n","messages":[]}`}) {
			r.good(a, "from two")
			if a.took > 60*time.Millisecond {
				t.Errorf("took %s", a.took)
			}
		}
		for _, a := range <-out {
			r.good(a, "from two")
		}
	})
}

func TestD12SlowFirstByteWithinTheConfiguredTimer(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(roleChunk), wait(70 * time.Second), sse(chunk("late"), finishChunk, done)})
	s := setup{upstreams: []*fake{u1}, target: map[string]string{"u1": "timeouts: {first_content: 90s}"}} // D14: a target's own
	run(t, s, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, "late")
		if a.first != 70*time.Second {
			t.Errorf("first byte after %s", a.first)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestD15ReasoningIsContent(t *testing.T) {
	s := script{head(), sse(roleChunk)}
	for range 40 {
		s = append(s, sse(`{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}`), wait(900*time.Millisecond))
	}
	s = append(s, sse(chunk("result"), finishChunk, done))
	u1, u2 := upstream("u1", s), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {first_content: 2s, idle: 1s}"}, func(r *rig) {
		r.good(r.do(ask{stream: true}), "result")
		r.counts(map[*fake]int{u1: 1, u2: 0})
	})
}
