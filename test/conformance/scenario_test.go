//go:build conformance

package conformance

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// scenarios are what a user does with a library, and what must come back.
var scenarios = []struct {
	name  string
	check func(r result) string // "" or what is wrong
}{
	{"chat", func(r result) string { return wrong(r.Text == plainText && r.Finish == "stop") }},
	{"stream", func(r result) string { return wrong(r.Text == plainText && r.Finish == "stop" && r.Chunks > 3) }},
	{"tools", func(r result) string { return wrong(calledTool(r)) }},
	{"streamTools", func(r result) string { return wrong(calledTool(r)) }},
	{"schema", func(r result) string { return wrong(r.Object != nil && *r.Object == city{"Malmö", 365644}) }},
	{"vision", func(r result) string { return wrong(r.Text == describe(pixel)) }},
	{"embed", func(r result) string {
		return wrong(len(r.Vectors) == 2 && slices.Equal(r.Vectors[0], vector) && slices.Equal(r.Vectors[1], vector))
	}},
}

func wrong(ok bool) string {
	if ok {
		return ""
	}
	return "not the upstream's answer"
}

func calledTool(r result) bool {
	return r.Tool != nil && r.Tool.Name == toolName && r.Tool.Args["city"] == "Malmö"
}

// TestScenarios drives the router with every library and each type of
// upstream. The control leaves the router out: what fails there is not its
// fault.
func TestScenarios(t *testing.T) {
	f := startFake(t)
	r := startRouter(t, conf{
		"providers": upstreams(f), "workloads": workloads(),
		"models": conf{"plain": order("plain/ok.plain"), "azure": order("azure/ok.azure"), "compatible": order("compatible/ok.compatible"),
			"second": order("plain/500.second", "compatible/ok.second")},
	})
	for _, through := range []struct{ name, origin, key, model string }{
		{"control", f.URL, upstreamKey, "ok.control"},
		{"openai", r.origin, userKey, "plain"},
		{"azure", r.origin, userKey, "azure"},
		{"compatible", r.origin, userKey, "compatible"},
		{"failover", r.origin, userKey, "second"},
	} {
		for _, c := range clients() {
			t.Run(through.name+"/"+c.name(), func(t *testing.T) {
				for _, s := range scenarios {
					got := c.run(t, job{Scenario: s.name, Origin: through.origin, Key: through.key, Model: through.model})
					if got.Error != nil {
						t.Errorf("%s: %+v", s.name, *got.Error)
					} else if bad := s.check(got); bad != "" {
						t.Errorf("%s: %s: %+v", s.name, bad, got)
					}
				}
			})
		}
	}
	t.Run("keys stay home", func(t *testing.T) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.calls {
			for name, values := range c.header {
				if strings.Contains(strings.Join(values, " "), userKey) {
					t.Fatalf("the caller's key went upstream in %s", name)
				}
			}
		}
	})
}

// TestOtherEndpoints: what only some libraries offer.
func TestOtherEndpoints(t *testing.T) {
	f := startFake(t)
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": conf{"plain": order("plain/ok.plain")}})
	openai := clients()[0]
	j := job{Origin: r.origin, Key: userKey, Model: "plain"}
	j.Scenario = "models"
	if got := openai.run(t, j); got.Error != nil || !slices.Equal(got.Models, []string{"plain"}) {
		t.Errorf("models: %+v", got)
	}
	j.Scenario = "completion"
	if got := openai.run(t, j); got.Error != nil || got.Text != plainText {
		t.Errorf("completion: %+v", got)
	}
}

// TestVerbatim: a body goes up byte for byte except the model's name, and an
// upstream's refusal comes down byte for byte.
func TestVerbatim(t *testing.T) {
	f := startFake(t)
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(),
		"models": conf{"plain": order("plain/ok.plain"), "bad": order("plain/bad.plain", "compatible/ok.plain")}})
	const odd = "{\"n\" : 1.0e3,\t\"model\":\"%s\" , \"x_unknown\":{\"model\":\"plain\",\"big\":12345678901234567890},\"messages\":[ {\"role\":\"user\",\"content\":\"a\\u0000\\ud83d\\ude00 \\/\"} ]}\n"
	post(t, r.origin+"/v1/chat/completions", userKey, fmt.Sprintf(odd, "plain"))
	calls := f.made("ok.plain")
	if len(calls) != 1 || string(calls[0].body) != fmt.Sprintf(odd, "ok.plain") {
		t.Fatalf("%d calls upstream; body\n%s", len(calls), calls[0].body)
	}
	resp := post(t, r.origin+"/v1/chat/completions", userKey, fmt.Sprintf(odd, "bad"))
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusBadRequest || !bytes.Equal(body, []byte(badBody)) {
		t.Errorf("%d, %v\n%s", resp.StatusCode, err, body)
	}
	if n := len(f.made("bad.plain")); n != 1 {
		t.Errorf("the refused request was sent %d times", n)
	}
}

