package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/watch"
	"github.com/hourthree/hourthree/internal/workload"
)

// size is how much there is to show; suffix ends every name.
type size struct {
	targets, workloads int
	suffix             string
}

// during is a router in the middle of an outage, with everything that it can have.
func during(z size) Options {
	return Options{
		State: z.state, Limits: z.limits, Outages: z.outages, Actions: z.actions, Audit: z.audit, Rollout: z.rollout,
		History: z.history, Totals: totals, Objectives: z.objectives, Incidents: true,
	}
}

// empty is a router that has just started and has all sources.
func empty() Options {
	return Options{
		State:   func(now time.Time) admin.State { return admin.State{At: now} },
		Limits:  func(time.Time) admin.Limits { return admin.Limits{} },
		Outages: func(now time.Time) watch.Report { return watch.Report{At: now} },
		Actions: func(time.Time) admin.Actions { return admin.Actions{} },
		Audit:   func(int64, int) ([]steer.Entry, error) { return nil, nil },
		Rollout: func(time.Time) (rollout.Status, bool) { return rollout.Status{}, false },
		History: func(time.Time, history.Query) (history.Answer, error) { return history.Answer{}, nil },
		Totals:  func(now time.Time) history.Totals { return history.Totals{At: now} },
	}
}

func (z size) state(now time.Time) admin.State {
	s := admin.State{At: now, Version: "v1", Config: "hourthree.yaml", ConfigID: "c-9f" + z.suffix, Loaded: now.Add(-time.Hour), InFlight: 41, Queued: 3, Reserved: 300 << 20, Limit: 512 << 20,
		Changes: []admin.Change{{At: now, Who: "rule" + z.suffix, What: "quarantine", Subject: "suite" + z.suffix, Why: "repeats" + z.suffix}}}
	m := admin.ModelState{Name: "gpt-5" + z.suffix, Degraded: "message"}
	for i := range z.targets {
		t := route.State{
			Name: fmt.Sprintf("azure-%d/gpt-5%s", i, z.suffix), Provider: "azure", Region: "australiaeast", Domain: fmt.Sprintf("cloud-%d%s", i/4, z.suffix), Phase: "closed",
			Breaker: breaker.Snapshot{Share: 1, OK: 40 + i%50, Failed: i % 3}, Healthy: true, Success: 0.97, InFlight: i % 17, Limit: 20, Latency: 120 * time.Millisecond, FirstContent: 380 * time.Millisecond, Budget: budget.Snapshot{Tokens: 4, Ratio: 0.1},
		}
		switch i % 7 {
		case 1:
			until, requests, tokens := now.Add(25*time.Second), int64(12), int64(48_000)
			t.Phase, t.PhaseNumber, t.Success = "open", 3, 0.02
			t.Breaker = breaker.Snapshot{Failed: 44, OK: 1, OpenUntil: &until, Trips: 3, Reason: "44 of 45 failed" + z.suffix}
			t.CoolUntil, t.CoolKind, t.Load.QuotaRequests, t.Load.QuotaTokens = &until, "capacity", &requests, &tokens
		case 2:
			t.Phase, t.PhaseNumber, t.Breaker.Share, t.Breaker.Proofs = "ramp", 1, 0.35, 3
		case 4:
			t.Drained, t.Steered = true, route.SteeredDrained
		}
		s.Targets = append(s.Targets, t)
		m.Targets = append(m.Targets, t.Name)
	}
	m.Targets = m.Targets[:min(len(m.Targets), 3)]
	s.Models = []admin.ModelState{m}
	for i := range z.workloads {
		w := workload.State{Name: fmt.Sprintf("team-%d%s", i, z.suffix), Priority: "interactive", Inbound: int64(1000 * i), Repeats: int64(i), Attempts: int64(1010 * i), InFlight: int64(i % 9), Memory: int64(i) << 16, In: 1.02, Out: 1.01, Lane: workload.Placement{Lane: "normal"}}
		if i == 0 {
			w.Name, w.In, w.Refused, w.Repeats = "suite"+z.suffix, 7.4, 48_211, 51_000
			w.Lane = workload.Placement{Lane: workload.Quarantine, Share: 0.05, By: "rule" + z.suffix, Why: "brings in 7.4 requests for each distinct one" + z.suffix}
		}
		s.Workloads = append(s.Workloads, w)
	}
	return s
}

