package peer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/manifest"
)

// FuzzDocument holds that no document, whatever its fields hold, ends the reading
// or gives a number out of range.
func FuzzDocument(f *testing.F) {
	f.Add(`{"model_list": [{"model_name": "a", "litellm_params": {"model": "x", "num_retries": -3}}], "router_settings": {"num_retries": 1e300, "fallbacks": [{"a": ["a", {"model": "b"}]}]}}`)
	f.Add(`{"static_resources": {"listeners": [{"filter_chains": [{"filters": [{"typed_config": {"route_config": {"virtual_hosts": [{"routes": [{"route": {"cluster": "c", "timeout": "-1s", "retry_policy": {"retry_on": "5xx", "num_retries": "x"}}}]}]}}}]}]}], "clusters": [{"name": "c", "circuit_breakers": {"thresholds": [[]]}}]}}`)
	f.Add(`{"services": [{"name": "a", "retries": null, "routes": [{"plugins": [{"name": "ai-proxy-advanced", "config": {"targets": [{}], "balancer": {"retries": {}}}}]}]}]}`)
	f.Add(`{"targets": [{"targets": [{"retry": {"attempts": 99}}]}], "retry": {"on_status_codes": [null, 429]}}`)
	f.Add(`{"providers": {"a": {"keys": [{"value": 7}], "network_config": {"max_retries": "3"}}}, "models": {"a": {"targets": [{"provider": "a"}]}}, "listen": ":::"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var root map[string]any
		if json.Unmarshal([]byte(text), &root) != nil {
			return
		}
		for _, kind := range []string{LiteLLM, Envoy, Kong, Portkey, Bifrost, Hourthree} {
			o := &manifest.Object{Group: manifest.FileGroup, Kind: kind, Name: "x", Root: root}
			g, _ := Read(o, nil)
			for _, r := range g.Routes {
				g.Loop(r.Name)
				for _, l := range g.Layers(r.Name) {
					for c, n := range l.Attempts {
						if n < 1 {
							t.Fatalf("%s: %d attempts after %s", kind, n, c)
						}
					}
					if l.Timeout < 0 || l.PerTry < 0 || l.Fallbacks < 0 {
						t.Fatalf("%s: %+v", kind, l)
					}
				}
			}
		}
	})
}

// Targets deeper than the bound are said to be left out.
func TestPortkeyDepth(t *testing.T) {
	text := strings.Repeat(`{"strategy": {"mode": "fallback"}, "targets": [`, maxNesting+2) + `{"provider": "openai"}` + strings.Repeat(`]}`, maxNesting+2)
	g, problems := one(t, "deep.json", text)
	if len(problems) != 1 || !problems[0].Lost || len(g.Routes) != 0 {
		t.Errorf("routes %v, problems %v", g.Routes, problems)
	}
}

// What is tried after a route is never fewer for a fallback more, and is bounded
// whatever the graph.
func TestAfterIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "routes")
		g := &Gateway{Product: LiteLLM}
		for i := range n {
			r := Route{Name: fmt.Sprint(i)}
			for range rapid.IntRange(0, 4).Draw(t, "fallbacks") {
				r.Fallbacks = append(r.Fallbacks, Fallback{To: fmt.Sprint(rapid.IntRange(0, n).Draw(t, "to"))})
			}
			g.Routes = append(g.Routes, r)
		}
		before := g.After("0")
		g.Routes[0].Fallbacks = append(g.Routes[0].Fallbacks, Fallback{To: "elsewhere"})
		if after := g.After("0"); after < before || after > 100 {
			t.Fatalf("%d after %d", after, before)
		}
		loop := g.Loop("0")
		if loop != nil && (loop[0] != "0" || loop[len(loop)-1] != "0" || len(loop) < 2) {
			t.Fatalf("loop %v", loop)
		}
	})
}

func TestNginxTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"60": time.Minute, "60s": time.Minute, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond,
		"1h": time.Hour, "2d": 48 * time.Hour, "1w": 7 * 24 * time.Hour, "0": 0,
	} {
		if got, ok := nginxTime(text); !ok || got != want {
			t.Errorf("%s: %v %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "s", "1x", "$wait", "99999999999999999999s", "-1s"} {
		if got, ok := nginxTime(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// A service's limits are those of its least limited route.
func TestKongWeakestLimit(t *testing.T) {
	g, _ := one(t, "kong.yaml", `_format_version: "3.0"
services:
- name: llm
  url: https://api.openai.com/v1
  routes:
  - {name: a, paths: [/a], plugins: [{name: rate-limiting, config: {minute: 5}}]}
  - {name: b, paths: [/b]}
`)
	if r := route(t, g, "llm"); r.Limits.Any.V || r.Limits.Spot.Line != 7 {
		t.Errorf("limits %+v", r.Limits)
	}
}

// A page or a probe beside the models is none of them.
func TestAside(t *testing.T) {
	g, _ := one(t, "nginx.conf", "server {\n location = /health { proxy_pass http://vllm:8000/health; }\n location /docs/ { proxy_pass http://vllm:8000; }\n location /healthy-models { proxy_pass http://vllm:8000; }\n location / { proxy_pass http://vllm:8000; }\n}\n")
	for name, want := range map[string]bool{"= /health": false, "/docs/": false, "/healthy-models": true, "/": true} {
		if r := route(t, g, name); (r.Models != "") != want {
			t.Errorf("%s: %q", name, r.Models)
		}
	}
}

// Virtual hosts lend their retry policy, with its limit of one try.
func TestEnvoyVirtualHostPolicy(t *testing.T) {
	text := strings.Replace(envoyYAML, "retry_on: connect-failure, num_retries: 7", "retry_on: reset, num_retries: 1, per_try_timeout: 9s", 1)
	g, _ := one(t, "envoy.yaml", text)
	if r := route(t, g, "llm /old/ gone"); tries(r) != [4]int{2, 2, 1, 1} || !Is(r.Timers.PerTry, 9*time.Second) {
		t.Errorf("%v %+v", tries(r), r.Timers)
	}
}

// The success rate is a rule on the share, from five hosts on.
func TestEnvoySuccessRate(t *testing.T) {
	text := strings.Replace(envoyYAML, ", enforcing_failure_percentage: 100", "", 1)
	g, _ := one(t, "envoy.yaml", text)
	if b := route(t, g, "llm /v1/ providers").Breaker; !Is(b.Kind, Consecutive) {
		t.Errorf("two hosts: %+v", b)
	}
	host := "        - endpoint: {address: {socket_address: {address: api.openai.com, port_value: 443}}}\n"
	g, _ = one(t, "envoy.yaml", strings.Replace(text, host, strings.Repeat(host, 4), 1))
	if b := route(t, g, "llm /v1/ providers").Breaker; !Is(b.Kind, Ratio) || b.Hosts != 5 {
		t.Errorf("five hosts: %+v", b)
	}
}

// A variable is followed to what was set, and no further.
func TestNginxVariables(t *testing.T) {
	g, _ := one(t, "nginx.conf", `server {
  set $up https://api.openai.com;
  location /a { proxy_pass $up; }
  location /b { proxy_pass $up:8443; }
  location /c { proxy_pass https://$upper; }
  location /d { proxy_pass https://${host}.example.com; }
}
`)
	for name, want := range map[string]string{"/a": "api.openai.com", "/b": "api.openai.com", "/c": "", "/d": ""} {
		r := route(t, g, name)
		switch {
		case want == "" && (len(r.Targets) > 0 || !r.More):
			t.Errorf("%s: %+v", name, r.Targets)
		case want != "" && (len(r.Targets) != 1 || r.Targets[0].Host != want):
			t.Errorf("%s: %+v", name, r.Targets)
		}
	}
}

// A config that names no provider leaves the target to the caller.
func TestPortkeyCallerChooses(t *testing.T) {
	g, _ := one(t, "config.json", `{"retry": {"attempts": 3, "on_status_codes": [429]}}`)
	if r := g.Routes[0]; len(r.Targets) != 0 || !r.More || tries(r) != [4]int{1, 1, 1, 4} {
		t.Errorf("%+v", r)
	}
}
