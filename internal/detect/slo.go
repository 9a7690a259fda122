package detect

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// SLO is an objective: the share of the requests that it covers which must be
// answered well.
type SLO struct {
	Name            string
	Model, Workload string // "" for any
	// Objective is below 1, Window the time that its budget of failures is for.
	Objective float64
	Window    time.Duration
	// FirstContent is how late the first content of an answer may come; 0 for any
	// time.
	FirstContent time.Duration
}

// covers reports that a request is one of those that an objective is for.
func (s *SLO) covers(r *event.Request) bool {
	return (s.Model == "" || s.Model == r.Model) && (s.Workload == "" || s.Workload == r.Workload)
}

// counts reports that two objectives count the same requests alike.
func (s *SLO) counts(o *SLO) bool {
	return s.Model == o.Model && s.Workload == o.Workload && s.FirstContent == o.FirstContent && s.Window == o.Window
}

func (s *SLO) budget() float64 { return 1 - s.Objective }

// subject is what an objective's findings are about.
func (s *SLO) subject() Subject {
	switch {
	case s.Workload != "":
		return Subject{Workload, s.Workload}
	case s.Model != "":
		return Subject{Model, s.Model}
	}
	return Subject{All, "requests"}
}

// outcome is how many requests met an objective, and how many did not.
type outcome struct{ good, bad int64 }

func (o *outcome) add(more outcome) { o.good, o.bad = o.good+more.good, o.bad+more.bad }

func (o outcome) n() int64 { return o.good + o.bad }

// judge counts a request for an objective. The same requests count as for every
// verdict on the service: no caller's mistakes and no cancels, no repeats and nothing
// beyond a caller's limits.
func (o *outcome) judge(s *SLO, r *event.Request) {
	if r.Over || r.Repeat || r.InboundAttempt > 0 || !s.covers(r) {
		return
	}
	switch r.Class {
	case fault.Client, fault.ContentPolicy, fault.Canceled:
	case fault.OK:
		if s.FirstContent > 0 && r.Content > s.FirstContent {
			o.bad++
		} else {
			o.good++
		}
	default:
		o.bad++
	}
}

// MaxSLOs is how many objectives there may be.
const MaxSLOs = 64

// pair is a rule: the budget burns so many times as fast as it lasts, over both
// windows. The long one says that it matters, the short one that it goes on.
type pair struct {
	burn        float64
	long, short time.Duration
	scaled      bool // the windows are for a budget of thirty days
	page        bool // somebody is to look at once
}

// The multi-window pairs of the SRE workbook for thirty days: 2 % of the budget in
// an hour, 5 % in six, 10 % in three days; and a fast one, for those are too slow for
// a storm. The most urgent first.
var pairs = [...]pair{
	{burn: 60, long: 5 * time.Minute, short: 30 * time.Second, page: true},
	{burn: 14.4, long: time.Hour, short: 5 * time.Minute, scaled: true, page: true},
	{burn: 6, long: 6 * time.Hour, short: 30 * time.Minute, scaled: true, page: true},
	{burn: 1, long: 72 * time.Hour, short: 6 * time.Hour, scaled: true},
}

const (
	thirtyDays = 720 * time.Hour
	// ringParts is into how many parts a long window is divided.
	ringParts = 120
	// leastBad is how many failures a burn just at a rule's bound must be able to
	// show: with fewer requests the window grows.
	leastBad = 3.0
	// A rule that was met ends by a sequential test of within the budget against so
	// many times it: of the page rules the slowest.
	pageEnds = 6.0
)

// windows are those of a rule for an objective, and behind the rules the whole window.
func (s *SLO) windows(i int) (long, short time.Duration) {
	if i == len(pairs) {
		return s.Window, s.Window
	}
	p := pairs[i]
	if !p.scaled {
		return p.long, p.short
	}
	by := float64(s.Window) / float64(thirtyDays)
	return time.Duration(float64(p.long) * by).Round(time.Second), time.Duration(float64(p.short) * by).Round(time.Second)
}

// strip counts outcomes by parts of a window.
type strip struct {
	width  time.Duration
	newest int64
	parts  [ringParts + 1]outcome
}

func (s *strip) add(now time.Time, o outcome) {
	n := now.UnixNano() / int64(s.width)
	if n-s.newest > int64(len(s.parts)) || n < s.newest-1 { // or the clock was set back
		s.parts, s.newest = [ringParts + 1]outcome{}, n
	}
	for s.newest < n {
		s.newest++
		s.parts[s.newest%int64(len(s.parts))] = outcome{}
	}
	s.parts[s.newest%int64(len(s.parts))].add(o)
}

// since is what came in of the parts that began behind a time.
func (s *strip) since(from time.Time) (out outcome) {
	first := max(from.UnixNano()/int64(s.width)+1, s.newest-ringParts)
	for n := first; n <= s.newest; n++ {
		out.add(s.parts[n%int64(len(s.parts))])
	}
	return out
}

