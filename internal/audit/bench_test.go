package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/manifest"
)

// cluster are n objects or some more: the manifests of all checks, each copy in
// namespaces and with host names of its own.
func cluster(tb testing.TB, n int) []*manifest.Object {
	tb.Helper()
	names, err := filepath.Glob("testdata/checks/*.yaml")
	if err != nil || len(names) == 0 {
		tb.Fatal(err, "no manifests")
	}
	var texts []string
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	var list []*manifest.Object
	for i := 0; len(list) < n; i++ {
		own := strings.NewReplacer(
			"namespace: llm", fmt.Sprintf("namespace: llm-%d", i), "namespace: apps", fmt.Sprintf("namespace: apps-%d", i),
			"llm.example.com", fmt.Sprintf("llm-%d.example.com", i), ".llm:", fmt.Sprintf(".llm-%d:", i),
			"namespace: istio-system", fmt.Sprintf("namespace: istio-system-%d", i), "namespace: argocd", fmt.Sprintf("namespace: argocd-%d", i))
		for _, o := range objects(tb, own.Replace(texts[i%len(texts)])) {
			o.Origin.File = fmt.Sprintf("%d.yaml", i)
			list = append(list, o)
		}
	}
	return list
}

func BenchmarkRun(b *testing.B) {
	list := cluster(b, 5000)
	if _, err := programs(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Run(context.Background(), Input{Objects: list}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(r.Findings)), "findings")
		b.ReportMetric(float64(r.Coverage.Pass), "passes")
	}
}
