// Package stat holds the few statistics the benchmarks report: quantiles of
// durations and medians over rounds. It never changes its arguments.
package stat

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Quantile is the smallest value of d that at least the share q of d does not
// exceed (nearest rank), q from 0 to 1; 0 when d is empty.
func Quantile(d []time.Duration, q float64) time.Duration { return Quantiles(d, q)[0] }

// Quantiles is Quantile for several shares, with one sort.
func Quantiles(d []time.Duration, qs ...float64) []time.Duration {
	out := make([]time.Duration, len(qs))
	if len(d) == 0 {
		return out
	}
	s := slices.Clone(d)
	slices.Sort(s)
	for i, q := range qs {
		rank := int(math.Ceil(q * float64(len(s))))
		out[i] = s[min(max(rank, 1), len(s))-1]
	}
	return out
}

// Median is the middle of x, or the mean of the two in the middle; NaN when x
// is empty, so that a figure that was not measured cannot pass for one.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Clone(x)
	slices.SortFunc(s, cmp.Compare[float64])
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2
}

// MedianRatio is the median of x[i]/y[i] over the rounds both have: rounds
// that ran side by side share their noise, so ratios vary less than figures.
func MedianRatio(x, y []float64) float64 {
	var r []float64
	for i := range min(len(x), len(y)) {
		if y[i] > 0 {
			r = append(r, x[i]/y[i])
		}
	}
	return Median(r)
}

// MedianDiff is the median of x[i]-y[i] over the rounds both have.
func MedianDiff(x, y []float64) float64 {
	var r []float64
	for i := range min(len(x), len(y)) {
		r = append(r, x[i]-y[i])
	}
	return Median(r)
}

// Percent is 100*part/of; NaN of nothing.
func Percent(part, of int) float64 {
	if of == 0 {
		return math.NaN()
	}
	return 100 * float64(part) / float64(of)
}
