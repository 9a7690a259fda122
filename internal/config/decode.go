package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// decoder fills the typed configuration from YAML nodes and notes every
// problem on the way. ${…} is replaced in values after parsing, so that
// positions hold and a value can never change the structure.
type decoder struct {
	file     string
	lines    []string
	env      func(string) (string, bool)
	problems Problems
	at       map[string]*yaml.Node // where each path is, for the checks
}

type parser interface{ parse(string) error }

func (d *decoder) note(n *yaml.Node, path, message, hint string) {
	p := Problem{File: d.file, Path: path, Message: message, Hint: hint}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
		if n.Line >= 1 && n.Line <= len(d.lines) {
			p.source = d.lines[n.Line-1]
		}
	}
	// The excerpt must not show a secret written into the file.
	if strings.Contains(path, "key") || strings.Contains(path, "headers") {
		p.source = ""
	}
	d.problems = append(d.problems, p)
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, field *reflect.StructField) {
	d.at[path] = n
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && v.Kind() != reflect.Struct {
		return // an empty value is the default
	}
	if p, ok := v.Addr().Interface().(parser); ok {
		d.scalar(n, path, func(s string) error {
			if field != nil && field.Tag.Get("auto") != "" && s == "auto" {
				return nil
			}
			return p.parse(s)
		})
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, field)
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Map:
		d.named(n, v, path)
	case reflect.Slice:
		d.list(n, v, path, field)
	default:
		d.scalar(n, path, func(s string) error { return plain(n, v, s, field) })
	}
}

// plain sets a string or number.
func plain(n *yaml.Node, v reflect.Value, s string, field *reflect.StructField) error {
	switch v.Kind() {
	case reflect.String:
		if n.Tag != "!!str" && n.Style == 0 && n.Tag != "!!int" && n.Tag != "!!float" && n.Tag != "!!timestamp" {
			return fmt.Errorf("must be text; put it in quotes")
		}
		v.SetString(s)
		if field != nil {
			return oneOf(s, field.Tag.Get("enum"))
		}
		return nil
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("must be a whole number")
		}
		v.SetInt(i)
		return inRange(float64(i), field)
	case reflect.Float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f != f {
			return fmt.Errorf("must be a number")
		}
		v.SetFloat(f)
		return inRange(f, field)
	}
	return fmt.Errorf("cannot be set")
}

func oneOf(s, enum string) error {
	if enum == "" || s == "" {
		return nil
	}
	known := strings.Split(enum, ",")
	if slices.Contains(known, s) {
		return nil
	}
	err := fmt.Errorf("%q is not one of %s", s, strings.Join(known, ", "))
	if near := nearest(s, known); near != "" {
		err = fmt.Errorf("%q is not known; did you mean %s?", s, near)
	}
	return err
}

func inRange(f float64, field *reflect.StructField) error {
	if field == nil {
		return nil
	}
	low, high := field.Tag.Get("min"), field.Tag.Get("max")
	if l, err := strconv.ParseFloat(low, 64); err == nil && f < l {
		return fmt.Errorf("must be at least %s", low)
	}
	if h, err := strconv.ParseFloat(high, 64); err == nil && f > h {
		return fmt.Errorf("must be at most %s", high)
	}
	return nil
}

func (d *decoder) scalar(n *yaml.Node, path string, set func(string) error) {
	if n.Kind != yaml.ScalarNode {
		d.note(n, path, "must be a single value", "")
		return
	}
	s, err := d.substitute(n.Value)
	if err == nil {
		err = set(s)
	}
	if err != nil {
		d.note(n, path, err.Error(), "")
	}
}

// mapping fills a struct. Unknown and repeated keys are problems.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.required(n, v, path, nil)
		return
	}
	if n.Kind != yaml.MappingNode {
		d.note(n, path, "must be a mapping", "")
		return
	}
	fields, names := fieldsOf(v.Type())
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		index, ok := fields[key.Value]
		switch {
		case !ok:
			d.unknown(key, join(path, key.Value), names)
		case seen[key.Value]:
			d.note(key, join(path, key.Value), "is set twice", "keep one of them")
		default:
			f := v.Type().Field(index)
			d.value(val, v.Field(index), join(path, key.Value), &f)
		}
		seen[key.Value] = true
	}
	d.required(n, v, path, seen)
}

func (d *decoder) required(n *yaml.Node, v reflect.Value, path string, seen map[string]bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name := f.Tag.Get("yaml"); f.Tag.Get("required") != "" && !seen[name] {
			d.note(n, path, name+" is missing", "")
		}
	}
}

// later are settings of the design that this version does not have.
var later = map[string]string{
	"store": "this version keeps no durable state; remove it", "defer": "this version does not defer requests; remove it",
	"cache": "this version has no answer cache; use message or model", "usd_per_day": "this version does not count money; remove it",
}

func (d *decoder) unknown(key *yaml.Node, path string, names []string) {
	if hint, ok := later[key.Value]; ok {
		d.note(key, path, "is not served by this version", hint)
		return
	}
	hint := ""
	if near := nearest(key.Value, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	d.note(key, path, "is not a setting", hint)
}

func fieldsOf(t reflect.Type) (map[string]int, []string) {
	fields, names := make(map[string]int, t.NumField()), make([]string, 0, t.NumField())
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			fields[name] = i
			names = append(names, name)
		}
	}
	return fields, names
}

// named fills a map of names.
func (d *decoder) named(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.note(n, path, "must be a mapping of names", "")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		p := join(path, key.Value)
		if v.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			d.note(key, p, "is set twice", "keep one of them")
			continue
		}
		if key.Value == "" || len(key.Value) > 200 || strings.ContainsAny(key.Value, "\r\n\x00") {
			d.note(key, path, "a name must be one line of 1 to 200 bytes", "")
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(val, e, p, nil)
		v.SetMapIndex(reflect.ValueOf(key.Value), e)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string, field *reflect.StructField) {
	if n.Kind != yaml.SequenceNode {
		d.note(n, path, "must be a list", "")
		return
	}
	for i, item := range n.Content {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(item, e, path+"["+strconv.Itoa(i)+"]", field)
		v.Set(reflect.Append(v, e))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// substitute replaces ${NAME}, ${NAME:-default} and ${file:/path}; $$ is a
// dollar sign. A name that is unset or empty is an error, never an empty key.
func (d *decoder) substitute(s string) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:i])
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			s = s[i+2:]
		case '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				return "", fmt.Errorf("${ is not closed")
			}
			v, err := d.reference(s[i+2 : i+end])
			if err != nil {
				return "", err
			}
			b.WriteString(v)
			s = s[i+end+1:]
		default:
			b.WriteByte('$')
			s = s[i+1:]
		}
	}
}

// maxSecretFile bounds what is read of a ${file:…}.
const maxSecretFile = 64 << 10

func (d *decoder) reference(name string) (string, error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSecretFile {
			return "", fmt.Errorf("${file:%s} cannot be read as a small regular file", path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("${file:%s} cannot be read", path)
		}
		v := strings.TrimSpace(string(data))
		if v == "" {
			return "", fmt.Errorf("${file:%s} is empty", path)
		}
		return v, nil
	}
	name, fallback, has := strings.Cut(name, ":-")
	if v, ok := d.env(name); ok && v != "" {
		return v, nil
	}
	if has {
		return fallback, nil
	}
	return "", fmt.Errorf("${%s} is not set in the environment", name)
}
