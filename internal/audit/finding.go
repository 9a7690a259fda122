package audit

import (
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// State is what came of a check for an object.
type State string

// The states. What could not be decided is never a pass.
const (
	Fail          State = "fail"
	Pass          State = "pass"
	Waived        State = "waived"
	NotApplicable State = "not_applicable"
	NotEvaluated  State = "not_evaluated"
)

// Reason is why a check was not evaluated.
type Reason string

// The reasons.
const (
	Forbidden    Reason = "forbidden"                // the cluster does not let us read a kind it needs
	Absent       Reason = "crd_absent"               // the cluster does not serve the kind
	UnknownField Reason = "field_unknown_in_version" // the served version has no such field
	Unreadable   Reason = "parse_error"
	NoLiveData   Reason = "no_live_data"
	TimedOut     Reason = "timeout"
	Partial      Reason = "partial_list" // the cluster gave only a part
)

// Finding is a check that failed, or was waived, at one place.
type Finding struct {
	// Key identifies the finding over runs: it does not depend on lines, indexes
	// or the order of objects.
	Key       string         `json:"key"`
	Check     *Check         `json:"-"`
	ID        string         `json:"check"`
	Severity  Severity       `json:"severity"`
	Title     string         `json:"title"`
	State     State          `json:"state"` // fail or waived
	Object    manifest.Ref   `json:"object"`
	Container string         `json:"container,omitempty"`
	Place     topology.Place `json:"place"`
	Path      string         `json:"path,omitempty"`
	Observed  string         `json:"observed"`
	Expected  string         `json:"expected"`
	Related   []RelatedPlace `json:"related"`
	Incidents []string       `json:"incidents"` // ids of the library: what the drill replays, then the best evidenced
	Drill     string         `json:"drill,omitempty"`
	Waiver    *Waiver        `json:"waiver,omitempty"` // of a waived one
	Change    Change         `json:"change,omitempty"` // against a baseline, see Compare

	on *manifest.Object // that it is about, for counting: two may have one name
}

// RelatedPlace is another place that belongs to a finding.
type RelatedPlace struct {
	Object manifest.Ref   `json:"object"`
	Place  topology.Place `json:"place"`
	Path   string         `json:"path,omitempty"`
	Note   string         `json:"note"`
}

// Open says that a check could not be decided, for an object or as a whole.
type Open struct {
	ID     string        `json:"check"`
	Object *manifest.Ref `json:"object,omitempty"` // nil: for all of its kinds
	Reason Reason        `json:"reason"`
	Detail string        `json:"detail"` // the missing verb, the absent kind, the position
}

// Waiver is somebody's decision to live with a finding.
type Waiver struct {
	Check     string         `yaml:"check" json:"check"`
	Kind      string         `yaml:"kind,omitempty" json:"kind,omitempty"`
	Namespace string         `yaml:"namespace,omitempty" json:"namespace,omitempty"` // glob
	Name      string         `yaml:"name,omitempty" json:"name,omitempty"`           // glob
	Container string         `yaml:"container,omitempty" json:"container,omitempty"`
	Reason    string         `yaml:"reason" json:"reason"`
	Until     string         `yaml:"until" json:"until"` // 2006-01-02, the last day
	Place     topology.Place `yaml:"-" json:"place"`
	Inline    bool           `yaml:"-" json:"inline,omitempty"` // an annotation of the object
}

// Report is what an audit found. Lists are sorted, most severe first, then by
// id, namespace and name.
type Report struct {
	Findings []Finding          `json:"findings"`
	Open     []Open             `json:"not_evaluated"`
	Problems []manifest.Problem `json:"problems"`
	Coverage Coverage           `json:"coverage"`
	Passed   []Passed           `json:"-"`
	// Roles are the workloads that were found to serve or call models.
	Roles []topology.RoleOf `json:"roles"`
	// Empty says that none of the objects was found to be on the way to a model, so
	// that no check applied.
	Empty bool `json:"-"`
}

// Passed is a check that passed for an object.
type Passed struct {
	ID     string
	Object manifest.Ref
}

// Coverage counts what was decided.
type Coverage struct {
	Objects      int `json:"objects"`
	Checks       int `json:"checks"`
	Pass         int `json:"pass"` // pairs of check and object
	Fail         int `json:"fail"`
	Waived       int `json:"waived"`
	NotEvaluated int `json:"not_evaluated"`
	// Percent of the pairs that apply which were decided, 0 to 100; 100 where
	// nothing applies.
	Percent int `json:"percent"`
}
