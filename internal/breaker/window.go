package breaker

import "time"

const (
	seconds = 128 // buckets kept, one a second: the long window and a little
	kept    = 64  // last verdicts kept one by one
	recents = 32  // of these, those behind the last-resort rule
	// recentFor is how long such a verdict speaks for the target.
	recentFor = 30 * time.Second
)

// bucket counts the verdicts reached within one second.
type bucket struct {
	sec                       int64
	ok, failed, slow, content int
}

func (b bucket) verdicts() int { return b.ok + b.failed }

// window holds the last two minutes by the second, and the last few verdicts
// one by one.
type window struct {
	buckets [seconds]bucket
	recent  [kept]struct {
		at time.Time
		ok bool
	}
	next int
}

func (w *window) at(now time.Time) *bucket {
	sec := now.Unix()
	b := &w.buckets[uint64(sec)%seconds]
	if b.sec != sec {
		*b = bucket{sec: sec}
	}
	return b
}

// sum adds the seconds after from up to and including to.
func (w *window) sum(from, to int64) (s bucket) {
	from = max(from, to-seconds+1)
	for sec := from + 1; sec <= to; sec++ {
		if b := &w.buckets[uint64(sec)%seconds]; b.sec == sec {
			s.ok, s.failed = s.ok+b.ok, s.failed+b.failed
			s.slow, s.content = s.slow+b.slow, s.content+b.content
		}
	}
	return s
}

func (w *window) remember(now time.Time, ok bool) {
	w.recent[w.next].at, w.recent[w.next].ok = now, ok
	w.next = (w.next + 1) % kept
}

func (w *window) success(now time.Time, c *call) {
	w.amend(c)
	w.at(now).ok++
	w.remember(now, true)
}

// failure counts a failed call once: one that was slow before has been
// counted already.
func (w *window) failure(now time.Time, c *call) {
	if !c.judged {
		w.at(now).failed++
	}
	w.remember(now, false)
}

// slow counts a call that should have answered by now as failed for the time
// being.
func (w *window) slow(now time.Time) {
	b := w.at(now)
	b.slow++
	b.failed++
}

// amend takes back the failure of a slow verdict: the call has answered, or
// ended in a way that says nothing. The slow verdict itself stands.
func (w *window) amend(c *call) {
	if !c.judged {
		return
	}
	if b := &w.buckets[uint64(c.judgedSec)%seconds]; b.sec == c.judgedSec && b.failed > 0 {
		b.failed--
	}
}

// recentShare is the share of successes among the verdicts behind the
// last-resort rule.
func (w *window) recentShare(now time.Time) float64 { return w.lastShare(now, recents, recentFor) }

// lastShare is the share of successes among the last most verdicts that are
// not older than old; 0 when there are none.
func (w *window) lastShare(now time.Time, most int, old time.Duration) float64 {
	var n, ok float64
	for i := range min(most, kept) {
		r := &w.recent[(w.next-1-i+2*kept)%kept]
		if !r.at.IsZero() && now.Sub(r.at) <= old {
			n++
			if r.ok {
				ok++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return ok / n
}
