package app

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// trip makes requests, ten a second, until the target at u1 is open.
func (r *rig) trip() {
	r.t.Helper()
	for range 60 {
		if r.state("u1").Phase == "open" {
			return
		}
		r.do(ask{})
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatalf("the breaker stays %s", r.state("u1").Phase)
}

func TestB01OneProbeOnly(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {headers: 1s}"}, func(r *rig) {
		r.trip()
		time.Sleep(6500 * time.Millisecond) // past the longest first cool-down
		u1.use(script{hold()})
		before, start := u1.count(), time.Now()
		slow := 0
		for _, a := range r.each(200, func(int) ask { return ask{} }) {
			r.good(a, "from two")
			if a.took > 10*time.Millisecond {
				slow++
			}
		}
		if n := u1.count() - before; n != 1 || slow != 1 {
			t.Errorf("%d probes, %d slow answers; want one of each", n, slow)
		}
		if took := time.Since(start); took > 1100*time.Millisecond {
			t.Errorf("the probe's own request took %s", took)
		}
	})
}

func TestB02LeavingClientsAreNoFailures(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(chunk("a")), hold()})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		for i := range 50 {
			ctx, cancel := context.WithTimeout(r.t.Context(), time.Duration(10+i)*time.Millisecond)
			r.do(ask{stream: true, ctx: ctx})
			cancel()
		}
		synctest.Wait()
		if s := r.state("u1"); s.Phase != "closed" || s.Breaker.Failed != 0 {
			t.Errorf("breaker %s, %d failures", s.Phase, s.Breaker.Failed)
		}
		u1.use(answers("from one"))
		r.good(r.do(ask{}), "from one")
		r.counts(map[*fake]int{u1: 51})
	})
}

func TestB03BadPromptsBlockNobody(t *testing.T) {
	u1 := upstream("u1", script{status(400, `{"error":{"message":"bad","type":"invalid_request_error","code":null}}`)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		for range 20 {
			r.failed(r.do(ask{}), 400, "client")
		}
		u1.use(answers("from one"))
		r.good(r.do(ask{}), "from one")
		r.counts(map[*fake]int{u1: 21})
	})
}

func TestB04OneFailureIsNoRatio(t *testing.T) {
	u1 := upstream("u1", script{status(500, "")}, answers("from one"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.failed(r.do(ask{}), 503, "outage")
		r.good(r.do(ask{}), "from one")
		r.counts(map[*fake]int{u1: 2})
	})
}

func TestB05OpenMeansNoCalls(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.trip()
		before := u1.count()
		for range 38 { // 3.8 s of a cool-down of at least 4 s
			for _, a := range r.each(5, func(int) ask { return ask{} }) {
				r.good(a, "from two")
				if a.took > 50*time.Millisecond { // B09
					t.Errorf("took %s", a.took)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := u1.count() - before; n != 0 {
			t.Errorf("%d calls to an open target", n)
		}
	})
}

func TestB06AllOpenSaysWhenToComeBack(t *testing.T) {
	u1 := upstream("u1", script{status(500, "")})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.trip()
		before := u1.count()
		r.each(2, func(int) ask { return ask{} }) // a last resort is tried once a second
		a := r.do(ask{})
		r.failed(a, 503, "outage")
		if n, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || n < 1 || n > 7 {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
		if n := u1.count() - before; n > 1 {
			t.Errorf("%d calls to an open target at once", n)
		}
	})
}

func TestB07LastResort(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
	for name, tc := range map[string]struct{ settings, header, text string }{
		"message": {`degraded: {message: "come back later"}`, "message", "come back later"},
		"model":   {"degraded: {model: n}\n  n:\n    targets: [{provider: u2, model: other}]", "model", "from two"},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup{upstreams: []*fake{u1, u2}, model: tc.settings}
			text := s.yaml() // u2 serves the fallback only
			text = strings.Replace(text, "      - {provider: u2, model: real, order: 2}\n", "", 1)
			s.whole = text
			run(t, s, func(r *rig) {
				for _, stream := range []bool{false, true} {
					a := r.do(ask{stream: stream})
					r.good(a, tc.text)
					if got := a.header.Get("Hourthree-Degraded"); got != tc.header {
						t.Errorf("Hourthree-Degraded %q, want %q", got, tc.header)
					}
					if stream && !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
						t.Errorf("stream ends with %q", a.body)
					}
				}
			})
		})
	}
}

