package drill

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Result is what one scenario did to several contenders.
type Result struct {
	Scenario   string        `json:"scenario"`
	Title      string        `json:"title"`
	Incident   string        `json:"incident,omitempty"` // id in the library
	Seed       uint64        `json:"seed"`
	Length     time.Duration `json:"length_ns"`       // virtual
	Start      time.Time     `json:"start,omitzero"`  // of the incident, at virtual 0
	Compressed float64       `json:"compression"`     // incident seconds in one virtual second
	Marks      []Mark        `json:"marks,omitempty"` // what happened when, in virtual time
	Facts      []string      `json:"facts"`
	Ours       []string      `json:"assumptions"`
	Runs       []Run         `json:"runs"`
}

// Mark is a moment of the incident.
type Mark struct {
	At   time.Duration `json:"at_ns"`
	Text string        `json:"text"`
}

// Run is one contender's.
type Run struct {
	Contender string        `json:"contender"`
	About     string        `json:"about"` // parameters and their source
	Totals    Counts        `json:"totals"`
	Workloads []Series      `json:"workloads"`
	Targets   []TargetRun   `json:"targets"`
	Gateways  []TargetRun   `json:"gateways,omitempty"` // instances that the contender runs on
	Said      []Mark        `json:"said,omitempty"`     // what the contender reported of the incident
	Criteria  []Judgement   `json:"criteria"`
	Step      time.Duration `json:"step_ns"` // length of one point of a series
	Took      time.Duration `json:"-"`       // wall time
}

// Passed reports that no criterion was missed but those that need what this
// version lacks.
func (r *Run) Passed() bool {
	for _, j := range r.Criteria {
		if j.Err != "" || !j.Met && j.Needs == "" {
			return false
		}
	}
	return true
}

// Toothless lists the criteria that a contender met although the scenario says
// that it fails them: such a drill proves nothing.
func (r *Run) Toothless() (names []string) {
	for _, j := range r.Criteria {
		if j.Met && slices.Contains(j.Fails, r.Contender) {
			names = append(names, j.Name)
		}
	}
	return names
}

// Differs lists the criteria on which another play of the same scenario came to
// another verdict.
func (r *Result) Differs(other *Result) (out []string) {
	for i, a := range r.Runs {
		for k, j := range a.Criteria {
			if b := other.Runs[i].Criteria[k]; j.Met != b.Met {
				out = append(out, fmt.Sprintf("%s, %s: %s, then %s", a.Contender, j.Name, cmp.Or(j.Value, "no figure"), cmp.Or(b.Value, "no figure")))
			}
		}
	}
	return out
}

// Judgement is one criterion, judged.
type Judgement struct {
	Name  string `json:"name"`
	Expr  string `json:"expr"`
	Met   bool   `json:"met"`
	Value string `json:"value,omitempty"` // the left side, where there is one
	Needs string `json:"needs,omitempty"` // a capability that this version lacks
	// Fails are contenders that are to miss it.
	Fails []string `json:"fails,omitempty"`
	Err   string   `json:"error,omitempty"`
}

// Counts are sums over a run or over one step of it.
type Counts struct {
	Fresh    int `json:"fresh"`    // logical requests begun
	Good     int `json:"good"`     // of those begun here, answered whole and in time
	Degraded int `json:"degraded"` // of the good ones, by a last resort
	Refused  int `json:"refused"`  // ended in a refusal or an error
	Late     int `json:"late"`     // the caller gave up
	Inbound  int `json:"inbound"`  // calls by clients, their retries included
	Upstream int `json:"upstream"` // calls at targets
	Wrong    int `json:"wrong"`    // good to look at, and wrong
	// Status counts the last replies by their status.
	Status map[int]int `json:"status,omitempty"`
}

// Series is one workload over time.
type Series struct {
	Name   string    `json:"name"`
	Totals Counts    `json:"totals"`
	Steps  []Counts  `json:"steps"`
	P50    []float64 `json:"p50_ms"` // of good answers begun in the step
	P99    []float64 `json:"p99_ms"`
}

// TargetRun is one target over time, or one instance of the gateway.
type TargetRun struct {
	Name    string       `json:"name"`
	Steps   []TargetStep `json:"steps"`
	Moves   []Move       `json:"moves,omitempty"` // of its breaker, where the contender has one
	Crashes int          `json:"crashes"`
	// Outages are those that the contender spoke of with the target or its model in
	// their scope, by instance and number, with the time at which it first was.
	Outages []Mark `json:"outages,omitempty"`
}

// TargetStep is one step of a target.
type TargetStep struct {
	Calls    int     `json:"calls"`
	OK       int     `json:"ok"`
	Refused  int     `json:"refused"`   // for lack of capacity
	Failed   int     `json:"failed"`    // by a fault
	InFlight int     `json:"in_flight"` // most at once
	Load     float64 `json:"load"`      // share of the capacity that was used, refusals included
	Memory   float64 `json:"memory"`    // most, as a share of the bound; 0 without one
	Probing  int     `json:"probing"`   // most calls at once that were made while the breaker was half open
	Down     bool    `json:"down"`      // after a crash, for some of the step
	Cold     bool    `json:"cold"`      // a fault left it less than its capacity at some call of the step
}

// Move is a breaker's change of phase.
type Move struct {
	At       time.Duration `json:"at_ns"`
	Instance int           `json:"instance,omitempty"` // of the contender, from 1
	To       string        `json:"to"`
	Reason   string        `json:"reason,omitempty"`
}
