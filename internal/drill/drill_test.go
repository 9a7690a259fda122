package drill

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestTheScenariosAreGood: every file that comes with the router can be played.
func TestTheScenariosAreGood(t *testing.T) {
	all, err := List()
	if err != nil || len(all) < 10 {
		t.Fatal(len(all), err)
	}
	for _, s := range all {
		if len(s.Facts) == 0 || len(s.Assumptions) == 0 || s.Incident == "" && s.Name != "capacity-dip" {
			t.Errorf("%s: facts and assumptions are to be kept apart, and the incident named", s.Name)
		}
	}
}

// TestParseRefuses: what cannot be played is refused with its place.
func TestParseRefuses(t *testing.T) {
	good := "name: x\ntitle: X\nlength: 1m\nworkloads: [{name: w, rate: [{at: 0s, rps: 1}]}]\ntargets: [{name: t, capacity: 1}]\ncriteria: [{name: c, expr: 'success(\"\", 0, 60) > 0.5'}]\n"
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"title: X", "titel: X", "titel"},
		{"length: 1m", "length: 0s", "length"},
		{"length: 1m", "length: soon", "line 3"},
		{"rps: 1", "rps: -1", "rps"},
		{"capacity: 1", "capacity: 0", "targets[0] t"},
		{"capacity: 1", "capacity: 1, tokens: 10, per_token: 1s, stream: 3s", "one of the two"},
		{"capacity: 1", "capacity: 1, full: 200", "full"},
		{"success(", "sucess(", "sucess"},
		{"success(\"\", 0, 60)", "opens(\"u\", 0, 60)", "no target"},
		{"success(\"\", 0, 60)", "left_after(\"\", 0)", "needs the name"},
		{"'success(\"\", 0, 60)", "'crashes(\"gateway\")", "nor a gateway"},
		{"criteria: [{name: c, expr: 'success(\"\", 0, 60)", "gateway: {instances: 2}\ncriteria: [{name: c, expr: 'crashes(\"gateway-3\")", "nor a gateway"},
		{"criteria: [{name: c, expr: 'success(\"\", 0, 60)", "gateway: {instances: 2}\ncriteria: [{name: c, expr: 'probes(\"gateway-2\", 0, 60)", "no target"},
		{"success(\"\", 0, 60) > 0.5", "success(\"\", 0, 60)", "bool"},
		{"criteria:", "faults: [{target: u, at: 1s, until: 2s, mode: hang}]\ncriteria:", "does not exist"},
		{"criteria:", "faults: [{target: t, at: 2s, until: 1s, mode: hang}]\ncriteria:", "until"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: 999}]\ncriteria:", "999"},
		{"> 0.5'", "> 0.5', fails: [router]", "fails"},
		{"rps: 1", "rps: .nan", "workloads[0].rate[0].rps"},
		{"rps: 1", "rps: 0.0005", "at least 0.001"},
		{"at: 0s", "at: -1s", "at must not be below 0"},
		{"capacity: 1", "capacity: .inf", "targets[0].capacity"},
		{"capacity: 1", "capacity: 1e-9", "capacity"},
		{"capacity: 1", "capacity: 1, slows: .inf", "targets[0].slows"},
		{"capacity: 1", "capacity: 1, refusal: .nan", "targets[0].refusal"},
		{"capacity: 1", "capacity: 1, keys: {capacity: .nan}", "targets[0].keys.capacity"},
		{"capacity: 1", "capacity: 1, latency: 2h", "latency"},
		{"capacity: 1", "capacity: 1, stream: 2h", "stream"},
		{"capacity: 1", "capacity: 1, tokens: 9223372036854775807, per_token: 1h", "tokens"},
		{"capacity: 1", "capacity: 1, down: -1s", "down"},
		{"name: t,", "name: a@b,", "hyphens and dots"},
		{"{name: t,", "{name: l, model: x, degraded: true, capacity: 1}, {name: t,", "no other target"},
		{"name: w", "name: w, timeout: -1s", "timeout"},
		{"name: w", "name: w, timeout: 25h", "timeout"},
		{"name: w", "name: w, once: -1s", "once"},
		{"name: w", "name: w, once: 2m", "once"},
		{"name: w", "name: w, agent: \"a\\nb\"", "agent"},
		{"name: t,", "name: t, model: " + strings.Repeat("long", 300) + ",", "targets[0] t: model"},
		{"{name: w,", "{name: w-2, rate: [{at: 0s, rps: 1}]}, {name: w, callers: 2,", "workloads[1] w: callers"},
		{"name: w", "name: w, retries: [{attempts: 2, backoff: 2h}]", "backoff"},
		{"name: w", "name: w, retries: [{attempts: 2, backoff: -1s}]", "backoff"},
		{"name: w", "name: w, retries: [{attempts: 100, backoff: 1s}]", "doubles"},
		{"name: w", "name: w, retries: [{attempts: 100}, {attempts: 100}, {attempts: 2}]", "multiply"},
		{"length: 1m", "length: 1m\ncompression: .inf", "compression: +Inf"},
		{"length: 1m", "length: 1m\nthin: .nan", "thin: NaN"},
		{"length: 1m", "length: 1m\nthin: 1e-9", "thin"},
		{"length: 1m", "length: 1m\ngateway: {refusal: .nan}", "gateway.refusal"},
		{"length: 1m", "length: 1m\ngateway: {capacity: 1e-9}", "capacity"},
		{"length: 1m", "length: 1m\ngateway: {waiting: -3}", "waiting"},
		{"length: 1m", "length: 1m\ngateway: {waiting: 5}", "waiting"},
		{"length: 1m", "length: 1m\nactions: [{at: 1s, do: reload, every: 48h}]", "every"},
		{"length: 1m", "length: 1m\nmarks: [{at: -1s, text: x}]", "marks[0]"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: hang, share: .nan}]\ncriteria:", "faults[0].share"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: slow, factor: .inf}]\ncriteria:", "faults[0].factor"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: slow, factor: 1001}]\ncriteria:", "factor must be 0.001 to 1000"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: slow}]\ncriteria:", "factor must be above 0"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: cold, warm: 1, factor: 0}]\ncriteria:", "factor must be above 0"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: capacity, factor: 0}]\ncriteria:", "factor must be above 0"},
		{"criteria:", "faults: [{target: t, at: -1s, until: 2s, mode: hang}]\ncriteria:", "at, after"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: reset, after: -1s}]\ncriteria:", "at, after"},
		{"criteria:", "faults: [{target: t, at: 1s, until: 2s, mode: '503', retry_after: -1s}]\ncriteria:", "at, after"},
	} {
		if _, err := Parse([]byte(strings.Replace(good, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v", c.from, c.to, err)
		}
	}
	named := strings.NewReplacer("name: t,", "name: gateway-1,", "criteria:", "gateway: {}\ncriteria:").Replace(good)
	if _, err := Parse([]byte(named)); err == nil || !strings.Contains(err.Error(), "the gateway's") {
		t.Errorf("a target with a gateway's name: %v", err)
	}
	if _, err := Parse(nil); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty file: %v", err)
	}
}

