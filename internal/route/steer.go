package route

import (
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
)

// Steering is what an operator has ordered of a target. The zero value but for
// Factor, which is 1 then, is nothing.
type Steering struct {
	// Drained lets no new call and no probe in. Calls in flight run on.
	Drained bool
	// DrainedUntil is when that is expected to end: it ends with another Steer.
	DrainedUntil time.Time
	// Forced holds the breaker until ForcedUntil, or until changed where that is zero.
	// Held closed, cool-downs let calls in too; limits and allowances hold as ever.
	Forced      breaker.Forced
	ForcedUntil time.Time
	// Factor multiplies the target's retry allowance.
	Factor float64
}

// Steer puts what an operator has ordered in force, in place of what was before. The
// same again changes nothing. A target that was drained for long gets its traffic
// back through the ramp.
func (t *Target) Steer(now time.Time, s Steering) {
	t.mu.Lock()
	was := t.steering
	if s == was {
		t.mu.Unlock()
		return
	}
	t.steering = s
	if s.Forced != was.Forced || !s.ForcedUntil.Equal(was.ForcedUntil) {
		t.breaker.Force(now, s.Forced, s.ForcedUntil)
	}
	if was.Drained && !s.Drained {
		t.breaker.Ease(now)
	}
	if s.Factor != was.Factor {
		t.budget.Scale(s.Factor)
	}
	moved := t.after(now)
	t.mu.Unlock()
	t.tell(moved)
	if t.freed != nil { // those who wait for it may go, or need not wait any longer
		t.freed(t)
	}
}

// held tells why an operator lets no call in, and until when. The lock is held, here
// and below.
func (t *Target) held(now time.Time) (Why, time.Time) {
	switch {
	case t.steering.Drained:
		return WhyDrained, t.steering.DrainedUntil
	case t.steering.Forced == breaker.ForcedOpen && t.forced(now):
		return WhyForced, t.steering.ForcedUntil
	}
	return Admitted, time.Time{}
}

// forced reports that the breaker is held either way.
func (t *Target) forced(now time.Time) bool {
	until := t.steering.ForcedUntil
	return t.steering.Forced != breaker.Auto && (until.IsZero() || now.Before(until))
}

// trusted reports that calls are let in whatever was seen of the target.
func (t *Target) trusted(now time.Time) bool {
	return t.steering.Forced == breaker.ForcedClosed && t.forced(now)
}

// What an operator has done to a target, as it is shown.
const (
	SteeredDrained = "drained"
	SteeredOpen    = "forced open"
	SteeredClosed  = "forced closed"
)

// steered is that in words, "" for nothing.
func (t *Target) steered(now time.Time) string {
	var words []string
	if t.steering.Drained {
		words = append(words, SteeredDrained)
	}
	switch {
	case !t.forced(now):
	case t.steering.Forced == breaker.ForcedOpen:
		words = append(words, SteeredOpen)
	default:
		words = append(words, SteeredClosed)
	}
	return strings.Join(words, ", ")
}
