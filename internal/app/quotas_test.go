package app

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
)

// use is what the operator's listener tells of one owner of limits.
func (r *rig) use(level, name string) admin.Use {
	r.t.Helper()
	var l admin.Limits
	if err := json.Unmarshal([]byte(r.operator("/api/v1/limits")), &l); err != nil {
		r.t.Fatal(err)
	}
	for _, b := range l.Bounds {
		if b.Level == level && (b.Name == name || name == "") && b.Use != nil {
			return *b.Use
		}
	}
	r.t.Fatalf("no use of %s %s in %+v", level, name, l)
	return admin.Use{}
}

// costs answers with a reported use.
func costs(input, output int) script {
	return script{status(200, strings.Replace(chatBody("x"), `"prompt_tokens":3,"completion_tokens":2`, fmt.Sprintf(`"prompt_tokens":%d,"completion_tokens":%d`, input, output), 1))}
}

const priced = "price: {input: 10, output: 100}"

func TestK03NoMoreThanTheLimitOfABurst(t *testing.T) {
	for _, tc := range []struct{ workload, model string }{
		{"limits: {rpm: 100}", ""}, {"key_limits: {rpm: 100}", ""}, {"model_limits: {m: {rpm: 100}}", ""}, {"", "limits: {rpm: 100}"},
	} {
		t.Run(tc.workload+tc.model, func(t *testing.T) {
			u1 := upstream("u1", answers("x"))
			run(t, setup{upstreams: []*fake{u1}, workload: tc.workload, model: tc.model}, func(r *rig) {
				in := 0
				for _, a := range r.every(time.Second/1022, 1022, ask{}) {
					if a.status == 200 {
						in++
						continue
					}
					r.failed(a, 429, "capacity")
				}
				if in < 10 || in > 12 || u1.count() != in {
					t.Errorf("%d came in within a second, %d calls; want the burst of 10 and what a second brings", in, u1.count())
				}
			})
		})
	}
}

func TestK04NoDoubleRateAtTheEndOfAMinute(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, workload: "limits: {rpm: 100}"}, func(r *rig) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(59900 * time.Millisecond)))
		r.each(100, func(int) ask { return ask{} })
		time.Sleep(200 * time.Millisecond)
		r.each(100, func(int) ask { return ask{} })
		if n := u1.count(); n < 10 || n > 11 {
			t.Errorf("%d came in around the minute's end", n)
		}
	})
}

// Breaks when anything but the reported use is settled: whole answers, streams,
// and nothing for failures and what never went up.
func TestK05TheRealUseIsCounted(t *testing.T) {
	const burst = 100_000
	usage := `{"choices":[],"usage":{"prompt_tokens":600,"completion_tokens":100}}`
	for name, tc := range map[string]struct {
		script
		stream bool
		status int
		used   int64
	}{
		"whole":   {costs(600, 100), false, 200, 700},
		"stream":  {script{head(), sse(roleChunk, chunk("x"), finishChunk, usage, done)}, true, 200, 700},
		"refused": {script{status(400, `{"error":{"message":"no"}}`)}, false, 400, 0},
		"broken":  {script{status(500, "")}, false, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", tc.script)
			run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 1000000}, key_limits: {tpm: 1000000}, model_limits: {m: {tpm: 1000000}}", model: "limits: {tpm: 1000000}"}, func(r *rig) {
				if a := r.do(ask{stream: tc.stream}); a.status != tc.status {
					t.Errorf("status %d: %s", a.status, a.body)
				}
				synctest.Wait()
				for _, level := range []string{"workload", "key", "workload_model", "model"} {
					if left := *r.use(level, "").TokensLeft; burst-left < tc.used || burst-left > tc.used+1 {
						t.Errorf("%s: %d tokens counted, want %d", level, burst-left, tc.used)
					}
				}
			})
		})
	}
}

