package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"
)

// check holds what is so of whatever was read.
func check(t testing.TB, text string, s *Set) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	place := func(what string, line, col int) {
		if line < 0 || line > lines+1 || col < 0 || col > len(text)+1 {
			t.Fatalf("%s at %d:%d of %d lines", what, line, col, lines)
		}
	}
	for _, p := range s.Problems {
		if p.What == "" || p.Remedy == "" || p.File == "" {
			t.Fatalf("a problem says too little: %+v", p)
		}
		place(p.What, p.Line, p.Column)
	}
	for _, o := range s.Objects {
		if o.Kind == "" {
			t.Fatalf("an object has no kind: %+v", o)
		}
		for _, o := range append(o.Embedded(), o) {
			if _, err := json.Marshal(o.Root); err != nil {
				t.Fatal(err)
			}
			walk(o.Root, func(at string, v any) {
				line, col := o.Position(at)
				place(at, line, col)
			})
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: [\n", embedding1, "a: &a [*a]\n", "{{ .Values.x }}", `{"apiVersion":"v1","kind":"List","items":[{}]}`,
		"%YAML 1.2\n---\n<<: [{a: 1}]\n", "http {\n}\n", "global\n  mode http\n", "\xff\xfea\x00", "? {a: b}\n: c\n", "a: |2\n    b\n", "apiVersion: v1\nkind: Secret\ndata: {a: b}\n",
		"apiVersion: v1\nkind: ConfigMap\ndata: {a: \"{\\\"model_list\\\": [1]}\", b: 'providers: {a: {keys: []}}'}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		s := given(t, text)
		check(t, text, s)
		again := given(t, text)
		if !reflect.DeepEqual(s, again) {
			t.Fatal("the same text gives something else")
		}
	})
}

// FuzzPaths holds that no path is fatal, and that a place is never outside.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"a.b[0].c", "[", "]", "a[", "a[b.c/d].e", "..", "a[-1]", "[0][1]", "metadata.annotations[x]"} {
		f.Add(seed)
	}
	o := given(f, "apiVersion: v1\nkind: X\nmetadata: {name: a, annotations: {x: y}}\na: {b: [{c: 1}], c: [[1, 2]]}\n").Objects[0]
	f.Fuzz(func(t *testing.T, path string) {
		v := o.At(path)
		line, col := o.Position(path)
		if line < 1 || line > 4 || col < 1 || col > 60 {
			t.Fatalf("%q at %d:%d", path, line, col)
		}
		if line2, _ := o.Position(""); v == nil && path == "" && line2 != 1 {
			t.Fatal("the whole is at its first line")
		}
	})
}

// FuzzPositions compares places with those of the parser's own nodes.
func FuzzPositions(f *testing.F) {
	f.Add("a: 1\nb:\n- c: [1, {d: e}]\n")
	f.Add("{\"a\": [1,\n {\"b\": \"é\"}], \"c\":\n2}")
	f.Add("- x\n- - y\n  - z: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 || strings.ContainsAny(text, "&*<") {
			return
		}
		var node yaml.Node
		d := document{file: "-", line: 1, text: []byte(text)}
		trees, notes := d.parse(bounds{depth: 50, expanded: 1000}, words{})
		if len(trees) != 1 || len(notes) > 0 || yaml.Load([]byte(text), &node) != nil || len(node.Content) != 1 {
			return
		}
		compare(t, trees[0].at, node.Content[0], "")
	})
}

func compare(t *testing.T, at place, n *yaml.Node, path string) {
	for i := range n.Content {
		var next place
		var ok bool
		key := n.Content[i]
		switch n.Kind {
		case yaml.MappingNode:
			if i%2 == 1 {
				continue
			}
			next, ok = at.child(key.Value)
			defer compare(t, next, n.Content[i+1], path+"/"+key.Value)
		case yaml.SequenceNode:
			next, ok = at.child(fmt.Sprint(i))
			defer compare(t, next, key, fmt.Sprint(path, "/", i))
		}
		if !ok || int(next.line) != key.Line || int(next.col) != key.Column {
			t.Fatalf("%s/%s at %d:%d, the parser has it at %d:%d", path, key.Value, next.line, next.col, key.Line, key.Column)
		}
	}
}

// value draws what JSON can have.
func value(depth int) *rapid.Generator[any] {
	plain := rapid.OneOf(rapid.StringMatching(`[ -~äö\n]{0,12}`).AsAny(), rapid.Float64Range(-1e6, 1e6).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil))
	if depth == 0 {
		return plain
	}
	return rapid.OneOf(plain, rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 3).AsAny(),
		rapid.MapOfN(rapid.StringMatching(`[a-z.]{1,6}`), rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) }), 0, 3).AsAny())
}

// TestWhatIsWrittenIsRead: JSON and YAML of the same values read the same, and
// every value is found at its place.
func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := map[string]any{"apiVersion": "acme.example/v1", "kind": "X", "metadata": map[string]any{"name": "a"}, "spec": value(3).Draw(t, "spec")}
		asJSON, err := json.MarshalIndent(root, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Dump(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{asJSON, asYAML} {
			s, err := Read(context.Background(), Options{Paths: []string{"-"}, Stdin: strings.NewReader(string(text))})
			if err != nil || len(s.Objects) != 1 {
				t.Fatalf("%v %+v\n%s", err, s, text)
			}
			if want := normal(root); !reflect.DeepEqual(any(s.Objects[0].Root), want) {
				t.Fatalf("read %#v, want %#v\n%s", s.Objects[0].Root, want, text)
			}
		}
	})
}

// normal is a value as JSON has it.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = normal(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case float64:
		return math.Copysign(v, v)
	}
	return v
}
