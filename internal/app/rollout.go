package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/telemetry"
)

const (
	// rollEvery is how often a rollout is looked at.
	rollEvery = time.Second
	// rateOver is the time constant of the rates by region.
	rateOver = 60.0 // ticks
	// fadeEvery and fadeTo let what is usual be that of the last hours.
	fadeEvery = time.Hour
	fadeTo    = 0.5
	byRollout = "rollout"
)

// rolling is the configuration on its way and what became of the last one.
type rolling struct {
	// mu is held while a configuration is taken, widened, promoted or dropped: one
	// at a time. No request takes it.
	mu     sync.Mutex
	run    *rollout.Rollout // the newest, nil for none
	way    *onItsWay        // nil once it has ended
	ended  string           // the version that was halted or reverted last, "" for none
	asks   admin.By         // who moves it by hand just now
	looked time.Time
	faded  time.Time

	on       atomic.Bool // facts are counted
	counting sync.Mutex  // held for the time of a few additions
	seen     *rollout.Seen
	spare    *rollout.Seen      // empty
	calls    map[string]int64   // at targets since the last look
	rates    map[string]float64 // a second, by target; the poller's
}

// onItsWay is a configuration that is rolled out.
type onItsWay struct {
	*candidate
	*loaded
	next *gateway.Rollout
}

// counter hears the facts that a rollout is judged by.
func (r *rolling) listener() *event.Listener {
	return &event.Listener{
		Request: func(q *event.Request) {
			if r.on.Load() && speaks(q) {
				r.counting.Lock()
				r.seen.Request(q)
				r.counting.Unlock()
			}
		},
		Attempt: func(t *event.Attempt) {
			if r.on.Load() {
				r.counting.Lock()
				r.seen.Attempt(t)
				if r.calls != nil {
					r.calls[t.Target]++
				}
				r.counting.Unlock()
			}
		},
	}
}

// speaks reports that a request says something of the version that served it: one that
// an operator has refused does not, nor does one that only asks which models there are.
func speaks(q *event.Request) bool {
	return !fault.Ordered(q.Reason) && (q.Attempts > 0 || q.Class != fault.OK || q.Degraded != "")
}

// offer does with a configuration what it asks for: it is taken at once or rolled
// out. The lock of rolling is held, here and below.
func (a *App) offer(l *loaded) error {
	now, force := time.Now(), a.current.Load()
	staged := config.Staged(force.config, l.config).ID() != force.config.ID()
	switch r := &a.rolling; {
	case l.config.Rollout == nil || !staged:
		return a.takeAtOnce(now, l)
	case r.way != nil && r.way.id == l.id: // the same file again
		a.log.Info("the configuration is being rolled out already", "component", "rollout", "version", l.id)
		return nil
	case r.ended == l.id:
		a.log.Warn("the configuration was taken back and is not rolled out again by itself", "component", "rollout", "version", l.id, "remedy", "change the file, or hourthree rollout retry")
		return nil
	}
	return a.begin(now, l)
}

// takeAtOnce makes a configuration the one in force, as one without a rollout is.
func (a *App) takeAtOnce(now time.Time, l *loaded) error {
	r := &a.rolling
	if err := a.builder.check(l.config); err != nil { // before the one on its way goes
		return err
	}
	a.replace(now, l.id)
	if err := a.take(l); err != nil {
		return err
	}
	r.ended = ""
	a.keepInForce()
	a.changed(steer.Entry{At: now, Who: "operator", What: "configuration", Subject: l.id, Why: "reload of " + l.source}, detect.Change{What: "configuration " + l.id})
	return nil
}

// replace ends the rollout for a newer version.
func (a *App) replace(now time.Time, by string) {
	r := &a.rolling
	way := r.way
	if way == nil {
		return
	}
	a.builder.abandon(way.candidate)
	a.serveFrom(a.builder.snapshot)
	r.way = nil
	if r.run.Replace(now, "", by) == nil { // else it has just ended
		a.moments(way.id, last(r.run.Status(now)))
	}
}