// objective is an SLO with what is known of it.
type objective struct {
	SLO
	began  time.Time
	told   time.Time // until when failures have been told: they are not told again
	strips [len(pairs) + 1]strip
	met    int // the rule that is met, counted from 1; 0 for none
	good   float64
}

// Objectives tells the detector which SLOs there are. What is known of one that
// counts the same as before stays.
func (d *Detector) Objectives(list []SLO) {
	old := d.objectives
	d.objectives = nil
	for _, s := range list[:min(len(list), MaxSLOs)] {
		i := slices.IndexFunc(old, func(o *objective) bool { return o.Name == s.Name && o.counts(&s) })
		if i >= 0 {
			old[i].SLO = s
			d.objectives = append(d.objectives, old[i])
			continue
		}
		o := &objective{SLO: s, began: d.now}
		for i := range o.strips {
			long, _ := s.windows(i)
			o.strips[i].width = max(long/ringParts, time.Second)
		}
		d.objectives = append(d.objectives, o)
	}
	for _, o := range old {
		if !slices.Contains(d.objectives, o) {
			d.extinguish(o)
		}
	}
}

// burns takes a tick's outcome of an objective and looks at its rules.
func (d *Detector) burns(o *objective, now outcome) {
	if o.began.IsZero() || o.began.After(d.now) {
		o.began = d.now
	}
	if o.told.After(d.now) {
		o.told = time.Time{}
	}
	for i := range o.strips {
		o.strips[i].add(d.now, now)
	}
	if o.met > 0 && d.within(o, now) {
		d.extinguish(o)
		return
	}
	most := len(pairs)
	if o.met > 0 {
		most = o.met - 1 // only what is more urgent
		if pairs[o.met-1].page {
			return
		}
	}
	for i := range most {
		if d.burning(o, i) {
			d.extinguish(o)
			d.ignite(o, i)
			return
		}
	}
}

// burning reports that a rule is met.
func (d *Detector) burning(o *objective, i int) bool {
	bound := pairs[i].burn * o.budget()
	long, short := o.windows(i)
	if bound >= 1 {
		return false
	}
	need := int64(math.Ceil(leastBad / bound))
	recent, _, ok := d.gather(o, short, need)
	if !ok || share(recent.bad, recent.n()) < bound {
		return false
	}
	past, span, ok := d.gather(o, long, need)
	if !ok {
		return false
	}
	// What is not known of the window counts as good, with as much traffic.
	n := float64(past.n()) * max(1, float64(long)/float64(max(span, time.Second)))
	return float64(past.bad)/n >= bound && chance(past, o.budget()) >= math.Log(1e5/d.cfg.FalseAlarm)
}

// chance is at least how unlikely so many failures are where each request fails with
// the probability of the budget, as a negative logarithm (Chernoff's bound).
func chance(o outcome, budget float64) float64 {
	mean, bad := float64(o.n())*budget, float64(o.bad)
	if bad <= mean {
		return 0
	}
	return bad*math.Log(bad/mean) - bad + mean
}

// gather is what came in over a window, or over the shortest longer one that has as
// many requests as are needed, without what has been told. span is how much of the
// time is known.
func (d *Detector) gather(o *objective, window time.Duration, need int64) (out outcome, span time.Duration, ok bool) {
	known := d.now.Sub(o.began)
	if !o.told.IsZero() {
		known = min(known, d.now.Sub(o.told))
	}
	for i := range o.strips {
		long, _ := o.windows(i)
		for window <= long {
			span = min(window, known)
			if out = o.strips[i].since(d.now.Add(-span)); out.n() >= need {
				return out, span, true
			}
			if window == long {
				break
			}
			window = long
		}
	}
	return out, span, false
}

// within adds up what speaks for an objective being met again, as a sequential test
// does: of twenty that are not, one is taken for it, for a while.
func (d *Detector) within(o *objective, now outcome) bool {
	p1 := min(0.9, o.budget())
	p0 := p1 / 2
	if pairs[o.met-1].page {
		p0, p1 = p1, min(0.9, pageEnds*p1)
	}
	if p0 >= p1 {
		p0 = p1 / 2
	}
	llr := float64(now.bad)*math.Log(p1/p0) + float64(now.good)*math.Log((1-p1)/(1-p0))
	o.good = max(0, o.good-llr)
	return o.good >= enough
}

// ignite finds that a rule is met.
func (d *Detector) ignite(o *objective, i int) {
	o.met, o.good = i+1, 0
	long, _ := o.windows(i)
	need := int64(math.Ceil(leastBad / (pairs[i].burn * o.budget())))
	past, span, _ := d.gather(o, long, need)
	bad := share(past.bad, past.n())
	f := &Finding{
		Detector: SloBurn, SLO: o.Name, Subject: o.subject(), Found: d.now, Since: d.beganAt(o, i),
		Before: o.budget(), Now: bad, N: past.n(), Score: bad / o.budget(),
	}
	urgency := "look into it soon"
	if pairs[i].page {
		urgency = "look now"
	}
	f.Text = fmt.Sprintf("SLO %s burns its budget %s times as fast as it lasts: %.3g %% of %d requests in %s failed it, %.3g %% may (%s)",
		o.Name, times(f.Score), 100*bad, f.N, brief(span), 100*o.budget(), urgency)
	d.active[findingKey{SloBurn, f.Subject, o.Name}] = f
	d.fresh = append(d.fresh, f)
}

