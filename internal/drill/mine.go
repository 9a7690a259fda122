package drill

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/config"
)

// config is the router's configuration: the scenario's targets in their order,
// and its workloads with their limits; with a user's own, its policies.
func (p *process) config(listen, admin string) *config.Config {
	c := config.Default()
	if p.mine != nil {
		c.Defaults, c.HTTP = p.mine.config.Defaults, p.mine.config.HTTP
	}
	c.Listen, c.Admin.Listen = listen, admin
	c.Memory.Limit = config.FixedBytes(p.memoryLimit())
	c.Providers, c.Models, c.Workloads = map[string]config.Provider{}, map[string]config.Model{}, map[string]config.Workload{}
	for i := range p.Targets {
		t := &p.Targets[i]
		if t.Replaces != "" {
			continue
		}
		c.Providers[t.Name] = config.Provider{
			Type: "openai-compatible", BaseURL: "http://" + p.called(t.Name) + ".test/v1", APIKey: config.NewSecret("drill"), Domain: t.Domain,
		}
		p.serve(c, t, i+1)
	}
	c.Rollout = p.Rollout.config()
	for i := range p.Workloads {
		w := &p.Workloads[i]
		for caller := range w.Callers {
			c.Workloads[callerName(w, caller)] = config.Workload{
				Keys:     []config.Secret{config.NewSecret(keyOf(callerName(w, caller)))},
				Priority: w.Priority, Limits: config.Limits{RPM: int64(w.RPM), TPM: w.tpm, Concurrency: w.Concurrency},
			}
		}
	}
	if p.weaken.config != nil {
		p.weaken.config(c)
	}
	return c
}

// config is the router's.
func (r *Rollout) config() *config.Rollout {
	if r == nil {
		return nil
	}
	c := config.DefaultRollout()
	for _, s := range r.Stages {
		c.Stages = append(c.Stages, config.Share(s))
	}
	c.Bake, c.Patience = cmp.Or(config.Duration(r.Bake), c.Bake), cmp.Or(config.Duration(r.Patience), c.Patience)
	c.Requests = cmp.Or(int64(r.Requests), c.Requests)
	return &c
}

// own is what only a user's configuration says of a target.
type own struct {
	order    int // 0 for its place among the scenario's
	weight   float64
	tpm      int64
	timeouts *config.TargetTimeouts
	message  string // the last resort of its model
}

// ownOf is that of a user's target.
func ownOf(t config.Target) own {
	return own{order: t.Order, weight: t.Weight, tpm: t.Limits.TPM, timeouts: t.Timeouts}
}

// serve puts a target under its model, or under the model's last resort.
func (p *process) serve(c *config.Config, t *Target, order int) {
	e := config.DefaultTarget(t.Name)
	e.Model, e.Order, e.Weight = "real", cmp.Or(t.own.order, order), cmp.Or(t.own.weight, e.Weight)
	e.Limits = config.TargetLimits{RPM: int64(t.RPM), TPM: t.own.tpm, Concurrency: t.Concurrency}
	e.Timeouts = t.own.timeouts
	name := t.Model
	if t.Degraded {
		m := c.Models[name]
		name += "-last-resort"
		m.Degraded = &config.Degraded{Model: name}
		c.Models[t.Model] = m
	}
	m := c.Models[name]
	if t.own.message != "" {
		m.Degraded = &config.Degraded{Message: t.own.message}
	}
	m.Targets = append(m.Targets, e)
	c.Models[name] = m
}

// memoryLimit is what memory.limit auto would be on the scenario's machine: 0.6
// of GOMEMLIMIT, which is 0.9 of the machine's memory.
func (p *process) memoryLimit() int64 {
	if p.mine != nil && p.mine.config.Memory.Limit.Bytes() > 0 {
		return p.mine.config.Memory.Limit.Bytes()
	}
	if p.Gateway == nil || p.Gateway.Memory == 0 {
		return 512 << 20
	}
	return int64(p.Gateway.Memory) * 54 / 100
}

// callerName is the router's workload of one caller.
func callerName(w *Workload, caller int) string {
	if w.Callers == 1 {
		return w.Name
	}
	return fmt.Sprintf("%s-%d", w.Name, caller+1)
}

func keyOf(workload string) string { return "key-of-workload-" + workload }

// without begins the names of the router's variants.
const without = "router-without-"

// lacking is the router without one of its protections. A drill that every
// variant passes proves nothing about that protection.
type lacking struct {
	name   string
	about  string
	weaken weakness
}

