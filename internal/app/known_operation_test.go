package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
)

// Breaks when anything but a client's request makes an upstream call: a
// health probe, of a healthy target or of an open one.
func TestN01NothingIsAskedForHealth(t *testing.T) {
	u1, u2, u3 := upstream("u1", answers("x")), upstream("u2", script{status(500, "")}), upstream("u3", script{status(429, "")})
	run(t, setup{upstreams: []*fake{u2, u3, u1}, defaults: "breaker: {min_requests: 5}"}, func(r *rig) {
		time.Sleep(time.Hour)
		r.counts(map[*fake]int{u1: 0, u2: 0, u3: 0})
		r.every(50*time.Millisecond, 100, ask{})
		if s := r.state("u2"); s.Phase == "closed" {
			t.Errorf("u2 is %s", s.Phase)
		}
		n1, n2, n3 := u1.count(), u2.count(), u3.count()
		time.Sleep(time.Hour)
		if a := r.do(ask{method: http.MethodGet, path: "/v1/models"}); a.status != http.StatusOK {
			t.Errorf("models: %d", a.status)
		}
		r.operator("/readyz")
		r.operator("/metrics")
		r.counts(map[*fake]int{u1: n1, u2: n2, u3: n3})
	})
}

// Breaks when a target's health is taken from anything but its answers: here
// everything but completions is fine.
func TestN05AHealthPageProvesNothing(t *testing.T) {
	u1, u2 := upstream("u1"), upstream("u2", answers("from two"))
	u1.pick = func(_ int, s *seen) script {
		if strings.Contains(s.uri, "completions") {
			return script{status(502, "")}
		}
		return script{status(200, `{"status":"ok"}`)}
	}
	run(t, setup{upstreams: []*fake{u1, u2}, defaults: "breaker: {min_requests: 5}", more: "passthrough: {/v1/health: u1}\n"}, func(r *rig) {
		for range 30 {
			r.good(r.do(ask{}), "from two")
			time.Sleep(100 * time.Millisecond)
		}
		r.good(r.do(ask{method: http.MethodGet, path: "/v1/health"}), "ok")
		if logs := r.logs.String(); !strings.Contains(logs, `"target":"u1/real","from":"closed","to":"open"`) {
			t.Errorf("u1 stays in use after 502 for all: %s", logs)
		}
		if n := u1.count(); n > 15 {
			t.Errorf("%d calls of a failing target", n)
		}
	})
}

// Breaks when the end of the drain is told in one dialect only, or when what
// is cut off ends cleanly.
func TestN06EveryRouteIsToldThatItIsCutOff(t *testing.T) {
	for _, tc := range []struct{ path, body, first, told, end string }{
		{"/v1/chat/completions", chatAsk(true), chunk("x"), `data: {"error":`, done},
		{"/v1/completions", `{"model":"m","stream":true,"prompt":"x"}`, `{"choices":[{"index":0,"text":"x","finish_reason":null}]}`, `data: {"error":`, done},
		{"/v1/responses", `{"model":"m","stream":true,"input":"x"}`, `{"type":"response.output_text.delta","sequence_number":1,"delta":"x"}`, "event: error\ndata: ", "response.completed"},
		{"/openai/deployments/m/chat/completions", chatAsk(true), chunk("x"), `data: {"error":`, done},
	} {
		t.Run(tc.path, func(t *testing.T) {
			u1 := upstream("u1", script{head(), sse(tc.first), hold()})
			run(t, setup{upstreams: []*fake{u1}, http: "drain: 5s"}, func(r *rig) {
				out := make(chan answer)
				go func() { out <- r.do(ask{path: tc.path, body: tc.body}) }()
				time.Sleep(time.Second)
				if err := r.app.Stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				a := <-out
				if a.err == nil || !strings.Contains(a.body, tc.told) || !strings.Contains(a.body, "upstream_draining") || strings.Contains(a.body, tc.end) {
					t.Errorf("error %v, body %q", a.err, a.body)
				}
			})
		})
	}
	t.Run("whole answer", func(t *testing.T) {
		u1 := upstream("u1", script{hold()})
		run(t, setup{upstreams: []*fake{u1}, http: "drain: 5s"}, func(r *rig) {
			out := make(chan answer)
			go func() { out <- r.do(ask{}) }()
			time.Sleep(time.Second)
			if err := r.app.Stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			a := <-out
			if a.err != nil || a.status != http.StatusServiceUnavailable || a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("status %d, error %v, body %q", a.status, a.err, a.body)
			}
		})
	})
}