// beganAt is when the failures of a rule that is met began: from now back, as long as
// its parts are above the bound.
func (d *Detector) beganAt(o *objective, i int) time.Time {
	s, bound := &o.strips[i], pairs[i].burn*o.budget()
	at := s.newest
	for n := s.newest; n > s.newest-ringParts; n-- {
		p := s.parts[n%int64(len(s.parts))]
		if p.n() > 0 && share(p.bad, p.n()) < bound {
			break
		}
		if p.bad > 0 {
			at = n
		}
	}
	if t := time.Unix(0, at*int64(s.width)).In(d.now.Location()); t.After(o.began) {
		return t
	}
	return o.began
}

// extinguish ends the finding of an objective, if there is one. The failures up to
// here have been told.
func (d *Detector) extinguish(o *objective) {
	k := findingKey{SloBurn, o.subject(), o.Name}
	if f := d.active[k]; f != nil {
		at := d.now
		f.Ended = &at
		delete(d.active, k)
		o.told = d.now
	}
	o.met, o.good = 0, 0
}

// times is a multiple with three digits.
func times(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// brief is a duration in its largest units: 5m, 6h, 3d.
func brief(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d >= time.Hour && d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d >= time.Minute && d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return d.Round(time.Second).String()
}

// Burn is how fast the budget of an objective went over one window.
type Burn struct {
	Window string `json:"window"` // 5m, 6h, 3d
	// Seconds is its length, Known how much of it is known.
	Seconds float64 `json:"seconds"`
	Known   float64 `json:"known_seconds"`
	Good    int64   `json:"good"`
	Bad     int64   `json:"bad"`
	// Rate is 1 where as many fail as the objective lets.
	Rate float64 `json:"burn_rate"`
}

// Budget is how an objective stands.
type Budget struct {
	Name         string  `json:"name"`
	Model        string  `json:"model,omitempty"`
	Workload     string  `json:"workload,omitempty"`
	Objective    float64 `json:"objective"`
	Window       string  `json:"window"`
	FirstContent float64 `json:"first_content_seconds,omitempty"`
	// Good and Bad are requests of the window, as far as it is known; Known is how
	// far that is, in seconds.
	Good  int64   `json:"good"`
	Bad   int64   `json:"bad"`
	Known float64 `json:"known_seconds"`
	// Left is the share of the window's budget that is left, below 0 when more is
	// spent: of what the whole window would have with the traffic of what is known,
	// and what is not known taken for good.
	Left float64 `json:"budget_left"`
	// Burning is page or ticket while a rule is met, with its finding's text and
	// outage.
	Burning string     `json:"burning,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Text    string     `json:"text,omitempty"`
	Outage  string     `json:"outage,omitempty"`
	Burns   []Burn     `json:"burns"` // the shortest window first
}

// Budgets are all objectives, in the order that they were given in.
func (d *Detector) Budgets() []Budget {
	out := make([]Budget, 0, len(d.objectives))
	for _, o := range d.objectives {
		out = append(out, d.budgetOf(o))
	}
	return out
}

func (d *Detector) budgetOf(o *objective) Budget {
	b := Budget{Name: o.Name, Model: o.Model, Workload: o.Workload, Objective: o.Objective, Window: brief(o.Window), FirstContent: o.FirstContent.Seconds(), Burns: []Burn{}}
	known := max(0, d.now.Sub(o.began))
	if o.began.IsZero() {
		known = 0
	}
	for i := range pairs {
		long, short := o.windows(i)
		for _, w := range []time.Duration{short, long} {
			at := slices.IndexFunc(b.Burns, func(x Burn) bool { return x.Seconds >= w.Seconds() })
			if at >= 0 && b.Burns[at].Seconds == w.Seconds() {
				continue
			}
			c := o.strips[i].since(d.now.Add(-w))
			x := Burn{Window: brief(w), Seconds: w.Seconds(), Known: min(w, known).Seconds(), Good: c.good, Bad: c.bad, Rate: share(c.bad, c.n()) / o.budget()}
			if at < 0 {
				at = len(b.Burns)
			}
			b.Burns = slices.Insert(b.Burns, at, x)
		}
	}
	all := o.strips[len(pairs)].since(d.now.Add(-o.Window))
	b.Good, b.Bad, b.Known = all.good, all.bad, min(o.Window, known).Seconds()
	b.Left = 1 - share(all.bad, all.n())/o.budget()*b.Known/o.Window.Seconds()
	if f := d.active[findingKey{SloBurn, o.subject(), o.Name}]; f != nil {
		since := f.Since
		b.Burning, b.Since, b.Text = "ticket", &since, f.Text
		if pairs[o.met-1].page {
			b.Burning = "page"
		}
		if f.home != nil {
			b.Outage = f.home.ID
		}
	}
	return b
}
