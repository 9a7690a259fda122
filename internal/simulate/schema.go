package simulate

import (
	"encoding/json"
	"strings"
)

// maxDepth bounds a sample of a schema that holds itself.
const maxDepth = 16

// schema is the part of JSON Schema that a sample needs.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a name or a list of names
	Const      any                `json:"const"`
	Enum       []any              `json:"enum"`
	AnyOf      []*schema          `json:"anyOf"`
	OneOf      []*schema          `json:"oneOf"`
	AllOf      []*schema          `json:"allOf"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	MinItems   int                `json:"minItems"`
	MinLength  int                `json:"minLength"`
	Minimum    *float64           `json:"minimum"`
	Defs       map[string]*schema `json:"$defs"`
	OldDefs    map[string]*schema `json:"definitions"`
}

// sample is a small JSON value that fits a schema, or {} when there is none
// that can be read.
func sample(raw json.RawMessage) string {
	var s schema
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return "{}"
	}
	b, err := json.Marshal(s.sample(&s, 0))
	if err != nil {
		return "{}"
	}
	return string(b)
}

func (s *schema) sample(root *schema, depth int) any {
	if s == nil || depth > maxDepth {
		return nil
	}
	switch {
	case s.Ref != "":
		return root.find(s.Ref).sample(root, depth+1)
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	for _, some := range [][]*schema{s.AnyOf, s.OneOf, s.AllOf} {
		if len(some) > 0 {
			return shallowest(some).sample(root, depth+1)
		}
	}
	return s.plain(root, depth)
}

// shallowest prefers a choice that cannot hold further values.
func shallowest(some []*schema) *schema {
	for _, s := range some {
		if s != nil && s.Ref == "" && s.Properties == nil && s.Items == nil {
			return s
		}
	}
	return some[0]
}

func (s *schema) plain(root *schema, depth int) any {
	switch s.kind() {
	case "string":
		return strings.Repeat("x", max(0, s.MinLength-len("text"))) + "text"
	case "number", "integer":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case "boolean":
		return true
	case "array":
		list := make([]any, min(s.MinItems, maxDepth))
		for i := range list {
			list[i] = s.Items.sample(root, depth+1)
		}
		return list
	case "null":
		return nil
	}
	o := object{}
	for _, name := range s.Required {
		if p := s.Properties[name]; p != nil {
			o[name] = p.sample(root, depth+1)
		}
	}
	return o
}

func (s *schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			name, _ := t[0].(string)
			return name
		}
	}
	return "object"
}

// find is the schema of a reference inside the same document.
func (s *schema) find(ref string) *schema {
	if ref == "#" {
		return s
	}
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		return s.Defs[name]
	}
	name, _ := strings.CutPrefix(ref, "#/definitions/")
	return s.OldDefs[name]
}
