package limit

import (
	"math"
	"time"
)

// Daily is a budget for a day of UTC: reserved by estimate, settled to what was
// really spent. What was reserved on a day that is over is no longer counted.
// The zero value limits nothing.
type Daily struct {
	// Limit is what may be spent in a day; 0 or less is no limit. It may be
	// changed at any time.
	Limit int64

	day  int64 // since 1970
	used int64 // spent and reserved on that day
	held int64 // of that, reserved
}

// settling is the wait advised where what is reserved stands in the way: most
// of it is usually given back.
const settling = time.Second

const daySeconds = 24 * 60 * 60

// Day is the number of the day that now is in, in UTC.
func Day(now time.Time) int64 {
	s := now.Unix()
	day := s / daySeconds
	if s%daySeconds < 0 {
		day--
	}
	return day
}

// Peek tells whether anything is left; if not, how long to wait.
func (d *Daily) Peek(now time.Time) (wait time.Duration, ok bool) {
	if d.Limit <= 0 {
		return 0, true
	}
	if d.turn(now); d.used < d.Limit {
		return 0, true
	}
	return d.wait(now, 1), false
}

// wait is how long n has no room: until the next day, unless what is reserved
// may give it room before.
func (d *Daily) wait(now time.Time, n int64) time.Duration {
	if d.used-d.held+n <= d.Limit {
		return settling
	}
	return untilMidnight(now)
}

// Take reserves n, or returns how long to wait. Where nothing
// is used yet it reserves more than a whole day's budget too: a large request
// is not to be refused for ever. A negative n counts as 0.
func (d *Daily) Take(now time.Time, n int64) (wait time.Duration, ok bool) {
	d.turn(now)
	n = bounded(n)
	if d.Limit > 0 && d.used > 0 && (d.used >= d.Limit || d.used+n > d.Limit) {
		return d.wait(now, n), false
	}
	d.used, d.held = d.used+n, d.held+n
	return 0, true
}

// Settle replaces what was reserved on a day by what was spent.
func (d *Daily) Settle(now time.Time, day, reserved, spent int64) {
	d.turn(now)
	if day == d.day {
		d.held = max(0, d.held-bounded(reserved))
		d.used = min(max(0, d.used-bounded(reserved)+bounded(spent)), math.MaxInt64/4)
	}
}

// Used is what was spent and is reserved today.
func (d *Daily) Used(now time.Time) int64 {
	d.turn(now)
	return d.used
}

// turn begins a new day. A clock that was set back begins none.
func (d *Daily) turn(now time.Time) {
	if today := Day(now); today > d.day {
		d.day, d.used, d.held = today, 0, 0
	}
}

// bounded keeps sums within int64.
func bounded(n int64) int64 { return min(max(0, n), math.MaxInt64/4) }

func untilMidnight(now time.Time) time.Duration {
	return time.Unix((Day(now)+1)*daySeconds, 0).Sub(now.Round(0)) // by the wall clock, as the day is
}
