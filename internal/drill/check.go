package drill

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// names may stand in a configuration file and in a criterion.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

// Bounds of what can be played. A wait that is longer than the longest length
// would only make a play endless.
const (
	least         = 0.001 // of rates and capacities
	most          = 1e9   // of capacities and compressions
	mostFactor    = 1000
	mostAnswer    = time.Hour
	mostBackoff   = time.Hour
	mostWait      = 24 * time.Hour
	mostLength    = 48 * time.Hour
	mostCallers   = 1000 // of a workload
	mostInstances = 20
	mostCalls     = 10_000 // that one request's layers of retries may make
)

// between reports that a time is not below 0 and not above most.
func between(d, most time.Duration) bool { return d >= 0 && d <= most }

// bears reports that a capacity can be counted with.
func bears(capacity float64) bool { return capacity >= least && capacity <= most }

// finite refuses what is no number in any field of a scenario.
func finite(place string, v reflect.Value, bad bad) {
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			bad("%s: %v is not a finite number", place, f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			finite(place, v.Elem(), bad)
		}
	case reflect.Slice:
		for i := range v.Len() {
			finite(fmt.Sprintf("%s[%d]", place, i), v.Index(i), bad)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if name != "" && name != "-" {
				finite(strings.TrimPrefix(place+"."+name, "."), v.Field(i), bad)
			}
		}
	}
}

// bad notes what makes a scenario unplayable.
type bad func(format string, args ...any)

func (b bad) in(format string, args ...any) bad {
	place := fmt.Sprintf(format, args...)
	return func(format string, args ...any) { b("%s: %w", place, fmt.Errorf(format, args...)) }
}

// check collects everything that makes a scenario unplayable.
func (s *Scenario) check() error {
	var all []error
	bad := bad(func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) })
	finite("", reflect.ValueOf(*s), bad)
	if !names.MatchString(s.Name) || s.Title == "" {
		bad("name (lower case, digits and hyphens) and title are needed")
	}
	if s.Length <= 0 || s.Length > mostLength {
		bad("length: must be above 0 and at most 48h")
	}
	if s.Thin != 0 && s.Thin < least || s.Thin > 1 {
		bad("thin: must be 0, or 0.001 to 1")
	}
	if s.Compression <= 0 || s.Compression > most {
		bad("compression: must be above 0 and at most a thousand million")
	}
	if len(s.Workloads) == 0 || len(s.Targets) == 0 || len(s.Criteria) == 0 {
		bad("workloads, targets and criteria need at least one entry each")
	}
	if s.Gateway != nil {
		s.Gateway.check(bad.in("gateway"))
	}
	seen := map[string]bool{}
	once := func(name string, bad func(string, ...any)) {
		if !names.MatchString(name) {
			bad("a name of lower case letters, digits, hyphens and dots is needed")
		} else if s.gateway(name) {
			bad("the name is the gateway's")
		} else if seen[name] {
			bad("the name is taken; workloads and targets share one space")
		}
		seen[name] = true
	}
	for i, t := range s.Targets {
		bad := bad.in("targets[%d] %s", i, t.Name)
		once(t.Name, bad)
		t.check(bad)
	}
	for i, t := range s.Targets {
		if t.Degraded && len(s.preferred(t.Model)) == 0 {
			bad("targets[%d] %s: a last resort of the model %q, which has no other target", i, t.Name, t.Model)
		}
	}
	s.replacing(bad)
	callers := map[string]bool{}
	for i, w := range s.Workloads {
		bad := bad.in("workloads[%d] %s", i, w.Name)
		once(w.Name, bad)
		w.check(s, bad)
		for n := range min(w.Callers, mostCallers) {
			if name := callerName(&w, n); callers[name] {
				bad("callers: one of them is %s at the router, and so is another's", name)
			} else {
				callers[name] = true
			}
		}
	}
	for i, f := range s.Faults {
		f.check(s, bad.in("faults[%d]", i))
	}
	for i, a := range s.Actions {
		a.check(s, bad.in("actions[%d]", i))
	}
	for i, m := range s.Marks {
		if m.At < 0 {
			bad("marks[%d]: at must not be below 0", i)
		}
	}
	for i, c := range s.Criteria {
		c.check(s, bad.in("criteria[%d] %s", i, c.Name))
	}
	return errors.Join(all...)
}