func (z size) limits(time.Time) admin.Limits {
	l := admin.Limits{Without: []string{"team-1" + z.suffix}}
	left := int64(7)
	spent := 1.5
	for i := range z.workloads {
		l.Bounds = append(l.Bounds, admin.Bound{Level: "workload", Name: fmt.Sprintf("team-%d%s", i, z.suffix), RPM: 70, TPM: 90_000, Concurrency: 8, USDPerDay: 5, Use: &admin.Use{InFlight: 3, RequestsLeft: &left, USDSpent: &spent}})
		l.Rules = append(l.Rules, admin.Rule{Workload: fmt.Sprintf("team-%d%s", i, z.suffix), Priority: "interactive", RepeatRatio: 0.1, RepeatPerSecond: 1, MemoryShare: 0.25})
	}
	l.Bounds = append(l.Bounds, admin.Bound{Level: "key", Name: "12345678", Workload: "team-1" + z.suffix, NoLimit: true})
	return l
}

func (z size) outages(now time.Time) watch.Report {
	model := detect.Subject{Kind: detect.Model, Name: "gpt-5" + z.suffix}
	onset, over := now.Add(-12*time.Minute), now.Add(-3*time.Hour)
	suite := detect.Suspect{Subject: detect.Subject{Kind: detect.Workload, Name: "suite" + z.suffix}, Score: 0.91, Share: 0.7, Inside: 0.66, Outside: 0.04, Excess: 0.88, Amplification: 7.4, Text: "brings in 88 % of the excess" + z.suffix}
	open := detect.Outage{
		ID: "O-7", State: detect.Degraded, Words: "degraded: 42 % of its requests fail", Onset: onset, Noticed: onset.Add(31 * time.Second), Changed: onset, Waves: 2, Failing: 0.42, Traffic: 0.69,
		Scope: []detect.Subject{model, {Kind: detect.Domain, Name: "cloud-0" + z.suffix}},
		Suspects: []detect.Suspect{suite,
			{Subject: detect.Subject{Kind: detect.Target, Name: "azure-1/gpt-5" + z.suffix}, Score: 0.63, Share: 0.4, Inside: 0.9, Outside: 0.2, Text: "fails more than the others"}},
		Changes:  []detect.Suspect{{Subject: detect.Subject{Kind: detect.Cause, Name: "upstream rollout" + z.suffix}, Score: 0.84, Matched: 2, Chance: 0.003, Text: "came 40 s before both onsets"}},
		Load:     []detect.Load{{Workload: "suite" + z.suffix, Model: "gpt-5", Onset: 40, Now: 27.6, Dominant: true}, {Workload: "team-1", Model: "gpt-5", Onset: 3, Now: 3.1}},
		Findings: []*detect.Finding{{Detector: detect.Drop, Subject: model, Since: onset, Found: onset, Text: "42.0 % of 380 fail" + z.suffix}},
		Actions:  []detect.Action{{Change: detect.Change{At: now, What: "quarantine", Scope: "suite" + z.suffix, By: "rule"}, Effect: detect.NotShown}},
		Timeline: []detect.Moment{{At: onset, What: "a drop" + z.suffix}, {At: now, What: "wave 2"}},
	}
	unsure := open
	unsure.ID, unsure.State, unsure.Words = "O-6", detect.Unverified, "unverified: traffic at 69 % of onset"
	old := detect.Outage{ID: "O-5", State: detect.Verified, Words: "verified", Onset: over, Ended: &onset, Waves: 1, Scope: []detect.Subject{model}}
	alike := []watch.Similar{{ID: "HT-0001", Title: "Internal retry storm", Alike: []string{"retry-amplification"}, Drills: []string{"azure-2026-05-29"}}}
	return watch.Report{At: now, Open: 2, Outages: []watch.Outage{{Outage: open, Similar: alike}, {Outage: unsure}, {Outage: old}}}
}

func (z size) actions(now time.Time) admin.Actions {
	share, ended := 0.05, now.Add(-time.Minute)
	return admin.Actions{InForce: []steer.Action{
		{ID: "A-7", Order: steer.Order{Kind: steer.Drain, Subject: "azure-4/gpt-5" + z.suffix, For: "30m", Why: "provider's notice" + z.suffix}, By: "kim" + z.suffix, At: now, Until: now.Add(29 * time.Minute), Undo: `hourthree undo A-7 --why "…"`},
		{ID: "A-6", Order: steer.Order{Kind: steer.Quarantine, Subject: "suite" + z.suffix, Share: &share, Why: "storm"}, By: "kim", At: now, Until: now.Add(3 * time.Hour), Undo: `hourthree undo A-6 --why "…"`},
	}, Ended: []steer.Action{
		{ID: "A-5", Order: steer.Order{Kind: steer.Pin, Subject: "gpt-5", Target: "azure-1/gpt-5", Why: "test"}, By: "kim", At: now.Add(-time.Hour), Until: now, Ended: &ended, EndedBy: "expiry", EndedWhy: "its time was over" + z.suffix},
	}}
}

