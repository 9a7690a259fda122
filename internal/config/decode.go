package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/spelling"
)

const (
	// maxNodes bounds the work an alias of an alias can make.
	maxNodes = 200_000
	// maxProblems is what a person may want to read at once.
	maxProblems = 100
	// longestName bounds provider, model and workload names: they become
	// metric labels and header values.
	longestName = 200
)

// decoder fills the typed configuration from YAML nodes and notes every
// problem on the way. References are replaced in single values after parsing,
// so that positions hold and a value can never change the structure.
type decoder struct {
	file     string
	env      func(string) (string, bool)
	page     *page
	problems Problems
	unshown  int                   // problems beyond maxProblems
	nodes    int                   // visited, up to maxNodes
	at       map[string]*yaml.Node // where each path is, for the checks
	referred map[string]string     // paths whose value came from outside, and how it is written
}

// parser is a type that reads itself from a single value.
type parser interface{ parse(string) error }

// defaulter is a struct whose fields are not all zero where nothing is said.
type defaulter interface{ setDefaults() }

func (d *decoder) note(n *yaml.Node, p Problem) {
	if len(d.problems) == maxProblems {
		d.unshown++
		return
	}
	p.File, p.Path, p.Message = d.file, clean(p.Path), clean(p.Message)
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.problems = append(d.problems, p)
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	d.at[path] = n
	if d.nodes++; d.nodes > maxNodes {
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.Tag, "!!") {
		d.note(n, Problem{Path: path, Message: "has a tag, which means nothing here", Hint: "write ${NAME} for a value from the environment"})
		return
	}
	if s, ok := v.Addr().Interface().(parser); ok {
		_, secret := s.(*Secret)
		d.scalar(n, path, !secret || bareReference.MatchString(n.Value), func(text, _ string) error { return s.parse(text) })
		return
	}
	null := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
	switch v.Kind() {
	case reflect.Pointer:
		if !null { // a section whose lines are all comments is not there
			v.Set(reflect.New(v.Type().Elem()))
			d.value(n, v.Elem(), path, tag)
		}
	case reflect.Struct:
		if s, ok := v.Addr().Interface().(defaulter); ok {
			s.setDefaults()
		}
		d.mapping(n, v, path, null)
	case reflect.Map:
		if !null {
			d.named(n, v, path)
		}
	case reflect.Slice:
		if !null {
			d.list(n, v, path, tag)
		}
	default:
		d.scalar(n, path, true, func(text, shown string) error { return plain(n, v, text, shown, tag) })
	}
}

// scalar reads a single value. shown is the text for error messages: as it is
// written in the file, never what a reference stands for.
func (d *decoder) scalar(n *yaml.Node, path string, visible bool, set func(text, shown string) error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.note(n, Problem{Path: path, Message: "must be a single value"})
		return
	case n.ShortTag() == "!!null":
		d.note(n, Problem{Path: path, Message: "has no value", Hint: "give it one, or remove it"})
		return
	}
	if visible && !(strings.Contains(n.Value, "://") && strings.ContainsAny(n.Value, "@?")) { // an address may hold a password
		d.page.show(n, len(n.Value))
	}
	text, err := substitute(n.Value, d.env)
	if err == nil && text != n.Value {
		d.referred[path] = n.Value
	}
	if err == nil {
		err = set(text, n.Value)
	}
	if err != nil {
		p := Problem{Path: path, Message: err.Error()}
		var v valueError
		if errors.As(err, &v) {
			p.Message, p.Hint = v.message, v.hint
		}
		d.note(n, p)
	}
}

// valueError is a wrong value with its remedy.
type valueError struct{ message, hint string }

func (e valueError) Error() string { return e.message }

// plain sets a string, a number or a switch.
func plain(n *yaml.Node, v reflect.Value, text, shown string, tag reflect.StructTag) error {
	switch v.Kind() {
	case reflect.String:
		if n.ShortTag() == "!!bool" {
			return errors.New("must be text; put it in quotes")
		}
		if text == "" {
			return errors.New("must not be empty")
		}
		v.SetString(text)
		return oneOf(text, shown, tag)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(text == "true")
		return nil
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(i)
		return inRange(float64(i), tag)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != f || strings.ContainsAny(text, "xXpP_") {
			return errors.New("must be a number")
		}
		v.SetFloat(f)
		return inRange(f, tag)
	}
	return fmt.Errorf("cannot set a %s", v.Kind())
}

// oneOf holds a value to the enum tag. The later tag names values that the
// design has and this version has not.
func oneOf(text, shown string, tag reflect.StructTag) error {
	enum := tag.Get("enum")
	known := strings.Split(enum, ",")
	if enum == "" || slices.Contains(known, text) {
		return nil
	}
	list := strings.Join(known, ", ")
	if slices.Contains(strings.Split(tag.Get("later"), ","), text) {
		return valueError{fmt.Sprintf("%q is not served by this version; served are %s", shown, list), tag.Get("remedy")}
	}
	if near := spelling.Nearest(text, known); near != "" {
		return valueError{fmt.Sprintf("%q is none of %s", shown, list), "did you mean " + near + "?"}
	}
	return valueError{message: fmt.Sprintf("%q is none of %s", shown, list)}
}

