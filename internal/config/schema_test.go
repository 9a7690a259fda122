package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validates(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Load([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// TestExamples: each example is taken without a warning, and by editors.
func TestExamples(t *testing.T) {
	s := compiled(t)
	paths, _ := filepath.Glob("../../examples/*.yaml")
	if len(paths) < 3 {
		t.Fatal("where are the examples?")
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sk-x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "example.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(text), "\n"); !strings.HasPrefix(first, "# yaml-language-server: $schema=") || !strings.HasSuffix(first, "config.schema.json") {
			t.Errorf("%s: the first line is for editors, not %q", path, first)
		}
		here := strings.ReplaceAll(string(text), "/run/secrets/openai", key)
		if _, ps := Parse(path, []byte(here), func(string) (string, bool) { return "a-value-of-some-length", true }); len(ps) > 0 {
			t.Errorf("%s:\n%s", path, ps.Report())
		}
		if err := validates(t, s, string(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestExampleUncommented: what the example shows in comments is right too.
func TestExampleUncommented(t *testing.T) {
	var out []string
	text := string(Example())
	for line := range strings.Lines(text[strings.Index(text, "listen:"):]) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "# "); ok && (strings.Contains(rest, ": ") || strings.HasSuffix(rest, ":\n") || strings.HasPrefix(strings.TrimSpace(rest), "- ")) && !strings.HasPrefix(rest, "Without") {
			line = line[:strings.Index(line, "#")] + rest
		}
		out = append(out, line)
	}
	c, ps := Parse("example.yaml", []byte(strings.Join(out, "")), func(string) (string, bool) { return "a-value-of-some-length", true })
	if ps.Fatal() {
		t.Fatalf("%s\n%s", ps.Report(), strings.Join(out, ""))
	}
	if len(c.Providers) < 4 || len(c.Models) < 2 || len(c.Workloads) < 1 {
		t.Errorf("not all of it was read: %+v", c)
	}
}

// TestSchemaAgrees: the schema takes what the loader takes and refuses what it
// refuses, as far as one value is concerned.
func TestSchemaAgrees(t *testing.T) {
	s := compiled(t)
	for text, want := range map[string]bool{
		"listen: 127.0.0.1:1": true, "listen: ''": false, "lisen: x": false, "listen: [x]": false,
		"http: {max_body: 64MiB}": true, "http: {max_body: 4096}": true, "http: {max_body: much}": false, "http: {max_body: '${N}'}": true,
		"memory: {limit: auto}": true, "memory: {limit: 0}": false, "http: {max_body: auto}": false,
		"defaults: {timeouts: {idle: 1m30s}}": true, "defaults: {timeouts: {idle: 30}}": false, "defaults: {timeouts: {idle: -3s}}": false, "defaults: {queue: {wait: 0}}": true,
		"defaults: {timeouts: {headers: auto}}": true, "defaults: {timeouts: {idle: auto}}": false,
		"defaults: {retry: {attempts: 4}}": false, "defaults: {retry: {attempts: 2.5}}": false, "defaults: {retry: {ratio: 0.3}}": true,
		"providers: {x: {type: simulated}}": true, "providers: {x: {type: vertex}}": false, "providers: {x: {}}": false,
		"providers: {x: {type: simulated, simulated: {failure: {mode: 503}}}}": true, "providers: {x: {type: simulated, simulated: {failure: {mode: 501}}}}": false,
		"workloads:": true, "http:": true, "models: {m: {targets: [{provider: x, order: 0}]}}": false, "models: {m: {targets: [{}]}}": false, "models: {m: {}}": false,
		"workloads: {w: {keys: [1234567890123456]}}": true, "workloads: {w: {keys: [~]}}": false, "store: {}": true, "store: {path: memory}": true, "store: {postgres: x}": false,
	} {
		if err := validates(t, s, text); (err == nil) != want {
			t.Errorf("schema: %q: %v", text, err)
		}
		_, ps := Parse("h.yaml", []byte(text), func(string) (string, bool) { return "1", true })
		for _, p := range ps {
			// What relates two settings is beyond a schema.
			relation := strings.Contains(p.Message, "there is no model") || strings.Contains(p.Message, "is not configured") || p.Warning
			if want && !relation {
				t.Errorf("loader: %q: %s", text, p.text())
			}
		}
		if !want && len(ps) == 0 {
			t.Errorf("loader takes %q", text)
		}
	}
}
