package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// assembler makes objects of the values of one document.
type assembler struct {
	doc       document
	bounds    bounds
	words     words
	objects   []*Object
	problems  []Problem
	variables bool // there may be some that nobody has filled in
}

// read reads everything in a document.
func (d document) read(b bounds, w words) ([]*Object, []Problem) {
	a := &assembler{doc: d, bounds: b, words: w, variables: bytes.Contains(d.text, []byte("${"))}
	trees, notes := d.parse(b, w)
	a.problems = notes
	if d.hasTemplate() && len(trees) > 0 && ofHelm.Match(outsideTexts(d, trees)) {
		a.problems = append(a.problems, d.unrendered())
		return nil, a.problems
	}
	for _, t := range trees {
		a.tree(t)
	}
	return a.objects, a.problems
}

// outsideTexts are the single-line values of a document that hold braces: a
// text of many lines may well hold a template for somebody else.
func outsideTexts(d document, trees []tree) []byte {
	var out bytes.Buffer
	for _, t := range trees {
		walk(t.value, func(_ string, v any) {
			if s, ok := v.(string); ok && !strings.Contains(s, "\n") && strings.Contains(s, "{{") {
				out.WriteString(s + "\n")
			}
		})
	}
	return out.Bytes()
}

// walk calls f with each plain value and its path, in order.
func walk(v any, f func(path string, v any)) { walkAt("", v, f) }

func walkAt(at string, v any, f func(path string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walkAt(join(at, key), v[key], f)
		}
	case []any:
		for i := range v {
			walkAt(fmt.Sprintf("%s[%d]", at, i), v[i], f)
		}
	default:
		f(at, v)
	}
}

// join is the path of a key, see Object.At.
func join(at, key string) string {
	if strings.ContainsAny(key, ".[]/") || key == "" {
		return at + "[" + key + "]"
	}
	if at == "" {
		return key
	}
	return at + "." + key
}

func (a *assembler) problem(at place, what, remedy string) *Problem {
	a.problems = append(a.problems, Problem{File: a.doc.file, Line: int(at.line), Column: int(at.col), What: what, Remedy: remedy})
	return &a.problems[len(a.problems)-1]
}

// tree sorts one value of a document.
func (a *assembler) tree(t tree) {
	switch v := t.value.(type) {
	case map[string]any:
		a.mapping(t, v, 0)
	case []any:
		objects := len(v) > 0
		for _, e := range v {
			objects = objects && isObject(e)
		}
		if !objects {
			a.problem(t.at, "is a list of something that is not known", expected)
			return
		}
		for i := range v {
			a.mapping(tree{value: v[i], at: t.at.in.at[i]}, v[i].(map[string]any), 0)
		}
	default:
		a.problem(t.at, "is a single value, not a mapping", expected)
	}
}

func isObject(v any) bool {
	m, _ := v.(map[string]any)
	kind, _ := m["kind"].(string)
	version, _ := m["apiVersion"].(string)
	return kind != "" && version != ""
}

func (a *assembler) mapping(t tree, m map[string]any, depth int) {
	_, meta := m["metadata"].(map[string]any)
	switch {
	case isObject(m):
		a.object(t, m, depth)
	case product(m) != "":
		a.objects = append(a.objects, &Object{Group: FileGroup, Kind: product(m), Name: fileName(a.doc.file), Root: m,
			Text: a.doc.text, textLine: a.doc.line, at: t.at, Origin: Origin{File: a.doc.file, Line: int(t.at.line)}})
	case meta || m["kind"] != nil && m["spec"] != nil:
		missing := "apiVersion"
		if s, _ := m["kind"].(string); s == "" {
			missing = "kind"
		}
		a.problem(t.at, "looks like a Kubernetes object and has no "+missing, "add "+missing).Lost = true
	default:
		a.problem(t.at, "is neither a Kubernetes object nor a known gateway's configuration", expected)
	}
}

// maxLists bounds lists of lists.
const maxLists = 4

