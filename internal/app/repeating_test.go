package app

import (
	"strings"
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
// log and the metrics as one that was answered.
func TestAPanicIsNoSuccess(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.app.gateway.Runner.Random = func() float64 { panic("fault") }
		if a := r.do(ask{}); a.err == nil {
			t.Errorf("answered with %d", a.status)
		}
		synctest.Wait()
		if l := r.logs.String(); !strings.Contains(l, `"class":"outage"`) || !strings.Contains(l, `"reason":"panic"`) {
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
