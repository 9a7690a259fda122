package drill

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/config"
)

// scenario reads one for a test.
func scenario(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// played plays one for a test.
func played(t *testing.T, s *Scenario, o Options) *Result {
	t.Helper()
	r, err := Play(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const outage = `
name: outage
title: One of two
length: 2m
workloads: [{name: w, rate: [{at: 0s, rps: 10}], rpm: 1200}]
targets:
  - {name: a, domain: east, capacity: 50, queue: 1s, latency: 200ms, rpm: 3000}
  - {name: b, domain: west, capacity: 40, queue: 1s, latency: 300ms}
faults: [{target: a, at: 30s, until: 90s, mode: "503", share: 0.8}, {target: b, at: 40s, until: 50s, mode: slow, factor: 3}]
criteria:
  - {name: answered, expr: 'success("w", 0, 120) >= 0.99', fails: [naive]}
  - {name: a is left, expr: 'left_after("a", 30) <= 10'}
  - {name: b bears it, expr: 'refused("b", 0, 120) == 0'}
`

// TestFit: a user's targets suffer what the scenario's do, together where they
// share a failure domain, and what cannot be asked of them is said.
func TestFit(t *testing.T) {
	text := `
providers:
  swe: {type: azure, base_url: "https://a.openai.azure.com", api_key: x, region: swedencentral}
  swe2: {type: azure, base_url: "https://b.openai.azure.com", api_key: y, region: swedencentral}
models:
  gpt: {targets: [{provider: swe2, model: Prod_2, order: 2}, {provider: swe, model: prod, order: 1, limits: {rpm: 600, concurrency: 7}}]}
workloads: {team: {keys: [k-of-the-team], limits: {rpm: 90}, priority: batch}}
`
	c, ps := config.Parse("mine.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if ps.Fatal() {
		t.Fatal(ps)
	}
	m, err := NewMine(c, "")
	if err != nil {
		t.Fatal(err)
	}
	s := scenario(t, outage)
	out := fitted(t, m, s)
	if len(out.Targets) != 2 || out.Targets[0].Name != "swe.prod" || out.Targets[1].Name != "swe2.prod-2" || out.Targets[0].Domain != "azure-swedencentral" {
		t.Errorf("targets: %+v", out.Targets)
	}
	if a := out.Targets[0]; a.RPM != 600 || a.Concurrency != 7 || a.Capacity != 50 {
		t.Errorf("the first target: %+v", a)
	}
	if len(out.Faults) != 2 || out.Faults[0].Target != "swe.prod" || out.Faults[1].Target != "swe2.prod-2" || out.Faults[1].Mode != "503" {
		t.Errorf("one domain, and the faults are %+v", out.Faults)
	}
	if w := out.Workloads[0]; w.RPM != 90 || w.Priority != "batch" || w.Rate[0].RPS != 10 {
		t.Errorf("the workload: %+v", w)
	}
	var exprs []string
	for _, c := range out.Criteria {
		exprs = append(exprs, c.Expr)
	}
	if got := strings.Join(exprs, "; "); got != `success("w", 0, 120) >= 0.99; left_after("swe.prod", 30) <= 10; refused("swe2.prod-2", 0, 120) == 0` {
		t.Errorf("criteria: %s", got)
	}
	if said := strings.Join(out.Assumptions, " "); !strings.Contains(said, "swe2.prod-2 are one failure domain") || !strings.Contains(said, "limits of the workload team") {
		t.Errorf("assumed: %s", said)
	}
	if s.Targets[0].Name != "a" || s.Faults[0].Target != "a" || s.Workloads[0].RPM != 1200 {
		t.Error("the scenario itself was changed")
	}

	one := *c
	one.Models = map[string]config.Model{"gpt": {Targets: c.Models["gpt"].Targets[:1]}}
	m, _ = NewMine(&one, "gpt")
	out = fitted(t, m, s)
	if len(out.Targets) != 1 || len(out.Criteria) != 2 || !strings.Contains(strings.Join(out.Assumptions, " "), "Left out, for there is no b") {
		t.Errorf("with one target: %+v, %v", out.Criteria, out.Assumptions)
	}
	if _, err := NewMine(c, "nope"); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Error(err)
	}
}

// mine reads a user's configuration for a test.
func mine(t *testing.T, text string) *Mine {
	t.Helper()
	c, ps := config.Parse("mine.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if ps.Fatal() {
		t.Fatal(ps)
	}
	m, err := NewMine(c, "m")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fitted(t *testing.T, m *Mine, s *Scenario) *Scenario {
	t.Helper()
	out, err := m.Fit(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamesDoNotCollide: models whose names differ by what a scenario's may not
// have are two targets, also where the name is another of the scenario's.
func TestNamesDoNotCollide(t *testing.T) {
	m := mine(t, `
providers: {w: {type: openai, api_key: x}}
models: {m: {targets: [{provider: w, model: gpt_5}, {provider: w, model: gpt-5}, {provider: w, model: "`+strings.Repeat("long", 30)+`"}, {provider: w, model: gpt@5}]}}
`)
	s := scenario(t, strings.NewReplacer("name: b,", "name: w.gpt-5,", "target: b,", "target: w.gpt-5,", `"b"`, `"w.gpt-5"`).Replace(outage))
	var names []string
	out := fitted(t, m, s)
	for _, t := range out.Targets {
		names = append(names, t.Name)
	}
	if got := strings.Join(names[:2], " ") + " " + names[3]; got != "w.gpt-5 w.gpt-5-2 w.gpt-5-3" {
		t.Error(got)
	}
	if a, b := out.Criteria[1].Expr, out.Criteria[2].Expr; a != `left_after("w.gpt-5", 30) <= 10` || b != `refused("w.gpt-5-2", 0, 120) == 0` {
		t.Error(a, b)
	}
	if _, err := Play(out, Options{Contenders: []string{"router"}, Seed: 1, Config: m}); err != nil {
		t.Error(err)
	}
}

// TestFitRenames: the names of targets in a criterion, however they are quoted,
// and nothing that only looks like one.
func TestFitRenames(t *testing.T) {
	m := mine(t, "providers: {p: {type: openai, api_key: x}}\nmodels: {m: {targets: [{provider: p}]}}\n")
	s := scenario(t, outage)
	s.Criteria = []Criterion{
		{Name: "é", Expr: "left_after('a', 30) <= 10 && calls(`a`, 0, 60) > 0 && calls(\"\\x61\", 0, 60) > 0 /* é 'a' */ && success('w', 0, 60) > 0"},
		{Name: "gone", Expr: "calls('b', 0, 60) > 0"},
	}
	out := fitted(t, m, s)
	const want = `left_after("p", 30) <= 10 && calls("p", 0, 60) > 0 && calls("p", 0, 60) > 0 /* é 'a' */ && success('w', 0, 60) > 0`
	if len(out.Criteria) != 1 || out.Criteria[0].Expr != want {
		t.Errorf("%+v", out.Criteria)
	}
}

// TestFitRefuses: what cannot be asked of the user's targets is an error.
func TestFitRefuses(t *testing.T) {
	s := scenario(t, outage)
	s.Criteria = s.Criteria[2:]
	if _, err := mine(t, "providers: {p: {type: openai, api_key: x}}\nmodels: {m: {targets: [{provider: p}]}}\n").Fit(s); err == nil || !strings.Contains(err.Error(), "criteria") {
		t.Error(err)
	}
	s.Criteria = []Criterion{{Name: "c", Expr: "no"}}
	if _, err := mine(t, "providers: {p: {type: openai, api_key: x}}\nmodels: {m: {targets: [{provider: p}]}}\n").Fit(s); err == nil || !strings.Contains(err.Error(), "the model m") {
		t.Error(err)
	}
}

// TestFitTakesEveryDrill: with one target and with many.
func TestFitTakesEveryDrill(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{"{provider: q, model: a_b}", "{provider: p, model: a_b}", "{provider: q, model: a-b}"}
	for n := 1; n <= len(targets); n++ {
		m := mine(t, `
providers: {p: {type: openai, api_key: x}, q: {type: openai, api_key: y}}
models:
  m: {targets: [`+strings.Join(targets[:n], ", ")+`], degraded: {model: s}}
  s: {targets: [{provider: q, model: small}, {provider: p, model: small}]}
`)
		for _, s := range all {
			out, err := m.Fit(s)
			if err != nil {
				t.Errorf("%d targets: %v", n, err)
			} else if err := out.Short().check(); err != nil {
				t.Errorf("%d targets, short: %v", n, err)
			}
		}
	}
}

// TestMineIsCarried: order, weight, limits and the last resort are those of the
// user.
func TestMineIsCarried(t *testing.T) {
	m := mine(t, `
providers: {p: {type: openai, api_key: x}, q: {type: openai, api_key: y, domain: elsewhere}}
models:
  m:
    targets: [{provider: p, weight: 3, limits: {tpm: 9000}, timeouts: {headers: 7s}}, {provider: q, weight: 1}]
    degraded: {message: "Not now."}
workloads: {team: {keys: [k-of-the-team], limits: {tpm: 800}}}
`)
	s := fitted(t, m, scenario(t, outage))
	c := (&process{router: &router{rooms: &rooms{play: &play{Scenario: s}}, mine: m}}).config("", "")
	targets := c.Models["m"].Targets
	if len(targets) != 2 || targets[0].Order != 1 || targets[1].Order != 1 || targets[0].Weight != 3 || targets[0].Limits.TPM != 9000 || targets[0].Timeouts == nil {
		t.Errorf("targets: %+v", targets)
	}
	if d := c.Models["m"].Degraded; d == nil || d.Message != "Not now." {
		t.Errorf("the last resort: %+v", d)
	}
	if c.Workloads["w"].Limits.TPM != 800 {
		t.Errorf("the workload: %+v", c.Workloads["w"].Limits)
	}
	if said := strings.Join(s.Assumptions, " "); !strings.Contains(said, "Not carried over") || !strings.Contains(said, "tokens") {
		t.Error(said)
	}
	for i := range s.Targets {
		s.Targets[i].own.tpm, s.Targets[i].RPM = 0, 0
	}
	s.Workloads[0].tpm, s.Faults = 0, nil
	s.Criteria = []Criterion{{Name: "both", Expr: `success("", 0, 120) > 0.99 && calls("p", 0, 120) > calls("q", 0, 120) && calls("q", 0, 120) > 0`}}
	r, err := Play(s, Options{Contenders: []string{"router"}, Seed: 1, Config: m})
	if err != nil || !r.Runs[0].Passed() {
		t.Error("three calls of four go to the first", err)
	}
}

// TestLastResortIsStruck: a degraded model in the domain of a target that fails
// fails with it; elsewhere it stays well, and both are said.
func TestLastResortIsStruck(t *testing.T) {
	for domain, want := range map[string]struct {
		faults int
		said   string
	}{"here": {2, "q.small.degraded are one failure domain, here"}, "there": {1, "q.small.degraded stays well"}} {
		m := mine(t, `
providers: {p: {type: openai, api_key: x, domain: here}, q: {type: openai, api_key: y, domain: `+domain+`}}
models:
  m: {targets: [{provider: p}], degraded: {model: s}}
  s: {targets: [{provider: q, model: small}]}
`)
		one := scenario(t, outage)
		one.Targets, one.Faults, one.Criteria = one.Targets[:1], one.Faults[:1], one.Criteria[:2]
		out := fitted(t, m, one)
		if last := out.Targets[1]; len(out.Targets) != 2 || !last.Degraded || last.Name != "q.small.degraded" || last.Model != "m" {
			t.Errorf("%s: %+v", domain, out.Targets)
		}
		if said := strings.Join(out.Assumptions, " "); len(out.Faults) != want.faults || !strings.Contains(said, want.said) {
			t.Errorf("%s: %+v; %s", domain, out.Faults, said)
		}
	}
}

// TestMineIsPlayed: the user's policies and limits are those of the play.
func TestMineIsPlayed(t *testing.T) {
	text := "providers: {p: {type: openai, api_key: x}}\nmodels: {m: {targets: [{provider: p}]}}\nworkloads: {w: {keys: [k-of-w], limits: {rpm: 60}}}\n"
	c, ps := config.Parse("mine.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if ps.Fatal() {
		t.Fatal(ps)
	}
	m, _ := NewMine(c, "")
	r := played(t, fitted(t, m, scenario(t, outage)), Options{Contenders: []string{"router"}, Seed: 1, Config: m})
	if c := r.Runs[0].counts("", 10, 30); float64(c.Good)/float64(c.Fresh) > 0.15 || c.Status[429] == 0 {
		t.Errorf("one call a second of ten is allowed: %+v", c)
	}
}

// TestVary: load is a share of the first target's capacity, and depth of each
// fault.
func TestVary(t *testing.T) {
	s := scenario(t, outage)
	v := s.vary(0.6, 0.5, 20*time.Second)
	if got := v.Workloads[0].Rate[0].RPS; math.Abs(got-30) > 1e-9 {
		t.Errorf("60 %% of 50 a second: %v", got)
	}
	if v.Faults[0].Share != 0.4 || v.Faults[1].Factor != 2 || v.Faults[0].Until != 50*time.Second || v.Faults[1].Until != time.Minute {
		t.Errorf("half as deep, 20 s: %+v", v.Faults)
	}
	if v.Length != time.Minute+Grace+watched {
		t.Errorf("length %v", v.Length)
	}
	if s.Workloads[0].Rate[0].RPS != 10 || s.Faults[0].Share != 0.8 || s.Workloads[0].RPM != 1200 {
		t.Error("the scenario itself was changed")
	}
}

// TestSweep: what the naive contender does not survive the router does.
func TestSweep(t *testing.T) {
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name != "capacity-dip" {
			continue
		}
		points, err := Sweep{Contenders: []string{"router", "naive"}, Seeds: []uint64{1}, Loads: []float64{0.3, 0.7}, Depths: []float64{1}}.Run(s)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, true, true, false} {
			if points[i].Recovers() != want {
				t.Errorf("%+v", points[i])
			}
		}
		if _, err := (Sweep{Contenders: []string{"nobody"}}).Run(s); err == nil {
			t.Error("a contender that does not exist")
		}
	}
}

// TestShort: rates and what bears them shrink together.
func TestShort(t *testing.T) {
	s := scenario(t, strings.Replace(outage, "length: 2m", "length: 2m\nthin: 0.5\ngateway: {capacity: 100, memory: 64MiB}", 1))
	v := s.Short()
	if v.Workloads[0].Rate[0].RPS != 5 || v.Workloads[0].RPM != 600 || v.Targets[1].Capacity != 20 || v.Targets[0].RPM != 1500 || v.Gateway.Capacity != 50 || v.Gateway.Memory != 32<<20 {
		t.Errorf("%+v %+v %+v", v.Workloads, v.Targets, v.Gateway)
	}
	if s.Gateway.Capacity != 100 || s.Targets[1].Capacity != 40 {
		t.Error("the scenario itself was changed")
	}
	if got := strings.Join(s.Against(), ","); got != "router,naive" {
		t.Error(got)
	}
}

// TestMachine: past its memory it is killed with what is on it, and comes back.
func TestMachine(t *testing.T) {
	now := time.Unix(0, 0)
	m := machine{capacity: 10, queue: time.Second, memory: 100, down: 30 * time.Second}
	life, up := m.serves(now)
	if !up || m.enter(now, 60, 0) || m.enter(now, 40, 0) {
		t.Fatal("killed within its memory")
	}
	if !m.enter(now, 1, 0) {
		t.Error("101 of 100 bytes")
	}
	select {
	case <-life:
	default:
		t.Error("what was on it lives on")
	}
	m.exit(60)
	m.exit(40)
	m.exit(1)
	if _, up := m.serves(now.Add(29 * time.Second)); up {
		t.Error("back too early")
	}
	if _, up := m.serves(now.Add(30 * time.Second)); !up || m.inflight != 0 || m.held != 0 {
		t.Errorf("not back: %+v", m)
	}
	if other := (&machine{memory: 100}); !other.enter(now, 50, 51) {
		t.Error("what it holds besides its calls counts")
	}
}

// TestAblation: a criterion that the weakened router meets is no proof.
func TestAblation(t *testing.T) {
	r := &Result{Scenario: "s", Runs: []Run{
		{Contender: "router", Criteria: []Judgement{{Name: "one", Met: true}, {Name: "two", Met: true}}},
		{Contender: "router-without-ramp", Criteria: []Judgement{{Name: "one"}, {Name: "two", Met: true, Fails: []string{"router-without-ramp"}}}},
	}}
	a := Ablation{Proofs: []Proof{proof("s", r.Runs[0], r.Runs[1])}}
	if a.Proven() || len(a.Proofs[0].Missed) != 1 || len(a.Proofs[0].Met) != 1 {
		t.Errorf("%+v", a)
	}
	r.Runs[1].Criteria[1].Met = false
	if a = (Ablation{Proofs: []Proof{proof("s", r.Runs[0], r.Runs[1])}}); !a.Proven() {
		t.Errorf("%+v", a)
	}
	if (&Ablation{}).Proven() {
		t.Error("proven by nothing")
	}
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Without() {
		found := false
		for _, s := range all {
			found = found || s.names(name)
		}
		if !found {
			t.Errorf("no drill is to fail by %s", name)
		}
	}
}
