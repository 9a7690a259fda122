package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/manifest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: llm}
spec:
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec: {%s}
---
`

func deploymentOf(name, spec string) string { return fmt.Sprintf(deployment, name, name, name, spec) }

const service = `
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: llm}
spec: {selector: {app: %s}}
---
`

func serviceOf(name string) string { return fmt.Sprintf(service, name, name) }

// Who is what on the way to a model, and by what that is known.
func TestRoles(t *testing.T) {
	key := `env: [{name: OPENAI_API_KEY, valueFrom: {secretKeyRef: {name: a, key: b}}}]`
	calls := func(url string) string {
		return deploymentOf("app", `containers: [{name: a, image: app, env: [{name: OPENAI_BASE_URL, value: "`+url+`"}]}]`)
	}
	plain := `containers: [{name: a, image: own}]`
	for _, c := range []struct {
		name, text string
		want       string // role of Deployment x, and a part of the reason
	}{
		{"an image", deploymentOf("x", `containers: [{name: a, image: "ghcr.io/berriai/litellm:main"}]`), "gateway image ghcr.io/berriai/litellm"},
		{"an image by digest from a mirror with a port", deploymentOf("x", `containers: [{name: a, image: "r.example:5000/m/vllm/vllm-openai@sha256:12"}]`), "server image"},
		{"a name that contains a known one", deploymentOf("x", `containers: [{name: a, image: envoyproxy/ai-gateway-testupstream}]`), ""},
		{"a known name as the owner", deploymentOf("x", `containers: [{name: a, image: vllm/vllm-openai/tools}]`), ""},
		{"an init container's image", deploymentOf("x", `containers: [{name: a, image: a}], initContainers: [{name: i, image: vllm/vllm-openai}]`), ""},
		{"a base URL as Open WebUI has it", deploymentOf("x", `containers: [{name: a, image: app, env: [{name: OPENAI_API_BASE_URL, value: "http://models:8000/v1"}]}]`), "client environment variable OPENAI_API_BASE_URL"},
		{"an accelerator of another vendor", calls("http://x") + serviceOf("x") + deploymentOf("x", `containers: [{name: a, image: own, resources: {limits: {aws.amazon.com/neuron: 8}}}]`), "server behind Service"},
		{"a part of a GPU", calls("http://x") + serviceOf("x") + deploymentOf("x", `containers: [{name: a, image: own, resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}]`), "server behind Service"},
		{"no accelerator", calls("http://x") + serviceOf("x") + deploymentOf("x", `containers: [{name: a, image: own, resources: {limits: {ephemeral-storage: 8Gi, example.com/dongle: 1}}}]`), "gateway behind Service"},
		{"a provider's key", deploymentOf("x", `containers: [{name: a, image: app, `+key+`}]`), "client environment variable OPENAI_API_KEY"},
		{"a provider's host in any variable", deploymentOf("x", `containers: [{name: a, image: app, env: [{name: UPSTREAM, value: "https://sc.openai.azure.com/x"}]}]`), "client environment variable UPSTREAM names"},
		{"a host that only begins so", deploymentOf("x", `containers: [{name: a, image: app, env: [{name: UPSTREAM, value: "https://api.openai.com.example.net"}]}]`), ""},
		{"a gateway's image with a provider's key", deploymentOf("x", `containers: [{name: a, image: berriai/litellm, `+key+`}]`), "gateway image"},
		{"a gateway's configuration and a provider's key", deploymentOf("x", `containers: [{name: a, image: own, `+key+`}], volumes: [{name: v, configMap: {name: c}}]`) + `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: llm}