// TestShareDefaults: a share that rises from nothing does; without a share and
// its end it is all calls, and a factor is 1 where none is needed.
func TestShareDefaults(t *testing.T) {
	s := scenario(t, strings.Replace(outage, "faults: [", `faults: [{target: a, at: 1s, until: 3s, mode: hang, share: 0, to: 1}, {target: a, at: 1s, until: 3s, mode: hang}, `, 1))
	if f := s.Faults[0]; f.Share != 0 || f.share(f.At) != 0 || f.share(2*time.Second) != 0.5 || f.Factor != 1 {
		t.Errorf("rising: %+v", f)
	}
	if f := s.Faults[1]; f.share(2*time.Second) != 1 {
		t.Errorf("constant: %+v", f)
	}
}

// TestRefusalsCost: a target that is overrun spends what it has on refusing.
// It fails when refusals are free.
func TestRefusalsCost(t *testing.T) {
	served := func(refusal float64) (n int) {
		s := &Scenario{Length: time.Minute, Targets: []Target{{Name: "t", Capacity: 10, Refusal: refusal, Queue: time.Second, Slows: 1, Full: 429}}}
		v := newServer(s, &s.Targets[0], 1, newBooks(s).targets["t"])
		for i := range 60 * 100 {
			at := time.Duration(i) * 10 * time.Millisecond
			a, d := v.take(time.Unix(0, 0).Add(at), at, asked{workload: &Workload{}, call: uint64(i)})
			if a.status == 200 {
				n++
			}
			v.leave(&a, d)
		}
		return n
	}
	if free, dear := served(0), served(0.2); math.Abs(float64(free)-610) > 10 || dear > 20 {
		t.Errorf("served %d with free refusals and %d where five cost a call, of 6,000 at 10 a second", free, dear)
	}
}

