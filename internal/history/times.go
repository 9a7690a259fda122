package history

import (
	"math"
	"time"
)

// The times to the first content are counted in buckets, each a cube root of two
// wider than the one before: three to a doubling, from 10 ms to 655 s. A quantile is
// within 26 % of the true one, at every resolution, for buckets are added up.
const (
	buckets   = 1 + 16*perDouble
	perDouble = 3
	shortest  = 10 * time.Millisecond
)

// bucket is where a time counts.
func bucket(d time.Duration) int {
	if d < shortest {
		return 0
	}
	return min(1+int(perDouble*math.Log2(float64(d)/float64(shortest))), buckets-1)
}

// edge is where a bucket ends, in seconds.
func edge(bucket int) float64 {
	return shortest.Seconds() * math.Exp2(float64(bucket)/perDouble)
}

// quantile is below which time the share q of the counted ones is, in seconds. ok is
// false where none was counted.
func quantile(counts []uint32, q float64) (seconds float64, ok bool) {
	total := 0.0
	for _, n := range counts {
		total += float64(n)
	}
	if total == 0 {
		return 0, false
	}
	rank := q * total
	for i, n := range counts {
		if n > 0 && rank <= float64(n) {
			if i == 0 {
				return edge(0), true
			}
			return edge(i-1) * math.Pow(edge(i)/edge(i-1), rank/float64(n)), true
		}
		rank -= float64(n)
	}
	return edge(len(counts) - 1), true
}