func (a *assembler) object(t tree, m map[string]any, depth int) {
	kind, version := m["kind"].(string), m["apiVersion"].(string)
	items, isList := m["items"].([]any)
	meta, _ := m["metadata"].(map[string]any)
	switch {
	case strings.HasSuffix(kind, "List") && (isList || m["items"] == nil) && meta["name"] == nil && depth < maxLists:
		a.list(t, items, strings.TrimSuffix(kind, "List"), version, depth)
		return
	case kind == "Config" && version == "v1" && m["clusters"] != nil:
		a.problem(t.at, "is a kubeconfig, which is not read as a manifest", "name it with --kubeconfig to read the cluster")
		return
	case kind == "Kustomization" && strings.HasPrefix(version, "kustomize.config.k8s.io/"):
		a.kustomization(t.at)
		return
	}
	o := newObject(m)
	o.at, o.Origin = t.at, Origin{File: a.doc.file, Line: int(t.at.line)}
	for _, field := range []string{"name", "namespace"} {
		if v, there := meta[field]; there && v != nil {
			if _, text := v.(string); !text {
				line, col := o.Position("metadata." + field)
				a.problem(place{line: uint32(line), col: uint32(col)}, fmt.Sprintf("metadata.%s is not a text", field), "quote it")
			}
		}
	}
	a.unfilled(o)
	a.problems = append(a.problems, o.embed(a.bounds, a.words)...)
	a.objects = append(a.objects, o)
}

// list unwraps a list. The items of what the API server answers do not say
// their kind.
func (a *assembler) list(t tree, items []any, kind, version string, depth int) {
	at, _ := t.at.child("items")
	for i, item := range items {
		var sub tree
		if at.in != nil && i < len(at.in.at) {
			sub.at = at.in.at[i]
		}
		m, ok := item.(map[string]any)
		if !ok {
			a.problem(sub.at, "an item of a list is not an object", "remove it").Lost = true
			continue
		}
		if kind != "" && m["kind"] == nil && m["apiVersion"] == nil {
			m["kind"], m["apiVersion"] = kind, version
		}
		sub.value = m
		a.mapping(sub, m, depth+1)
	}
}

func (a *assembler) kustomization(at place) {
	a.problem(at, "is a Kustomize file that is not built: its patches are not applied", "build first: kustomize build "+path.Dir(a.doc.file)+" | hourthree audit -")
}

// newObject is the object that a mapping with kind and apiVersion describes.
func newObject(m map[string]any) *Object {
	o := &Object{Root: m}
	o.Kind, _ = m["kind"].(string)
	version, _ := m["apiVersion"].(string)
	if group, v, ok := strings.Cut(version, "/"); ok {
		o.Group, o.Version = group, v
	} else {
		o.Version = version
	}
	meta, _ := m["metadata"].(map[string]any)
	o.Namespace, o.Name = text(meta["namespace"]), text(meta["name"])
	if o.Name == "" {
		o.Name = text(meta["generateName"])
	}
	if o.Kind == "Secret" && o.Group == "" {
		o.Root = withoutValues(m)
	}
	return o
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any, []any:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// withoutValues is a Secret without what is secret in it.
func withoutValues(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for _, field := range []string{"data", "stringData"} {
		if values, ok := out[field].(map[string]any); ok {
			kept := make(map[string]any, len(values))
			for key := range values {
				kept[key] = ""
			}
			out[field] = kept
		} else {
			delete(out, field)
		}
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "annotations") // kubectl keeps a copy of the whole there
		out["metadata"] = meta
	}
	return out
}

var (
	variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:?[-=?+][^}]*)?\}`)
	// filledLater are places whose texts others fill in.
	filledLater = regexp.MustCompile(`(^|\.)(data|stringData|binaryData|annotations|args|command|env|template\.data)([.[]|$)`)
)

// unfilled notes the first ${VARIABLE} of an object that nobody has filled in.
func (a *assembler) unfilled(o *Object) {
	if !a.variables {
		return
	}
	found := ""
	walk(o.Root, func(at string, v any) {
		s, ok := v.(string)
		if found == "" && ok && !strings.Contains(s, "\n") && variable.MatchString(s) && !filledLater.MatchString(at) {
			found = at
		}
	})
	if found == "" {
		return
	}
	line, col := o.Position(found)
	a.problem(place{line: uint32(line), col: uint32(col)},
		fmt.Sprintf("%s holds a variable that is not filled in; %s is judged as it stands", found, o.Ref()),
		"render first: envsubst < FILE | hourthree audit -")
}
