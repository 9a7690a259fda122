package topology

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// maxDocument bounds a configuration inside a ConfigMap that is read.
const maxDocument = 1 << 20

// Document is a configuration that an entry of a ConfigMap holds.
type Document struct {
	Key  string
	Path string // data[config.yaml]
	Root map[string]any
	Err  error // why it could not be read though its name says YAML or JSON
}

// Documents are the entries of a ConfigMap that are YAML or JSON with an object
// at their root, in the order of their keys.
func (g *Graph) Documents(o *manifest.Object) []Document {
	if o.Group == manifest.FileGroup { // a gateway's own file is its one document
		if o.Root == nil {
			return nil
		}
		return []Document{{Key: path.Base(o.Name), Root: o.Root}}
	}
	return g.texts[o]
}

func documents(o *manifest.Object) []Document {
	data, err := fields.Object(o.Root, "data")
	if err != nil {
		return nil
	}
	var list []Document
	for _, k := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[k].(string)
		if !strings.ContainsAny(text, ":{") {
			continue
		}
		d := Document{Key: k, Path: "data[" + k + "]"}
		if e := embedded(o, k); e != nil && e.Root != nil {
			d.Root = e.Root
		} else {
			d.Root, d.Err = parse(k, text)
		}
		if d.Root != nil || d.Err != nil {
			list = append(list, d)
		}
	}
	return list
}

// embedded is the configuration of a gateway that an entry of a ConfigMap is,
// nil for none.
func embedded(o *manifest.Object, k string) *manifest.Object {
	all := o.Embedded()
	if i := slices.IndexFunc(all, func(e *manifest.Object) bool { return e.Name == o.Name+"/"+k }); i >= 0 {
		return all[i]
	}
	return nil
}

// parse reads text as an object. What is neither YAML nor JSON is no fault
// unless the name of its key says so.
func parse(name, text string) (map[string]any, error) {
	says := strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
	if len(text) > maxDocument {
		return nil, fields.Not("data["+name+"]", "shorter than 1 MiB")
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") {
		var m map[string]any
		if json.Unmarshal([]byte(trimmed), &m) == nil {
			return m, nil
		}
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		if says {
			return nil, fields.Not("data["+name+"]", "YAML or JSON that can be read")
		}
		return nil, nil
	}
	m, _ := plain(v, 0).(map[string]any)
	return m, nil
}

// plain is v as JSON would have it.
func plain(v any, depth int) any {
	if depth > 100 {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e, depth+1)
		}
		return v
	case map[any]any:
		m := map[string]any{}
		for k, e := range v {
			if s, ok := k.(string); ok {
				m[s] = plain(e, depth+1)
			}
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plain(e, depth+1)
		}
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case string, float64, bool, nil:
		return v
	default:
		return nil
	}
}
