// Package detect decides what is wrong, since when, what is behind it, and
// whether it is over. It is fed the facts of the request path in bounded counts
// (a Tally) and once a second it is told the time; it answers with what has
// changed (a Notice) and, when asked, with every outage that it knows of.
//
// It never acts: it moves no workload, opens no breaker and refuses nobody. It
// never says that a change or an action was the cause; it ranks suspects with
// their scores and shows the runners-up. And it never takes a fall in traffic for
// a recovery: "verified" needs the load of the onset back (promise 8, I20).
//
// The package reads no clock, does no I/O and starts no goroutine. Its types are
// not safe for concurrent use: package watch holds the lock and calls it. It may
// import the vocabulary only.
package detect

import (
	"time"
)

// Config is what the detectors go by. Times are real times, and the same for every
// traffic: with little of it evidence takes longer to gather.
type Config struct {
	// FalseAlarm is how often a day a series whose failures are independent and as
	// rare as before is taken for a failing one.
	FalseAlarm float64
	// Spread is the least time over which the evidence of a drop must come in: no
	// burst of a second or two is an outage.
	Spread time.Duration
	// Window is what "now" means in a comparison with before.
	Window time.Duration

	// AmplificationIn is inbound for each distinct request, AmplificationOut calls
	// at targets for each request, from which there is something to say.
	AmplificationIn, AmplificationOut float64
	// LeastExcess is how many repeats and requests beyond a limit a window must
	// have for that.
	LeastExcess int64
	// Slower is how many times longer first content must take.
	Slower float64

	// LoadBack is the share of the load at onset that each dominant series must
	// have back for VerifyFor before a recovery is verified.
	LoadBack  float64
	VerifyFor time.Duration
	// Settle is how long it must look better before anything is said about it.
	Settle time.Duration
	// Together: findings that share no scope belong to one outage when they begin
	// within this time of each other.
	Together time.Duration
	// Recur: a finding within this time of the end of an outage with the same scope
	// is its next wave.
	Recur time.Duration
	// GiveUp: an outage whose load does not return is closed, unverified.
	GiveUp time.Duration
	// Before: a change this long before an onset may have to do with it.
	Before time.Duration

	MaxSeries, MaxOutages, MaxTimeline, MaxChanges int
}

// Default is the configuration that the router runs with.
func Default() Config {
	return Config{
		FalseAlarm: 1e-6, Spread: 10 * time.Second, Window: time.Minute,
		AmplificationIn: 2, AmplificationOut: 1.5, LeastExcess: 30, Slower: 2,
		LoadBack: 0.8, VerifyFor: 10 * time.Minute, Settle: time.Minute,
		Together: 5 * time.Minute, Recur: 12 * time.Hour, GiveUp: 24 * time.Hour, Before: 30 * time.Minute,
		MaxSeries: 1024, MaxOutages: 200, MaxTimeline: 100, MaxChanges: 500,
	}
}

// Kind is what a subject is.
type Kind string

// The kinds of subjects.
const (
	Workload Kind = "workload"
	Model    Kind = "model"
	Target   Kind = "target"
	Domain   Kind = "domain"
	Region   Kind = "region"
	All      Kind = "all"    // of what an objective covers only
	Cause    Kind = "change" // of suspects only

	use  Kind = "use"  // a workload's requests for a model
	call Kind = "call" // a workload's calls at a target
)

// Subject is what a finding is about.
type Subject struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func (s Subject) String() string { return string(s.Kind) + " " + s.Name }

// Place is where a target is.
type Place struct{ Domain, Region string }

// Topology is what belongs together. It is not changed once it was given.
type Topology struct {
	Targets map[string]Place
	Models  map[string][]string // the targets of a model
}

// Detector keeps the series, the findings and the outages.
type Detector struct {
	cfg    Config
	top    Topology
	now    time.Time
	series map[key]*series
	order  []*series // of series, in the order of their making

	objectives []*objective
	slow       map[contentKey]*pace
	active     map[findingKey]*Finding
	fresh      []*Finding // begun in this tick

	outages []*Outage // the oldest first
	next    int       // number of the next
	changes []Change
	told    int       // changes, ever
	since   time.Time // the first tick
	notices []Notice
	judged  int64 // part of the recent ring in which windows were last looked at
}

// New returns a detector that has seen nothing.
func New(c Config) *Detector {
	return &Detector{cfg: c, series: map[key]*series{}, slow: map[contentKey]*pace{}, active: map[findingKey]*Finding{}, next: 1}
}

// Use tells the detector what belongs together from now on.
func (d *Detector) Use(t Topology) { d.top = t }

// Tick takes what came in since the last one and returns what is new. The tally is
// empty afterwards.
func (d *Detector) Tick(now time.Time, t *Tally) []Notice {
	span := now.Sub(d.now)
	if d.now.IsZero() || span <= 0 {
		d.since, span = now, time.Second
	}
	d.now, d.notices, d.fresh = now, nil, d.fresh[:0]
	d.take(t)
	for _, s := range d.order {
		d.step(s, span)
		d.leaves(s)
	}
	d.stepPaces(t, span)
	for _, o := range d.objectives {
		d.burns(o, t.met(&o.SLO))
	}
	if part := now.UnixNano() / int64(partWidth); part != d.judged {
		d.judged = part
		d.judgeWindows()
	}
	d.group()
	for _, o := range d.outages {
		if o.Ended == nil {
			d.advance(o)
		}
	}
	d.trim()
	return d.notices
}

// take moves the counts of a tally into the series.
func (d *Detector) take(t *Tally) {
	for k, c := range t.requests {
		if *c == (Counts{}) {
			continue
		}
		d.in(key{use, k.workload, k.model}, c)
		d.in(key{Workload, k.workload, ""}, c)
		d.in(key{Model, k.model, ""}, c)
		*c = Counts{}
	}
	for k, c := range t.attempts {
		if *c == (Counts{}) {
			continue
		}
		d.in(key{call, k.workload, k.target}, c)
		d.in(key{Target, k.target, ""}, c)
		p := d.top.Targets[k.target]
		d.in(key{Domain, p.Domain, ""}, c)
		d.in(key{Region, p.Region, ""}, c)
		*c = Counts{}
	}
	for target, opened := range t.breakers {
		if s := d.series[key{Target, target, ""}]; s != nil && (opened.IsZero() || s.opened.IsZero()) {
			s.opened = opened
		}
	}
	clear(t.breakers)
}

func (d *Detector) in(k key, c *Counts) {
	if k.name == "" || k.of == "" && (k.kind == use || k.kind == call) {
		return
	}
	s := d.series[k]
	if s == nil {
		if len(d.order) >= d.cfg.MaxSeries && !d.forget() {
			return
		}
		s = newSeries(k, d.now)
		d.series[k] = s
		d.order = append(d.order, s)
	}
	s.cur.add(c)
}

// forget drops the series that has been silent for longest, if that is an hour.
func (d *Detector) forget() bool {
	oldest := -1
	for i, s := range d.order {
		if oldest < 0 || s.last.Before(d.order[oldest].last) {
			oldest = i
		}
	}
	if oldest < 0 || d.now.Sub(d.order[oldest].last) < time.Hour {
		return false
	}
	for detector := range d.order[oldest].on {
		d.found(d.order[oldest], detector, false, Finding{})
	}
	delete(d.series, d.order[oldest].key)
	d.order = append(d.order[:oldest], d.order[oldest+1:]...)
	return true
}
