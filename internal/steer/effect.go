package steer

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Effect is what all actions in force come to.
type Effect struct {
	Drained map[string]time.Time // targets, with the end
	Forced  map[string]Force     // targets
	Lanes   map[string]Action    // quarantines, by workload
	Shed    map[string]time.Time // priorities that are refused, with the end
	Factors map[string]float64   // of retry allowances, by subject of the action
	Pins    map[string]string    // models, with their target
}

// Force is what a breaker is held to.
type Force struct {
	Closed bool // else open
	Until  time.Time
}

// Effect is what is in force at now.
func (b *Book) Effect(now time.Time) Effect {
	e := Effect{
		Drained: map[string]time.Time{}, Forced: map[string]Force{}, Lanes: map[string]Action{},
		Shed: map[string]time.Time{}, Factors: map[string]float64{}, Pins: map[string]string{},
	}
	for _, a := range b.list {
		if !a.holds(now) {
			continue
		}
		switch a.Kind {
		case Drain:
			e.Drained[a.Subject] = a.Until
		case ForceOpen, ForceClosed:
			e.Forced[a.Subject] = Force{Closed: a.Kind == ForceClosed, Until: a.Until}
		case Quarantine:
			e.Lanes[a.Subject] = *a
		case Shed:
			for _, p := range sheds(a.Subject) {
				if a.Until.After(e.Shed[p]) {
					e.Shed[p] = a.Until
				}
			}
		case Budget:
			e.Factors[a.Subject] = *a.Factor
		case Pin:
			e.Pins[a.Subject] = a.Target
		}
	}
	return e
}

// sheds is a priority with those that matter less.
func sheds(priority string) []string {
	if i := slices.Index(sheddable, priority); i >= 0 {
		return sheddable[i:]
	}
	return nil
}

// Count is how many actions of each kind are in force.
func (b *Book) Count(now time.Time) map[Kind]int {
	n := map[Kind]int{}
	for _, k := range Kinds {
		n[k] = 0
	}
	for _, a := range b.list {
		if a.holds(now) {
			n[a.Kind]++
		}
	}
	return n
}

// warnings are what an operator should know of an action that was just ordered.
func (b *Book) warnings(now time.Time, a *Action) (list []string) {
	e := b.Effect(now)
	switch a.Kind {
	case Drain, ForceOpen, ForceClosed:
		if _, drained := e.Drained[a.Subject]; drained && a.Kind == ForceClosed {
			list = append(list, "the target is drained: it gets no requests before that ends")
		}
		if a.Kind != ForceClosed {
			list = append(list, b.without(e, a.Subject)...)
		}
	case Shed:
		if !b.known.anyAbove(a.Subject) {
			list = append(list, "no workload matters more than "+a.Subject+": every request is refused")
		}
	}
	return list
}

// without names the models that have a target, and none that takes requests.
func (b *Book) without(e Effect, target string) (list []string) {
	for _, m := range slices.Sorted(maps.Keys(b.known.Models)) {
		targets := b.known.Models[m]
		if slices.Contains(targets, target) && !slices.ContainsFunc(targets, e.takes) {
			list = append(list, fmt.Sprintf("model %s has no target left: its requests get the degraded answer, or 503", m))
		}
	}
	return list
}

// takes reports that no action keeps requests from the target.
func (e Effect) takes(target string) bool {
	_, drained := e.Drained[target]
	f, forced := e.Forced[target]
	return !drained && (!forced || f.Closed)
}
