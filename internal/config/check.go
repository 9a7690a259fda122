package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/spelling"
)

// checker holds the settings against each other. What one value may be by
// itself the decoder has checked.
type checker struct {
	*decoder
	c         *Config
	providers []string // names, sorted
	models    []string
}

func (k *checker) run() {
	k.providers, k.models = slices.Sorted(maps.Keys(k.c.Providers)), slices.Sorted(maps.Keys(k.c.Models))
	k.listeners()
	k.access()
	for _, name := range k.providers {
		k.provider(name, k.c.Providers[name])
	}
	k.targets()
	for _, name := range k.models {
		k.model(name, k.c.Models[name])
	}
	k.cycles()
	k.workloads()
	k.budgets()
	k.passthrough()
	k.timers()
	k.bounds()
	k.export()
	k.store()
}

func (k *checker) error(path, message, hint string) {
	k.note(k.place(path), Problem{Path: path, Message: message, Hint: hint})
}

func (k *checker) warning(path, message, hint string) {
	k.note(k.place(path), Problem{Path: path, Message: message, Hint: hint, Warning: true})
}

// place is where a path is, or the nearest section around it that is in the
// file.
func (k *checker) place(path string) *yaml.Node {
	for path != "" {
		if n := k.at[path]; n != nil {
			return n
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return nil
}

// known checks a reference to a name. An empty one has been reported.
func (k *checker) known(path, what, name string, names []string) bool {
	if name == "" {
		return false
	}
	if _, ok := slices.BinarySearch(names, name); ok {
		return true
	}
	hint := "configured: " + strings.Join(names[:min(8, len(names))], ", ")
	switch near := spelling.Nearest(name, names); {
	case len(names) == 0:
		hint = "there is no " + what
	case near != "":
		hint = "did you mean " + near + "?"
	case len(names) > 8:
		hint += " and others"
	}
	if raw, ok := k.referred[path]; ok {
		name = raw // what a reference stands for may be a secret in the wrong place
	}
	k.error(path, fmt.Sprintf("%s %q is not configured", what, name), hint)
	return false
}

// targets holds the uses of each target in different models against each
// other: a target has one health and one set of limits.
func (k *checker) targets() {
	type use struct {
		at     string
		target Target
	}
	first := map[string]use{}
	for _, name := range k.models {
		inModel := map[string]bool{}
		for i, t := range k.c.Models[name].Targets {
			at := "models." + name + ".targets[" + strconv.Itoa(i) + "]"
			if t.Provider == "" {
				continue
			}
			id := t.Provider + "/" + upstreamModel(name, t)
			if inModel[id] {
				k.error(at, "is the same target as one above", "remove one of them; weight gives a target a larger share")
				continue
			}
			inModel[id] = true
			other, ok := first[id]
			if !ok {
				first[id] = use{at, t}
				continue
			}
			for _, c := range conflicts(other.target, t) {
				k.error(at+"."+c, "differs from "+other.at+"."+c+", which is the same target", "a target has one set: make them equal, or use another provider entry")
			}
		}
	}
}

// upstreamModel is what a target of a public model asks its provider for.
func upstreamModel(public string, t Target) string {
	if t.Model == "" {
		return public
	}
	return t.Model
}

func conflicts(a, b Target) []string {
	var out []string
	if a.Limits != b.Limits {
		out = append(out, "limits")
	}
	if !samePrice(a.Price, b.Price) {
		out = append(out, "price")
	}
	if !equal(a.Timeouts, b.Timeouts) {
		out = append(out, "timeouts")
	}
	if !sameBehaviour(a.Simulated, b.Simulated) {
		out = append(out, "simulated")
	}
	return out
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameBehaviour(a, b *Simulated) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	same := equal(x.Failure.Share, y.Failure.Share)
	x.Failure.Share, y.Failure.Share = nil, nil
	return same && x == y
}

func (k *checker) model(name string, m Model) {
	path := "models." + name
	if strings.Contains(name, "*") && name != "*" {
		k.error(path, "a * does not stand for a part of a name", `only the name "*" serves names that are not listed`)
	}
	if len(m.Targets) == 0 && k.at[path+".targets"] != nil {
		k.error(path+".targets", "has no target", "")
	}
	domains, all := map[string]bool{}, true
	for i, t := range m.Targets {
		at := path + ".targets[" + strconv.Itoa(i) + "]"
		if !k.known(at+".provider", "provider", t.Provider, k.providers) {
			all = false
			continue
		}
		p := k.c.Providers[t.Provider]
		domains[p.FailureDomain(t.Provider)] = true
		if t.Simulated != nil && p.Type != "simulated" {
			k.error(at+".simulated", "is for a provider of type simulated", "")
		}
		k.within(at+".timeouts", t.Timeouts)
	}
	k.lastResort(path, m)
	if all { // else what is missing is not known
		k.single(path, name, m, len(domains))
	}
}

// single warns of a model that one failure can take away.
func (k *checker) single(path, name string, m Model, domains int) {
	switch {
	case len(m.Targets) > 1 && domains == 1:
		k.warning(path+".targets", "all targets are in one failure domain and may fail together", "add one elsewhere, or set domain where it is not so")
	case len(m.Targets) == 1 && m.Degraded == nil && name != "*":
		k.warning(path, "has one target and no last resort: when it fails, callers get an error", "add a target or degraded")
	case len(m.Targets) == 1 && name != "*":
		k.warning(path+".targets", "has one target: when it fails, only the last resort is left", "add a target")
	case len(m.Targets) > 1 && m.Degraded == nil && name != "*":
		k.warning(path, "has no last resort: when all targets fail, callers get an error", "add degraded, unless an error is what they want")
	}
}

func (k *checker) lastResort(path string, m Model) {
	if g := m.Degraded; g != nil {
		if (g.Message == "") == (g.Model == "") {
			k.error(path+".degraded", "must have exactly one of message and model", "")
		}
		k.known(path+".degraded.model", "model", g.Model, k.models)
		if g.Model != "" && k.c.Defaults.Retry.Attempts == 1 {
			k.warning(path+".degraded.model", "is never tried: defaults.retry.attempts allows one call for a request", "raise attempts, or use message")
		}
	}
	for i, f := range m.ContentPolicyFallback {
		k.known(path+".content_policy_fallback["+strconv.Itoa(i)+"]", "model", f, k.models)
	}
}

// step is one way from a model to another.
type step struct{ to, path string }

func (k *checker) steps(name string) []step {
	m := k.c.Models[name]
	var out []step
	if m.Degraded != nil && m.Degraded.Model != "" {
		out = append(out, step{m.Degraded.Model, "models." + name + ".degraded.model"})
	}
	for i, f := range m.ContentPolicyFallback {
		out = append(out, step{f, "models." + name + ".content_policy_fallback[" + strconv.Itoa(i) + "]"})
	}
	return out
}

// cycles refuses last resorts and fallbacks that lead back to where they
// began, in any mixture. Each is reported once, where it closes.
func (k *checker) cycles() {
	depth := map[string]int{} // on the trail: its place, from 1; walked: -1
	var trail []string
	var walk func(name string)
	walk = func(name string) {
		trail = append(trail, name)
		depth[name] = len(trail)
		for _, s := range k.steps(name) {
			switch at := depth[s.to]; {
			case at > 0:
				k.error(s.path, "leads in a circle: "+circle(trail[at-1:], s.to), "a last resort must end somewhere")
			case at == 0:
				walk(s.to)
			}
		}
		trail = trail[:len(trail)-1]
		depth[name] = -1
	}
	for _, name := range k.models {
		if depth[name] == 0 {
			walk(name)
		}
	}
}

func circle(names []string, back string) string {
	if len(names) > 6 {
		return strings.Join(names[:6], " -> ") + " -> … -> " + back
	}
	return strings.Join(names, " -> ") + " -> " + back
}

func (k *checker) passthrough() {
	for _, prefix := range slices.Sorted(maps.Keys(k.c.Passthrough)) {
		path := "passthrough." + prefix
		if prefix != "/v1" && !strings.HasPrefix(prefix, "/v1/") {
			k.error(path, "a prefix must begin with /v1/", "")
		}
		k.known(path, "provider", k.c.Passthrough[prefix], k.providers)
	}
	if len(k.c.Models) == 0 && len(k.c.Passthrough) == 0 {
		k.error("models", "there is no model", "hourthree init writes an example")
	}
}

func (k *checker) positive(path string, d Duration) {
	if d == 0 {
		k.error(path, "must be above 0", "it cannot be turned off")
	}
}

func (k *checker) timers() {
	t, h := k.c.Defaults.Timeouts, k.c.HTTP
	k.positive("defaults.timeouts.connect", t.Connect)
	k.positive("defaults.timeouts.idle", t.Idle)
	k.positive("defaults.timeouts.total", t.Total)
	k.positive("http.header_timeout", h.HeaderTimeout)
	k.positive("http.write_timeout", h.WriteTimeout)
	k.within("defaults.timeouts", &TargetTimeouts{t.Headers, t.FirstContent})
	if t.Connect > t.Total {
		k.warning("defaults.timeouts.total", "is shorter than connect", "")
	}
}

// within warns of timers that can never end a call.
func (k *checker) within(path string, t *TargetTimeouts) {
	if t == nil {
		return
	}
	total := k.c.Defaults.Timeouts.Total.Duration()
	for _, timer := range []struct {
		name  string
		after time.Duration
	}{{"headers", t.Headers.Fixed()}, {"first_content", t.FirstContent.Fixed()}} {
		if total > 0 && timer.after > total {
			k.warning(path+"."+timer.name, fmt.Sprintf("is longer than the total of %s, which ends the request first", Duration(total)), "")
		}
	}
	if t.FirstContent.Fixed() > 0 && t.Headers.Fixed() > t.FirstContent.Fixed() {
		k.warning(path+".headers", "is longer than first_content, which ends the call first", "")
	}
}

// bounds checks sizes, and the numbers of retry and breaker against each
// other.
func (k *checker) bounds() {
	b, h := k.c.Defaults.Breaker, k.c.HTTP
	if r := k.c.Defaults.Retry; r.MaxRatio < r.Ratio {
		k.error("defaults.retry.max_ratio", fmt.Sprintf("is %v, below the ratio of %v", r.MaxRatio, r.Ratio), "")
	}
	if w := b.Window.Duration(); w < time.Second || w > 2*time.Minute || w%time.Second != 0 {
		k.error("defaults.breaker.window", "must be whole seconds, 1s to 2m", "")
	}
	k.positive("defaults.breaker.cool_down", b.CoolDown)
	k.positive("defaults.breaker.ramp", b.Ramp)
	if b.MaxCoolDown < b.CoolDown {
		k.error("defaults.breaker.max_cool_down", fmt.Sprintf("is %s, shorter than the cool_down of %s", b.MaxCoolDown, b.CoolDown), "")
	}
	if h.MaxBody == 0 {
		k.error("http.max_body", "must be above 0", "")
	}
	if h.MaxHeader < 4<<10 || h.MaxHeader > 16<<20 {
		k.error("http.max_header", "must be 4KiB to 16MiB", "")
	}
	if limit := k.c.Memory.Limit.Bytes(); limit > 0 && limit < h.MaxBody.Bytes() {
		k.warning("memory.limit", fmt.Sprintf("is smaller than http.max_body, %s: the largest bodies are always refused", h.MaxBody), "")
	}
}
