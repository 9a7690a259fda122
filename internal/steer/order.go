package steer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/spelling"
)

// Kinds lists the kinds of actions.
var Kinds = []Kind{Drain, ForceOpen, ForceClosed, Quarantine, Shed, Budget, Pin}

// Bounds of an order. Whoever needs an action for longer than a day needs a change
// of the configuration.
const (
	Shortest  = time.Minute
	Longest   = 24 * time.Hour
	MaxFactor = 10.0
	MaxWhy    = 200 // bytes
)

// lasts is how long an action is in force where nothing else is said: what refuses
// callers, or has a target used against its breaker's verdict, for half an hour; what
// only moves load for an hour; a quarantine for four, as the storms that it is for
// have lasted (the one of 29 May nearly seven).
var lasts = map[Kind]time.Duration{
	Drain: time.Hour, ForceOpen: time.Hour, ForceClosed: 30 * time.Minute, Quarantine: 4 * time.Hour,
	Shed: 30 * time.Minute, Budget: time.Hour, Pin: time.Hour,
}

// sheddable are the priorities that may be refused, the more important first. What
// is critical never is.
var sheddable = []string{"interactive", "batch"}

// Sort is what is wrong with an order.
type Sort uint8

// The sorts.
const (
	Bad      Sort = iota // it must be changed
	Unknown              // it names what there is not
	Conflict             // it cannot be done as things are
)

// Problem is why an order is not taken: where, and what to do.
type Problem struct {
	Is    Sort
	Field string // of the order, "" for the whole
	Text  string
}

func (p Problem) Error() string {
	if p.Field == "" {
		return p.Text
	}
	return p.Field + ": " + p.Text
}

// check completes an order and says how long it is in force.
func (k Known) check(o Order) (Order, time.Duration, error) {
	if !slices.Contains(Kinds, o.Kind) {
		return o, 0, Problem{Field: "kind", Text: fmt.Sprintf("%q is none of %s.", o.Kind, kindNames())}
	}
	d, err := period(o)
	if err != nil {
		return o, 0, err
	}
	o.For = short(d)
	o.Why = strings.TrimSpace(o.Why)
	switch {
	case o.Why == "":
		return o, 0, Problem{Field: "why", Text: "Say why, for those who read the log."}
	case len(o.Why) > MaxWhy:
		return o, 0, Problem{Field: "why", Text: fmt.Sprintf("It has %d bytes; %d are kept.", len(o.Why), MaxWhy)}
	}
	if err := foreign(o); err != nil {
		return o, 0, err
	}
	o, err = k.subject(o)
	return o, d, err
}

