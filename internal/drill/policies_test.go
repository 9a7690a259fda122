package drill

import (
	"slices"
	"testing"
	"time"
)

var (
	epoch   = time.Unix(0, 0)
	fine    = reply{good: true, status: 200}
	fault   = reply{status: 500}
	tooMany = reply{status: 429}
	timeout = reply{late: true}
	reset   = reply{broken: true}
	noConn  = reply{broken: true, unsent: true}
	cutOff  = reply{broken: true, begun: true}
)

// stop is a call of a course: at which target, after what pause.
type stop struct {
	at    int
	pause time.Duration
}

// way plays a policy against replies, the last of them again and again, with
// every gate open.
func way(p policy, targets int, draw float64, replies ...reply) (calls []stop) {
	c := course{policy: &p, targets: targets}
	var pause time.Duration
	for again := true; again; {
		calls = append(calls, stop{c.at, pause})
		r := replies[min(len(calls), len(replies))-1]
		pause, again = c.next(r, draw)
	}
	return calls
}

func sees(t *testing.T, what string, got []stop, want ...stop) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// step is what happens at a gate, in seconds since the epoch: the replies that
// are reported, and then whether it admits a call.
type step struct {
	at      float64
	replies []reply
	admits  bool
}

func opens(t *testing.T, g gatekeeper, steps ...step) {
	t.Helper()
	for i, s := range steps {
		now := epoch.Add(time.Duration(s.at * float64(time.Second)))
		for _, r := range s.replies {
			g.report(now, r)
		}
		if got := g.admit(now); got != s.admits {
			t.Fatalf("step %d, %v s: admits %v", i, s.at, got)
		}
	}
}

func many(n int, r reply) []reply { return slices.Repeat([]reply{r}, n) }

// TestPassive: the first failure takes the target out for ten seconds; then one
// call is a trial, and its outcome counts.
func TestPassive(t *testing.T) {
	how, gates := passive1(2)
	opens(t, gates[0],
		step{1, []reply{fine, fault, tooMany, fine}, true}, // no status is a failure
		step{2, []reply{timeout}, false},
		step{12, nil, false},
		step{12.1, nil, true},
		step{12.2, nil, false}, // the trial is under way
		step{13, []reply{reset}, false},
		step{23, nil, false},
		step{23.1, nil, true},
		step{23.2, []reply{fine}, true},
		step{23.3, nil, true},
	)
	sees(t, "what was not sent", way(how, 2, 0, noConn, fine), stop{0, 0}, stop{1, 0})
	for _, r := range []reply{fault, tooMany, reset, timeout, cutOff} {
		sees(t, "the answer", way(how, 2, 0, r), stop{0, 0})
	}
	how, gates = passive5xx(2)
	opens(t, gates[0], step{1, []reply{fault}, false}, step{11, nil, false}, step{11.1, nil, true})
	opens(t, gates[1], step{1, []reply{tooMany}, false})
	for _, r := range []reply{fault, tooMany, reset, timeout} {
		sees(t, "what is passed on", way(how, 2, 0, r), stop{0, 0}, stop{1, 0})
	}
	sees(t, "what was begun", way(how, 2, 0, cutOff), stop{0, 0})
	_, gates = passive5xx(1)
	opens(t, gates[0], step{1, many(9, fault), true}) // a single server stays in
}

// TestCooldown: more than half of at least five calls in a minute cool for five
// seconds, and so does one 429.
func TestCooldown(t *testing.T) {
	how, gates := cooldown(4)
	opens(t, gates[0],
		step{0, many(4, fault), true},
		step{1, []reply{fault}, false},
		step{5.9, nil, false},
		step{6, nil, true},
		step{7, []reply{fine}, true},
		step{8, []reply{fault}, false}, // the minute is not over
		step{60, many(4, fault), true}, // now it is
	)
	opens(t, gates[1],
		step{0, append(many(5, fine), many(5, fault)...), true}, // half is not more than half
		step{1, []reply{fault}, false},
	)
	opens(t, gates[2], step{0, append(many(50, fine), tooMany), false}, step{5, nil, true})
	opens(t, gates[3], step{0, many(9, fine), true})
	for _, r := range []reply{fault, tooMany, reset, timeout} {
		sees(t, "three calls each", way(how, 2, 0, r), stop{0, 0}, stop{0, 0}, stop{0, 0}, stop{1, 0}, stop{1, 0}, stop{1, 0})
	}
	sees(t, "no repeat of a 403", way(how, 2, 0, reply{status: 403}), stop{0, 0}, stop{1, 0})
	_, gates = cooldown(1)
	opens(t, gates[0], step{0, many(9, tooMany), true})
}

