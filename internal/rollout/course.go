package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const maxMoments = 100

// DefaultConfig is a rollout in five stages of at least ten minutes.
//
// A thousand requests are what the test of success needs so that a version with
// five points more failures than one in a hundred passes less than once in a
// hundred times, see the package documentation.
func DefaultConfig() Config {
	return Config{
		Stages:   []Stage{{Share: 0.01}, {Share: 0.05}, {Share: 0.25}, {Share: 0.5}, {Share: 1}},
		Bake:     10 * time.Minute,
		Window:   time.Minute,
		Requests: 1000,
		Patience: 2 * time.Hour,
		Margin:   0.005,
	}
}

// Rollout is one new version on its way. It belongs to one goroutine at a time;
// what Exposure returns may be shared.
type Rollout struct {
	cfg             Config
	version, before string
	diff            []string
	began, since    time.Time
	stage           int
	state           State
	exposure        *Exposure
	traffic         Traffic // as last told
	judge           *judge
	seen            int64 // requests in this stage that say something of the candidate
	verdict         Verdict
	why             string
	measures        []Measure
	timeline        []Moment
	minute          []sixtieth
}

func (t Traffic) clone() Traffic {
	return Traffic{Workloads: maps.Clone(t.Workloads), Regions: maps.Clone(t.Regions)}
}

// sixtieth is what came in during a tick.
type sixtieth struct {
	at             time.Time
	candidate, all int64
}

// New begins a rollout: its first stage is exposed from now on.
func New(c Config, version, before string, diff []string, t Traffic, now time.Time) *Rollout {
	c.Stages = slices.Clone(c.Stages)
	if n := len(c.Stages); n == 0 || c.Stages[n-1].Share < 1 || len(c.Stages[n-1].Regions) > 0 {
		c.Stages = append(c.Stages, Stage{Share: 1}) // the last is always everything
	}
	r := &Rollout{
		cfg: c, version: version, before: before, diff: slices.Clone(diff),
		began: now, since: now, state: Baking, judge: newJudge(c), verdict: Insufficient, traffic: t.clone(),
	}
	r.exposure = (&Exposure{}).widen(version, c.Stages[0], t)
	r.measure()
	r.why = r.wants(now)
	r.say(now, "", fmt.Sprintf("rollout of %s began: %s", version, r.reach()))
	return r
}

// Exposure is who is served by the new version. It changes only in Tick, Promote,
// Halt and Replace.
func (r *Rollout) Exposure() *Exposure { return r.exposure }

// Done reports that nothing more will change.
func (r *Rollout) Done() bool { return r.state != Baking }

// Tick weighs what was seen since the last one, acts on it, and returns what is new
// in the timeline. Afterwards seen is empty.
func (r *Rollout) Tick(now time.Time, seen *Seen, t Traffic) []Moment {
	in := r.judge.take(now, seen, r.exposure)
	r.minute = append(r.minute, sixtieth{now, in.candidate, in.control + in.candidate})
	r.minute = slices.DeleteFunc(r.minute, func(s sixtieth) bool { return now.Sub(s.at) >= time.Minute })
	if r.Done() {
		return nil
	}
	r.seen, r.traffic = r.seen+in.telling, t.clone()
	old := len(r.timeline)
	r.judge.step(now, r.exposure)
	r.measure()
	age := now.Sub(r.since)
	open := r.judge.unfinished(age)
	switch {
	case r.failed() != "":
		r.revert(now, r.failed())
	case r.seen < r.cfg.Requests && age >= r.cfg.Patience:
		r.revert(now, fmt.Sprintf("%d of %d requests were seen of it in %s: no data is no pass", r.seen, r.cfg.Requests, age.Round(time.Second)))
	case open > 0 && age >= r.cfg.Patience:
		r.revert(now, fmt.Sprintf("%d requests of it have not ended after %s: no data is no pass", open, age.Round(time.Second)))
	case r.seen < r.cfg.Requests || age < r.baking():
		r.verdict, r.why = Insufficient, r.wants(now)
	case open > 0:
		r.verdict, r.why = Insufficient, fmt.Sprintf("nothing speaks against it so far, but %d of its requests have not ended", open)
	default:
		r.verdict, r.why = Pass, fmt.Sprintf("stage %d of %d passed after %s and %d requests", r.stage+1, len(r.cfg.Stages), age.Round(time.Second), r.seen)
		if m := r.judge.unseen(); m != "" {
			r.why += ", though hardly any were of " + m
		}
		r.next(now, "", r.why)
	}
	return slices.Clone(r.timeline[min(old, len(r.timeline)):])
}

// baking is how long a stage is watched at least: a full window of detection.
func (r *Rollout) baking() time.Duration { return max(r.cfg.Bake, r.cfg.Window) }

func (r *Rollout) measure() {
	r.measures = r.judge.measures(r.exposure, r.seen >= r.cfg.Requests)
}

