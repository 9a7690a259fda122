package app

import (
	"maps"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/workload"
)

// Besides is behind the name of a target that a configuration on its way has for
// itself, wherever it is shown next to the one in force.
const Besides = "@candidate"

// candidate is a configuration beside the one in force. What both configure alike
// they share: targets with their health, accounts, providers with their connections,
// limiters, workloads. What differs the candidate has for itself, so that it
// disturbs nothing of the other.
type candidate struct {
	parts
	own  []*kept         // targets that the one in force has not
	over map[string]bool // workloads that are configured as the candidate says
}

// stage makes a configuration beside the one in force, of which nothing changes.
func (b *builder) stage(c *config.Config) (*candidate, error) {
	d := b.draft(c)
	x := &candidate{over: map[string]bool{}}
	d.direct = workload.Beside
	d.find = func(d *draft, w wanted) *kept {
		k := d.known(w)
		if k != nil && k.target.Spec() == w.spec && *k.upstream == *w.upstream && d.account(w.spec.Provider) == d.prior.accountOf(w.spec.Provider) {
			return k
		}
		make := route.NewTarget
		if k != nil { // the same upstream: it was promised one set of limits
			make = func(s route.Spec, a *route.Account, moved func(string, []breaker.Transition), freed func(*route.Target)) *route.Target {
				return route.NewBeside(k.target, s, a, moved, freed)
			}
		}
		mine := d.newTarget(w, make)
		mine.next.Store(true)
		if k != nil {
			mine.base, mine.kin = k, k.kin
		}
		x.own = append(x.own, mine)
		return mine
	}
	if err := d.make(); err != nil {
		return nil, err
	}
	d.limitBeside()
	x.parts = d.parts()
	return x, nil
}

// use makes it the candidate.
func (b *builder) use(x *candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beside = x
	for _, k := range x.own {
		if k.base != nil {
			k.kin.with(k.base, k)
		}
	}
}

func (p *parts) accountOf(provider string) *route.Account {
	if a := p.accounts[provider]; a != nil {
		return a.account
	}
	return nil
}

// limitBeside gives models whose limits change a limiter of their own. A request of
// the candidate enters both: the one in force is not exceeded, and neither is the
// new one.
func (d *draft) limitBeside() {
	q := &d.snapshot.Quotas
	for name, l := range q.Models {
		limits := limitsOf(d.config.Models[name].Limits)
		if l == d.prior.limits[name] && limits.Any() && limits != limitsOf(d.prior.config.Models[name].Limits) {
			q.Models[name], q.Before[name] = admit.NewLimiter(admit.OfModel, limits), l
		}
	}
}

// expose configures the workloads that the candidate serves whole as it says, and
// the others as the one in force does. A workload is never configured as both: as
// long as it is split, the one in force counts.
func (b *builder) expose(x *candidate, e *rollout.Exposure) {
	for _, w := range b.directory.All() {
		name := w.Name()
		whole := e != nil && wholly(e, name)
		switch {
		case whole && !x.over[name]:
			x.directory.Configure(name)
		case !whole && x.over[name]:
			b.directory.Configure(name)
		}
		x.over[name] = whole
	}
}

// promote puts the candidate in force: its own targets with what they have learned
// are the targets from now on.
func (b *builder) promote(x *candidate) *gateway.Snapshot {
	x.directory.Configure("")
	for name, l := range x.limits {
		l.Reconfigure(limitsOf(x.config.Models[name].Limits))
	}
	for _, k := range x.own {
		k.next.Store(false)
		if k.base != nil {
			k.base.target.Retire(k.target.Spec().Limits)
			k.base = nil
		}
	}
	s := *x.snapshot
	s.Quotas.Before = nil
	x.snapshot = &s
	b.mu.Lock()
	old := b.parts
	b.parts, b.beside = x.parts, nil
	b.leave(old)
	b.mu.Unlock()
	closeBut(old.providers, x.providers)
	return &s
}

// abandon drops the candidate. Its own targets get nothing new; their calls end as
// they would have.
func (b *builder) abandon(x *candidate) {
	b.expose(x, nil)
	b.mu.Lock()
	b.beside = nil
	b.leave(x.parts)
	b.mu.Unlock()
	closeBut(x.providers, b.providers)
}

// leave keeps the targets that are no longer in force, for the requests that were given
// them: those that wait, too. The lock is held.
func (b *builder) leave(old parts) {
	if old.snapshot == nil {
		return
	}
	until := time.Now().Add(old.snapshot.Total)
	for name, k := range old.targets {
		if b.targets[name] != k {
			k.until = until
			b.leaving = append(b.leaving, k)
		}
	}
}

// forget leaves out targets that are out of force and that no request can use.
func (b *builder) forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	gone := func(k *kept) bool {
		if now.Before(k.until) || k.target.State(now).InFlight > 0 {
			return false
		}
		k.kin.without(k)
		return true
	}
	if slices.ContainsFunc(b.leaving, gone) {
		b.leaving = slices.DeleteFunc(slices.Clone(b.leaving), gone)
	}
}

