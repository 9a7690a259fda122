package attempt

import (
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// step is what follows a finished attempt.
type step uint8

const (
	stop      step = iota // the outcome stands
	elsewhere             // another candidate
	again                 // the same target once more, then others
)

// plan is the retry decision of one request: pure, fed with what happened.
type plan struct {
	limit    int  // attempts at most
	made     int  // attempts made
	retried  bool // the one repeat at the same target is spent
	policy   bool // a content-policy fallback is configured and unused
	deadline time.Time
}

// next decides after an attempt ended with v at now. committed says that
// content has reached the client; fresh says that the failure was a dead
// connection kept from before, or a token that has been renewed, so that the
// same target may simply be asked again.
func (p *plan) next(now time.Time, v fault.Verdict, committed, fresh bool) step {
	switch {
	case committed, p.made >= p.limit, !now.Before(p.deadline):
		return stop
	}
	switch v.Class {
	case fault.Outage:
		if fresh && !p.retried {
			p.retried = true
			return again
		}
		return elsewhere
	case fault.Capacity, fault.Account, fault.Credential:
		return elsewhere
	case fault.ContentPolicy:
		if p.policy {
			p.policy = false
			return elsewhere
		}
	}
	return stop
}