// TestSharesAddUp: faults of one moment take their shares of the calls, and a
// rising share rises.
func TestSharesAddUp(t *testing.T) {
	s := &Scenario{Length: time.Hour, Targets: []Target{{Name: "t", Capacity: 1e6, Queue: time.Second, Slows: 1}}, Faults: []Fault{
		{Target: "t", Until: time.Hour, Mode: "503", Share: 0.2, Factor: 1},
		{Target: "t", Until: time.Hour, Mode: ModeHang, Share: 0.1, Factor: 1},
		{Target: "t", At: 30 * time.Minute, Until: time.Hour, Mode: ModeReset, Share: 0.001, To: 0.4, Factor: 1},
	}}
	v := newServer(s, &s.Targets[0], 7, newBooks(s).targets["t"])
	seen := map[string]int{}
	for i := range 20000 {
		at := 45 * time.Minute
		if i < 10000 {
			at = time.Minute
		}
		a, d := v.take(time.Unix(0, 0).Add(at), at, asked{workload: &Workload{}, call: uint64(i)})
		v.leave(&a, d)
		if i >= 10000 {
			a.mode += " later"
		}
		seen[a.mode]++
	}
	for mode, want := range map[string]float64{"503": 0.2, "hang": 0.1, "": 0.7, "503 later": 0.2, "hang later": 0.1, "reset later": 0.2} {
		if got := float64(seen[mode]) / 10000; math.Abs(got-want) > 0.02 {
			t.Errorf("%q: %.3f of the calls, want %.3f", mode, got, want)
		}
	}
}

// TestStickyHitsTheSame: a sticky fault hits its share of the callers, and each
// of them always.
func TestStickyHitsTheSame(t *testing.T) {
	s := &Scenario{Length: time.Hour, Targets: []Target{{Name: "t", Capacity: 1e6, Queue: time.Second, Slows: 1}}, Faults: []Fault{
		{Target: "t", Until: time.Hour, Mode: ModeWrong, Share: 0.2, Sticky: true},
	}}
	v := newServer(s, &s.Targets[0], 7, newBooks(s).targets["t"])
	hit := map[int]int{}
	for i := range 10000 {
		a, d := v.take(time.Unix(60, 0), time.Minute, asked{workload: &Workload{Name: "w"}, caller: i % 1000, call: uint64(i)})
		v.leave(&a, d)
		if a.mode == ModeWrong {
			hit[i%1000]++
		}
	}
	if math.Abs(float64(len(hit))-200) > 40 {
		t.Errorf("%d of 1,000 callers were hit, want a fifth", len(hit))
	}
	for caller, n := range hit {
		if n != 10 {
			t.Fatalf("caller %d was hit by %d of 10 calls", caller, n)
		}
	}
}

// TestBrokenRequests: what the router cannot read it refuses without a call,
// what only a target can tell after one. A model's name of any length will do.
func TestBrokenRequests(t *testing.T) {
	s := scenario(t, `
name: broken
title: Broken requests
length: 10s
workloads:
  - {name: good, model: a-long-name, rate: [{at: 0s, rps: 1}]}
  - {name: garbled, model: a-long-name, rate: [{at: 0s, rps: 1}], garbled: true, timeout: 50ms}
  - {name: malformed, model: a-long-name, rate: [{at: 0s, rps: 1}], malformed: true}
targets: [{name: t, model: a-long-name, capacity: 50, queue: 1s, latency: 200ms}]
criteria:
  - {name: good, expr: 'success("good", 0, 10) == 1 && amp("good", 0, 10) == 1'}
  - {name: garbled, expr: 'status("garbled", 400, 0, 10) == 1 && amp("garbled", 0, 10) == 0', fails: [naive]}
  - {name: malformed, expr: 'status("malformed", 400, 0, 10) == 1 && amp("malformed", 0, 10) == 1'}
`)
	r := played(t, s, Options{Contenders: []string{"router", "naive"}, Seed: 1})
	if !r.Runs[0].Passed() || len(r.Runs[1].Toothless()) > 0 {
		t.Errorf("the router %+v, naive %+v", r.Runs[0].Criteria, r.Runs[1].Criteria)
	}
}

