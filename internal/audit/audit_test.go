package audit

import (
	"context"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/manifest"
)

// objects reads manifests for a test. They must be without fault.
func objects(t testing.TB, text string) []*manifest.Object {
	t.Helper()
	set, err := manifest.Read(context.Background(), manifest.Options{Paths: []string{"-"}, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Problems {
		t.Errorf("%+v", p)
	}
	return set.Objects
}

func run1(t testing.TB, in Input, opt Options) *Report {
	t.Helper()
	r, err := Run(context.Background(), in, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunEndToEnd(t *testing.T) {
	r := run1(t, Input{Objects: objects(t, `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: llm, namespace: llm}
spec:
  hosts: [api.openai.com]
  http:
  - route: [{destination: {host: api.openai.com}}]
  - retries: {attempts: 2, retryOn: "connect-failure,429"}
    route: [{destination: {host: api.openai.com}}]
`)}, Options{Checks: []string{"RTY-002"}})
	if len(r.Findings) != 1 || r.Findings[0].Path != "spec.http[1].retries.retryOn" || r.Findings[0].Observed != "connect-failure,429" || r.Coverage.Fail != 1 {
		t.Errorf("%+v", r)
	}
}

// A report says when nothing that it was given has to do with models: then no
// finding means nothing.
func TestNothingOnTheWayToAModel(t *testing.T) {
	const page = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: page, namespace: web}
spec: {template: {metadata: {labels: {app: page}}, spec: {containers: [{name: main, image: nginx}]}}}`
	if r := run1(t, Input{Objects: objects(t, page)}, Options{}); !r.Empty || len(r.Findings) > 0 {
		t.Errorf("%+v", r)
	}
	said := strings.Replace(page, "labels: {", "labels: {hourthree.dev/role: server, ", 1)
	if r := run1(t, Input{Objects: objects(t, said)}, Options{}); r.Empty {
		t.Errorf("%+v", r.Roles)
	}
}
