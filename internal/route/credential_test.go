package route

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/fault"
)

var unauthorized = fault.Verdict{Class: fault.Credential, Scope: fault.ScopeKey, Reason: "auth", Elsewhere: true}

// settle makes one call at the target and ends it with v.
func settle(t *testing.T, a *Target, now time.Time, v fault.Verdict) {
	t.Helper()
	c, why, _ := a.Try(query(now))
	if c == nil {
		t.Fatalf("refused: %v", why)
	}
	if v.Class == fault.OK {
		c.FirstContent(now)
	}
	c.Settle(now, Result{Verdict: v, Tokens: -1})
}

// press refuses calls until the target gets its least share.
func press(t *testing.T, a *Target) (now time.Time) {
	t.Helper()
	settle(t, a, t0, good)
	for now = t0; a.State(now).KeyShare != 1.0/16; now = now.Add(100 * time.Millisecond) {
		if c, _, _ := a.Try(query(now)); c != nil {
			c.Settle(now, Result{Verdict: unauthorized, Tokens: -1})
		}
		if now.Sub(t0) > 10*time.Second {
			t.Fatal("the share does not fall")
		}
	}
	return now
}

// A 401 among answers takes no target out; the first answer of an account being
// 401 takes all of them out.
func TestOne401AmongAnswers(t *testing.T) {
	account := new(Account)
	spec := Spec{Breaker: breaker.Default(), Budget: budget.Default()}
	a, b := NewTarget(spec, account, nil, nil), NewTarget(spec, account, nil, nil)
	settle(t, a, t0, good)
	settle(t, a, t0, unauthorized)
	settle(t, b, t0, good)
	settle(t, a, t0, good)
	if s := a.State(t0); s.CoolUntil != nil || s.KeyShare != 0 {
		t.Errorf("one refusal among answers: cooled until %v, share %v", s.CoolUntil, s.KeyShare)
	}
	wrong := target("a", "x", Limits{})
	settle(t, wrong, t0, unauthorized)
	if _, why, _ := wrong.Try(query(t0)); why != WhyCredential {
		t.Errorf("a key that was never accepted: %v", why)
	}
}

// Most calls refused: the share falls, is shown, and a call that is not of it is
// told so and when to come back, also when it was refused upstream itself.
func TestMostCallsRefused(t *testing.T) {
	a := target("a", "x", Limits{})
	m := &Model{Entries: []Entry{{Target: a, Weight: 1}}}
	now := press(t, a)
	if s := a.State(now); s.CoolUntil != nil {
		t.Fatalf("cooled until %v", s.CoolUntil)
	}
	c, r := m.Pick(pass(now, seeded()))
	for c != nil { // what is left of the credit
		c.Settle(now, Result{Verdict: unauthorized, Tokens: -1})
		c, r = m.Pick(pass(now, seeded()))
	}
	if !r.Operator() || r.Credential != 1 || r.Reopens.Sub(now) <= 0 || r.Reopens.Sub(now) > 5*time.Second {
		t.Fatalf("refusal %+v", r)
	}
	p := pass(now, seeded())
	p.Tried, p.Extra = []*Target{a}, true
	if _, r := m.Pick(p); r.Reopens.Sub(now) != 5*time.Second {
		t.Fatalf("a caller that was refused upstream: back in %v", r.Reopens.Sub(now))
	}
	if c, why, _ := a.Try(query(now.Add(5 * time.Second))); c == nil {
		t.Fatalf("after five seconds: %v", why)
	}
}

// A stream that is served counts once: at its first content, not at its end too.
func TestServedCountsOnce(t *testing.T) {
	one, two := target("one", "x", Limits{}), target("two", "x", Limits{})
	now := press(t, one).Add(5 * time.Second)
	press(t, two)
	settle(t, one, now, good) // FirstContent and Settle
	c, _, _ := two.Try(query(now))
	c.Settle(now, Result{Verdict: good, Tokens: -1})
	if s, u := one.State(now).KeyShare, two.State(now).KeyShare; s != u || s <= 1.0/16 {
		t.Fatalf("share %v after a stream, %v after an answer", s, u)
	}
}

// Only a model on one account is single.
func TestSingle(t *testing.T) {
	x, y := new(Account), new(Account)
	for _, tt := range []struct {
		accounts []*Account
		want     bool
	}{
		{nil, true},
		{[]*Account{x}, true},
		{[]*Account{nil}, true},
		{[]*Account{x, x}, true},
		{[]*Account{x, y}, false},
		{[]*Account{nil, nil}, false},
	} {
		m := &Model{}
		for _, a := range tt.accounts {
			m.Entries = append(m.Entries, Entry{Account: a})
		}
		if got := m.single(); got != tt.want {
			t.Errorf("%v: %v", tt.accounts, got)
		}
	}
}

// Half a second's worth of a target's rpm goes at once, two at least and never
// more than ten seconds' worth; the next call waits where that is a moment.
func TestRequestsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		rpm   int64
		burst int
		why   Why
	}{
		{1, 1, WhyRate}, {6, 1, WhyRate}, {12, 2, WhyRate}, {60, 2, WhyFull}, {180, 2, WhyFull}, {600, 5, WhyFull}, {6000, 50, WhyFull},
	} {
		a := target("a", "x", Limits{RPM: tt.rpm})
		n := 0
		why := Admitted
		for {
			var c *Call
			if c, why, _ = a.Try(query(t0)); c == nil {
				break
			}
			n++
		}
		if n != tt.burst || why != tt.why {
			t.Errorf("rpm %d: %d at once, then %v; want %d, %v", tt.rpm, n, why, tt.burst, tt.why)
		}
		// a provider that counts by the second sees at most half as much again
		n = 0
		a = target("a", "x", Limits{RPM: tt.rpm})
		for ms := range 1000 {
			if c, _, _ := a.Try(query(t0.Add(time.Duration(ms) * time.Millisecond))); c != nil {
				n++
			}
		}
		if most := int(tt.rpm/60) + tt.burst; n > most {
			t.Errorf("rpm %d: %d in a second, want %d at most", tt.rpm, n, most)
		}
	}
}
