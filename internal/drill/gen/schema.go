package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/typedoc"
)

type schema = map[string]any

// required are the fields that a scenario cannot do without, by type.
var required = map[string][]string{
	"Scenario":  {"name", "title", "length", "workloads", "targets", "criteria"},
	"Workload":  {"name"},
	"Rate":      {"at", "rps"},
	"Layer":     {"attempts"},
	"Target":    {"name", "capacity"},
	"KeyStore":  {"capacity"},
	"Verdict":   {"rps", "for"},
	"Fault":     {"mode"},
	"Action":    {"do"},
	"Moment":    {"at", "text"},
	"Criterion": {"name", "expr"},
}

// schemaOf writes the schema of scenario files.
func schemaOf(source string) ([]byte, error) {
	comments, err := typedoc.Read(source)
	if err != nil {
		return nil, err
	}
	w := &schemaWriter{comments: comments}
	s := w.object(reflect.TypeFor[drill.Scenario]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Hourthree drill"
	s["description"] = comments["Scenario"]
	if w.err != nil {
		return nil, w.err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

type schemaWriter struct {
	comments map[string]string
	err      error
}

// object is the schema of a struct.
func (w *schemaWriter) object(t reflect.Type) schema {
	props := schema{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		s := w.field(t, f)
		if text := w.comments[t.Name()+"."+f.Name]; text != "" {
			s["description"] = text
		}
		props[name] = s
	}
	s := schema{"type": "object", "properties": props, "additionalProperties": false}
	for _, name := range required[t.Name()] {
		if props[name] == nil {
			w.err = fmt.Errorf("%s has no field %s", t.Name(), name)
		}
	}
	if names := required[t.Name()]; len(names) > 0 {
		s["required"] = names
	}
	return s
}

func (w *schemaWriter) field(t reflect.Type, f reflect.StructField) schema {
	choices := drill.Choices(t.Name() + "." + f.Name)
	switch {
	case t.Name() == "Fault" && f.Name == "Mode": // a bare 503 is a number to an editor
		return schema{"anyOf": []schema{
			{"enum": choices}, {"type": "string", "pattern": "^[45][0-9][0-9]$"}, {"type": "integer", "minimum": 400, "maximum": 599},
		}}
	case f.Name == "Name" && slices.Contains([]string{"Scenario", "Workload", "Target"}, t.Name()):
		return schema{"type": "string", "pattern": drill.NamePattern()}
	case f.Type.Kind() == reflect.Slice && choices != nil:
		return schema{"type": []string{"array", "null"}, "items": oneOf(choices)}
	case choices != nil:
		return oneOf(choices)
	}
	return w.value(f.Type)
}

// oneOf takes words, and those that look like one as numbers.
func oneOf(words []string) schema {
	var all []any
	for _, word := range words {
		all = append(all, word)
		if n, err := strconv.Atoi(word); err == nil {
			all = append(all, n)
		}
	}
	return schema{"enum": all}
}

// Forms of single values.
const (
	durationForm = `^[-+]?(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`
	timeForm     = `^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ]+[0-9:.]+ ?([Zz]|[-+][0-9:]+)?)?$`
	sizeForm     = `^[0-9]+(\.[0-9]+)? ?([KMG]iB|[kKMG]?B)?$`
)

func (w *schemaWriter) value(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return schema{"type": "string", "pattern": durationForm}
	case reflect.TypeFor[drill.Size]():
		return schema{"anyOf": []schema{{"type": "string", "pattern": sizeForm}, {"type": "integer", "minimum": 0}}}
	case reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time", "pattern": timeForm}
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.object(t)
	case reflect.Pointer:
		return orNull(w.value(t.Elem()))
	case reflect.Slice:
		return schema{"type": []string{"array", "null"}, "items": w.value(t.Elem())}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.String:
		return schema{"type": []string{"string", "number"}}
	}
	w.err = fmt.Errorf("no schema for %s", t)
	return schema{}
}

// orNull also takes a section without content.
func orNull(s schema) schema {
	if s["type"] == "object" && s["required"] == nil {
		s["type"] = []string{"object", "null"}
	}
	return s
}

// plain reads a scenario without its defaults.
func plain(data []byte) (*drill.Scenario, error) {
	s := &drill.Scenario{}
	return s, yaml.Unmarshal(data, s)
}
