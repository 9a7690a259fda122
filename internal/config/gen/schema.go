package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/config"
)

type schema = map[string]any

type schemaWriter struct{ comments map[string]string }

// object is the schema of a struct; v holds its defaults.
func (w *schemaWriter) object(v reflect.Value) schema {
	t := v.Type()
	props, required := schema{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		s := w.value(v.Field(i), f.Tag)
		s["description"] = w.comments[t.Name()+"."+f.Name]
		if text, ok := defaultOf(v.Field(i)); ok && f.Tag.Get("required") == "" {
			s["default"] = asJSON(v.Field(i), text)
		}
		props[f.Tag.Get("yaml")] = s
		if f.Tag.Get("required") != "" {
			required = append(required, f.Tag.Get("yaml"))
		}
	}
	s := schema{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func asJSON(v reflect.Value, text string) any {
	switch v.Interface().(type) {
	case config.Duration, config.Bytes:
		return text
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64, reflect.Float64, reflect.Bool:
		return v.Interface()
	}
	return text
}

// Forms of single values. A reference is put in when the file is read, so an
// editor cannot check what has one.
const (
	reference = `\$\{[^}]+\}`
	duration  = `([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+`
	share     = `[0-9]*\.?[0-9]+ ?%?`
	size      = `[0-9]+(\.[0-9]+)? ?([KMG]iB|[kKMG]?B)?`
)

func pattern(forms ...string) schema {
	return schema{"type": "string", "pattern": "^(" + strings.Join(forms, "|") + ")$|" + reference}
}

// value is the schema of a setting.
func (w *schemaWriter) value(v reflect.Value, tag reflect.StructTag) schema {
	switch v.Interface().(type) {
	case config.Duration:
		return schema{"anyOf": []schema{pattern("0", duration), {"const": 0}}}
	case config.AutoDuration:
		return pattern("auto", duration)
	case config.Bytes:
		return schema{"anyOf": []schema{pattern(size), {"type": "integer", "minimum": 0}}}
	case config.AutoBytes:
		return schema{"anyOf": []schema{pattern("auto", size), {"type": "integer", "minimum": 1}}}
	case config.Share:
		return schema{"anyOf": []schema{pattern(share), {"type": "number", "exclusiveMinimum": 0, "maximum": 1}}}
	case config.Secret:
		return schema{"type": []string{"string", "integer"}, "minLength": 1}
	}
	if in, ok := inner(v); ok {
		return section(v.Kind(), w.object(in))
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return section(v.Kind(), w.value(reflect.Zero(v.Type().Elem()), tag))
	case reflect.Pointer:
		return w.value(reflect.Zero(v.Type().Elem()), tag)
	case reflect.Int, reflect.Int64:
		return number("integer", tag)
	case reflect.Float64:
		return number("number", tag)
	case reflect.Bool:
		return schema{"anyOf": []schema{{"type": "boolean"}, {"type": "string", "pattern": reference}}}
	}
	return text(tag)
}

// section is a part of the file that may be left without content.
func section(kind reflect.Kind, s schema) schema {
	switch kind {
	case reflect.Map:
		return schema{"type": []string{"object", "null"}, "additionalProperties": s, "propertyNames": schema{"minLength": 1, "maxLength": 200}}
	case reflect.Slice:
		return schema{"type": []string{"array", "null"}, "items": s}
	}
	if s["required"] == nil {
		s["type"] = []string{"object", "null"}
	}
	return s
}

func number(kind string, tag reflect.StructTag) schema {
	s := schema{"type": kind}
	for name, key := range map[string]string{"min": "minimum", "max": "maximum"} {
		if v, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
			s[key] = v
		}
	}
	return schema{"anyOf": []schema{s, {"type": "string", "pattern": reference}}}
}

func text(tag reflect.StructTag) schema {
	enum := tag.Get("enum")
	if enum == "" {
		return schema{"type": []string{"string", "number"}, "minLength": 1}
	}
	values := strings.Split(enum, ",")
	s := []schema{{"enum": values}, {"type": "string", "pattern": reference}}
	var numbers []int // a bare 503 is a number to an editor
	for _, v := range values {
		if n, err := strconv.Atoi(v); err == nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) > 0 {
		s = slices.Insert(s, 1, schema{"enum": numbers})
	}
	return schema{"anyOf": s}
}
