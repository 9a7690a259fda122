package gateway

import (
	"sync/atomic"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/rollout"
)

// Rollout is a configuration on its way beside the one in force.
type Rollout struct {
	// Next serves whom Exposure says. Another one takes its place when the regions
	// that are reached change: a request keeps the one that it was given.
	Next     atomic.Pointer[Snapshot]
	Exposure atomic.Pointer[rollout.Exposure]
}

// Arms counts what is held for the requests of each version while a rollout runs.
type Arms struct {
	requests, bytes [event.Candidate + 1]atomic.Int64
}

// Held is the number of requests in flight of an arm and the bytes that they hold.
func (a *Arms) Held(arm event.Arm) (requests, bytes int64) {
	return a.requests[arm].Load(), a.bytes[arm].Load()
}

// Arms is what is held by arm.
func (g *Gateway) Arms() *Arms { return &g.arms }

// choose finds the version that serves the request, once. Who calls is looked up in
// the configuration in force, so that its workloads decide. A key that only the new
// one knows is served by it; one that the new one does not know any more stays with
// the one in force until the rollout is through.
func (x *inbound) choose(shown string) {
	next := x.Rollout.Next.Load()
	key := next.Directory.Identify(shown)
	if x.key == nil && key == nil {
		return // refused, by neither more than by the other
	}
	x.arm = event.Candidate
	if x.key != nil {
		x.arm = x.Rollout.Exposure.Load().Arm(x.key.Workload.Name(), x.Random())
		if key == nil {
			x.arm = event.Control
		}
	}
	if key == nil || x.arm != event.Candidate {
		return
	}
	x.key, x.Snapshot = key, next
	x.until()
}

// hold counts the request for its arm, and what its lease holds from now on.
func (x *inbound) hold() {
	if x.arm == event.NoArm {
		return
	}
	x.held = true
	x.arms.requests[x.arm].Add(1)
	x.ticket.Lease().CountIn(&x.arms.bytes[x.arm])
}

// release takes it out again, once its lease has been.
func (x *inbound) release() {
	if x.held {
		x.arms.requests[x.arm].Add(-1)
	}
}