// TestRetry5: five retries after a pause that doubles; a Retry-After of a 429 is
// obeyed until the sum is above a minute.
func TestRetry5(t *testing.T) {
	how, gates := retry5(1)
	opens(t, gates[0], step{0, many(99, fault), true})
	s := time.Second
	all := []stop{{0, 0}, {0, s}, {0, 2 * s}, {0, 4 * s}, {0, 8 * s}, {0, 16 * s}}
	for _, r := range []reply{fault, tooMany, reset} {
		sees(t, "repeated", way(how, 1, 0.9, r), all...)
	}
	for _, r := range []reply{timeout, {status: 501}} {
		sees(t, "taken on", way(how, 2, 0, r), stop{0, 0}, stop{1, 0})
	}
	sees(t, "cut off", way(how, 2, 0, cutOff), stop{0, 0})
	wait := func(d time.Duration) reply { return reply{status: 429, after: d} }
	sees(t, "20 and 50 s", way(how, 2, 0, wait(20*s), wait(50*s), fine), stop{0, 0}, stop{0, 20 * s}, stop{1, 0})
	sees(t, "60 s", way(how, 2, 0, wait(60*s), fine), stop{0, 0}, stop{1, 0})
	sees(t, "then no pause", way(how, 1, 0, wait(20*s), fault, fault, fine), stop{0, 0}, stop{0, 20 * s}, stop{0, 0}, stop{0, 0})
	sees(t, "of a 503", way(how, 1, 0, reply{status: 503, after: 20 * s}, fine), stop{0, 0}, stop{0, s})
}

// TestEjection5: the fifth failure in a row ejects for 30 s, the next time for
// 60 s, and never both targets.
func TestEjection5(t *testing.T) {
	how, gates := ejection5(2)
	opens(t, gates[0],
		step{0, append(many(4, fault), tooMany), true}, // not in a row
		step{1, append(many(4, fault), fine), true},
		step{2, many(2, fault), true},
		step{3, []reply{reset, timeout, noConn}, false},
		step{33, nil, false}, // it is back with the sweep at 40 s
		step{40, nil, true},
		step{44, many(5, fault), false},
		step{104, nil, false},
		step{110, nil, true},
		step{131, many(5, fault), false}, // two sweeps found it well: 30 s
		step{169.9, nil, false},
		step{170, nil, true},
	)
	opens(t, gates[1], step{171, many(5, fault), false})
	opens(t, gates[0], step{172, many(20, fault), true}) // one is out
	ms := time.Millisecond
	for _, r := range []reply{fault, {status: 503}, reset, noConn} {
		sees(t, "one retry", way(how, 2, 0.5, r), stop{0, 0}, stop{0, 25 * ms / 2})
	}
	for _, r := range []reply{tooMany, timeout, cutOff} {
		sees(t, "no retry", way(how, 2, 0.5, r), stop{0, 0})
	}
	for range 10 {
		how.budget.enter()
	}
	for n := range 4 {
		if got := how.budget.take(); got != (n < 3) {
			t.Errorf("10 requests, retry %d: %v", n, got)
		}
	}
	for range 10 {
		how.budget.enter()
	}
	if !how.budget.take() || how.budget.take() {
		t.Error("20 requests are not allowed 4 retries")
	}
	how.budget.give()
	how.budget.leave()
	if how.budget.take() {
		t.Error("19 requests are allowed 4 retries")
	}
}

