package detect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// roughly is how far off the time of an onset may be: half of the minute that
	// detectors look at.
	roughly     = 30 * time.Second
	sampleEvery = 30 * time.Second
	maxSamples  = 512 // of a trail, which is thinned beyond
	// causesEvery is how often the changes of an outage are judged anew when nothing
	// was told and nothing was found.
	causesEvery = 10 * time.Second
	// takesHold is how long a change may take to have its effect, and an undone one
	// to lose it: the minute in which failures are counted, and one more.
	takesHold = 2 * time.Minute
	// undoneFor is over what the effect of an undone change is looked at before the
	// undoing; behind it as many samples with the load of the onset are.
	undoneFor     = 5 * time.Minute
	enoughSamples = 10
	gone          = 0.25 // of the effect before, up to which it is gone
	stays         = 0.75 // from which it has stayed
	// What a dose, and an undoing, may raise a score by, as a share of what is
	// missing to 1; and what is left of one whose effect stays when it is undone.
	ofDose, ofUndoing, ofStaying = 0.5, 0.5, 0.4
)

// sample is what one outage did at one time: failures and excess for each distinct
// request, and the lowest share of its load that a dominant series had.
type sample struct {
	at              time.Time
	effect, traffic float64
}

// track keeps what an outage does over time, for what is told of changes.
func (o *Outage) track(now time.Time, effect float64) {
	if n := len(o.trail); n > 0 && now.Sub(o.trail[n-1].at) < sampleEvery {
		return
	}
	o.trail = append(o.trail, sample{now, effect, o.Traffic})
	if len(o.trail) > maxSamples {
		kept := o.trail[:0]
		for i, s := range o.trail {
			if i%2 == 0 {
				kept = append(kept, s)
			}
		}
		o.trail = kept
	}
}

// over is the mean effect from one time to another.
func (o *Outage) over(from, to time.Time) (effect float64, n int) {
	for _, s := range o.trail {
		if !s.at.Before(from) && s.at.Before(to) {
			effect += s.effect
			n++
		}
	}
	return effect / float64(max(n, 1)), n
}

// withLoad is the mean effect, and the least traffic, of the first samples from a
// time on that had so much of the load of the onset. at is the last of them, zero
// when there are not enough.
func (o *Outage) withLoad(from time.Time, least float64) (effect, traffic float64, at time.Time) {
	traffic = math.Inf(1)
	n := 0
	for _, s := range o.trail {
		if s.at.Before(from) || s.traffic < least {
			continue
		}
		effect += s.effect
		traffic = min(traffic, s.traffic)
		if n++; n == enoughSamples {
			return effect / enoughSamples, traffic, s.at
		}
	}
	return 0, 0, time.Time{}
}

// judged is what the list of causes was made from.
type judged struct {
	told, found int
	at          time.Time
}

// causes brings the changes that came before onsets of the outage up to date. The
// list is made again when a change was told or something was found, and every ten
// seconds besides.
func (d *Detector) causes(o *Outage) {
	now := judged{d.told, o.found, d.now}
	if o.causes.told == now.told && o.causes.found == now.found && d.now.Sub(o.causes.at).Abs() < causesEvery {
		return
	}
	o.causes = now
	list := d.correlate(o)
	for i := range list {
		d.respond(o, &list[i])
	}
	if list = ranked(list); len(list) > 0 {
		o.Changes = list
	}
}

// correlate finds the changes that came in time before onsets, in their scope. The
// chance of one is that as many onsets have a change of such frequency before them
// by accident: under independent arrivals the product of 1-exp(-rate x time).
func (d *Detector) correlate(o *Outage) (list []Suspect) {
	place, first := map[string]int{}, d.now
	scopes := map[string][]Change{}
	for _, c := range d.changes {
		scopes[c.Scope] = append(scopes[c.Scope], c)
		if c.At.Before(first) {
			first = c.At
		}
	}
	span := max(leastSpan, d.now.Sub(first)).Seconds()
	for _, on := range o.onsets {
		meant, n, here := d.meant(on.scope), 0, map[string]bool{}
		for scope, list := range scopes {
			if !meant(scope) {
				continue
			}
			n += len(list)
			for _, c := range list {
				if after := on.at.Sub(c.At); after >= -roughly && after <= d.cfg.Before && c.At.Before(on.noticed) {
					here[c.What] = true
				}
			}
		}
		chance := 1 - math.Exp(-float64(n)/span*d.cfg.Before.Seconds())
		for what := range here {
			i, ok := place[what]
			if !ok {
				i = len(list)
				place[what] = i
				list = append(list, Suspect{Subject: Subject{Cause, what}, Chance: 1})
			}
			list[i].Chance *= chance
			list[i].Matched++
		}
	}
	for i := range list {
		s := &list[i]
		s.Score = (1 - math.Sqrt(s.Chance)) * float64(s.Matched) / float64(len(o.onsets))
		s.Text = fmt.Sprintf("came within %s before %d of %d onsets in its scope; by accident with a chance of %.2g", d.cfg.Before, s.Matched, len(o.onsets), s.Chance)
	}
	return list
}

