// Command gen writes the JSON schema and the reference page of the
// configuration from the types of package config, their tags and the comments
// on their fields. Run it with go generate ./internal/config; a test holds the
// files to it.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"reflect"
	"strings"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/typedoc"
)

func main() {
	files, err := generate(".")
	if err != nil {
		log.Fatal(err)
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// settings are the files whose types are the configuration.
var settings = []string{"config.go", "notify.go"}

// generate returns the files by path. dir is that of package config, to which
// the paths are relative.
func generate(dir string) (map[string][]byte, error) {
	comments := map[string]string{}
	for _, file := range settings {
		found, err := readComments(dir + "/" + file)
		if err != nil {
			return nil, err
		}
		maps.Copy(comments, found)
	}
	s := (&schemaWriter{comments}).object(reflect.ValueOf(*config.Default()))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Hourthree configuration"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	page := &pageWriter{comments: comments, seen: map[reflect.Type]bool{}}
	return map[string][]byte{
		"schema.json": text, "../../docs/config.schema.json": text, "../../docs/config.md": page.write(),
	}, nil
}

// readComments returns the comments of types and fields. A field without one is
// an error: the comment is its documentation.
func readComments(path string) (map[string]string, error) {
	comments, err := typedoc.Read(path)
	for name, text := range comments {
		if text == "" && strings.Contains(name, ".") {
			return nil, fmt.Errorf("%s has no comment", name)
		}
	}
	return comments, err
}

// defaults are the values that a new element of a list or map, or an optional
// section, has.
func defaults(t reflect.Type) reflect.Value {
	switch t {
	case reflect.TypeFor[config.Target]():
		return reflect.ValueOf(config.DefaultTarget(""))
	case reflect.TypeFor[config.Simulated]():
		return reflect.ValueOf(config.DefaultSimulated())
	case reflect.TypeFor[config.Rollout]():
		return reflect.ValueOf(config.DefaultRollout())
	case reflect.TypeFor[config.SLO]():
		return reflect.ValueOf(config.DefaultSLO())
	case reflect.TypeFor[config.OTLP]():
		return reflect.ValueOf(config.DefaultOTLP(""))
	case reflect.TypeFor[config.Webhook]():
		return reflect.ValueOf(config.DefaultWebhook())
	}
	return reflect.Zero(t)
}

// inner is the struct behind a section, and its default value: the value
// itself, or what is behind a pointer or in a list or map.
func inner(v reflect.Value) (reflect.Value, bool) {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		t = t.Elem()
		v = defaults(t)
	}
	return v, t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Tag.Get("yaml") != ""
}

// defaultOf is the default of a single value, as it is written in the file;
// ok is false where there is none to show.
func defaultOf(v reflect.Value) (text string, ok bool) {
	switch x := v.Interface().(type) {
	case config.Secret:
		return "", false
	case fmt.Stringer:
		return x.String(), true
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), v.String() != ""
	case reflect.Int, reflect.Int64, reflect.Float64, reflect.Bool:
		return fmt.Sprint(v.Interface()), true
	}
	return "", false
}
