package drill

import (
	"bytes"
	"os"
	"path/filepath"
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
	if err := c.AddResource("drill.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("drill.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is what an editor sees of a scenario: times are text to it.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		t.Fatal(err)
	}
	timesAsText(&n)
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func timesAsText(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		timesAsText(c)
	}
}

// TestDrillsFitSchema: every drill that comes with the router is valid.
func TestDrillsFitSchema(t *testing.T) {
	s := compiled(t)
	paths, _ := filepath.Glob("drills/*.yaml")
	if len(paths) == 0 {
		t.Fatal("where are the drills?")
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaAgrees: the schema takes what Parse takes and refuses what it
// refuses, as far as one value is concerned.
func TestSchemaAgrees(t *testing.T) {
	s := compiled(t)
	const rest = `
name: x
title: X
length: 1m
workloads: [{name: w, rate: [{at: 0s, rps: 1}]}]
targets: [{name: t, capacity: 5}]
criteria: [{name: c, expr: 'success("", 0, 60) >= 1'}]
`
	for text, want := range map[string]bool{
		"start: 2026-09-29T09:43:00Z": true, "start: noon": false, "compression: 10": true, "compression: fast": false, "speed: 3": false,
		"gateway: {memory: 64MiB}": true, "faults:": true, "gateway:": true, "marks: [{at: 1m, text: x}]": true, "marks: [{at: soon, text: x}]": false,
		"faults: [{target: t, at: 1s, until: 2s, mode: hang}]": true, "faults: [{target: t, at: 1s, until: 2s, mode: '503'}]": true,
		"faults: [{target: t, at: 1s, until: 2s, mode: 503}]": true, "faults: [{target: t, at: 1s, until: 2s, mode: 302}]": false,
		"faults: [{target: t, at: 1s, until: 2s, mode: sulk}]": false, "faults: [{target: t, at: 1s, until: 2}]": false,
		"actions: [{at: 1s, do: reload}]": true, "actions: [{at: 1s, do: dance}]": false, "actions: [{at: 1s, do: reload, instance: one}]": false,
		"gateway: {instances: 2, memory: much}": false, "gateway: {instances: 2, memory: 4096, down: 30s}": true, "gateway: {instances: 2.5}": false,
	} {
		_, err := Parse([]byte(text + rest))
		if (err == nil) != want {
			t.Errorf("Parse of %q: %v", text, err)
		}
		if err := s.Validate(asJSON(t, []byte(text+rest))); (err == nil) != want {
			t.Errorf("schema: %q: %v", text, err)
		}
	}
}
