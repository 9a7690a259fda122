package history

import (
	"math"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// mostNames bounds the names of each sort that a tally holds. The rest counts as
// Other.
const mostNames = 1000

// idle is how many names of a sort a tally holds on to that nothing happens to.
const idle = 2 * mostWorkloads

type (
	workloadRow = [wWidth]uint32
	targetRow   = [tWidth]uint32
)

// Tally counts facts until they are kept. A fact costs one or two look-ups in a map,
// and no allocation once its names are known. It belongs to one goroutine at a time.
type Tally struct {
	router    [rWidth]uint32
	workloads map[string]*workloadRow
	targets   map[string]*targetRow
}

// NewTally returns an empty one.
func NewTally() *Tally {
	return &Tally{workloads: map[string]*workloadRow{}, targets: map[string]*targetRow{}}
}

func find[R any](m map[string]*R, name string) *R {
	r := m[name]
	if r == nil {
		if len(m) >= mostNames {
			name = Other
			if r = m[name]; r != nil {
				return r
			}
		}
		r = new(R)
		m[name] = r
	}
	return r
}

// Request counts one finished client request.
func (t *Tally) Request(r *event.Request) {
	router, own := rOffered, wOffered
	switch {
	case r.Degraded != "":
		router, own = rDegraded, wDegraded
	case r.Class == fault.OK:
		router, own = rGoodput, wGoodput
	case theirs(r.Class) && !r.Over:
	case r.Over || r.Class == fault.Overload || r.Attempts == 0:
		router, own = rRefused, wRefused
	default:
		router, own = rFailed, wFailed
	}
	t.router[rOffered]++
	if router != rOffered {
		t.router[router]++
	}
	if r.Content > 0 {
		t.router[rContent+bucket(r.Content)]++
	}
	if r.Workload == "" { // of nobody
		return
	}
	w := find(t.workloads, r.Workload)
	w[wOffered]++
	if own != wOffered {
		w[own]++
	}
	if r.Over || r.Repeat || r.InboundAttempt > 0 {
		w[wExcess]++
	}
}

// Attempt counts one finished upstream call.
func (t *Tally) Attempt(a *event.Attempt) {
	t.router[rAttempts]++
	if a.Workload != "" {
		find(t.workloads, a.Workload)[wAttempts]++
	}
	one := find(t.targets, a.Target)
	one[tAttempts]++
	if a.Class != fault.OK && !theirs(a.Class) {
		one[tFailed]++
	}
}

// theirs says whether a class is about the caller: its request, or its leaving.
func theirs(c fault.Class) bool {
	return c == fault.Client || c == fault.ContentPolicy || c == fault.Canceled
}

// Breaker notes that a target's breaker was in a phase: 0 closed, 1 ramp, 2
// half-open, 3 open.
func (t *Tally) Breaker(target string, phase int) {
	highest(&find(t.targets, target)[tBreaker], int64(phase))
}

// Reading is what is there at a moment.
type Reading struct {
	InFlight, Queued int64
	Memory           int64 // bytes
	Outages          int   // open
	Workloads        []string
	Targets          []TargetReading
}

// TargetReading is one target's.
type TargetReading struct {
	Name     string
	InFlight int
	Breaker  int
}

// Sample notes what is there now; the highest of a step is kept.
func (t *Tally) Sample(r Reading) {
	highest(&t.router[rInFlight], r.InFlight)
	highest(&t.router[rQueued], r.Queued)
	highest(&t.router[rMemory], (r.Memory+1023)/1024)
	highest(&t.router[rOutages], int64(r.Outages))
	for _, name := range r.Workloads {
		find(t.workloads, name)[wSeen] = 1
	}
	for _, one := range r.Targets {
		row := find(t.targets, one.Name)
		highest(&row[tInFlight], int64(one.InFlight))
		highest(&row[tBreaker], int64(one.Breaker))
	}
}

// highest keeps a value one higher than it is.
func highest(cell *uint32, v int64) {
	*cell = max(*cell, uint32(min(max(v, 0), math.MaxUint32-1))+1)
}

// clear forgets what was counted. Names that nothing happened to are forgotten where
// there are many.
func (t *Tally) clear() {
	clear(t.router[:])
	forget(t.workloads)
	forget(t.targets)
}

func forget[R comparable](m map[string]*R) {
	var none R
	many := len(m) > idle
	for name, r := range m {
		if many && *r == none {
			delete(m, name)
		}
		*r = none
	}
}
