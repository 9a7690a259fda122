package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
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
	Text    string  `json:"text"`
}

const (
	maxSuspects = 8
	// What failures alone say counts for a little less the wider the suspect: of two
	// that explain the same the narrower one is named. What repeats count for.
	narrow, wide, whole = 1.0, 0.97, 0.9
	// polite is the amplification that official clients come to in an outage that is
	// none of their making: two retries. From twice that on excess counts in full.
	polite = 3.0
)

// suspect ranks the suspects anew.
func (d *Detector) suspect(o *Outage) {
	list := d.workloads()
	list = append(list, d.places()...)
	if list = ranked(list); len(list) > 0 && (list[0].Score >= certain || len(o.Suspects) == 0) {
		o.Suspects = list
	}
	if list = ranked(d.causes(o)); len(list) > 0 {
		o.Changes = list
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

// lift is how much of the failures a suspect explains: its share of them, by how
// much more often what has part in it fails than what has not.
func lift(part, all Counts) (s Suspect, value float64) {
	s.Share = share(part.Bad(), all.Bad())
	s.Inside = share(part.Bad(), part.Work())
	s.Outside = share(all.Bad()-part.Bad(), all.Work()-part.Work())
	return s, s.Share * max(0, s.Inside-s.Outside)
}

// workloads are suspects for what fails of theirs alone, and for what they bring
// in on top of their requests: the less it exceeds what official clients come to, the
// less it counts, and the less so the more of the traffic is theirs anyway.
func (d *Detector) workloads() (list []Suspect) {
	all, each := d.windows(Workload)
	for i, name := range each.names {
		w := each.counts[i]
		s, failures := lift(w, all)
		s.Subject = Subject{Workload, name}
		s.Excess, s.Amplification = share(w.Excess(), all.Excess()), w.amplification()
		weight := min(1, max(0, (s.Amplification-polite)/polite))
		if w.Repeats == 0 || w.Excess() < d.cfg.LeastExcess {
			weight = 0
		}
		beyond := s.Excess * (1 - (1-weight)*share(w.Distinct(), all.Distinct()))
		s.Score = 1 - (1-whole*failures)*(1-weight*beyond)
		s.Text = fmt.Sprintf("has part in %s of the failures and brings in %s of the excess, %.1f for each distinct request", percent(s.Share), percent(s.Excess), s.Amplification)
		list = append(list, s)
	}
	return list
}

// places are the targets and the failure domains.
func (d *Detector) places() (list []Suspect) {
	for _, k := range []struct {
		kind   Kind
		weight float64
	}{{Target, narrow}, {Domain, wide}} {
		all, each := d.windows(k.kind)
		for i, name := range each.names {
			s, failures := lift(each.counts[i], all)
			s.Subject, s.Score = Subject{k.kind, name}, k.weight*failures
			s.Text = fmt.Sprintf("has part in %s of the failed calls; %s of its calls fail and %s of the others", percent(s.Share), percent(s.Inside), percent(s.Outside))
			list = append(list, s)
		}
	}
	return list
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

// name says who leads the suspects, once that has been so for a while.
func (d *Detector) name(o *Outage) {
	if len(o.Suspects) == 0 || o.Suspects[0].Score < certain {
		o.leads = time.Time{}
		return
	}
	s := o.Suspects[0]
	if o.first != s.Subject || o.leads.IsZero() {
		o.first, o.leads = s.Subject, d.now
	}
	if o.named == s.Subject || d.now.Sub(o.leads) < steady || s.Score < d.scoreOf(o, o.named)+ahead {
		return
	}
	o.named = s.Subject
	text := fmt.Sprintf("source: %s (score %.2f): %s", s.Subject, s.Score, s.Text)
	if len(o.Suspects) > 1 {
		text += fmt.Sprintf("; next %s (score %.2f)", o.Suspects[1].Subject, o.Suspects[1].Score)
	}
	d.say(o, Notice{What: "source", Source: s.Subject, Score: s.Score, Text: text})
}
