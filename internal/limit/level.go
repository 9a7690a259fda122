package limit

import (
	"math"
	"time"
)

// Level is how much of a rate is left.
type Level struct {
	PerMinute int64         // the rate; 0 when there is none
	Left      int64         // units that may be taken at once, now
	Reset     time.Duration // until the bucket is full again, never negative
}

// Level tells how much is left at now. A nil GCRA has no rate.
func (g *GCRA) Level(now time.Time) Level {
	if g == nil {
		return Level{Left: math.MaxInt64}
	}
	t := g.at(now)
	owed := max(g.tat, t) - t
	left := int64(0)
	if free := g.full() - owed; free > 0 {
		left = min(g.burst, int64(float64(free)*float64(g.perMinute)/float64(time.Minute)))
		for left < g.burst && g.cost(left+1) <= free { // what rounding took
			left++
		}
		for left > 0 && g.over(owed, left) > 0 {
			left--
		}
	}
	return Level{PerMinute: g.perMinute, Left: left, Reset: time.Duration(owed)}
}
