package audit

import (
	"fmt"
	"strings"
	"testing"
)

// stackOf is one team's way to a model: 113 objects with 8 of them.
const stackOf = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: copilot-%[1]d, namespace: %[2]s}
spec:
  template:
    metadata: {labels: {app: copilot-%[1]d}}
    spec: {containers: [{name: app, image: a, env: [{name: OPENAI_BASE_URL, value: "https://llm-%[1]d.example.com/v1"}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gw-%[1]d, namespace: %[2]s}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: gw-%[1]d}}
    spec:
      containers: [{name: main, image: "ghcr.io/berriai/litellm:v1", resources: {requests: {memory: 1Gi}}}]
      volumes: [{name: cfg, configMap: {name: litellm-%[1]d}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: vllm-%[1]d, namespace: %[2]s}
spec:
  template: {metadata: {labels: {app: vllm-%[1]d}}, spec: {containers: [{name: main, image: "vllm/vllm-openai:v1"}]}}
---
apiVersion: v1
kind: Service
metadata: {name: gw-%[1]d, namespace: %[2]s}
spec: {selector: {app: gw-%[1]d}, ports: [{port: 4000}]}
---
apiVersion: v1
kind: Service
metadata: {name: vllm-%[1]d, namespace: %[2]s}
spec: {selector: {app: vllm-%[1]d}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: litellm-%[1]d, namespace: %[2]s}
data: {config.yaml: "{model_list: [{model_name: m, litellm_params: {model: openai/m, api_base: 'http://vllm-%[1]d:8000'}}], router_settings: {num_retries: 2}}"}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: chat-%[1]d, namespace: %[2]s}
spec:
  parentRefs: [{name: edge, namespace: infra}]
  hostnames: [llm-%[1]d.example.com]
  rules: [{backendRefs: [{name: gw-%[1]d, port: 4000}], timeouts: {request: 60s}}]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: chat-%[1]d, namespace: %[2]s}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: chat-%[1]d}]
  retry: {numRetries: 2, perRetry: {timeout: 30s}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: gw-%[1]d, namespace: %[2]s}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: gw-%[1]d}, minReplicas: 2, maxReplicas: 9}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: gw-%[1]d, namespace: %[2]s}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: gw-%[1]d}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: copilot-%[1]d, namespace: %[2]s}
spec: {podSelector: {matchLabels: {app: copilot-%[1]d}}, policyTypes: [Egress], egress: [{}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v-%[1]d, namespace: %[2]s}
spec:
  hosts: [vllm-%[1]d]
  http: [{retries: {attempts: 2, retryOn: 5xx}, route: [{destination: {host: vllm-%[1]d}}]}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: v-%[1]d, namespace: %[2]s}
spec: {host: vllm-%[1]d, trafficPolicy: {outlierDetection: {}}}
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIServiceBackend
metadata: {name: b-%[1]d, namespace: %[2]s}
spec: {backendRef: {name: vllm-%[1]d}}
`

const perStack = 14

// manyObjects are about n objects, all of them in one namespace or each team's in
// its own.
func manyObjects(n int, together bool) string {
	var all []string
	for i := range n / perStack {
		space := "llm"
		if !together {
			space = fmt.Sprintf("team-%d", i)
		}
		all = append(all, fmt.Sprintf(stackOf, i, space))
	}
	return strings.Join(all, "\n---\n")
}

func allRules(tb testing.TB, g *evidence) (hits int) {
	tb.Helper()
	for id, rule := range rules() {
		for _, kind := range reported(tb, id) {
			for _, o := range g.Kind(kind) {
				hits += len(rule(g, o))
			}
		}
	}
	return hits
}

func BenchmarkGraphRules(b *testing.B) {
	for _, n := range []int{113, 452, 4520} {
		for _, together := range []bool{false, true} {
			list := objects(b, manyObjects(n, together))
			name := map[bool]string{false: "apart", true: "together"}[together]
			b.Run(fmt.Sprintf("%s/%d/graph", name, n), func(b *testing.B) {
				for b.Loop() {
					gather(list, Options{})
				}
			})
			b.Run(fmt.Sprintf("%s/%d/rules", name, n), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					g := gather(list, Options{})
					b.StartTimer()
					if allRules(b, g) == 0 {
						b.Fatal("nothing was found")
					}
				}
			})
		}
	}
}
