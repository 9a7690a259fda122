package detect

import (
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// TestClockSetBack: the detectors that compare windows see again, minutes after the
// clock was set back by hours, and nothing is verified for it.
func TestClockSetBack(t *testing.T) {
	r := newRig(t, clock(20, 0))
	well := func() { r.ask("w", "m", "a/m", 10, 0, fault.Outage) }
	r.run(40*time.Minute, well)
	r.run(2*time.Minute, func() { r.ask("w", "m", "a/m", 10, 1, fault.Outage) })
	r.now = r.now.Add(-6 * time.Hour)
	r.run(30*time.Second, func() {})
	for _, o := range r.d.Outages() {
		if o.State == Verified {
			t.Error("verified by the clock")
		}
	}
	r.run(40*time.Minute, well)
	wrong := r.now
	r.run(5*time.Minute, func() {
		well()
		r.repeat("w", "m", 60)
	})
	if _, ok := r.first(wrong, isDetector(In, Subject{})); !ok {
		t.Error("amplification is not noticed")
	}
}