// TestRefusals: mistakes of the caller reach the user as the library's own
// error with status and code, after one request.
func TestRefusals(t *testing.T) {
	f := startFake(t)
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": conf{"bad": order("plain/bad.plain", "compatible/ok.plain")}})
	for _, c := range clients() {
		for _, x := range []struct {
			name, key, model string
			status           int
			code             string
			upstream         int
		}{
			{"400", userKey, "bad", 400, "unsupported_value", 1},
			{"401", "sk-nobody", "bad", 401, "invalid_api_key", 0},
			{"404", userKey, "unheard-of", 404, "model_not_found", 0},
		} {
			t.Run(x.name+"/"+c.name(), func(t *testing.T) {
				before := len(f.made("bad.plain")) + len(f.made("ok.plain"))
				got := c.run(t, job{Scenario: "chat", Origin: r.origin, Key: x.key, Model: x.model})
				if e := got.Error; e == nil || e.Status != x.status {
					t.Fatalf("want status %d, got %+v", x.status, got.Error)
				}
				// LangChain replaces the code of a 401 and a 404 by its own.
				if got.Error.Code != x.code && c.name() != "langchain" {
					t.Errorf("want code %q, got %+v", x.code, *got.Error)
				}
				if n := len(f.made("bad.plain")) + len(f.made("ok.plain")) - before; n != x.upstream {
					t.Errorf("%d calls upstream, want %d", n, x.upstream)
				}
			})
		}
	}
}

// leaveWithin is how long an upstream may go on working for a caller that has
// left.
const leaveWithin = 200 * time.Millisecond

// TestAbort: when the user aborts, the upstream call ends at once, is made
// once, and is nobody's failure.
func TestAbort(t *testing.T) {
	f := startFake(t)
	models := conf{}
	for _, c := range clients() {
		models["hang."+c.name()] = order("plain/hang."+c.name(), "compatible/hang."+c.name())
		models["rain."+c.name()] = order("plain/rain."+c.name(), "compatible/rain."+c.name())
	}
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": models})
	for _, c := range clients() {
		for scenario, model := range map[string]string{"chat": "hang." + c.name(), "stream": "rain." + c.name()} {
			t.Run(scenario+"/"+c.name(), func(t *testing.T) {
				got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey, Model: model, AbortMs: 400})
				if got.Error == nil {
					t.Errorf("the abort was not reported: %+v", got)
				}
				calls := f.made(model)
				if len(calls) != 1 {
					t.Fatalf("%d calls upstream, want 1", len(calls))
				}
				select {
				case at := <-calls[0].closed:
					if late := at.Sub(time.UnixMilli(got.AbortedAt)); late > leaveWithin {
						t.Errorf("the upstream was let go %s after the abort", late)
					}
				case <-time.After(5 * time.Second):
					t.Error("the upstream call goes on")
				}
			})
		}
	}
	eventually(t, 2*time.Second, "every call is settled", func() bool {
		return !slices.ContainsFunc(r.state(t).Targets, func(s targetState) bool { return s.InFlight != 0 })
	})
	s := r.state(t)
	for _, target := range s.Targets {
		if target.Window.Failed != 0 || target.InFlight != 0 || target.Breaker != "closed" {
			t.Errorf("after aborts alone: %+v", target)
		}
	}
}

