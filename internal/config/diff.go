package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Bounds of what a difference is told in.
const (
	maxDiff  = 200 // lines
	maxValue = 60  // bytes of a value
)

// Staged is what of a changed configuration can reach some requests and not others:
// the one before with the changed providers, models, workloads, passed-through paths,
// defaults and sizes of bodies. The rest is of the process, and is taken when the
// change is through, or with a restart.
func Staged(before, changed *Config) *Config {
	c := *before
	c.Providers, c.Models, c.Workloads, c.Passthrough, c.Defaults = changed.Providers, changed.Models, changed.Workloads, changed.Passthrough, changed.Defaults
	c.Defaults.Queue = before.Defaults.Queue
	c.HTTP.MaxBody, c.HTTP.MaxUpload, c.HTTP.WriteTimeout = changed.HTTP.MaxBody, changed.HTTP.MaxUpload, changed.HTTP.WriteTimeout
	return &c
}

// Diff lists the settings in which two configurations differ, by path and in the
// order of the file's sections: one line each, what is added behind +, what is
// removed behind -. Secrets are said to have changed and never shown.
func Diff(before, after *Config) []string {
	d := differ{lines: []string{}}
	d.walk("", reflect.ValueOf(*before), reflect.ValueOf(*after))
	if extra := len(d.lines) - maxDiff; extra > 0 {
		d.lines = append(d.lines[:maxDiff], strconv.Itoa(extra)+" more settings differ")
	}
	return d.lines
}

type differ struct{ lines []string }

func (d *differ) say(format string, args ...any) {
	d.lines = append(d.lines, clean(fmt.Sprintf(format, args...)))
}

func (d *differ) walk(path string, a, b reflect.Value) {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	switch x := a.Interface().(type) {
	case Secret:
		d.secret(path, x, b.Interface().(Secret)) // of the same type
		return
	case []Secret:
		d.secrets(path, x, b.Interface().([]Secret))
		return
	case fmt.Stringer:
		d.value(path, a, b)
		return
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if name := a.Type().Field(i).Tag.Get("yaml"); name != "" {
				d.walk(join(path, name), a.Field(i), b.Field(i))
			}
		}
	case reflect.Pointer:
		d.optional(path, a, b)
	case reflect.Map:
		d.named(path, a, b)
	case reflect.Slice:
		d.list(path, a, b)
	default:
		d.value(path, a, b)
	}
}

func (d *differ) secret(path string, a, b Secret) {
	switch {
	case a.value == "":
		d.say("+ %s", path)
	case b.value == "":
		d.say("- %s", path)
	default:
		d.say("%s: changed", path)
	}
}

// secrets tells how many came and went.
func (d *differ) secrets(path string, a, b []Secret) {
	missing := func(of, in []Secret) (n int) {
		for _, s := range of {
			if !slices.Contains(in, s) {
				n++
			}
		}
		return n
	}
	added, removed := missing(b, a), missing(a, b)
	if added+removed == 0 {
		d.say("%s: in another order", path)
		return
	}
	d.say("%s: %d added, %d removed", path, added, removed)
}

func (d *differ) optional(path string, a, b reflect.Value) {
	switch {
	case a.IsNil():
		d.added(path, b)
	case b.IsNil():
		d.say("- %s", path)
	default:
		d.walk(path, a.Elem(), b.Elem())
	}
}

// added tells of a new section or value.
func (d *differ) added(path string, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	_, secret := v.Interface().(Secret)
	if _, written := v.Interface().(fmt.Stringer); secret || !written && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice}, v.Kind()) {
		d.say("+ %s", path)
		return
	}
	d.say("+ %s: %s", path, shown(v))
}

func (d *differ) named(path string, a, b reflect.Value) {
	names := map[string]bool{}
	for _, m := range []reflect.Value{a, b} {
		for _, k := range m.MapKeys() {
			names[k.String()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key, at := reflect.ValueOf(name), join(path, name)
		switch x, y := a.MapIndex(key), b.MapIndex(key); {
		case !x.IsValid():
			d.added(at, y)
		case !y.IsValid():
			d.say("- %s", at)
		default:
			d.walk(at, x, y)
		}
	}
}

func (d *differ) list(path string, a, b reflect.Value) {
	if a.Type().Elem().Kind() != reflect.Struct {
		d.value(path, a, b)
		return
	}
	for i := range max(a.Len(), b.Len()) {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= a.Len():
			d.added(at, b.Index(i))
		case i >= b.Len():
			d.say("- %s", at)
		default:
			d.walk(at, a.Index(i), b.Index(i))
		}
	}
}

func (d *differ) value(path string, a, b reflect.Value) {
	if x, y := shown(a), shown(b); x != y {
		d.say("%s: %s -> %s", path, x, y)
	} else {
		d.say("%s: changed", path) // beyond what is shown of it
	}
}

func shown(v reflect.Value) string {
	text := fmt.Sprint(v.Interface())
	if text == "" || v.Kind() == reflect.Slice && v.Len() == 0 {
		return "nothing"
	}
	if len(text) > maxValue {
		text = text[:maxValue] + "…"
	}
	return text
}
