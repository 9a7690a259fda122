package peer

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/manifest"
)

// node is a value in a YAML or JSON document, and its path.
type node struct {
	o    *manifest.Object
	path string
	v    any
}

func (r *reader) root() node { return node{o: r.o, v: map[string]any(r.o.Root)} }

// at is the value below a key, which may be absent.
func (n node) at(keys ...string) node {
	for _, k := range keys {
		n = n.step(k)
	}
	return n
}

func (n node) step(key string) node {
	path := key
	switch {
	case strings.ContainsAny(key, ".[]") || key == "":
		path = n.path + "[" + key + "]"
	case n.path != "":
		path = n.path + "." + key
	}
	m, _ := n.v.(map[string]any)
	return node{o: n.o, path: path, v: m[key]}
}

// first is the first of several spellings of a key that is there, or the first.
func (n node) first(keys ...string) node {
	for _, k := range keys {
		if c := n.step(k); c.v != nil {
			return c
		}
	}
	return n.step(keys[0])
}

// list are the elements, none where it is no list.
func (n node) list() []node {
	l, _ := n.v.([]any)
	out := make([]node, len(l))
	for i, v := range l {
		out[i] = node{o: n.o, path: n.path + "[" + strconv.Itoa(i) + "]", v: v}
	}
	return out
}

// fields are the values of a mapping, in the order of their keys.
func (n node) fields() []node {
	var out []node
	for _, k := range n.keys() {
		out = append(out, n.step(k))
	}
	return out
}

func (n node) keys() []string {
	m, _ := n.v.(map[string]any)
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (n node) is() bool { return n.v != nil }

// str is a scalar as text, "" for anything else.
func (n node) str() string {
	switch v := n.v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case int:
		return strconv.Itoa(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// num is a number, also one in quotes.
func (n node) num() (float64, bool) {
	switch v := n.v.(type) {
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case int:
		return float64(v), true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

func (n node) bool() (value, known bool) {
	switch v := n.v.(type) {
	case bool:
		return v, true
	case string:
		b, err := strconv.ParseBool(v)
		return b, err == nil
	}
	return false, false
}

func (n node) spot() Spot {
	line, _ := n.o.Position(n.path)
	return Spot{Path: n.path, Line: line}
}

// count is a whole number, or the default where it is absent. What is there and
// no number, such as a variable, is unknown.
func (n node) count(def int) Value[int] {
	if !n.is() {
		return Value[int]{V: def, State: Default, Spot: n.spot()}
	}
	f, ok := n.num()
	if !ok || f < 0 {
		return Value[int]{Spot: n.spot()}
	}
	return Value[int]{V: int(min(f, math.MaxInt32)), State: Set, Spot: n.spot()}
}

// span is a number of units of time, or the default where it is absent.
func (n node) span(unit, def time.Duration) Value[time.Duration] {
	if !n.is() {
		return Value[time.Duration]{V: def, State: Default, Spot: n.spot()}
	}
	f, ok := n.num()
	if !ok || f < 0 || f > float64(math.MaxInt64/int64(unit)) {
		return Value[time.Duration]{Spot: n.spot()}
	}
	return Value[time.Duration]{V: time.Duration(f * float64(unit)), State: Set, Spot: n.spot()}
}

// text is a time such as 1.5s or 250ms, or the default where it is absent.
func (n node) text(def time.Duration) Value[time.Duration] {
	if !n.is() {
		return Value[time.Duration]{V: def, State: Default, Spot: n.spot()}
	}
	d, err := time.ParseDuration(n.str())
	if err != nil || d < 0 {
		return Value[time.Duration]{Spot: n.spot()}
	}
	return Value[time.Duration]{V: d, State: Set, Spot: n.spot()}
}

func unknown[T any](n node) Value[T]        { return Value[T]{Spot: n.spot()} }
func set[T any](v T, s Spot) Value[T]       { return Value[T]{V: v, State: Set, Spot: s} }
func byDefault[T any](v T, s Spot) Value[T] { return Value[T]{V: v, State: Default, Spot: s} }
func plus(v Value[int], n int) Value[int]   { v.V += n; return v }
func least(v Value[int], n int) Value[int]  { v.V = min(v.V, n); return v }
