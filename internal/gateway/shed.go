package gateway

import (
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// Shedding is which requests an operator has refused, by their priority: each until its
// time, which is zero for those that are let in. It is immutable.
type Shedding struct {
	Until []time.Time
}

// TurnAway refuses requests from now on; nil refuses none.
func (g *Gateway) TurnAway(s *Shedding) { g.shedding.Store(s) }

// wanted refuses a request whose priority is shed, before a byte of its body is read.
func (x *inbound) wanted() bool {
	s := x.shedding.Load()
	if s == nil {
		return true
	}
	p := x.workload.Priority()
	if int(p) >= len(s.Until) || !x.start.Before(s.Until[p]) {
		return true
	}
	x.refuse(fault.Verdict{Class: fault.Overload, Reason: fault.ReasonShed, Wait: s.Until[p].Sub(x.start), HasWait: true},
		"Requests of priority "+p.String()+" are refused for now, as an operator has ordered. This one was not read.")
	return false
}
