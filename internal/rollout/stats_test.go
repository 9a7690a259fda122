package rollout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s is %.12g, want %.12g", what, got, want)
	}
}

// The quantiles are those of printed tables (NIST, e-Handbook of Statistical
// Methods, 1.3.6.7.4); with two degrees of freedom the tail is exp(-x/2), with four
// exp(-x/2)(1+x/2), with one that of the normal distribution.
func TestChiSquareTail(t *testing.T) {
	for _, c := range []struct {
		x float64
		k int
		p float64
	}{
		{3.841, 1, 0.05},
		{6.635, 1, 0.01},
		{10.828, 1, 0.001},
		{5.991, 2, 0.05},
		{11.070, 5, 0.05},
		{15.086, 5, 0.01},
		{20.515, 5, 0.001},
		{18.307, 10, 0.05},
		{23.209, 10, 0.01},
		{29.588, 10, 0.001},
		{3.940, 10, 0.95},
	} {
		near(t, "tail", chiSquareTail(c.x, c.k), c.p, 1e-3)
	}
	for x := 0.1; x < 200; x *= 1.3 {
		near(t, "one degree", chiSquareTail(x, 1), 2*normalTail(math.Sqrt(x)), 1e-10)
		near(t, "two degrees", chiSquareTail(x, 2), math.Exp(-x/2), 1e-10)
		near(t, "four degrees", chiSquareTail(x, 4), math.Exp(-x/2)*(1+x/2), 1e-10)
	}
	if chiSquareTail(0, 3) != 1 || chiSquareTail(-1, 3) != 1 || chiSquareTail(5, 0) != 1 {
		t.Error("nothing to test is not likely")
	}
}

// G of a two by two table, worked by hand: 2*sum(O ln(O/E)) of 30/70 and 50/50 is
// 8.4026; Williams' q is 1+(2+2-1)(200/80+200/120-1)/1200.
func TestGTest(t *testing.T) {
	q := 1 + 3*(200.0/80+200.0/120-1)/1200
	near(t, "G-test", gTest([]float64{30, 70}, []float64{50, 50}), chiSquareTail(8.4026/q, 1), 1e-3)
	if p := gTest([]float64{5, 0, 0}, []float64{9, 0, 0}); p != 1 {
		t.Errorf("one class alone: %v", p)
	}
	if p := gTest([]float64{0, 0}, []float64{9, 3}); p != 1 {
		t.Errorf("nothing: %v", p)
	}
}

func TestDivergence(t *testing.T) {
	near(t, "of nothing in common", divergence([]float64{5, 0}, []float64{0, 9}), 1, 1e-12)
	// H(3/4,1/4) - (H(1)+H(1/2,1/2))/2 = 0.8112781 - 0.5
	near(t, "of a half", divergence([]float64{4, 0}, []float64{1, 1}), 0.3112781244591328, 1e-12)
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(rapid.Float64Range(0, 1000), 5, 5)
		a, b := row.Draw(t, "a"), row.Draw(t, "b")
		d := divergence(a, b)
		if d < 0 || d > 1+1e-9 || math.Abs(d-divergence(b, a)) > 1e-9 {
			t.Fatalf("%v", d)
		}
		if total(a) > 0 && divergence(a, a) > 1e-12 {
			t.Fatal("differs from itself")
		}
	})
}

// By hand: of {1..5} against {6..10} U is 0 and 25, its mean 12.5 and its deviation
// 4.787; with all the same there is nothing to tell.
func TestMannWhitney(t *testing.T) {
	low, high := []float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}
	near(t, "above", mannWhitney(high, low), normalTail(12/math.Sqrt(25.0/12*11)), 1e-12)
	near(t, "below", mannWhitney(low, high), normalTail(-13/math.Sqrt(25.0/12*11)), 1e-12)
	if p := mannWhitney([]float64{1, 1, 1}, []float64{1, 1}); p != 1 {
		t.Errorf("ties alone: %v", p)
	}
	// Ties: {2,2,3} against {1,2,3}: ranks of the first are 3,3,5.5; U is 5.5; of
	// six values three and two are tied.
	near(t, "tied", mannWhitney([]float64{2, 2, 3}, []float64{1, 2, 3}), normalTail(0.5/math.Sqrt(9.0/12*(7-30.0/30))), 1e-12)
}

func TestShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 30)
		a, b := row.Draw(t, "a"), row.Draw(t, "b")
		slices.Sort(a)
		slices.Sort(b)
		var all []float64
		for _, x := range a {
			for _, y := range b {
				all = append(all, x-y)
			}
		}
		slices.Sort(all)
		got, n := shift(a, b), len(all)
		if low, high := all[(n-1)/2], all[n/2]; got < low-1e-6 || got > high+1e-6 {
			t.Fatalf("%v is not the median, %v to %v", got, low, high)
		}
	})
}

func TestWithout(t *testing.T) {
	if got := without([]float64{9, 1, 2, 3, 4, 5, 6, 7, 8, 1000}); len(got) != 9 || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
}

func TestTrend(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	up, flat := make([]float64, 30), make([]float64, 30)
	for i := range up {
		flat[i] = rnd.NormFloat64()
		up[i] = flat[i] + float64(i)
	}
	if p, rise := trend(up); p > 1e-6 || math.Abs(rise-29) > 2 {
		t.Errorf("%v %v", p, rise)
	}
	if p, _ := trend(flat); p < 0.01 {
		t.Errorf("%v", p)
	}
}

// TestMeasureSays: the numbers of a measure are what its name and its words say, not
// the share of bad ones that the test is made with.
func TestMeasureSays(t *testing.T) {
	for k, want := range map[kind]struct {
		value float64
		text  string
	}{
		success: {0.9, "success 90 %, of the version before 100 %"},
		client:  {0.1, "10 % refused as the caller's mistake, by the version before 0 %"},
		out:     {1 + 0.1*mostExtra, "1.40 calls for a request, under the version before 1.00"},
		in:      {1 / 0.9, "1.11 requests for a distinct one, under the version before 1.00"},
	} {
		if got := k.value(0.1); math.Abs(got-want.value) > 1e-9 || k.text(0.1, 0) != want.text {
			t.Errorf("%s: %v, %s", kindNames[k], got, k.text(0.1, 0))
		}
	}
}
