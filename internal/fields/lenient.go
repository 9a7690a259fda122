package fields

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// The functions of this file read leniently: a rule concludes nothing from what
// is not there or cannot be read, which is reported by who evaluates the object.

// TextAt is the text at path, "" for none and for what is no text.
func TextAt(root any, path string) string {
	s, _ := Text(root, path)
	return s
}

// ListAt is the list at path, nil for none and for what is no list.
func ListAt(root any, path string) []any {
	l, _ := List(root, path)
	return l
}

// MapAt is the object at path, nil for none and for what is no object.
func MapAt(root any, path string) map[string]any {
	m, _ := Object(root, path)
	return m
}

// ValueAt is what stands at path, nil for none.
func ValueAt(root any, path string) any {
	v, _ := Value(root, path)
	return v
}

// WordsAt are the words at path, none for what is neither text nor list.
func WordsAt(root any, path string) []string {
	w, _ := Words(root, path)
	return w
}

// IntOr is the number at path, or def where there is none.
func IntOr(root any, path string, def int) int {
	if ValueAt(root, path) == nil {
		return def
	}
	n, err := Number(root, path)
	if err != nil {
		return def
	}
	return int(max(min(n, 1e9), -1))
}

// PlainText is a value as text, "" for what is no text.
func PlainText(v any) string {
	s, _ := Text(map[string]any{"v": v}, "v")
	return s
}

// TextOr is the text at path, or def where there is none.
func TextOr(root any, path, def string) string {
	if s := TextAt(root, path); s != "" {
		return s
	}
	return def
}

// DurationAt is the duration at path, 0 for none, for a negative one and for what
// is no duration.
func DurationAt(root any, path string) time.Duration {
	d, _ := Duration(root, path)
	return max(d, 0)
}

// AsMap is a value as an object, nil for what is none.
func AsMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

// AsList is a value as a list, nil for what is none.
func AsList(v any) []any { l, _ := v.([]any); return l }

// SortedKeys are the keys of an object in their order.
func SortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// Short bounds what a finding shows, and keeps it on one line.
func Short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const most = 160
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
