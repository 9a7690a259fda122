package manifest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"
)

// given reads text as standard input.
func given(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Read(context.Background(), Options{Paths: []string{"-"}, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// folder writes files and answers the folder that they are in.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readPaths(t testing.TB, opts Options, paths ...string) *Set {
	t.Helper()
	opts.Paths = paths
	s, err := Read(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// summary is the objects' names and the problems, short.
func summary(s *Set) (objects, problems []string) {
	for _, o := range s.Objects {
		objects = append(objects, o.Ref().String())
	}
	for _, p := range s.Problems {
		lost := ""
		if p.Lost {
			lost = "lost "
		}
		problems = append(problems, fmt.Sprintf("%s%d:%d %s", lost, p.Line, p.Column, p.What))
	}
	return objects, problems
}

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, in string
		objects  []string
		problems []string // beginnings
	}{
		{"one", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", []string{"Pod default/a"}, nil},
		{"empty", "", nil, nil},
		{"only comments", "# nothing\n---\n# Source: x\n---\n", nil, nil},
		{"several, with comments of Helm", "---\n# Source: a.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# Source: b.yaml\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: x}\n...\n",
			[]string{"Pod default/a", "Pod x/b"}, nil},
		{"directive", "%YAML 1.2\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", []string{"Pod default/a"}, nil},
		{"content on the border", "--- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n--- {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"b\"}}\n",
			[]string{"Pod default/a", "Pod default/b"}, nil},
		{"a dashed line in a text is no border", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    b\n   # end\n", []string{"ConfigMap default/a"}, nil},
		{"a fault costs its document", fmt.Sprintf(pod+"---\nkind: [\n---\n"+pod, "a", "b"), []string{"Pod default/a", "Pod default/b"},
			[]string{"lost 6:1 is not valid YAML"}},
		{"an unclosed quote costs its document", fmt.Sprintf("a: \"x\n---\n"+pod, "b"), []string{"Pod default/b"}, []string{"lost 2:1 is not valid YAML"}},
		{"tabs", "apiVersion: v1\nmetadata:\n\tname: x\n", nil, []string{"lost 3:1 is not valid YAML"}},
		{"list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n",
			[]string{"Pod default/a", "Pod default/b"}, nil},
		{"typed list", "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n", []string{"Deployment default/a"}, nil},
		{"empty list", "apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: PodList\n", nil, nil},
		{"list of something", "apiVersion: v1\nkind: List\nitems: [3]\n", nil, []string{"lost 3:9 an item of a list is not an object"}},
		{"a kind that ends in List", "apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [1]\n", []string{"AllowList default/a"}, nil},
		{"JSON", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]}` + "\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`,
			[]string{"Pod default/a", "Pod default/b"}, nil},
		{"array", `[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]`, []string{"Pod default/a"}, nil},
		{"unknown kind", "apiVersion: acme.example/v9\nkind: Whatever\nmetadata: {name: a}\n", []string{"Whatever default/a"}, nil},
		{"cluster-wide", "apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: x}\n", []string{"Node a"}, nil},
		{"cluster-wide by definition", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.acme.example}\nspec: {group: acme.example, scope: Cluster, names: {kind: Thing}}\n---\napiVersion: acme.example/v1\nkind: Thing\nmetadata: {name: a}\n",
			[]string{"CustomResourceDefinition things.acme.example", "Thing a"}, nil},
		{"twice", fmt.Sprintf(pod+"---\n"+pod+"---\n"+pod, "a", "b", "a"), []string{"Pod default/b", "Pod default/a"}, []string{"9:1 Pod default/a is described in -:1 too"}},
		{"key twice", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, name: b}\n", []string{"Pod default/b"}, []string{`3:21 "name" stands twice`}},
		{"key twice in JSON", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"}}`, []string{"Pod default/b"}, []string{`1:56 "name" stands twice`}},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}\n", nil, []string{"lost 1:1 looks like a Kubernetes object and has no kind"}},
		{"no version", "kind: Pod\nspec: {}\n", nil, []string{"lost 1:1 looks like a Kubernetes object and has no apiVersion"}},
		{"values of a chart", "replicas: 3\n", nil, []string{"1:1 is neither a Kubernetes object nor"}},
		{"a number as name", "apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n", []string{"Pod default/5"}, []string{"3:12 metadata.name is not a text"}},
		{"generated name", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", []string{"Pod default/a-"}, nil},
		{"kubeconfig", "apiVersion: v1\nkind: Config\nclusters: []\n", nil, []string{"1:1 is a kubeconfig"}},
		{"Kustomize", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n", nil, []string{"1:1 is a Kustomize file"}},
		{"template", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n", nil, []string{"lost 4:9 is a template"}},
		{"template by lines", "{{- if .Values.on }}\napiVersion: v1\nkind: Pod\n{{- end }}\n", nil, []string{"lost 1:1 is a template"}},
		{"template in quotes", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: \"{{ .Release.Name }}\"\n", nil, []string{"lost 4:10 is a template"}},
		{"somebody else's template", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations: {x: \"{{ $labels.pod }}\"}\n", []string{"Pod default/a"}, nil},
		{"a template in a text", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    {{ .Values.x }}\n    y\n", []string{"ConfigMap default/a"}, nil},
		{"variable", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  x: \"${X}\"\n  args: [\"${Y}\"]\n", []string{"Pod default/a"}, []string{"5:3 spec.x holds a variable"}},
		{"variables for others", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {args: [\"${Y}\"], env: [{name: A, value: \"${Z}\"}]}\n", []string{"Pod default/a"}, nil},
		{"an alias of itself", "a: &a [*a]\n", nil, []string{"lost 1:8 the alias *a stands inside"}},
		{"a scalar", "hello\n", nil, []string{"1:1 is a single value"}},
		{"a list", "- 1\n", nil, []string{"1:1 is a list of something"}},
		{"a key that is a list", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n? [a]\n: b\n", []string{"Pod default/a"}, []string{"4:3 a key is a list"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := given(t, c.in)
			objects, problems := summary(s)
			if !reflect.DeepEqual(objects, c.objects) {
				t.Errorf("objects %q, want %q", objects, c.objects)
			}
			if len(problems) != len(c.problems) {
				t.Fatalf("problems %q, want %q", problems, c.problems)
			}
			for i, want := range c.problems {
				if !strings.HasPrefix(problems[i], want) {
					t.Errorf("problem %q, want %q", problems[i], want)
				}
				if s.Problems[i].Remedy == "" || s.Problems[i].File != "-" {
					t.Errorf("no remedy or no file: %+v", s.Problems[i])
				}
			}
		})
	}
}

func TestRemedies(t *testing.T) {
	for in, want := range map[string]string{
		"metadata:\n\tname: x\n": "indent with spaces: YAML takes no tabs there",
		"x: {{ .Values.y }}\n":   "render first: helm template NAME CHART | hourthree audit -",
	} {
		if s := given(t, in); len(s.Problems) != 1 || s.Problems[0].Remedy != want {
			t.Errorf("%q: %+v", in, s.Problems)
		}
	}
}

func TestValues(t *testing.T) {
	s := given(t, `apiVersion: v1
kind: X
metadata: {name: a}
spec:
  int: 12
  plus: +7
  hex: 0x10
  octal: 0o17
  split: 1_000
  big: 123456789012345678901234567890
  float: 1.5e3
  infinite: .inf
  time: 2026-05-29
  at: 2026-05-29T10:00:00Z
  yes: yes
  off: off
  quoted: "no"
  true: TRUE
  null: ~
  empty:
  tagged: !!str 5
  own: !thing x
  5: number
  &k anchored: *k
`)
	want := map[string]any{
		"int": 12.0, "plus": 7.0, "hex": 16.0, "octal": 15.0, "split": 1000.0, "big": 123456789012345678901234567890.0, "float": 1500.0,
		"infinite": ".inf", "time": "2026-05-29", "at": "2026-05-29T10:00:00Z", "yes": true, "off": false, "quoted": "no", "true": true,
		"null": nil, "empty": nil, "tagged": "5", "own": "x", "5": "number", "anchored": "anchored",
	}
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	if got := s.Objects[0].Root["spec"]; !reflect.DeepEqual(got, want) {
		for k, w := range want {
			if g := got.(map[string]any)[k]; !reflect.DeepEqual(g, w) {
				t.Errorf("%s is %#v, want %#v", k, g, w)
			}
		}
	}
}

func TestMergeKeys(t *testing.T) {
	s := given(t, `apiVersion: v1
kind: X
metadata: {name: a}
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: {<<: *base, a: 9}
two:
  <<: [*base, *more]
`)
	o := s.Objects[0]
	if got, want := o.Root["one"], (map[string]any{"a": 9.0, "b": 2.0}); !reflect.DeepEqual(got, want) {
		t.Errorf("one: %v", got)
	}
	if got, want := o.Root["two"], (map[string]any{"a": 1.0, "b": 2.0, "c": 4.0}); !reflect.DeepEqual(got, want) {
		t.Errorf("two: %v", got)
	}
	if line, col := o.Position("two.c"); line != 5 || col != 20 {
		t.Errorf("two.c at %d:%d", line, col)
	}
	if line, col := o.Position("one.a"); line != 6 || col != 18 {
		t.Errorf("one.a at %d:%d", line, col)
	}
}

func TestPositions(t *testing.T) {
	const yaml = `# comment
apiVersion: v1
kind: Pod
metadata: {name: a}
---

# another
apiVersion: v1
kind: Pod
metadata:
  name: b
  annotations:
    a.b/c: x
spec:
  containers:
  - name: one
    args: [--x, {y: 1,
      z: [2, 3]}]
  -
    name: two
  anchored: &x
    deep: [1, 2]
  alias: *x
`
	s := given(t, strings.ReplaceAll(yaml, "\n", "\r\n"))
	s2 := given(t, yaml)
	for path, want := range map[string][2]int{
		"":                                {8, 1},
		"metadata":                        {10, 1},
		"metadata.name":                   {11, 3},
		"metadata.annotations[a.b/c]":     {13, 5},
		"spec.containers[0]":              {16, 5},
		"spec.containers[0].name":         {16, 5},
		"spec.containers[0].args[0]":      {17, 12},
		"spec.containers[0].args[1].y":    {17, 18},
		"spec.containers[0].args[1].z[1]": {18, 14},
		"spec.containers[1].name":         {20, 5},
		"spec.alias":                      {23, 3},
		"spec.alias.deep[1]":              {22, 15},
		"spec.none.at.all":                {14, 1},
		"spec.containers[7].x":            {15, 3},
	} {
		for _, o := range []*Object{s.Objects[1], s2.Objects[1]} {
			if line, col := o.Position(path); line != want[0] || col != want[1] {
				t.Errorf("%s at %d:%d, want %v", path, line, col, want)
			}
		}
	}
	if s.Objects[0].Origin.Line != 2 || s.Objects[1].Origin.Line != 8 {
		t.Errorf("objects begin at %d, %d", s.Objects[0].Origin.Line, s.Objects[1].Origin.Line)
	}
}

func TestPositionsOfJSON(t *testing.T) {
	s := given(t, "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n  {\"apiVersion\": \"v1\", \"kind\": \"é\",\n   \"metadata\": {\"name\": \"ü\", \"x\": [1,\n  {\"y\" : 2}]}}]}")
	for path, want := range map[string][2]int{
		"": {2, 3}, "kind": {2, 24}, "metadata.x": {3, 30}, "metadata.x[0]": {3, 36}, "metadata.x[1]": {4, 3}, "metadata.x[1].y": {4, 4},
	} {
		if line, col := s.Objects[0].Position(path); line != want[0] || col != want[1] {
			t.Errorf("%s at %d:%d, want %v", path, line, col, want)
		}
	}
}

func TestEncodings(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: ä}\n"
	wide := func(order binary.AppendByteOrder, mark string) string {
		out := []byte(mark)
		for _, u := range utf16.Encode([]rune(text)) {
			out = order.AppendUint16(out, u)
		}
		return string(out)
	}
	for name, c := range map[string]struct {
		in      string
		objects int
		problem string
	}{
		"byte order mark":  {"\xef\xbb\xbf" + text, 1, ""},
		"UTF-16":           {wide(binary.LittleEndian, "\xff\xfe"), 1, "is UTF-16"},
		"UTF-16, big":      {wide(binary.BigEndian, "\xfe\xff"), 1, "is UTF-16"},
		"UTF-16, unmarked": {wide(binary.LittleEndian, ""), 1, "is UTF-16"},
		"no text":          {text + "\xff\xfe\xfd", 0, "is not text"},
		"zero bytes":       {text + "a\x00b", 0, "is not text"},
		"CRLF":             {strings.ReplaceAll(text, "\n", "\r\n"), 1, ""},
	} {
		s := given(t, c.in)
		_, problems := summary(s)
		if len(s.Objects) != c.objects || (c.problem == "") != (len(problems) == 0) || c.problem != "" && !strings.Contains(problems[0], c.problem) {
			t.Errorf("%s: %d objects, %q", name, len(s.Objects), problems)
		}
		if c.objects == 1 && s.Objects[0].Name != "ä" {
			t.Errorf("%s: name %q", name, s.Objects[0].Name)
		}
	}
}

func TestFolders(t *testing.T) {
	one := func(name string) string { return fmt.Sprintf(pod, name) }
	dir := folder(t, map[string]string{
		"a.yaml": one("a"), "b/U.YML": one("u"), "b/c.yml": one("c"), "b/d.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"d"}}`,
		"readme.md": "x", ".git/e.yaml": one("e"), "node_modules/f.yaml": one("f"), ".g.yaml": one("g"),
		"chart/Chart.yaml": "apiVersion: v2\nname: x\n", "chart/values.yaml": "a: 1\n", "chart/templates/h.yaml": "{{ x }}", "chart/crds/i.yaml": one("i"),
		"k/kustomization.yaml": "resources: [j.yaml, t.yaml]\npatches:\n- path: p.yaml\n- path: ./t.yaml\n- patch: |\n    x\npatchesStrategicMerge: [./q.yaml, patches/r.yaml]\n", "k/patches/r.yaml": one("r"), "k/j.yaml": one("j"), "k/p.yaml": one("j"), "k/q.yaml": one("j"), "k/t.yaml": one("t"),
		"n/nginx.conf": "http {\n}\n", "n/h.cfg": "defaults\n  mode http\n", "n/setup.cfg": "[metadata]\nname = x\n",
	})
	if err := os.Symlink(dir, filepath.Join(dir, "b", "loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b", "again.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "b", "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	s := readPaths(t, Options{}, dir, filepath.Join(dir, "b", "c.yml"))
	objects, _ := summary(s)
	if want := []string{"Pod default/a", "Pod default/u", "Pod default/c", "Pod default/d", "Pod default/i", "Pod default/j", "Pod default/t", "HAProxy h.cfg", "Nginx nginx.conf"}; !reflect.DeepEqual(objects, want) {
		t.Errorf("objects %q, want %q", objects, want)
	}
	var problems []string
	for _, p := range s.Problems {
		problems = append(problems, strings.TrimPrefix(p.File, filepath.ToSlash(dir))+" "+p.What)
	}
	want := []string{"/b/broken.yaml cannot be read", "/b/loop leads to a folder that was read already", "/chart is a Helm chart", "/k/kustomization.yaml is a Kustomize file", "/n/setup.cfg is not the configuration"}
	if len(problems) != len(want) {
		t.Fatalf("problems %q", problems)
	}
	for i := range want {
		if !strings.HasPrefix(problems[i], want[i]) {
			t.Errorf("problem %q, want %q", problems[i], want[i])
		}
	}
	if !strings.HasSuffix(problems[3], "not read as patches: ./q.yaml, p.yaml, patches/r.yaml") {
		t.Errorf("problem %q", problems[3])
	}
	if first := s.Objects[0].Origin.File; first != filepath.ToSlash(dir)+"/a.yaml" {
		t.Errorf("origin %q", first)
	}
}

func TestMissingPath(t *testing.T) {
	_, err := Read(context.Background(), Options{Paths: []string{filepath.Join(t.TempDir(), "no.yaml")}})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, Options{Paths: []string{t.TempDir()}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestBounds(t *testing.T) {
	many := strings.Repeat("--- {apiVersion: v1, kind: Pod}\n", 20)
	deep := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	for name, c := range map[string]struct {
		opts  Options
		files map[string]string
		what  string
		left  int // objects
	}{
		"file":          {Options{MaxFile: 100}, map[string]string{"a.yaml": many, "b.yaml": fmt.Sprintf(pod, "b")}, "has 640 bytes, more than the 100 bytes that one file may have", 1},
		"total":         {Options{MaxTotal: 700}, map[string]string{"a.yaml": many, "b.yaml": many, "c.yaml": many}, "2 files were not read: all files together have more than 700 bytes", 20},
		"documents":     {Options{MaxDocuments: 5}, map[string]string{"a.yaml": many}, "15 documents were not read", 5},
		"depth":         {Options{MaxDepth: 50}, map[string]string{"a.yaml": "a: " + deep, "b.yaml": fmt.Sprintf(pod, "b")}, "is nested more than 50 deep", 1},
		"depth of JSON": {Options{MaxDepth: 50}, map[string]string{"a.json": deep}, "is nested more than 50 deep", 0},
		"very deep":     {Options{}, map[string]string{"a.yaml": strings.Repeat("[", 1<<20), "b.json": strings.Repeat("[", 1<<20)}, "", 0},
		"entries":       {Options{MaxEntries: 2}, map[string]string{"a.yaml": many, "b.yaml": many, "c.yaml": many}, "was read in part: there are more than 2 files", 40},
		"aliases":       {Options{MaxExpanded: 50}, map[string]string{"a.yaml": "a: &a [1,2,3,4,5,6,7,8,9]\nb: [*a,*a,*a,*a,*a,*a]\n"}, "its aliases stand for more than 50 values", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := readPaths(t, c.opts, folder(t, c.files))
			if len(s.Objects) != c.left {
				t.Errorf("%d objects, want %d", len(s.Objects), c.left)
			}
			found := false
			for _, p := range s.Problems {
				found = found || p.Lost && strings.Contains(p.What, c.what) && p.Remedy != ""
			}
			if !found {
				t.Errorf("problems %+v, want %q", s.Problems, c.what)
			}
		})
	}
}

// allocated is how much f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestLargeFileCostsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("a: b\n", 20<<10))
	for range 1000 {
		if _, err := f.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	n := allocated(func() {
		s := readPaths(t, Options{}, path)
		if len(s.Problems) != 1 || !strings.Contains(s.Problems[0].What, "has 97.7 MiB, more than the 32.0 MiB") || !strings.Contains(s.Problems[0].Remedy, "--max-file") {
			t.Errorf("%+v", s.Problems)
		}
	})
	if n > 1<<20 {
		t.Errorf("allocated %d bytes", n)
	}
	n = allocated(func() { // its size is not known before
		f, _ := os.Open(path)
		defer f.Close()
		s, err := Read(context.Background(), Options{Paths: []string{"-"}, Stdin: f, MaxFile: 4 << 20})
		if err != nil || len(s.Problems) != 1 || !s.Problems[0].Lost {
			t.Errorf("%v %+v", err, s)
		}
	})
	if n > 40<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

func TestBillionLaughs(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: X\nmetadata: {name: a}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10))
	}
	n := allocated(func() {
		s := given(t, b.String())
		if len(s.Objects) != 0 || len(s.Problems) != 1 || !s.Problems[0].Lost || !strings.Contains(s.Problems[0].What, "aliases") {
			t.Errorf("%+v", s)
		}
	})
	if n > 4<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	s := given(t, strings.Repeat("--- [\n", 3000))
	if len(s.Problems) != maxProblems+1 || !strings.Contains(s.Problems[maxProblems].What, "2000 more") || !s.Problems[maxProblems].Lost {
		t.Errorf("%d problems, last %+v", len(s.Problems), s.Problems[len(s.Problems)-1])
	}
}

func TestSecretsHaveNoValues(t *testing.T) {
	s := given(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {x: hidden}}\nstringData: {key: hidden}\ndata: {other: hidden}\n")
	if text := fmt.Sprint(s.Objects[0].Root); strings.Contains(text, "hidden") || !strings.Contains(text, "other") {
		t.Error(text)
	}
}

func TestMerge(t *testing.T) {
	live := given(t, fmt.Sprintf(pod+"---\n"+pod+"---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n", "a", "b")).Objects
	files := given(t, fmt.Sprintf(pod, "b")+"---\nmodel_list: []\n").Objects
	got := Merge(live, files)
	if len(got) != 4 || got[0] != live[0] || got[1] != live[2] || got[2] != files[0] || got[3] != files[1] {
		t.Errorf("%v", got)
	}
}

func TestOrderIsThatOfTheFiles(t *testing.T) {
	var b strings.Builder
	var want []string
	for i := range 500 {
		fmt.Fprintf(&b, "---\n"+pod, fmt.Sprint("p", i))
		want = append(want, fmt.Sprintf("Pod default/p%d", i))
	}
	if got, _ := summary(given(t, b.String())); !reflect.DeepEqual(got, want) {
		t.Error("out of order")
	}
}

// TestAliasesOfManyDocuments: documents that are each within the bound are not so
// together. Which ones are left out does not depend on how they are read.
func TestAliasesOfManyDocuments(t *testing.T) {
	var text strings.Builder
	for i := range 3 * maxLaughs {
		text.WriteString(fmt.Sprintf(pod, fmt.Sprintf("laughs%d", i)) + "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: [*a,*a,*a,*a,*a,*a,*a]\n---\n")
	}
	text.WriteString(fmt.Sprintf(pod, "last"))
	s := readPaths(t, Options{MaxExpanded: 100}, filepath.Join(folder(t, map[string]string{"a.yaml": text.String()}), "a.yaml"))
	read := 0
	for _, o := range s.Objects {
		if strings.HasPrefix(o.Name, "laughs") {
			read++
		}
	}
	if want := maxLaughs * 100 / 77; read != want || s.Objects[len(s.Objects)-1].Name != "last" {
		t.Errorf("read %d, want %d, and %s", read, want, s.Objects[len(s.Objects)-1].Ref())
	}
	if len(s.Problems) != 3*maxLaughs-read || !s.Problems[0].Lost || !strings.Contains(s.Problems[0].What, "aliases of all documents") {
		t.Errorf("%d problems, %+v", len(s.Problems), s.Problems[0])
	}
}
