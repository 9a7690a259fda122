package manifest

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestGatewaysAreKnown(t *testing.T) {
	example, err := os.ReadFile("../config/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, text, kind string }{
		{"config.yaml", "model_list:\n- model_name: x\n", LiteLLM},
		{"config.yaml", "litellm_settings: {num_retries: 3}\n", LiteLLM},
		{"config.yaml", "router_settings: {}\ngeneral_settings: {}\n", LiteLLM},
		{"envoy.yaml", "static_resources: {clusters: []}\n", Envoy},
		{"envoy.json", `{"admin": {}, "static_resources": {}}`, Envoy},
		{"bootstrap.yaml", "dynamic_resources: {}\n", Envoy},
		{"kong.yml", "_format_version: \"3.0\"\nservices: []\n", Kong},
		{"portkey.json", `{"strategy": {"mode": "fallback"}, "targets": [{"provider": "openai"}]}`, Portkey},
		{"portkey.json", `{"retry": {"attempts": 5}, "virtual_key": "x"}`, Portkey},
		{"portkey.json", `{"retry": {"attempts": 5}}`, Portkey},
		{"bifrost.json", `{"providers": {"openai": {"keys": [], "network_config": {"max_retries": 3}}}}`, Bifrost},
		{"hourthree.yaml", string(example), Hourthree},
		{"hourthree.yaml", "listen: 127.0.0.1:1\nadmin: {listen: x}\n", Hourthree},
		{"hourthree.yaml", "providers: {a: {type: openai}}\nmodels: {m: {targets: []}}\n", Hourthree},
		{"nginx.conf", "events {}\nhttp {\n  upstream llm { server a; }\n}\n", Nginx},
		{"default.conf", "server {\n  location / {\n    proxy_pass http://llm;\n  }\n}\n", Nginx},
		{"proxy.conf", "proxy_next_upstream error timeout;\n", Nginx},
		{"haproxy.cfg", "global\n  maxconn 100\ndefaults\n  mode http\nbackend llm\n  server a 1.2.3.4:80\n", HAProxy},
		{"proxy.conf", "frontend in\n  bind :80\n", HAProxy},
		{"hourthree.conf", "providers: {a: {type: openai}}\nmodels: {m: {targets: []}}\n", Hourthree},
		{"setup.cfg", "[metadata]\nname = x\n", ""},
		{"redis.conf", "maxmemory 1gb\n", ""},
		{"package.json", `{"name": "x", "scripts": {}}`, ""},
		{"docker-compose.yaml", "services: {a: {image: x}}\n", ""},
		{"values.yaml", "retry: {attempts: 3}\nreplicas: 2\n", ""},
		{"targets.yaml", "targets: [a, b]\n", ""},
	} {
		s := readPaths(t, Options{}, folder(t, map[string]string{c.file: c.text}))
		if c.kind == "" {
			if len(s.Objects) != 0 || len(s.Problems) != 1 || s.Problems[0].Lost || s.Problems[0].Remedy != expected {
				t.Errorf("%s %q: %+v", c.file, c.text, s)
			}
			continue
		}
		if len(s.Objects) != 1 || len(s.Problems) != 0 {
			t.Errorf("%s %q: %+v", c.file, c.text, s)
			continue
		}
		o := s.Objects[0]
		if o.Group != FileGroup || o.Kind != c.kind || o.Name != c.file || o.Namespace != "" || string(o.Text) != c.text {
			t.Errorf("%s %q: %+v", c.file, c.text, o)
		}
		if text := c.kind == Nginx || c.kind == HAProxy; text != (o.Root == nil) {
			t.Errorf("%s %q: root %v", c.file, c.text, o.Root)
		}
	}
}