// Breaks when the check of a budget and its reservation are two steps.
func TestK06ABudgetForOneOfFifty(t *testing.T) {
	for _, tc := range []struct{ workload, model string }{
		{"limits: {usd_per_day: 0.06}", ""}, {"key_limits: {usd_per_day: 0.06}", ""}, {"model_limits: {m: {usd_per_day: 0.06}}", ""}, {"", "limits: {usd_per_day: 0.06}"},
	} {
		t.Run(tc.workload+tc.model, func(t *testing.T) {
			u1 := upstream("u1", after(time.Second, costs(100, 500)))
			run(t, setup{upstreams: []*fake{u1}, workload: tc.workload, model: tc.model, target: map[string]string{"u1": priced}}, func(r *rig) {
				in := 0
				for _, a := range r.each(50, func(int) ask { return ask{} }) {
					if a.status == 200 {
						in++
						continue
					}
					r.failed(a, 429, "capacity")
				}
				if in != 1 || u1.count() != 1 {
					t.Errorf("%d came in, %d calls", in, u1.count())
				}
			})
		})
	}
}

// A budget is spent by what the target that answered charges, refuses until
// midnight, and begins anew there.
func TestABudgetIsSpentByTheTargetThatAnswers(t *testing.T) {
	u1, u2 := upstream("u1", script{status(500, "")}, costs(1000, 100)), upstream("u2", costs(1000, 100))
	s := setup{upstreams: []*fake{u1, u2}, workload: "limits: {usd_per_day: 0.1}", target: map[string]string{"u1": priced, "u2": "price: {input: 1, output: 2}"}}
	run(t, s, func(r *rig) {
		spent := func(want float64) {
			t.Helper()
			synctest.Wait()
			if u := r.use("workload", "team"); math.Abs(*u.USDSpent-want) > 1e-9 || math.Abs(*u.USDLeft-max(0, 0.1-want)) > 1e-9 {
				t.Errorf("%v spent, %v left, want %v spent", *u.USDSpent, *u.USDLeft, want)
			}
		}
		r.good(r.do(ask{}), "x")
		spent(0.0012)
		u1.use(costs(9000, 100))
		r.good(r.do(ask{}), "x")
		spent(0.1012)
		if logs := r.logs.String(); !strings.Contains(logs, `"cost_usd":0.0012`) {
			t.Errorf("no cost in %s", logs)
		}
		calls := u1.count() + u2.count()
		a := r.do(ask{})
		r.failed(a, 429, "capacity")
		midnight := time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
		if n, _ := strconv.Atoi(a.header.Get("Retry-After")); n < int(midnight.Seconds()) || n > int(midnight.Seconds())+1 {
			t.Errorf("Retry-After %q, %s to midnight", a.header.Get("Retry-After"), midnight)
		}
		if a := r.do(ask{headers: []string{"User-Agent", "ai-sdk/openai/2.0"}}); a.header.Get("Retry-After") > "59" || len(a.header.Get("Retry-After")) != 2 {
			t.Errorf("Retry-After %q for a client that ignores more than 59", a.header.Get("Retry-After"))
		}
		if n := u1.count() + u2.count(); n != calls {
			t.Errorf("%d calls for refused requests", n-calls)
		}
		time.Sleep(midnight)
		r.good(r.do(ask{}), "x")
	})
}

