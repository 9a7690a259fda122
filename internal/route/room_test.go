package route

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// TestRoom: slots and a rate that comes in a moment are room, a rate that does
// not come for longer is for the call to find out.
func TestRoom(t *testing.T) {
	now := t0
	a := target("a", "", Limits{Concurrency: 1, RPM: 120})
	if free, _ := a.Room(now); !free {
		t.Fatal("an idle target is full")
	}
	c, _, _ := a.Try(query(now))
	if free, when := a.Room(now); free || !when.IsZero() {
		t.Errorf("with its slot taken: %t, %v", free, when)
	}
	c.Settle(now, Result{})
	c, _, _ = a.Try(query(now))
	c.Settle(now, Result{})
	if free, when := a.Room(now); free || when != now.Add(time.Second/2) {
		t.Errorf("with its rate used up: %t, %v", free, when.Sub(now))
	}
	if free, _ := a.Room(now.Add(time.Second / 2)); !free {
		t.Error("full when its rate allows a call")
	}
}

// TestRoomLater: what no call in line may have yet is said to come when it does.
// It fails when a target that has room for somebody says nothing of the time.
func TestRoomLater(t *testing.T) {
	now := t0
	end := func(a *Target, r Result, said fault.Quota) {
		c, _, _ := a.Try(query(now))
		c.Quota(now, said)
		c.Settle(now, r)
	}
	a := target("a", "", Limits{}) // takes small calls only
	end(a, Result{Tokens: -1}, fault.Quota{Tokens: fault.Left{Stated: true, Left: 100, Most: 10_000, Reset: 800 * time.Millisecond}})
	large := query(now)
	large.Tokens = 4000
	if _, why, _ := a.Try(large); why != WhyLarge {
		t.Fatalf("a large call: %v", why)
	}
	if free, when := a.Room(now); !free || when != now.Add(800*time.Millisecond) {
		t.Errorf("with room for small calls: %t, %v", free, when.Sub(now))
	}
	b := target("b", "", Limits{}) // cools down
	end(b, Result{Verdict: fault.Verdict{Class: fault.Capacity, HasWait: true, Wait: 3 * time.Second}}, fault.Quota{})
	if free, when := b.Room(now); !free || when.Sub(now) < 3*time.Second || when.Sub(now) > 4*time.Second {
		t.Errorf("in a cool-down of 3 s: %t, %v", free, when.Sub(now))
	}
}

// TestTokensAreWaitedFor: a call that finds too few tokens left in the quota, and
// enough within a second, is refused as one to wait, and the target says when the
// first of them may come. It fails when tokens are a rate that is never waited for.
func TestTokensAreWaitedFor(t *testing.T) {
	a := target("a", "", Limits{TPM: 60_000}) // 10,000 at once, 1,000 a second
	ask := func(ms, tokens int64) (Why, time.Duration) {
		q := query(t0.Add(time.Duration(ms) * time.Millisecond))
		q.Tokens = tokens
		_, why, until := a.Try(q)
		return why, until.Sub(t0).Round(time.Millisecond)
	}
	room := func(ms int64) (bool, time.Duration) {
		free, when := a.Room(t0.Add(time.Duration(ms) * time.Millisecond))
		return free, when.Sub(t0).Round(time.Millisecond)
	}
	if why, _ := ask(0, 10_000); why != Admitted {
		t.Fatalf("the first call: %v", why)
	}
	if why, at := ask(0, 800); why != WhyFull || at != 800*time.Millisecond {
		t.Errorf("with none left: %v until %v", why, at)
	}
	if free, when := room(0); free || when != time.Millisecond {
		t.Errorf("with none left: %t, %v", free, when)
	}
	if why, at := ask(100, 2000); why != WhyRate || at != 2*time.Second {
		t.Errorf("two seconds before its time: %v until %v", why, at)
	}
	if why, at := ask(100, 500); why != WhyLarge || at != 500*time.Millisecond {
		t.Errorf("a smaller one: %v until %v", why, at)
	}
	if free, when := room(100); !free || when != 500*time.Millisecond {
		t.Errorf("with some left: %t, %v, want when the smaller one may come", free, when)
	}
	if why, at := ask(500, 800); why != WhyLarge || at != 800*time.Millisecond {
		t.Errorf("when the smaller one may come: %v until %v", why, at)
	}
	if _, when := room(500); when != 800*time.Millisecond {
		t.Errorf("then %v", when)
	}
	if why, _ := ask(800, 800); why != Admitted {
		t.Errorf("at its time: %v", why)
	}
}

// TestWhyIsKept: a refusal knows which of the targets gave which reason, and all
// reasons that others find room are ones to wait for.
func TestWhyIsKept(t *testing.T) {
	a, b := target("a", "", Limits{Concurrency: 1}), target("b", "", Limits{TPM: 60_000})
	m := &Model{Entries: []Entry{{Target: a, Weight: 1}, {Target: b, Weight: 1, Order: 1}}}
	random := func() float64 { return 0.5 }
	p := &Pass{Query: query(t0), Random: random}
	p.Tokens = 9500
	for range 2 {
		if c, r := m.Pick(p); c == nil {
			t.Fatalf("%+v", r)
		}
	}
	c, r := m.Pick(p)
	if c != nil || r.Why(a) != WhyFull || r.Why(b) != WhyRate || r.Why(target("c", "", Limits{})) != Admitted {
		t.Errorf("%+v", r)
	}
	p.Tokens = 600
	if _, r = m.Pick(p); r.Why(b) != WhyLarge || r.Full != 2 || !r.Brief() {
		t.Errorf("%+v", r)
	}
}