func (g *Gateway) check(bad bad) {
	if g.Instances < 1 || g.Instances > mostInstances {
		bad("instances: must be 1 to 20")
	}
	if g.Capacity != 0 && !bears(g.Capacity) {
		bad("capacity: must be 0, or 0.001 to a thousand million")
	}
	if g.Memory < 0 || g.PerCall < 0 || !between(g.Queue, mostAnswer) {
		bad("memory, per_call and queue must not be below 0, and queue an hour at most")
	}
	if g.Down <= 0 || g.Down > mostWait {
		bad("down: must be above 0 and at most 24h")
	}
	if g.Waiting < 0 || g.Waiting > 1 {
		bad("waiting must be 0 to 1")
	}
	if g.Refusal < 0 || g.Refusal > 1 || g.Early < 0 || g.Early > 1 {
		bad("refusal and early must be 0 to 1")
	}
}

func (t *Target) check(bad bad) {
	if !bears(t.Capacity) {
		bad("capacity: must be 0.001 to a thousand million")
	}
	if !printable(t.Model) {
		bad("model: must be printable ASCII, 200 characters at most")
	}
	if t.Slows < 1 || t.Slows > mostFactor || t.Refusal < 0 || t.Refusal > mostFactor {
		bad("slows must be 1 to 1000, and refusal 0 to 1000")
	}
	if !between(t.Latency, mostAnswer) || !between(t.Stream, mostAnswer) || !between(t.Queue, mostAnswer) {
		bad("latency, stream and queue must not be below 0, and an hour at most")
	}
	if t.Full < 400 || t.Full > 599 {
		bad("full: must be a status from 400 to 599")
	}
	if t.Tokens < 0 || t.Tokens > 1e6 || !between(t.PerToken, mostAnswer) {
		bad("tokens must be 0 to a million, and per_token 0 to an hour")
	} else if t.Tokens > 0 && t.Stream != time.Duration(t.Tokens)*t.PerToken {
		bad("tokens and per_token say what stream says in another way: one of the two")
	}
	if t.Memory < 0 || t.PerCall < 0 || t.RPM < 0 || t.Concurrency < 0 {
		bad("memory, per_call, rpm and concurrency must not be below 0")
	}
	if t.Down <= 0 || t.Down > mostWait {
		bad("down: must be above 0 and at most 24h")
	}
	if k := t.Keys; k != nil && (!bears(k.Capacity) || k.Refusal < 0 || k.Refusal > mostFactor || !between(k.Queue, mostAnswer)) {
		bad("keys: needs a capacity of 0.001 or more, a refusal of 0 to 1000, and a queue of 0 to an hour")
	}
	if v := t.Verdict; v != nil && (v.RPS < least || v.For <= 0 || v.For > mostLength) {
		bad("verdict: needs rps of 0.001 or more, and for above 0 and at most 48h")
	}
}

