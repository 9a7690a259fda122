package attempt

import (
	"slices"
	"time"
)

// gapsJudged is how many gaps a median is taken of: tool calls and bursts of
// speculation are then not taken for a change of pace (algorithm notes, 4.2).
const gapsJudged = 24

// gaps is how far apart the content of a stream comes, read by read.
type gaps struct {
	last time.Time
	of   [gapsJudged]time.Duration
	n    int
}

// add notes content at now. With each full set it returns the median.
func (g *gaps) add(now time.Time) (median time.Duration, ok bool) {
	last := g.last
	g.last = now
	if last.IsZero() {
		return 0, false
	}
	g.of[g.n] = now.Sub(last)
	if g.n++; g.n < gapsJudged {
		return 0, false
	}
	g.n = 0
	slices.Sort(g.of[:])
	return g.of[gapsJudged/2], true
}
