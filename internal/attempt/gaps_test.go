package attempt

import (
	"testing"
	"time"
)

// TestGapsMedian: one pause among many tokens is not their pace, and fewer than
// a full set say nothing.
func TestGapsMedian(t *testing.T) {
	var g gaps
	now := time.Unix(1_700_000_000, 0)
	for i := range 2*gapsJudged + 1 {
		step := 20 * time.Millisecond
		if i%gapsJudged == 5 {
			step = 30 * time.Second // a tool
		}
		now = now.Add(step)
		median, ok := g.add(now)
		if ok != (i > 0 && i%gapsJudged == 0) || ok && median != 20*time.Millisecond {
			t.Fatalf("gap %d: %v %v", i, median, ok)
		}
	}
}
