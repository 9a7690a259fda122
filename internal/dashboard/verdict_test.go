package dashboard

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/watch"
	"github.com/hourthree/hourthree/internal/workload"
)

// TestVerdict: the first sentence names who it is by the numbers, and no one for want
// of them. A caller whose requests fail at a target is no source.
func TestVerdict(t *testing.T) {
	well := admin.State{
		Limit: 100, Models: []admin.ModelState{{Name: "m", Targets: []string{"a", "b", "c"}}}, Workloads: []workload.State{{Name: "w", Inbound: 9}},
		Targets: []route.State{{Name: "a", Phase: "closed", Success: 1}, {Name: "b", Phase: "closed", Success: 1}, {Name: "c", Phase: "closed", Success: 1}},
	}
	with := func(f func(*admin.State)) admin.State {
		s := well
		s.Targets = append([]route.State{}, well.Targets...)
		s.Workloads = append([]workload.State{}, well.Workloads...)
		f(&s)
		return s
	}
	open := with(func(s *admin.State) { s.Targets[0].Phase, s.Targets[1].Phase = "open", "half-open" })
	window := func(good, refused int64) *history.Window {
		return &history.Window{Counts: history.Sums{Offered: 100, Goodput: good, Refused: refused}}
	}
	caused := func(who detect.Kind, name string, score, excess float64) watch.Report {
		o := detect.Outage{ID: "O-1", State: detect.Degraded, Failing: 0.4, Scope: []detect.Subject{{Kind: detect.Model, Name: "m"}}, Suspects: []detect.Suspect{{Subject: detect.Subject{Kind: who, Name: name}, Score: score, Excess: excess, Amplification: 8, Inside: 0.9}}}
		return watch.Report{Outages: []watch.Outage{{Outage: o}}}
	}
	ended := caused(detect.Workload, "suite", 0.9, 0.9)
	now := time.Now()
	ended.Outages[0].Ended = &now
	unsure := caused(detect.Workload, "suite", 0.9, 0.9)
	unsure.Outages[0].State, unsure.Outages[0].Words = detect.Unverified, "unverified: traffic at 69 % of onset"
	for name, c := range map[string]struct {
		state   admin.State
		noticed watch.Report
		last    *history.Window
		head    string
		text    string
	}{
		"calm":            {well, ended, window(99, 0), "Nothing is wrong", "99 % of what came in within the last minute was answered as it should be."},
		"no request yet":  {with(func(s *admin.State) { s.Workloads = nil }), watch.Report{}, nil, "Nothing is known", "no request has come in since the router started."},
		"targets":         {open, watch.Report{}, nil, "Them", "2 of 3 targets of m fail; callers are served from c."},
		"failing, closed": {with(func(s *admin.State) { s.Targets[0].Success, s.Targets[0].Breaker = 0.3, breaker.Snapshot{Failed: 20} }), watch.Report{}, nil, "Them", "1 of 3 targets of m fail; callers are served from b, c."},
		"few verdicts":    {with(func(s *admin.State) { s.Targets[0].Success, s.Targets[0].Breaker = 0.3, breaker.Snapshot{Failed: 3} }), watch.Report{}, nil, "Nothing is wrong", "Every target takes requests."},
		"held back":       {with(func(s *admin.State) { s.Targets[0].Drained, s.Targets[0].Steered = true, route.SteeredDrained }), watch.Report{}, nil, "Us", "1 of 3 targets of m are held back by an operator."},
		"memory":          {with(func(s *admin.State) { s.Reserved = 90 }), watch.Report{}, window(80, 12), "Us", "the router refuses 12 % of what comes in for want of memory: 90 % of it is taken."},
		"limits":          {well, watch.Report{}, window(80, 12), "Us", "the router refuses 12 % of what comes in: callers are beyond their limits, or repeat too much."},
		"few refused":     {well, watch.Report{}, window(99, 1), "Nothing is wrong", "99 % of what came in within the last minute was answered as it should be."},
		"a caller":        {open, caused(detect.Workload, "suite", 0.9, 0.88), nil, "A caller", "suite brings in 88 % of the excess, 8.0 requests for each distinct one (O-1, suspect workload suite, score 0.90)."},
		"who only fails":  {open, caused(detect.Workload, "suite", 0.9, 0), nil, "Them", "2 of 3 targets of m fail; callers are served from c (O-1, suspect workload suite, score 0.90)."},
		"a target":        {well, caused(detect.Target, "a", 0.8, 0), nil, "Them", "90 % of the calls at target a fail, elsewhere 0 % (O-1, suspect target a, score 0.80)."},
		"nobody yet":      {well, caused(detect.Workload, "suite", 0.3, 0.9), nil, "Not known yet", "40 % of the requests of model m fail (O-1), and nobody stands out as the source."},
		"unverified":      {well, unsure, nil, "Not shown to be over", "O-1 is unverified: traffic at 69 % of onset."},
	} {
		v := judge(c.state, c.noticed, c.last)
		if v.Head != c.head || v.Text != c.text {
			t.Errorf("%s: %s: %s", name, v.Head, v.Text)
		}
		if name == "who only fails" && len(v.Also) > 0 {
			t.Errorf("%s: the same is said twice: %q", name, v.Also)
		}
	}
}
