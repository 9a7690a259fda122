package audit

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

// nearCase is a set of objects that a rule nearly fires on, or nearly does not.
type nearCase struct {
	Check   string   `yaml:"check"`
	Name    string   `yaml:"name"`
	Use     []string `yaml:"use"`
	Objects string   `yaml:"objects"`
	Fires   bool     `yaml:"fires"`
	Says    string   `yaml:"says"`
}

type nearFile struct {
	Parts map[string]string `yaml:"parts"`
	Cases []nearCase        `yaml:"cases"`
}

// reported are the kinds that a check reports on.
func reported(t testing.TB, id string) []string {
	t.Helper()
	c, ok := Find(id)
	if !ok {
		t.Fatalf("there is no check %s", id)
	}
	return c.Kinds
}

func (c nearCase) text(t *testing.T, parts map[string]string) string {
	t.Helper()
	var all []string
	for _, name := range c.Use {
		if parts[name] == "" {
			t.Fatalf("there is no part %q", name)
		}
		all = append(all, parts[name])
	}
	return strings.Join(append(all, c.Objects), "\n---\n")
}

func hitsOf(t *testing.T, id, text string) []Hit {
	t.Helper()
	g := gather(objects(t, text), Options{})
	var hits []Hit
	for _, o := range g.Objects() {
		if slices.Contains(reported(t, id), topology.KindOf(o)) {
			hits = append(hits, rules()[id](g, o)...)
		}
	}
	return hits
}

// Whatever stands in an object, rules and paths give an answer: what is of
// another type than it should be is as if it were absent.
func TestRulesSurviveWrongTypes(t *testing.T) {
	var text []string
	for _, name := range []string{"seven", "everyday", "mesh", "kong", "unknown", "products"} {
		data, err := os.ReadFile(filepath.Join("..", "retrypath", "testdata", "paths", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(data))
	}
	text = append(text, manyObjects(perStack, true))
	rapid.Check(t, func(rt *rapid.T) {
		var list []*manifest.Object
		for _, part := range text {
			list = append(list, objects(t, part)...)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "changes") {
			o := list[rapid.IntRange(0, len(list)-1).Draw(rt, "object")]
			for _, k := range []string{"spec", "data", "metadata"} {
				if v, ok := o.Root[k]; ok {
					o.Root[k] = wrong(rt, v, 0)
				}
			}
		}
		g := gather(list, Options{})
		allRules(t, g)
		if err := retrypath.Tree(io.Discard, g.paths().All(), 60); err != nil {
			rt.Fatal(err)
		}
	})
}

// wrong is v with one value in it replaced by one of another type.
func wrong(t *rapid.T, v any, depth int) any {
	stop := rapid.IntRange(0, 5).Draw(t, "stop") == 0 && depth > 0
	switch v := v.(type) {
	case map[string]any:
		if !stop && len(v) > 0 {
			k := rapid.SampledFrom(fields.SortedKeys(v)).Draw(t, "key")
			v[k] = wrong(t, v[k], depth+1)
			return v
		}
	case []any:
		if !stop && len(v) > 0 {
			i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
			v[i] = wrong(t, v[i], depth+1)
			return v
		}
	}
	return rapid.SampledFrom([]any{
		nil, "", "x", "-1", "9999999999999", 0.0, -1.0, 1e300, true, []any{}, []any{nil, "a", 1.0}, map[string]any{}, map[string]any{"": []any{map[string]any{}}},
	}).Draw(t, "value")
}

func TestNearMissesOfRules(t *testing.T) {
	files, _ := filepath.Glob("testdata/near/graph/*.yaml")
	count := map[string]int{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f nearFile
		if err := yaml.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range f.Cases {
			count[c.Check[:3]]++
			t.Run(c.Check+" "+c.Name, func(t *testing.T) {
				hits := hitsOf(t, c.Check, c.text(t, f.Parts))
				if (len(hits) > 0) != c.Fires {
					t.Fatalf("%d findings, want any: %v: %+v", len(hits), c.Fires, hits)
				}
				if len(hits) > 0 && !strings.Contains(hits[0].Observed, c.Says) {
					t.Errorf("observed %q, want %q in it", hits[0].Observed, c.Says)
				}
			})
		}
	}
	for _, group := range []string{"RTY", "CBK", "RLM", "CAP", "AVL", "RTE", "INF", "PTH"} {
		if count[group] < 10 {
			t.Errorf("%d near misses in group %s, want 10", count[group], group)
		}
	}
}
