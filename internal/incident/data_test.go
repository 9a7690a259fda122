package incident

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func opened(t testing.TB) *Library {
	t.Helper()
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOwnRecords(t *testing.T) {
	l := opened(t)
	if len(l.All()) < 100 {
		t.Errorf("%d records", len(l.All()))
	}
	for i, r := range l.All() {
		if !strings.HasPrefix(r.ID, ownPrefix) {
			t.Errorf("%s does not begin with %s", r.ID, ownPrefix)
		}
		if i > 0 && order(l.All()[i-1], r) >= 0 {
			t.Errorf("%s is out of order", r.ID)
		}
		if got, ok := l.Get(" " + strings.ToLower(r.ID)); !ok || got != r {
			t.Errorf("Get(%s)", r.ID)
		}
	}
}

// TestRelatedAsWritten: who reads one file sees what relates to it, though the
// library would make relations mutual by itself.
func TestRelatedAsWritten(t *testing.T) {
	files, _ := filepath.Glob("data/HT-*.yaml")
	written := map[string][]string{}
	for _, f := range files {
		var r Record
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if d := decode(f, text, &r); len(d.faults) > 0 {
			t.Fatal(d.faults)
		}
		written[r.ID] = r.Related
	}
	for id, related := range written {
		for _, other := range related {
			if !slices.Contains(written[other], id) {
				t.Errorf("%s names %s, which does not name it", id, other)
			}
		}
	}
}

// TestDrills: a record names the drills that replay it, all of them, and a
// drill names the record.
func TestDrills(t *testing.T) {
	l := opened(t)
	files, _ := filepath.Glob("../drill/drills/*.yaml")
	if len(files) == 0 {
		t.Fatal("no drills")
	}
	replayed := map[string][]string{}
	for _, f := range files {
		var s struct {
			Incident string `yaml:"incident"`
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Load(text, &s); err != nil {
			t.Fatal(err)
		}
		if s.Incident == "" {
			continue
		}
		if _, ok := l.Get(s.Incident); !ok {
			t.Errorf("%s replays %s, which the library has not", f, s.Incident)
		}
		replayed[s.Incident] = append(replayed[s.Incident], strings.TrimSuffix(filepath.Base(f), ".yaml"))
	}
	for _, r := range l.All() {
		want := replayed[r.ID]
		have := slices.Sorted(slices.Values(r.Drills))
		slices.Sort(want)
		if !slices.Equal(want, have) {
			t.Errorf("%s names the drills %v, %v replay it", r.ID, have, want)
		}
	}
}

// TestChecksCite: each check of the vocabulary cites an incident, and each
// condition is one that an incident had.
func TestChecksCite(t *testing.T) {
	l := opened(t)
	for s, w := range l.Vocabulary().Conditions {
		if len(l.carrying(Needs, s)) == 0 {
			t.Errorf("no record has %s", s)
		}
		if !slices.IsSorted(w.Checks) || len(slices.Compact(slices.Clone(w.Checks))) != len(w.Checks) {
			t.Errorf("%s: checks are not in order, each once", s)
		}
	}
	if len(l.checks) < 84 {
		t.Errorf("%d checks are cited", len(l.checks))
	}
	for _, id := range l.checks {
		list := l.Citing(id, "")
		if len(list) == 0 {
			t.Errorf("%s cites no incident", id)
		}
		for i := 1; i < len(list); i++ {
			if list[i-1].Evidence().Score < list[i].Evidence().Score {
				t.Errorf("%s: %s is better evidenced than %s", id, list[i].ID, list[i-1].ID)
			}
		}
	}
}

// TestWordsAreUsed: a word that no record has is a word nobody finds anything by.
func TestWordsAreUsed(t *testing.T) {
	l := opened(t)
	for _, f := range Facets() {
		for s, w := range l.Vocabulary().Words(f) {
			if len(l.carrying(f, s)) == 0 {
				t.Errorf("no record has the %s %s", f, s)
			}
			if len(w.Also) == 0 || !strings.HasSuffix(w.Meaning, ".") {
				t.Errorf("%s %s: people have other names for it, and its meaning is a sentence", f, s)
			}
		}
	}
}
