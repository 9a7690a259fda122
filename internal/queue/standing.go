package queue

import "time"

// Standing load: more comes than can be served, and every item waits in line
// for nearly as long as it may. First come, first served then means that each is
// served just before its caller gives up, or just after. Serving the newest
// first, and the rest not at all, serves as many and serves them fresh.
//
// Load stands at a flow when for standingFor every item that was dispatched or
// expired had waited longer than threshold: the shortest wait is what tells a
// standing queue from a burst. It is told for each flow of a class, so that one
// which has too much does not reorder or shorten the wait of another. While it
// stands the newest of the flow is served first, and an interactive newcomer
// waits for no longer than shortBound. It ends when nobody of the flow waits or
// when for standingFor none has expired: under the new order short waits say
// nothing any more.
//
// Batch work waits by design, and its order is never changed.
const (
	standingFor       = time.Second
	standingThreshold = 200 * time.Millisecond
	shortBound        = 100 * time.Millisecond
)

// threshold is the wait that is long: 200 ms, or half of what the class may wait
// where that is less, for nobody waits longer than it may.
func (c Config) threshold(p Priority) time.Duration {
	return min(standingThreshold, c.Bound(p)/2)
}

// standing is what a flow knows of its load.
type standing struct {
	stands bool
	since  time.Time // from when on all waited long, zero for not; or when one last expired, while load stands
}

// observe takes note that one was dispatched or expired after such a wait.
func (f *flow) observe(now time.Time, c Config, waited time.Duration, expired bool) {
	l := &f.load
	switch {
	case f.priority == Batch:
	case l.stands && expired:
		l.since = now
	case l.stands:
		if now.Sub(l.since) >= standingFor {
			*l = standing{}
		}
	case waited <= c.threshold(f.priority):
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = now
	case now.Sub(l.since) >= standingFor:
		*l = standing{stands: true, since: now}
	}
}

// bound is how long a newcomer of the flow waits at most.
func (q *Queue) bound(p Priority, f *flow) time.Duration {
	bound := q.config.Bound(p)
	if f.load.stands && p == Interactive {
		return min(shortBound, q.config.threshold(p))
	}
	return bound
}