func TestB08BackAfterAHang(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	s := setup{upstreams: []*fake{u1}, defaults: "timeouts: {headers: 2s}, breaker: {ramp: 5s}"}
	run(t, s, func(r *rig) {
		r.every(50*time.Millisecond, 100, ask{})
		u1.use(script{hold()})
		r.every(50*time.Millisecond, 600, ask{})
		u1.use(answers("from one"))
		r.every(100*time.Millisecond, 200, ask{}) // recovery, by probes and ramp
		for _, a := range r.every(50*time.Millisecond, 100, ask{}) {
			r.good(a, "from one")
		}
	})
}

func TestB10FastFailuresAttractNothing(t *testing.T) {
	u1, u2 := upstream("u1", after(5*time.Millisecond, script{status(500, "")})), upstream("u2", after(300*time.Millisecond, answers("from two")))
	run(t, setup{upstreams: []*fake{u1, u2}, together: true}, func(r *rig) {
		for _, a := range r.every(100*time.Millisecond, 100, ask{}) {
			r.good(a, "from two")
		}
		if n := u1.count(); n > 20 {
			t.Errorf("%d of 100 requests went to the failing target first", n)
		}
		if n := u1.count() + u2.count(); n > 120 {
			t.Errorf("%d calls for 100 requests", n)
		}
	})
}

func TestB13OneFailureAmongMany(t *testing.T) {
	u1, u2 := upstream("u1"), upstream("u2", answers("from two"))
	u1.pick = func(n int, _ *seen) script {
		if n == 25 {
			return script{status(500, "")}
		}
		return answers("from one")
	}
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		for _, a := range r.every(100*time.Millisecond, 51, ask{}) {
			r.good(a, "from ")
		}
		r.counts(map[*fake]int{u1: 51, u2: 1})
	})
}

func TestB14MisspeltModels(t *testing.T) {
	u1 := upstream("u1", script{status(404, `{"error":{"message":"no","type":"invalid_request_error","code":"model_not_found"}}`)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		for range 30 {
			a := r.do(ask{body: `{"model":"mm","messages":[]}`})
			r.failed(a, 404, "client")
			if _, code := errorOf(a.body); code != "model_not_found" {
				t.Errorf("code %q", code)
			}
		}
		r.counts(map[*fake]int{u1: 0})
		r.failed(r.do(ask{}), 502, "credential") // a deployment name that the upstream does not know
		if s := r.state("u1"); s.Phase != "closed" || s.Breaker.Failed != 0 {
			t.Errorf("breaker %s, %d failures", s.Phase, s.Breaker.Failed)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestB16DeadTargetsAreRemembered(t *testing.T) {
	u1, u2, u3 := upstream("u1", script{hold()}), upstream("u2", script{hold()}), upstream("u3", answers("from three"))
	run(t, setup{upstreams: []*fake{u1, u2, u3}, defaults: "timeouts: {headers: 1s}"}, func(r *rig) {
		r.every(100*time.Millisecond, 50, ask{})
		before := u1.count() + u2.count()
		for _, a := range r.every(20*time.Millisecond, 50, ask{}) {
			r.good(a, "from three")
			if a.took > 100*time.Millisecond {
				t.Errorf("took %s", a.took)
			}
		}
		if n := u1.count() + u2.count() - before; n != 0 {
			t.Errorf("%d calls to dead targets", n)
		}
	})
}

func TestB18TrafficReturnsByAndBy(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "breaker: {ramp: 20s}"}, func(r *rig) {
		r.trip()
		u1.use(answers("from one"))
		for r.state("u1").Phase == "open" || r.state("u1").Phase == "half-open" {
			r.do(ask{})
			time.Sleep(100 * time.Millisecond)
		}
		var shares []float64
		for range 5 {
			before := u1.count()
			for _, a := range r.every(20*time.Millisecond, 250, ask{}) {
				r.good(a, "from ")
			}
			shares = append(shares, float64(u1.count()-before)/250)
		}
		text := fmt.Sprintf("%.2f", shares)
		if shares[0] > 0.35 || shares[1] > 0.6 || shares[4] < 0.95 {
			t.Errorf("shares of 5 s each during a ramp of 20 s: %s", text)
		}
		for i := 1; i < len(shares); i++ {
			if shares[i] < shares[i-1] {
				t.Errorf("shares fall: %s", text)
			}
		}
	})
}

func TestC01RetriesAreMadeInOnePlace(t *testing.T) {
	for name, tc := range map[string]struct {
		script script
		calls  int
		status int
		class  string
	}{
		"500":            {script{status(500, "")}, 1, 503, "outage"},
		"502":            {script{status(502, "")}, 1, 503, "outage"},
		"429":            {script{status(429, "")}, 1, 429, "capacity"},
		"400":            {script{status(400, `{"error":{"message":"m"}}`)}, 1, 400, "client"},
		"closed at once": {script{cut()}, 1, 503, "outage"},
		"empty":          {script{status(200, "")}, 1, 503, "outage"},
		"redirect":       {script{status(307, "", "Location", "http://u1.test/other")}, 1, 503, "outage"},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", tc.script)
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{headers: []string{"Idempotency-Key", "k"}})
				r.failed(a, tc.status, tc.class)
				if got := a.header.Get("Hourthree-Attempts"); got != strconv.Itoa(tc.calls) {
					t.Errorf("Hourthree-Attempts %s, want %d", got, tc.calls)
				}
				r.counts(map[*fake]int{u1: tc.calls})
			})
		})
	}
}