func (w *Workload) check(s *Scenario, bad bad) {
	if len(w.Rate) == 0 && w.Once == 0 {
		bad("needs a rate, or once")
	}
	if len(s.preferred(w.Model)) == 0 {
		bad("model: no target serves %q", w.Model)
	}
	for i, r := range w.Rate {
		if r.RPS != 0 && r.RPS < least || r.RPS*float64(w.Callers) > 10_000 {
			bad("rate[%d]: rps must be 0, or at least 0.001 and of all callers together at most 10000", i)
		}
		if r.At < 0 || i > 0 && r.At <= w.Rate[i-1].At {
			bad("rate[%d]: at must not be below 0, and must rise", i)
		}
	}
	if !between(w.Once, s.Length) {
		bad("once: must not be below 0 or beyond the length")
	}
	if w.Timeout <= 0 || w.Timeout > mostWait {
		bad("timeout: must be above 0 and at most 24h")
	}
	if w.Callers < 1 || w.Callers > mostCallers || w.RPM < 0 || w.Concurrency < 0 || w.Keys < 0 || w.Keys > 1e6 {
		bad("callers must be 1 to 1000, keys at most a million, rpm and concurrency not below 0")
	}
	if !printable(w.Agent) {
		bad("agent: must be printable ASCII, 200 characters at most")
	}
	if w.Priority != "" && !slices.Contains(priorities, w.Priority) {
		bad("priority: %q is none of %v", w.Priority, priorities)
	}
	if b := w.Body; b.P50 < bodySize || b.P95 < b.P50 || b.P99 < b.P95 || b.Max < b.P99 || b.Max > 64<<20 {
		bad("body: p50, p95, p99 and max must rise from 1KiB to 64MiB at most")
	}
	calls := 1
	for i, l := range w.Retries {
		if l.Attempts < 1 || l.Attempts > 100 {
			bad("retries[%d]: attempts must be 1 to 100", i)
		} else if calls <= mostCalls {
			calls *= l.Attempts
		}
		if !between(l.Backoff, mostBackoff) {
			bad("retries[%d]: backoff must not be below 0, and an hour at most", i)
		} else if last := math.Ldexp(l.Backoff.Hours(), l.Attempts-2); l.Attempts > 1 && last > mostWait.Hours() {
			bad("retries[%d]: backoff doubles, and the pause before the last of %d attempts is more than 24h", i, l.Attempts)
		}
		for _, on := range l.On {
			if !slices.Contains(occasions, on) {
				bad("retries[%d]: on: %q is none of %v", i, on, occasions)
			}
		}
	}
	if calls > mostCalls {
		bad("retries: the attempts of the layers multiply, to at most 10000")
	}
}

// printable reports that a text may stand in a header, and in the first
// kilobyte of a request.
func printable(text string) bool {
	return len(text) <= 200 && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// priorities are those of a workload.
var priorities = []string{"critical", "interactive", "batch"}

// occasions are what a layer of retries may repeat on.
var occasions = []string{"5xx", "4xx", "429", "timeout", "reset"}

// modes are the words that a fault's mode may be.
var modes = []string{
	ModeHang, ModeReset, ModeConnect, ModeCut, ModeInside, ModeSlow, ModeFirst, ModeDrip, ModeWrong,
	ModeLess, ModeCold, ModeForget, ModeDrop, ModeRelabel,
}

// factored are the modes that mean nothing without a factor.
var factored = []string{ModeLess, ModeCold, ModeSlow, ModeFirst, ModeDrip}

func (f *Fault) check(s *Scenario, bad bad) {
	switch target := s.target(f.Target); {
	case f.Mode == ModeRelabel && (f.Target != "" || f.Workload == ""):
		bad("relabel happens in a workload's stack: it needs a workload and no target")
	case f.Mode != ModeRelabel && target == nil:
		bad("target %q does not exist", f.Target)
	case f.Mode == ModeForget && target.Keys == nil:
		bad("target %q has no key store to forget", f.Target)
	}
	if f.Workload != "" && !slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Name == f.Workload }) {
		bad("workload %q does not exist", f.Workload)
	}
	if moment := f.Mode == ModeForget || f.Mode == ModeDrop; f.Until <= f.At && !moment {
		bad("until must be later than at")
	}
	if f.At < 0 || !between(f.After, mostWait) || !between(f.RetryAfter, mostWait) {
		bad("at, after and retry_after must not be below 0, and after and retry_after at most 24h")
	}
	if f.Share < 0 || f.Share > 1 || f.To < 0 || f.To > 1 {
		bad("share and to must be 0 to 1")
	}
	switch {
	case f.Factor == 0 && slices.Contains(factored, f.Mode):
		bad("factor must be above 0: mode %s needs one", f.Mode)
	case f.Factor < least || f.Factor > mostFactor:
		bad("factor must be 0.001 to 1000")
	}
	if f.Mode == ModeCold && f.Warm < 1 {
		bad("warm: how many served calls warm it?")
	}
	if !slices.Contains(modes, f.Mode) && f.status() == 0 {
		bad("mode %q is none of %v and no status from 400 to 599", f.Mode, modes)
	}
}