var withouts = []lacking{
	{"retry-budget", "extra attempts cost nothing", weakness{config: func(c *config.Config) {
		c.Defaults.Retry.Ratio, c.Defaults.Retry.MaxRatio, c.Defaults.Retry.PerSuccess = 1, 1, 1
	}}},
	{"ledger", "bodies are held however many they are", weakness{config: func(c *config.Config) {
		c.Memory.Limit = config.FixedBytes(1 << 40)
	}}},
	{"fairness", "workloads have no limits of their own", weakness{config: func(c *config.Config) {
		for name, w := range c.Workloads {
			w.Limits = config.Limits{}
			c.Workloads[name] = w
		}
	}}},
	{"queue", "nobody waits for a slot", weakness{config: func(c *config.Config) { c.Defaults.Queue.Length = 0 }}},
	{"priority", "all work matters alike", weakness{config: func(c *config.Config) {
		for name, w := range c.Workloads {
			w.Priority = "interactive"
			c.Workloads[name] = w
		}
	}}},
	{"single-probe", "when a cool-down is over every call is let in", weakness{breaker: func(b *breaker.Config) { b.Herd = true }}},
	{"ramp", "a target that has proven itself gets all its traffic at once", weakness{breaker: func(b *breaker.Config) { b.Ramp = 0 }}},
	{"slow-rule", "calls are judged at their end, however long they wait", weakness{breaker: func(b *breaker.Config) { b.Patient = true }}},
}

func (l lacking) kind() kind {
	return kind{name: without + l.name, about: "this router, but " + l.about, make: func(p *play, o Options) (contender, error) {
		return newWeakened(p, o, l.weaken)
	}}
}

// Mine is a user's configuration: a drill asks whether it would have survived.
type Mine struct {
	config *config.Config
	model  string
}

// NewMine takes the targets of a model and the policies of a configuration;
// model "" is the only one, or the first by name.
func NewMine(c *config.Config, model string) (*Mine, error) {
	names := make([]string, 0, len(c.Models))
	for name := range c.Models {
		names = append(names, name)
	}
	slices.Sort(names)
	if model == "" && len(names) > 0 {
		model = names[0]
	}
	if len(c.Models[model].Targets) == 0 {
		return nil, fmt.Errorf("the configuration has no model %q with targets; it has %v", model, names)
	}
	return &Mine{config: c, model: model}, nil
}

// Fit puts a user's targets and limits in the place of the scenario's: the
// user's first target suffers what the scenario's first does, and so on, and
// targets of one failure domain suffer together. What that takes for granted
// is added to the assumptions, and criteria about targets that the user does
// not have are left out, and said to be.
func (m *Mine) Fit(s *Scenario) (*Scenario, error) {
	f := fitting{
		Mine: m, from: s, out: *s, became: map[string]string{}, domains: map[string]*together{}, taken: map[string]bool{},
	}
	f.out.Targets, f.out.Faults, f.out.Criteria, f.out.Rollout = nil, nil, nil, nil
	f.out.Actions = slices.DeleteFunc(slices.Clone(s.Actions), func(a Action) bool { return a.Do == "configure" })
	f.out.Assumptions = slices.Clone(s.Assumptions)
	f.targets()
	f.faults()
	f.workloads()
	f.criteria()
	f.assume("Not carried over: the workloads' lists of models, content_policy_fallback, the behaviour of simulated targets, and all settings of providers but their failure domains.")
	if len(f.out.Criteria) == 0 {
		return nil, fmt.Errorf("%s: none of its criteria can be asked of the targets of the model %s", s.Name, m.model)
	}
	if err := f.out.check(); err != nil {
		return nil, fmt.Errorf("%s with the targets of the model %s: %w", s.Name, m.model, err)
	}
	return &f.out, nil
}

// fitting is a scenario on its way to a user's.
type fitting struct {
	*Mine
	from   *Scenario
	out    Scenario
	became map[string]string // the user's target for one of the scenario's
	taken  map[string]bool   // names

	domains map[string]*together
}

// together are the user's targets of one failure domain.
type together struct {
	names []string
	as    []string // the scenario's that they stand in for
}

func (f *fitting) assume(format string, args ...any) {
	f.out.Assumptions = append(f.out.Assumptions, fmt.Sprintf(format, args...))
}