// failed is what speaks against the new version, "" for nothing.
func (r *Rollout) failed() string {
	for _, m := range r.measures {
		if m.Verdict == Fail {
			return m.Name + ": " + m.Text
		}
	}
	return ""
}

// wants says what a stage waits for.
func (r *Rollout) wants(now time.Time) string {
	s := fmt.Sprintf("nothing speaks against it so far: %d of %d requests", r.seen, r.cfg.Requests)
	if left := r.baking() - now.Sub(r.since); left > 0 {
		s += fmt.Sprintf(", %s to go", left.Round(time.Second))
	}
	return s
}

// revert takes back everything that was exposed.
func (r *Rollout) revert(now time.Time, why string) {
	r.verdict, r.why = Fail, why
	r.end(now, Reverted, "", fmt.Sprintf("reverted to %s in stage %d: %s", r.before, r.stage+1, why))
}

func (r *Rollout) end(now time.Time, s State, by, what string) {
	r.state, r.since = s, now
	r.exposure = &Exposure{all: s == Promoted}
	r.say(now, by, what)
}

// next goes to the next stage, or ends when there is none.
func (r *Rollout) next(now time.Time, by, why string) {
	if r.stage+1 >= len(r.cfg.Stages) {
		r.end(now, Promoted, by, why+": "+r.version+" serves everything")
		return
	}
	r.stage++
	r.since, r.seen = now, 0
	r.exposure = r.exposure.widen(r.version, r.cfg.Stages[r.stage], r.traffic)
	r.judge.again()
	r.say(now, by, why+": "+r.reach())
}

// reach says how far a stage reaches.
func (r *Rollout) reach() string {
	s := r.cfg.Stages[r.stage]
	text := fmt.Sprintf("stage %d of %d, %s of the traffic", r.stage+1, len(r.cfg.Stages), percent(s.Share))
	if r.exposure.regions != nil {
		text += fmt.Sprintf(" in %d regions", len(r.exposure.regions))
	}
	return text
}

func (r *Rollout) say(at time.Time, by, what string) {
	r.timeline = append(r.timeline, Moment{At: at, What: what, By: by})
	if len(r.timeline) > maxMoments {
		r.timeline = slices.Delete(r.timeline, 1, 2) // how it began stays
	}
}

var (
	errOver = errors.New("the rollout is over")
	errWhy  = errors.New("say why")
)

// Promote goes to the next stage at once. Nobody can overrule a failure: that is
// reverted before anybody can ask. Where not enough was seen, the operator answers
// for it.
func (r *Rollout) Promote(now time.Time, by, why string) error {
	if r.Done() {
		return fmt.Errorf("promote %s: %w: it is %s", r.version, errOver, r.state)
	}
	if why == "" {
		return fmt.Errorf("promote %s: %w", r.version, errWhy)
	}
	if bad := r.failed(); bad != "" {
		return fmt.Errorf("promote %s: it failed: %s", r.version, bad)
	}
	r.next(now, by, "promoted: "+why)
	return nil
}

// Halt takes back everything that was exposed.
func (r *Rollout) Halt(now time.Time, by, why string) error {
	if r.Done() {
		return fmt.Errorf("halt %s: %w: it is %s", r.version, errOver, r.state)
	}
	r.why = "halted: " + why
	r.end(now, Halted, by, fmt.Sprintf("halted in stage %d, back to %s: %s", r.stage+1, r.before, why))
	return nil
}

// Replace ends a rollout because of a newer version: everything is on the version
// before until that one's rollout says otherwise.
func (r *Rollout) Replace(now time.Time, by, version string) error {
	if r.Done() {
		return fmt.Errorf("replace %s: %w: it is %s", r.version, errOver, r.state)
	}
	r.why = "replaced by " + version
	r.end(now, Replaced, by, fmt.Sprintf("replaced in stage %d by %s", r.stage+1, version))
	return nil
}

// Status is what is known at a time.
func (r *Rollout) Status(now time.Time) Status {
	s := Status{
		Version: r.version, Before: r.before, State: r.state, Stage: r.stage, Stages: slices.Clone(r.cfg.Stages),
		Exposed: r.exposure.exposed(), Split: r.exposure.split, Began: r.began, Since: r.since,
		Verdict: r.verdict, Why: r.why, Measures: slices.Clone(r.measures),
		Diff: slices.Clone(r.diff), Timeline: slices.Clone(r.timeline),
	}
	var candidate, all int64
	for _, m := range r.minute {
		if now.Sub(m.at) < time.Minute {
			candidate, all = candidate+m.candidate, all+m.all
		}
	}
	if all > 0 {
		s.Exposure = float64(candidate) / float64(all)
	}
	if !r.Done() {
		at := r.since.Add(r.baking())
		s.Next = &at
	}
	return s
}
