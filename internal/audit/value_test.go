package audit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/layers"
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

func TestRetryClasses(t *testing.T) {
	for _, c := range []struct {
		words string
		want  []layers.Class
	}{
		{"", nil},
		{"5xx", []layers.Class{layers.Connect, layers.Reset, layers.Server}},
		{"gateway-error,connect-failure", []layers.Class{layers.Connect, layers.Server}},
		{"429", []layers.Class{layers.Capacity}},
		{"400-599", []layers.Class{layers.Server, layers.Capacity}},
		{"500-502", []layers.Class{layers.Server}},
		{"RESOURCE-EXHAUSTED", []layers.Class{layers.Capacity}},
		{"retriable-4xx,409,4290,x-y", nil},
	} {
		if got := RetryClasses(strings.Split(c.words, ",")); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.words, got)
		}
	}
}

func TestSelects(t *testing.T) {
	labels := map[string]any{"app": "gw", "tier": "llm"}
	for _, c := range []struct {
		name     string
		selector map[string]any
		want     bool
	}{
		{"none", nil, false},
		{"all", map[string]any{}, true},
		{"one of two labels", map[string]any{"matchLabels": map[string]any{"app": "gw", "tier": "shop"}}, false},
		{"both labels", map[string]any{"matchLabels": map[string]any{"app": "gw", "tier": "llm"}}, true},
		{"labels hold and expressions do not", map[string]any{"matchLabels": map[string]any{"app": "gw"}, "matchExpressions": []any{map[string]any{"key": "tier", "operator": "In", "values": []any{"shop"}}}}, false},
		{"in", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "In", "values": []any{"shop", "llm"}}}}, true},
		{"not in, and absent", map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": "NotIn", "values": []any{"a"}}}}, true},
		{"not in", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "NotIn", "values": []any{"llm"}}}}, false},
		{"exists", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "Exists"}}}, true},
		{"does not exist", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "DoesNotExist"}}}, false},
		{"an operator there is not", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "Near"}}}, false},
		{"what cannot be read", map[string]any{"matchExpressions": "all"}, false},
	} {
		if Selects(c.selector, labels) != c.want {
			t.Error(c.name)
		}
	}
}

func TestHosts(t *testing.T) {
	for in, want := range map[string]string{
		"https://User:pass@API.OpenAI.com:443/v1": "api.openai.com", "llm.llm:4000": "llm.llm", "api.openai.com.": "api.openai.com",
		"$(HOST)": "", "http://10.0.0.1:80": "", "": "", "http://[::1]/": "", "://": "", "http://%zz": "",
	} {
		if got := HostOf(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
	for host, want := range map[string]bool{
		"api.openai.com": true, "contoso-sc.openai.azure.com": true, "API.ANTHROPIC.COM": true, "europe-west1-aiplatform.googleapis.com": true,
		"openai.com": false, "api.openai.com.evil.example": false, "notapi.openai.com": false, "storage.googleapis.com": false, "": false,
	} {
		if Provider(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
}
