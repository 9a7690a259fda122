package dashboard_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/hourthree/hourthree/internal/drill"
)

// summary is a line of drills.json.
type summary struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Incident string `json:"incident,omitempty"`
	Verdict  string `json:"verdict"`
	Others   int    `json:"others"`
	Failing  int    `json:"failing"`
	Missed   int    `json:"missed"`
	Criteria int    `json:"criteria"`
}

// record is what docs/drills/results.json has of a run.
type record struct {
	Scenario string `json:"scenario"`
	Runs     []struct {
		Contender, Verdict string
		Criteria           []struct{ Met bool }
	} `json:"runs"`
}

// TestDrillsAreCurrent: the embedded list is what the drills and their recorded
// verdicts come to. UPDATE_DRILLS=1 writes it anew.
func TestDrillsAreCurrent(t *testing.T) {
	text, err := os.ReadFile("../../docs/drills/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var records []record
	if err := json.Unmarshal(text, &records); err != nil {
		t.Fatal(err)
	}
	scenarios, err := drill.List()
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	want.WriteString("[\n")
	for i, s := range scenarios {
		d := summary{Name: s.Name, Title: s.Title, Incident: s.Incident, Verdict: "not recorded"}
		for _, r := range records {
			if r.Scenario == s.Name {
				d.count(r)
			}
		}
		line, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			want.WriteString(",\n")
		}
		want.Write(line)
	}
	want.WriteString("\n]\n")
	if os.Getenv("UPDATE_DRILLS") != "" {
		if err := os.WriteFile("drills.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile("drills.json"); err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Error("drills.json is not what the drills and docs/drills/results.json say; write it anew with UPDATE_DRILLS=1 go test ./internal/dashboard -run DrillsAreCurrent")
	}
}

// count sums up a drill's record.
func (d *summary) count(r record) {
	for _, run := range r.Runs {
		if run.Contender != "router" {
			d.Others++
			if run.Verdict == "FAIL" {
				d.Failing++
			}
			continue
		}
		d.Verdict, d.Criteria = run.Verdict, len(run.Criteria)
		for _, c := range run.Criteria {
			if !c.Met {
				d.Missed++
			}
		}
	}
}