func (f *fitting) targets() {
	user := f.config.Models[f.model]
	mine := slices.Clone(user.Targets)
	slices.SortStableFunc(mine, func(a, b config.Target) int { return cmp.Compare(a.Order, b.Order) })
	model := f.from.Targets[0].Model
	for _, w := range f.from.Workloads {
		f.taken[w.Name] = true
	}
	var theirs, last []Target
	for _, t := range f.from.Targets {
		switch {
		case t.Replaces != "": // a change of somebody else's configuration
		case t.Model != model:
			f.out.Targets = append(f.out.Targets, t)
			f.became[t.Name], f.taken[t.Name] = t.Name, true
		case t.Degraded:
			last = append(last, t)
		default:
			theirs = append(theirs, t)
		}
	}
	tokens := false
	for i, m := range mine {
		t := f.take(theirs[min(i, len(theirs)-1)], m, "")
		if d := user.Degraded; d != nil {
			t.own.message = d.Message
		}
		tokens = tokens || t.own.tpm > 0
		f.out.Targets = append(f.out.Targets, t)
	}
	f.lastResort(append(last, theirs[len(theirs)-1]))
	f.assume("%d targets of the model %s stand in for the scenario's %d; capacities, latencies and rates are the scenario's.", len(mine), f.model, len(theirs))
	if tokens {
		f.assume("Limits of tokens count those of the scenario's requests.")
	}
}

// take is a user's target in the place of one of the scenario's, which is
// struck by its faults unless another target has them.
func (f *fitting) take(t Target, m config.Target, suffix string) Target {
	old := t.Name
	t.Name = f.name(targetName(m) + suffix)
	t.Domain = f.config.Providers[m.Provider].FailureDomain(m.Provider)
	t.RPM, t.Concurrency, t.own = int(m.Limits.RPM), m.Limits.Concurrency, ownOf(m)
	d := f.domains[t.Domain]
	if d == nil {
		d = new(together)
		f.domains[t.Domain] = d
	}
	d.names = append(d.names, t.Name)
	if f.became[old] == "" {
		f.became[old] = t.Name
		d.as = append(d.as, old)
	}
	return t
}

// lastResort keeps the targets of the user's degraded model: in the place of
// the scenario's last resorts, and behind those like the last of likes.
func (f *fitting) lastResort(likes []Target) {
	d := f.config.Models[f.model].Degraded
	if d == nil || d.Model == "" {
		return
	}
	mine := f.config.Models[d.Model]
	for i, m := range mine.Targets {
		t := f.take(likes[min(i, len(likes)-1)], m, ".degraded")
		t.Degraded = true
		f.out.Targets = append(f.out.Targets, t)
	}
	if mine.Degraded != nil {
		f.assume("The last resort of %s itself is left out.", d.Model)
	}
}

var unfit = regexp.MustCompile(`[^a-z0-9.-]+`)

// targetName is a target's name as a scenario may have it.
func targetName(t config.Target) string {
	name := unfit.ReplaceAllString(strings.ToLower(t.Provider+"."+t.Model), "-")
	return cmp.Or(strings.Trim(name[:min(len(name), 48)], ".-"), "target")
}

// name is the name, or with a number behind it the first that is free.
func (f *fitting) name(name string) string {
	free := name
	for n := 2; f.taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	f.taken[free] = true
	return free
}

// faults strike all targets of a failure domain alike: with those of the one
// among the scenario's that suffers most.
func (f *fitting) faults() {
	struck := map[string][]string{} // by the scenario's target
	for _, domain := range slices.Sorted(maps.Keys(f.domains)) {
		d := f.domains[domain]
		if len(d.as) == 0 {
			f.assume("%s stays well.", strings.Join(d.names, ", "))
			continue
		}
		worst := slices.MaxFunc(d.as, func(a, b string) int { return cmp.Compare(f.suffering(a), f.suffering(b)) })
		struck[worst] = d.names
		if len(d.names) > 1 {
			f.assume("%s are one failure domain, %s, and all suffer what %s does.", strings.Join(d.names, ", "), domain, worst)
		}
	}
	for _, x := range f.from.Faults {
		if t := f.from.target(x.Target); t != nil && t.Replaces != "" {
			continue
		}
		if x.Target == "" || f.from.target(x.Target).Model != f.from.Targets[0].Model {
			f.out.Faults = append(f.out.Faults, x)
			continue
		}
		for _, name := range struck[x.Target] {
			x.Target = name
			if t := f.out.target(name); t != nil && (x.Mode != ModeForget || t.Keys != nil) {
				f.out.Faults = append(f.out.Faults, x)
			}
		}
	}
}