// begin rolls a configuration out.
func (a *App) begin(now time.Time, l *loaded) error {
	r, force := &a.rolling, a.current.Load()
	x, err := a.builder.stage(l.config)
	if err != nil {
		return err
	}
	if err := a.admit(l.config); err != nil { // a key that was taken back is to be so at once
		return err
	}
	a.notify.Use(webhooks(l.config.Notify))
	a.replace(now, l.id)
	a.builder.use(x)
	diff := config.Diff(force.config, l.config)
	traffic := a.traffic(now)
	r.on.Store(true)
	a.keepText(force) // of which nothing may be kept yet: it may know of no rollouts
	r.run = rollout.New(plan(l.config.Rollout, traffic), l.id, force.id, diff, traffic, now)
	r.way, r.ended = &onItsWay{x, l, new(gateway.Rollout)}, ""
	a.expose()
	if others := unstaged(force.config, l.config); len(others) > 0 {
		a.log.Warn("these settings are taken once the rollout is through, or with a restart", "component", "rollout", "version", l.id, "settings", others)
	}
	a.log.Warn("a configuration is rolled out", "component", "rollout", "version", l.id, "before", force.id, "source", l.source, "differences", len(diff), "diff", summary(diff))
	a.moments(l.id, last(r.run.Status(now)))
	return nil
}

// expose lets requests that begin from now on choose between the two versions.
func (a *App) expose() {
	way := a.rolling.way
	a.widen()
	s := *a.builder.snapshot
	s.Rollout = way.next
	a.serveFrom(&s)
	a.watch.Use(topology(slices.Concat(a.builder.list(), a.builder.candidates()), way.snapshot))
	if a.export != nil {
		a.export.Use(merged(upstreamsOf(way.loaded.config), upstreamsOf(a.current.Load().config)))
	}
}

// unstaged are the settings that differ and do not reach requests one by one.
func unstaged(before, after *config.Config) []string {
	return config.Diff(config.Staged(before, after), after)
}

func summary(diff []string) string {
	const most = 3
	if extra := len(diff) - most; extra > 0 {
		return strings.Join(diff[:most], "; ") + fmt.Sprintf("; and %d more", extra)
	}
	return strings.Join(diff, "; ")
}

// merged is all of both, the second where both have a name.
func merged[T any](a, b map[string]T) map[string]T {
	for name, v := range b {
		a[name] = v
	}
	return a
}

// plan is how a configuration is to be rolled out.
func plan(c *config.Rollout, t rollout.Traffic) rollout.Config {
	p := rollout.DefaultConfig()
	p.Bake, p.Requests, p.Patience = c.Bake.Duration(), c.Requests, c.Patience.Duration()
	if c.By == "region" {
		p.Stages = rollout.RegionStages(t)
		return p
	}
	if len(c.Stages) > 0 {
		p.Stages = nil
	}
	for _, s := range c.Stages {
		p.Stages = append(p.Stages, rollout.Stage{Share: float64(s)})
	}
	return p
}

// widen puts the exposure of the rollout in force, for requests that begin from now
// on.
func (a *App) widen() {
	way, e := a.rolling.way, a.rolling.run.Exposure()
	if way.next.Exposure.Load() == e {
		return
	}
	a.builder.expose(way.candidate, e)
	a.serveBeside(way.next, a.builder.reach(way.candidate, e))
	way.next.Exposure.Store(e)
}

