package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/workload"
)

// byRouter is who does what no person and no rule does.
const byRouter = "router"

// documents is the kind of the actions in the store.
const documents = "action"

// steering is what an operator has ordered, and what of it was put in force.
type steering struct {
	mu    sync.Mutex // one order at a time; held while it is put in force, never while it is written
	book  *steer.Book
	base  *gateway.Snapshot // in force, without pins
	next  *gateway.Snapshot // of the configuration on its way, likewise; nil for none
	way   *gateway.Rollout  // where that is served from
	pins  map[string]string // as they are in the gateway's
	lanes map[string]lane   // workloads that actions have moved
	first time.Time         // when the first action ends, zero for none
}

// lane is a workload in quarantine by an action, and where it was before.
type lane struct {
	of     *workload.Workload // another one of the name may take its place
	action string
	before workload.Placement
}

func newSteering() *steering { return &steering{book: steer.NewBook(), lanes: map[string]lane{}} }

// restore takes back the actions that the store has kept. Those that are over are not
// in force again.
func (a *App) restore() error {
	docs, err := a.store.List(documents)
	if err != nil {
		return fmt.Errorf("read the operators' actions: %w", err)
	}
	var list []steer.Action
	for _, d := range docs {
		var one steer.Action
		if err := json.Unmarshal(d.Body, &one); err != nil {
			a.log.Error("an action in the store cannot be read and is left out", "component", "store", "action", d.ID, "reason", err.Error())
			continue
		}
		list = append(list, one)
	}
	now := time.Now()
	a.over(now, a.steering.book.Restore(now, list))
	return nil
}

// serveFrom puts a snapshot in force, with what was ordered.
func (a *App) serveFrom(s *gateway.Snapshot) {
	a.steering.mu.Lock()
	defer a.steering.mu.Unlock()
	a.steering.base, a.steering.pins = s, nil
	if s.Rollout == nil {
		a.steering.next, a.steering.way = nil, nil
	}
	a.apply(time.Now())
}

// settleOrders ends what was ordered of something that is no longer there. It comes
// behind the last step of a change: between two configurations on their way, and at
// a start, there is for a moment less than before and after.
func (a *App) settleOrders() {
	now := time.Now()
	a.steering.mu.Lock()
	over := a.steering.book.Use(now, a.known(a.steering.base))
	if len(over) > 0 {
		a.apply(now)
	}
	a.steering.mu.Unlock()
	a.over(now, over)
}

// serveBeside does the same with the snapshot of the configuration on its way.
func (a *App) serveBeside(way *gateway.Rollout, s *gateway.Snapshot) {
	a.steering.mu.Lock()
	defer a.steering.mu.Unlock()
	a.steering.next, a.steering.way = s, way
	way.Next.Store(pinned(s, a.steering.pins))
}

// steerable are the targets that serve: of the configuration in force and of the one
// on its way. A name may be that of one of each.
func (a *App) steerable() []*route.Target {
	return slices.Concat(a.builder.list(), a.builder.candidates())
}

// known is what there is to steer.
func (a *App) known(s *gateway.Snapshot) steer.Known {
	k := steer.Known{Workloads: map[string]string{}, Models: map[string][]string{}}
	for _, t := range a.steerable() {
		if name := t.Spec().Name; !slices.Contains(k.Targets, name) {
			k.Targets = append(k.Targets, name)
		}
	}
	for _, w := range a.builder.workloadsInForce() {
		k.Workloads[w.Name()] = w.Priority().String()
	}
	for _, m := range modelsOf(s) {
		for _, e := range m.Entries {
			k.Models[m.Name] = append(k.Models[m.Name], e.Spec().Name)
		}
	}
	return k
}

// modelsOf lists what clients may ask for by name.
func modelsOf(s *gateway.Snapshot) (list []*route.Model) {
	for _, m := range s.Models {
		list = append(list, m)
	}
	if s.Wildcard != nil {
		list = append(list, s.Wildcard)
	}
	return list
}

