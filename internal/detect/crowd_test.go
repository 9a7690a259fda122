package detect

import (
	"fmt"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// TestManyFindings: an outage with more findings than are kept is not called
// verified while the one of them that was found first is still found.
func TestManyFindings(t *testing.T) {
	r := newRig(t, clock(8, 0))
	const targets = 120
	feed := func(failing func(i int) bool) func() {
		return func() {
			for i := range targets {
				class := fault.OK
				if failing(i) {
					class = fault.Outage
				}
				r.one("w", "m", fmt.Sprintf("t%03d", i), class)
			}
		}
	}
	r.run(10*time.Minute, feed(func(int) bool { return false }))
	r.run(time.Minute, feed(func(i int) bool { return i == 0 }))
	r.run(2*time.Minute, feed(func(int) bool { return true }))
	r.run(30*time.Minute, feed(func(i int) bool { return i == 0 }))
	for _, o := range r.d.Outages() {
		if o.State == Verified {
			t.Errorf("%s is verified, and t000 fails every call", o.ID)
		}
	}
	r.run(30*time.Minute, feed(func(int) bool { return false }))
	if o := r.d.Outages(); r.d.Open() != 0 || len(o) == 0 || o[0].State != Verified {
		t.Errorf("not verified: %d open", r.d.Open())
	}
}

// TestLoadOfEveryWorkload: a workload that made a tenth of the traffic has to be
// back, also where each of its models had less, and where more pairs of workload
// and model were there than are kept.
func TestLoadOfEveryWorkload(t *testing.T) {
	for _, c := range []struct {
		name         string
		models, each int // of the workload that stays away
		small        int // others, with little traffic, that were there before
	}{{"over many models", 20, 2, 0}, {"behind many small ones", 1, 40, 80}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, clock(8, 0))
			top := Topology{Targets: map[string]Place{"a/m": {Domain: "d"}}, Models: map[string][]string{}}
			for i := range c.models {
				top.Models[fmt.Sprint("m", i)] = []string{"a/m"}
			}
			r.d.Use(top)
			feed := func(class fault.Class, away bool) func() {
				second := 0
				return func() {
					if second++; second%5 == 0 {
						for i := range c.small {
							r.one(fmt.Sprint("small", i), "m0", "a/m", class)
						}
					}
					for range 40 {
						r.one("stays", "m0", "a/m", class)
					}
					for i := range c.models {
						for range c.each {
							if !away {
								r.one("gone", fmt.Sprint("m", i), "a/m", class)
							}
						}
					}
				}
			}
			if c.small > 0 {
				r.run(time.Minute, func() {
					for i := range c.small {
						r.one(fmt.Sprint("small", i), "m0", "a/m", fault.OK)
					}
				})
			}
			r.run(10*time.Minute, feed(fault.OK, false))
			r.run(2*time.Minute, feed(fault.Outage, true))
			r.run(time.Hour, feed(fault.OK, true))
			for _, o := range r.d.Outages() {
				if o.State == Verified {
					t.Errorf("%s is verified without the load of a workload: %s", o.ID, o.Words)
				}
			}
			r.run(time.Hour, feed(fault.OK, false))
			if n := r.d.Open(); n != 0 {
				t.Errorf("%d open with all of the load back", n)
			}
		})
	}
}
