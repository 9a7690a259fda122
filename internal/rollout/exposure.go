package rollout

import "github.com/hourthree/hourthree/internal/event"

// Exposure is who is served by which version. It is immutable: requests read it
// while the rollout makes the next.
type Exposure struct {
	whole   map[string]bool // workloads that the new version serves
	split   string          // the one that it serves in part, "" for none
	part    float64         // of its requests
	regions map[string]bool // whose targets are the new version's, nil for all
}

// Arm is the version that serves a request of a workload; u is drawn from [0,1) for
// each request. A request keeps its arm to its end.
func (e *Exposure) Arm(workload string, u float64) event.Arm {
	switch {
	case e == nil:
		return event.NoArm
	case e.whole[workload], workload == e.split && u < e.part:
		return event.Candidate
	}
	return event.Control
}

// Reaches reports that calls at targets of a region see the new version.
func (e *Exposure) Reaches(region string) bool { return e.regions == nil || e.regions[region] }
