package audit

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

// gatewayFiles are the endings of a product's examples.
var gatewayFiles = map[string]string{
	"litellm.yaml": "LiteLLM", "envoy.yaml": "Envoy", "nginx.conf": "Nginx", "haproxy.cfg": "HAProxy", "kong.yaml": "Kong",
	"portkey.json": "Portkey", "bifrost.json": "Bifrost", "hourthree.yaml": "Hourthree",
}

// gatewayInput reads texts as files of a folder.
func gatewayInput(t testing.TB, texts map[string]string) Input {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := manifest.Read(context.Background(), manifest.Options{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	return Input{Objects: set.Objects, Problems: set.Problems}
}

// TestGatewayExamples: each check fails and passes on an example of every product
// that it is for, at the line that the example marks.
func TestGatewayExamples(t *testing.T) {
	for _, c := range Catalogue() {
		if c.Group() != "GWY" {
			continue
		}
		a, err := txtar.ParseFile(filepath.Join("testdata", "gateway", c.ID+".txtar"))
		if err != nil {
			t.Error(err)
			continue
		}
		shown := map[string]bool{}
		for _, f := range a.Files {
			t.Run(c.ID+" "+f.Name, func(t *testing.T) {
				in := gatewayInput(t, map[string]string{f.Name: string(f.Data)})
				r := run1(t, in, Options{Checks: []string{c.ID}})
				want, _, _ := strings.Cut(f.Name, "/")
				if len(in.Objects) != 1 || !strings.HasSuffix(f.Name, ending(in.Objects[0].Kind)) {
					t.Fatalf("read as %v, problems %v", in.Objects, in.Problems)
				}
				shown[want+" "+in.Objects[0].Kind] = true
				if (want == "fail") != (len(r.Findings) > 0) {
					t.Fatalf("findings %+v, open %+v", r.Findings, r.Open)
				}
				if c.ID == "GWY-012" && len(r.Findings) > 1 {
					t.Errorf("a loop is said more than once: %+v", r.Findings)
				}
				if want == "pass" && len(r.Open) > 0 {
					t.Errorf("open %+v", r.Open)
				}
				if line := marked(string(f.Data)); line > 0 && want == "fail" && r.Findings[0].Place.Line != line {
					t.Errorf("found at line %d, not %d: %+v", r.Findings[0].Place.Line, line, r.Findings[0])
				}
			})
		}
		for _, kind := range c.Kinds {
			for _, want := range []string{"fail ", "pass "} {
				if kind != "ConfigMap" && !shown[want+kind] && !slices.Contains(neverFails, c.ID+" "+kind) {
					t.Errorf("%s has no example: %s%s", c.ID, want, kind)
				}
			}
		}
	}
}

// neverFails are products whose own rules keep a check from failing, or that
// another check reports.
var neverFails = []string{"GWY-003 Bifrost", "GWY-005 Portkey"}

func ending(kind string) string {
	for end, k := range gatewayFiles {
		if k == kind {
			return end
		}
	}
	return "?"
}

// marked is the line that ends in HERE, 0 for none.
func marked(text string) int {
	n := 0
	for l := range strings.Lines(text) {
		if n++; strings.HasSuffix(strings.TrimSpace(l), "# HERE") {
			return n
		}
	}
	return 0
}

// TestGatewayOnce: what another check reports is not reported again, in a file
// as in a ConfigMap.
func TestGatewayOnce(t *testing.T) {
	text := "model_list:\n- model_name: chat\n  litellm_params: {model: openai/gpt-4o, api_key: os.environ/K}\nrouter_settings: {num_retries: 5, disable_cooldowns: true, default_max_parallel_requests: 9}\n"
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: litellm, namespace: llm}\ndata:\n  config.yaml: |\n"
	for l := range strings.Lines(text) {
		cm += "    " + l
	}
	for name, texts := range map[string]map[string]string{"file": {"config.yaml": text}, "ConfigMap": {"cm.yaml": cm}} {
		r := run1(t, gatewayInput(t, texts), Options{Checks: []string{"GWY", "RTY-019", "RTY-020", "TMO-005", "CBK-005", "RTE-004", "RTY-011"}})
		var ids []string
		for _, f := range r.Findings {
			ids = append(ids, f.ID)
		}
		slices.Sort(ids)
		if want := []string{"CBK-005", "RTE-004", "RTY-019", "TMO-005"}; !slices.Equal(ids, want) {
			t.Errorf("%s: %v, not %v", name, ids, want)
		}
	}
}

// TestGatewayEmbedded: a finding in a text of a ConfigMap is at its line of the
// file.
func TestGatewayEmbedded(t *testing.T) {
	conf := "http {\n  server {\n    location /v1/chat/completions {\n      proxy_read_timeout 2h;\n      proxy_set_header Authorization \"Bearer sk-Zq81kd02mfla93hfka01ladk3\";\n      proxy_pass http://vllm:8000;\n    }\n  }\n}\n"
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: edge, namespace: llm}\ndata:\n  nginx.conf: |\n"
	for l := range strings.Lines(conf) {
		cm += "    " + l
	}
	r := run1(t, gatewayInput(t, map[string]string{"cm.yaml": cm}), Options{Checks: []string{"GWY-006", "GWY-016"}})
	if len(r.Findings) != 2 || r.Findings[0].Place.Line != 9 || !strings.HasPrefix(r.Findings[0].Path, "data[nginx.conf].") {
		t.Fatalf("%+v", r.Findings)
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Observed+f.Path, "sk-") {
			t.Errorf("a credential is shown: %+v", f)
		}
	}
	// A page server in a ConfigMap is no gateway to models.
	web := strings.ReplaceAll(strings.ReplaceAll(cm, "/v1/chat/completions", "/shop"), "vllm", "shop")
	if r := run1(t, gatewayInput(t, map[string]string{"cm.yaml": web}), Options{Checks: []string{"GWY"}}); len(r.Findings) > 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// TestGatewayUnknown: what is not in the file is not evaluated, and what could
