package audit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hourthree/hourthree/internal/incident"
)

func library(t *testing.T) *incident.Library {
	t.Helper()
	l, err := incident.Open()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Every check looks for a condition that an incident of the library had, and the
// library names no check that there is not.
func TestEveryCheckHasAnIncident(t *testing.T) {
	l := library(t)
	for _, c := range Catalogue() {
		if len(l.Citing(c.ID, "")) == 0 && c.Scope != scopeWaiver {
			t.Errorf("%s: no incident", c.ID)
		}
	}
	for slug, w := range l.Vocabulary().Conditions {
		for _, id := range w.Checks {
			if c, ok := Find(id); !ok || c.ID != id {
				t.Errorf("condition %s names check %q", slug, id)
			}
		}
	}
}

// A finding cites the incidents that its drill replays, then the best evidenced,
// five at most.
func TestFindingsCiteIncidents(t *testing.T) {
	l := library(t)
	c, _ := Find("RTY-002")
	r := run1(t, Input{Objects: objects(t, manifestsOf(t, c.ID, "fail"))}, Options{Checks: []string{c.ID}, Library: l})
	if len(r.Findings) == 0 {
		t.Fatal("no finding")
	}
	var want []string
	for _, rec := range l.Citing(c.ID, c.Drill) {
		want = append(want, rec.ID)
	}
	if got := r.Findings[0].Incidents; !slices.Equal(got, want[:min(len(want), cited)]) || len(got) == 0 {
		t.Errorf("%v, want the first of %v", got, want)
	}
}

// Causes are words of the library's vocabulary, and drills are drills.
func TestCausesAndDrillsAreKnown(t *testing.T) {
	words := library(t).Vocabulary().Causes
	for _, c := range Catalogue() {
		for _, w := range c.Causes {
			if _, ok := words[w]; !ok {
				t.Errorf("%s: cause %q is no word", c.ID, w)
			}
		}
		if c.Drill != "" {
			if _, err := os.Stat(filepath.Join("..", "drill", "drills", c.Drill+".yaml")); err != nil {
				t.Errorf("%s: %v", c.ID, err)
			}
		}
	}
}

// Every source is used, and has a title and an address.
func TestSourcesAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, c := range Catalogue() {
		for _, s := range c.Sources {
			used[s] = true
		}
	}
	for k, s := range own().sources {
		if !used[k] || s.Title == "" || len(s.URL) < len("https://a") || s.URL[:8] != "https://" {
			t.Errorf("%s: used %v, %+v", k, used[k], s)
		}
	}
}

// What started the retry storm of May 2026 is cited first by the checks whose
// drill replays it.
func TestTheReplayedIncidentIsCitedFirst(t *testing.T) {
	l := library(t)
	for _, id := range []string{"RTY-001", "RTY-006", "PTH-001", "PTH-002", "OBS-002"} {
		c, _ := Find(id)
		if list := l.Citing(id, c.Drill); len(list) == 0 || list[0].ID != "HT-0001" {
			t.Errorf("%s cites %v first", id, list)
		}
	}
	for _, c := range Catalogue() {
		replays, past := func(r *incident.Record) bool { return slices.Contains(r.Drills, c.Drill) }, false
		for _, r := range l.Citing(c.ID, c.Drill) {
			if past && c.Drill != "" && replays(r) {
				t.Errorf("%s: %s is replayed by %s and comes late", c.ID, r.ID, c.Drill)
			}
			past = past || !replays(r)
		}
	}
}
