package drill

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
		c.Providers[t.Name] = config.Provider{
			Type: "openai-compatible", BaseURL: "http://" + t.Name + ".test/v1", APIKey: config.NewSecret("drill"), Domain: t.Domain,
		}
		p.serve(c, t, i+1)
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		for caller := range w.Callers {
			c.Workloads[callerName(w, caller)] = config.Workload{
				Keys:     []config.Secret{config.NewSecret(keyOf(callerName(w, caller)))},
				Priority: w.Priority, Limits: config.Limits{RPM: int64(w.RPM), Concurrency: w.Concurrency},
			}
		}
	}
	if p.weaken.config != nil {
		p.weaken.config(c)
	}
	return c
}

// serve puts a target under its model, or under the model's last resort.
func (p *process) serve(c *config.Config, t *Target, order int) {
	e := config.DefaultTarget(t.Name)
	e.Model, e.Order = "real", order
	e.Limits = config.Limits{RPM: int64(t.RPM), Concurrency: t.Concurrency}
	name := t.Model
	if t.Degraded {
		m := c.Models[name]
		name += "-last-resort"
		m.Degraded = &config.Degraded{Model: name}
		c.Models[t.Model] = m
	}
	m := c.Models[name]
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
func (m *Mine) Fit(s *Scenario) *Scenario {
	f := fitting{Mine: m, from: s, out: *s, became: map[string]string{}}
	f.out.Targets, f.out.Faults, f.out.Criteria = nil, nil, nil
	f.out.Assumptions = slices.Clone(s.Assumptions)
	f.targets()
	f.faults()
	f.workloads()
	f.criteria()
	return &f.out
}

// fitting is a scenario on its way to a user's.
type fitting struct {
	*Mine
	from   *Scenario
	out    Scenario
	became map[string]string // the user's target for one of the scenario's
	also   map[string][]string
}

func (f *fitting) assume(format string, args ...any) {
	f.out.Assumptions = append(f.out.Assumptions, fmt.Sprintf(format, args...))
}

func (f *fitting) targets() {
	mine := slices.Clone(f.config.Models[f.model].Targets)
	slices.SortStableFunc(mine, func(a, b config.Target) int { return cmp.Compare(a.Order, b.Order) })
	model := f.from.Targets[0].Model
	var theirs []Target
	for _, t := range f.from.Targets {
		if t.Model == model && !t.Degraded {
			theirs = append(theirs, t)
		} else if !t.Degraded {
			f.out.Targets = append(f.out.Targets, t)
			f.became[t.Name] = t.Name
		}
	}
	f.also = map[string][]string{}
	struck := map[string]string{} // by failure domain: whose faults it has
	for i, m := range mine {
		t := theirs[min(i, len(theirs)-1)]
		old := t.Name
		t.Name = targetName(m)
		t.Domain = f.config.Providers[m.Provider].FailureDomain(m.Provider)
		t.RPM, t.Concurrency = int(m.Limits.RPM), m.Limits.Concurrency
		switch theirs, shared := struck[t.Domain]; {
		case shared:
			f.also[theirs] = append(f.also[theirs], t.Name)
			f.assume("%s is in the failure domain %s and fails as the target before it.", t.Name, t.Domain)
		case i < len(f.from.Targets) && f.became[old] == "":
			struck[t.Domain] = old
		default:
			f.assume("%s stays well, with the capacity and latency of %s.", t.Name, old)
		}
		if f.became[old] == "" {
			f.became[old] = t.Name
		}
		f.out.Targets = append(f.out.Targets, t)
	}
	f.lastResort(model, theirs[0])
	f.assume("%d targets of the model %s stand in for the scenario's %d; capacities, latencies and rates are the scenario's.", len(mine), f.model, len(theirs))
}

// lastResort keeps the user's degraded model as a target that stays well.
func (f *fitting) lastResort(model string, like Target) {
	d := f.config.Models[f.model].Degraded
	if d == nil || d.Model == "" {
		return
	}
	for _, m := range f.config.Models[d.Model].Targets {
		t := like
		t.Name, t.Degraded, t.Model = targetName(m)+".degraded", true, model
		f.out.Targets = append(f.out.Targets, t)
		return
	}
}

var unfit = regexp.MustCompile(`[^a-z0-9@.-]+`)

// targetName is a target's name as a scenario may have it.
func targetName(t config.Target) string {
	return strings.Trim(unfit.ReplaceAllString(strings.ToLower(t.Provider+"."+t.Model), "-"), ".-")
}

func (f *fitting) faults() {
	for _, x := range f.from.Faults {
		if x.Target == "" {
			f.out.Faults = append(f.out.Faults, x)
			continue
		}
		old := x.Target
		for _, name := range append([]string{f.became[old]}, f.also[old]...) {
			if x.Target = name; name != "" {
				f.out.Faults = append(f.out.Faults, x)
			}
		}
	}
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
		w.RPM, w.Concurrency, w.Priority = int(l.RPM), l.Concurrency, f.config.Workloads[names[i]].Priority
		f.assume("%s has the limits of the workload %s.", w.Name, names[i])
	}
}

func (f *fitting) criteria() {
	for _, c := range f.from.Criteria {
		lost := ""
		for _, t := range f.from.Targets {
			quoted := strconv.Quote(t.Name)
			if !strings.Contains(c.Expr, quoted) {
				continue
			}
			if f.became[t.Name] == "" {
				lost = t.Name
			}
			c.Expr = strings.ReplaceAll(c.Expr, quoted, strconv.Quote(f.became[t.Name]))
		}
		if lost != "" {
			f.assume("Left out, for there is no %s: %s.", lost, c.Name)
			continue
		}
		c.Fails = nil // that is known of the scenario's own targets alone
		f.out.Criteria = append(f.out.Criteria, c)
	}
}
