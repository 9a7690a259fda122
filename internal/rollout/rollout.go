// Package rollout decides how far a new configuration reaches: which requests are
// served by it, for how long, and whether what happens to them is worse than what
// happens at the same time to the others. It never raises exposure while a verdict
// is not a pass, takes missing data for a failure, and goes back to the version
// before by itself. It applies nothing: package app serves the two versions and
// tells it what came of their requests.
//
// # What it goes by
//
// A stage passes when it has lasted Bake and a full window of detection, the
// candidate has answered Requests, hardly any are left without an end, and nothing
// speaks against it. What speaks against it takes it back in the same tick, however young the stage. A stage that
// has not seen enough after Patience fails: no data is no pass.
//
// The unit is one workload with one model. Where both versions serve it, its own
// requests under the version before are the control. Where the candidate serves it
// whole, its success is held against what is usual for it, and that may fall by the
// factor by which the success of the others falls at the same time: a workload that
// always fails a lot is no bad version, and an outage that hits all alike is not
// either. The last stage has no control: it is held against what was before, and an
// outage that begins in it takes it back.
//
// Shares (success, the caller's mistakes, callers that leave, refusals for
// capacity, extra calls, repeats, relabelling) are judged by a sequential test of non-inferiority: they may
// be worse by a margin, 0.5 points for success. The evidence of each tick is a
// likelihood ratio of both versions' counts against the nearest pair of rates within
// the margin. Its mean is one at most whatever the rates within, also when they
// change with time, so that the product over the ticks reaches 100 with a chance of
// one in a hundred at most however often it is looked at (Ville's inequality;
// Turner, Ly and Grünwald, Generic E-variables for exact sequential k-sample tests,
// 2024; the test of Wald with both rates unknown). Differences of 1 to 60 points are
// looked for at once by taking the mean, and so is a small one everywhere and a
// great one in one workload. What it assumes is that requests of one tick fail
// independently of each other; three ticks at least must bring the evidence, and ten
// requests.
//
// The mix of classes fails with a Jensen-Shannon divergence above 0.05 bits and a
// G-test below one in a million. Capacity refusals that have become server faults
// (29 May 2026, HT-0001) are a failure of their own, for success shows nothing of
// them. Times to first content are compared within size classes of the prompt as
// Kayenta does (Mann-Whitney, Hodges-Lehmann effect of 25 %, outliers beyond three
// inter-quartile ranges left out), at 64 times, 128, and so on, its chance of 0.02
// being spread over the looks. Memory of a request in flight must not rise through
// the stage.
//
// Measured by simulation (sim_test.go). Of 10,000 rollouts of equal versions, of three
// stages each, eight were taken back; of 150 versions with five points more failures
// none passed a first stage of 1,000 requests. With 20 requests a second from 20
// workloads, 2 % of which fail, and 1 % of them exposed: D05 (three calls in four
// answered 400) is taken back after 10 or 11 requests of one workload, in half a
// minute to one and a half; the relabelling of 29 May after some 40 requests where a
// quarter of the calls is refused for capacity, and 90 to 150 where a twentieth is;
// three calls instead of one after 10 to 14; twice the time to first content after
// 65; 1 MiB left behind by each request after 50; five points more failures after 200
// to 400.
//
// A version that is two points worse may get as far as the last stage: a thousand
// requests do not show it, fifteen thousand do.
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
	Name string `json:"name"` // success, client, left, capacity, amplification_out, amplification_in, relabelled, class_mix, first_content, memory
	// Candidate and Control are what the name says: a share, calls for a request,
	// requests for a distinct one, how far the mix is from the control's (bits), the
	// first content as a multiple of the control's, bytes for a request in flight.
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
	Requests int64         // that say something of the candidate, which a stage must have seen at least
	Patience time.Duration // after which a stage that has not seen enough fails
	Margin   float64       // by which success may be lower, as a share: 0.005
}

// Traffic is what there is to expose, in requests a second.
type Traffic struct {
	Workloads map[string]float64
	Regions   map[string]float64
}
