package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/kubetest"
)

const workload = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: gateway-%d
  namespace: llm
  labels: {app: gateway, team: platform}
spec:
  replicas: 3
  selector: {matchLabels: {app: gateway}}
  template:
    metadata: {labels: {app: gateway}}
    spec:
      containers:
      - name: main
        image: registry.example/litellm:1.2.3
        args: ["--config", "/etc/litellm/config.yaml", "--port", "4000"]
        env:
        - {name: OPENAI_API_KEY, valueFrom: {secretKeyRef: {name: openai, key: key}}}
        - {name: OPENAI_MAX_RETRIES, value: "2"}
        ports: [{containerPort: 4000}]
        resources: {limits: {memory: 1Gi, cpu: "2"}}
        livenessProbe: {httpGet: {path: /health, port: 4000}, periodSeconds: 10}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
`

func workloads(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, workload, i)
	}
	return b.String()
}

// BenchmarkList reads 5,000 objects in pages of 500; the server's own work counts too.
func BenchmarkList(b *testing.B) {
	s := kubetest.New(b, workloads(5000))
	c := open(b, s, Options{Resources: resources[3:4], MaxTotal: 1 << 40})
	before := kept()
	b.ReportAllocs()
	var r *Result
	for b.Loop() {
		if r = listed(b, c); len(r.Objects) != 5000 {
			b.Fatal(len(r.Objects), r.Gaps)
		}
	}
	b.ReportMetric(float64(kept()-before)/(1<<20), "MiB-kept")
	runtime.KeepAlive(r)
}

// BenchmarkPage is the work on this side alone.
func BenchmarkPage(b *testing.B) {
	s := kubetest.New(b, workloads(5000))
	var items []any
	for _, o := range listed(b, open(b, s, Options{Resources: resources[3:4]})).Objects {
		items = append(items, o.Root)
	}
	text, err := json.Marshal(map[string]any{"kind": "DeploymentList", "metadata": map[string]any{}, "items": items})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		p := page{words: map[string]string{}, item: func(map[string]any) error { n++; return nil }}
		if err := p.read(bytes.NewReader(text)); err != nil || n != 5000 {
			b.Fatal(err, n)
		}
	}
}

func kept() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
