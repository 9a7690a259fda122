package learn

import (
	"math"
	"time"
)

const (
	buckets = 96
	finest  = time.Millisecond
	// most is the weight of the past: a full histogram is halved, so that a
	// busy target's hour of history cannot drown the last minutes.
	most = 1 << 14
)

// histogram counts durations in buckets each 2^(1/4) times as wide as the one
// before: 1 ms to 3.9 h, never more than 19 % too high, in 388 bytes.
type histogram struct {
	counts [buckets]uint32
	n      uint32
}

// index is the bucket whose upper end is the first at or above d.
func index(d time.Duration) int {
	if d <= finest {
		return 0
	}
	return min(int(math.Ceil(4*math.Log2(float64(d)/float64(finest)))), buckets-1)
}

// upper is the largest duration of a bucket.
func upper(i int) time.Duration {
	return time.Duration(float64(finest) * math.Exp2(float64(i)/4))
}

func (h *histogram) add(d time.Duration) {
	if h.n >= most {
		h.halve()
	}
	h.counts[index(d)]++
	h.n++
}

// halve forgets half of the past, rounding down: what was seen once is
// forgotten, so that an idle class ends empty and not with stale outliers.
func (h *histogram) halve() {
	h.n = 0
	for i := range h.counts {
		h.counts[i] /= 2
		h.n += h.counts[i]
	}
}

// quantile returns the upper end of the bucket that holds the q-quantile,
// 0 when there is nothing.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	if !(q > 0) { // also NaN
		q = 0
	}
	rank := uint32(math.Ceil(min(q, 1) * float64(h.n)))
	var seen uint32
	for i, c := range h.counts {
		if seen += c; c > 0 && seen >= rank {
			return upper(i)
		}
	}
	return upper(buckets - 1)
}
