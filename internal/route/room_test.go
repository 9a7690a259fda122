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
	d := target("d", "", Limits{}) // open
	for c, _, _ := d.Try(query(now)); c != nil; c, _, _ = d.Try(query(now)) {
		c.Settle(now, Result{Verdict: fault.Verdict{Class: fault.Outage, Breaker: true}, Tokens: -1})
	}
	if free, when := d.Room(now); !free || when != d.breaker.Reopens(now) || when.IsZero() {
		t.Errorf("open: %t, %v", free, when.Sub(now))
	}
}
