package dashboard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
	two := with(func(s *admin.State) {
		s.Targets[0].Phase, s.Targets[1].Phase = "open", "half-open"
		s.Models = append([]admin.ModelState{{Name: "n", Targets: []string{"d", "e"}}}, s.Models...)
		s.Targets = append(s.Targets, route.State{Name: "d", Domain: "east", Phase: "open"}, route.State{Name: "e", Phase: "closed", Success: 1})
	})
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
		"another model":   {two, caused(detect.Domain, "east", 0.7, 0), nil, "Them", "1 of 2 targets of n fail; callers are served from e (O-1, suspect domain east, score 0.70)."},
		"the other one":   {two, caused(detect.Model, "m", 0.7, 0), nil, "Them", "2 of 3 targets of m fail; callers are served from c (O-1, suspect model m, score 0.70)."},
		"elsewhere":       {two, caused(detect.Target, "c", 0.7, 0), nil, "Them", "90 % of the calls at target c fail, elsewhere 0 % (O-1, suspect target c, score 0.70)."},
		"one held": {with(func(s *admin.State) {
			s.Targets[0].Phase, s.Targets[1].Drained, s.Targets[1].Steered = "open", true, route.SteeredDrained
		}), watch.Report{}, nil, "Them", "1 of 3 targets of m fail, 1 held back by an operator; callers are served from c."},
		"fixed message": {with(func(s *admin.State) {
			s.Models = []admin.ModelState{{Name: "m", Targets: []string{"a"}, Degraded: "message"}}
			s.Targets[0].Phase = "open"
		}), watch.Report{}, nil, "Them", "1 of 1 targets of m fail; callers get its fixed message."},
		"held back":      {with(func(s *admin.State) { s.Targets[0].Drained, s.Targets[0].Steered = true, route.SteeredDrained }), watch.Report{}, nil, "Us", "1 of 3 targets of m are held back by an operator."},
		"memory":         {with(func(s *admin.State) { s.Reserved = 90 }), watch.Report{}, window(80, 12), "Us", "the router refuses 12 % of what comes in for want of memory: 90 % of it is taken."},
		"limits":         {well, watch.Report{}, window(80, 12), "Us", "the router refuses 12 % of what comes in: callers are beyond their limits, or repeat too much."},
		"few refused":    {well, watch.Report{}, window(99, 1), "Nothing is wrong", "99 % of what came in within the last minute was answered as it should be."},
		"a caller":       {open, caused(detect.Workload, "suite", 0.9, 0.88), nil, "A caller", "suite brings in 88 % of the excess, 8.0 requests for each distinct one (O-1, suspect workload suite, score 0.90)."},
		"who only fails": {open, caused(detect.Workload, "suite", 0.9, 0), nil, "Them", "2 of 3 targets of m fail; callers are served from c (O-1, suspect workload suite, score 0.90)."},
		"a target":       {well, caused(detect.Target, "a", 0.8, 0), nil, "Them", "90 % of the calls at target a fail, elsewhere 0 % (O-1, suspect target a, score 0.80)."},
		"nobody yet":     {well, caused(detect.Workload, "suite", 0.3, 0.9), nil, "Not known yet", "40 % of the requests of model m fail (O-1), and nobody stands out as the source."},
		"unverified":     {well, unsure, nil, "Not shown to be over", "O-1 is unverified: traffic at 69 % of onset."},
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

// TestVerdictServed: programs get the sentence that the page has.
func TestVerdictServed(t *testing.T) {
	h := Handler(during(size{targets: 3, workloads: 2}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/verdict", nil))
	var v verdict
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK || v.Head == "" || v.Text == "" {
		t.Errorf("%d %v %s", w.Code, err, w.Body)
	}
}

// TestUsed: what is free at once is not said to be what is left of a minute, and where
// nobody counts there is no zero.
func TestUsed(t *testing.T) {
	left := int64(599)
	for want, b := range map[string]admin.Bound{
		"6\u202f000/min, 599 free now": {RPM: 6000, Use: &admin.Use{RequestsLeft: &left}},
		"6\u202f000/min":               {RPM: 6000},
	} {
		if got := used(b, "requests"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := used(admin.Bound{NoLimit: true}, "slots"); got != "" {
		t.Errorf("nobody counts, and it says %q", got)
	}
}
