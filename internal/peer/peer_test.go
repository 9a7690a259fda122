package peer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
)

// files reads files by name, as the audit does.
func files(t testing.TB, texts map[string]string) []*manifest.Object {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := manifest.Read(context.Background(), manifest.Options{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return set.Objects
}

// one reads a single file.
func one(t testing.TB, name, text string) (*Gateway, []manifest.Problem) {
	t.Helper()
	objects := files(t, map[string]string{name: text})
	if len(objects) != 1 {
		t.Fatalf("%d objects were read of %s", len(objects), name)
	}
	g, problems := Read(objects[0], NewFiles(objects))
	if g == nil {
		t.Fatalf("%s, a %s, is no gateway", name, objects[0].Kind)
	}
	return g, problems
}

// tries are the attempts of connect, reset, 5xx and 429, -1 for unknown.
func tries(r Route) [4]int {
	var out [4]int
	for i, c := range layers.Classes() {
		out[i] = -1
		if v := r.Retry.Attempts[c]; v.Known() {
			out[i] = v.V
		}
	}
	return out
}

func route(t *testing.T, g *Gateway, name string) Route {
	t.Helper()
	r, ok := g.Find(name)
	if !ok {
		var names []string
		for _, r := range g.Routes {
			names = append(names, r.Name)
		}
		t.Fatalf("there is no route %q among %q", name, names)
	}
	return r
}

const litellm = `model_list:
  - model_name: chat
    litellm_params:
      model: azure/chat-prod
      api_base: https://contoso-swe.openai.azure.com
      api_key: os.environ/AZURE_SWE_KEY
  - model_name: chat
    litellm_params:
      model: bedrock/anthropic.claude-v2
      aws_region_name: eu-north-1
  - model_name: small
    litellm_params: {model: openai/gpt-mini, api_key: sk-Zq81kd02mfla93hfka01ladk3}
router_settings:
  num_retries: 2
  retry_policy: {RateLimitErrorRetries: 0}
  timeout: 60
  fallbacks:
    - chat: [small]
    - small: [chat]
`

func TestLiteLLM(t *testing.T) {
	g, problems := one(t, "config.yaml", litellm)
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	chat := route(t, g, "chat")
	if got := tries(chat); got != [4]int{3, 3, 3, 1} {
		t.Errorf("attempts %v", got)
	}
	if chat.Retry.Spot.Line != 14 {
		t.Errorf("num_retries at line %d", chat.Retry.Spot.Line)
	}
	if got, known := Domains(chat.Targets); !known || !slices.Equal(got, []string{"contoso-swe.openai.azure.com", "bedrock eu-north-1"}) {
		t.Errorf("domains %q, known %v", got, known)
	}
	if !Is(chat.Timers.PerTry, time.Minute) || chat.Timers.Idle.Known() {
		t.Errorf("timers %+v", chat.Timers)
	}
	if got := g.Loop("chat"); !slices.Equal(got, []string{"chat", "small", "chat"}) {
		t.Errorf("loop %q", got)
	}
	if n := g.After("chat"); n != 1 {
		t.Errorf("%d routes after chat", n)
	}
	if len(g.Secrets) != 1 || g.Secrets[0].Line != 12 {
		t.Errorf("secrets %v", g.Secrets)
	}
}

// What a file does not say is not guessed where documentation differs.
func TestLiteLLMSilent(t *testing.T) {
	g, _ := one(t, "config.yaml", "model_list:\n- model_name: a\n  litellm_params: {model: openai/gpt-4o}\n")
	if got := tries(route(t, g, "a")); got != [4]int{-1, -1, -1, -1} {
		t.Errorf("attempts %v", got)
	}
	l := g.Layers("a")
	if len(l) != 1 || l[0].Assumed == "" || l[0].Attempts[layers.Server] != 3 {
		t.Errorf("layers %+v", l)
	}
}

const envoyYAML = `static_resources:
  listeners:
  - name: main
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          stream_idle_timeout: 30s
          route_config:
            virtual_hosts:
            - name: llm
              domains: ["*"]
              retry_policy: {retry_on: connect-failure, num_retries: 7}
              routes:
              - match: {prefix: /v1/}
                route:
                  cluster: providers
                  timeout: 60s
                  retry_policy:
                    retry_on: 5xx,retriable-status-codes
                    retriable_status_codes: [429]
                    num_retries: 5
                    per_try_timeout: 20s
              - match: {prefix: /old/}
                route: {cluster: gone}
          http_filters:
          - name: envoy.filters.http.ratelimit
          - name: envoy.filters.http.router
  clusters:
  - name: providers
    type: STRICT_DNS
    load_assignment:
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: api.openai.com, port_value: 443}}}
        - endpoint: {address: {socket_address: {address: eastus.api.cognitive.microsoft.com, port_value: 443}}}
    outlier_detection: {consecutive_5xx: 5, enforcing_failure_percentage: 100}
    circuit_breakers: {thresholds: [{max_retries: 1024, max_pending_requests: 4294967295}]}
`

func TestEnvoy(t *testing.T) {
	g, problems := one(t, "envoy.yaml", envoyYAML)
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	r := route(t, g, "llm /v1/ providers")
	if got := tries(r); got != [4]int{6, 6, 6, 6} {
		t.Errorf("attempts %v", got)
	}
	if s := r.Retry.Attempts[layers.Capacity].Spot; s.Line != 21 {
		t.Errorf("429 is repeated at line %d", s.Line)
	}
	if !Is(r.Retry.Budget, 0) || !Is(r.Retry.Parallel, 1024) || !Is(r.Retry.Backoff, 25*time.Millisecond) {
		t.Errorf("retry %+v", r.Retry)
	}
	if !Is(r.Timers.Total, time.Minute) || !Is(r.Timers.PerTry, 20*time.Second) || !Is(r.Timers.Idle, 30*time.Second) || !Is(r.Timers.Connect, 5*time.Second) {
		t.Errorf("timers %+v", r.Timers)
	}
	if !Is(r.Breaker.Kind, Ratio) || !Is(r.Breaker.MinHosts, 5) || r.Breaker.Hosts != 2 {
		t.Errorf("breaker %+v", r.Breaker)
	}
	if r.Bounds.Pending.V < unbounded {
		t.Errorf("bounds %+v", r.Bounds)
	}
	if !Is(r.Limits.Any, false) {
		t.Errorf("limits %+v: a filter without descriptors limits nothing", r.Limits)
	}
	old := route(t, g, "llm /old/ gone")
	if !old.More || old.Breaker.Kind.Known() || tries(old) != [4]int{8, 1, 1, 1} {
		t.Errorf("a route to a cluster that is not in the file: %+v", old)
	}
}

const nginxConf = `# the edge
events {}
http {
  limit_req_zone $http_x_tenant zone=tenants:1m rate=5r/s;
  map $http_x_plan $slow { default ""; free $binary_remote_addr; }
  limit_req_zone $slow zone=free:1m rate=1r/s;
  upstream vllm {
    server 10.0.0.1:8000 max_fails=2 fail_timeout=5s;
    server 10.0.0.2:8000;
    server 10.0.0.3:8000 backup;
  }
  proxy_read_timeout 1m30s;
  server {
    server_name llm.example.com;
    location /v1/ {
      limit_req zone=tenants burst=10;
      proxy_set_header Authorization "Bearer sk-9fk3lamd82kfnal3mfa0";
      proxy_pass http://vllm;
    }
    location ~ "^/raw{1,3}" {
      access_by_lua_block { local t = "}" -- }
        ngx.say({a = 1}) }
      proxy_next_upstream error timeout http_503 http_429 non_idempotent;
      proxy_next_upstream_tries 2;
      proxy_pass http://vllm/v1/chat/completions;
    }
    location /direct { set $up "https://api.openai.com"; proxy_pass $up/v1; }
    location /free { limit_req zone=free; proxy_pass http://vllm; }
  }
}
`

func TestNginx(t *testing.T) {
	g, problems := one(t, "nginx.conf", nginxConf)
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	plain := route(t, g, "llm.example.com /v1/")
	// Three servers: a failed connection moves on twice; a POST that got a 503 is
	// answered with it.
	if got := tries(plain); got != [4]int{3, 1, 1, 1} {
		t.Errorf("attempts %v", got)
	}
	if !Is(plain.Timers.Idle, 90*time.Second) || !Is(plain.Timers.Across, 0) {
		t.Errorf("timers %+v", plain.Timers)
	}
	if plain.Limits.Only != "callers that send x_tenant" && plain.Limits.Only != "callers that send tenant" {
		t.Errorf("limits %+v", plain.Limits)
	}
	if plain.Spot.Line != 18 || plain.Breaker.Blind == "" || !Is(plain.Breaker.Kind, Consecutive) {
		t.Errorf("route %+v", plain)
	}
	raw := route(t, g, "llm.example.com ~ ^/raw{1,3}")
	if got := tries(raw); got != [4]int{2, 2, 2, 2} || !Is(raw.Retry.Repeated, true) {
		t.Errorf("attempts %v", got)
	}
	if raw.Limits.Any.Known() {
		t.Errorf("Lua may limit: %+v", raw.Limits)
	}
	direct := route(t, g, "llm.example.com /direct")
	if len(direct.Targets) != 1 || direct.Targets[0].Provider != "openai" {
		t.Errorf("targets %+v", direct.Targets)
	}
	if free := route(t, g, "llm.example.com /free"); !strings.Contains(free.Limits.Only, "$slow") {
		t.Errorf("limits %+v", free.Limits)
	}
	if len(g.Secrets) != 1 || g.Secrets[0].Line != 17 {
		t.Errorf("secrets %v", g.Secrets)
	}
}

// A file that another includes has what is set around the include.
func TestNginxIncludes(t *testing.T) {
	objects := files(t, map[string]string{
		"nginx.conf":          "http {\n  limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\n  limit_req zone=a;\n  proxy_read_timeout 7s;\n  include /etc/nginx/conf.d/*.conf;\n  include other/*.conf;\n}\n",
		"conf.d/llm.conf":     "upstream vllm { server a:1; server b:1; }\nserver {\n  location /v1/chat/completions { proxy_pass http://vllm; }\n}\n",
		"conf.d/nowhere.conf": "server { location / { include missing.conf; proxy_pass http://10.1.1.1; } }\n",
	})
	seen := 0
	given := NewFiles(objects)
	for _, o := range objects {
		g, problems := Read(o, given)
		switch filepath.Base(o.Origin.File) {
		case "nginx.conf":
			if len(g.Routes) != 0 || len(problems) != 1 || !strings.Contains(problems[0].What, "other/*.conf") || problems[0].Line != 6 {
				t.Errorf("main: routes %v, problems %v", g.Routes, problems)
			}
		case "llm.conf":
			r := route(t, g, "/v1/chat/completions")
			if !Is(r.Timers.Idle, 7*time.Second) || !Is(r.Limits.Any, true) || len(r.Targets) != 2 || r.Spot.Line != 3 {
				t.Errorf("included: %+v", r)
			}
		case "nowhere.conf":
			if len(problems) != 1 || !strings.Contains(problems[0].What, "missing.conf") {
				t.Errorf("problems %v", problems)
			}
		}
		seen++
	}
	if seen != 3 {
		t.Errorf("%d files", seen)
	}
}

func TestNginxFaults(t *testing.T) {
	for name, text := range map[string]string{
		"open block":  "http { server { location / { proxy_pass http://llm:1; } }\n",
		"extra brace": "http { }\n}\n",
		"open quote":  "http { server { return 200 \"a; } }",
		"deep":        strings.Repeat("a {", maxDepth+2),
		"no end":      "http { proxy_pass http://a }",
		"lua":         "http { content_by_lua_block { if x then ",
	} {
		if _, err := parseNginx(text, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g, problems := one(t, "nginx.conf", "http { server { location /v1/chat/completions { proxy_pass http://10.0.0.1:8000; }\n }\n")
	if len(g.Routes) != 1 || len(problems) != 1 || !problems[0].Lost {
		t.Errorf("what stands before the fault is kept: %+v %v", g.Routes, problems)
	}
}

const haproxyCfg = `global
    maxconn 4096
defaults base
    mode http
    timeout connect 3s
    timeout server 5m
    timeout queue 10s
    retries 2
defaults eager from base
    retry-on all-retryable-errors 429 response-timeout
    default-server check observe layer7 error-limit 5
frontend edge from base
    bind :80
    stick-table type ip size 100k expire 30s store http_req_rate(10s)
    http-request track-sc0 hdr(x-tenant)
    http-request deny deny_status 429 if { sc_http_req_rate(0) gt 20 }
    default_backend llm
    use_backend quiet if { path_beg /quiet }
backend llm from eager
    http-request set-header Authorization "Bearer sk-3f9akd83jfla93jfka93" # key
    server a 10.0.0.1:8000 maxconn 8 maxqueue 16
    server b 10.0.0.2:8000
backend quiet from eager
    http-request disable-l7-retry if METH_POST
    server vllm 10.0.0.3:8000 \
        maxconn 4
backend plain from base
    retries 0
    server openai api.openai.com:443 ssl
listen raw from base
    mode tcp
    server vllm 10.0.0.9:8000
`

func TestHAProxy(t *testing.T) {
	g, problems := one(t, "haproxy.cfg", haproxyCfg)
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	llm := route(t, g, "llm")
	if got := tries(llm); got != [4]int{3, 3, 3, 3} || !Is(llm.Retry.Repeated, true) {
		t.Errorf("attempts %v", got)
	}
	if !Is(llm.Timers.Idle, 5*time.Minute) || !Is(llm.Timers.Connect, 3*time.Second) || !Is(llm.Bounds.Wait, 10*time.Second) {
		t.Errorf("timers %+v", llm.Timers)
	}
	if !Is(llm.Breaker.Kind, Consecutive) || !Is(llm.Breaker.Threshold, 5) || !Is(llm.Bounds.Pending, 16) {
		t.Errorf("breaker %+v bounds %+v", llm.Breaker, llm.Bounds)
	}
	if !Is(llm.Limits.Any, true) || llm.Limits.Only != "callers that send x-tenant" || llm.Limits.Spot.Line != 15 {
		t.Errorf("limits %+v", llm.Limits)
	}
	quiet := route(t, g, "quiet")
	if got := tries(quiet); got != [4]int{3, 1, 1, 1} || !Is(quiet.Retry.Repeated, false) {
		t.Errorf("attempts without repeated POST %v", got)
	}
	if !Is(quiet.Bounds.Connections, 4) {
		t.Errorf("a continued line: %+v", quiet.Bounds)
	}
	plain := route(t, g, "plain")
	if got := tries(plain); got != [4]int{1, 1, 1, 1} || !Is(plain.Breaker.Kind, None) || plain.Targets[0].Provider != "openai" {
		t.Errorf("plain %v %+v", got, plain)
	}
	if plain.Spot.Line != 27 || plain.Targets[0].Spot.Line != 29 {
		t.Errorf("behind a continued line: %d, %d", plain.Spot.Line, plain.Targets[0].Spot.Line)
	}
	if len(g.Routes) != 3 {
		t.Errorf("%d routes: one in mode tcp has no answers", len(g.Routes))
	}
	if len(g.Secrets) != 1 || g.Secrets[0].Line != 20 {
		t.Errorf("secrets %v", g.Secrets)
	}
}

const kongYAML = `_format_version: "3.0"
services:
- name: chat
  url: http://llm-pool/v1
  read_timeout: 120000
  routes:
  - {name: chat, paths: [/v1/chat/completions]}
- name: ai
  host: localhost
  routes:
  - name: ai-route
    paths: [/ai]
    plugins:
    - name: ai-proxy-advanced
      config:
        balancer: {retries: 3, failover_criteria: [error, timeout, http_429, non_idempotent]}
        targets:
        - model: {provider: openai, name: gpt-4o}
          auth: {header_name: Authorization, header_value: Bearer sk-93kfla83kfla93kfla93}
        - model: {provider: bedrock, name: claude, options: {bedrock: {aws_region: eu-west-1}}}
upstreams:
- name: llm-pool
  targets: [{target: "10.0.0.1:8000"}, {target: "10.0.0.2:8000"}]
  healthchecks: {passive: {unhealthy: {http_failures: 3}}}
plugins:
- {name: rate-limiting, consumer: alice, config: {minute: 5}}
- {name: ai-rate-limiting-advanced, route: ai-route, config: {}}
`

func TestKong(t *testing.T) {
	g, _ := one(t, "kong.yaml", kongYAML)
	chat := route(t, g, "chat")
	if got := tries(chat); got != [4]int{6, 1, 1, 1} || !Is(chat.Timers.Idle, 2*time.Minute) || !Is(chat.Timers.Connect, time.Minute) {
		t.Errorf("chat %v %+v", got, chat.Timers)
	}
	if !Is(chat.Breaker.Kind, Consecutive) || len(chat.Targets) != 2 || chat.Limits.Only != "the consumer alice" {
		t.Errorf("chat %+v", chat)
	}
	ai := route(t, g, "ai-route")
	if got := tries(ai); got != [4]int{4, 4, 1, 4} || !Is(ai.Retry.Repeated, true) {
		t.Errorf("ai %v", got)
	}
	if ai.Breaker.Kind.Known() || ai.Limits.Only != "" || !Is(ai.Limits.Any, true) {
		t.Errorf("ai %+v", ai)
	}
	if len(g.Secrets) != 1 || g.Secrets[0].Line != 19 {
		t.Errorf("secrets %v", g.Secrets)
	}
}

const portkeyJSON = `{
  "strategy": {"mode": "fallback"},
  "retry": {"attempts": 3, "on_status_codes": [500, 503]},
  "targets": [
    {"provider": "openai", "api_key": "sk-9d8f7a6s5d4f3a2s1d0f9a8s", "request_timeout": 10000},
    {"strategy": {"mode": "loadbalance"}, "retry": {"attempts": 9}, "targets": [
      {"provider": "azure-openai", "resource_name": "swe", "virtual_key": "{{key}}"},
      {"provider": "azure-openai", "resource_name": "frc"}
    ]}
  ]
}`

func TestPortkey(t *testing.T) {
	g, _ := one(t, "config.json", portkeyJSON)
	if len(g.Routes) != 1 {
		t.Fatalf("%d routes", len(g.Routes))
	}
	r := g.Routes[0]
	// The inner targets repeat five times at most, and by their own list of codes.
	if got := tries(r); got != [4]int{1, 6, 6, 6} {
		t.Errorf("attempts %v", got)
	}
	if len(r.Targets) != 3 || len(r.Fallbacks) != 1 || g.After(r.Name) != 1 {
		t.Errorf("targets %v fallbacks %v", r.Targets, r.Fallbacks)
	}
	if !Is(r.Timers.PerTry, 0) || !Is(r.Breaker.Kind, None) || len(g.Secrets) != 1 {
		t.Errorf("route %+v secrets %v", r, g.Secrets)
	}
}

func TestBifrost(t *testing.T) {
	g, _ := one(t, "config.json", `{
  "client": {"drop_excess_requests": false},
  "providers": {
    "openai": {"keys": [{"value": "env.OPENAI_API_KEY", "weight": 1}], "network_config": {"max_retries": 5, "retry_backoff_initial": 10}},
    "azure": {"keys": [{"value": "9f8e7d6c5b4a39281706f5e4d3c2b1a0"}], "network_config": {"base_url": "https://x.openai.azure.com"}}
  },
  "governance": {"virtual_keys": [{"id": "vk", "rate_limit_id": "r"}]}
}`)
	o := route(t, g, "openai")
	if got := tries(o); got != [4]int{6, 6, 6, 6} || !Is(o.Retry.Backoff, 10*time.Millisecond) || !o.More {
		t.Errorf("openai %v %+v", got, o)
	}
	a := route(t, g, "azure")
	if got := tries(a); got != [4]int{1, 1, 1, 1} || !Is(a.Timers.PerTry, 30*time.Second) || !Is(a.Bounds.Pending, 5000) || !Is(a.Bounds.Wait, 0) {
		t.Errorf("azure %v %+v", got, a)
	}
	if a.Limits.Only == "" || len(g.Secrets) != 1 || g.Secrets[0].Line != 5 {
		t.Errorf("limits %+v secrets %v", a.Limits, g.Secrets)
	}
}

func TestHourthree(t *testing.T) {
	g, _ := one(t, "hourthree.yaml", `listen: 0.0.0.0:8080
providers:
  swe: {type: azure, base_url: "https://a.openai.azure.com", api_key: "${KEY}", region: swedencentral}
  swe2: {type: azure, base_url: "https://b.openai.azure.com", api_key: "${KEY}", region: swedencentral}
models:
  chat:
    targets: [{provider: swe, model: x}, {provider: swe2, model: x}]
defaults:
  retry: {ratio: 0.5}
  breaker: {failure_ratio: 0.95}
  queue: {length: 0}
`)
	r := route(t, g, "chat")
	if d, known := Domains(r.Targets); !known || len(d) != 1 {
		t.Errorf("domains %v %v", d, known)
	}
	if !Is(g.Open, true) || !Is(r.Retry.Budget, 0.5) || !Is(r.Breaker.Threshold, 0.95) || !Is(r.Bounds.Pending, 0) || !Is(r.Degraded, false) || !Is(r.Limits.Any, false) {
		t.Errorf("route %+v open %+v", r, g.Open)
	}
}

// A gateway behind a proxy behind a client's own repeats.
func TestLayersMultiply(t *testing.T) {
	inner, _ := one(t, "config.yaml", litellm)
	outer, _ := one(t, "envoy.yaml", envoyYAML)
	product := func(c layers.Class) int {
		n := 3 // the client's
		for _, l := range append(outer.Layers("llm /v1/ providers"), inner.Layers("chat")...) {
			n *= l.Attempts[c]
		}
		return n
	}
	if got := product(layers.Server); got != 54 {
		t.Errorf("%d calls after a server error", got)
	}
	if got := product(layers.Capacity); got != 18 {
		t.Errorf("%d calls after a refusal for capacity", got)
	}
	edge, _ := one(t, "nginx.conf", nginxConf)
	l := edge.Layers("llm.example.com /v1/")[0]
	if l.Attempts[layers.Connect] != 3 || l.Attempts[layers.Server] != 1 {
		t.Errorf("nginx %v", l.Attempts)
	}
	if edge.Layers("none") != nil {
		t.Error("a route that is not there has layers")
	}
}

// What is in a ConfigMap stands at its line of the outer file.
func TestEmbedded(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edge}\ndata:\n  nginx.conf: |\n"
	for l := range strings.Lines(nginxConf) {
		text += "    " + l
	}
	objects := files(t, map[string]string{"cm.yaml": text})
	if len(objects) != 1 || len(objects[0].Embedded()) != 1 {
		t.Fatalf("objects %v", objects)
	}
	g, _ := Read(objects[0].Embedded()[0], nil)
	if r := route(t, g, "llm.example.com /v1/"); r.Spot.Line != 18+5 {
		t.Errorf("line %d", r.Spot.Line)
	}
	if g, _ := Read(objects[0], nil); g != nil {
		t.Error("a ConfigMap is no gateway")
	}
}

func TestSecretNotKept(t *testing.T) {
	for text, want := range map[string]bool{
		"sk-9fk3lamd82kfnal3mfa0":          true,
		"Bearer sk-9fk3lamd82kfnal3mfa0":   true,
		"9f8e7d6c5b4a39281706f5e4d3c2b1a0": true,
		"os.environ/OPENAI_API_KEY":        false,
		"env.OPENAI_API_KEY":               false,
		"${OPENAI_API_KEY}":                false,
		"$openai_key":                      false,
		"{{ .Values.key }}":                false,
		"{vault://env/openai}":             false,
		"sk-1234":                          false,
		"<your-key-here-0123456789>":       false,
		"sk-your-openai-key":               false,
		"YOUR_API_KEY_123456789":           false,
		"Bearer %[var(txn.key)]":           false,
		"not-needed-anywhere":              false,
		"sk-xxxxxxxxxxxxxxxxxxxx1":         false,
	} {
		if got := literal(text); got != want {
			t.Errorf("literal(%q) = %v", text, got)
		}
	}
}

func TestLocate(t *testing.T) {
	for host, want := range map[string][2]string{
		"api.openai.com": {"openai", ""}, "x.openai.azure.com": {"azure", ""},
		"bedrock-runtime.eu-north-1.amazonaws.com": {"bedrock", "eu-north-1"},
		"europe-west4-aiplatform.googleapis.com":   {"vertex", "europe-west4"},
		"eastus.api.cognitive.microsoft.com":       {"azure", "eastus"},
		"api.openai.com.evil.example":              {"", ""}, "notapi.openai.com": {"", ""}, "vllm": {"", ""},
	} {
		if p, r := locate(host); p != want[0] || r != want[1] {
			t.Errorf("%s: %q %q", host, p, r)
		}
	}
}

func FuzzNginx(f *testing.F) {
	f.Add(nginxConf)
	f.Add("a ${b}{c;}'x' \"y\\\"\" # z\n")
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := parseNginx(text, nil)
		lines := strings.Count(text, "\n") + 1
		each(tree, func(d *directive) {
			if d.line < 1 || d.line > lines || d.name == "" && len(text) == 0 {
				t.Fatalf("directive %q at line %d of %d (%v)", d.name, d.line, lines, err)
			}
		})
		fuzzRead(t, manifest.Nginx, text)
	})
}

func FuzzHAProxy(f *testing.F) {
	f.Add(haproxyCfg)
	f.Add("backend a\n server \"x\\\" y\" 'z' \\\n q # r\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := parseHAProxy(text)
		lines := strings.Count(text, "\n") + 1
		last := 0
		for _, s := range list {
			for _, l := range append([]line{{line: s.line}}, s.lines...) {
				if l.line <= last || l.line > lines {
					t.Fatalf("line %d behind %d, of %d", l.line, last, lines)
				}
				last = l.line
			}
		}
		fuzzRead(t, manifest.HAProxy, text)
	})
}

// fuzzRead holds that nothing read is out of its range and no text is lost in
// silence.
func fuzzRead(t *testing.T, kind, text string) {
	o := &manifest.Object{Group: manifest.FileGroup, Kind: kind, Name: "x", Text: []byte(text)}
	g, _ := Read(o, nil)
	for _, r := range g.Routes {
		for _, v := range r.Retry.Attempts {
			if v.Known() && v.V < 1 {
				t.Fatalf("%d attempts", v.V)
			}
		}
		for _, d := range []Value[time.Duration]{r.Timers.Idle, r.Timers.Connect, r.Timers.Across, r.Bounds.Wait} {
			if d.V < 0 {
				t.Fatalf("time %v", d.V)
			}
		}
		g.Layers(r.Name)
	}
}
