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
}

// Snapshot reports the breaker at now.
func (b *Breaker) Snapshot(now time.Time) Snapshot {
	sec := now.Unix()
	w := b.window.sum(sec-int64(b.cfg.Window/time.Second), sec)
	s := Snapshot{Since: b.since, OK: w.ok, Failed: w.failed, Slow: w.slow, InFlight: b.inflight, Awaiting: b.waiting.n, Trips: b.trips, Proofs: b.proofs, Reason: b.reason}
	switch b.phase {
	case Closed:
		s.Share = 1
	case Ramp:
		s.Share = b.share
	case Open:
		until := b.until
		s.OpenUntil = &until
	}
	return s
}

// SuccessShare is the smoothed share of successes over the last 60 s,
// (ok+1)/(n+1): a target without verdicts is taken for good until it fails.
func (b *Breaker) SuccessShare(now time.Time) float64 {
	w := b.window.sum(now.Unix()-healthyIn, now.Unix())
	return float64(w.ok+1) / float64(w.verdicts()+1)
}

// RecentShare is the share of successes among the last 32 verdicts of the
// last 30 s; 0 when there are none.
func (b *Breaker) RecentShare(now time.Time) float64 { return b.window.recentShare(now) }

// Unblemished reports a closed target without a failure in 60 s and without a
// capacity refusal for 10 s: not proven healthy, but nothing speaks against it.
func (b *Breaker) Unblemished(now time.Time) bool {
	if b.phase != Closed || !b.capacity.IsZero() && now.Sub(b.capacity) < 10*time.Second {
		return false
	}
	return b.window.sum(now.Unix()-healthyIn, now.Unix()).failed == 0
}

// Healthy reports a target that is proven healthy: closed at full share, at
// least ten verdicts in 60 s of which nine in ten succeeded, and no capacity
// refusal for 10 s. An extra attempt at such a target is a divert.
func (b *Breaker) Healthy(now time.Time) bool {
	if b.phase != Closed || !b.capacity.IsZero() && now.Sub(b.capacity) < 10*time.Second {
		return false
	}
	w := b.window.sum(now.Unix()-healthyIn, now.Unix())
	return w.verdicts() >= 10 && float64(w.ok) >= 0.9*float64(w.verdicts())
}