// Every refusal names whose limit it is, which one, and when to come back.
func TestK12ARefusalNamesTheLimit(t *testing.T) {
	limits := map[string]string{"concurrency": "{concurrency: 1}", "rpm": "{rpm: 1}", "tpm": "{tpm: 100}", "usd_per_day": "{usd_per_day: 0.000001}"}
	for _, owner := range []struct{ name, setting, inWorkload, inModel string }{
		{"workload", "workloads.team.limits", "limits: %s", ""},
		{"key", "workloads.team.key_limits", "key_limits: %s", ""},
		{"workload_model", "workloads.team.model_limits.m", "model_limits: {m: %s}", ""},
		{"model", "models.m.limits", "", "limits: %s"},
	} {
		for reason, limit := range limits {
			t.Run(owner.name+" "+reason, func(t *testing.T) {
				u1 := upstream("u1", after(time.Second, costs(60, 60)))
				s := setup{upstreams: []*fake{u1}, target: map[string]string{"u1": priced}}
				if owner.inModel != "" {
					s.model = fmt.Sprintf(owner.inModel, limit)
				} else {
					s.workload = fmt.Sprintf(owner.inWorkload, limit)
				}
				run(t, s, func(r *rig) {
					all := r.each(3, func(int) ask { return ask{} })
					slices.SortFunc(all, func(a, b answer) int { return a.status - b.status })
					r.good(all[0], "x")
					for _, a := range all[1:] {
						r.failed(a, http.StatusTooManyRequests, "capacity")
						message, code := errorOf(a.body)
						if code != owner.name+"_"+reason || !strings.Contains(message, owner.setting+"."+reason) {
							t.Errorf("code %q, message %q", code, message)
						}
						if n, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || n < 1 { // G08
							t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
						}
					}
					r.counts(map[*fake]int{u1: 1})
				})
			})
		}
	}
}

// A thousand requests whose callers leave in the middle count with what they
// really used, not with what was reserved for them.
func TestF08AThousandLeaveInTheMiddle(t *testing.T) {
	const events = 20
	u1 := upstream("u1", script{head(), sse(roleChunk), sse(slices.Repeat([]string{chunk("word")}, events)...), hold()})
	s := setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 6000000, usd_per_day: 1000}", target: map[string]string{"u1": priced}}
	run(t, s, func(r *rig) {
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { r.leaving(200*time.Millisecond, ask{stream: true}) })
		}
		wg.Wait()
		synctest.Wait()
		each := int64(math.Ceil(float64(len(chatAsk(true)))/3.6)) + events
		u := r.use("workload", "team")
		const back = 6_000_000 / 60 / 4 // in the quarter of a second that it took
		if used := 600_000 - *u.TokensLeft; used < 1000*(each-2)-back || used > 1000*each {
			t.Errorf("%d tokens are counted, %d were used", used, 1000*each)
		}
		want := 1000 * (float64(each-events)*10 + events*100) / 1e6
		if *u.USDSpent < want*0.9 || *u.USDSpent > want*1.05 || u.InFlight != 0 {
			t.Errorf("%v dollars spent, %d in flight; want %v and none", *u.USDSpent, u.InFlight, want)
		}
		if logs := r.logs.String(); strings.Count(logs, `"output_tokens":20,"tokens_partial":true`) != 1000 { // F05
			t.Errorf("%d lines tell a partial use", strings.Count(logs, `"tokens_partial":true`))
		}
	})
}

// The headers tell the tightest limit, on answers and refusals, in OpenAI's
// forms, and nothing where there is no limit.
func TestRateHeaders(t *testing.T) {
	names := []string{"Limit-Requests", "Remaining-Requests", "Reset-Requests", "Limit-Tokens", "Remaining-Tokens", "Reset-Tokens"}
	read := func(a answer) (out []string) {
		for _, n := range names {
			out = append(out, a.header.Get("X-Ratelimit-"+n))
		}
		return out
	}
	u1 := upstream("u1", script{status(200, chatBody("x"), "X-Ratelimit-Limit-Requests", "9999", "X-Ratelimit-Remaining-Tokens", "9999")})
	for name, tc := range map[string]struct {
		setup
		first, last []string
	}{
		"none":     {setup{}, []string{"", "", "", "", "", ""}, nil},
		"requests": {setup{workload: "limits: {rpm: 60}"}, []string{"60", "9", "1s", "", "", ""}, []string{"60", "0", "10s", "", "", ""}},
		"key":      {setup{workload: "limits: {rpm: 6000}, key_limits: {rpm: 10}"}, []string{"10", "9", "6s", "", "", ""}, []string{"10", "0", "1m0s", "", "", ""}},
		"model":    {setup{workload: "limits: {rpm: 600}, model_limits: {m: {rpm: 120}}", model: "limits: {rpm: 1200}"}, []string{"120", "11", "500ms", "", "", ""}, nil},
		"tokens":   {setup{workload: "limits: {tpm: 6000000}"}, []string{"", "", "", "6000000", "599469", "6ms"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.upstreams = []*fake{u1}
			run(t, tc.setup, func(r *rig) {
				body := `{"model":"m","messages":[{"role":"user","content":"hello there"}]}`
				if got := read(r.do(ask{body: body})); !slices.Equal(got, tc.first) {
					t.Errorf("%q, want %q", got, tc.first)
				}
				if tc.last == nil {
					return
				}
				var last answer
				for range 12 {
					last = r.do(ask{body: body})
				}
				r.failed(last, 429, "capacity")
				if got := read(last); !slices.Equal(got, tc.last) {
					t.Errorf("refused with %q, want %q", got, tc.last)
				}
			})
		})
	}
}