// TestEjectionsGrow: until the bound.
func TestEjectionsGrow(t *testing.T) {
	_, gates := ejection5(1)
	now := epoch
	for n := range 15 {
		for range 5 {
			gates[0].report(now, fault)
		}
		out := time.Duration(0)
		for ; !gates[0].admit(now); now = now.Add(time.Second) {
			out += time.Second
		}
		if want := min(30*time.Second*time.Duration(n+1), 300*time.Second); out != want {
			t.Errorf("ejection %d: %v, want %v", n+1, out, want)
		}
	}
}

// TestEjection1: the first failure ejects for five seconds, and any number of
// targets; a 500 goes from target to target, six calls in all.
func TestEjection1(t *testing.T) {
	how, gates := ejection1(2)
	for _, g := range gates {
		opens(t, g, step{0, []reply{tooMany, fine, fault}, false}, step{5.9, nil, false}, step{6, nil, true})
	}
	ms := time.Millisecond
	sees(t, "in turn", way(how, 2, 0.5, fault),
		stop{0, 0}, stop{1, 50 * ms}, stop{0, 150 * ms}, stop{1, 350 * ms}, stop{0, 750 * ms}, stop{1, 1550 * ms})
	for _, r := range []reply{{status: 503}, tooMany, timeout, reset} {
		sees(t, "no retry", way(how, 2, 0.5, r), stop{0, 0})
	}
	if got := (backoff{base: 100 * ms, most: 10 * time.Second, jitter: true}).before(9, 0.5); got != 5*time.Second {
		t.Errorf("pause 9: %v", got)
	}
}

// TestGates: a course goes past what its gates refuse, and what no gate admits
// ends it unless the policy calls a target all the same.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		name   string
		shut   []bool
		panics bool
		from   int
		at     int
		ok     bool
	}{
		{"the first", []bool{false, false}, false, 0, 0, true},
		{"past the first", []bool{true, false}, false, 0, 1, true},
		{"none", []bool{true, true}, false, 0, 0, false},
		{"none, but", []bool{true, true}, true, 0, 0, true},
		{"none after the second", []bool{false, true}, false, 1, 1, false},
	} {
		p := &play{Scenario: &Scenario{Length: time.Minute}}
		var gates []gatekeeper
		for _, shut := range c.shut {
			b := &inARow{limit: 1, pause: time.Hour}
			if shut {
				b.until = time.Now().Add(time.Hour)
			}
			p.Targets = append(p.Targets, Target{Name: string(rune('a' + len(gates)))})
			gates = append(gates, b)
		}
		p.books, p.start = newBooks(p.Scenario), time.Now()
		for i := range p.Targets {
			v := &p.Targets[i]
			p.servers = append(p.servers, newServer(p.Scenario, v, 1, p.books.targets[v.Name]))
		}
		l := newLoop(p, p.servers, policy{panics: c.panics}, gates)
		way := course{policy: &l.policy, targets: len(gates), at: c.from}
		if ok := l.admitted(&way); ok != c.ok || way.at != c.at {
			t.Errorf("%s: %v at %d", c.name, ok, way.at)
		}
	}
}

// TestProxiesFallBack: a target without a connection costs no proxy its requests.
func TestProxiesFallBack(t *testing.T) {
	s := scenario(t, `
name: short
title: No connection
length: 2m
workloads: [{name: w, rate: [{at: 0s, rps: 10}], timeout: 60s}]
targets: [{name: a, capacity: 50, queue: 1s, latency: 200ms}, {name: b, capacity: 50, queue: 1s, latency: 300ms}]
faults: [{target: a, at: 30s, until: 90s, mode: connect}]
criteria: [{name: answered, expr: 'success("w", 40, 120) >= 0.99', fails: [naive]}]
`)
	var names []string
	for _, k := range proxies {
		names = append(names, k.name)
	}
	r := played(t, s, Options{Contenders: names, Seed: 1})
	for i := range r.Runs {
		if run := &r.Runs[i]; !run.Passed() {
			t.Errorf("%s: %+v", run.Contender, run.Criteria)
		}
	}
}