// preferred are the targets of a model that are no last resort.
func (s *Scenario) preferred(model string) (out []*Target) {
	for i := range s.Targets {
		if t := &s.Targets[i]; t.Model == model && !t.Degraded && t.Replaces == "" {
			out = append(out, t)
		}
	}
	return out
}

func (s *Scenario) target(name string) *Target {
	for i := range s.Targets {
		if s.Targets[i].Name == name {
			return &s.Targets[i]
		}
	}
	return nil
}

// deeds are what an action may do.
var deeds = []string{"reload", "configure", "restart", "kill", "drain", "quarantine"}

func (a *Action) check(s *Scenario, bad bad) {
	if !slices.Contains(deeds, a.Do) {
		bad("do: %q is none of %v", a.Do, deeds)
	}
	n := 1
	if s.Gateway != nil {
		n = s.Gateway.Instances
	}
	if a.Instance < 0 || a.Instance > n || a.At < 0 || !between(a.Every, mostWait) {
		bad("instance must be 1 to %d, at and every not below 0, and every at most 24h", n)
	}
	if a.Do == "quarantine" && !slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Name == a.Workload }) {
		bad("workload %q does not exist", a.Workload)
	}
	if !(a.Share >= 0 && a.Share <= 1) || a.Share > 0 && a.Do != "quarantine" {
		bad("share of a quarantine is 0 to 1")
	}
}

// replacing checks the targets that a changed configuration brings, and how it is
// taken.
func (s *Scenario) replacing(bad bad) {
	for i, t := range s.Targets {
		bad := bad.in("targets[%d] %s", i, t.Name)
		switch of := s.target(t.Replaces); {
		case t.Replaces == "":
		case of == nil || of.Replaces != "":
			bad("replaces: %q is no target, or replaces one itself", t.Replaces)
		case of.Model != t.Model || of.Degraded != t.Degraded:
			bad("replaces: %s serves another model, or is a last resort where this is none", t.Replaces)
		case !slices.ContainsFunc(s.Actions, func(a Action) bool { return a.Do == "configure" }):
			bad("replaces: there is no action configure, so it is never called")
		}
	}
	r := s.Rollout
	if r == nil {
		return
	}
	for i, share := range r.Stages {
		if share <= 0 || share > 1 || i > 0 && share <= r.Stages[i-1] {
			bad("rollout: stages[%d] must be above 0, at most 1, and above the one before", i)
		}
	}
	if r.Bake < 0 || r.Requests < 0 || r.Requests > 1e6 || r.Patience < 0 || !between(r.Bake, mostWait) || !between(r.Patience, mostLength) {
		bad("rollout: bake and patience must not be below 0 and at most 24h and 48h, requests 0 to a million")
	}
}

func (c *Criterion) check(s *Scenario, bad bad) {
	if err := s.compile(c.Expr); err != nil {
		bad("%w", err)
	}
	for _, f := range c.Fails {
		if _, ok := find(f); !ok || f == "router" {
			bad("fails: %q is none of %v", f, Names()[1:])
		}
	}
}

// status is the mode as a status, 0 when it is none.
func (f *Fault) status() int {
	var n int
	if _, err := fmt.Sscanf(f.Mode, "%d", &n); err != nil || n < 400 || n > 599 || len(f.Mode) != 3 {
		return 0
	}
	return n
}
