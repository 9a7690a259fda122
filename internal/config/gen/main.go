// Command gen writes the JSON schema and the reference of the configuration
// from the types of package config and the comments on their fields. Run it
// with go generate ./internal/config.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/config"
)

func main() {
	g := &generator{comments: comments("config.go"), seen: map[reflect.Type]bool{}}
	schema := g.object(reflect.TypeFor[config.Config]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Hourthree configuration"
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		log.Fatal(err)
	}
	out = append(out, '\n')
	for _, path := range []string{"schema.json", "../../docs/config.schema.json"} {
		if err := os.WriteFile(path, out, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.WriteFile("../../docs/config.md", g.reference(), 0o644); err != nil {
		log.Fatal(err)
	}
}

type generator struct {
	comments map[string]string // Type or Type.Field -> text
	seen     map[reflect.Type]bool
	page     bytes.Buffer
}

func comments(path string) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		gen, ok := n.(*ast.GenDecl)
		if !ok || len(gen.Specs) != 1 {
			return true
		}
		spec, ok := gen.Specs[0].(*ast.TypeSpec)
		if !ok {
			return true
		}
		out[spec.Name.Name] = strings.TrimSpace(gen.Doc.Text())
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				out[spec.Name.Name+"."+field.Names[0].Name] = strings.TrimSpace(field.Doc.Text())
			}
		}
		return true
	})
	return out
}

type schema = map[string]any

func (g *generator) object(t reflect.Type) schema {
	props, required := schema{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		s := g.of(f.Type, f.Tag)
		s["description"] = g.comments[t.Name()+"."+f.Name]
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

// substitution is what any single value may be instead.
const substitution = `\$\{[^}]+\}`

func (g *generator) of(t reflect.Type, tag reflect.StructTag) schema {
	duration := `^(0|([0-9.]+(ns|us|µs|ms|s|m|h))+|.*` + substitution + `.*)$`
	switch t {
	case reflect.TypeFor[config.Duration]():
		return schema{"anyOf": []schema{{"type": "string", "pattern": duration}, {"const": 0}}}
	case reflect.TypeFor[config.AutoDuration]():
		return schema{"type": "string", "pattern": strings.Replace(duration, "^(0|", "^(auto|", 1)}
	case reflect.TypeFor[config.Bytes]():
		return schema{"anyOf": []schema{{"type": "string", "pattern": `^(auto|[0-9.]+ ?([KMG]iB|[kKMG]?B)?|.*` + substitution + `.*)$`}, {"type": "integer", "minimum": 0}}}
	case reflect.TypeFor[config.Secret]():
		return schema{"type": "string", "minLength": 1}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem(), tag)
	case reflect.Struct:
		return g.object(t)
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": g.of(t.Elem(), "")}
	case reflect.Slice:
		return schema{"type": "array", "items": g.of(t.Elem(), "")}
	case reflect.Int, reflect.Int64:
		return bounded("integer", tag)
	case reflect.Float64:
		return bounded("number", tag)
	}
	s := schema{"type": "string"}
	if e := tag.Get("enum"); e != "" {
		s = schema{"anyOf": []schema{{"enum": strings.Split(e, ",")}, {"type": "string", "pattern": substitution}}}
		if strings.Contains(e, "500") { // YAML reads a bare 500 as a number
			s["anyOf"] = append(s["anyOf"].([]schema), schema{"enum": []int{500, 503, 429}})
		}
	}
	return s
}

func bounded(kind string, tag reflect.StructTag) schema {
	s := schema{"type": kind}
	for name, key := range map[string]string{"min": "minimum", "max": "maximum"} {
		if v, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
			s[key] = v
		}
	}
	return schema{"anyOf": []schema{s, {"type": "string", "pattern": substitution}}}
}

// reference is the page for people: one table for each type.
func (g *generator) reference() []byte {
	g.page.WriteString(`# Configuration

One YAML file. An unknown or repeated name is an error, and all errors are
reported at once with their place. A single value may hold ` + "`${NAME}`, `${NAME:-default}`" + `
or ` + "`${file:/path}`" + `; a name that is unset or empty is an error, ` + "`$$`" + ` is a dollar
sign. Durations are Go durations such as ` + "`500ms`" + ` or ` + "`10m`" + `. Write an example with
` + "`hourthree init`" + `, check a file with ` + "`hourthree validate FILE`" + `.

This page is made from the types; ` + "`config.schema.json`" + ` is the same for editors.
`)
	g.table(reflect.TypeFor[config.Config](), "the file", config.Default())
	return g.page.Bytes()
}

func (g *generator) table(t reflect.Type, title string, defaults any) {
	if g.seen[t] {
		return
	}
	g.seen[t] = true
	fmt.Fprintf(&g.page, "\n## %s\n\n%s\n\n| setting | default | meaning |\n|---|---|---|\n", title, g.comments[t.Name()])
	type next struct {
		t        reflect.Type
		title    string
		defaults any
	}
	var later []next
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		value, shown := any(nil), ""
		if defaults != nil {
			v := reflect.Indirect(reflect.ValueOf(defaults)).Field(i)
			value = v.Interface()
			if v.Kind() != reflect.Struct && v.Kind() != reflect.Map && v.Kind() != reflect.Slice && v.Kind() != reflect.Pointer && !v.IsZero() {
				shown = fmt.Sprintf("`%v`", value)
			}
		}
		if f.Type == reflect.TypeFor[config.AutoDuration]() || f.Tag.Get("auto") != "" {
			shown = "`auto`"
		}
		if f.Tag.Get("required") != "" {
			shown = "required"
		}
		text := g.comments[t.Name()+"."+f.Name]
		if e := f.Tag.Get("enum"); e != "" && !strings.Contains(text, strings.Split(e, ",")[0]) {
			text += " One of " + strings.ReplaceAll(e, ",", ", ") + "."
		}
		fmt.Fprintf(&g.page, "| `%s` | %s | %s |\n", name, shown, strings.ReplaceAll(text, "|", "\\|"))
		inner, sub := f.Type, title+"."+name
		if title == "the file" {
			sub = name
		}
		switch inner.Kind() {
		case reflect.Map:
			inner, sub, value = inner.Elem(), sub+".<name>", nil
		case reflect.Slice:
			inner, sub, value = inner.Elem(), sub+"[]", nil
		case reflect.Pointer:
			inner, value = inner.Elem(), nil
		}
		if inner.Kind() == reflect.Struct && inner.NumField() > 0 && inner.Field(0).Tag.Get("yaml") != "" {
			later = append(later, next{inner, sub, value})
		}
	}
	for _, n := range later {
		g.table(n.t, n.title, n.defaults)
	}
}
