package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
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
	g := NewGraph(objects(t, text), Options{})
	var hits []Hit
	for _, o := range g.Objects() {
		if slices.Contains(reported(t, id), kindOf(o)) {
			hits = append(hits, rules()[id](g, o)...)
		}
	}
	return hits
}

func TestNearMissesOfRules(t *testing.T) {
	files, _ := filepath.Glob("testdata/near/*-graph.yaml")
	count := map[string]int{}
	for _, name := range append(files, "testdata/near/PTH.yaml") {
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
