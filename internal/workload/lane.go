package workload

import (
	"time"

	"github.com/hourthree/hourthree/internal/repeat"
)

// Lane is how a workload's requests are let through.
type Lane string

// The lanes.
const (
	Normal     Lane = "normal"
	Quarantine Lane = "quarantine"
)

// LaneShare is the share of concurrency and memory that a quarantined workload
// has where nothing else is said (algorithm notes, section 7).
const LaneShare = 0.05

// Placement is the lane of a workload, since when, and why.
type Placement struct {
	Lane Lane `json:"name"`
	// Share of concurrency and memory in quarantine, 0 to 1; 0 lets nothing in.
	Share float64    `json:"share,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// By is who moved it; ByRule says that the rule did, whatever an operator is
	// called.
	By     string `json:"by,omitempty"`
	ByRule bool   `json:"by_rule,omitempty"`
	Why    string `json:"why,omitempty"`
	// Demand is distinct requests a second when it was moved.
	Demand float64 `json:"demand,omitempty"`
}

// Limit is the share of concurrency and memory in quarantine, and 0 outside.
func (p Placement) Limit() float64 {
	if p.Lane != Quarantine {
		return 0
	}
	return p.Share
}

// Traffic is what came in during the last minute.
func (w *Workload) Traffic(now time.Time) repeat.Traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.repeats.window.Traffic(now)
}

// Move puts the workload into a lane, for its next request on. It returns the
// placement before.
func (w *Workload) Move(p Placement) (before Placement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.lane = w.lane, p
	return before
}

// Release moves the workload out of quarantine and forgets what came in before,
// which the rule would take as evidence once more. It returns the placement before.
func (w *Workload) Release() (before Placement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.lane
	w.release()
	return before
}

func (w *Workload) release() {
	if w.lane.Lane == Quarantine {
		w.repeats.window = repeat.Window{}
	}
	w.lane = Placement{Lane: Normal}
}

// Replace does either for whoever has seen the workload at before, and reports
// false when somebody else has moved it since.
func (w *Workload) Replace(before, p Placement) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lane != before {
		return false
	}
	if p.Lane == Quarantine {
		w.lane = p
	} else {
		w.release()
	}
	return true
}

// Placement is the lane that the workload is in.
func (w *Workload) Placement() Placement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lane
}