func inRange(f float64, tag reflect.StructTag) error {
	low, high := tag.Get("min"), tag.Get("max")
	if l, err := strconv.ParseFloat(low, 64); err == nil && f < l {
		return fmt.Errorf("must be at least %s", low)
	}
	if h, err := strconv.ParseFloat(high, 64); err == nil && f > h {
		return fmt.Errorf("must be at most %s", high)
	}
	return nil
}

// mapping fills a struct. Unknown and repeated keys are problems.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string, null bool) {
	seen := map[string]bool{}
	switch {
	case null:
	case n.Kind != yaml.MappingNode:
		_, names := fieldsOf(v.Type())
		d.note(n, Problem{Path: path, Message: "must be a mapping", Hint: "of " + strings.Join(names, ", ")})
		return
	default:
		fields, names := fieldsOf(v.Type())
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, val := n.Content[i], n.Content[i+1]
			index, ok := fields[key.Value]
			if !ok || key.Kind != yaml.ScalarNode {
				d.unknown(key, path, v.Type(), names)
				continue
			}
			d.page.show(key, len(key.Value))
			if seen[key.Value] {
				d.note(key, Problem{Path: join(path, key.Value), Message: "is set twice", Hint: "keep one of them"})
				continue
			}
			seen[key.Value] = true
			f := v.Type().Field(index)
			d.value(val, v.Field(index), join(path, key.Value), f.Tag)
		}
	}
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if name := tag.Get("yaml"); tag.Get("required") != "" && !seen[name] {
			d.note(n, Problem{Path: path, Message: name + " is missing"})
		}
	}
}

// later are settings of the design that this version does not have: refused
// with the remedy, because a setting that is accepted is in force.
var later = map[reflect.Type]map[string]string{
	reflect.TypeFor[Store]():        {"postgres": "each router has a store of its own; name a file in path"},
	reflect.TypeFor[Degraded]():     {"cache": "it has no answer cache; use message or model"},
	reflect.TypeFor[Workload]():     {"defer": "it does not defer requests; remove the setting"},
	reflect.TypeFor[TargetLimits](): {"usd_per_day": "a budget belongs to a workload, its key_limits or model_limits, or to a model; a target has price"},
}

func (d *decoder) unknown(key *yaml.Node, path string, t reflect.Type, names []string) {
	shown := setting(key.Value)
	if key.Kind != yaml.ScalarNode || shown == "" {
		d.note(key, Problem{Path: path, Message: "a key must be a plain name"})
		return
	}
	d.page.show(key, len(shown))
	p := Problem{Path: join(path, shown), Message: "is not a setting"}
	switch {
	case later[t][key.Value] != "":
		p.Message, p.Hint = "is not served by this version", later[t][key.Value]
	case key.Value == "<<":
		p.Message, p.Hint = "merge keys are not read", "repeat the settings, or use an alias for a whole value"
	case spelling.Nearest(key.Value, names) != "":
		p.Hint = "did you mean " + spelling.Nearest(key.Value, names) + "?"
	default:
		p.Hint = "known here: " + strings.Join(names, ", ")
		if place := below(t, key.Value); place != "" {
			p.Hint = "it belongs below " + place
		}
	}
	d.note(key, p)
}

// setting is the part of an unknown key that may be shown. A key and value
// run together by a missing space must not show the value.
func setting(key string) string {
	end := strings.IndexFunc(key, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '<' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
	if end < 0 {
		end = len(key)
	}
	return key[:min(end, 40)]
}

// below finds the section of a struct that has the setting.
func below(t reflect.Type, name string) string {
	for i := range t.NumField() {
		f := t.Field(i).Type
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() != reflect.Struct {
			continue
		}
		section := t.Field(i).Tag.Get("yaml")
		fields, _ := fieldsOf(f)
		if _, ok := fields[name]; ok {
			return section
		}
		if deeper := below(f, name); deeper != "" {
			return join(section, deeper)
		}
	}
	return ""
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
		d.note(n, Problem{Path: path, Message: "must be a mapping of names"})
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		if d.nodes > maxNodes {
			return
		}
		key, val := n.Content[i], n.Content[i+1]
		name := reflect.ValueOf(key.Value)
		if !goodName(key) {
			d.note(key, Problem{Path: path, Message: "a name must be one line of text, 1 to 200 bytes, without space around it"})
			continue
		}
		d.page.show(key, len(key.Value))
		p := join(path, key.Value)
		if v.MapIndex(name).IsValid() {
			d.note(key, Problem{Path: p, Message: "is there twice", Hint: "keep one of them"})
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(val, e, p, "")
		v.SetMapIndex(name, e)
	}
}

func goodName(key *yaml.Node) bool {
	s := key.Value
	if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" || s != strings.TrimSpace(s) || s == "" || len(s) > longestName {
		return false
	}
	return clean(s) == s
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.SequenceNode {
		d.note(n, Problem{Path: path, Message: "must be a list", Hint: "put it in [ ]"})
		return
	}
	v.SetZero() // what is said replaces a default
	for i, item := range n.Content {
		if d.nodes > maxNodes {
			return
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(item, e, path+"["+strconv.Itoa(i)+"]", tag)
		v.Set(reflect.Append(v, e))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
