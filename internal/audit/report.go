package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// cited bounds the incidents of a finding.
const cited = 5

// finding is a hit as the report has it.
func (r *run) finding(c *Check, o *manifest.Object, h Hit) Finding {
	f := Finding{
		Key: keyOf(c.ID, o.Ref(), h.Container, h.Path), Check: c, ID: c.ID, Severity: c.Severity, Title: c.Title, State: Fail,
		Object: o.Ref(), Container: h.Container, Place: topology.PlaceOf(o, h.Path), Path: h.Path,
		Observed: h.Observed, Expected: cmp.Or(h.Expected, c.Expected), Related: []RelatedPlace{}, Incidents: r.incidents(c), Drill: c.Drill, on: o,
	}
	if h.Line > 0 {
		f.Place.Line, f.Place.Column = h.Line, 1
	}
	for _, rel := range h.Related {
		if rel.Object != nil {
			f.Related = append(f.Related, RelatedPlace{rel.Object.Ref(), topology.PlaceOf(rel.Object, rel.Path), rel.Path, rel.Note})
		}
	}
	return f
}

// incidents are the ids of the library's records that a check cites.
func (r *run) incidents(c *Check) []string {
	if list, ok := r.citing[c.ID]; ok {
		return list
	}
	list := []string{}
	if r.g.opt.Library == nil {
		return list
	}
	for _, rec := range r.g.opt.Library.Citing(c.ID, c.Drill) {
		if len(list) < cited {
			list = append(list, rec.ID)
		}
	}
	r.citing[c.ID] = slices.Clip(list) // all findings of the check share it
	return r.citing[c.ID]
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// keyOf identifies a finding over runs: lines, indexes and the order of objects
// do not count.
func keyOf(id string, o manifest.Ref, container, path string) string {
	path = index.ReplaceAllString(path, "[]")
	sum := sha256.Sum256([]byte(strings.Join([]string{id, o.Group, o.Version, o.Kind, o.Namespace, o.Name, container, path}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// finish sorts the lists and counts.
func (r *Report) finish(excused int) {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.ID, b.ID), compareRefs(a.Object, b.Object),
			cmp.Compare(a.Container, b.Container), cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Observed, b.Observed))
	})
	slices.SortStableFunc(r.Open, func(a, b Open) int {
		var x, y manifest.Ref
		if a.Object != nil {
			x = *a.Object
		}
		if b.Object != nil {
			y = *b.Object
		}
		return cmp.Or(cmp.Compare(a.ID, b.ID), compareRefs(x, y), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail))
	})
	slices.SortStableFunc(r.Problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.What, b.What))
	})
	r.count(excused)
}

func compareRefs(a, b manifest.Ref) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
}

// count fills in the coverage. A check that fails at several places of an object
// is one pair, failed when one of them is not waived.
func (r *Report) count(excused int) {
	type pair struct {
		id string
		o  manifest.Ref
		on *manifest.Object
	}
	state := map[pair]State{}
	for _, f := range r.Findings {
		if p := (pair{f.ID, f.Object, f.on}); state[p] != Fail {
			state[p] = f.State
		}
	}
	c := &r.Coverage
	c.Fail, c.Waived, c.NotEvaluated = 0, 0, len(r.Open)
	for _, s := range state {
		if s == Waived {
			c.Waived++
		} else {
			c.Fail++
		}
	}
	decided := c.Pass + c.Fail + c.Waived
	if all := decided + c.NotEvaluated - excused; all > 0 {
		c.Percent = decided * 100 / all
	} else {
		c.Percent = 100
	}
}
