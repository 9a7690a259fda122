package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// SchemaVersion is of the JSON output, which is also what a baseline is. It
// changes when a reader of the old one would go wrong.
const SchemaVersion = 1

// mostBaselineBytes bounds a baseline.
const mostBaselineBytes = 256 << 20

// Change is what a finding is against a baseline.
type Change string

// The changes. A waived finding that the baseline has is unchanged.
const (
	New       Change = "new"
	Unchanged Change = "unchanged"
)

// Baseline is an earlier run's JSON output.
type Baseline struct {
	File     string
	Findings []Past
}

// Past is a finding of a baseline.
type Past struct {
	Key       string         `json:"key"`
	ID        string         `json:"check"`
	Severity  Severity       `json:"severity"`
	Title     string         `json:"title"`
	State     State          `json:"state"`
	Object    manifest.Ref   `json:"object"`
	Container string         `json:"container,omitempty"`
	Place     topology.Place `json:"place"`
}

// Diff is what became of a baseline's findings; what is new or unchanged is
// marked on the findings themselves.
type Diff struct {
	File           string `json:"file"`
	New, Unchanged int    `json:"-"` // findings that are not waived
	Fixed          []Past `json:"fixed"`
	// Unknown could not be looked for: their check was not evaluated there or
	// their file not read.
	Unknown []Past `json:"unknown"`
}

// ReadBaseline reads the JSON output of an earlier run.
func ReadBaseline(file string, data []byte) (*Baseline, error) {
	if len(data) > mostBaselineBytes {
		return nil, fmt.Errorf("baseline %s: has more than %d bytes", file, mostBaselineBytes)
	}
	var doc struct {
		Version  *int            `json:"schema_version"`
		SARIF    json.RawMessage `json:"runs"`
		Findings *[]Past         `json:"findings"`
	}
	err := json.Unmarshal(data, &doc)
	var place *json.SyntaxError
	var form *json.UnmarshalTypeError
	const remedy = "write it with hourthree audit --format json --output FILE"
	switch {
	case errors.As(err, &place):
		return nil, fmt.Errorf("baseline %s: is not JSON at byte %d: %s; %s", file, place.Offset, place, remedy)
	case err == nil && doc.SARIF != nil:
		return nil, fmt.Errorf("baseline %s: is SARIF; a baseline is JSON: %s", file, remedy)
	case err == nil && doc.Version == nil:
		return nil, fmt.Errorf("baseline %s: has no schema_version: it is not the JSON output of an audit; %s", file, remedy)
	case doc.Version != nil && *doc.Version != SchemaVersion:
		return nil, fmt.Errorf("baseline %s: has schema_version %d, and this program reads %d; write it anew with this program", file, *doc.Version, SchemaVersion)
	case errors.As(err, &form):
		return nil, fmt.Errorf("baseline %s: is not the JSON output of an audit: it has another form at byte %d (%s); %s", file, form.Offset, form.Value, remedy)
	case err != nil:
		return nil, fmt.Errorf("baseline %s: %s; %s", file, strings.TrimPrefix(err.Error(), "json: "), remedy)
	case doc.Findings == nil:
		return nil, fmt.Errorf("baseline %s: has no findings, not even an empty list; %s", file, remedy)
	}
	for i, p := range *doc.Findings {
		if p.Key == "" || p.ID == "" {
			return nil, fmt.Errorf("baseline %s: findings[%d] has no key or check; %s", file, i, remedy)
		}
	}
	return &Baseline{File: file, Findings: *doc.Findings}, nil
}

// Compare marks r's findings as new or unchanged and says what became of the
// others of b. o is what r was made with: findings of checks and namespaces that
// it leaves out are left out here too.
//
// Several findings may have one key, such as those of two rules of a route:
// then the first are the unchanged ones, as many as the baseline has.
func Compare(r *Report, b *Baseline, o Options) *Diff {
	d := &Diff{File: b.File, Fixed: []Past{}, Unknown: []Past{}}
	left := d.mark(r, b)
	for _, p := range slices.Backward(b.Findings) {
		if p.State == Waived || !inScope(p, o) || !take(left, p.Key) {
			continue
		}
		if unknown(r, p) {
			d.Unknown = append(d.Unknown, p)
		} else {
			d.Fixed = append(d.Fixed, p)
		}
	}
	slices.Reverse(d.Fixed)
	slices.Reverse(d.Unknown)
	return d
}

// mark says of each finding what it is against b, and counts those that fail. It
// answers how many findings of b that failed are left for each key.
func (d *Diff) mark(r *Report, b *Baseline) map[string]int {
	failed, waived := map[string]int{}, map[string]int{}
	for _, p := range b.Findings {
		if p.State == Waived {
			waived[p.Key]++
		} else {
			failed[p.Key]++
		}
	}
	// What fails is not new only if it failed before: who had waived it had not
	// accepted it for longer.
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.State != Fail:
		case take(failed, f.Key):
			f.Change = Unchanged
			d.Unchanged++
		default:
			f.Change = New
			d.New++
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.State != Waived:
		case take(waived, f.Key), take(failed, f.Key):
			f.Change = Unchanged
		default:
			f.Change = New
		}
	}
	return failed
}

// take takes one of a key, where there is one.
func take(of map[string]int, key string) bool {
	if of[key] == 0 {
		return false
	}
	of[key]--
	return true
}

func inScope(p Past, o Options) bool {
	return (len(o.Checks) == 0 || selects(o.Checks, p.ID)) &&
		(len(o.Namespaces) == 0 || p.Object.Namespace == "" || slices.Contains(o.Namespaces, p.Object.Namespace))
}

// unknown says whether r cannot tell that p is gone.
func unknown(r *Report, p Past) bool {
	return slices.ContainsFunc(r.Open, func(o Open) bool {
		return o.ID == p.ID && (o.Object == nil || *o.Object == p.Object)
	}) || slices.ContainsFunc(r.Problems, func(m manifest.Problem) bool {
		return m.Lost && m.File == p.Place.File
	})
}

// Gate is what makes a run fail.
type Gate struct {
	FailOn   Severity // and above; 0 for never
	OnlyNew  bool     // against a baseline
	Coverage int      // percent at least
}

// Verdict is what a gate says to a report.
type Verdict uint8

// The verdicts. Findings weigh more than coverage.
const (
	Clean Verdict = iota
	Found
	Uncovered
)

// Judge says whether r may pass.
func (g Gate) Judge(r *Report) Verdict {
	for _, f := range r.Findings {
		if g.Stops(&f) {
			return Found
		}
	}
	if r.Covered() < g.Coverage {
		return Uncovered
	}
	return Clean
}

// Covered is the coverage in percent, never all of it where a part of the input
// could not be read: what it would have added nobody knows.
func (r *Report) Covered() int {
	if slices.ContainsFunc(r.Problems, func(p manifest.Problem) bool { return p.Lost }) {
		return min(r.Coverage.Percent, 99)
	}
	return r.Coverage.Percent
}

// Stops says whether a finding alone makes the run fail.
func (g Gate) Stops(f *Finding) bool {
	return g.FailOn != 0 && f.State == Fail && f.Severity >= g.FailOn && (!g.OnlyNew || f.Change == New)
}
