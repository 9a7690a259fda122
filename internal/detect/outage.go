package detect

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// State is how an outage stands.
type State string

// The states. Unverified is what looks like a recovery and may be a fall in
// traffic; only Verified is a recovery.
const (
	Degraded   State = "degraded"
	Improving  State = "improving"
	Unverified State = "unverified"
	Verified   State = "verified"
)

// Outage is what is wrong, with everything that belongs to it.
type Outage struct {
	ID       string     `json:"id"`
	State    State      `json:"state"`
	Words    string     `json:"words"` // the state, in words
	Onset    time.Time  `json:"onset"`
	Noticed  time.Time  `json:"noticed"`
	Changed  time.Time  `json:"changed"` // when the state last did
	Ended    *time.Time `json:"ended,omitempty"`
	Waves    int        `json:"waves"`
	Scope    []Subject  `json:"scope"`
	Findings []*Finding `json:"findings"` // the newest of each detector and subject
	Suspects []Suspect  `json:"suspects"` // workloads, targets and domains, the likeliest first
	Changes  []Suspect  `json:"changes"`  // that came before an onset, the likeliest first
	Load     []Load     `json:"load"`
	Traffic  float64    `json:"traffic"` // the lowest share of its load at onset that a dominant series has
	Failing  float64    `json:"failing"` // share of the requests of its scope, in the last minute
	Actions  []Action   `json:"actions"` // what was changed since the onset
	Timeline []Moment   `json:"timeline"`

	onsets []onset
	harm   float64   // failures and excess a second
	worst  float64   // of this wave
	part   float64   // of the requests that failed at most in this wave
	asked  int64     // requests of its load in the last window, without what is on top
	better time.Time // since when it looks better, zero while it does not
	calm   time.Time // since when everything that verified needs holds
	named  Subject   // the suspect that was said to be the source
	first  Subject   // the suspect that leads, since when
	leads  time.Time

	trail  []sample // while it is open
	found  int      // findings and waves
	causes judged   // when Changes was made
}

type onset struct {
	at      time.Time
	noticed time.Time // what is changed from then on is none of its causes
	scope   []Subject
}

// Load is how much one workload asks of one model.
type Load struct {
	Workload string  `json:"workload"`
	Model    string  `json:"model"`
	Onset    float64 `json:"onset"` // requests a second, see series.rate
	Now      float64 `json:"now"`
	Dominant bool    `json:"dominant"` // the workload made a tenth of the load at onset or more

	own bool // this alone did
}

// Moment is an entry of a timeline.
type Moment struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// Notice is something new about an outage, to be logged.
type Notice struct {
	At     time.Time
	Outage string
	Onset  time.Time
	What   string // finding, source, state, wave, closed
	State  State
	Source Subject // of the suspect that leads
	Score  float64
	// Detector is that of a finding.
	Detector string
	Scope    []Subject
	Text     string
}

const (
	maxFindings = 32
	maxScope    = 32
	maxLoad     = 64
	dominant    = 0.1 // of the load at onset
	eased       = 0.5 // of the harm at its worst, from which it looks better
	worse       = 0.75
	certain     = 0.5              // score from which a suspect is named
	ahead       = 0.05             // of the one that was named
	steady      = 5 * time.Second  // that a certain suspect leads before it is named
	unsteady    = 15 * time.Second // that one with the least score leads besides
)

// group puts what was found in this tick into outages.
func (d *Detector) group() {
	for _, f := range d.fresh {
		o := d.home(f)
		if o == nil {
			o = d.open(f)
		} else if o.State != Degraded && d.lasting(o) && !d.goesOn(o, f) {
			d.wave(o, f)
		}
		d.adopt(o, f)
	}
}

// home is the outage that a finding belongs to: one that shares its scope and is
// open or has ended lately, else one that concerns requests of the same workload, or
// that began at the same time.
func (d *Detector) home(f *Finding) *Outage {
	wide := d.widen([]Subject{f.Subject})
	for _, o := range slices.Backward(d.outages) {
		if (o.Ended == nil || d.now.Sub(*o.Ended) <= d.cfg.Recur) && meets(wide, d.widen(o.Scope)) {
			return o
		}
	}
	for _, o := range slices.Backward(d.outages) {
		last := o.onsets[len(o.onsets)-1].at
		caller := f.Subject.Kind == Workload && slices.ContainsFunc(o.Load, func(l Load) bool { return l.Workload == f.Subject.Name })
		if o.State == Degraded && (caller || f.Since.Sub(last).Abs() <= d.cfg.Together) {
			return o
		}
	}
	return nil
}

