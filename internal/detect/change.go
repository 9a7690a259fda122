package detect

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Change is something that somebody changed: the configuration, a workload's lane,
// or whatever was posted to the router.
type Change struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	// Scope names what it concerns: a region, a domain, a target, a model or a
	// workload; "" concerns everything.
	Scope string `json:"scope,omitempty"`
	By    string `json:"by,omitempty"`
}

// Action is a change since the onset of an outage, with what it is shown to have
// done.
type Action struct {
	Change
	Effect string `json:"effect"`
}

// What can be said of an action.
const (
	NotShown   = "not shown to be the cause, nor to have ended it"
	MayHaveHad = "followed by a verified recovery: it may have ended it"
)

const (
	maxActions = 20
	leastSpan  = 24 * time.Hour // over which the frequency of changes is taken
)

// Tell notes a change. Those of the future are taken for now.
func (d *Detector) Tell(c Change) {
	if c.At.After(d.now) && !d.now.IsZero() {
		c.At = d.now
	}
	if d.changes = append(d.changes, c); len(d.changes) > d.cfg.MaxChanges {
		d.changes = slices.Delete(d.changes, 0, 1)
	}
	for _, o := range d.outages {
		if o.Ended == nil && c.At.After(o.Onset) && len(o.Actions) < maxActions {
			o.Actions = append(o.Actions, Action{Change: c, Effect: NotShown})
			d.note(o, c.At, c.words())
		}
	}
}

func (c Change) words() string {
	text := "changed: " + c.What
	if c.Scope != "" {
		text += " (" + c.Scope + ")"
	}
	if c.By != "" {
		text += " by " + c.By
	}
	return text
}

// concerns reports that a change's scope meets that of an onset.
func (d *Detector) concerns(c Change, wide []Subject) bool {
	if c.Scope == "" {
		return true
	}
	for _, s := range wide {
		if s.Name == c.Scope || s.Kind == Target && d.top.Targets[s.Name].Region == c.Scope {
			return true
		}
	}
	return false
}

// causes are the changes that came before onsets of the outage in their scope. p is
// the chance that as many onsets have a change of such frequency before them by
// accident: under independent arrivals the product of 1-exp(-rate x time).
func (d *Detector) causes(o *Outage) (list []Suspect) {
	seen := map[string]bool{}
	for _, c := range d.changes {
		if seen[c.What] {
			continue
		}
		seen[c.What] = true
		p, matched := 1.0, 0
		for _, on := range o.onsets {
			wide := d.widen(on.scope)
			if d.precedes(c.What, on.at, wide) {
				p *= 1 - math.Exp(-d.frequency(wide)*d.cfg.Before.Seconds())
				matched++
			}
		}
		if matched == 0 {
			continue
		}
		s := Suspect{Subject: Subject{Cause, c.What}, Chance: p, Matched: matched}
		s.Score = (1 - math.Sqrt(p)) * float64(matched) / float64(len(o.onsets))
		s.Text = fmt.Sprintf("came within %s before %d of %d onsets in its scope; by accident with a chance of %.2g", d.cfg.Before, matched, len(o.onsets), p)
		list = append(list, s)
	}
	return list
}

func (d *Detector) precedes(what string, at time.Time, wide []Subject) bool {
	return slices.ContainsFunc(d.changes, func(c Change) bool {
		after := at.Sub(c.At)
		return c.What == what && after >= 0 && after <= d.cfg.Before && d.concerns(c, wide)
	})
}

// frequency is how many changes a second concern a scope.
func (d *Detector) frequency(wide []Subject) float64 {
	n, first := 0, d.now
	for _, c := range d.changes {
		if d.concerns(c, wide) {
			n++
		}
		if c.At.Before(first) {
			first = c.At
		}
	}
	return float64(n) / max(leastSpan, d.now.Sub(first)).Seconds()
}

// settle says what the actions are shown to have done once an outage has ended:
// the last one before a verified recovery may have had part in it.
func (d *Detector) settle(o *Outage, s State) {
	if s != Verified {
		return
	}
	for i := len(o.Actions) - 1; i >= 0; i-- {
		if o.Actions[i].At.Before(o.better) {
			o.Actions[i].Effect = MayHaveHad
			return
		}
	}
}
