package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// workloads are many Deployments, as long as those of real gateways.
func workloads(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, workload, i)
	}
	return b.String()
}

const workload = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: gateway-%d
  namespace: llm
  labels:
    app: gateway
    team: platform
spec:
  replicas: 3
  selector:
    matchLabels:
      app: gateway
  template:
    metadata:
      labels:
        app: gateway
    spec:
      containers:
      - name: main
        image: registry.example/litellm:1.2.3
        args: ["--config", "/etc/litellm/config.yaml", "--port", "4000"]
        env:
        - name: OPENAI_API_KEY
          valueFrom:
            secretKeyRef:
              name: openai
              key: key
        - name: OPENAI_MAX_RETRIES
          value: "2"
        ports:
        - containerPort: 4000
        resources:
          limits:
            memory: 1Gi
            cpu: "2"
        livenessProbe:
          httpGet:
            path: /health
            port: 4000
          periodSeconds: 10
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
`

func bench(b *testing.B, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var s *Set
	for b.Loop() {
		var err error
		if s, err = Read(context.Background(), Options{Paths: []string{"-"}, Stdin: strings.NewReader(text)}); err != nil || len(s.Objects) != 5000 {
			b.Fatal(err, len(s.Objects))
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-kept")
	runtime.KeepAlive(s)
}

func BenchmarkReadYAML(b *testing.B) { bench(b, workloads(5000)) }

func BenchmarkReadJSON(b *testing.B) {
	items := []any{}
	for _, o := range given(b, workloads(5000)).Objects {
		items = append(items, o.Root)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "    ")
	if err := e.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
		b.Fatal(err)
	}
	bench(b, text.String())
}
