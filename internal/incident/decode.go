package incident

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// mostFaults bounds what is said about one file.
const mostFaults = 100

// decoder reads one file strictly and remembers where everything was.
type decoder struct {
	file    string
	at      map[string]*yaml.Node // where each path is, for the checks
	faults  Faults
	unshown int
}

// decode reads data into v, a pointer to a struct. What is wrong is in the
// decoder's faults.
func decode(file string, data []byte, v any) *decoder {
	d := &decoder{file: file, at: map[string]*yaml.Node{}}
	var doc yaml.Node
	err := yaml.Load(data, &doc)
	switch {
	case err != nil && strings.Contains(err.Error(), "no documents"), err == nil && len(doc.Content) == 0:
		d.note(nil, "", "the file is empty", "write a record, or remove the file")
	case err != nil:
		d.syntax(err)
	default:
		d.value(doc.Content[0], reflect.ValueOf(v).Elem(), "")
	}
	return d
}

// fault notes what is wrong at a path, or at the nearest part around it that
// is in the file.
func (d *decoder) fault(path, message, remedy string) {
	near := path
	for d.at[near] == nil && near != "" {
		near = near[:max(0, strings.LastIndexAny(near, ".["))]
	}
	d.note(d.at[near], path, message, remedy)
}

func (d *decoder) note(n *yaml.Node, path, message, remedy string) {
	if len(d.faults) >= mostFaults {
		d.unshown++
		return
	}
	f := Fault{File: d.file, Path: path, Message: message, Remedy: remedy}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	d.faults = append(d.faults, f)
}

// all are the faults, with a word on those that are not shown.
func (d *decoder) all() Faults {
	if d.unshown > 0 {
		return append(d.faults, Fault{File: d.file, Message: fmt.Sprintf("%d more faults are not shown", d.unshown)})
	}
	return d.faults
}

// syntax notes what the YAML library says, with its place.
func (d *decoder) syntax(err error) {
	f := Fault{File: d.file, Message: "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "), Remedy: "text with a colon or a leading sign goes in quotes"}
	var le *yaml.LoadError
	if errors.As(err, &le) {
		f.Line, f.Column, f.Message = le.Mark.Line, le.Mark.Column, "this is not YAML: "+le.Message
	}
	switch {
	case strings.Contains(f.Message, "anchor"):
		f.Remedy = "a value that begins with * goes in quotes"
	case strings.Contains(f.Message, "single document"):
		f.Message, f.Remedy = "the file has a second document", "one file holds one record: remove the ---"
	}
	d.faults = append(d.faults, f)
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.at[path] = n
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		d.note(n, path, "is an anchor or an alias", "write the value out where it belongs")
		return
	case n.Style&yaml.TaggedStyle != 0:
		d.note(n, path, "has a tag", "remove "+n.Tag)
		return
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		d.note(n, path, "has no value", "give it one, or remove the line")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Map:
		d.named(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.note(n, path, "must be a single value", "")
		return
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		if strings.ContainsFunc(n.Value, control) {
			d.note(n, path, "has control characters, or some that turn the direction of writing", "remove them")
			return
		}
		v.SetString(strings.TrimSpace(n.Value))
	case reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			d.note(n, path, quoted(n.Value)+" is neither true nor false", "")
		}
		v.SetBool(n.Value == "true")
	case reflect.Float64:
		var x float64
		if x, err = strconv.ParseFloat(n.Value, 64); err == nil && (x-x != 0) {
			err = errors.New("not finite")
		}
		v.SetFloat(x)
	default:
		var x int
		x, err = strconv.Atoi(n.Value)
		v.SetInt(int64(x))
	}
	if err != nil {
		d.note(n, path, quoted(n.Value)+" is not a number", "write it in digits, without a unit")
	}
}

// control reports whether r steers a terminal, or the order in which a text is
// shown, instead of being shown.
func control(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.note(n, path, "must be a list", "begin each item with a hyphen")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// named reads a map from names to structs.
func (d *decoder) named(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.note(n, path, "must be names with their values", "")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name, sub := reflect.ValueOf(key.Value), reflect.New(v.Type().Elem()).Elem()
		if key.Kind != yaml.ScalarNode || key.Value == "" || v.MapIndex(name).IsValid() {
			d.note(key, path, quoted(key.Value)+" is there twice, or is not a name", "remove one")
			continue
		}
		d.value(n.Content[i+1], sub, path+"."+key.Value)
		d.at[path+"."+key.Value] = key
		v.SetMapIndex(name, sub)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.note(n, path, "must be keys with their values", "")
		return
	}
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Slice { // a list that is not there is an empty one, in JSON too
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name != "-" {
			fields[name] = f
		}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, name := n.Content[i], n.Content[i].Value
		f, ok := fields[name]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			known := slices.Sorted(maps.Keys(fields))
			d.note(key, path, "unknown key "+quoted(name), didYouMean(first(nearest(name, known), 1), "known are "+strings.Join(known, ", ")))
		case seen[name]:
			d.note(key, path, "the key "+name+" is there twice", "remove one")
		default:
			seen[name] = true
			d.value(n.Content[i+1], f, strings.TrimPrefix(path+"."+name, "."))
		}
	}
}
