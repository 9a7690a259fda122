package fields

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestValues(t *testing.T) {
	root := map[string]any{
		"n": 3.0, "s": "text", "l": []any{map[string]any{"a": "x"}, 2.0}, "m": map[string]any{"a.b/c": "dotted"}, "null": nil,
	}
	for _, c := range []struct {
		path string
		want any
		err  string
	}{
		{"n", 3.0, ""}, {"l[0].a", "x", ""}, {"l[9]", nil, ""}, {"m[a.b/c]", "dotted", ""}, {"absent.deep", nil, ""}, {"null.deep", nil, ""},
		{"s.deep", nil, "s is not an object"}, {"l.a", nil, "l is not an object"}, {"l[1].a", nil, "l.1 is not an object"}, {"m[a.b", nil, ""},
	} {
		got, err := Value(root, c.path)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v, %v", c.path, got, err)
		}
	}
}

func TestUnits(t *testing.T) {
	read := func(v any) map[string]any { return map[string]any{"x": v} }
	for _, c := range []struct {
		v    any
		want time.Duration
		bad  bool
	}{
		{nil, 0, false}, {"", 0, false}, {"1m30s", 90 * time.Second, false}, {30.0, 30 * time.Second, false}, {"30", 30 * time.Second, false},
		{"1d", 24 * time.Hour, false}, {"2w", 14 * 24 * time.Hour, false}, {"soon", 0, true}, {true, 0, true}, {1e300, 0, true}, {"1e300", 0, true}, {"-d", 0, true},
	} {
		if got, err := Duration(read(c.v), "x"); got != c.want || (err != nil) != c.bad {
			t.Errorf("duration %v: %v, %v", c.v, got, err)
		}
	}
	for _, c := range []struct {
		v    any
		want float64
		bad  bool
	}{
		{nil, 0, false}, {"2Gi", 2 << 30, false}, {"500m", 0.5, false}, {"1k", 1000, false}, {"1e3", 1000, false}, {4.0, 4, false}, {"1.5Ki", 1536, false},
		{"Gi", 0, true}, {"1iM", 0, true}, {"", 0, true}, {"NaN", 0, true}, {[]any{}, 0, true},
	} {
		if got, err := Quantity(read(c.v), "x"); got != c.want || (err != nil) != c.bad {
			t.Errorf("quantity %v: %v, %v", c.v, got, err)
		}
	}
	for _, c := range []struct {
		v    any
		want float64
		bad  bool
	}{{nil, 0, false}, {"50%", 50, false}, {" 7 ", 7, false}, {"Inf", 0, true}, {"x", 0, true}, {false, 0, true}} {
		if got, err := Number(read(c.v), "x"); got != c.want || (err != nil) != c.bad {
			t.Errorf("number %v: %v, %v", c.v, got, err)
		}
	}
}

// No value of a manifest makes a reader give up, and no error shows the value.
func TestReadersTakeAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1).Draw(t, "text")
		root := map[string]any{"x": text, "l": []any{text, nil, 1.5}}
		path := rapid.StringMatching(`[xl.\[\]0-9]{0,8}`).Draw(t, "path")
		for _, read := range []func() error{
			func() error { _, err := Value(root, path); return err },
			func() error { _, err := Number(root, path); return err },
			func() error { _, err := Text(root, path); return err },
			func() error { _, err := List(root, path); return err },
			func() error { _, err := Object(root, path); return err },
			func() error { _, err := Duration(root, path); return err },
			func() error { _, err := Quantity(root, path); return err },
			func() error { _, err := Words(root, path); return err },
		} {
			if err := read(); err != nil && len(text) > 8 && strings.Contains(err.Error(), text) {
				t.Fatalf("%v shows the value", err)
			}
		}
	})
}

// Names from manifests in paths do not fill the memory.
func TestKeptPathsAreBounded(t *testing.T) {
	for i := range 2 * mostKnown {
		stepsOf(strconv.Itoa(i))
	}
	n := 0
	known.Range(func(any, any) bool { n++; return true })
	if n > mostKnown {
		t.Errorf("%d paths are kept", n)
	}
}
