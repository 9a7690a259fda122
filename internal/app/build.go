package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/attempt"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/learn"
	"github.com/hourthree/hourthree/internal/provider"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/workload"
)

// builder turns configurations into snapshots. It keeps what outlives one:
// targets, accounts, providers and the workloads' directory, each found again
// by name. build runs one at a time; poll may run beside it.
type builder struct {
	moved   func(string, []breaker.Transition)
	freed   func(*route.Target)                                               // a target's slot came free
	dial    func(ctx context.Context, network, addr string) (net.Conn, error) // to upstreams, nil for the system's
	agent   string                                                            // how upstreams know the router
	breaker func(*breaker.Config)                                             // changes the rules, nil for not
	trip    http.RoundTripper                                                 // in place of dial, nil for none

	mu      sync.Mutex
	parts              // in force
	beside  *candidate // nil for none
	leaving []*kept    // out of force, while requests may use them
}

// parts are what a configuration is served with, each found by name.
type parts struct {
	targets   map[string]*kept
	accounts  map[string]*billed
	providers map[string]*spoken
	limits    map[string]*admit.Limiter // of models
	directory *workload.Directory
	snapshot  *gateway.Snapshot
	config    *config.Config
}

// kept is a target with what makes it the same target after a reload.
type kept struct {
	identity string // provider type, address and model: a change starts afresh
	target   *route.Target
	upstream *attempt.Upstream // as it is in force
	next     atomic.Bool       // of a candidate
	base     *kept             // of a candidate: the one at the same upstream that is in force, nil for none
	kin      *kin
	until    time.Time // out of force: no request that may use it lasts longer
}

// kin are the targets at one upstream while there are several: their calls take room of
// each other. It is changed under the lock of the builder.
type kin struct{ all atomic.Pointer[[]*kept] }

func (n *kin) list() []*kept {
	if all := n.all.Load(); all != nil {
		return *all
	}
	return nil
}