func TestC01DeadConnectionIsRepeatedOnce(t *testing.T) {
	u1 := upstream("u1", answers("one"), script{cut()}, answers("three"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.good(r.do(ask{}), "one")
		r.good(r.do(ask{}), "three") // the kept connection was dead
		r.counts(map[*fake]int{u1: 3})
		u1.use(script{cut()})
		r.do(ask{})
		if n := u1.count(); n > 5 {
			t.Errorf("%d calls, want at most 5", n)
		}
	})
}

func TestC01ConnectIsRepeatedOnce(t *testing.T) {
	u1 := upstream("u1", answers("one"))
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.net.Listener("u1.test").Close()
		r.failed(r.do(ask{}), 503, "outage")
		if n := r.net.Dials("u1.test"); n != 2 {
			t.Errorf("dialled %d times, want 2", n)
		}
		r.counts(map[*fake]int{u1: 0})
	})
}

func TestC05OneHangIsPaidOnce(t *testing.T) {
	t.Run("second target", func(t *testing.T) {
		u1, u2 := upstream("u1", script{hold()}), upstream("u2", answers("from two"))
		run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {headers: 1s, total: 3s}"}, func(r *rig) {
			a := r.do(ask{})
			r.good(a, "from two")
			if a.took < time.Second || a.took > 1100*time.Millisecond {
				t.Errorf("took %s", a.took)
			}
			r.counts(map[*fake]int{u1: 1, u2: 1})
		})
	})
	t.Run("alone", func(t *testing.T) {
		u1 := upstream("u1", script{hold()})
		run(t, setup{upstreams: []*fake{u1}, defaults: "timeouts: {headers: 1s, total: 3s}"}, func(r *rig) {
			a := r.do(ask{})
			r.failed(a, 503, "outage")
			if a.took > 3*time.Second {
				t.Errorf("took %s", a.took)
			}
			r.counts(map[*fake]int{u1: 1})
		})
	})
	t.Run("both hang, total passes", func(t *testing.T) { // C14: one deadline for all attempts
		u1, u2 := upstream("u1", script{hold()}), upstream("u2", script{hold()})
		run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {headers: 2s, total: 3s}"}, func(r *rig) {
			a := r.do(ask{})
			r.failed(a, 504, "deadline")
			if a.took != 3*time.Second {
				t.Errorf("took %s, want 3s", a.took)
			}
			r.counts(map[*fake]int{u1: 1, u2: 1})
		})
	})
	t.Run("caller's deadline", func(t *testing.T) {
		u1, u2 := upstream("u1", script{hold()}), upstream("u2", script{hold()})
		run(t, setup{upstreams: []*fake{u1, u2}, defaults: "timeouts: {headers: 2s}"}, func(r *rig) {
			a := r.do(ask{headers: []string{"Hourthree-Deadline-Ms", "500"}})
			r.failed(a, 504, "deadline")
			if a.took != 500*time.Millisecond {
				t.Errorf("took %s", a.took)
			}
			r.counts(map[*fake]int{u1: 1, u2: 0})
		})
	})
}

