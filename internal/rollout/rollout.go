// Package rollout decides how far a new configuration reaches: which requests are
// served by it, for how long, and whether what happens to them is worse than what
// happens at the same time to the others. It never raises exposure while a verdict
// is not a pass, takes missing data for a failure, and goes back to the version
// before by itself. It applies nothing: package app serves the two versions and
// tells it what came of their requests.
//
// The package is pure: now and random numbers are arguments. Its types are not
// safe for concurrent use.
package rollout

import (
	"time"

	"github.com/hourthree/hourthree/internal/event"
)

// State is where a rollout stands.
type State string

// The states of a rollout.
const (
	Baking   State = "baking"   // a stage is watched
	Promoted State = "promoted" // every request is served by the new version
	Halted   State = "halted"   // an operator stopped it: everything is on the version before
	Reverted State = "reverted" // a judgement stopped it: likewise
	Replaced State = "replaced" // by a newer version, before it was through
)

// Verdict is what is said of a stage or of one measure.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Insufficient Verdict = "insufficient" // not enough was seen yet
)

// Stage is how far one step of a rollout reaches.
type Stage struct {
	// Share of the traffic, 0 to 1, by workloads; and of Regions where any is named,
	// only calls at targets there see the new version.
	Share   float64  `json:"share"`
	Regions []string `json:"regions,omitempty"`
}

// Measure is one comparison of the new version with the concurrent control.
type Measure struct {
	Name      string  `json:"name"` // success, client, capacity, amplification_out, amplification_in, relabelled, class_mix, first_content, memory
	Candidate float64 `json:"candidate"`
	Control   float64 `json:"control"`
	N         int64   `json:"n"`         // requests of the candidate behind it
	M         int64   `json:"control_n"` // and of the control
	Verdict   Verdict `json:"verdict"`
	Text      string  `json:"text"`
}

// Moment is an entry of a rollout's timeline.
type Moment struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	By   string    `json:"by,omitempty"`
}

// Status is what is known of the newest rollout.
type Status struct {
	Version  string     `json:"version"` // the new configuration
	Before   string     `json:"before"`  // the one that it replaces
	State    State      `json:"state"`
	Stage    int        `json:"stage"` // from 0
	Stages   []Stage    `json:"stages"`
	Exposure float64    `json:"exposure"` // share of the requests that it served in the last minute
	Exposed  []string   `json:"exposed"`  // workloads that it serves whole
	Split    string     `json:"split,omitempty"`
	Began    time.Time  `json:"began"`
	Since    time.Time  `json:"since"` // the stage or the end
	Next     *time.Time `json:"next,omitempty"`
	Verdict  Verdict    `json:"verdict"`
	Why      string     `json:"why"`
	Measures []Measure  `json:"measures"`
	Diff     []string   `json:"diff"` // settings that differ, by path, without secrets
	Timeline []Moment   `json:"timeline"`
}

// Arm is which version served a request.
type Arm = event.Arm

// Config is how rollouts go. Times are real times.
type Config struct {
	Stages   []Stage
	Bake     time.Duration // that a stage is watched at least
	Window   time.Duration // of detection: a stage is watched that long whatever Bake is
	Requests int64         // of the candidate that a stage must have seen at least
	Patience time.Duration // after which a stage that has not seen enough fails
	Margin   float64       // by which success may be lower, as a share: 0.005
}

// Traffic is what there is to expose, in requests a second.
type Traffic struct {
	Workloads map[string]float64
	Regions   map[string]float64
}
