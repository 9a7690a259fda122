package app

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnotherDeploymentIsAnotherRequest: in Azure's style the path names the
// model. A caller that turns to another one, with the same body, repeats nothing.
func TestAnotherDeploymentIsAnotherRequest(t *testing.T) {
	u1 := upstream("u1", script{status(500, "")})
	run(t, setup{upstreams: []*fake{u1}, model: "limits: {}\n  n: {targets: [{provider: u1, model: other}]}"}, func(r *rig) {
		body := `{"messages":[{"role":"user","content":"hello"}]}`
		repeats := func(path string) int64 {
			r.do(ask{path: path, body: body})
			synctest.Wait()
			return r.app.workload("team").State(time.Now()).Repeats
		}
		for i, path := range []string{"m", "n", "m"} {
			if n := repeats("/openai/deployments/" + path + "/chat/completions"); n != int64(i/2) {
				t.Errorf("%s: %d repeats", path, n)
			}
		}
	})
}

// TestAPanicIsNoSuccess: a request that a fault in the router ended is not in the
// log and the metrics as one that was answered, and the log says where the fault is.
func TestAPanicIsNoSuccess(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.app.gateway.Runner.Random = func() float64 { panic("fault") }
		if a := r.do(ask{}); a.err == nil {
			t.Errorf("answered with %d", a.status)
		}
		synctest.Wait()
		if l := r.logs.String(); !strings.Contains(l, `"class":"outage"`) || !strings.Contains(l, `"reason":"panic"`) || !strings.Contains(l, "repeating_test.go") {
			t.Error(l)
		}
	})
}

// TestAPathThatLeavesIsRefusedByTheRouter: no provider has seen it, and the
// caller learns what to change.
func TestAPathThatLeavesIsRefusedByTheRouter(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{path: "/v1/x/..%2Fy"})
		r.failed(a, 400, "client")
		if u1.count() != 0 || !strings.Contains(a.body, "segment") || strings.Contains(a.body, "provider") {
			t.Error(a.body)
		}
	})
}

// TestWaitingAsToldIsNoRepeat: callers that come again when a limit of their own
// said so, with the same body and key, get in as fast as the limit allows; those
// that come before are known as repeats.
func TestWaitingAsToldIsNoRepeat(t *testing.T) {
	for _, limits := range []string{"limits: {rpm: 600}", "model_limits: {m: {rpm: 600}}"} {
		u1 := upstream("u1", answers("x"))
		run(t, setup{upstreams: []*fake{u1}, workload: limits}, func(r *rig) {
			var wg sync.WaitGroup
			var slowest atomic.Int64
			for i := range 300 {
				wg.Go(func() {
					start := time.Now()
					q := ask{body: chatAsk(false), headers: []string{"Idempotency-Key", strconv.Itoa(i)}}
					for a := r.do(q); a.status != 200; a = r.do(q) {
						seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
						if err != nil || strings.Contains(a.body, "repeats") {
							t.Errorf("%s: %v %s", limits, err, a.body)
							return
						}
						time.Sleep(time.Duration(seconds) * time.Second)
					}
					took := int64(time.Since(start))
					for old := slowest.Load(); old < took && !slowest.CompareAndSwap(old, took); old = slowest.Load() {
					}
				})
			}
			wg.Wait()
			if took := time.Duration(slowest.Load()); took > time.Minute {
				t.Errorf("%s: 300 at 10 a second took %v", limits, took)
			}
			early := 0
			for range 200 {
				if a := r.do(ask{body: "{\"model\":\"m\"}", headers: []string{"Idempotency-Key", "early"}}); strings.Contains(a.body, "repeats") {
					early++
				}
			}
			if early == 0 {
				t.Errorf("%s: 200 at once are no repeats", limits)
			}
		})
	}
}
