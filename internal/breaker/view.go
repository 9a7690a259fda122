package breaker

import "time"

// Snapshot is the breaker as an operator sees it.
type Snapshot struct {
	Since     time.Time  `json:"since"`
	Share     float64    `json:"ramp_share"` // 1 when closed, 0 when open
	OK        int        `json:"ok"`         // verdicts in the short window
	Failed    int        `json:"failed"`
	Slow      int        `json:"slow"`
	InFlight  int        `json:"in_flight"`
	Awaiting  int        `json:"awaiting_content"`
	OpenUntil *time.Time `json:"open_until,omitempty"`
	Trips     int        `json:"cool_down_doublings"`
	Proofs    int        `json:"probes_passed"`
	Reason    string     `json:"last_trip,omitempty"`
	Forced    string     `json:"forced,omitempty"` // open or closed
}

// Snapshot reports the breaker at now.
func (b *Breaker) Snapshot(now time.Time) Snapshot {
	b.window.advance(now)
	w := &b.window.spans[short].sum
	s := Snapshot{
		Since: b.since, OK: int(w[ok]), Failed: int(w[failed]), Slow: int(w[slow]),
		InFlight: b.inflight, Awaiting: b.waiting.n,
		Trips: b.trips, Proofs: b.proofs, Reason: b.reason, Forced: forcedNames[b.forced],
	}
	switch b.phase {
	case Closed:
		s.Share = 1
	case Ramp:
		s.Share = b.share
	case Open:
		if until := b.until; !until.IsZero() {
			s.OpenUntil = &until
		}
	}
	return s
}

// Phase is the phase at now: an open breaker whose cool-down is over is
// half-open.
func (b *Breaker) Phase(now time.Time) Phase {
	if b.phase == Open && b.over(now) {
		return HalfOpen
	}
	return b.phase
}

// Reopens is when asking again makes sense; zero when now, or when nobody
// knows.
func (b *Breaker) Reopens(now time.Time) time.Time {
	switch {
	case b.phase == Open && !b.over(now):
		return b.until
	case b.probe != nil && b.phase == HalfOpen:
		return b.leaseEnd
	}
	return time.Time{}
}

// SuccessShare is the smoothed share of successes over the last 60 s,
// (ok+1)/(n+1): a target without verdicts is taken for good until it fails.
func (b *Breaker) SuccessShare(now time.Time) float64 {
	b.window.advance(now)
	w := &b.window.spans[minute].sum
	return float64(w[ok]+1) / float64(w.verdicts()+1)
}

// RecentShare is the share of successes among the last 20 verdicts of the
// last 30 s; 0 when there are none.
func (b *Breaker) RecentShare(now time.Time) float64 { return b.window.recentShare(now) }

// Answered reports that the target has given content since the router began.
func (b *Breaker) Answered() bool { return b.contents > 0 }

// Spare reports a target that still answers enough calls to be of use to those
// who have nowhere better to go.
func (b *Breaker) Spare(now time.Time) bool {
	return b.forced != ForcedOpen && b.window.recentShare(now) >= spareShare
}

// Healthy reports a target that is proven healthy: closed at full share, at
// least ten verdicts in 60 s of which nine in ten succeeded, and no capacity
// refusal for 10 s. An extra attempt at such a target is a divert.
func (b *Breaker) Healthy(now time.Time) bool {
	w := b.standing(now)
	return w != nil && w.verdicts() >= healthyMin && float64(w[ok]) >= healthyShare*float64(w.verdicts())
}

// Unblemished reports a closed target without a failure in 60 s and without a
// capacity refusal for 10 s: not proven healthy, but nothing speaks against
// it.
func (b *Breaker) Unblemished(now time.Time) bool {
	w := b.standing(now)
	return w != nil && w[failed] == 0
}

// standing is the last 60 s of a target in full use, else nil.
func (b *Breaker) standing(now time.Time) *counts {
	if b.phase != Closed || !b.capacity.IsZero() && now.Sub(b.capacity) < capacityRest {
		return nil
	}
	b.window.advance(now)
	return &b.window.spans[minute].sum
}
