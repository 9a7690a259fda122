package app

import (
	"errors"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/repeat"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/workload"
)

const (
	// judgeEvery is how often the rule looks at the workloads.
	judgeEvery = 10 * time.Second
	byRule     = "rule"
	// unsaid is the reason of a quarantine for which none was given.
	unsaid = "no reason was given"
)

// lanes is what the rule that moves workloads between lanes goes by. It belongs to the
// poller.
type lanes struct {
	watch  repeat.Watch
	judged time.Time
	shed   int64 // requests refused for want of room, when last judged
}

func (a *App) workload(name string) *workload.Workload {
	all := a.builder.workloadsInForce()
	if i := slices.IndexFunc(all, func(w *workload.Workload) bool { return w.Name() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Quarantine moves a workload to the lane that keeps it away from the others, from its
// next request on: an action like the others.
func (a *App) Quarantine(name string, q admin.Quarantine) error {
	if q.Why == "" {
		q.Why = unsaid
	}
	_, err := a.Order(steer.Order{Kind: steer.Quarantine, Subject: name, Share: q.Share, Why: q.Why}, q.By)
	var p steer.Problem
	if errors.As(err, &p) && p.Is == steer.Unknown {
		return admin.ErrUnknown
	}
	return err
}

// Release moves it back, whoever has moved it.
func (a *App) Release(name string, q admin.Quarantine) error {
	w := a.workload(name)
	if w == nil {
		return admin.ErrUnknown
	}
	if q.Why == "" {
		q.Why = unsaid
	}
	ordered := false
	for held := a.heldBy(name); held != ""; held = a.heldBy(name) { // each may bring back the one before it
		if _, err := a.undo(held, q.By, q.Why, "release"); err != nil {
			return err
		}
		ordered = true
	}
	if w.Release().Lane != workload.Quarantine && !ordered {
		return errors.New("the workload " + name + " is not in quarantine")
	}
	if ordered { // which is noted
		return nil
	}
	a.changed(steer.Entry{At: time.Now(), Who: q.By.Name, Role: q.By.Role, Via: q.By.Via, What: "release", Subject: name, Why: q.Why},
		detect.Change{What: "release", Scope: name})
	return nil
}

// heldBy is the action that holds a workload in quarantine, "" for none.
func (a *App) heldBy(name string) string {
	a.steering.mu.Lock()
	defer a.steering.mu.Unlock()
	return a.steering.lanes[name].action
}

// judge lets the rule look at the workloads.
func (a *App) judge(now time.Time) {
	if now.Sub(a.lanes.judged) < judgeEvery {
		return
	}
	a.lanes.judged = now
	shed := a.gateway.Shed()
	overloaded := shed > a.lanes.shed
	a.lanes.shed = shed
	rule := a.current.Load().config.Quarantine
	if !rule.Automatic { // what it saw before says nothing once it is on again
		a.lanes.watch = repeat.Watch{}
		return
	}
	all := a.builder.workloadsInForce()
	list, seen := suspects(all, now)
	for _, m := range a.lanes.watch.Judge(now, overloaded, list) {
		i := slices.IndexFunc(all, func(w *workload.Workload) bool { return w.Name() == m.Name })
		a.follow(now, all[i], seen[i], m, rule.Share)
	}
}

// follow does what the rule has decided, unless an operator was faster.
func (a *App) follow(now time.Time, w *workload.Workload, seen workload.Placement, m repeat.Move, share float64) {
	e, told := steer.Entry{At: now, Who: byRule, What: "note", Subject: m.Name, Why: m.Why}, detect.Change{Scope: m.Name}
	switch {
	case m.Stay:
	case m.In:
		e.What, told.What = "quarantine", "quarantine"
		if !w.Replace(seen, workload.Placement{
			Lane: workload.Quarantine, Share: share, Since: &now, By: byRule, ByRule: true, Why: m.Why, Demand: w.Traffic(now).Demand(),
		}) {
			return
		}
	default:
		e.What, told.What = "release", "release"
		if !w.Replace(seen, workload.Placement{Lane: workload.Normal}) {
			return
		}
	}
	a.changed(e, told)
}

// suspects is what the rule sees of the workloads, and where they are.
func suspects(all []*workload.Workload, now time.Time) (list []repeat.Suspect, seen []workload.Placement) {
	for _, w := range all {
		p := w.Placement()
		in := p.Lane == workload.Quarantine
		list = append(list, repeat.Suspect{
			Name: w.Name(), Traffic: w.Traffic(now), Quarantined: in && p.ByRule, Placed: in && !p.ByRule, Demand: p.Demand,
		})
		seen = append(seen, p)
	}
	return list, seen
}