// roll lets time pass for the rollout, once a second.
func (a *App) roll(now time.Time) {
	r := &a.rolling
	if !r.on.Load() {
		return
	}
	if !r.mu.TryLock() { // a file is being read, which may take its time; the poller has more to do
		return
	}
	defer r.mu.Unlock()
	if now.Sub(r.looked) < rollEvery {
		return
	}
	r.looked = now
	a.count()
	traffic := a.traffic(now)
	if r.way == nil {
		r.fade(now)
		return
	}
	seen := r.set()
	for _, arm := range []event.Arm{event.Control, event.Candidate} {
		n, bytes := a.gateway.Arms().Held(arm)
		if seen.InFlight(arm, n); n > 0 {
			seen.Memory(arm, bytes/n)
		}
	}
	moments := r.run.Tick(now, seen, traffic)
	r.spare = seen
	a.settleRollout(now, moments)
}

// set takes what was seen aside, to be looked at while requests go on.
func (r *rolling) set() *rollout.Seen {
	r.counting.Lock()
	defer r.counting.Unlock()
	seen := r.seen
	r.seen, r.spare = r.spare, nil
	return seen
}

// fade lets what is usual be that of the last hours, while nothing is rolled out.
func (r *rolling) fade(now time.Time) {
	if r.faded.IsZero() {
		r.faded = now
	}
	if now.Sub(r.faded) < fadeEvery {
		return
	}
	r.faded = now
	r.counting.Lock()
	defer r.counting.Unlock()
	r.seen.Fade(fadeTo)
}

// settleRollout does what the rollout has decided.
func (a *App) settleRollout(now time.Time, moments []rollout.Moment) {
	r := &a.rolling
	way := r.way
	switch r.run.Status(now).State {
	case rollout.Baking:
		a.widen()
	case rollout.Promoted:
		r.way = nil
		a.inForce(way.loaded, a.builder.promote(way.candidate))
		a.keepInForce()
	default: // halted or reverted
		r.way, r.ended = nil, way.id
		a.builder.abandon(way.candidate)
		a.serveFrom(a.builder.snapshot)
		a.watch.Use(topology(a.builder.list(), a.builder.snapshot))
	}
	a.settleOrders()
	a.moments(way.id, moments)
}

// last is what has just happened.
func last(s rollout.Status) []rollout.Moment { return s.Timeline[len(s.Timeline)-1:] }

// moments makes what has happened known.
func (a *App) moments(version string, all []rollout.Moment) {
	if len(all) > 0 {
		a.keepRollout()
	}
	for _, m := range all {
		e := steer.Entry{At: m.At, Who: cmp.Or(m.By, byRollout), What: "rollout", Subject: version, Why: m.What}
		if by := a.rolling.asks; m.By != "" && m.By == by.Name {
			e.Role, e.Via = by.Role, by.Via
		}
		a.changed(e, detect.Change{})
		if a.opt.Rolled != nil {
			a.opt.Rolled(a.rolling.run.Status(m.At).State, m.At)
		}
	}
	if len(all) == 0 {
		return
	}
	newest := all[len(all)-1]
	status := a.rolling.run.Status(newest.At)
	a.announce(steer.Entry{At: newest.At, Who: cmp.Or(newest.By, byRollout), What: "rollout", Subject: version, Why: newest.What}, status.State)
	for _, c := range doses(version, status) {
		c.At, c.By = newest.At, cmp.Or(newest.By, byRollout)
		a.watch.Tell(c)
	}
}

// doses is where a rollout stands, for those who look for causes: the change by one
// name in all of its stages with how far it reaches, or that it was taken back.
func doses(version string, s rollout.Status) (told []detect.Change) {
	what := "configuration " + version
	switch s.State {
	case rollout.Promoted:
		return []detect.Change{{What: what, Dose: 1}}
	case rollout.Baking:
		stage := s.Stages[s.Stage]
		if len(stage.Regions) == 0 {
			return []detect.Change{{What: what, Dose: stage.Share}}
		}
		for _, region := range stage.Regions {
			if s.Stage == 0 || !slices.Contains(s.Stages[s.Stage-1].Regions, region) {
				told = append(told, detect.Change{What: what, Scope: region})
			}
		}
		return told
	}
	return []detect.Change{{What: "rollback of " + what, Reverts: what}}
}