// TestTheEndMeetsAKill: an instance that would be back after the end stays away,
// and the play ends.
func TestTheEndMeetsAKill(t *testing.T) {
	s := scenario(t, `
name: kill
title: A kill before the end
length: 10s
gateway: {instances: 2, down: 1m}
workloads: [{name: w, rate: [{at: 0s, rps: 5}]}]
targets: [{name: t, capacity: 50, queue: 1s, latency: 200ms}]
actions: [{at: 5s, do: kill, instance: 1}]
criteria: [{name: one, expr: 'crashes("gateway-1") == 1 && success("w", 6, 10) == 1'}]
`)
	r, err := Play(s, Options{Contenders: []string{"router"}, Seed: 1})
	if err != nil || !r.Runs[0].Passed() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSameSeedSameVerdict: what is drawn is the same each time. The runtime
// orders what happens in the same instant, so counts may differ by a few; the
// client alone has nothing to order.
func TestSameSeedSameVerdict(t *testing.T) {
	s := scenario(t, `
name: short
title: A minute and a half
length: 3m
workloads: [{name: w, rate: [{at: 0s, rps: 20}], stream: true, retries: [{attempts: 2, backoff: 200ms, jitter: true, on: [5xx, reset, timeout]}]}]
targets: [{name: a, capacity: 50, refusal: 0.1, queue: 1s, latency: 200ms, stream: 200ms}, {name: b, capacity: 50, refusal: 0.1, queue: 1s, latency: 300ms, stream: 200ms}]
faults: [{target: a, at: 1m, until: 2m, mode: "500", share: 0.9, after: 50ms}]
criteria:
  - {name: answered, expr: 'success("w", 0, 180) >= 0.995', fails: [naive]}
  - {name: left, expr: 'left_after("a", 60) <= 10', fails: [naive]}
`)
	var first *Result
	for range 3 {
		r := played(t, s, Options{Contenders: Names(), Seed: 3})
		for i, run := range r.Runs {
			if run.Contender == "router" && (!run.Passed() || len(run.Targets[0].Moves) == 0) {
				t.Errorf("the router: %+v, moves %v", run.Criteria, run.Targets[0].Moves)
			}
			if len(run.Toothless()) > 0 {
				t.Errorf("%s met what it was to miss", run.Contender)
			}
			if first == nil {
				continue
			}
			before := first.Runs[i]
			if run.Passed() != before.Passed() || run.Contender == "naive" && !reflect.DeepEqual(run.Totals, before.Totals) {
				t.Errorf("%s: %+v, then %+v", run.Contender, before.Totals, run.Totals)
			}
		}
		first = r
	}
}

// TestTheRouterPasses: the scenario that every contender but the router fails.
func TestTheRouterPasses(t *testing.T) {
	data, err := files.ReadFile("drills/flapping-2026-08-01.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	r := played(t, s, Options{Contenders: Names(), Seed: 1})
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Passed() != (run.Contender == "router") || len(run.Toothless()) > 0 {
			t.Errorf("%s: %+v", run.Contender, run.Criteria)
		}
	}
}

// TestAReturnIsMeasured: how fast the rate of calls grows and when a cold
// target is warm, at a target whose model has a longer name than the router
// puts in its place.
func TestAReturnIsMeasured(t *testing.T) {
	s := scenario(t, `
name: return
title: Twice the rate, after a cold start
length: 3m
workloads: [{name: w, model: a-longer-name, rate: [{at: 0s, rps: 10}, {at: 90s, rps: 20}]}]
targets: [{name: t, model: a-longer-name, capacity: 50, queue: 1s, latency: 100ms}]
faults: [{target: t, at: 60s, until: 3m, mode: cold, factor: 0.5, warm: 200}]
criteria:
  - {name: answered, expr: 'success("w", 0, 180) == 1'}
  - {name: growth, expr: 'rise("t", 0, 180, 30) > 0.95 && rise("t", 0, 180, 30) < 1.05'}
  - {name: none before, expr: 'rise("t", 0, 90, 30) < 0.05'}
  - {name: warm, expr: 'warm_after("t", 60) >= 19 && warm_after("t", 60) <= 22'}
`)
	r := played(t, s, Options{Contenders: []string{"router", "naive"}, Seed: 1})
	for i := range r.Runs {
		if run := &r.Runs[i]; !run.Passed() {
			t.Errorf("%s: %+v", run.Contender, run.Criteria)
		}
	}
}

// TestTheDocumentIsRight: its example can be played and passes, and it has
// every word and contender.
func TestTheDocumentIsRight(t *testing.T) {
	data, err := os.ReadFile("../../docs/drills.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	s := scenario(t, example)
	r := played(t, s, Options{Contenders: []string{"router", "naive"}, Seed: 1})
	if !r.Runs[0].Passed() || r.Runs[1].Passed() || len(r.Runs[1].Toothless()) > 0 {
		t.Errorf("the router %+v, naive %+v", r.Runs[0].Criteria, r.Runs[1].Criteria)
	}
	words := reflect.TypeFor[words]()
	for i := range words.NumField() {
		if word := words.Field(i).Tag.Get("expr"); word != "" && !strings.Contains(string(data), "`"+word+"(") {
			t.Errorf("%s is not described", word)
		}
	}
	for _, name := range Names() {
		if !strings.Contains(string(data), "| "+name+" |") {
			t.Errorf("%s is not described", name)
		}
	}
}

// TestTimesBeyondTheRun: they count as its beginning and its end.
func TestTimesBeyondTheRun(t *testing.T) {
	run := &Run{Step: time.Second, Targets: []TargetRun{{Name: "t", Steps: []TargetStep{{Calls: 1}, {Calls: 4}, {Calls: 2}}}}}
	w := wordsOf(run)
	if n := w.Calls("t", -1e300, 1e300); n != 7 {
		t.Errorf("%v calls", n)
	}
	done := make(chan float64)
	go func() { done <- w.Rise("t", -1e300, 1e300, 1) }()
	select {
	case got := <-done:
		if got != 3 {
			t.Errorf("a rise of %v", got)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("a rise without end")
	}
}