func (z size) audit(_ int64, most int) ([]steer.Entry, error) {
	var out []steer.Entry
	for i := range min(most, 12) {
		out = append(out, steer.Entry{ID: int64(40 - i), At: time.Now(), Who: "kim" + z.suffix, Role: "operate", What: "drain", Subject: "azure-4/gpt-5" + z.suffix, Why: "provider's notice" + z.suffix, Action: "A-7"})
	}
	return out, nil
}

func (z size) rollout(now time.Time) (rollout.Status, bool) {
	next := now.Add(4 * time.Minute)
	return rollout.Status{
		Version: "c-a1" + z.suffix, Before: "c-9f", State: rollout.Baking, Stage: 1, Stages: []rollout.Stage{{Share: 0.01}, {Share: 0.1, Regions: []string{"westeurope" + z.suffix}}, {Share: 0.5}, {Share: 1}},
		Exposure: 0.094, Exposed: []string{"team-1" + z.suffix}, Split: "team-2" + z.suffix, Began: now.Add(-20 * time.Minute), Since: now.Add(-6 * time.Minute), Next: &next, Verdict: rollout.Insufficient, Why: "213 of 500 requests were seen" + z.suffix,
		Measures: []rollout.Measure{
			{Name: "success", Candidate: 0.993, Control: 0.995, N: 213, M: 2041, Verdict: rollout.Pass, Text: "within 0.5 %"},
			{Name: "amplification_out", Candidate: 1.31, Control: 1.02, N: 213, M: 2041, Verdict: rollout.Fail, Text: "more calls for each request" + z.suffix},
			{Name: "first_content", Candidate: 1.04, Control: 1, N: 213, M: 2041, Verdict: rollout.Insufficient, Text: "too few"},
		},
		Diff: []string{"defaults.retries.ratio: 0.1 -> 0.5" + z.suffix}, Timeline: []rollout.Moment{{At: now, What: "stage 2 begins", By: "kim" + z.suffix}},
	}, true
}

func (z size) objectives() []detect.Budget {
	return []detect.Budget{{
		Name: "availability" + z.suffix, Model: "gpt-5" + z.suffix, Objective: 0.995, Good: 960, Bad: 40, Window: "720h", Left: 0.41,
		Burns: []detect.Burn{{Rate: 8}}, Burning: "page",
	}}
}

func (z size) history(now time.Time, q history.Query) (history.Answer, error) {
	a := history.Answer{Step: int64(q.Step / time.Second)}
	if q.Step == 0 {
		a.Step = 10
	}
	for at := q.From.Unix(); at < q.To.Unix(); at += a.Step {
		a.At = append(a.At, at)
	}
	for i, name := range q.Series {
		s := history.Series{Name: name, Subject: q.Subject, Unit: "per_second"}
		switch name {
		case "in_flight", "queued":
			s.Unit = "count"
		case "memory":
			s.Unit = "bytes"
		case "amplification_in", "amplification_out":
			s.Unit = "ratio"
		case "first_content_p50", "first_content_p95":
			s.Unit = "seconds"
		}
		for j := range a.At {
			if j < len(a.At)/5 { // nothing was there yet
				s.Values = append(s.Values, nil)
				continue
			}
			v := 40 + 10*math.Sin(float64(j)/20)
			if i > 2 {
				v = math.Abs(3 * math.Sin(float64(j+i*9)/15))
			}
			if name == "goodput" && j > 3*len(a.At)/4 {
				v -= 17
			}
			if name == "memory" {
				v *= 1 << 22
			}
			if strings.HasPrefix(name, "first_content") || s.Unit == "ratio" {
				v /= 100
			}
			s.Values = append(s.Values, &v)
		}
		a.Series = append(a.Series, s)
	}
	return a, nil
}

func totals(now time.Time) history.Totals {
	t := history.Totals{At: now}
	for i, name := range []string{"1m", "1h", "24h"} {
		n := []int64{60, 3600, 86400}[i]
		w := history.Window{Name: name, Seconds: n, Known: 1, Counts: history.Sums{Offered: 40 * n, Goodput: 31 * n, Attempts: 44 * n, Refused: 5 * n, Degraded: n, Failed: 3 * n}}
		if !slices.Contains([]string{"24h"}, name) {
			w.PerSecond = &history.Rates{Offered: 40, Goodput: 31, Attempts: 44, Refused: 5, Degraded: 1, Failed: 3}
		}
		t.Windows = append(t.Windows, w)
	}
	return t
}
