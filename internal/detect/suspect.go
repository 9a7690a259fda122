package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// Suspect is what may be behind an outage.
type Suspect struct {
	Subject
	// Score is from 0 to 1. It orders suspects and is no probability.
	Score float64 `json:"score"`
	// Share of the failures that it has part in, Inside and Outside the shares of
	// what fails with it and without it.
	Share   float64 `json:"share"`
	Inside  float64 `json:"failing_inside"`
	Outside float64 `json:"failing_outside"`
	// Excess is a workload's part of all repeats and requests beyond limits,
	// Amplification its inbound for each distinct request.
	Excess        float64 `json:"excess,omitempty"`
	Amplification float64 `json:"amplification,omitempty"`
	// Chance is the probability that changes as frequent as this one's scope sees
	// precede all these onsets by accident, Matched the number of onsets.
	Chance  float64 `json:"chance,omitempty"`
	Matched int     `json:"matched,omitempty"`
	// Response is how well the effect follows the exposure to a change, -1 to 1, 0
	// also where nothing is known; Undone what its undoing shows.
	Response float64 `json:"dose_response,omitempty"`
	Undone   string  `json:"undone,omitempty"`
	Text     string  `json:"text"`
}

const (
	maxSuspects = 8
	// What failures alone say counts for a little less for a workload: most of what
	// fails with one fails at a target. What repeats count for.
	whole = 0.9
	// failing is the share of its requests from which a workload's are taken to fail.
	failing = 0.25
	// few failures say half of what many do, and such as are rare inside of a suspect
	// so much of what those do that are all there is.
	few, rare = 5.0, 0.6
	// polite is the amplification that official clients come to in an outage that is
	// none of their making: two retries. From twice that on excess counts in full.
	polite = 3.0
	// burden is the share of what comes in of an outage's requests from which a
	// workload's excess counts in full: a little on top of much brings nothing down.
	burden = 0.5
)

// breadth is what failures alone count for: of two that explain the same the
// narrower one is named.
var breadth = map[Kind]float64{Target: 1, Model: 0.98, Domain: 0.97, Region: 0.96}

// suspect ranks the suspects anew.
func (d *Detector) suspect(o *Outage) {
	list := d.workloads(o)
	list = append(list, d.places()...)
	if list = ranked(list); len(list) > 0 && (list[0].Score >= certain || len(o.Suspects) == 0) {
		o.Suspects = list
	}
}

// ranked are the likeliest of them, the first first.
func ranked(list []Suspect) []Suspect {
	list = slices.DeleteFunc(list, func(s Suspect) bool { return s.Score < 0.01 || math.IsNaN(s.Score) })
	slices.SortStableFunc(list, func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxSuspects)]
}

// lift is how much of the failures a suspect explains: its share of them, without
// what would fail of it if it failed as often as the others do. Where few of its
// calls fail that counts for somewhat less than where all do, and few failures in
// number say little.
func lift(part, all Counts) (s Suspect, value float64) {
	s.Share = share(part.Bad(), all.Bad())
	s.Inside = share(part.Bad(), part.Work())
	s.Outside = share(all.Bad()-part.Bad(), all.Work()-part.Work())
	if s.Inside <= s.Outside {
		return s, 0
	}
	bad := float64(part.Bad())
	return s, s.Share * (1 - s.Outside/s.Inside) * (rare + (1-rare)*(s.Inside-s.Outside)) * bad / (bad + few)
}

// workloads are suspects for what fails of their calls alone, and for what they
// bring in on top of their requests: the less it exceeds what official clients come
// to, the less it counts, the less so the more of the traffic is theirs anyway, and the
// less it is next to all that is asked.
// What the router refuses of them is no evidence by itself: it refuses what matters
// least, and everybody's for a target that cools down. It is for a workload that
// comes on in spite of it.
func (d *Detector) workloads(o *Outage) (list []Suspect) {
	all, each := d.windows(Workload)
	allCalls, calls := d.callsOf()
	for i, name := range each.names {
		w := each.counts[i]
		var made Counts
		if c := calls[name]; c != nil {
			made = *c
		}
		s, failures := lift(made, allCalls)
		s.Subject = Subject{Workload, name}
		s.Excess, s.Amplification = share(w.Excess(), all.Excess()), w.amplification()
		weight := min(1, max(0, (s.Amplification-polite)/polite))
		fails := share(w.Bad(), w.Work()) >= failing
		if w.Repeats == 0 && !fails || w.Excess() < d.cfg.LeastExcess {
			weight = 0 // to be above a limit is not to repeat
		}
		if weight > 0 && fails {
			_, refused := lift(w, all)
			failures = max(failures, refused)
		}
		beyond := s.Excess * (1 - (1-weight)*share(w.Distinct(), all.Distinct()))
		beyond *= min(1, share(w.Excess(), w.Excess()+o.asked)/burden)
		s.Score = 1 - (1-whole*failures)*(1-weight*beyond)
		s.Text = fmt.Sprintf("has part in %s of the failures and brings in %s of the excess, %.1f for each distinct request", percent(s.Share), percent(s.Excess), s.Amplification)
		list = append(list, s)
	}
	return list
}

