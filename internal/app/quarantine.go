package app

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/repeat"
	"github.com/hourthree/hourthree/internal/workload"
)

const (
	// judgeEvery is how often the rule looks at the workloads.
	judgeEvery = 10 * time.Second
	// maxChanges is how many changes are kept; the log has all of them.
	maxChanges = 200
	byRule     = "rule"
)

// lanes moves workloads between lanes and remembers who did so and why.
type lanes struct {
	mu      sync.Mutex
	watch   repeat.Watch
	judged  time.Time
	shed    int64 // requests refused for want of room, when last judged
	changes []admin.Change
}

// changed notes a change, in the log too.
func (a *App) changed(c admin.Change) {
	a.log.Warn("changed", "component", "admin", "who", c.Who, "what", c.What, "subject", c.Subject, "why", c.Why)
	a.tell(c)
	a.announce(c)
	a.lanes.mu.Lock()
	defer a.lanes.mu.Unlock()
	a.lanes.changes = append(a.lanes.changes, c)
	if extra := len(a.lanes.changes) - maxChanges; extra > 0 {
		a.lanes.changes = slices.Delete(a.lanes.changes, 0, extra)
	}
}

// changes lists them, newest first.
func (a *App) changes() []admin.Change {
	a.lanes.mu.Lock()
	defer a.lanes.mu.Unlock()
	list := slices.Clone(a.lanes.changes)
	slices.Reverse(list)
	return list
}

func (a *App) workload(name string) *workload.Workload {
	all := a.builder.workloadsInForce()
	if i := slices.IndexFunc(all, func(w *workload.Workload) bool { return w.Name() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Quarantine moves a workload to the lane that keeps it away from the others,
// from its next request on.
func (a *App) Quarantine(name string, q admin.Quarantine) error {
	w := a.workload(name)
	if w == nil {
		return admin.ErrUnknown
	}
	share := workload.LaneShare
	if q.Share != nil {
		share = *q.Share
	}
	now := time.Now()
	a.move(w, workload.Placement{Share: share, Since: &now, By: q.Who, Why: q.Why})
	return nil
}

// Release moves it back.
func (a *App) Release(name string, q admin.Quarantine) error {
	w := a.workload(name)
	if w == nil {
		return admin.ErrUnknown
	}
	if w.Release().Lane != workload.Quarantine {
		return errors.New("the workload " + name + " is not in quarantine")
	}
	a.changed(admin.Change{At: time.Now(), Who: q.Who, What: "release", Subject: name, Why: q.Why})
	return nil
}

func (a *App) move(w *workload.Workload, p workload.Placement) {
	p.Lane, p.Demand = workload.Quarantine, w.Traffic(*p.Since).Demand()
	w.Move(p)
	a.changed(admin.Change{At: *p.Since, Who: p.By, What: "quarantine", Subject: w.Name(), Why: p.Why})
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
	c := admin.Change{At: now, Who: byRule, What: "note", Subject: m.Name, Why: m.Why}
	switch {
	case m.Stay:
	case m.In:
		c.What = "quarantine"
		if !w.Replace(seen, workload.Placement{
			Lane: workload.Quarantine, Share: share, Since: &now, By: byRule, ByRule: true, Why: m.Why, Demand: w.Traffic(now).Demand(),
		}) {
			return
		}
	default:
		c.What = "release"
		if !w.Replace(seen, workload.Placement{Lane: workload.Normal}) {
			return
		}
	}
	a.changed(c)
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
