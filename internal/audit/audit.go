package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// Options select and tune.
type Options struct {
	Checks      []string // ids or groups; empty for all
	Namespaces  []string // of objects that are reported on; empty for all
	MaxAttempts int      // on a path, default 10
	Waivers     []Waiver
	Firm        []string  // ids or groups of checks that no waiver applies to
	NoInline    bool      // annotations do not waive
	Today       time.Time // for the expiry of waivers
	Library     *incident.Library
	Context     string // namespace of objects that name none, default "default"
}

// Input is what was collected.
type Input struct {
	Objects  []*manifest.Object
	Problems []manifest.Problem
	// Gaps are the kinds that could not be read from a cluster.
	Gaps []Gap
	// Served are the kinds that the cluster serves; nil when no cluster was read.
	Served []topology.Resource
}

// Gap is a kind that could not be read, or only in part.
type Gap struct {
	topology.Resource
	Reason Reason
	Detail string
}

// Run audits what was collected. The error is a cancelled context, an unknown
// check in the options, or a fault of the catalogue; faults of the input are in
// the report.
func Run(ctx context.Context, in Input, opt Options) (*Report, error) {
	checks, err := Select(opt.Checks)
	if err != nil {
		return nil, err
	}
	r := &run{g: gather(in.Objects, opt), in: in, served: kindsServed(in.Served), citing: map[string][]string{}}
	r.report = Report{Findings: []Finding{}, Open: []Open{}, Problems: slices.Concat(topology.Misdeclared(r.g.Graph), in.Problems, r.g.Unread()), Roles: r.g.Roles(), Empty: !r.g.Any()}
	for _, c := range checks {
		if err := r.check(ctx, c); err != nil {
			return nil, err
		}
	}
	r.report.Coverage.Objects = len(in.Objects)
	for _, c := range checks {
		if c.Scope != scopeWaiver { // those are about no object
			r.report.Coverage.Checks++
		}
	}
	if r.report.Problems == nil {
		r.report.Problems = []manifest.Problem{}
	}
	waive(r.g, &r.report)
	r.report.finish(r.excused)
	return &r.report, nil
}

// run is one audit while it goes on.
type run struct {
	g       *evidence
	in      Input
	served  map[string]bool // nil: no cluster was read
	report  Report
	excused int                 // of Open: nothing to decide there
	citing  map[string][]string // what incidents found
}

// kindsServed are the kinds that a cluster serves, by group and kind.
func kindsServed(list []topology.Resource) map[string]bool {
	if list == nil {
		return nil
	}
	m := map[string]bool{}
	for _, r := range list {
		m[r.Group+"/"+r.Kind] = true
	}
	return m
}

// check decides one check for all objects that it applies to.
func (r *run) check(ctx context.Context, c *Check) error {
	if c.When == "" && rules()[c.ID] == nil {
		return nil // a test says that there is none such
	}
	stop := r.gaps(c)
	for _, kind := range c.Kinds {
		for _, o := range r.g.Kind(kind) {
			if !r.applies(o) {
				continue
			}
			if stop != nil {
				r.open(c, o, stop)
				continue
			}
			if err := r.one(ctx, c, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// applies says that an object is on the path and among those asked for.
func (r *run) applies(o *manifest.Object) bool {
	ns := r.g.opt.Namespaces
	return r.g.On(o) && (len(ns) == 0 || o.Namespace == "" || slices.Contains(ns, o.Namespace))
}

// gaps notes what could not be read of a check's kinds. What it returns is why
// no object can be decided: a rule that looks at several objects needs all of
// them, while an expression judges each that is there.
//
// A kind that the cluster does not serve has no objects. That leaves a check on
// such objects undecided, but not one that asks whether there are any.
func (r *run) gaps(c *Check) *undecided {
	var stop *undecided
	for _, gap := range r.in.Gaps {
		if !slices.ContainsFunc(c.Resources, func(k topology.Resource) bool { return k.Group == gap.Group && k.Kind == gap.Kind }) {
			continue
		}
		u := &undecided{gap.Reason, gap.detail()}
		reported := slices.Contains(c.Kinds, gap.Kind)
		if c.When == "" && c.Scope != "gateway" && gap.Reason != Absent {
			stop = u
		}
		if reported || stop == u && !r.any(c) {
			r.open(c, nil, u)
		}
	}
	return stop
}

// any says whether there is an object that a check applies to.
func (r *run) any(c *Check) bool {
	return slices.ContainsFunc(c.Kinds, func(k string) bool { return slices.ContainsFunc(r.g.Kind(k), r.applies) })
}

func (g Gap) detail() string {
	if g.Detail != "" {
		return g.Detail
	}
	switch g.Reason {
	case Absent:
		return "the cluster does not serve " + g.Resource.String()
	case Partial:
		return "only a part of " + g.Resource.String() + " was read"
	default:
		return "list " + g.Resource.String() + " is not allowed"
	}
}

// one decides a check for an object.
func (r *run) one(ctx context.Context, c *Check, o *manifest.Object) error {
	if c.Live && o.Root["status"] == nil && topology.KindOf(o) != "Node" {
		r.open(c, o, &undecided{NoLiveData, "needs the status that the object has in a running cluster"})
		return nil
	}
	hits, err := r.g.decide(ctx, c, o)
	var u *undecided
	switch {
	case errors.As(err, &u):
		r.open(c, o, u)
	case err != nil:
		return err
	case len(hits) == 0 && r.pruned(c, o):
		r.open(c, o, &undecided{UnknownField, "the installed version of " + o.Kind + " has no such field; " + c.Channel + " would come with it"})
	case len(hits) == 0:
		r.report.Coverage.Pass++
		r.report.Passed = append(r.report.Passed, Passed{c.ID, o.Ref()})
	}
	for _, h := range hits {
		r.report.Findings = append(r.report.Findings, r.finding(c, o, h))
	}
	return nil
}

// pruned says that a field may be absent because the cluster does not know it.
func (r *run) pruned(c *Check, o *manifest.Object) bool {
	if c.Channel == "" || !o.Origin.Live || r.served == nil || r.served[topology.GroupOf(c.Channel)+"/"+c.Channel] {
		return false
	}
	list, _ := r.g.elements(o, c.Each)
	return !slices.ContainsFunc(list, func(e element) bool { v, _ := fields.Value(e.it, c.Field); return v != nil })
}

func (r *run) open(c *Check, o *manifest.Object, u *undecided) {
	n := Open{ID: c.ID, Reason: u.reason, Detail: u.detail}
	if o != nil {
		ref := o.Ref()
		n.Object = &ref
	}
	if u.reason == Absent || u.reason == NoLiveData && o != nil && !o.Origin.Live {
		r.excused++
	}
	r.report.Open = append(r.report.Open, n)
}
