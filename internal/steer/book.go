package steer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a Book.
const (
	MaxInForce = 200
	MaxKept    = 1000 // in force and ended
)

// Who ends an action that no person ends.
const (
	ByExpiry        = "expiry"
	ByConfiguration = "configuration"
)

// Known is what there is to steer.
type Known struct {
	Targets   []string
	Workloads map[string]string   // with their priority
	Models    map[string][]string // with their targets
}

// Book is the actions in force and those that have lately ended, the oldest first.
type Book struct {
	known Known
	list  []*Action
	last  int // the number of the newest
	gone  []string
}

// NewBook returns an empty one.
func NewBook() *Book { return new(Book) }

// Taken is an action that was ordered, and what came with it.
type Taken struct {
	Action
	// Ends are the actions that it took the place of.
	Ends     []string `json:"ends,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Undone is an action that was taken back.
type Undone struct {
	Action
	// Resumes are the actions that hold again, as it had taken their place.
	Resumes []string `json:"resumes,omitempty"`
	// Handed are those whose place a newer one has taken too: they wait for its end now.
	Handed []string `json:"-"`
}

// Order puts an action in force from now on, in place of those that it contradicts.
// The error is a Problem.
func (b *Book) Order(now time.Time, o Order, by string) (Taken, error) {
	o, lasts, err := b.known.check(o)
	if err != nil {
		return Taken{}, err
	}
	b.Expire(now)
	a := Action{Order: o, By: by, At: now, Until: now.Add(lasts)}
	held := b.contradicted(&a)
	for _, c := range held {
		if o.Kind == Pin && c.Kind != Pin {
			return Taken{}, Problem{Is: Conflict, Field: "target", Text: fmt.Sprintf(
				"%s is held back by %s (%s, by %s). Undo that first (%s), or pin to another target.", o.Target, c.ID, c.Kind, c.By, c.Undo)}
		}
	}
	if b.inForce(now)-len(held) >= MaxInForce {
		return Taken{}, Problem{Is: Conflict, Text: fmt.Sprintf("%d actions are in force, which is as many as there may be. Undo some: hourthree actions lists them.", MaxInForce)}
	}
	b.last++
	a.ID = "A-" + strconv.Itoa(b.last)
	a.Undo = "hourthree undo " + a.ID + ` --why "…"`
	t := Taken{}
	for _, c := range held {
		c.replace(now, a.ID)
		t.Ends = append(t.Ends, c.ID)
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s (%s %s) was in force and has ended: this takes its place", c.ID, c.Kind, c.Subject))
	}
	b.list = append(b.list, &a)
	b.forget()
	t.Action = a
	t.Warnings = append(t.Warnings, b.warnings(now, &a)...)
	return t, nil
}

func (a *Action) replace(now time.Time, by string) {
	a.Ended, a.EndedBy, a.EndedWhy, a.Replaced = &now, "replaced by "+by, "", by
}

// contradicted are the actions in force that cannot hold beside a.
func (b *Book) contradicted(a *Action) (list []*Action) {
	for _, c := range b.list {
		if c.Ended == nil && contradict(c, a) {
			list = append(list, c)
		}
	}
	return list
}

// contradict reports that two actions cannot both hold: the same again, a breaker
// held open and closed, a model pinned to a target that takes nothing.
func contradict(a, b *Action) bool {
	if a.Kind == b.Kind {
		return a.Subject == b.Subject
	}
	forced := func(k Kind) bool { return k == ForceOpen || k == ForceClosed }
	closes := func(k Kind) bool { return k == ForceOpen || k == Drain }
	switch {
	case forced(a.Kind) && forced(b.Kind):
		return a.Subject == b.Subject
	case a.Kind == Pin && closes(b.Kind):
		return a.Target == b.Subject
	case b.Kind == Pin && closes(a.Kind):
		return b.Target == a.Subject
	}
	return false
}

// Undo takes an action back. What it had taken the place of, and would still be in
// force, is so again.
func (b *Book) Undo(now time.Time, id, who, why string) (Undone, error) {
	b.Expire(now)
	i := slices.IndexFunc(b.list, func(a *Action) bool { return a.ID == id })
	switch {
	case i < 0:
		return Undone{}, Problem{Is: Unknown, Field: "id", Text: fmt.Sprintf("There is no action %q. hourthree actions lists them.", id)}
	case b.list[i].Ended != nil:
		return Undone{}, Problem{Is: Conflict, Field: "id", Text: fmt.Sprintf("%s has ended already, at %s (%s). There is nothing to undo.",
			id, b.list[i].Ended.UTC().Format(time.TimeOnly), b.list[i].EndedBy)}
	case strings.TrimSpace(why) == "":
		return Undone{}, Problem{Is: Bad, Field: "why", Text: "Say why, for those who read the log."}
	}
	a := b.list[i]
	a.Ended, a.EndedBy, a.EndedWhy = &now, who, why
	u := Undone{Action: *a}
	for _, c := range b.list {
		switch {
		case c.Replaced != id:
		case b.resume(now, c):
			u.Resumes = append(u.Resumes, c.ID)
		case c.Replaced != id:
			u.Handed = append(u.Handed, c.ID)
		}
	}
	return u, nil
}

// resume puts an action back in force, unless a newer one has taken its place too.
func (b *Book) resume(now time.Time, a *Action) bool {
	if !now.Before(a.Until) || b.known.gone(a) != "" || b.inForce(now) >= MaxInForce {
		return false
	}
	if newer := b.contradicted(a); len(newer) > 0 {
		a.replace(*a.Ended, newer[0].ID)
		return false
	}
	a.Ended, a.EndedBy, a.EndedWhy, a.Replaced = nil, "", "", ""
	return true
}

// Expire ends what is over, and returns it.
func (b *Book) Expire(now time.Time) (over []Action) {
	for _, a := range b.list {
		if a.Ended == nil && !now.Before(a.Until) {
			end := a.Until
			a.Ended, a.EndedBy = &end, ByExpiry
			over = append(over, *a)
		}
	}
	return over
}

// Use tells what there is from now on. What was done to something that is no longer
// there ends, and is returned.
func (b *Book) Use(now time.Time, k Known) (over []Action) {
	b.known = k
	for _, a := range b.list {
		if a.Ended != nil {
			continue
		}
		if why := k.gone(a); why != "" {
			a.Ended, a.EndedBy, a.EndedWhy = &now, ByConfiguration, why
			over = append(over, *a)
		}
	}
	return over
}

// Restore takes back what was remembered elsewhere, in any order. It returns what
// has ended meanwhile: that is not in force again.
func (b *Book) Restore(now time.Time, list []Action) (over []Action) {
	for _, a := range list {
		n, err := strconv.Atoi(strings.TrimPrefix(a.ID, "A-"))
		if err != nil || n <= 0 {
			continue
		}
		b.last = max(b.last, n)
		b.list = append(b.list, &a)
	}
	slices.SortStableFunc(b.list, func(x, y *Action) int { return number(x) - number(y) })
	b.list = slices.CompactFunc(b.list, func(x, y *Action) bool { return x.ID == y.ID })
	over = b.Expire(now)
	b.forget()
	return over
}

func number(a *Action) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(a.ID, "A-")) // Restore has looked
	return n
}

// forget drops the oldest that have ended, where there are too many.
func (b *Book) forget() {
	extra := len(b.list) - MaxKept
	b.list = slices.DeleteFunc(b.list, func(a *Action) bool {
		if extra <= 0 || a.Ended == nil {
			return false
		}
		extra--
		b.gone = append(b.gone, a.ID)
		return true
	})
}

// Dropped are the IDs of what is no longer kept, each told once.
func (b *Book) Dropped() []string {
	gone := b.gone
	b.gone = nil
	return gone
}

func (b *Book) inForce(now time.Time) (n int) {
	for _, a := range b.list {
		if a.holds(now) {
			n++
		}
	}
	return n
}

// holds reports that the action is in force.
func (a *Action) holds(now time.Time) bool { return a.Ended == nil && now.Before(a.Until) }

// All lists the actions in force and those that have ended, the newest first.
// It ends nothing: whoever does is to note it.
func (b *Book) All(now time.Time) (inForce, ended []Action) {
	for _, a := range slices.Backward(b.list) {
		one := *a
		if one.Ended == nil && !a.holds(now) {
			one.Ended, one.EndedBy = &one.Until, ByExpiry
		}
		if one.Ended == nil {
			inForce = append(inForce, one)
		} else {
			ended = append(ended, one)
		}
	}
	return inForce, ended
}

// Find is an action by its ID.
func (b *Book) Find(id string) (Action, bool) {
	for _, a := range b.list {
		if a.ID == id {
			return *a, true
		}
	}
	return Action{}, false
}

// Next is when the first of those in force ends; zero when there is none.
func (b *Book) Next() (next time.Time) {
	for _, a := range b.list {
		if a.Ended == nil && (next.IsZero() || a.Until.Before(next)) {
			next = a.Until
		}
	}
	return next
}