data: {config.yaml: "model_list: [{model_name: a}]"}
`, "gateway mounts the configuration of LiteLLM"},
		{"what is called is a gateway", calls("http://x.llm:4000/v1") + deploymentOf("x", plain) + serviceOf("x"), "gateway behind Service llm/x, called by Deployment llm/app"},
		{"called by its short name", calls("http://x:4000/v1") + deploymentOf("x", plain) + serviceOf("x"), "gateway behind"},
		{"a short name is one of the own namespace", strings.Replace(calls("http://x:4000/v1"), "namespace: llm", "namespace: apps", 1) + deploymentOf("x", plain) + serviceOf("x"), ""},
		{"what is called and has an accelerator is a server", calls("http://x.llm.svc.cluster.local/v1") + deploymentOf("x", `containers: [{name: a, image: own, resources: {limits: {nvidia.com/gpu: 1}}}]`) + serviceOf("x"), "server behind"},
		{"called through a route", calls("https://llm.example.com/v1") + deploymentOf("x", plain) + serviceOf("x") + `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: llm}
spec: {hostnames: [llm.example.com], rules: [{backendRefs: [{name: x}]}]}
`, "gateway behind Service llm/x, behind HTTPRoute llm/r"},
		{"one of several behind a host may be anything", calls("https://llm.example.com/v1") + deploymentOf("x", plain) + serviceOf("x") + `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: llm}
spec: {hostnames: [llm.example.com], rules: [{backendRefs: [{name: x}]}, {backendRefs: [{name: y}]}]}
`, ""},
		{"called through an Ingress", calls("https://llm.example.com/v1") + deploymentOf("x", plain) + serviceOf("x") + `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i, namespace: llm}
spec: {rules: [{host: llm.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: x, port: {number: 1}}}}]}}]}
`, "gateway behind"},
		{"called through a mesh", calls("https://llm.example.com/v1") + deploymentOf("x", plain) + serviceOf("x") + `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: llm}
spec: {hosts: [llm.example.com], http: [{route: [{destination: {host: x}}]}]}
`, "gateway behind Service llm/x, behind VirtualService llm/v"},
		{"selected by a pool", deploymentOf("x", plain) + `
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: p, namespace: llm}
spec: {selector: {matchLabels: {app: x}}}
`, "server selected by InferencePool llm/p"},
		{"the picker of a pool", deploymentOf("x", plain) + serviceOf("x") + `
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: p, namespace: llm}
spec: {selector: {matchLabels: {app: y}}, endpointPickerRef: {name: x}}
`, "epp endpoint picker of InferencePool llm/p"},
		{"a declared role goes first", strings.Replace(deploymentOf("x", `containers: [{name: a, image: vllm/vllm-openai}]`), "labels: {app: x}", "labels: {app: x, hourthree.dev/role: gateway}", 1), "gateway label hourthree.dev/role"},
		{"a Service nobody calls", deploymentOf("x", plain) + serviceOf("x"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := New(objects(t, c.text), "")
			got := ""
			for _, role := range g.Roles() {
				if role.Object.Name == "x" {
					got = string(role.Role) + " " + role.By
				}
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What is on the path because of something else, and what is not.
func TestWhatIsOnThePath(t *testing.T) {
	gw := deploymentOf("gw", `containers: [{name: a, image: berriai/litellm}]`) + serviceOf("gw")
	route := `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: llm}
spec: {parentRefs: [{name: edge, namespace: infra}], rules: [{backendRefs: [{name: gw}]}]}
---
`
	for _, c := range []struct {
		name, text, kind, object string
		want                     bool
	}{
		{"a Gateway of a route", route + `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: c}
`, "Gateway", "edge", true},
		{"Istio's Gateway is another kind", route + `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
`, "Gateway.networking.istio.io", "edge", false},
		{"a Service of Knative is another kind", route + `
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: gw, namespace: llm}
`, "Service.serving.knative.dev", "gw", false},
		{"a policy by labels", strings.Replace(route, "name: r,", "name: r, labels: {tier: llm},", 1) + `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: p, namespace: llm}
spec: {targetSelectors: [{kind: HTTPRoute, matchLabels: {tier: llm}}]}
`, "BackendTrafficPolicy", "p", true},
		{"a policy by other labels", strings.Replace(route, "name: r,", "name: r, labels: {tier: shop},", 1) + `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: p, namespace: llm}