// TestGatewaysFromInput: standard input has no name that says what it is.
func TestGatewaysFromInput(t *testing.T) {
	for text, kind := range map[string]string{
		"upstream llm {\n  server a;\n}\n": Nginx, "defaults\n  mode http\n": HAProxy, "model_list: []\n": LiteLLM, `{"_format_version": "3.0"}`: Kong,
	} {
		s := given(t, text)
		if len(s.Objects) != 1 || s.Objects[0].Kind != kind || s.Objects[0].Name != "stdin" || len(s.Problems) > 0 {
			t.Errorf("%q: %+v", text, s)
		}
	}
	s := given(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  nginx.conf: |\n    server {\n    }\n")
	if len(s.Objects) != 1 || s.Objects[0].Kind != "ConfigMap" {
		t.Errorf("%+v", s)
	}
}

// TestTwoFilesOfOneName: a gateway's file has no identity but its path.
func TestTwoFilesOfOneName(t *testing.T) {
	s := readPaths(t, Options{}, folder(t, map[string]string{"a/config.yaml": "model_list: []\n", "b/config.yaml": "model_list: []\n"}))
	if len(s.Objects) != 2 || len(s.Problems) != 0 {
		t.Errorf("%+v", s)
	}
}

const embedding1 = `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: llm}
data:
  proxy-read-timeout: "60"
  config.yaml: |

    # first
    model_list:
    - model_name: x
      litellm_params: {model: y}
    router_settings:
      num_retries: 6
  nginx.conf: |
    http {
      server {
      }
    }
  indented: |2
      model_list:
      - model_name: z
  folded: >
    model_list: []

  quoted: "model_list:\n- model_name: q\n"
  portkey.json: '{"strategy": {"mode": "fallback"}, "targets": []}'
  readme: |
    how to use providers: they are listed
  script.sh: |
    echo hello
    location=x
---
apiVersion: v1
kind: ConfigMap
metadata: {name: envoy, namespace: llm}
data:
  envoy.yaml: |-
    static_resources:
      clusters:
      - name: a
`

func TestEmbedded(t *testing.T) {
	s := given(t, embedding1)
	if len(s.Problems) != 0 {
		t.Fatal(s.Problems)
	}
	type place struct {
		name, path string
		line, col  int
	}
	var got []place
	for _, o := range s.Objects {
		for _, e := range o.Embedded() {
			path := map[string]string{LiteLLM: "model_list[0].litellm_params", Envoy: "static_resources.clusters[0].name"}[e.Kind]
			line, col := e.Position(path)
			got = append(got, place{e.Ref().String(), path, line, col})
			if e.Origin != o.Origin || e.Outer() != o || e.Group != FileGroup || len(e.Text) == 0 {
				t.Errorf("%+v", e)
			}
		}
	}
	want := []place{
		{"LiteLLM llm/a/config.yaml", "model_list[0].litellm_params", 11, 7},
		{"LiteLLM llm/a/folded", "model_list[0].litellm_params", 22, 11},
		{"LiteLLM llm/a/indented", "model_list[0].litellm_params", 21, 9},
		{"Nginx llm/a/nginx.conf", "", 15, 5},
		{"Portkey llm/a/portkey.json", "", 26, 3},
		{"LiteLLM llm/a/quoted", "model_list[0].litellm_params", 25, 11},
		{"Envoy llm/envoy/envoy.yaml", "static_resources.clusters[0].name", 40, 9},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}

func TestTextPositions(t *testing.T) {
	for _, e := range given(t, embedding1).Objects[0].Embedded() {
		if e.Kind == Nginx {
			if line, col := e.TextPosition(2, 3); line != 16 || col != 7 {
				t.Errorf("embedded: %d:%d", line, col)
			}
		}
	}
	s := given(t, "---\n# c\nmodel_list: []\nx: 1\n")
	if line, col := s.Objects[0].TextPosition(3, 2); line != 3 || col != 2 {
		t.Errorf("own file: %d:%d", line, col)
	}
	s = given(t, "a: 1\n---\nmodel_list: []\n")
	if line, col := s.Objects[0].TextPosition(2, 1); line != 3 || col != 1 {
		t.Errorf("second document: %d:%d", line, col)
	}
}

func TestBrokenEmbedded(t *testing.T) {
	s := given(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  config.yaml: |\n    model_list:\n    - [\n    x: }\n")
	if len(s.Objects) != 1 || len(s.Problems) != 1 {
		t.Fatalf("%+v", s)
	}
	if p := s.Problems[0]; p.Line != 8 || !p.Lost || !strings.HasPrefix(p.What, "data[config.yaml] of ConfigMap a: is not valid YAML") {
		t.Errorf("%+v", p)
	}
}

func TestLive(t *testing.T) {
	o, problems := Live(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "x"},
		"data": map[string]any{"c.yaml": "model_list: []\n"}})
	if len(problems) > 0 || o.Origin != (Origin{File: "cluster/x/ConfigMap/a.yaml", Line: 1, Live: true}) || len(o.Embedded()) != 1 {
		t.Fatalf("%+v %v", o, problems)
	}
	for _, o := range []*Object{o, o.Embedded()[0]} {
		if line, col := o.Position("data"); line != 1 || col != 1 {
			t.Errorf("%d:%d", line, col)
		}
	}
	if o, _ := Live(map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a"}}); o.Origin.File != "cluster/Node/a.yaml" {
		t.Errorf("%+v", o.Origin)
	}
}