func kindNames() string {
	var names []string
	for _, k := range Kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// period is how long the order is in force.
func period(o Order) (time.Duration, error) {
	if o.For == "" {
		return lasts[o.Kind], nil
	}
	d, err := time.ParseDuration(o.For)
	switch {
	case err != nil:
		return 0, Problem{Field: "for", Text: fmt.Sprintf("%q is no duration. Write 30m, or 2h.", o.For)}
	case d < Shortest || d > Longest:
		return 0, Problem{Field: "for", Text: fmt.Sprintf("%s is not between 1m and 24h. What is to hold for longer belongs in the configuration.", o.For)}
	}
	return d, nil
}

// short writes a duration without the units that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// foreign refuses what other kinds of orders have.
func foreign(o Order) error {
	for _, f := range []struct {
		field string
		set   bool
		of    Kind
	}{{"target", o.Target != "", Pin}, {"share", o.Share != nil, Quarantine}, {"factor", o.Factor != nil, Budget}} {
		if f.set && o.Kind != f.of {
			return Problem{Field: f.field, Text: fmt.Sprintf("%s has none; only %s has.", o.Kind, f.of)}
		}
	}
	if s := o.Share; s != nil && !(*s >= 0 && *s <= 1) {
		return Problem{Field: "share", Text: fmt.Sprintf("%v is not between 0 and 1.", *s)}
	}
	if o.Kind != Budget {
		return nil
	}
	if o.Factor == nil || !(*o.Factor >= 0 && *o.Factor <= MaxFactor) {
		return Problem{Field: "factor", Text: "Give a number from 0, for no charged extra attempt, to 10."}
	}
	return nil
}

// subject checks what the order is about.
func (k Known) subject(o Order) (Order, error) {
	switch o.Kind {
	case Drain, ForceOpen, ForceClosed:
		return o, known("subject", "target", o.Subject, k.Targets)
	case Quarantine:
		return o, known("subject", "workload", o.Subject, slices.Sorted(maps.Keys(k.Workloads)))
	case Shed:
		switch {
		case slices.Contains(sheddable, o.Subject):
			return o, nil
		case o.Subject == "critical":
			return o, Problem{Field: "subject", Text: "Requests of priority critical are never shed. Quarantine the workload that is too much."}
		}
		return o, Problem{Field: "subject", Text: fmt.Sprintf("%q is no priority that can be shed: batch, or interactive, which sheds batch too.", o.Subject)}
	case Budget:
		return o, k.budget(o.Subject)
	}
	if err := known("subject", "model", o.Subject, slices.Sorted(maps.Keys(k.Models))); err != nil {
		return o, err
	}
	if targets := k.Models[o.Subject]; !slices.Contains(targets, o.Target) {
		return o, Problem{Is: Unknown, Field: "target", Text: fmt.Sprintf("%q is no target of %s, which has %s.", o.Target, o.Subject, strings.Join(targets, ", "))}
	}
	return o, nil
}

func (k Known) budget(subject string) error {
	what, name, _ := strings.Cut(subject, ":")
	switch what {
	case "workload":
		return known("subject", what, name, slices.Sorted(maps.Keys(k.Workloads)))
	case "target":
		return known("subject", what, name, k.Targets)
	}
	return Problem{Field: "subject", Text: fmt.Sprintf("%q is neither workload:NAME nor target:NAME.", subject)}
}

// maxListed bounds how many names an error lists.
const maxListed = 10

// known refuses a name that is none, with the one that was meant.
func known(field, what, name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	text := fmt.Sprintf("There is no %s %q", what, name)
	if near := spelling.Nearest(name, names); near != "" {
		return Problem{Is: Unknown, Field: field, Text: fmt.Sprintf("%s. Did you mean %s?", text, near)}
	}
	if part := containing(name, names); len(part) > 0 {
		return Problem{Is: Unknown, Field: field, Text: fmt.Sprintf("%s. Did you mean %s?", text, strings.Join(part, " or "))}
	}
	if len(names) > maxListed {
		return Problem{Is: Unknown, Field: field, Text: fmt.Sprintf("%s among %d. GET /api/v1/state lists them.", text, len(names))}
	}
	return Problem{Is: Unknown, Field: field, Text: fmt.Sprintf("%s. There are: %s.", text, strings.Join(names, ", "))}
}

// containing are the names that have name as a part: a target without its provider,
// or a provider without its target.
func containing(name string, names []string) (list []string) {
	for _, n := range names {
		if before, after, found := strings.Cut(n, "/"); found && name != "" && (before == name || after == name) && len(list) < maxListed {
			list = append(list, n)
		}
	}
	return list
}

// gone says why an action can no longer hold; "" when it can.
func (k Known) gone(a *Action) string {
	_, err := k.subject(a.Order)
	switch {
	case err == nil:
		return ""
	case a.Kind == Pin && k.Models[a.Subject] != nil:
		return a.Target + " is no longer a target of " + a.Subject
	}
	return a.Subject + " is no longer configured"
}

// anyAbove reports a workload that matters more than a priority.
func (k Known) anyAbove(priority string) bool {
	refused := sheds(priority)
	for _, p := range k.Workloads {
		if !slices.Contains(refused, p) {
			return true
		}
	}
	return false
}