// respond raises or lowers the score of a change by what its dose and its undoing
// show.
func (d *Detector) respond(o *Outage, s *Suspect) {
	var made, undone []Change
	for _, c := range d.changes {
		switch s.Name {
		case c.What:
			made = append(made, c)
		case c.Reverts:
			undone = append(undone, c)
		}
	}
	for _, list := range [][]Change{made, undone} {
		slices.SortStableFunc(list, func(a, b Change) int { return a.At.Compare(b.At) })
	}
	if r, n := d.dose(o, made, undone); n >= 3 {
		s.Response = r
		if r > 0 {
			s.Score += (1 - s.Score) * ofDose * r
		} else {
			s.Score *= 1 + ofDose*r
		}
		s.Text += fmt.Sprintf("; over %d steps of exposure the effect goes with it by %.2f of 1", n, r)
	}
	d.undoing(o, s, made, undone)
}

// dose is how well the effect follows the exposure, from -1 to 1, over the steps
// that a change was made in: Kendall's tau of both, with none of it and no effect as
// the first step. The exposure is what was told, or the number of scopes.
func (d *Detector) dose(o *Outage, made, undone []Change) (tau float64, n int) {
	end := d.now
	if len(undone) > 0 {
		end = undone[0].At
	}
	type step struct{ exposure, effect float64 }
	steps, scopes := []step{{}}, map[string]bool{}
	for i, c := range made {
		to := end
		if i+1 < len(made) && made[i+1].At.Before(end) {
			to = made[i+1].At
		}
		scopes[c.Scope] = true
		exposure := cmp.Or(c.Dose, float64(len(scopes)))
		if made[0].Dose > 0 && c.Dose == 0 || exposure == steps[len(steps)-1].exposure || to.Sub(c.At) < takesHold {
			continue // says nothing, or not for long enough
		}
		effect, seen := o.over(c.At.Add(takesHold), to)
		if seen == 0 && to.After(o.Noticed) {
			continue
		}
		steps = append(steps, step{exposure, effect}) // before it was noticed there was none
	}
	for i := range steps {
		for _, b := range steps[i+1:] {
			tau += float64(cmp.Compare(b.exposure, steps[i].exposure) * cmp.Compare(b.effect, steps[i].effect))
		}
	}
	n = len(steps)
	return tau / max(float64(n*(n-1))/2, 1), n
}

// undoing compares the effect before a change was taken back with that behind it.
// With less than the load of the onset nothing is shown.
func (d *Detector) undoing(o *Outage, s *Suspect, made, undone []Change) {
	if len(undone) == 0 {
		return
	}
	last := undone[len(undone)-1]
	if made[len(made)-1].At.After(last.At) || last.At.Before(o.Onset) {
		return // it was made again, or there was nothing to end
	}
	if left := stillThere(made, undone); left > 0 {
		s.Text += fmt.Sprintf("; undone, but not in %d of its scopes", left)
		return
	}
	before, m := o.over(last.At.Add(-undoneFor), last.At)
	after, traffic, at := o.withLoad(last.At.Add(takesHold), d.cfg.LoadBack)
	switch {
	case m == 0 || before == 0:
		s.Undone = "not shown"
		s.Text += "; undone when nothing was wrong, which shows nothing"
	case at.IsZero():
		s.Undone = "not shown yet"
		s.Text += fmt.Sprintf("; undone, which shows nothing yet: traffic at %s of onset", percent(o.Traffic))
	case d.undoneSince(s.Name, last.At, at):
		s.Undone = "not shown"
		s.Text += "; undone, and so was another change before the traffic of the onset was back: neither is shown"
	case after <= gone*before:
		s.Undone = "effect gone"
		s.Score += (1 - s.Score) * ofUndoing
		s.Text += fmt.Sprintf("; undone, and the effect is gone with traffic at %s of onset", percent(traffic))
	case after >= stays*before:
		s.Undone = "effect stays"
		s.Score *= ofStaying
		s.Text += fmt.Sprintf("; undone, and %s of the effect stays", percent(after/before))
	default:
		s.Undone = "effect less"
		s.Text += fmt.Sprintf("; undone, and %s of the effect stays", percent(after/before))
	}
}

// undoneSince reports that another change was taken back in between.
func (d *Detector) undoneSince(what string, from, to time.Time) bool {
	return slices.ContainsFunc(d.changes, func(c Change) bool {
		return c.Reverts != "" && c.Reverts != what && c.At.After(from) && c.At.Before(to)
	})
}

// stillThere is in how many of its scopes a change has not been taken back. What is
// taken back without a scope is so everywhere.
func stillThere(made, undone []Change) int {
	left := map[string]bool{}
	for _, c := range made {
		left[c.Scope] = true
	}
	for _, c := range undone {
		if c.Scope == "" {
			return 0
		}
		delete(left, c.Scope)
	}
	return len(left)
}