// Keys have their limits for themselves; a reload keeps what was used and who
// is inside, of every level.
func TestLimitsOutliveAReload(t *testing.T) {
	u1 := upstream("u1", costs(1000, 100))
	const other = "another-key-of-the-caller"
	s := setup{upstreams: []*fake{u1}, model: "limits: {usd_per_day: 5}", target: map[string]string{"u1": priced}}
	s.workload = "key_limits: {rpm: 2}, model_limits: {m: {rpm: 3}}"
	twoKeys := func(s setup) setup {
		s.whole = strings.Replace(s.yaml(), "keys: ["+callerKey+"]", "keys: ["+callerKey+", "+other+"]", 1)
		return s
	}
	run(t, twoKeys(s), func(r *rig) {
		for range 2 {
			r.good(r.do(ask{}), "x")
		}
		s.defaults = "queue: {length: 7}"
		r.configure(twoKeys(s))
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		if _, code := errorOf(r.do(ask{}).body); code != "key_rpm" {
			t.Errorf("code %q: the key's rate was forgotten", code)
		}
		r.good(r.do(ask{key: other}), "x")
		if _, code := errorOf(r.do(ask{key: other}).body); code != "workload_model_rpm" {
			t.Errorf("code %q: the rate for the model was forgotten", code)
		}
		synctest.Wait()
		if u := r.use("model", "m"); math.Abs(*u.USDSpent-3*0.02) > 1e-9 {
			t.Errorf("%v dollars spent, want those of before the reload too", *u.USDSpent)
		}
		if strings.Contains(r.operator("/")+r.operator("/api/v1/limits"), other) {
			t.Error("a plain key is shown")
		}
	})
}

// TestAPathWrittenOtherwiseIsCounted: no way of writing the path of an endpoint
// leaves its answer unread, or a stream without the use that a limit needs.
func TestAPathWrittenOtherwiseIsCounted(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":600,"completion_tokens":20000}}`
	u1 := upstream("u1")
	u1.pick = func(_ int, s *seen) script {
		if strings.Contains(s.body, "include_usage") {
			return script{head(), sse(roleChunk, chunk("x"), finishChunk, usage, done)}
		}
		return script{head(), sse(roleChunk, chunk("x"), finishChunk, done)}
	}
	run(t, setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 1000000}"}, func(r *rig) {
		for i, path := range []string{"/v1/chat/completions/", "/v1/chat%2Fcompletions", "/openai/v1/chat/completions/", "/openai/deployments/m/chat/completions/"} {
			if a := r.do(ask{path: path, stream: true}); a.status != 200 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
			synctest.Wait()
			if left := *r.use("workload", "").TokensLeft; left > 100_000-20_600 {
				t.Errorf("%s: %d tokens left", path, left)
			}
			if uri := u1.request(i).uri; uri != "/v1/chat/completions" {
				t.Errorf("%s: sent to %s", path, uri)
			}
			time.Sleep(time.Minute)
		}
	})
}
