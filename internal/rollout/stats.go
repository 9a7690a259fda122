package rollout

import (
	"cmp"
	"math"
	"slices"
)

// normalTail is the chance of a standard normal number above z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// chiSquareTail is the chance of a chi-square number with k degrees of freedom
// above x: the regularised upper incomplete gamma function of k/2 and x/2, by its
// series below k/2+1 and by its continued fraction above (Lentz; see Press et al.,
// Numerical Recipes, 6.2).
func chiSquareTail(x float64, k int) float64 {
	if x <= 0 || k <= 0 {
		return 1
	}
	a, x := float64(k)/2, x/2
	lg, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		sum, term := 1/a, 1/a
		for n := 1; n < 1000 && term > sum*1e-16; n++ {
			term *= x / (a + float64(n))
			sum += term
		}
		return max(0, 1-sum*scale)
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1; i < 1000; i++ {
		n := float64(i)
		step := n * (a - n)
		b += 2
		d = 1 / nonzero(step*d+b, tiny)
		c = nonzero(b+step/c, tiny)
		h *= c * d
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return scale * h
}

func nonzero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}

// gTest is the chance of two rows of counts to differ as much or more when they
// are of one distribution (likelihood-ratio test of homogeneity, Williams'
// correction).
func gTest(a, b []float64) float64 {
	na, nb := total(a), total(b)
	n := na + nb
	if na == 0 || nb == 0 {
		return 1
	}
	g, cols, inv := 0.0, 0, 0.0
	for i := range a {
		col := a[i] + b[i]
		if col == 0 {
			continue
		}
		cols++
		inv += n / col
		for _, cell := range [2][2]float64{{a[i], na}, {b[i], nb}} {
			if cell[0] > 0 {
				g += 2 * cell[0] * math.Log(cell[0]*n/(cell[1]*col))
			}
		}
	}
	if cols < 2 {
		return 1
	}
	q := 1 + (n/na+n/nb-1)*(inv-1)/(6*n*float64(cols-1))
	return chiSquareTail(g/q, cols-1)
}

// divergence is the Jensen-Shannon divergence of two rows of counts, in bits: 0
// for equal shares, 1 for rows that have nothing in common.
func divergence(a, b []float64) float64 {
	na, nb := total(a), total(b)
	if na == 0 || nb == 0 {
		return 0
	}
	d := 0.0
	for i := range a {
		p, q := a[i]/na, b[i]/nb
		m := (p + q) / 2
		if p > 0 {
			d += p * math.Log2(p/m) / 2
		}
		if q > 0 {
			d += q * math.Log2(q/m) / 2
		}
	}
	return max(0, d)
}

func total(a []float64) (n float64) {
	for _, x := range a {
		n += x
	}
	return n
}

// mannWhitney is the chance that a is as much above b as it is, or more, when both
// are of one distribution: the normal approximation of U with the correction for
// ties and for continuity.
func mannWhitney(a, b []float64) float64 {
	type value struct {
		x  float64
		of int
	}
	all := make([]value, 0, len(a)+len(b))
	for _, x := range a {
		all = append(all, value{x: x})
	}
	for _, x := range b {
		all = append(all, value{x: x, of: 1})
	}
	slices.SortFunc(all, func(p, q value) int { return cmp.Compare(p.x, q.x) })
	n1, n2 := float64(len(a)), float64(len(b))
	n := n1 + n2
	ranks, ties := 0.0, 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].x == all[i].x {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		for ; i < j; i++ {
			if all[i].of == 0 {
				ranks += float64(j) - (t-1)/2
			}
		}
	}
	u := ranks - n1*(n1+1)/2
	sd := math.Sqrt(n1 * n2 / 12 * (n + 1 - ties/(n*(n-1))))
	if !(sd > 0) {
		return 1
	}
	return normalTail((u - n1*n2/2 - 0.5) / sd)
}

// shift is the Hodges-Lehmann estimate of how far a lies above b: the median of
// all differences. Both must be sorted. It is found by bisection, so that the
// differences need not be written down.
func shift(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	low, high := a[0]-b[len(b)-1], a[len(a)-1]-b[0]
	half := len(a) * len(b) / 2
	for range 60 {
		mid := (low + high) / 2
		below, j := 0, 0 // pairs with a[i]-b[k] <= mid
		for _, x := range a {
			for j < len(b) && x-b[j] > mid {
				j++
			}
			below += len(b) - j
		}
		if below > half {
			high = mid
		} else {
			low = mid
		}
	}
	return (low + high) / 2
}

// without drops what lies more than three times the inter-quartile range outside
// the quartiles, and sorts the rest.
func without(a []float64) []float64 {
	a = slices.Clone(a)
	slices.Sort(a)
	if len(a) < 4 {
		return a
	}
	q1, q3 := quantile(a, 0.25), quantile(a, 0.75)
	low, high := q1-3*(q3-q1), q3+3*(q3-q1)
	return slices.DeleteFunc(a, func(x float64) bool { return x < low || x > high })
}

// quantile of sorted numbers, between neighbours where it falls between.
func quantile(a []float64, q float64) float64 {
	if len(a) == 0 {
		return 0
	}
	at := q * float64(len(a)-1)
	i := min(int(at), len(a)-1)
	j := min(i+1, len(a)-1)
	return a[i] + (at-float64(i))*(a[j]-a[i])
}

// trend is the chance of a series to rise as much or more when it has no trend
// (Mann-Kendall, without ties), and by how much it rises from its first to its
// last sample (the median of the slopes of all pairs: Theil-Sen).
func trend(a []float64) (p, rise float64) {
	n := len(a)
	if n < 8 {
		return 1, 0
	}
	s := 0.0
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range a {
		for j := i + 1; j < n; j++ {
			s += float64(cmp.Compare(a[j], a[i]))
			slopes = append(slopes, (a[j]-a[i])/float64(j-i))
		}
	}
	slices.Sort(slopes)
	f := float64(n)
	return normalTail((s - 1) / math.Sqrt(f*(f-1)*(2*f+5)/18)), quantile(slopes, 0.5) * (f - 1)
}