// not be read is a problem.
func TestGatewayUnknown(t *testing.T) {
	r := run1(t, gatewayInput(t, map[string]string{"nginx.conf": "http {\n include sites/*.conf;\n server { location /v1/chat/completions { proxy_pass http://$backend; } }\n}\n"}), Options{Checks: []string{"GWY-003", "GWY-010"}})
	if len(r.Findings) != 0 || len(r.Open) != 2 || len(r.Problems) != 1 || r.Problems[0].Line != 2 {
		t.Errorf("findings %+v, open %+v, problems %+v", r.Findings, r.Open, r.Problems)
	}
}

// TestGatewayOnPath: what a proxy's file repeats multiplies with what stands
// before and behind it: a client's 3, the proxy's 6, the router's 3.
func TestGatewayOnPath(t *testing.T) {
	in := gatewayInput(t, map[string]string{"path.yaml": pathYAML})
	most, layers := 0, 0
	for _, p := range retrypath.New(topology.New(in.Objects, "")).All() {
		if p.Worst.Calls > most {
			most, layers = p.Worst.Calls, len(p.Layers)
		}
	}
	if most != 54 || layers != 3 {
		t.Errorf("%d calls over %d layers", most, layers)
	}
}

const pathYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: llm}
spec:
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - name: app
        image: ghcr.io/acme/app:1
        env: [{name: OPENAI_BASE_URL, value: "http://edge.llm/v1"}, {name: OPENAI_API_KEY, value: x}]
---
apiVersion: v1
kind: Service
metadata: {name: edge, namespace: llm}
spec: {selector: {app: edge}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: edge, namespace: llm}
spec:
  selector: {matchLabels: {app: edge}}
  template:
    metadata: {labels: {app: edge}}
    spec:
      containers: [{name: envoy, image: "envoyproxy/envoy:v1.36.0"}]
      volumes: [{name: c, configMap: {name: edge}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: edge, namespace: llm}
data:
  envoy.yaml: |
    static_resources:
      listeners:
      - filter_chains:
        - filters:
          - typed_config:
              route_config:
                virtual_hosts:
                - name: llm
                  routes:
                  - match: {prefix: /v1/}
                    route: {cluster: litellm, timeout: 60s, retry_policy: {retry_on: 5xx, num_retries: 5}}
      clusters:
      - name: litellm
        load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: litellm.llm, port_value: 4000}}}}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: litellm, namespace: llm}
spec: {selector: {app: litellm}, ports: [{port: 4000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: litellm, namespace: llm}
spec:
  selector: {matchLabels: {app: litellm}}
  template:
    metadata: {labels: {app: litellm}}
    spec:
      containers: [{name: litellm, image: "ghcr.io/berriai/litellm:main"}]
      volumes: [{name: c, configMap: {name: litellm}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: litellm, namespace: llm}
data:
  config.yaml: |
    model_list:
    - model_name: chat
      litellm_params: {model: azure/chat, api_base: "https://swe.openai.azure.com"}
    router_settings: {num_retries: 2}
`