// widen adds what a scope implies: of a target its domain and the models that it
// serves, of a model, a domain and a region their targets.
func (d *Detector) widen(scope []Subject) []Subject {
	out := slices.Clone(scope)
	for _, s := range scope {
		switch s.Kind {
		case Target:
			if p := d.top.Targets[s.Name]; p.Domain != "" {
				out = append(out, Subject{Domain, p.Domain})
			}
			for m, targets := range d.top.Models {
				if slices.Contains(targets, s.Name) {
					out = append(out, Subject{Model, m})
				}
			}
		case Model:
			for _, t := range d.top.Models[s.Name] {
				out = append(out, Subject{Target, t})
			}
		case Domain, Region:
			for name, p := range d.top.Targets {
				if s.Kind == Region && p.Region == s.Name || s.Kind == Domain && p.Domain == s.Name {
					out = append(out, Subject{Target, name})
				}
			}
		}
	}
	return out
}

// meets reports that two scopes have something in common.
func meets(a, b []Subject) bool {
	return slices.ContainsFunc(a, func(s Subject) bool { return s.Kind == All || slices.Contains(b, s) }) ||
		slices.ContainsFunc(b, func(s Subject) bool { return s.Kind == All })
}

func (d *Detector) open(f *Finding) *Outage {
	o := &Outage{ID: fmt.Sprintf("O-%d", d.next), State: Degraded, Onset: f.Since, Noticed: d.now, Changed: d.now, Waves: 1, Traffic: 1}
	d.next++
	o.onsets = []onset{{at: f.Since, noticed: d.now}}
	d.outages = append(d.outages, o)
	return o
}

// goesOn reports that something else of the same subject is found all the while: what
// is found besides is no news.
func (d *Detector) goesOn(o *Outage, f *Finding) bool {
	for _, old := range d.active {
		if old != f && old.home == o && old.Subject == f.Subject {
			return true
		}
	}
	return false
}

// lasting reports that the outage has looked better for long enough for what comes
// now to be another wave: as long as what begins at different times is taken apart.
func (d *Detector) lasting(o *Outage) bool {
	return o.Ended != nil || !o.better.IsZero() && d.now.Sub(o.better) >= d.cfg.Together
}

// wave begins the next wave of an outage, after one that was called over too.
func (d *Detector) wave(o *Outage, f *Finding) {
	o.Waves++
	o.found++
	since := d.now
	if f != nil {
		since = f.Since
	}
	if o.onsets = append(o.onsets, onset{at: since, noticed: d.now, scope: slices.Clone(o.Scope)}); len(o.onsets) > maxScope {
		o.onsets = slices.Delete(o.onsets, 1, 2)
	}
	o.Ended, o.worst, o.part = nil, 0, 0
	d.enter(o, Degraded, fmt.Sprintf("degraded: wave %d", o.Waves))
	d.say(o, Notice{What: "wave", Text: fmt.Sprintf("wave %d of the outage that began at %s", o.Waves, o.Onset.UTC().Format(time.RFC3339))})
}

// adopt adds a finding to an outage, and its load to what must come back.
func (d *Detector) adopt(o *Outage, f *Finding) {
	f.home = o
	o.found++
	o.Findings = slices.DeleteFunc(o.Findings, func(old *Finding) bool {
		return old.Detector == f.Detector && old.Subject == f.Subject && old.SLO == f.SLO
	})
	if o.Findings = append(o.Findings, f); len(o.Findings) > maxFindings {
		o.Findings = slices.Delete(o.Findings, 0, 1)
	}
	last := &o.onsets[len(o.onsets)-1]
	for _, scope := range []*[]Subject{&o.Scope, &last.scope} {
		if !slices.Contains(*scope, f.Subject) && len(*scope) < maxScope {
			*scope = append(*scope, f.Subject)
		}
	}
	if f.Since.Before(last.at) && last.at.Sub(f.Since) <= d.cfg.Together {
		last.at = f.Since
		o.Onset = o.onsets[0].at
	}
	d.remember(o, last.at)
	if o.State != Degraded && !d.goesOn(o, f) {
		d.enter(o, Degraded, "degraded again")
	}
	d.say(o, Notice{What: "finding", Detector: f.Detector, Text: f.Text})
}

