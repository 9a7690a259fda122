package report

import (
	"fmt"
	"math"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

const (
	fixtureSteps = 300
	fixtureStep  = 2 * time.Second
)

// model is a contender of the fixture: how hard it retries and what it saves.
type model struct {
	name, about string
	retries     float64 // calls for one request while a target is down
	saved       float64 // share that is answered all the same
	crashes     bool
	breaker     bool
}

var models = []model{
	{"hourthree", "as shipped, defaults of this version", 1.1, 0.93, false, true},
	{"three retries", "SDK defaults: 3 attempts, 0.5 s to 8 s, jitter", 3.4, 0.35, true, false},
	{"fixed-wait retry", "5 attempts, 1 s apart, no jitter", 9.5, 0.12, true, false},
	{"breaker only", "opens at 50 % of 20 calls, closes after 30 s", 1.8, 0.6, false, true},
}

func fixture() *drill.Result {
	r := &drill.Result{
		Scenario: "retry-storm", Title: "A retry storm keeps a recovered provider down",
		Incident: "2026-03-14-example", Seed: 42,
		Length: fixtureSteps * fixtureStep, Compressed: 30,
		Start: time.Date(2026, 3, 14, 15, 40, 0, 0, time.UTC),
		Marks: []drill.Mark{
			{At: 60 * time.Second, Text: "first errors reported"},
			{At: 90 * time.Second, Text: "provider: \"investigating\""},
			{At: 104 * time.Second, Text: "half of the capacity lost"},
			{At: 240 * time.Second, Text: "fix deployed"},
			{At: 252 * time.Second, Text: "recovery announced, clients still time out"},
			{At: 420 * time.Second, Text: "traffic normal"},
			{At: 590 * time.Second, Text: "incident closed"},
		},
		Facts: []string{"Errors from 16:10 to 17:40 UTC (status page).", "The fix was out at 17:40; load stayed above normal for 90 minutes."},
		Ours:  []string{"Clients retry as the SDKs do by default.", "Capacity is 1.4 times the usual load.", "One virtual second stands for 30 seconds of the incident."},
	}
	for i, m := range models {
		r.Runs = append(r.Runs, m.run(i))
	}
	return r
}

// stress is how bad the outage is at a step, 0 to 1.
func stress(i int, long bool) float64 {
	at, end := float64(i), 125.0
	if long {
		end = 205
	}
	return math.Max(0, math.Min(1, (at-30)/15)) * math.Max(0, math.Min(1, (end-at)/25))
}

func (m model) run(n int) drill.Run {
	run := drill.Run{Contender: m.name, About: m.about, Step: fixtureStep, Took: time.Second}
	for k, name := range []string{"chat", "batch embeddings"} {
		s := m.series(name, float64(90-50*k), n)
		run.Workloads = append(run.Workloads, s)
		add(&run.Totals, s.Totals)
	}
	for k, name := range []string{"primary/eu-west", "secondary/us-east"} {
		run.Targets = append(run.Targets, m.target(name, run.Workloads, k))
	}
	for k := range 2 {
		run.Gateways = append(run.Gateways, m.gateway(k, run.Workloads))
	}
	run.Criteria = m.criteria(&run)
	return run
}

// gateway is an instance whose memory fills with the calls that wait.
func (m model) gateway(k int, loads []drill.Series) drill.TargetRun {
	t := drill.TargetRun{Name: fmt.Sprintf("gateway-%d", k+1)}
	for i := range fixtureSteps {
		calls := 0
		for _, s := range loads {
			calls += s.Steps[i].Inbound / 2
		}
		st := drill.TargetStep{Calls: calls, OK: calls, InFlight: calls * 2}
		st.Memory = math.Min(1.02, float64(calls)/900*(1+stress(i, m.crashes)*m.retries))
		st.Down = st.Memory > 1 && i%9 < 3
		if st.Down && !t.Steps[i-1].Down {
			t.Crashes++
		}
		t.Steps = append(t.Steps, st)
	}
	return t
}

func add(to *drill.Counts, c drill.Counts) {
	to.Fresh += c.Fresh
	to.Good += c.Good
	to.Degraded += c.Degraded
	to.Refused += c.Refused
	to.Late += c.Late
	to.Inbound += c.Inbound
	to.Upstream += c.Upstream
	to.Wrong += c.Wrong
	for status, n := range c.Status {
		if to.Status == nil {
			to.Status = map[int]int{}
		}
		to.Status[status] += n
	}
}

func (m model) series(name string, rate float64, n int) drill.Series {
	s := drill.Series{Name: name}
	for i := range fixtureSteps {
		bad := stress(i, m.crashes)
		wave := 1 + 0.12*math.Sin(float64(i)/23+float64(n)) + 0.07*math.Sin(float64(i*i%97))
		c := drill.Counts{Fresh: int(rate * wave)}
		c.Good = int(float64(c.Fresh) * (1 - bad*(1-m.saved)))
		c.Degraded = int(float64(c.Good) * bad * 0.1)
		c.Late = (c.Fresh - c.Good) / 3
		c.Refused = c.Fresh - c.Good - c.Late
		c.Wrong = c.Refused / 10
		c.Refused -= c.Wrong
		c.Status = map[int]int{200: c.Good + c.Wrong, 429: c.Refused / 4, 503: c.Refused - c.Refused/4}
		c.Upstream = int(float64(c.Fresh) * (1 + bad*(m.retries-1)))
		c.Inbound = int(float64(c.Fresh) * (1 + bad*(m.retries-1)/2))
		s.Steps = append(s.Steps, c)
		add(&s.Totals, c)
		s.P50 = append(s.P50, 300+bad*900)
		s.P99 = append(s.P99, (1200+bad*8000)*wave)
	}
	return s
}

func (m model) target(name string, loads []drill.Series, k int) drill.TargetRun {
	t := drill.TargetRun{Name: name}
	share := 0.7 - 0.4*float64(k)
	for i := range fixtureSteps {
		bad := stress(i, m.crashes) * share
		calls := 0
		for _, s := range loads {
			calls += int(share * float64(s.Steps[i].Upstream))
		}
		st := drill.TargetStep{Calls: calls, Failed: int(float64(calls) * bad / 2), Refused: int(float64(calls) * bad / 3)}
		st.OK = calls - st.Failed - st.Refused
		st.Load = float64(calls) / (140 * share) * (0.7 + bad)
		st.InFlight = int(float64(calls) * (0.3 + 2*bad))
		if m.breaker && i > 48 && i < 140 && i%15 < 3 {
			st.Probing = 1 + i%3*k
		}
		st.Down = m.crashes && k == 0 && i > 45 && i < 180 && i%40 < 9
		if st.Down && !t.Steps[i-1].Down {
			t.Crashes++
		}
		t.Steps = append(t.Steps, st)
	}
	if m.breaker {
		t.Moves = moves(k)
	}
	return t
}

func moves(k int) []drill.Move {
	sec := func(n int) time.Duration { return time.Duration(n+k*7) * time.Second }
	out := []drill.Move{{At: sec(70), To: "open", Reason: "12 of 20 calls failed"}}
	for i := range 4 * (1 - k) {
		out = append(out, drill.Move{At: sec(100 + 30*i), To: "half-open"}, drill.Move{At: sec(104 + 30*i), To: "open", Reason: "probe failed"})
	}
	return append(out, drill.Move{At: sec(236), To: "half-open"}, drill.Move{At: sec(242), To: "ramp"}, drill.Move{At: sec(290), To: "closed"})
}

func (m model) criteria(r *drill.Run) []drill.Judgement {
	good := float64(r.Totals.Good) / float64(r.Totals.Fresh)
	up := float64(r.Totals.Upstream) / float64(r.Totals.Fresh)
	out := []drill.Judgement{
		{Name: "most requests are answered", Expr: "good/fresh >= 0.95", Met: good >= 0.95, Value: fmt.Sprintf("%.3f", good)},
		{Name: "no retry storm", Expr: "upstream/fresh <= 1.2", Met: up <= 1.2, Value: fmt.Sprintf("%.2f", up), Fails: []string{"three retries", "hourthree"}},
		{Name: "no target is crashed", Expr: "crashes == 0", Met: !m.crashes, Value: fmt.Sprint(crashes(r))},
		{Name: "batch work is kept for later", Expr: "deferred(batch) > 0", Needs: "deferral"},
	}
	if m.name == "breaker only" {
		out[3] = drill.Judgement{Name: out[3].Name, Expr: out[3].Expr, Err: "no such metric: deferred"}
	}
	return out
}
