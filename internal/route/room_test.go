package route

import (
	"testing"
	"time"
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
