package detect

import (
	"fmt"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// What a caller brings in on top of its requests is no evidence of how they go.
func TestTallySortsRequests(t *testing.T) {
	y := NewTally(10)
	for _, r := range []event.Request{
		{Class: fault.OK}, {Class: fault.Outage}, {Class: fault.Client}, {Class: fault.Canceled},
		{Class: fault.Outage, Repeat: true}, {Class: fault.Outage, InboundAttempt: 2}, {Class: fault.Capacity, Over: true, Repeat: true},
	} {
		r.Workload, r.Model = "w", "m"
		y.Request(&r)
	}
	y.Request(&event.Request{Model: "m", Class: fault.Client}) // of nobody
	c := y.requests[requestKey{"w", "m"}]
	if len(y.requests) != 1 || c.Distinct() != 4 || c.Work() != 2 || c.Bad() != 1 || c.Repeats != 2 || c.Over != 1 || c.Excess() != 3 {
		t.Errorf("%d names, %+v", len(y.requests), *c)
	}
}

// BenchmarkTick is what a second costs with as many series as there may be, in an
// outage.
func BenchmarkTick(b *testing.B) {
	c := Default()
	d, y, now := New(c), NewTally(c.MaxSeries), clock(8, 0)
	targets := map[string]Place{}
	for i := range 50 {
		targets[fmt.Sprint("t", i)] = Place{Domain: fmt.Sprint("d", i%10)}
	}
	d.Use(Topology{Targets: targets})
	b.ReportAllocs()
	for range b.N {
		for w := range 200 {
			name, target := fmt.Sprint("w", w), fmt.Sprint("t", w%50)
			for k := range 3 {
				class := fault.OK
				if k == 0 && w%2 == 0 {
					class = fault.Outage
				}
				y.Request(&event.Request{Workload: name, Model: fmt.Sprint("m", w%20), Class: class, Attempts: 1})
				y.Attempt(&event.Attempt{Workload: name, Target: target, Class: class})
			}
		}
		now = now.Add(time.Second)
		d.Tick(now, y)
	}
}

// TestShedIsNoOutage: what an operator refuses says nothing of the service.
func TestShedIsNoOutage(t *testing.T) {
	tally := NewTally(10)
	for range 50 {
		tally.Request(&event.Request{Workload: "nightly", Model: "m", Class: fault.Overload, Reason: fault.ReasonShed})
	}
	if len(tally.requests) != 0 {
		t.Errorf("%v", tally.requests)
	}
}