// apply puts in force what the book says, where it is not yet. The lock is held.
func (a *App) apply(now time.Time) {
	e := a.steering.book.Effect(now)
	a.steering.first = a.steering.book.Next()
	for _, t := range a.steerable() {
		t.Steer(now, steeringOf(e, t.Spec().Name))
	}
	for _, w := range a.builder.workloadsInForce() {
		w.Scale(factor(e, "workload:"+w.Name()))
		a.place(now, w, e)
	}
	a.gateway.TurnAway(shedding(e))
	if a.steering.pins == nil || !equal(a.steering.pins, e.Pins) {
		a.steering.pins = e.Pins
		a.gateway.Use(pinned(a.steering.base, e.Pins))
		if a.steering.way != nil {
			a.steering.way.Next.Store(pinned(a.steering.next, e.Pins))
		}
	}
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// steeringOf is what was ordered of a target.
func steeringOf(e steer.Effect, name string) route.Steering {
	s := route.Steering{Factor: factor(e, "target:"+name)}
	s.DrainedUntil, s.Drained = e.Drained[name]
	if f, ok := e.Forced[name]; ok {
		s.Forced, s.ForcedUntil = breaker.ForcedOpen, f.Until
		if f.Closed {
			s.Forced = breaker.ForcedClosed
		}
	}
	return s
}

func factor(e steer.Effect, subject string) float64 {
	if f, ok := e.Factors[subject]; ok {
		return f
	}
	return 1
}

// shedding is which priorities are refused, nil for none.
func shedding(e steer.Effect) *gateway.Shedding {
	if len(e.Shed) == 0 {
		return nil
	}
	s := &gateway.Shedding{Until: make([]time.Time, queue.Batch+1)}
	for name, until := range e.Shed {
		if p, ok := queue.ParsePriority(name); ok {
			s.Until[p] = until
		}
	}
	return s
}

// pinned is a snapshot in which models have the one target that they are pinned to.
// A degraded or a content-policy model is pinned where it stands in for another too.
// A model that has not the target keeps those that it has.
func pinned(s *gateway.Snapshot, pins map[string]string) *gateway.Snapshot {
	if len(pins) == 0 {
		return s
	}
	out := *s
	copies := map[*route.Model]*route.Model{}
	for _, m := range modelsOf(s) {
		c := *m
		target, ok := pins[m.Name]
		other := func(e route.Entry) bool { return e.Spec().Name != target }
		if ok && !all(m.Entries, other) {
			c.Entries = slices.DeleteFunc(slices.Clone(m.Entries), other)
		}
		copies[m] = &c
	}
	for _, c := range copies {
		c.Fallback, c.Policy = copies[c.Fallback], slices.Clone(c.Policy)
		for i, p := range c.Policy {
			c.Policy[i] = copies[p]
		}
	}
	out.Models, out.Wildcard = make(map[string]*route.Model, len(s.Models)), copies[s.Wildcard]
	for name, m := range s.Models {
		out.Models[name] = copies[m]
	}
	return &out
}

func all[E any](list []E, is func(E) bool) bool {
	return !slices.ContainsFunc(list, func(e E) bool { return !is(e) })
}

// place moves a workload to the lane that was ordered, or back to where it was. Back
// in the rule's own quarantine it leaves by the rule.
func (a *App) place(now time.Time, w *workload.Workload, e steer.Effect) {
	ordered, wanted := e.Lanes[w.Name()]
	held, there := a.steering.lanes[w.Name()]
	there = there && held.of == w
	switch {
	case wanted && there && held.action == ordered.ID:
	case wanted:
		p := workload.Placement{Lane: workload.Quarantine, Share: workload.LaneShare, Since: &ordered.At, By: ordered.By, Why: ordered.Why, Demand: w.Traffic(now).Demand()}
		if ordered.Share != nil {
			p.Share = *ordered.Share
		}
		before := w.Move(p)
		if there {
			before = held.before
		}
		a.steering.lanes[w.Name()] = lane{of: w, action: ordered.ID, before: before}
	case there:
		delete(a.steering.lanes, w.Name())
		if held.before.ByRule {
			w.Move(held.before)
		} else {
			w.Release()
		}
	}
}

// Order does what an operator asks for. The error is a steer.Problem.
func (a *App) Order(o steer.Order, by admin.By) (steer.Taken, error) {
	now := time.Now()
	a.steering.mu.Lock()
	over := a.steering.book.Expire(now)
	taken, err := a.steering.book.Order(now, o, by.Name)
	if err == nil || len(over) > 0 {
		a.apply(now)
	}
	var replaced []steer.Action
	for _, id := range taken.Ends {
		one, _ := a.steering.book.Find(id)
		replaced = append(replaced, one)
	}
	dropped := a.steering.book.Dropped()
	a.steering.mu.Unlock()
	a.over(now, over)
	if err != nil {
		return taken, err
	}
	for _, one := range replaced {
		a.changed(steer.Entry{At: now, Who: by.Name, Role: by.Role, Via: by.Via, What: "replace", Subject: subject(one), Why: one.EndedBy, Action: one.ID}, detect.Change{})
	}
	a.changed(steer.Entry{
		At: now, Who: by.Name, Role: by.Role, Via: by.Via, What: string(o.Kind), Subject: subject(taken.Action), Why: taken.Why, Action: taken.ID, Undo: taken.Undo,
	}, detect.Change{What: words(o.Kind, o.Subject), Scope: scope(taken.Action)})
	if a.keepActions(append(replaced, taken.Action), dropped) != nil {
		taken.Warnings = append(taken.Warnings, "it holds, but is not written down: a restart of the router ends it")
	}
	return taken, nil
}

// Undo takes an action back. The error is a steer.Problem.
func (a *App) Undo(id string, by admin.By, why string) (steer.Undone, error) {
	return a.undo(id, by, why, "undo")
}

func (a *App) undo(id string, by admin.By, why, what string) (steer.Undone, error) {
	now := time.Now()
	a.steering.mu.Lock()
	over := a.steering.book.Expire(now)
	undone, err := a.steering.book.Undo(now, id, by.Name, why)
	if err == nil || len(over) > 0 {
		a.apply(now)
	}
	find := func(ids []string) (list []steer.Action) {
		for _, id := range ids {
			one, _ := a.steering.book.Find(id)
			list = append(list, one)
		}
		return list
	}
	resumed, handed := find(undone.Resumes), find(undone.Handed)
	a.steering.mu.Unlock()
	a.over(now, over)
	if err != nil {
		return undone, err
	}
	e := steer.Entry{At: now, Who: by.Name, Role: by.Role, Via: by.Via, What: what, Subject: subject(undone.Action), Why: why, Action: id}
	a.changed(e, detect.Change{What: end(what, undone.Action), Scope: scope(undone.Action)})
	for _, one := range resumed {
		e.What, e.Subject, e.Action, e.Undo, e.Why = "resume", subject(one), one.ID, one.Undo, id+" was undone"
		a.changed(e, detect.Change{What: words(one.Kind, one.Subject), Scope: scope(one)})
	}
	if a.keepActions(slices.Concat([]steer.Action{undone.Action}, resumed, handed), nil) != nil {
		a.unwritten(errUnwritten)
	}
	return undone, nil
}

// expire ends what is over.
func (a *App) expire(now time.Time) {
	a.steering.mu.Lock()
	first := a.steering.first
	if first.IsZero() || now.Before(first) {
		a.steering.mu.Unlock()
		return
	}
	over := a.steering.book.Expire(now)
	a.apply(now)
	a.steering.mu.Unlock()
	a.over(now, over)
}

// over notes what no person has ended.
func (a *App) over(now time.Time, list []steer.Action) {
	for _, one := range list {
		what, why := "expire", "it was to hold for "+one.For
		if one.EndedBy == steer.ByConfiguration {
			what, why = "end", one.EndedWhy
		}
		a.changed(steer.Entry{At: now, Who: byRouter, What: what, Subject: subject(one), Why: why, Action: one.ID},
			detect.Change{What: end(what, one), Scope: scope(one)})
		if !a.journal.add(job{write: func() error { return a.put(one) }}) {
			a.unwritten(errUnwritten)
		}
	}
}

// keepActions writes actions down and waits for that.
func (a *App) keepActions(list []steer.Action, dropped []string) error {
	return a.journal.wait(func() error {
		var errs []error
		for _, one := range list {
			errs = append(errs, a.put(one))
		}
		for _, id := range dropped {
			errs = append(errs, a.store.Delete(documents, id))
		}
		return errors.Join(errs...)
	})
}

func (a *App) put(one steer.Action) error {
	body, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return a.store.Put(documents, one.ID, body)
}

// steeringAPI is what the operator's listener may do.
func (a *App) steeringAPI() admin.Steering {
	return admin.Steering{Quarantine: a.Quarantine, Release: a.Release, Order: a.Order, Undo: a.Undo, Actions: a.actions, Audit: a.entries}
}

// actions lists the actions in force and those that have lately ended.
func (a *App) actions(now time.Time) admin.Actions {
	a.steering.mu.Lock()
	defer a.steering.mu.Unlock()
	return admin.ActionsOf(a.steering.book.All(now))
}

// actionsInForce counts them by kind.
func (a *App) actionsInForce(now time.Time) map[string]int {
	a.steering.mu.Lock()
	defer a.steering.mu.Unlock()
	n := map[string]int{}
	for k, count := range a.steering.book.Count(now) {
		n[string(k)] = count
	}
	return n
}

// unpinned is the snapshot in force without pins, and the pins.
func (a *App) unpinned() (*gateway.Snapshot, map[string]string) {
	a.steering.mu.Lock()
	defer a.steering.mu.Unlock()
	return a.steering.base, a.steering.pins
}

// subject is what an action is about, with what it is set to.
func subject(one steer.Action) string {
	switch one.Kind {
	case steer.Pin:
		return one.Subject + " to " + one.Target
	case steer.Budget:
		return fmt.Sprintf("%s by %g", one.Subject, *one.Factor)
	}
	return one.Subject
}

// scope is what an action is about, as the detectors know it.
func scope(one steer.Action) string {
	switch one.Kind {
	case steer.Shed:
		return ""
	case steer.Budget:
		_, name, _ := strings.Cut(one.Subject, ":")
		return name
	}
	return one.Subject
}

// words say what was ordered.
func words(k steer.Kind, subject string) string {
	if k == steer.Shed {
		return "shed " + subject
	}
	return string(k)
}

// end says that it is over.
func end(what string, one steer.Action) string {
	if what == "release" {
		return what
	}
	return what + " " + words(one.Kind, one.Subject)
}
