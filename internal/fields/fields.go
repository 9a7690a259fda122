// Package fields reads what stands at a path below a value, as manifests have it:
// text, numbers, durations, lists and objects. It decides what counts as which,
// and what is as if it were absent. It never changes a value, and no error shows
// one, for it may be a secret. Its callers are
// topology, retrypath and audit.
//
// The functions of this file are strict: what is absent is nothing, and what is
// there but cannot be what is asked for is an error that names the path. Those of
// lenient.go take it as absent.
package fields

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Value is what stands below root at a path such as spec.http[0].retries, nil
// where there is none. A key with dots stands in brackets.
func Value(root any, path string) (any, error) {
	at := stepsOf(path)
	for i, s := range at {
		switch v := root.(type) {
		case nil:
			return nil, nil
		case map[string]any:
			root = v[s]
		case []any:
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, Not(join(at[:i]), "an object")
			}
			if n < 0 || n >= len(v) {
				return nil, nil
			}
			root = v[n]
		default:
			return nil, Not(join(at[:i]), "an object")
		}
	}
	return root, nil
}

func join(steps []string) string {
	if len(steps) == 0 {
		return "it"
	}
	return strings.Join(steps, ".")
}

// Mismatch says that what stands at a path cannot be what a check asks for.
type Mismatch struct{ path, wanted string }

func (e *Mismatch) Error() string { return e.path + " is not " + e.wanted }

// Not is the error that what stands at a path is not what is wanted.
func Not(path, wanted string) error { return &Mismatch{path, wanted} }

// Number is the number at path, 0 for none. Text that reads as one is one, with
// or without a per cent sign.
func Number(root any, path string) (float64, error) {
	v, err := Value(root, path)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case nil:
		return 0, nil
	case float64:
		return v, nil
	case string:
		n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "%"), 64)
		if err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n, nil
		}
	}
	return 0, Not(path, "a number")
}

// Text is the text at path, "" for none; of a number or bool, as it is written.
func Text(root any, path string) (string, error) {
	v, err := Value(root, path)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case float64, bool:
		return fmt.Sprint(v), nil
	}
	return "", Not(path, "text")
}

// List is the list at path, nil for none.
func List(root any, path string) ([]any, error) {
	v, err := Value(root, path)
	if err != nil || v == nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok {
		return nil, Not(path, "a list")
	}
	return l, nil
}

// Object is the object at path, nil for none.
func Object(root any, path string) (map[string]any, error) {
	v, err := Value(root, path)
	if err != nil || v == nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, Not(path, "an object")
	}
	return m, nil
}

// Duration is the duration at path, 0 for none: Go's notation, as the APIs of
// gateways have it, or a number of seconds.
func Duration(root any, path string) (time.Duration, error) {
	v, err := Value(root, path)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case nil:
		return 0, nil
	case float64:
		if math.Abs(v) < math.MaxInt64/float64(time.Second) {
			return time.Duration(v * float64(time.Second)), nil
		}
	case string:
		return duration(path, strings.TrimSpace(v))
	}
	return 0, Not(path, "a duration")
}

// duration also reads days and weeks, which Prometheus has.
func duration(path, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(n) < 1e9 {
		return time.Duration(n * float64(time.Second)), nil
	}
	for unit, d := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if n, err := strconv.ParseUint(strings.TrimSuffix(text, unit), 10, 16); err == nil && strings.HasSuffix(text, unit) {
			return time.Duration(n) * d, nil
		}
	}
	return 0, Not(path, "a duration")
}

var suffixes = map[string]float64{
	"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
}

// Quantity is the Kubernetes quantity at path, 0 for none.
func Quantity(root any, path string) (float64, error) {
	v, err := Value(root, path)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case nil:
		return 0, nil
	case float64:
		return v, nil
	case string:
		if n, ok := quantityOf(strings.TrimSpace(v)); ok {
			return n, nil
		}
	}
	return 0, Not(path, "a quantity")
}

func quantityOf(text string) (float64, bool) {
	digits := strings.TrimRight(text, "numkKMGTPEi")
	factor, known := suffixes[text[len(digits):]]
	n, err := strconv.ParseFloat(digits, 64)
	if strings.HasSuffix(digits, ".") || err != nil || !known { // 1e3 and 12E6 are numbers too
		factor = 1
		n, err = strconv.ParseFloat(text, 64)
	}
	return n * factor, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// Words are the words of the text or list at path, cut at commas and blanks.
func Words(root any, path string) ([]string, error) {
	v, err := Value(root, path)
	if err != nil {
		return nil, err
	}
	var words []string
	switch v := v.(type) {
	case nil:
	case []any:
		for _, e := range v {
			switch e := e.(type) {
			case string:
				words = append(words, strings.TrimSpace(e))
			case float64:
				words = append(words, strconv.FormatFloat(e, 'f', -1, 64))
			default:
				return nil, Not(path, "a list of words")
			}
		}
	case float64:
		words = append(words, strconv.FormatFloat(v, 'f', -1, 64))
	case string:
		words = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
	default:
		return nil, Not(path, "a list of words")
	}
	return words, nil
}

// known keeps paths that were cut. Most are the catalogue's and few; those with a
// name from a manifest in them must not fill the memory, so it takes no more than
// mostKnown.
var (
	known     sync.Map
	keptPaths atomic.Int32
)

const mostKnown = 4096

func stepsOf(path string) []string {
	if s, ok := known.Load(path); ok {
		return s.([]string)
	}
	s := Cut(path)
	if keptPaths.Load() < mostKnown {
		keptPaths.Add(1)
		known.Store(path, s)
	}
	return s
}

// Cut cuts a path into keys and indexes.
func Cut(path string) []string {
	var list []string
	for path != "" {
		switch end := strings.IndexAny(path, ".["); {
		case path[0] == '.':
			path = path[1:]
		case path[0] == '[':
			close := strings.IndexByte(path, ']')
			if close < 0 {
				return append(list, path[1:])
			}
			list, path = append(list, path[1:close]), path[close+1:]
		case end < 0:
			return append(list, path)
		default:
			list, path = append(list, path[:end]), path[end:]
		}
	}
	return list
}
