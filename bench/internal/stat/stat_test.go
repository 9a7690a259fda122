package stat

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i) // 100 .. 1, unsorted on purpose
	}
	for _, c := range []struct {
		name string
		d    []time.Duration
		q    float64
		want time.Duration
	}{
		{"nothing", nil, 0.5, 0},
		{"one value, any share", []time.Duration{7}, 0.99, 7},
		{"half of a hundred", hundred, 0.5, 50},
		{"p99 of a hundred is not its maximum", hundred, 0.99, 99},
		{"all", hundred, 1, 100},
		{"none", hundred, 0, 1},
		{"p99 of ten is the maximum", hundred[:10], 0.99, 100},
	} {
		if got := Quantile(c.d, c.q); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestQuantileDefinition: at least q of the values are at most the quantile,
// and fewer than q are below it.
func TestQuantileDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 50), func(n int64) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "d")
		q := rapid.Float64Range(0.001, 1).Draw(t, "q")
		before := slices.Clone(d)
		got := Quantile(d, q)
		if !slices.Equal(before, d) {
			t.Fatal("the argument was changed")
		}
		var atMost, below float64
		for _, x := range d {
			if x <= got {
				atMost++
			}
			if x < got {
				below++
			}
		}
		n := float64(len(d))
		if atMost < q*n || below >= q*n {
			t.Fatalf("%d is not the %v quantile: %v at most, %v below, of %v", got, q, atMost, below, n)
		}
	})
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(c.x); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

func TestMedianRatio(t *testing.T) {
	// The second round was noisy for both: the ratio does not move.
	if got := MedianRatio([]float64{30, 90, 30}, []float64{10, 30, 10}); got != 3 {
		t.Errorf("ratio %v, want 3", got)
	}
	if got := MedianRatio([]float64{30, 1, 5}, []float64{10, 0}); got != 3 {
		t.Errorf("rounds without a partner or a base count: %v, want 3", got)
	}
	if got := MedianDiff([]float64{5, 9}, []float64{1, 3}); got != 5 {
		t.Errorf("difference %v, want 5", got)
	}
	if !math.IsNaN(Percent(0, 0)) || Percent(1, 4) != 25 {
		t.Error("Percent")
	}
}
