package dashboard

import (
	_ "embed"
	"encoding/json"
	"net/http"
)

// drillSummary is what the page says of a drill. The file is made from the drills
// and their recorded verdicts by a test, so that the router does not carry the
// room that plays them.
type drillSummary struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Incident string `json:"incident,omitempty"` // in the library
	Verdict  string `json:"verdict"`            // of this router: pass, lacks, FAIL
	Others   int    `json:"others"`             // contenders
	Failing  int    `json:"failing"`            // of them
	Missed   int    `json:"missed"`             // criteria that this router does not meet
	Criteria int    `json:"criteria"`
}

//go:embed drills.json
var drillsFile []byte

type drillsPage struct {
	Drills  []drillSummary
	Library bool
}

func showDrills(o Options, _ *frame, _ *http.Request) (string, any) {
	v := drillsPage{Library: o.Incidents}
	if err := json.Unmarshal(drillsFile, &v.Drills); err != nil {
		return "", nil // a test reads the same file
	}
	return "Drills", v
}