// Breaks when a reload cuts the calls of a target that it takes out, or makes
// the provider of a request that began before it useless.
func TestN09ReplacedTargetsFinishTheirCalls(t *testing.T) {
	slow := script{func(t *talk) bool {
		for i := range 10 {
			if i == 0 && !head()(t) || !sse(chunk("x"))(t) || !wait(20*time.Millisecond)(t) {
				return false
			}
		}
		return sse(finishChunk, done)(t)
	}}
	u1, u2 := upstream("u1", slow), upstream("u2", slow)
	both := setup{upstreams: []*fake{u1, u2}, together: true}
	run(t, both, func(r *rig) {
		var stop atomic.Bool
		var wg sync.WaitGroup
		asked := atomic.Int64{}
		for i := range 10 {
			wg.Go(func() {
				for !stop.Load() {
					asked.Add(1)
					if i%2 == 0 {
						r.good(r.do(ask{stream: true}), done)
						continue
					}
					// The configuration is an old one by the time the body is there.
					req := r.request(ask{})
					req.ContentLength = -1
					req.Body = io.NopCloser(io.MultiReader(strings.NewReader(chatAsk(true)), late{30 * time.Millisecond}))
					resp, err := r.client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					b, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					r.good(answer{status: resp.StatusCode, body: string(b), err: err}, done)
				}
			})
		}
		for i := range 300 {
			s := both
			s.upstreams = []*fake{both.upstreams[i%2]}
			s.provider = map[string]string{s.upstreams[0].name: fmt.Sprintf(`headers: {X-Turn: "%d"}`, i)}
			r.configure(s)
			if err := r.app.Reload(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		stop.Store(true)
		wg.Wait()
		if n := u1.count() + u2.count(); int64(n) != asked.Load() || u1.count() == 0 || u2.count() == 0 {
			t.Errorf("%d calls for %d requests", n, asked.Load())
		}
		if strings.Contains(r.logs.String(), `"class":"outage"`) {
			t.Error("a reload made an outage")
		}
	})
}

// late is the end of a body, after a pause.
type late struct{ pause time.Duration }

func (l late) Read([]byte) (int, error) {
	time.Sleep(l.pause)
	return 0, io.EOF
}

// Breaks when the values of a reloaded key, or of a key that is taken away,
// stay in force for a request after the reload, on any route.
func TestN10AKeyTakenAwayIsRefusedEverywhere(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	s := setup{upstreams: []*fake{u1}, more: "passthrough: {/v1/files: u1}\n"}
	run(t, s, func(r *rig) {
		all := append(routes[:len(routes):len(routes)], struct{ path, body string }{"/v1/files", `{"x":1}`}, struct{ path, body string }{"/v1/moderations", `{"model":"m"}`})
		for _, route := range all {
			r.good(r.do(ask{path: route.path, body: route.body}), "")
		}
		s.whole = strings.ReplaceAll(strings.ReplaceAll(s.yaml(), callerKey, "second-key"), secretOfU1, "second-secret")
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		n := u1.count()
		for i, route := range all {
			r.failed(r.do(ask{path: route.path, body: route.body}), 401, "client")
			r.good(r.do(ask{path: route.path, body: route.body, key: "second-key"}), "")
			if got := u1.request(n + i).header.Get("Authorization"); got != "Bearer second-secret" {
				t.Errorf("%s asked with %q", route.path, got)
			}
		}
		r.counts(map[*fake]int{u1: n + len(all)})
	})
}

// Breaks when a broken file is taken, or its reason is not shown.
func TestN11ARefusedFileIsShown(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	s := setup{upstreams: []*fake{u1}}
	run(t, s, func(r *rig) {
		if m := r.operator("/metrics"); !strings.Contains(m, "hourthree_config_last_reload_success 1") {
			t.Errorf("before: %s", m)
		}
		for misspelt, near := range map[string]string{"retrys: {}": "retry", "timeouts: {idel: 3s}": "idle", "breaker: {min_request: 5}": "min_requests"} {
			bad := s
			bad.defaults = misspelt
			r.configure(bad)
			if err := r.app.Reload(); err == nil || !strings.Contains(err.Error(), near) {
				t.Errorf("%s: %v", misspelt, err)
			}
			if m := r.operator("/metrics"); !strings.Contains(m, "hourthree_config_last_reload_success 0") {
				t.Errorf("not counted: %s", m)
			}
			if state := r.operator("/api/v1/state"); !strings.Contains(state, `"config_refused"`) || !strings.Contains(state, near) {
				t.Errorf("not shown: %s", state)
			}
			r.good(r.do(ask{}), "from one")
		}
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			t.Error(err)
		}
		if state := r.operator("/api/v1/state"); strings.Contains(state, `"config_refused"`) {
			t.Errorf("still shown: %s", state)
		}
	})
}

// Breaks when a configuration that N02, N03 or N16 warn of is served: the
// router must not start with it.
func TestNoStartWithoutASecretOrWithAnUnreadLimit(t *testing.T) {
	good := setup{upstreams: []*fake{upstream("u1", answers("x"))}}.yaml()
	for name, text := range map[string]string{
		"M02 no secret":        strings.Replace(good, ", api_key: "+secretOfU1, "", 1),
		"M02 empty secret":     strings.Replace(good, secretOfU1, `""`, 1),
		"M03 unset reference":  strings.Replace(good, secretOfU1, "${HOURTHREE_TEST_UNSET}", 1),
		"M03 unset key":        strings.Replace(good, "["+callerKey+"]", `["${HOURTHREE_TEST_UNSET}"]`, 1),
		"M03 missing file":     strings.Replace(good, secretOfU1, "${file:/nowhere/key}", 1),
		"N16 words":            strings.Replace(good, "["+callerKey+"]", "["+callerKey+"], limits: {rpm: many}", 1),
		"N16 unit":             strings.Replace(good, "["+callerKey+"]", "["+callerKey+"], limits: {tpm: 10/s}", 1),
		"N16 negative":         strings.Replace(good, "["+callerKey+"]", "["+callerKey+"], limits: {concurrency: -1}", 1),
		"N16 unknown":          strings.Replace(good, "["+callerKey+"]", "["+callerKey+"], limits: {rps: 1}", 1),
		"N12 text for seconds": good + "defaults: {timeouts: {idle: \"30\"}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if text == good {
				t.Fatal("nothing was changed")
			}
			file := t.TempDir() + "/hourthree.yaml"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := New(Options{ConfigPath: file, Env: os.LookupEnv, Stderr: new(lockedBuffer), Network: over(memnet.New())})
			if err == nil {
				_ = a.Stop()
				t.Error("started")
			} else if !regexp.MustCompile(`hourthree\.yaml:\d+:\d+: `).MatchString(err.Error()) {
				t.Errorf("no place in %v", err)
			}
		})
	}
}