// with adds some, without takes one out.
func (n *kin) with(some ...*kept) {
	all := slices.Clone(n.list())
	for _, k := range some {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	n.all.Store(&all)
}

func (n *kin) without(k *kept) {
	all := slices.DeleteFunc(slices.Clone(n.list()), func(o *kept) bool { return o == k })
	n.all.Store(&all)
}

// billed is the account of a provider with what makes it the same one.
type billed struct {
	key     [sha256.Size]byte
	account *route.Account
}

// spoken is a provider with the settings it was made from.
type spoken struct {
	spec     provider.Spec
	simulate string
	provider *provider.Provider
}

func newBuilder(moved func(string, []breaker.Transition), freed func(*route.Target)) *builder {
	return &builder{moved: moved, freed: freed, parts: parts{targets: map[string]*kept{}, providers: map[string]*spoken{}}}
}

// draft is a snapshot being built. Nothing of it is seen by requests, and
// nothing that exists is changed, until every part has been made.
type draft struct {
	*builder
	config    *config.Config
	snapshot  *gateway.Snapshot
	prior     parts                      // what it finds
	find      func(*draft, wanted) *kept // a target among them, nil for none
	direct    func([]workload.Spec, *workload.Directory) (*workload.Directory, error)
	targets   map[string]*kept
	specs     map[string]route.Spec
	accounts  map[string]*billed
	providers map[string]*spoken
	models    map[string]*route.Model
}

// wanted is a target as a configuration wants it.
type wanted struct {
	identity string
	spec     route.Spec
	account  *route.Account
	upstream *attempt.Upstream
}

// build makes a configuration the one in force.
func (b *builder) build(c *config.Config) (*gateway.Snapshot, error) {
	d := b.draft(c)
	d.find, d.direct = (*draft).known, workload.NewDirectory
	if err := d.make(); err != nil {
		return nil, err
	}
	d.commit()
	return d.snapshot, nil
}

// check reports why a configuration could not be put in force.
func (b *builder) check(c *config.Config) error {
	x, err := b.stage(c)
	if err == nil {
		closeBut(x.providers, b.providers)
	}
	return err
}

// known finds a target that is the same after its configuration has changed.
func (d *draft) known(w wanted) *kept {
	if k := d.prior.targets[w.spec.Name]; k != nil && k.identity == w.identity {
		return k
	}
	return nil
}

func (b *builder) draft(c *config.Config) *draft {
	return &draft{builder: b, config: c, prior: b.parts, targets: map[string]*kept{}, specs: map[string]route.Spec{}, accounts: map[string]*billed{}, providers: map[string]*spoken{}, models: map[string]*route.Model{}}
}

// parts are those of the draft, once it has been made.
func (d *draft) parts() parts {
	return parts{d.targets, d.accounts, d.providers, d.snapshot.Quotas.Models, d.snapshot.Directory, d.snapshot, d.config}
}

// make makes every part.
func (d *draft) make() error {
	c := d.config
	d.snapshot = &gateway.Snapshot{
		Models: map[string]*route.Model{}, Upstreams: map[*route.Target]*attempt.Upstream{}, Quotas: d.quotas(),
		Attempts: c.Defaults.Retry.Attempts, Total: c.Defaults.Timeouts.Total.Duration(), MaxBody: c.HTTP.MaxBody.Bytes(),
		MaxUpload: max(c.HTTP.MaxUpload.Bytes(), c.HTTP.MaxBody.Bytes()), Writable: c.HTTP.WriteTimeout.Duration(),
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if err := d.model(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		d.lastResort(name)
	}
	if err := d.passthrough(); err != nil {
		return err
	}
	directory, err := d.direct(d.workloads(), d.prior.directory)
	if err != nil {
		return err
	}
	d.snapshot.Directory = directory
	d.prices()
	return nil
}

// commit makes the draft the builder's own. Providers that are gone close
// their idle connections; calls in flight keep theirs.
func (d *draft) commit() {
	for name, k := range d.targets {
		k.target.Reconfigure(d.specs[name], d.account(d.specs[name].Provider))
		k.upstream = d.snapshot.Upstreams[k.target]
	}
	for name, l := range d.snapshot.Quotas.Models {
		l.Reconfigure(limitsOf(d.config.Models[name].Limits))
	}
	d.mu.Lock()
	old := d.builder.parts
	d.builder.parts = d.parts()
	d.leave(old)
	d.mu.Unlock()
	closeBut(old.providers, d.providers)
}

// closeBut closes the connections of providers that others do not share.
func closeBut(old, kept map[string]*spoken) {
	for name, s := range old {
		if kept[name] != s {
			s.provider.Close()
		}
	}
}

func (d *draft) model(name string) error {
	c := d.config.Models[name]
	m := &route.Model{Name: name}
	for _, t := range c.Targets {
		target, err := d.target(t, modelOf(name, t))
		if err != nil {
			return err
		}
		m.Entries = append(m.Entries, route.Entry{Target: target, Account: d.account(t.Provider), Order: t.Order, Weight: t.Weight})
	}
	sort.SliceStable(m.Entries, func(i, j int) bool { return m.Entries[i].Order < m.Entries[j].Order })
	d.models[name] = m
	if name == "*" {
		d.snapshot.Wildcard = m
	} else {
		d.snapshot.Models[name] = m
	}
	return nil
}

func (d *draft) lastResort(name string) {
	c, m := d.config.Models[name], d.models[name]
	if c.Degraded != nil {
		m.Message, m.Fallback = c.Degraded.Message, d.models[c.Degraded.Model]
	}
	for _, f := range c.ContentPolicyFallback {
		m.Policy = append(m.Policy, d.models[f])
	}
}

// target makes or finds a target; model "" serves whatever name is asked for.
func (d *draft) target(t config.Target, model string) (*route.Target, error) {
	name := t.Provider + "/" + model
	if model == "" {
		name = t.Provider + "/*"
	}
	if k := d.targets[name]; k != nil {
		return k.target, nil
	}
	p := d.config.Providers[t.Provider]
	up, err := d.provider(t.Provider, t)
	if err != nil {
		return nil, err
	}
	spec := d.spec(name, model, t, p)
	table, ok := fault.TableFor(p.Type)
	if !ok {
		return nil, fmt.Errorf("providers.%s: no classification table for type %q", t.Provider, p.Type)
	}
	w := wanted{identity: strings.Join([]string{p.Type, p.BaseURL, model}, "\n"), spec: spec, account: d.account(t.Provider)}
	w.upstream = &attempt.Upstream{
		Provider: up, Table: table, Vendor: d.vendor(p), Usage: t.Limits.TPM > 0, Idle: d.config.Defaults.Timeouts.Idle.Duration(),
	}
	k := d.find(d, w)
	if k == nil {
		k = d.newTarget(w, route.NewTarget)
	}
	d.targets[name], d.specs[name] = k, spec
	d.snapshot.Upstreams[k.target] = w.upstream
	return k.target, nil
}

type maker func(route.Spec, *route.Account, func(string, []breaker.Transition), func(*route.Target)) *route.Target

// newTarget makes a target that is not known yet.
func (b *builder) newTarget(w wanted, make maker) *kept {
	k := &kept{identity: w.identity, upstream: w.upstream, kin: new(kin)}
	moved := func(name string, ts []breaker.Transition) {
		if k.next.Load() {
			name += Besides
		}
		if b.moved != nil {
			b.moved(name, ts)
		}
	}
	k.target = make(w.spec, w.account, moved, func(t *route.Target) {
		b.freed(t)
		for _, o := range k.kin.list() { // who waits there may have found no room for this one's calls
			if o != k {
				b.freed(o.target)
			}
		}
	})
	return k
}

func (d *draft) vendor(p config.Provider) string {
	if p.Vendor != "" {
		return p.Vendor
	}
	return fault.VendorOfHost(hostOf(p.BaseURL))
}

func (d *draft) spec(name, model string, t config.Target, p config.Provider) route.Spec {
	def := d.config.Defaults
	b := breaker.Default()
	b.Window, b.MinRequests, b.FailureRatio = def.Breaker.Window.Duration(), def.Breaker.MinRequests, def.Breaker.FailureRatio
	b.CoolDown, b.MaxCoolDown = def.Breaker.CoolDown.Duration(), def.Breaker.MaxCoolDown.Duration()
	b.Probes, b.Ramp = def.Breaker.Probes, def.Breaker.Ramp.Duration()
	if d.breaker != nil {
		d.breaker(&b)
	}
	bounds := learn.Bounds{Headers: def.Timeouts.Headers.Fixed(), FirstContent: def.Timeouts.FirstContent.Fixed(), Total: def.Timeouts.Total.Duration()}
	if o := t.Timeouts; o != nil {
		if v := o.Headers.Fixed(); v > 0 {
			bounds.Headers = v
		}
		if v := o.FirstContent.Fixed(); v > 0 {
			bounds.FirstContent = v
		}
	}
	return route.Spec{
		Name: name, Provider: t.Provider, Model: model, Region: p.Region, Domain: p.FailureDomain(t.Provider),
		Limits:  route.Limits{RPM: t.Limits.RPM, TPM: t.Limits.TPM, Concurrency: t.Limits.Concurrency},
		Breaker: b, Budget: d.retry(), Bounds: bounds,
	}
}

func (d *draft) retry() budget.Config {
	r := d.config.Defaults.Retry
	b := budget.Default()
	b.Ratio, b.MaxRatio, b.PerSuccess = r.Ratio, r.MaxRatio, r.PerSuccess
	return b
}

// account finds the account behind a provider's key. With another key, or
// another way to use it, what was refused to the old one no longer counts.
func (d *draft) account(name string) *route.Account {
	if a := d.accounts[name]; a != nil {
		return a.account
	}
	a := &billed{key: credential(d.config.Providers[name])}
	if old := d.prior.accounts[name]; old != nil && old.key == a.key {
		a = old
	} else {
		a.account = new(route.Account)
	}
	d.accounts[name] = a
	return a.account
}

// credential is a digest of everything that an upstream judges a caller by.
func credential(p config.Provider) [sha256.Size]byte {
	parts := []string{p.Type, p.BaseURL, p.Auth, p.EntraScope, p.APIVersion, p.APIKey.Reveal()}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		parts = append(parts, name, p.Headers[name].Reveal())
	}
	return sha256.Sum256([]byte(strings.Join(parts, "\x00")))
}

func (d *draft) passthrough() error {
	for prefix, name := range d.config.Passthrough {
		target, err := d.target(config.Target{Provider: name, Order: 1, Weight: 1}, "")
		if err != nil {
			return err
		}
		m := &route.Model{Name: "passthrough " + prefix, Entries: []route.Entry{{Target: target, Account: d.account(name), Order: 1, Weight: 1}}}
		d.snapshot.Pass = append(d.snapshot.Pass, gateway.PassRoute{Prefix: prefix, Model: m})
	}
	sort.Slice(d.snapshot.Pass, func(i, j int) bool { return len(d.snapshot.Pass[i].Prefix) > len(d.snapshot.Pass[j].Prefix) })
	return nil
}

func (d *draft) workloads() []workload.Spec {
	specs := make([]workload.Spec, 0, len(d.config.Workloads))
	for _, name := range slices.Sorted(maps.Keys(d.config.Workloads)) {
		w := d.config.Workloads[name]
		priority, _ := queue.ParsePriority(w.Priority) // the configuration has been checked
		s := workload.Spec{Name: name, Models: w.Models, Priority: priority, Budget: d.retry(),
			Limits: limitsOf(w.Limits), KeyLimits: limitsOf(w.KeyLimits), ModelLimits: map[string]admit.Limits{}}
		for m, l := range w.ModelLimits {
			s.ModelLimits[m] = limitsOf(l)
		}
		for _, k := range w.Keys {
			s.Keys = append(s.Keys, k.Reveal())
		}
		specs = append(specs, s)
	}
	return specs
}

// poll lets time pass for every target.
func (b *builder) poll(now time.Time) {
	b.mu.Lock()
	targets, leaving := b.targets, b.leaving
	if b.beside != nil {
		leaving = slices.Concat(leaving, b.beside.own)
	}
	b.mu.Unlock()
	for _, k := range targets {
		k.target.Poll(now)
	}
	for _, k := range leaving {
		k.target.Poll(now)
	}
	b.forget(now)
}

// forsake ends the calls that run on without their callers.
func (b *builder) forsake() {
	for _, t := range b.list() {
		t.Forsake()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.leaving {
		k.target.Forsake()
	}
	if b.beside != nil {
		for _, k := range b.beside.own {
			k.target.Forsake()
		}
	}
}

// list is the targets in force, by name.
func (b *builder) list() []*route.Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := slices.Sorted(maps.Keys(b.targets))
	out := make([]*route.Target, len(names))
	for i, n := range names {
		out[i] = b.targets[n].target
	}
	return out
}

// workloadsInForce lists the workloads, with those that only a configuration on its
// way has.
func (b *builder) workloadsInForce() []*workload.Workload {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.directory.All()
	if b.beside == nil {
		return all
	}
	all = slices.Clone(all)
	for _, w := range b.beside.directory.All() {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

func (b *builder) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.providers {
		s.provider.Close()
	}
	if b.beside != nil {
		closeBut(b.beside.providers, b.providers)
	}
}
