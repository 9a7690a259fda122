//go:build conformance

package conformance

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
)

// storms are the ways in which every upstream fails at once.
var storms = []struct{ verb, title string }{
	{"500", "500"}, {"503", "503"}, {"429", "429"}, {"wait5", "429, Retry-After 5"}, {"hang", "no answer"}, {"reset", "reset"}, {"short", "cut body"},
}

// requestsPerCall is how often a library may come back to the router for one
// call of its user when every upstream fails: once, for the router's refusal
// says so in the form that this library obeys. The AI SDK obeys none and
// makes its three attempts whatever it is told.
var requestsPerCall = map[string]int{"openai": 1, "openai-azure": 1, "ai-sdk": 3, "langchain": 1, "openai-go": 1, "azopenai": 1}

// bare is what the same libraries send for one call straight to an upstream
// that answers 500, measured with these versions.
var bare = map[string]int{"openai": 3, "openai-azure": 3, "ai-sdk": 3, "langchain": 7, "openai-go": 3, "azopenai": 4}

// attemptLimit is the router's own bound on upstream calls a request.
const attemptLimit = 3

// TestStorm counts what one call of a user costs when both of a model's
// targets fail: requests at the router and calls upstream. Each pair of
// library and failure has its own targets and its own workload, so that one
// leaves no trace in another's budgets.
func TestStorm(t *testing.T) {
	f := startFake(t)
	models, names := conf{}, []string{}
	for _, c := range clients() {
		for _, s := range storms {
			name := s.verb + "." + c.name()
			models[name] = order("plain/"+name, "compatible/"+name)
			names = append(names, dashed(name))
		}
	}
	r := startRouter(t, conf{"providers": upstreams(f), "models": models, "workloads": workloads(names...),
		"defaults": conf{"timeouts": conf{"headers": "2s", "first_content": "2s", "total": "30s"}}})
	var (
		mu      sync.Mutex
		results = map[string]result{}
		wg      sync.WaitGroup
	)
	for _, c := range clients() {
		for _, s := range storms {
			name := s.verb + "." + c.name()
			wg.Go(func() {
				got := c.run(t, job{Scenario: "chat", Origin: r.origin, Key: userKey + "-" + dashed(name), Model: name})
				mu.Lock()
				defer mu.Unlock()
				results[name] = got
			})
		}
	}
	wg.Wait()
	inbound := map[string]int{}
	for _, w := range r.state(t).Workloads {
		inbound[w.Name] = w.Inbound
	}
	var rows []string
	for _, c := range clients() {
		for _, s := range storms {
			name := s.verb + "." + c.name()
			in, up, got := inbound[dashed(name)], len(f.made(name)), results[name]
			status := 0
			if got.Error == nil {
				t.Errorf("%s: no error from a model that is down: %+v", name, got)
			} else {
				status = got.Error.Status
			}
			rows = append(rows, fmt.Sprintf("%-13s %-19s %9d %9d %8d %7d %8.1f s", c.name(), s.title, in, requestsPerCall[c.name()], up, status, float64(got.MS)/1000))
			if in > requestsPerCall[c.name()] || in == 0 {
				t.Errorf("%s: %d requests at the router for one call, want at most %d", name, in, requestsPerCall[c.name()])
			}
			if up > in*attemptLimit || up == 0 {
				t.Errorf("%s: %d calls upstream for %d requests", name, up, in)
			}
			if capacity := s.verb == "429" || s.verb == "wait5"; capacity && status != 429 {
				t.Errorf("%s: lack of capacity left as status %d", name, status)
			}
		}
	}
	sort.Strings(rows)
	t.Logf("one user call, every upstream failing (without a router a 500 costs %v):\n%-13s %-19s %9s %9s %8s %7s %10s\n%s", bare,
		"client", "failure", "requests", "allowed", "upstream", "status", "took", strings.Join(rows, "\n"))
}

// dashed makes a workload's name of a model's.
func dashed(model string) string { return strings.ReplaceAll(model, ".", "-") }
