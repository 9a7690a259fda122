package breaker

import "time"

const (
	seconds = 128 // buckets kept, one a second
	kept    = 64  // last verdicts kept one by one
	recents = 20  // of these, the ones behind the last-resort rule
	// recentFor is how long such a verdict speaks for the target.
	recentFor = 30 * time.Second
)

// count is what is counted of a second.
type count uint8

const (
	ok count = iota
	failed
	slow    // calls that reached the age of slow, whatever became of them
	left    // those of them that ended without a verdict
	content // first contents
	kinds

	none = kinds // no verdict
)

type counts [kinds]uint32

func (c *counts) verdicts() int { return int(c[ok] + c[failed]) }

// The spans over which sums are kept.
const (
	short  = iota // Config.Window
	long          // Config.LongWindow
	last5         // the ramp's look at the present
	minute        // for the picker: the only one that looks behind a change of phase
	spans
)

type span struct {
	length int64 // seconds
	sum    counts
}

// window holds the last two minutes by the second, with running sums, and the
// last few verdicts one by one.
type window struct {
	sec     int64  // the newest second
	from    int64  // the second of the last reset
	base    counts // what that second held before it
	buckets [seconds]counts
	spans   [spans]span

	recent [kept]struct {
		id    uint64 // of the call; 0 is none
		at    time.Time
		ok    bool
		ended bool // the verdict is final
	}
	next uint8
}

func (w *window) bucket(sec int64) *counts { return &w.buckets[uint64(sec)%seconds] }

// resize takes new lengths and sums up afresh.
func (w *window) resize(cfg Config) {
	for i, n := range [spans]int64{short: int64(cfg.Window / time.Second), long: int64(cfg.LongWindow / time.Second), last5: 5, minute: 60} {
		w.spans[i] = span{length: n}
		for sec := w.sec - n + 1; sec <= w.sec; sec++ {
			w.shift(i, sec, 1)
		}
	}
}

// shift adds a second to a sum, sign 1, or subtracts it, sign -1 modulo 2^32.
func (w *window) shift(i int, sec int64, sign uint32) {
	if i != minute && sec < w.from {
		return
	}
	b := w.bucket(sec)
	for k := range b {
		n := b[k]
		if i != minute && sec == w.from {
			n -= w.base[k]
		}
		w.spans[i].sum[k] += sign * n
	}
}

// advance moves on to the second of now. Time that goes back, as it may
// between callers who wait for the same lock, counts in the newest second.
func (w *window) advance(now time.Time) {
	sec := now.Unix()
	if sec <= w.sec {
		return
	}
	if sec-w.sec >= seconds {
		w.buckets = [seconds]counts{}
		for i := range w.spans {
			w.spans[i].sum = counts{}
		}
		w.sec = sec
		return
	}
	for w.sec < sec {
		w.sec++
		for i := range w.spans {
			w.shift(i, w.sec-w.spans[i].length, ^uint32(0))
		}
		*w.bucket(w.sec) = counts{}
	}
}

// add counts one more and returns the second it is counted in.
func (w *window) add(now time.Time, k count) int64 {
	w.advance(now)
	w.bucket(w.sec)[k]++
	for i := range w.spans {
		w.spans[i].sum[k]++
	}
	return w.sec
}

// take takes back one that was added in a second since the last reset.
func (w *window) take(sec int64, k count) {
	if sec <= w.sec-seconds {
		return
	}
	w.bucket(sec)[k]--
	for i := range w.spans {
		if sec > w.sec-w.spans[i].length {
			w.spans[i].sum[k]--
		}
	}
}

// reset makes the rules begin anew; the buckets stay.
func (w *window) reset(now time.Time) {
	w.advance(now)
	w.from, w.base = w.sec, *w.bucket(w.sec)
	for i := range w.spans {
		if i != minute {
			w.spans[i].sum = counts{}
		}
	}
}

// contents is the number of first contents in the ten seconds up to t.
func (w *window) contents(t time.Time) (n int) {
	for sec := max(t.Unix()-9, w.sec-seconds+1); sec <= min(t.Unix(), w.sec); sec++ {
		n += int(w.bucket(sec)[content])
	}
	return n
}

// remember notes a call's verdict among the recent ones, in place of its
// earlier one.
func (w *window) remember(now time.Time, c *call, ok bool) {
	if w.recent[c.slot].id != c.id {
		c.slot = w.next
		w.next = (w.next + 1) % kept
	}
	r := &w.recent[c.slot]
	r.id, r.at, r.ok, r.ended = c.id, now, ok, false
}

// end notes that a call's verdict is final.
func (w *window) end(c *call) {
	if r := &w.recent[c.slot]; r.id == c.id {
		r.ended = true
	}
}

// charge notes n final failures besides a call's own.
func (w *window) charge(now time.Time, c *call, n int) {
	for range n {
		r := &w.recent[w.next]
		w.next = (w.next + 1) % kept
		r.id, r.at, r.ok, r.ended = c.id, now, false, true
	}
}

// age is how long ago a call was given the verdict it has.
func (w *window) age(now time.Time, c *call) time.Duration {
	if r := &w.recent[c.slot]; r.id == c.id {
		return now.Sub(r.at)
	}
	return 0
}

// run is how many of the newest verdicts, of calls from first on, are final
// failures in a row. What is not final yet may say nothing: a call that is
// merely slow so far, and a stream younger than the one that has just broken
// at age.
func (w *window) run(now time.Time, first uint64, age time.Duration) (run int) {
	for i := range kept {
		switch r := &w.recent[(int(w.next)-1-i+kept)%kept]; {
		case r.id == 0:
		case r.id < first, r.ok && (r.ended || now.Sub(r.at) >= age):
			return run
		case r.ended:
			run++
		}
	}
	return run
}

// void forgets the verdicts that are not final and were given at a time.
func (w *window) void(at time.Time) {
	for i := range w.recent {
		if r := &w.recent[i]; !r.ended && r.at.Equal(at) {
			r.id = 0
		}
	}
}

func (w *window) forget(c *call) {
	if r := &w.recent[c.slot]; r.id == c.id {
		r.id = 0
	}
}

// recentShare is the share of successes among the verdicts behind the
// last-resort rule; 0 when there are none.
func (w *window) recentShare(now time.Time) float64 {
	good, n := w.last(now, recents, recentFor)
	return float64(good) / float64(max(n, 1))
}

// last counts the last most verdicts that are not older than old, and the
// successes among them.
func (w *window) last(now time.Time, most int, old time.Duration) (good, n int) {
	for i := range most {
		r := &w.recent[(int(w.next)-1-i+kept)%kept]
		if r.id == 0 || now.Sub(r.at) > old {
			continue
		}
		n++
		if r.ok {
			good++
		}
	}
	return good, n
}
