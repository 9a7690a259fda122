package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/event"
)

// maxSaved bounds the pairs of which what is usual is kept across a restart.
const maxSaved = 256

// saved is a rollout as it is kept.
type saved struct {
	Version  string    `json:"version"`
	Before   string    `json:"before"`
	Diff     []string  `json:"diff"`
	State    State     `json:"state"`
	Stages   []Stage   `json:"stages"`
	Stage    int       `json:"stage"`
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Verdict  Verdict   `json:"verdict"`
	Why      string    `json:"why"`
	Measures []Measure `json:"measures"`
	Timeline []Moment  `json:"timeline"`
	Reach    reach     `json:"reach"`
	Usual    []usually `json:"usual,omitempty"`
}

// reach is an exposure.
type reach struct {
	All     bool     `json:"all,omitempty"`
	Whole   []string `json:"whole,omitempty"`
	Split   string   `json:"split,omitempty"`
	Part    float64  `json:"part,omitempty"`
	Rest    float64  `json:"rest,omitempty"`
	Limited bool     `json:"limited,omitempty"` // to Regions
	Regions []string `json:"regions,omitempty"`
}

// usually is what was seen of one pair before the rollout.
type usually struct {
	Workload string          `json:"workload"`
	Model    string          `json:"model"`
	Class    [classes]uint32 `json:"class"`
	First    [classes]uint32 `json:"first"`
	Repeats  uint32          `json:"repeats,omitempty"`
	Over     uint32          `json:"over,omitempty"`
	Extra    uint32          `json:"extra,omitempty"`
}

// Marshal is what must be kept so that a restart goes on where this stands.
func (r *Rollout) Marshal() ([]byte, error) {
	e := r.exposure
	s := saved{
		Version: r.version, Before: r.before, Diff: r.diff, State: r.state, Stages: r.cfg.Stages, Stage: r.stage,
		Began: r.began, Since: r.since, Verdict: r.verdict, Why: r.why, Measures: r.measures, Timeline: r.timeline,
		Reach: reach{All: e.all, Whole: e.exposed(), Split: e.split, Part: e.part, Rest: e.rest, Limited: e.regions != nil, Regions: sorted(e.regions)},
	}
	if !r.Done() {
		s.Usual = r.judge.usually()
	}
	return json.Marshal(s)
}

// usually is what is usual, of the pairs with the most requests.
func (j *judge) usually() (out []usually) {
	for s := range j.strata {
		c := s.base
		c.add(&s.stage[event.Control])
		if c != (counts{}) {
			out = append(out, usually{s.key.workload, s.key.model, c.class, c.first, c.repeats, c.over, c.extra})
		}
	}
	slices.SortStableFunc(out, func(a, b usually) int { return int(b.requests() - a.requests()) })
	return out[:min(len(out), maxSaved)]
}

func (u *usually) requests() int64 {
	return (&counts{class: u.Class}).distinct()
}

// Restore goes on with what was kept. A stage that was being watched is watched
// anew from now: nothing was seen while the router was away. One that was halted
// or reverted stays so. The stages are those with which the rollout began.
func Restore(c Config, data []byte, now time.Time) (*Rollout, error) {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("restore a rollout: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("restore a rollout: %w", err)
	}
	c.Stages = s.Stages
	r := &Rollout{
		cfg: c, version: s.Version, before: s.Before, diff: s.Diff, began: s.Began, since: s.Since, stage: s.Stage,
		state: s.State, judge: newJudge(c), verdict: s.Verdict, why: s.Why, measures: s.Measures, timeline: s.Timeline,
		exposure: &Exposure{all: s.Reach.All, whole: set(s.Reach.Whole), split: s.Reach.Split, part: s.Reach.Part, rest: s.Reach.Rest},
	}
	if s.Reach.Limited {
		r.exposure.regions = set(s.Reach.Regions)
	}
	if r.Done() {
		return r, nil
	}
	for _, u := range s.Usual {
		r.judge.stratum(cellKey{u.Workload, u.Model}).base = counts{class: u.Class, first: u.First, repeats: u.Repeats, over: u.Over, extra: u.Extra}
	}
	r.since, r.verdict = now, Insufficient
	r.measure()
	r.why = r.wants(now)
	r.say(now, "", "resumed after a restart: "+r.reach())
	return r, nil
}

func (s *saved) check() error {
	switch s.State {
	case Baking, Promoted, Halted, Reverted, Replaced:
	default:
		return fmt.Errorf("unknown state %q", s.State)
	}
	switch {
	case s.Version == "":
		return errors.New("it names no version")
	case s.Stage < 0 || s.Stage >= len(s.Stages):
		return fmt.Errorf("stage %d of %d", s.Stage, len(s.Stages))
	case len(s.Usual) > maxSaved:
		return fmt.Errorf("%d workloads are more than %d", len(s.Usual), maxSaved)
	}
	return nil
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}