// callsOf are the calls of each workload lately.
func (d *Detector) callsOf() (all Counts, each map[string]*Counts) {
	each = map[string]*Counts{}
	for _, s := range d.order {
		if s.key.kind != call {
			continue
		}
		w := s.window(d.now, d.cfg.Window)
		all.add(&w)
		c := each[s.key.name]
		if c == nil {
			c = new(Counts)
			each[s.key.name] = c
		}
		c.add(&w)
	}
	return all, each
}

// places are the targets, the models by their targets, the failure domains and the
// regions. A model or a region is suspected only where there is something beside it.
func (d *Detector) places() (list []Suspect) {
	all, targets := d.targets()
	groups := map[Subject]*Counts{}
	add := func(s Subject, c *Counts) {
		if s.Name == "" {
			return
		}
		g := groups[s]
		if g == nil {
			g = new(Counts)
			groups[s] = g
		}
		g.add(c)
	}
	for name, c := range targets {
		p := d.top.Targets[name]
		add(Subject{Target, name}, c)
		add(Subject{Domain, p.Domain}, c)
		add(Subject{Region, p.Region}, c)
	}
	for m, names := range d.top.Models {
		for _, name := range names {
			if c := targets[name]; c != nil {
				add(Subject{Model, m}, c)
			}
		}
	}
	refused := d.refused()
	for who, c := range groups {
		s, failures := lift(*c, all)
		if (who.Kind == Model || who.Kind == Region) && c.Work() == all.Work() {
			continue
		}
		if r, ok := refused[who]; ok && r.value > failures {
			s, failures = r.suspect, r.value
		}
		s.Subject, s.Score = who, breadth[who.Kind]*failures
		s.Text = fmt.Sprintf("has part in %s of the failures; %s of its own fail and %s of the others", percent(s.Share), percent(s.Inside), percent(s.Outside))
		list = append(list, s)
	}
	return list
}

// refusal is what the requests for a model say.
type refusal struct {
	suspect Suspect
	value   float64
}

// refused are the models whose requests fail, or the target of such a model where
// there is only one: while a target cools down nothing is asked of it, and its calls
// say nothing.
func (d *Detector) refused() map[Subject]refusal {
	all, each := d.windows(Model)
	out := map[Subject]refusal{}
	for i, name := range each.names {
		if each.counts[i].Work() == all.Work() {
			continue
		}
		who := Subject{Model, name}
		if t := d.top.Models[name]; len(t) == 1 {
			who = Subject{Target, t[0]}
		}
		if s, v := lift(each.counts[i], all); v > out[who].value {
			out[who] = refusal{s, v}
		}
	}
	return out
}

// targets are the calls at each target lately. Where a target takes many callers'
// calls for mistakes, those are failures of its. Of one that the router has left
// what went well before counts no more: nothing has come since to show the change.
func (d *Detector) targets() (all Counts, each map[string]*Counts) {
	each = map[string]*Counts{}
	for _, s := range d.order {
		if s.key.kind != Target {
			continue
		}
		over := d.cfg.Window
		if s.on[Left] {
			over = min(over, max(d.cfg.Spread, d.now.Sub(s.opened)+d.cfg.Spread))
		}
		w := s.window(d.now, over)
		if s.on[Theirs] {
			w.Class[fault.Outage] += w.Class[fault.Client]
			w.Class[fault.Client] = 0
		}
		all.add(&w)
		each[s.key.name] = &w
	}
	return all, each
}

// scoreOf is the score that a suspect has now, 0 for one that is none.
func (d *Detector) scoreOf(o *Outage, who Subject) float64 {
	if i := slices.IndexFunc(o.Suspects, func(s Suspect) bool { return s.Subject == who }); i >= 0 {
		return o.Suspects[i].Score
	}
	return 0
}

type named struct {
	names  []string
	counts []Counts
}

// windows are what came in lately of every series of a kind.
func (d *Detector) windows(kind Kind) (all Counts, each named) {
	for _, s := range d.order {
		if s.key.kind != kind {
			continue
		}
		w := s.window(d.now, d.cfg.Window)
		all.add(&w)
		each.names, each.counts = append(each.names, s.key.name), append(each.counts, w)
	}
	return all, each
}

// name says who leads the suspects, once that has been so for a while: the longer
// the less sure it is.
func (d *Detector) name(o *Outage) {
	if len(o.Suspects) == 0 || o.Suspects[0].Score < certain {
		o.leads = time.Time{}
		return
	}
	s := o.Suspects[0]
	if o.first != s.Subject || o.leads.IsZero() {
		o.first, o.leads = s.Subject, d.now
	}
	if o.named == s.Subject || d.now.Sub(o.leads) < patience(s.Score) || s.Score < d.scoreOf(o, o.named)+ahead {
		return
	}
	o.named = s.Subject
	text := fmt.Sprintf("source: %s (score %.2f): %s", s.Subject, s.Score, s.Text)
	if len(o.Suspects) > 1 {
		text += fmt.Sprintf("; next %s (score %.2f)", o.Suspects[1].Subject, o.Suspects[1].Score)
	}
	d.say(o, Notice{What: "source", Source: s.Subject, Score: s.Score, Text: text})
}

// patience is how long a suspect must lead before it is named.
func patience(score float64) time.Duration {
	unsure := (1 - score) / (1 - certain)
	return steady + time.Duration(unsure*float64(unsteady))
}
