package render

import (
	"fmt"
	"io"
	"testing"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/manifest"
)

// large is the fixture with ten thousand findings on half as many objects.
func large(t testing.TB) *Audit {
	a := fixture(t)
	some := a.Report.Findings
	a.Report.Findings = nil
	for i := range 10_000 {
		f := some[i%len(some)]
		f.Object = manifest.Ref{Kind: "Deployment", Namespace: "llm", Name: fmt.Sprintf("d%d", i/2)}
		f.Key = fmt.Sprint(i)
		a.Report.Findings = append(a.Report.Findings, f)
		a.Report.Passed = append(a.Report.Passed, audit.Passed{ID: "AVL-001", Object: f.Object})
	}
	return a
}

func BenchmarkWrite(b *testing.B) {
	a := large(b)
	for _, f := range Formats() {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := a.Write(io.Discard, f, Screen{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
