package app

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/workload"
)

// The levels of limits in a report.
const (
	levelWorkload      = "workload"
	levelKey           = "key"
	levelWorkloadModel = "workload_model"
	levelModel         = "model"
	levelTarget        = "target"
	levelPass          = "passthrough"
)

// LimitReport and LimitBound are what Limits tells.
type (
	LimitReport = admin.Limits
	LimitBound  = admin.Bound
)

// Limits lists what a configuration holds every workload, key, model, target
// and passed-through path to, and which of them have no limit.
func Limits(c *config.Config) LimitReport {
	l := LimitReport{Bounds: []admin.Bound{}, Rules: []admin.Rule{}, Without: []string{}}
	for _, name := range slices.Sorted(maps.Keys(c.Workloads)) {
		workloadLimits(&l, name, c.Workloads[name], len(c.Workloads))
	}
	if len(c.Workloads) == 0 {
		workloadLimits(&l, workload.Open, config.Workload{}, 1)
	}
	targets := map[string]config.TargetLimits{}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		m := c.Models[name]
		l.Bounds = append(l.Bounds, bound(admin.Bound{Level: levelModel, Name: name}, m.Limits))
		for _, t := range m.Targets {
			targets[targetName(name, t)] = t.Limits
		}
	}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		t := targets[name]
		l.Bounds = append(l.Bounds, bound(admin.Bound{Level: levelTarget, Name: name}, config.Limits{RPM: t.RPM, TPM: t.TPM, Concurrency: t.Concurrency}))
	}
	for _, prefix := range slices.Sorted(maps.Keys(c.Passthrough)) {
		l.Bounds = append(l.Bounds, admin.Bound{Level: levelPass, Name: prefix, Provider: c.Passthrough[prefix], NoLimit: true})
	}
	return l
}

func bound(b admin.Bound, l config.Limits) admin.Bound {
	b.RPM, b.TPM, b.Concurrency, b.USDPerDay = l.RPM, l.TPM, l.Concurrency, l.USDPerDay
	b.NoLimit = l == config.Limits{}
	return b
}

func workloadLimits(l *admin.Limits, name string, w config.Workload, sharing int) {
	l.Bounds = append(l.Bounds, bound(admin.Bound{Level: levelWorkload, Name: name}, w.Limits))
	for _, key := range w.Keys {
		l.Bounds = append(l.Bounds, bound(admin.Bound{Level: levelKey, Name: workload.ShortOf(key.Reveal()), Workload: name}, w.KeyLimits))
	}
	for _, m := range slices.Sorted(maps.Keys(w.ModelLimits)) {
		l.Bounds = append(l.Bounds, bound(admin.Bound{Level: levelWorkloadModel, Name: m, Workload: name}, w.ModelLimits[m]))
	}
	rule := admin.Rule{Workload: name, Priority: cmp.Or(w.Priority, "interactive"), RepeatRatio: workload.RepeatRatio, RepeatPerSecond: workload.RepeatPerSecond, MemoryShare: cmp.Or(workload.MemoryShare(sharing), 1)}
	l.Rules = append(l.Rules, rule)
	if w.Limits == (config.Limits{}) && w.KeyLimits == (config.Limits{}) {
		l.Without = append(l.Without, name)
	}
}

// limits is the same of the running router, with what is used.
func (a *App) limits(now time.Time) admin.Limits {
	l := Limits(a.current.Load().config)
	use := a.builder.standing(now)
	for i := range l.Bounds {
		b := &l.Bounds[i]
		if s, ok := use[owner{b.Level, b.Workload, b.Name}]; ok {
			b.Use = admin.UseOf(s)
		}
	}
	for _, t := range a.builder.list() {
		s := t.State(now)
		for i := range l.Bounds {
			if b := &l.Bounds[i]; b.Level == levelTarget && b.Name == s.Name {
				b.Use = &admin.Use{InFlight: int64(s.InFlight)}
			}
		}
	}
	return l
}

// owner is a limiter's place in a report.
type owner struct{ level, workload, name string }

func (b *builder) standing(now time.Time) map[owner]admit.Standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	use := map[owner]admit.Standing{}
	for _, w := range b.directory.All() {
		use[owner{levelWorkload, "", w.Name()}] = w.Standing(now)
		for _, k := range b.directory.Keys(w) {
			if s := k.Standing(now); s.Limits.Any() {
				use[owner{levelKey, w.Name(), k.Short()}] = s
			}
		}
		for model, l := range w.Models() {
			use[owner{levelWorkloadModel, w.Name(), model}] = l.Standing(now)
		}
	}
	for name, l := range b.limits {
		use[owner{levelModel, "", name}] = l.Standing(now)
	}
	return use
}
