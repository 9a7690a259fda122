package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/manifest"
)

// objects reads manifests for a test.
func objects(t testing.TB, text string) []*manifest.Object {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	var list []*manifest.Object
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		root, ok := plain(v, 0).(map[string]any)
		if !ok {
			continue
		}
		list = append(list, objectOf(root))
	}
}

func objectOf(root map[string]any) *manifest.Object {
	o := &manifest.Object{Root: root, Origin: manifest.Origin{File: "test.yaml", Line: 1}}
	api, _ := Text(root, "apiVersion")
	o.Version = api
	for i := range api {
		if api[i] == '/' {
			o.Group, o.Version = api[:i], api[i+1:]
		}
	}
	o.Kind, _ = Text(root, "kind")
	o.Name, _ = Text(root, "metadata.name")
	o.Namespace, _ = Text(root, "metadata.namespace")
	return o
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
