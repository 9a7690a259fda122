package detect

import (
	"fmt"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// advance looks at one open outage: how much harm is done, who is behind it, and
// whether it is over.
func (d *Detector) advance(o *Outage) {
	d.measure(o)
	// What is left of failures that end says little of one that was named.
	if o.State == Degraded && (o.named == Subject{} || o.harm >= eased*o.worst) {
		d.suspect(o)
		d.name(o)
	}
	d.causes(o)
	firing := d.firing(o)
	looks := !firing || o.harm < eased*o.worst
	switch {
	case o.State == Degraded && !looks, o.State == Degraded && d.now.Sub(o.Noticed) < d.cfg.Settle:
		o.better = time.Time{}
		return
	case o.State != Degraded && firing && o.harm >= worse*o.worst && (o.Traffic >= d.cfg.LoadBack || o.harm >= o.worst):
		if d.lasting(o) {
			d.wave(o, nil)
		} else {
			d.enter(o, Degraded, "degraded again")
		}
		return
	case o.better.IsZero():
		o.better = d.now
	}
	d.judge(o, firing)
}

// judge decides what to call an outage that looks better.
func (d *Detector) judge(o *Outage, firing bool) {
	back := o.Traffic >= d.cfg.LoadBack && !(firing && o.standing())
	if firing || !back {
		o.calm = time.Time{}
	} else if o.calm.IsZero() {
		o.calm = d.now
	}
	switch {
	case !o.calm.IsZero() && d.now.Sub(o.calm) >= d.cfg.VerifyFor:
		d.close(o, Verified, fmt.Sprintf("verified: traffic at %s of onset for %s with the usual share of failures", percent(o.Traffic), d.cfg.VerifyFor))
	case d.now.Sub(o.better) < d.cfg.Settle:
		return
	case !back && d.now.Sub(o.better) >= d.cfg.GiveUp:
		d.close(o, Unverified, fmt.Sprintf("closed unverified: traffic has been below %s of onset for %s", percent(d.cfg.LoadBack), d.cfg.GiveUp))
	case !back:
		d.call(o, Unverified, d.doubt(o, firing))
	default:
		d.call(o, Improving, d.hope(o, firing))
	}
}

// standing reports that as large a part of the requests fails as ever in this wave:
// there are fewer failures because fewer come, also where a caller's retries that
// waited as they were told make up for the load.
func (o *Outage) standing() bool {
	return o.part >= failing && o.Failing >= worse*o.part
}

// doubt says why an improvement may be none.
func (d *Detector) doubt(o *Outage, firing bool) string {
	text := fmt.Sprintf("unverified: traffic at %s of onset", percent(o.Traffic))
	switch {
	case firing && o.standing() && o.Traffic >= d.cfg.LoadBack:
		text = fmt.Sprintf("unverified: fewer failures because fewer requests come, for %s of them still fail", percent(o.Failing))
	case firing:
		text += fmt.Sprintf(", %s of it still fails", percent(o.Failing))
	}
	if n := len(o.Actions); n > 0 {
		text += "; " + o.Actions[n-1].What + " is not shown to have ended it"
	}
	return text
}

func (d *Detector) hope(o *Outage, firing bool) string {
	if firing {
		return fmt.Sprintf("improving: %s of the requests still fail", percent(o.Failing))
	}
	return fmt.Sprintf("improving: traffic at %s of onset; verified when that holds for %s", percent(o.Traffic), d.cfg.VerifyFor)
}

// call enters a state and says so once. Between looking better in one way and in the
// other an outage stays for a while: loads near the bound go to and fro.
func (d *Detector) call(o *Outage, s State, words string) {
	was := o.State
	if was != s && was != Degraded && d.now.Sub(o.Changed) < d.cfg.Settle {
		return
	}
	d.enter(o, s, words)
	if was != s {
		d.say(o, Notice{What: "state", Text: words})
	}
}

func (d *Detector) close(o *Outage, s State, words string) {
	at := d.now
	o.Ended = &at
	d.settle(o, s)
	d.release(o)
	o.trail = nil
	was := o.State
	d.enter(o, s, words)
	if was == s {
		o.Changed = d.now
	}
	d.say(o, Notice{What: "closed", Text: words})
}

// firing reports that something of the outage is still found, amplification
// included.
func (d *Detector) firing(o *Outage) bool {
	for _, f := range d.active { // also what the outage keeps no more
		if f.home == o {
			return true
		}
	}
	return false
}

// measure brings the load and the harm of an outage up to date.
func (d *Detector) measure(o *Outage) {
	var now Counts
	onset, back := map[string]float64{}, map[string]float64{} // of each dominant workload
	o.Traffic = 2
	var load, had float64
	for i := range o.Load {
		l := &o.Load[i]
		l.Now = 0
		if s := d.series[key{use, l.Workload, l.Model}]; s != nil {
			l.Now = s.rate(d.now.Add(-recently), d.now)
			w := s.window(d.now, d.cfg.Window)
			now.add(&w)
		}
		load, had = load+l.Now, had+l.Onset
		if l.Dominant {
			onset[l.Workload] += l.Onset
			back[l.Workload] += l.Now
		}
		if l.own && l.Onset > 0 {
			o.Traffic = min(o.Traffic, l.Now/l.Onset)
		}
	}
	for who, load := range onset {
		o.Traffic = min(o.Traffic, back[who]/load)
	}
	switch {
	case o.Traffic < 2:
	case had > 0: // none of many makes a tenth of it
		o.Traffic = load / had
	default: // nothing is known of the load: nothing says that it is back
		o.Traffic = 0
	}
	o.asked = now.Distinct()
	o.Failing = share(now.Bad(), now.Work())
	harm := now.Bad() + d.excessOf(o) + d.failedCalls(o)
	o.track(d.now, share(harm, now.Distinct()))
	o.harm = float64(harm) / min(d.cfg.Window, max(time.Second, d.now.Sub(d.since))).Seconds()
	if o.State == Degraded {
		o.worst, o.part = max(o.worst, o.harm), max(o.part, o.Failing)
	}
}

// failedCalls are those at the targets of an outage's scope. Where another target
// answers no request fails, and they are the harm that there is.
func (d *Detector) failedCalls(o *Outage) (n int64) {
	for _, s := range o.Scope {
		if t := d.series[key{Target, s.Name, ""}]; s.Kind == Target && t != nil {
			w := t.window(d.now, d.cfg.Window)
			n += w.Bad()
			if t.on[Theirs] {
				n += int64(w.Class[fault.Client])
			}
		}
	}
	return n
}

// excessOf is what the workloads of an outage bring in on top of their requests.
// Much of it is refused before its model is known.
func (d *Detector) excessOf(o *Outage) (n int64) {
	for _, s := range d.order {
		if s.key.kind != Workload {
			continue
		}
		if slices.Contains(o.Scope, Subject{Workload, s.key.name}) || slices.ContainsFunc(o.Load, func(l Load) bool { return l.Workload == s.key.name }) {
			w := s.window(d.now, d.cfg.Window)
			n += w.Excess()
		}
	}
	return n
}

// release lets the detectors of an outage that is closed begin anew: what they find
// from now on is found again.
func (d *Detector) release(o *Outage) {
	for _, x := range d.objectives {
		if f := d.active[findingKey{SloBurn, x.subject(), x.Name}]; f != nil && f.home == o {
			d.extinguish(x)
		}
	}
	for _, f := range d.active {
		s := d.series[key{f.Subject.Kind, f.Subject.Name, ""}]
		if f.home != o || s == nil {
			continue
		}
		d.found(s, f.Detector, false, Finding{})
		switch f.Detector {
		case Drop:
			s.drop = cusum{}
		case Broken:
			s.broken = cusum{}
		case Left:
			s.opened = time.Time{}
		case SlowerBy:
			for k, p := range d.slow {
				if k.target == f.Subject.Name {
					p.on, p.since = false, time.Time{}
				}
			}
		}
	}
}
