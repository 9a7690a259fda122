package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/workload"
)

type rolloutPage struct {
	rollout.Status
	Known    bool
	Can      bool // it can be promoted or halted
	CanRetry bool
}

func showRollout(o Options, f *frame, _ *http.Request) (string, any) {
	s, ok := o.Rollout(f.Now)
	stopped := s.State == rollout.Halted || s.State == rollout.Reverted
	return "Rollout", rolloutPage{s, ok, f.May && s.State == rollout.Baking, f.May && stopped}
}

// Done reports that a stage is behind, On that it is the one that is watched.
func (p rolloutPage) Done(i int) bool { return i < p.Stage || p.State == rollout.Promoted }

// On reports that a stage is the one that the rollout stands at.
func (p rolloutPage) On(i int) bool { return i == p.Stage && p.State == rollout.Baking }

type capacityPage struct {
	Full    float64
	Marks   []mark
	Holders []workload.State // of memory, the largest first
	More    int
	Limits  admin.Limits
	Hidden  int // limits that are not shown
	Keys    int // of them keys that have none
	Filter  string
	Past    *past
	Waiting *past
}

// mark is a share of the memory from which a priority is turned away: the
// watermarks of package admit.
type mark struct {
	Priority string
	At       float64
	Passed   bool
}

func showCapacity(o Options, f *frame, r *http.Request) (string, any) {
	v := capacityPage{Limits: o.Limits(f.Now), Filter: filter(r.URL.Query())}
	if f.State.Limit > 0 {
		v.Full = float64(f.State.Reserved) / float64(f.State.Limit)
	}
	for _, m := range []mark{{"batch", 0.70, false}, {"interactive", 0.85, false}, {"critical", 0.95, false}} {
		m.Passed = v.Full >= m.At
		v.Marks = append(v.Marks, m)
	}
	for _, w := range f.State.Workloads {
		if w.Memory > 0 {
			v.Holders = append(v.Holders, w)
		}
	}
	slices.SortStableFunc(v.Holders, func(a, b workload.State) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), strings.Compare(a.Name, b.Name))
	})
	const most = 20
	v.More = max(0, len(v.Holders)-most)
	v.Holders = v.Holders[:len(v.Holders)-v.More]
	fit := func(b admin.Bound) bool { return fits(v.Filter, b.Name, b.Workload, b.Level, b.Provider) }
	bounds := make([]admin.Bound, 0, mostRows)
	for _, b := range v.Limits.Bounds {
		switch {
		case !fit(b):
		case b.NoLimit && b.Level == "key" && v.Filter == "": // most of a router's keys
			v.Keys++
		case len(bounds) < mostRows:
			bounds = append(bounds, b)
		default:
			v.Hidden++
		}
	}
	v.Limits.Bounds = bounds
	v.Limits.Rules = slices.DeleteFunc(slices.Clone(v.Limits.Rules), func(r admin.Rule) bool { return !fits(v.Filter, r.Workload, r.Priority) })
	v.Limits.Rules = v.Limits.Rules[:min(len(v.Limits.Rules), mostRows)]
	v.Limits.Without = v.Limits.Without[:min(len(v.Limits.Without), 20)]
	back := r.URL.Query().Get("range")
	v.Past = o.past(f.Now, "", []string{"memory"}, back)
	v.Waiting = o.past(f.Now, "", []string{"in_flight", "queued"}, back)
	return "Memory and queue", v
}

type actionsPage struct {
	Can            bool
	InForce, Ended []steer.Action
	Audit          []steer.Entry
	Failed         string // why the audit log cannot be read
	HasAudit       bool
	Targets        []string
	Workloads      []string
	Models         []string
}

// mostAudit is how many entries of the audit log are shown.
const mostAudit = 100

func showActions(o Options, f *frame, _ *http.Request) (string, any) {
	v := actionsPage{Can: f.May && o.Actions != nil, HasAudit: o.Audit != nil}
	v.InForce, v.Ended = o.actions(f.Now)
	v.Ended = v.Ended[:min(len(v.Ended), 20)]
	if o.Audit != nil {
		var err error
		if v.Audit, err = o.Audit(0, mostAudit); err != nil {
			v.Failed = err.Error()
		}
	}
	// What the form suggests; anything can be typed.
	const most = 200
	for _, t := range f.State.Targets[:min(len(f.State.Targets), most)] {
		v.Targets = append(v.Targets, t.Name)
	}
	for _, w := range f.State.Workloads[:min(len(f.State.Workloads), most)] {
		v.Workloads = append(v.Workloads, w.Name)
	}
	for _, m := range f.State.Models[:min(len(f.State.Models), most)] {
		v.Models = append(v.Models, m.Name)
	}
	return "Actions", v
}
