package limit

import (
	"math"
	"time"
)

// roomFor is the time constant of the rate of answers.
const roomFor = 2 * time.Second

// Room tells when the calls that wait for a target are more than it answers
// without queueing them. By Little's law as many wait as are answered in a
// second, times the seconds that each takes when there is no queue: what waits
// beyond that, and beyond chance, waits in the target's own queue. That shows
// before the target refuses anything.
//
// How long a call takes is learned, by class, from calls that began with no
// more than the expected number before them, or the queue would teach what is
// usual. A target that answers faster than ever has as much room as it shows:
// the expected number follows within seconds, from nothing too. After seconds
// without an answer nothing is known: the target was idle, or the breaker will
// see why it is not. The zero value is ready.
type Room struct {
	work  float64 // usual seconds of the answers given, decaying
	at    time.Time
	usual [roomClasses]usual
	known bool
}

const (
	roomClasses = 16
	roomMemory  = 50 // calls that a usual time averages over
	roomStale   = 3  // times roomFor without an answer, behind which nothing is known
	roomNoise   = 2  // standard deviations that are chance
	roomLeast   = 2  // calls that any target may have waiting
)

type usual struct {
	seconds float64
	n       float64
}

// Light reports that a call which begins behind so many waiting ones will show
// how long the target takes by itself.
func (r *Room) Light(now time.Time, waiting int) bool {
	if !r.known {
		return waiting < roomLeast
	}
	return float64(waiting) <= r.expected(now)
}

// Crowded reports that with so many calls waiting another one would queue.
func (r *Room) Crowded(now time.Time, waiting int) bool {
	if !r.known || now.Sub(r.at) >= roomStale*roomFor {
		return false
	}
	e := r.expected(now)
	return float64(waiting) >= e+roomNoise*math.Sqrt(e)+roomLeast
}

// Answered notes a call's first content after so long a wait.
func (r *Room) Answered(now time.Time, class uint8, waited time.Duration, light bool) {
	u := &r.usual[class%roomClasses]
	s := max(waited, 0).Seconds()
	if light || !r.known {
		u.n = min(u.n+1, roomMemory)
		u.seconds += (s - u.seconds) / u.n
		r.known = true
	}
	r.work = r.decayed(now) + u.seconds
	if now.After(r.at) {
		r.at = now
	}
}

// expected is how many calls wait when none is queued.
func (r *Room) expected(now time.Time) float64 { return r.decayed(now) / roomFor.Seconds() }

func (r *Room) decayed(now time.Time) float64 {
	return r.work * math.Exp(-max(now.Sub(r.at), 0).Seconds()/roomFor.Seconds())
}