// suffering is the seconds of one of the scenario's targets in which calls fail.
func (f *fitting) suffering(name string) (seconds float64) {
	for _, x := range f.from.Faults {
		if x.Target == name {
			seconds += x.Share * (x.Until - x.At).Seconds()
		}
	}
	return seconds
}

// workloads take the user's limits in the order of their names.
func (f *fitting) workloads() {
	names := slices.Sorted(maps.Keys(f.config.Workloads))
	f.out.Workloads = slices.Clone(f.from.Workloads)
	for i := range f.out.Workloads {
		w := &f.out.Workloads[i]
		w.RPM, w.Concurrency = 0, 0
		if i >= len(names) {
			f.assume("%s has no limit: the configuration has %d workloads.", w.Name, len(names))
			continue
		}
		l := f.config.Workloads[names[i]].Limits
		w.RPM, w.Concurrency, w.tpm = int(l.RPM), l.Concurrency, l.TPM
		w.Priority = f.config.Workloads[names[i]].Priority
		f.assume("%s has the limits of the workload %s.", w.Name, names[i])
	}
	if f.unplayed() {
		f.assume("Budgets of money and limits of keys and models are left out: the scenario's callers have one key and one model.")
	}
	if len(names) > len(f.out.Workloads) {
		f.assume("Left out, for the scenario has no more callers: %s.", strings.Join(names[len(f.out.Workloads):], ", "))
	}
}

// unplayed reports limits that a scenario has no counterpart of.
func (f *fitting) unplayed() bool {
	for _, w := range f.config.Workloads {
		if w.Limits.USDPerDay > 0 || w.KeyLimits != (config.Limits{}) || len(w.ModelLimits) > 0 {
			return true
		}
	}
	for _, m := range f.config.Models {
		if m.Limits != (config.Limits{}) {
			return true
		}
	}
	return false
}

// renames reports that a name of the scenario's is to be another now: that of a
// target, and of a source all but a workload's.
func (f *fitting) renames(name string, source bool) bool {
	caller := slices.ContainsFunc(f.from.Workloads, func(w Workload) bool { return w.Name == name })
	return f.from.target(name) != nil || source && !caller
}

// named is what a name of the scenario's has become. Who is named as a source is a
// target only where no other suffers with it; a domain of the scenario's is none of
// the user's.
func (f *fitting) named(name string, source bool) string {
	became := f.became[name]
	if !source || became == "" {
		return became
	}
	if t := f.out.target(became); t != nil && f.domains[t.Domain] != nil && len(f.domains[t.Domain].names) > 1 {
		return ""
	}
	return became
}

func (f *fitting) criteria() {
	for _, c := range f.from.Criteria {
		expr, lost := renamed(c.Expr, f.named, f.renames)
		if lost != "" {
			f.assume("Left out, for there is no %s: %s.", lost, c.Name)
			continue
		}
		c.Expr = expr
		c.Fails = nil // that is known of the scenario's own targets alone
		f.out.Criteria = append(f.out.Criteria, c)
	}
}

// renamed is an expression with the names of targets as they have become, and
// one that has become nothing. All at once: a new name may be another's old one.
func renamed(text string, became func(name string, source bool) string, renames func(name string, source bool) bool) (out, lost string) {
	tree, err := parser.Parse(text)
	if err != nil {
		return text, "" // the check says so
	}
	var found stringsIn
	ast.Walk(&tree.Node, &found)
	slices.SortFunc(found, func(a, b *ast.StringNode) int { return a.Location().From - b.Location().From })
	source, at := []rune(text), 0
	for _, n := range found {
		name, isSource := strings.CutPrefix(n.Value, sourceOf)
		if !renames(name, isSource) {
			continue
		}
		now := became(name, isSource)
		if now == "" {
			return "", name
		}
		place := n.Location()
		out += string(source[at:place.From]) + strconv.Quote(strings.TrimSuffix(n.Value, name)+now)
		at = place.To
	}
	return out + string(source[at:]), ""
}

// sourceOf begins what a contender says when it names a source.
const sourceOf = "source: "

// stringsIn are the strings of an expression, however they are quoted.
type stringsIn []*ast.StringNode

// Visit implements ast.Visitor.
func (s *stringsIn) Visit(n *ast.Node) {
	if text, ok := (*n).(*ast.StringNode); ok {
		*s = append(*s, text)
	}
}