// candidates are the targets of a configuration on its way that the one in force
// has not.
func (b *builder) candidates() (out []*route.Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.beside != nil {
		for _, k := range b.beside.own {
			out = append(out, k.target)
		}
	}
	return out
}

// reach is the candidate's snapshot where it reaches some regions only: in the
// others the targets are those in force.
func (b *builder) reach(x *candidate, e *rollout.Exposure) *gateway.Snapshot {
	if b.everywhere(x, e) {
		return x.snapshot
	}
	r := reached{Exposure: e, old: b.snapshot, models: map[string]*route.Model{}}
	s := *x.snapshot
	s.Upstreams, s.Models, s.Wildcard = maps.Clone(s.Upstreams), map[string]*route.Model{}, nil
	s.Quotas.Prices = maps.Clone(b.snapshot.Quotas.Prices)
	maps.Copy(s.Quotas.Prices, x.snapshot.Quotas.Prices)
	r.new, r.out = x.snapshot, &s
	for _, name := range slices.Concat(slices.Collect(maps.Keys(r.new.Models)), slices.Collect(maps.Keys(r.old.Models))) {
		if m := r.model(name, r.new.Models[name], r.old.Models[name]); m != nil {
			s.Models[name] = m
		}
	}
	s.Wildcard = r.model("*", r.new.Wildcard, r.old.Wildcard)
	r.passes()
	return &s
}

// everywhere reports that the regions of all targets are reached.
func (b *builder) everywhere(x *candidate, e *rollout.Exposure) bool {
	for _, all := range []map[string]*kept{b.targets, x.targets} {
		for _, k := range all {
			if !e.Reaches(k.target.Spec().Region) {
				return false
			}
		}
	}
	return true
}

// reached is a snapshot being made of two.
type reached struct {
	*rollout.Exposure
	old, new, out *gateway.Snapshot
	models        map[string]*route.Model // that have been made, nil for one that has no target
}

// model is a model with its last resort and its fallbacks, nil where no target is
// left.
func (r *reached) model(name string, new, old *route.Model) *route.Model {
	if m, ok := r.models[name]; ok || new == nil && old == nil {
		return m
	}
	m := r.merge(new, old)
	r.models[name] = m // circles are refused
	if m == nil {
		return nil
	}
	said := new
	if said == nil {
		said = old
	}
	m.Message = said.Message
	if f := said.Fallback; f != nil {
		m.Fallback = r.named(f.Name)
	}
	for _, p := range said.Policy {
		if f := r.named(p.Name); f != nil {
			m.Policy = append(m.Policy, f)
		}
	}
	return m
}

func (r *reached) named(name string) *route.Model {
	if name == "*" {
		return r.model(name, r.new.Wildcard, r.old.Wildcard)
	}
	return r.model(name, r.new.Models[name], r.old.Models[name])
}

// merge takes the targets of the new model in the regions that are reached, and
// those of the old one elsewhere.
func (r *reached) merge(new, old *route.Model) *route.Model {
	var m route.Model
	if new != nil {
		m.Name = new.Name
		for _, e := range new.Entries {
			if r.Reaches(e.Spec().Region) {
				m.Entries = append(m.Entries, e)
			}
		}
	}
	if old != nil {
		m.Name = old.Name
		for _, e := range old.Entries {
			if r.Reaches(e.Spec().Region) {
				continue
			}
			before := *r.old.Upstreams[e.Target]
			before.Before = true
			r.out.Upstreams[e.Target] = &before
			m.Entries = append(m.Entries, e)
		}
	}
	if len(m.Entries) == 0 {
		return nil
	}
	slices.SortStableFunc(m.Entries, func(a, b route.Entry) int { return a.Order - b.Order })
	return &m
}

// passes does the same for the paths that are passed through.
func (r *reached) passes() {
	old := map[string]*route.Model{}
	for _, p := range r.old.Pass {
		old[p.Prefix] = p.Model
	}
	r.out.Pass = nil
	for _, p := range r.new.Pass {
		if m := r.merge(p.Model, old[p.Prefix]); m != nil {
			m.Entries = m.Entries[:1] // a path has one target
			r.out.Pass = append(r.out.Pass, gateway.PassRoute{Prefix: p.Prefix, Model: m})
		}
	}
}

// inForce lists the workloads of the configuration in force.
func (b *builder) inForce() []*workload.Workload {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.directory.All()
}

// wholly reports that the candidate serves all requests of a workload.
func wholly(e *rollout.Exposure, workload string) bool {
	return e.Arm(workload, almostOne) == event.Candidate
}

// almostOne is the largest number that a request may draw.
const almostOne = 1 - 1.0/(1<<53)