spec: {targetSelectors: [{kind: HTTPRoute, matchLabels: {tier: llm}}]}
`, "BackendTrafficPolicy", "p", false},
		{"a policy on the HTTPRoute that an AIGatewayRoute makes", `
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: {name: chat, namespace: llm}
spec: {rules: []}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: p, namespace: llm}
spec: {targetRefs: [{kind: HTTPRoute, name: chat}]}
`, "BackendTrafficPolicy", "p", true},
		{"a provider's host", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: llm}
spec: {hosts: [bedrock-runtime.eu-west-1.amazonaws.com]}
`, "ServiceEntry", "e", true},
		{"the rest of a provider's cloud", `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: e, namespace: llm}
spec: {hosts: [s3.eu-west-1.amazonaws.com]}
`, "ServiceEntry", "e", false},
		{"a pod of the gateway", `
apiVersion: v1
kind: Pod
metadata: {name: gw-0, namespace: llm, labels: {app: gw}}
`, "Pod", "gw-0", true},
		{"a rollout of the gateway", `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: roll, namespace: llm}
spec: {workloadRef: {name: gw}}
`, "Rollout", "roll", true},
		{"a quota beside the gateway", `
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: llm}
`, "ResourceQuota", "q", true},
		{"a quota elsewhere", `
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: shop}
`, "ResourceQuota", "q", false},
		{"a policy that selects the gateway", `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: n, namespace: llm}
spec: {podSelector: {matchLabels: {app: gw}}}
`, "NetworkPolicy", "n", true},
		{"a policy that selects another workload", deploymentOf("shop", `containers: [{name: a, image: shop}]`) + `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: n, namespace: llm}
spec: {podSelector: {matchLabels: {app: shop}}}
`, "NetworkPolicy", "n", false},
		{"a policy of another namespace", `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: n, namespace: shop}
spec: {podSelector: {}}
`, "NetworkPolicy", "n", false},
		{"a ConfigMap of something else", `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: llm}
data: {app.yaml: "providers: {a: {url: b}}"}
`, "ConfigMap", "c", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := New(objects(t, gw+c.text), "")
			list := g.Kind(c.kind)
			i := slices.IndexFunc(list, func(o *manifest.Object) bool { return o.Name == c.object })
			if i < 0 {
				t.Fatal("not found")
			}
			if g.On(list[i]) != c.want {
				t.Errorf("on the path: %v, by %q", !c.want, g.on[list[i]])
			}
		})
	}
}

// A chain of references made to be followed for ever is followed some way.
func TestChainsAreBounded(t *testing.T) {
	const n = 2 * maxRounds
	var b strings.Builder
	b.WriteString(deploymentOf("app", `containers: [{name: a, image: app, env: [{name: OPENAI_BASE_URL, value: "https://llm.example.com/v1"}]}]`))
	for i := range n { // each leads to the one before it in the order of names
		hosts := ""
		if i == n-1 {
			hosts = "hostnames: [llm.example.com], "
		}
		fmt.Fprintf(&b, "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r%04d, namespace: llm}\nspec: {%srules: [{backendRefs: [{kind: HTTPRoute, name: r%04d}]}]}\n---\n", i, hosts, i-1)
	}
	on := 0
	g := New(objects(t, b.String()), "")
	for _, o := range g.Kind("HTTPRoute") {
		if g.On(o) {
			on++
		}
	}
	if on < 10 || on > maxRounds+1 {
		t.Errorf("%d routes are on the path", on)
	}
}

// What names no namespace is in that of the options; what has none, or comes from
// a cluster, stays so. The caller's objects are not changed.
func TestAbsentNamespaces(t *testing.T) {
	list := []*manifest.Object{
		{Version: "v1", Kind: "Service", Name: "a"},
		{Version: "v1", Kind: "Node", Name: "b"},
		{Version: "v1", Kind: "Widget", Name: "c", Origin: manifest.Origin{Live: true}},
	}
	g := New(list, "team")
	if g.Get("Service", "team", "a") == nil || g.Get("Node", "", "b") == nil || g.Get("Widget", "", "c") == nil || list[0].Namespace != "" {
		t.Errorf("%v %v", g.Objects()[1].Ref(), list[0].Ref())
	}
}
