package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
)

func made(t *testing.T) []byte {
	t.Helper()
	library, err := incident.Open()
	if err != nil {
		t.Fatal(err)
	}
	return page(audit.Groups(), library)
}

// TestPageIsCurrent: the page is that of the catalogue and the library.
func TestPageIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../" + output)
	if err != nil || !bytes.Equal(got, made(t)) {
		t.Errorf("%s is stale (%v): run go generate ./internal/audit", output, err)
	}
}

// TestEveryCheckHasAnEntry: with what it says, its evidence, and nothing that
// leaves its cell.
func TestEveryCheckHasAnEntry(t *testing.T) {
	text := string(made(t))
	for _, c := range audit.Catalogue() {
		_, entry, ok := strings.Cut(text, "\n### "+c.ID+"\n")
		if !ok {
			t.Errorf("%s has no entry", c.ID)
			continue
		}
		entry, _, _ = strings.Cut(entry, "\n### ")
		wanted := []string{escape(c.Title), "- Fires when: ", "- Why: ", "- Fix: ", c.Severity.String()}
		if len(c.Kinds) > 0 { // not those of waivers, which are nobody else's facts
			wanted = append(wanted, "- Incidents: HT-", "- Sources: [")
		}
		for _, want := range wanted {
			if !strings.Contains(entry, want) {
				t.Errorf("%s: no %q", c.ID, want)
			}
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| [") && strings.Count(line, "|")-strings.Count(line, `\|`) != 4 {
			t.Errorf("a row of other cells: %s", line)
		}
	}
}