// remember stores the load that the scope had up to the onset; of several waves
// the largest.
func (d *Detector) remember(o *Outage, at time.Time) {
	wide := d.widen(o.Scope)
	for _, s := range d.order {
		if s.key.kind != use || !touches(wide, s) {
			continue
		}
		rate := s.rate(at.Add(-recently), at)
		if at.Sub(s.began) < partWidth || rate == 0 { // nothing is known of before
			rate = s.rate(at, d.now)
		}
		i := slices.IndexFunc(o.Load, func(l Load) bool { return l.Workload == s.key.name && l.Model == s.key.of })
		if i < 0 {
			if i = d.place(o, rate); i < 0 {
				continue
			}
			o.Load[i] = Load{Workload: s.key.name, Model: s.key.of}
		}
		o.Load[i].Onset = max(o.Load[i].Onset, rate)
	}
	all, each := 0.0, map[string]float64{}
	for _, l := range o.Load {
		all += l.Onset
		each[l.Workload] += l.Onset
	}
	for i := range o.Load {
		l := &o.Load[i]
		l.Dominant = l.Onset > 0 && each[l.Workload] >= dominant*all
		l.own = l.Onset >= dominant*all
	}
}

// place is where the load of another series is kept: behind the others, or where
// the smallest of them was, if that is smaller; -1 for nowhere.
func (d *Detector) place(o *Outage, rate float64) int {
	if len(o.Load) < maxLoad {
		o.Load = append(o.Load, Load{})
		return len(o.Load) - 1
	}
	least := 0
	for i := range o.Load {
		if o.Load[i].Onset < o.Load[least].Onset {
			least = i
		}
	}
	if rate <= o.Load[least].Onset {
		return -1
	}
	return least
}

func touches(wide []Subject, s *series) bool {
	return slices.ContainsFunc(wide, func(w Subject) bool {
		return w.Kind == All || w == Subject{Workload, s.key.name} || w == Subject{Model, s.key.of}
	})
}

// say adds a notice, and its text to the timeline.
func (d *Detector) say(o *Outage, n Notice) {
	n.At, n.Outage, n.Onset, n.State, n.Scope = d.now, o.ID, o.Onset, o.State, slices.Clone(o.Scope)
	if len(o.Suspects) > 0 && n.Score == 0 {
		n.Source, n.Score = o.Suspects[0].Subject, o.Suspects[0].Score
	}
	d.notices = append(d.notices, n)
	d.note(o, d.now, n.Text)
}

// note keeps the beginning of a timeline and its end.
func (d *Detector) note(o *Outage, at time.Time, what string) {
	if o.Timeline = append(o.Timeline, Moment{at, what}); len(o.Timeline) > d.cfg.MaxTimeline {
		o.Timeline = slices.Delete(o.Timeline, d.cfg.MaxTimeline/4, d.cfg.MaxTimeline/4+1)
	}
}

func (d *Detector) enter(o *Outage, s State, words string) {
	o.Words = words
	if o.State == s {
		return
	}
	o.State, o.Changed = s, d.now
	if s == Degraded {
		o.better, o.calm = time.Time{}, time.Time{}
	}
}

// trim keeps the newest outages; an open one goes last.
func (d *Detector) trim() {
	for len(d.outages) > d.cfg.MaxOutages {
		i := max(0, slices.IndexFunc(d.outages, func(o *Outage) bool { return o.Ended != nil }))
		d.outages = slices.Delete(d.outages, i, i+1)
	}
}

// Outages are copies of those that are known, the newest first.
func (d *Detector) Outages() []Outage {
	out := make([]Outage, 0, len(d.outages))
	for _, o := range slices.Backward(d.outages) {
		c := *o
		c.Scope, c.Suspects, c.Load = slices.Clone(o.Scope), slices.Clone(o.Suspects), slices.Clone(o.Load)
		c.Changes = slices.Clone(o.Changes)
		c.Actions, c.Timeline = slices.Clone(o.Actions), slices.Clone(o.Timeline)
		c.Findings = make([]*Finding, len(o.Findings))
		for i, f := range o.Findings {
			one := *f
			c.Findings[i] = &one
		}
		out = append(out, c)
	}
	return out
}

// Open is how many have not ended.
func (d *Detector) Open() (n int) {
	for _, o := range d.outages {
		if o.Ended == nil {
			n++
		}
	}
	return n
}

// Names is a scope as text.
func Names(scope []Subject) string {
	list := make([]string, len(scope))
	for i, s := range scope {
		list[i] = s.String()
	}
	return strings.Join(list, ", ")
}

func percent(f float64) string { return fmt.Sprintf("%.0f %%", math.Floor(100*f)) }