// traffic is what there is to expose.
func (a *App) traffic(now time.Time) rollout.Traffic {
	t := rollout.Traffic{Workloads: map[string]float64{}, Regions: map[string]float64{}}
	for _, w := range a.builder.inForce() {
		t.Workloads[w.Name()] = w.Traffic(now).Demand()
	}
	regions := map[string]string{}
	for _, target := range slices.Concat(a.builder.list(), a.builder.candidates()) {
		if s := target.Spec(); s.Region != "" {
			regions[s.Name] = s.Region
			t.Regions[s.Region] += 0
		}
	}
	for name, region := range regions {
		t.Regions[region] += a.rolling.rates[name]
	}
	return t
}

// count lets the rates of calls follow what was counted since the last look.
func (a *App) count() {
	r := &a.rolling
	r.counting.Lock()
	defer r.counting.Unlock()
	if r.rates == nil {
		r.rates = map[string]float64{}
	}
	for _, t := range a.builder.list() {
		name := t.Spec().Name
		r.rates[name] += (float64(r.calls[name]) - r.rates[name]) / rateOver
	}
	r.calls = map[string]int64{}
}

// errNoRollout is told to who steers a rollout when there is none.
var errNoRollout = errors.New("no configuration is being rolled out")

// steerRollout changes the rollout that runs.
func (a *App) steerRollout(by admin.By, change func(now time.Time, run *rollout.Rollout) error) error {
	r := &a.rolling
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks = by
	defer func() { r.asks = admin.By{} }()
	if r.way == nil {
		return errNoRollout
	}
	now := time.Now()
	if err := change(now, r.run); err != nil {
		return err
	}
	a.settleRollout(now, last(r.run.Status(now)))
	return nil
}

// PromoteRollout widens the rollout by hand.
func (a *App) PromoteRollout(by admin.By, why string) error {
	return a.steerRollout(by, func(now time.Time, run *rollout.Rollout) error { return run.Promote(now, by.Name, why) })
}

// HaltRollout ends the rollout: everything is served by the configuration before.
func (a *App) HaltRollout(by admin.By, why string) error {
	return a.steerRollout(by, func(now time.Time, run *rollout.Rollout) error { return run.Halt(now, by.Name, why) })
}

// RetryRollout rolls the configuration out again that was taken back last.
func (a *App) RetryRollout(by admin.By, why string) error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	l, unread := a.load()
	r := &a.rolling
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.way != nil:
		return errors.New("a configuration is being rolled out: there is nothing to try again")
	case r.ended == "":
		return errors.New("no configuration was taken back: there is nothing to try again")
	}
	ended := r.ended
	a.changed(steer.Entry{At: time.Now(), Who: by.Name, Role: by.Role, Via: by.Via, What: "rollout", Subject: ended, Why: "to be tried again: " + why}, detect.Change{})
	r.ended = ""
	err := a.reload(l, unread)
	if err != nil {
		r.ended = ended
	}
	return err
}

// RolloutStatus is what is known of the newest rollout; ok is false where there was
// none.
func (a *App) RolloutStatus(now time.Time) (s rollout.Status, ok bool) {
	r := &a.rolling
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.run == nil {
		return s, false
	}
	return r.run.Status(now), true
}

// rolloutReading is the same for the metrics.
func (a *App) rolloutReading() telemetry.RolloutReading {
	s, ok := a.RolloutStatus(time.Now())
	if !ok {
		return telemetry.RolloutReading{State: "none"}
	}
	return telemetry.RolloutReading{State: string(s.State), Exposure: s.Exposure}
}

// shownTargets are the targets in force and, under a name of their own, those that a
// configuration on its way has for itself.
func (a *App) shownTargets(now time.Time) []route.State {
	var out []route.State
	for _, t := range a.builder.list() {
		out = append(out, t.State(now))
	}
	for _, t := range a.builder.candidates() {
		s := t.State(now)
		s.Name += Besides
		out = append(out, s)
	}
	return out
}