// Breaks when a client's leaving is not recorded as 499 with its time.
func TestN17LeavingIsRecorded(t *testing.T) {
	for name, s := range map[string]script{"before headers": {hold()}, "held back": {head(), sse(roleChunk), hold()}} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", s)
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				r.leaving(1500*time.Millisecond, ask{stream: true})
				synctest.Wait()
				found := false
				for line := range strings.Lines(r.logs.String()) {
					var e struct {
						Msg, Class string
						Status     int
						MS         float64
					}
					if json.Unmarshal([]byte(line), &e) == nil && e.Msg == "request" {
						found = true
						if e.Class != "canceled" || e.Status != 499 || e.MS < 1500 || e.MS > 1600 {
							t.Errorf("recorded as %s", line)
						}
					}
				}
				if !found {
					t.Errorf("not recorded: %s", r.logs)
				}
				if m := r.operator("/metrics"); !strings.Contains(m, `hourthree_requests_total{class="canceled",model="m",workload="team"} 1`) {
					t.Errorf("not counted: %s", m)
				}
			})
		})
	}
}

// Breaks when an attempt or a request ends without being counted, or is
// counted twice, whatever its end; N15 is the same for what is in flight.
func TestN18EveryCallIsCountedOnce(t *testing.T) {
	scripts := []script{
		answers("x"), {status(500, "")}, {status(429, "")}, {status(400, `{"error":{"message":"x"}}`)}, {cut()}, {head(), sse(chunk("x")), cut()},
		{hold()}, {head(), sse(roleChunk), hold()}, {status(200, "")}, {wireText("garbage\r\n")}, after(30*time.Millisecond, answers("x")),
	}
	var turn atomic.Int64
	pick := func(int, *seen) script { return scripts[int(turn.Add(1))%len(scripts)] }
	u1, u2 := upstream("u1"), upstream("u2")
	u1.pick, u2.pick = pick, pick
	run(t, setup{upstreams: []*fake{u1, u2}, together: true}, func(r *rig) {
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() { r.leaving(time.Duration(20+i%80)*time.Millisecond, ask{stream: i%2 == 0}) })
			time.Sleep(10 * time.Millisecond)
			if i%50 == 49 {
				synctest.Wait()
				in := r.state("u1").InFlight + r.state("u2").InFlight
				u1.mu.Lock()
				u2.mu.Lock()
				if up := u1.inflight + u2.inflight; in != up {
					t.Errorf("the state has %d in flight, the upstreams %d", in, up)
				}
				u2.mu.Unlock()
				u1.mu.Unlock()
			}
		}
		wg.Wait()
		synctest.Wait()
		m := r.operator("/metrics")
		for u, name := range map[*fake]string{u1: "u1/real", u2: "u2/real"} {
			if got := total(t, m, "hourthree_attempts_total", `target="`+name+`"`); got != u.count() {
				t.Errorf("%d attempts counted at %s, which had %d", got, name, u.count())
			}
		}
		if got := total(t, m, "hourthree_requests_total", `workload="team"`); got != 300 {
			t.Errorf("%d requests counted of 300", got)
		}
		for msg, want := range map[string]int{"attempt": u1.count() + u2.count(), "request": 300} {
			if got := strings.Count(r.logs.String(), `"msg":"`+msg+`"`); got != want {
				t.Errorf("%d lines %q, want %d", got, msg, want)
			}
		}
	})
}

// total adds up the series of a metric that have a label.
func total(t *testing.T, metrics, name, label string) (sum int) {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, label) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		sum += int(n)
	}
	return sum
}
