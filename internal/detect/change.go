package detect

import (
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
	// Dose is how much of its scope has it from then on, above 0 and up to 1; 0 says
	// nothing about that.
	Dose float64 `json:"dose,omitempty"`
	// Reverts is the What of the change that this one takes back, in its scope.
	Reverts string `json:"reverts,omitempty"`
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
	d.told++
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

// meant reports of a change's scope that it meets that of an onset.
func (d *Detector) meant(scope []Subject) func(name string) bool {
	names, all := map[string]bool{"": true}, false
	for _, s := range d.widen(scope) {
		names[s.Name] = true
		if s.Kind == Target {
			names[d.top.Targets[s.Name].Region] = true
		}
		all = all || s.Kind == All
	}
	return func(name string) bool { return all || names[name] }
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
