package retrypath

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

var update = flag.Bool("update-paths", false, "write the trees of paths that are found")

func example(t testing.TB, name string) []*manifest.Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "paths", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(data))
}

func treeOf(t testing.TB, paths []Path, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := Tree(&b, paths, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The trees of the examples are as they were looked at.
func TestTreesOfExamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/paths/*.yaml")
	if len(files) < 6 {
		t.Fatalf("%d examples", len(files))
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		t.Run(name, func(t *testing.T) {
			got := treeOf(t, New(topology.New(example(t, name), "")).All(), 80)
			golden := strings.TrimSuffix(f, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// What each example comes to, apart from how it is shown.
func TestProductsOfExamples(t *testing.T) {
	for _, c := range []struct {
		name, to string
		class    layers.Class
		calls    int
		steady   float64
		layers   int
	}{
		{"seven", "sc.openai.azure.com", layers.Server, 49, 49, 3},
		{"everyday", "api.anthropic.com", layers.Server, 108, 3 * 1.2 * 6, 4}, // 54 at each of two targets
		{"mesh", "api.openai.com", layers.Server, 2 * 4 * 3, 2 * 1.25 * 3, 3},
		{"mesh", "llm/vllm", layers.Connect, 2 * 3, 6, 2},
		{"kong", "llm/vllm", layers.Connect, 2 * 6, 12, 2},
		{"kong", "llm/vllm", layers.Server, 2, 2, 2},
		{"backends", "llm/vllm", layers.Server, 5, 5, 2},
		{"backends", "one.example.net", layers.Server, 1, 1, 1},
		{"backends", "two.example.net", layers.Server, 1, 1, 1},
		{"backends", "Service llm/absent", layers.Server, 1, 1, 1},
		{"backends", "api.openai.com", layers.Server, 1, 1, 1},
		{"backends", "nowhere.example.org", layers.Server, 1, 1, 1},
		{"circle", "llm/one", layers.Server, 3 * 2 * 2, 12, 3},
		{"unknown", "api.openai.com", layers.Server, 3 * 3 * 6, 3 * 1.1 * 6, 3},
	} {
		paths := New(topology.New(example(t, c.name), "")).All()
		i := slices.IndexFunc(paths, func(p Path) bool { return p.To == c.to })
		if i < 0 {
			t.Errorf("%s: no path to %s", c.name, c.to)
			continue
		}
		k := slices.IndexFunc(paths[i].Products, func(p Product) bool { return p.Class == c.class })
		got := paths[i].Products[k]
		if got.Calls != c.calls || got.Steady < c.steady*0.999 || got.Steady > c.steady*1.001 || len(paths[i].Layers) != c.layers {
			t.Errorf("%s to %s: %s makes %d calls, %v in the long run, of %d layers; want %d, %v, %d",
				c.name, c.to, c.class, got.Calls, got.Steady, len(paths[i].Layers), c.calls, c.steady, c.layers)
		}
	}
}

// What each product does for each class of failure.
func TestLayersOfProducts(t *testing.T) {
	paths := New(topology.New(example(t, "products"), "")).All()
	for _, c := range []struct {
		host, layer                      string
		connect, reset, server, capacity int
		budget, perTry, timeout          float64
	}{
		{"linkerd", "Linkerd at Service llm/linkerd", 1, 1, 3, 3, 0, 20, 90},
		{"cilium.llm", "CiliumEnvoyConfig llm/retry", 4, 4, 4, 4, 0.5, 30, 0},
		{"apisix.example.com", "APISIX at Service llm/vllm", 3, 3, 3, 1, 0, 0, 0}, // three pods
		{"agent.example.com", "AgentgatewayPolicy llm/agent", 5, 5, 5, 5, 0, 0, 60},
		{"istio.example.com", "VirtualService llm/llm", 5, 5, 5, 1, 0, 0, 0},
		{"gamma.llm.svc.cluster.local", "HTTPRoute llm/gamma", 2, 2, 2, 1, 0, 0, 0},
		{"traefik.example.com", "Traefik Middleware llm/again", 4, 1, 1, 1, 0, 0, 0},
	} {
		i := slices.IndexFunc(paths, func(p Path) bool { return p.Host == c.host })
		if i < 0 || paths[i].To != "llm/vllm" || len(paths[i].Layers) != 2 {
			t.Errorf("%s: %d of %+v", c.host, i, paths)
			continue
		}
		l := paths[i].Layers[1]
		want := map[layers.Class]int{layers.Connect: c.connect, layers.Reset: c.reset, layers.Server: c.server, layers.Capacity: c.capacity}
		if l.Name != c.layer || !maps.Equal(l.Attempts, want) || l.Budget != c.budget || l.PerTry != c.perTry || l.Timeout != c.timeout {
			t.Errorf("%s: %+v", c.host, l)
		}
		if sdk := paths[i].Layers[0]; sdk.Attempts[layers.Server] != 1 || sdk.Timeout != 300 || sdk.Assumed != "" {
			t.Errorf("%s: %+v", c.host, sdk)
		}
	}
}

// A Gateway is also reached by the Service that its controller makes for it.
func TestGatewayByItsService(t *testing.T) {
	data, err := os.ReadFile("testdata/paths/everyday.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"envoy-infra-edge-12ab34cd.envoy-gateway-system": 108, "envoy-infra-edge.envoy-gateway-system.svc.cluster.local": 108,
		"edge.infra": 108, "edge-eg.infra.svc": 108, "made.infra": 108,
		"edge.apps": 3, "envoy-other-edge-12ab34cd.envoy-gateway-system": 3,
	} {
		text := strings.ReplaceAll(string(data), "https://llm.example.com", "http://"+host+":8080") + `
---
apiVersion: v1
kind: Service
metadata:
  name: made
  namespace: infra
  labels: {gateway.envoyproxy.io/owning-gateway-name: edge, gateway.envoyproxy.io/owning-gateway-namespace: infra}
spec: {selector: {app: envoy}}
`
		paths, err := New(topology.New(objects(t, text), "")).Named("agent")
		if err != nil || len(paths) == 0 || paths[0].Worst.Calls != want {
			t.Errorf("%s: %v, %d paths: %s", host, err, len(paths), treeOf(t, paths, 80))
		}
	}
}

// A VirtualService for HTTP does not see what its callers encrypt, and one that
// is not exported or stands behind no sidecar does nothing.
func TestVirtualServiceThatDoesNotApply(t *testing.T) {
	data, err := os.ReadFile("testdata/paths/mesh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, old, new string
		calls          int
	}{
		{"it applies", "", "", 24},
		{"TLS", "http://llm-gateway.llm", "https://llm-gateway.llm", 6},
		{"no sidecar", "istio-injection: enabled", "istio-injection: disabled", 6},
		{"for gateways only", "  hosts: [llm-gateway.llm.svc.cluster.local]", "  hosts: [llm-gateway.llm.svc.cluster.local]\n  gateways: [edge/public]", 6}, // what is left is Istio's default
		{"exported to others", "  hosts: [llm-gateway.llm.svc.cluster.local]", "  hosts: [llm-gateway.llm.svc.cluster.local]\n  exportTo: [other]", 6},
		{"no namespace was read", "kind: Namespace", "kind: Other", 24},
	} {
		paths, err := New(topology.New(objects(t, strings.Replace(string(data), c.old, c.new, 1)), "")).Named("copilot")
		if err != nil || len(paths) == 0 || paths[0].Products[0].Calls != c.calls {
			t.Errorf("%s: %v: %s", c.name, err, treeOf(t, paths, 80))
			continue
		}
		sees := slices.ContainsFunc(paths[0].Layers, func(l Layer) bool { return strings.HasPrefix(l.Name, "VirtualService") })
		if sees != (c.calls == 24) {
			t.Errorf("%s: %s", c.name, treeOf(t, paths, 80))
		}
	}
}

// A gateway that says that it hands out refusals as faults makes those outside
// of it repeat them.
func TestHandsAnnotation(t *testing.T) {
	all := example(t, "seven")
	before, _ := New(topology.New(all, "")).Named("copilot")
	for _, o := range all {
		if o.Kind == "Deployment" && o.Name == "llm-gateway" {
			o.Root["metadata"].(map[string]any)["annotations"] = map[string]any{HandsAnnotation: "429=5xx, nonsense, 429=500"}
		}
		if o.Kind == "BackendTrafficPolicy" {
			o.Root["spec"].(map[string]any)["retry"] = map[string]any{"numRetries": 1.0}
		}
	}
	after, _ := New(topology.New(all, "")).Named("copilot")
	if was, is := before[0].Products[3].Calls, after[0].Products[3].Calls; was != 49 || is != 98 {
		t.Errorf("429 made %d calls, and %d where it is handed out as 5xx; want 49 and 98", was, is)
	}
}

func TestPathOf(t *testing.T) {
	g := topology.New(append(example(t, "seven"), example(t, "mesh")...), "")
	for _, name := range []string{"llm/vllm", "deployment/llm/vllm", "vllm"} {
		if paths, err := New(g).Named(name); err != nil || len(paths) != 1 || paths[0].Client.Name != "copilot" {
			t.Errorf("%s: %d paths, %v", name, len(paths), err)
		}
	}
	for name, want := range map[string]string{
		"copilto":        "the nearest are apps/copilot",
		"pilot":          "the nearest are apps/copilot",
		"zzzzzzzz":       "workloads were read, such as",
		"other/copilot":  "the nearest are apps/copilot",
		"a/b/c/d":        "there is none",
		"":               "there is none",
		"job/apps/vllm":  "there is none",
		"Deployment/llm": "there is none",
	} {
		if _, err := New(g).Named(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	both := append(example(t, "seven"), example(t, "circle")...)
	if _, err := New(topology.New(both, "")).Named("copilot"); err == nil || !strings.Contains(err.Error(), "Deployment/apps/copilot, Deployment/llm/copilot") {
		t.Errorf("ambiguous: %v", err)
	}
	if _, err := New(topology.New(nil, "")).Named("copilot"); err == nil || !strings.Contains(err.Error(), "no workload was read") {
		t.Errorf("nothing read: %v", err)
	}
}

// A gateway that is configured by a file of its own has an assumed client.
func TestPathOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "litellm.yaml")
	text := "model_list: [{model_name: m, litellm_params: {model: openai/m}}]\nrouter_settings: {num_retries: 6}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(t.Context(), manifest.Options{Paths: []string{name}})
	if err != nil || len(set.Problems) > 0 {
		t.Fatal(err, set.Problems)
	}
	paths, err := New(topology.New(set.Objects, "")).Named(name)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%d paths, %v", len(paths), err)
	}
	if _, err := New(topology.New(set.Objects, "")).Named("zzzz"); err == nil || !strings.Contains(err.Error(), "1 workloads were read, such as") {
		t.Error(err)
	}
	p := paths[0]
	if p.Known || p.Worst.Calls != 21 || p.To != "api.openai.com" || p.Layers[1].Place.File != name || p.Layers[1].Place.Line != 2 {
		t.Errorf("%+v", p)
	}
}

func TestPathsDoNotDependOnOrder(t *testing.T) {
	all := append(append(example(t, "mesh"), example(t, "kong")...), example(t, "everyday")...)
	want := treeOf(t, New(topology.New(all, "")).All(), 80)
	rapid.Check(t, func(rt *rapid.T) {
		mixed := slices.Clone(all)
		rand.New(rand.NewSource(rapid.Int64().Draw(rt, "order"))).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if got := treeOf(t, New(topology.New(mixed, "")).All(), 80); got != want {
			rt.Fatalf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

// The JSON has lists where there is nothing, and no secret.
func TestPathJSON(t *testing.T) {
	data, err := json.Marshal(New(topology.New(example(t, "kong"), "")).All())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("null")) {
		t.Errorf("null in %s", data)
	}
	for _, want := range []string{`"client":{"group":"apps"`, `"calls":12`, `"file":"-","line":15`, `"nesting":[]`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}

func TestTreeFitsItsWidth(t *testing.T) {
	paths := append(New(topology.New(example(t, "unknown"), "")).All(), New(topology.New(example(t, "everyday"), "")).All()...)
	for _, width := range []int{-1, 0, 10, 40, 53, 80, 200} {
		most := max(width, leastWidth)
		if width <= 0 {
			most = defaultWidth
		}
		for line := range strings.Lines(treeOf(t, paths, width)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
	if got := treeOf(t, nil, 80); got != "no path to a model was found\n" {
		t.Errorf("%q", got)
	}
}

// Names come from whoever wrote the objects, and go to a terminal.
func TestTreeHasNoCommandsForTheTerminal(t *testing.T) {
	p := Path{Client: manifest.Ref{Kind: "Deployment", Name: "a\x1b[31mb\u009bc\r\nd"}, Worst: Product{}}
	if got := treeOf(t, []Path{p}, 80); strings.ContainsAny(got, "\x1b\u009b\r") || !strings.Contains(got, "a[31mbcd") {
		t.Errorf("%q", got)
	}
}

// A graph in which every gateway leads to every other has more paths than atoms;
// the walk ends, and says that it did not go on.
func TestWalkIsBounded(t *testing.T) {
	const n = 12
	var targets []string
	for i := range n {
		targets = append(targets, fmt.Sprintf("{model_name: m%d, litellm_params: {model: openai/m, api_base: 'http://g%d:1'}}", i, i))
	}
	text := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: copilot, namespace: llm}
spec: {template: {metadata: {labels: {app: c}}, spec: {containers: [{name: app, image: a, env: [{name: OPENAI_BASE_URL, value: "http://g0:1"}]}]}}}
`
	for i := range n {
		text += fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: g%[1]d, namespace: llm}
spec: {selector: {app: g%[1]d}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: g%[1]d, namespace: llm}
spec:
  template:
    metadata: {labels: {app: g%[1]d}}
    spec: {containers: [{name: main, image: "ghcr.io/berriai/litellm:v1"}], volumes: [{name: c, configMap: {name: all}}]}
`, i)
	}
	text += "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: all, namespace: llm}\ndata:\n  config.yaml: \"{model_list: [" + strings.Join(targets, ", ") + "]}\"\n"
	start := time.Now()
	paths, err := New(topology.New(objects(t, text), "")).Named("copilot")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != maxPaths || time.Since(start) > 5*time.Second {
		t.Errorf("%d paths in %s", len(paths), time.Since(start))
	}
	if !slices.ContainsFunc(paths, func(p Path) bool { return slices.Contains(p.Notes, "there are more paths, which were not followed") }) {
		t.Error("no path says that there are more")
	}
}

// What stands in a base URL's place without being an address is not shown.
func TestNoAddressIsShown(t *testing.T) {
	const key = "sk-proj-abcdef"
	g := topology.New(objects(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: llm}
spec:
  template:
    metadata: {labels: {app: chat}}
    spec: {containers: [{name: app, image: chat:1, env: [{name: OPENAI_BASE_URL, value: `+key+`}, {name: OPENAI_API_KEY, value: x}]}]}
`), "")
	var out strings.Builder
	if err := Tree(&out, New(g).All(), 80); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), key) {
		t.Errorf("the key is shown:\n%s", out.String())
	}
}