// TestTruncated: an upstream that breaks off is an error in every library,
// never a short answer; the words that came are delivered.
func TestTruncated(t *testing.T) {
	f := startFake(t)
	models := conf{}
	for _, c := range clients() {
		for _, verb := range []string{"cut", "fin", "later", "short"} {
			models[verb+"."+c.name()] = order("plain/" + verb + "." + c.name())
		}
	}
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": models})
	for _, c := range clients() {
		for _, verb := range []string{"cut", "fin", "later"} {
			t.Run(verb+"/"+c.name(), func(t *testing.T) {
				t.Parallel()
				got := c.run(t, job{Scenario: "stream", Origin: r.origin, Key: userKey, Model: verb + "." + c.name()})
				if got.Error == nil {
					t.Fatalf("half an answer passed for a whole one: %+v", got)
				}
				if got.Text != "It is about " && verb != "later" {
					t.Errorf("delivered %q", got.Text)
				}
				if n := len(f.made(verb + "." + c.name())); n != 1 {
					t.Errorf("a committed stream was asked for %d times", n)
				}
			})
		}
		t.Run("short/"+c.name(), func(t *testing.T) {
			t.Parallel()
			if got := c.run(t, job{Scenario: "chat", Origin: r.origin, Key: userKey, Model: "short." + c.name()}); got.Error == nil {
				t.Errorf("half an answer passed for a whole one: %+v", got)
			}
		})
	}
}

// TestFailover: however the first target fails before content, the user gets
// the second one's answer and no sign of the failure, for one call at each.
// Each case has a workload of its own: a second target that has not proved
// itself yet costs an allowance, and that is not under test here.
func TestFailover(t *testing.T) {
	f := startFake(t)
	failures := map[string][]string{
		"chat":   {"500", "503", "429", "wait5", "reset", "short", "null", "page", "hang"},
		"stream": {"500", "429", "reset", "first", "empty", "page", "hang"},
	}
	models, names := conf{}, []string{}
	name := func(verb, scenario string, c client) string { return verb + "." + scenario + "-" + c.name() }
	for scenario, verbs := range failures {
		for _, verb := range verbs {
			for _, c := range clients() {
				n := name(verb, scenario, c)
				names = append(names, dashed(n))
				models[n] = order("plain/"+n, "compatible/ok."+n)
			}
		}
	}
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(names...), "models": models,
		"defaults": conf{"timeouts": conf{"headers": "3s", "first_content": "3s"}}})
	for scenario, verbs := range failures {
		for _, verb := range verbs {
			for _, c := range clients() {
				t.Run(scenario+"/"+verb+"/"+c.name(), func(t *testing.T) {
					t.Parallel()
					n := name(verb, scenario, c)
					got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey + "-" + dashed(n), Model: n})
					if got.Error != nil || got.Text != plainText || got.Finish != "stop" {
						t.Errorf("%+v, error %+v", got, got.Error)
					}
					atFirst := 1
					if verb == "reset" {
						atFirst = 2 // a kept-alive connection that the upstream closed is worth one more
					}
					if first, second := len(f.made(n)), len(f.made("ok."+n)); first < 1 || first > atFirst || second != 1 {
						t.Errorf("%d calls at the first target and %d at the second, want at most %d and 1", first, second, atFirst)
					}
				})
			}
		}
	}
}

// TestUsageChunk: where the router needs the usage it asks for it, and the
// client gets the extra chunk only if it asked.
func TestUsageChunk(t *testing.T) {
	f := startFake(t)
	w := workloads()
	w["metered"] = conf{"keys": []string{userKey + "-metered"}, "limits": conf{"tpm": 1_000_000}}
	r := startRouter(t, conf{"providers": upstreams(f), "workloads": w, "models": conf{"plain": order("plain/ok.plain")}})
	for _, c := range clients() {
		if c.name() != "openai" && c.name() != "openai-go" && c.name() != "openai-azure" {
			continue // the others ask on their own, or cannot
		}
		for scenario, want := range map[string]int{"stream": 0, "streamNoUsage": 0, "streamUsage": 1} {
			t.Run(scenario+"/"+c.name(), func(t *testing.T) {
				got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey + "-metered", Model: "plain"})
				if got.Error != nil || got.Text != plainText || got.Bare != want || got.Usages != want {
					t.Errorf("want %d usage chunks: %+v", want, got)
				}
				calls := f.made("ok.plain")
				last := calls[len(calls)-1]
				if last.asked.StreamOptions == nil || !last.asked.StreamOptions.IncludeUsage {
					t.Errorf("the upstream was not asked for usage: %s", last.body)
				}
			})
		}
	}
}
