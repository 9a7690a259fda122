package search

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/incident"
)

type sentence struct {
	ID   string `yaml:"id"`
	Held bool   `yaml:"held"`
	Text string `yaml:"text"`
	// Independent ones are of somebody who did not make the search.
	Independent bool `yaml:"independent"`
}

// tally is how often the expected record was among the first 1, 3 and 10.
type tally struct{ all, one, three, ten int }

func (a *tally) add(rank int) {
	a.all++
	for _, x := range []struct {
		n     *int
		under int
	}{{&a.one, 1}, {&a.three, 3}, {&a.ten, 10}} {
		if rank < x.under {
			*x.n++
		}
	}
}

func (a *tally) percent(n int) float64 { return 100 * float64(n) / float64(a.all) }

// TestSentences: what an engineer types finds the incident.
func TestSentences(t *testing.T) {
	data, err := os.ReadFile("testdata/sentences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []sentence
	if err := yaml.Load(data, &list); err != nil {
		t.Fatal(err)
	}
	x := open(t)
	var seen, held, independent tally
	records := map[string]bool{}
	for _, s := range list {
		res, err := x.Find(context.Background(), Query{Text: s.Text})
		if err != nil {
			t.Fatalf("%s: %v", s.Text, err)
		}
		records[s.ID] = true
		rank := slices.IndexFunc(res.Hits, func(h Hit) bool { return h.Record.ID == s.ID })
		if rank < 0 {
			rank = 99
		}
		switch {
		case s.Held:
			held.add(rank)
			continue
		case s.Independent:
			independent.add(rank)
		default:
			seen.add(rank)
		}
		if rank >= 3 {
			var first []string
			for _, h := range res.Hits[:min(3, len(res.Hits))] {
				first = append(first, h.Record.ID)
			}
			t.Logf("%d. %s %q, before it %v", rank+1, s.ID, s.Text, first)
		}
	}
	for name, a := range map[string]*tally{"seen": &seen, "held back": &held, "independent": &independent} {
		t.Logf("%s: %d sentences; first %.0f %%, among 3 %.0f %%, among 10 %.0f %%", name, a.all, a.percent(a.one), a.percent(a.three), a.percent(a.ten))
		if a.percent(a.three) < 90 {
			t.Errorf("%s: less than 90 %% are among the first three", name)
		}
	}
	if independent.percent(independent.one) < 80 {
		t.Errorf("less than 80 %% of the independent ones are the first")
	}
	if len(list) < 60 || len(records) < 45 || held.all < 15 || independent.all < 50 {
		t.Errorf("%d sentences over %d records, %d held back", len(list), len(records), held.all)
	}
}

// shared is one index for the tests that need no fresh one: it takes time to
// build.
var shared = sync.OnceValues(fresh)

func fresh() (*Index, error) {
	l, err := incident.Open()
	if err != nil {
		return nil, err
	}
	return Open(l)
}

func open(t testing.TB) *Index {
	t.Helper()
	x, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return x
}