func TestC06RepeatsOfTheCallerAreNotMultiplied(t *testing.T) {
	for _, header := range [][]string{{"X-Stainless-Retry-Count", "1"}, {"X-Envoy-Attempt-Count", "2"}} {
		t.Run(header[0], func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(500, "")}), upstream("u2", script{status(500, "")})
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				r.failed(r.do(ask{headers: header}), 503, "outage")
				r.counts(map[*fake]int{u1: 1, u2: 0})
			})
		})
	}
	u1, u2 := upstream("u1", script{status(400, `{"error":{"message":"long","type":"invalid_request_error","code":"context_length_exceeded"}}`)}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.failed(r.do(ask{}), 400, "client")
		r.counts(map[*fake]int{u1: 1, u2: 0})
	})
}

func TestC08DeadQuotaIsAskedOnce(t *testing.T) {
	body := `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`
	u1, u2 := upstream("u1", script{status(429, body)}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		r.good(r.do(ask{}), "from two")
		r.counts(map[*fake]int{u1: 1, u2: 1})
		s := r.state("u1")
		if s.CoolUntil == nil || time.Until(*s.CoolUntil) < 2*time.Minute || s.Phase != "closed" {
			t.Errorf("cool-down until %v, breaker %s", s.CoolUntil, s.Phase)
		}
		for _, a := range r.every(time.Second, 120, ask{}) {
			r.good(a, "from two")
		}
		r.counts(map[*fake]int{u1: 1, u2: 121})
	})
}

func TestC09QuotaWordsByProvider(t *testing.T) {
	quota := `{"error":{"message":"m","type":"t","code":"insufficient_quota"}}`
	for name, tc := range map[string]struct {
		kind        string
		first       step
		least, most time.Duration
	}{
		"openai":            {"openai", status(429, quota), 2 * time.Minute, 24 * time.Hour},
		"azure with a wait": {"azure", status(429, quota, "Retry-After", "10"), 9 * time.Second, 12 * time.Second},
		"openai throttle":   {"openai", status(429, `{"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}}`, "Retry-After", "7"), 6 * time.Second, 8 * time.Second},
		"openai credit":     {"openai", status(429, `{"error":{"message":"m","type":"x","code":"credit_balance_exhausted"}}`, "Retry-After", "7"), 2 * time.Minute, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", script{tc.first}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}, kind: tc.kind}, func(r *rig) {
				r.good(r.do(ask{}), "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
				s := r.state("u1")
				if s.CoolUntil == nil {
					r.t.Fatal("no cool-down")
				}
				if d := time.Until(*s.CoolUntil); d < tc.least || d > tc.most {
					t.Errorf("cool-down of %s, want %s to %s", d, tc.least, tc.most)
				}
			})
		})
	}
}

func TestC10WaitsAreSpread(t *testing.T) {
	u1 := upstream("u1", script{status(429, "", "Retry-After", "60")})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		waits := map[string]int{}
		for _, a := range r.each(200, func(int) ask { return ask{} }) {
			r.failed(a, http.StatusTooManyRequests, "capacity")
			waits[a.header.Get("Retry-After")]++
		}
		if len(waits) < 5 {
			t.Errorf("waits of 200 callers: %v", waits)
		}
	})
}
