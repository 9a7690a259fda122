package drill

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"sort"
)

// chance is a number in [0,1) that depends on its arguments alone.
func chance(seed uint64, name string, n uint64) float64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], n)
	_, _ = h.Write(b[:]) // never fails
	_, _ = h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // finaliser of MurmurHash3
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// size draws the size of a body: between two quantiles evenly in its logarithm.
func (b *Body) size(draw float64) int64 {
	if b.Max == b.P50 {
		return int64(b.P50)
	}
	between := func(lo, hi Size, from, to float64) int64 {
		part := (draw - from) / (to - from)
		return int64(float64(lo) * math.Pow(float64(hi)/float64(lo), part))
	}
	switch {
	case draw < 0.5: // from a fourth of the median
		return between(max(bodySize, b.P50/4), b.P50, 0, 0.5)
	case draw < 0.95:
		return between(b.P50, b.P95, 0.5, 0.95)
	case draw < 0.99:
		return between(b.P95, b.P99, 0.95, 0.99)
	}
	return between(b.P99, b.Max, 0.99, 1)
}

// zipf draws by Zipf's law with exponent 1: the k-th of n comes 1/k as often
// as the first.
type zipf struct{ sums []float64 }

func newZipf(n int) *zipf {
	z := &zipf{sums: make([]float64, n)}
	sum := 0.0
	for k := range z.sums {
		sum += 1 / float64(k+1)
		z.sums[k] = sum
	}
	return z
}

func (z *zipf) draw(u float64) int {
	if len(z.sums) == 0 {
		return 0
	}
	return min(sort.SearchFloat64s(z.sums, u*z.sums[len(z.sums)-1]), len(z.sums)-1)
}
