package learn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// firstContent is how long a target takes by the size of the prompt, with chance.
func firstContent(rnd *rand.Rand, tokens int64) time.Duration {
	usual := 0.3 + 0.00002*float64(tokens)
	return time.Duration(usual * math.Exp(0.3*rnd.NormFloat64()) * float64(time.Second))
}

// TestPromptSizesChangeNothing: prompts that become a hundred times as long, or
// as short, are no slower than usual for their size. It fails when the size is
// left out.
func TestPromptSizesChangeNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var f Fit
	now := t0
	for _, large := range []float64{0.2, 0.95, 0.05} {
		var ratios []float64
		for range 300 {
			now = now.Add(100 * time.Millisecond)
			tokens := 500 + rnd.Int64N(1000)
			if rnd.Float64() < large {
				tokens *= 50
			}
			if ratio, ok := f.Observe(now, tokens, firstContent(rnd, tokens)); ok {
				ratios = append(ratios, ratio)
			}
		}
		slices.Sort(ratios)
		if m := ratios[len(ratios)/2]; m < 0.8 || m > 1.25 {
			t.Errorf("with %v large ones the median is %.2f times the usual", large, m)
		}
	}
}

// TestSlownessIsSeen: three times as long counts as that, and after half an hour
// it is what is usual.
func TestSlownessIsSeen(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var f Fit
	now := t0
	observe := func(factor float64) float64 {
		now = now.Add(time.Second)
		tokens := rnd.Int64N(20000)
		ratio, _ := f.Observe(now, tokens, time.Duration(factor*float64(firstContent(rnd, tokens))))
		return ratio
	}
	for range 600 {
		observe(1)
	}
	sum := 0.0
	for range 20 {
		sum += observe(3)
	}
	if sum/20 < 2.3 {
		t.Errorf("three times as slow counts as %.2f", sum/20)
	}
	for range 1800 {
		observe(3)
	}
	sum = 0
	for range 20 {
		sum += observe(3)
	}
	if sum/20 > 1.4 {
		t.Errorf("after half an hour it still counts as %.2f", sum/20)
	}
}

// TestFitProperties: whatever was seen, the ratio is a positive number.
func TestFitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fit
		var g Gaps
		now := t0
		for range rapid.IntRange(1, 60).Draw(t, "samples") {
			now = now.Add(rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Millisecond, time.Minute, 90 * 24 * time.Hour}).Draw(t, "step"))
			ratio, ok := f.Observe(now, rapid.OneOf(rapid.Int64Range(-1, 100_000), rapid.Int64()).Draw(t, "prompt"), duration(t, "took"))
			if ok && !(ratio > 0 && ratio < math.Inf(1)) {
				t.Fatalf("ratio %v of %+v", ratio, f)
			}
			if ratio, ok := g.Observe(duration(t, "gap")); ok && !(ratio > 0 && ratio < math.Inf(1)) {
				t.Fatalf("ratio %v of %+v", ratio, g)
			}
		}
	})
}

// TestGaps: a pace that halves is seen at once and for a hundred samples.
func TestGaps(t *testing.T) {
	var g Gaps
	for range 50 {
		g.Observe(20 * time.Millisecond)
	}
	for i := range 20 {
		if ratio, ok := g.Observe(50 * time.Millisecond); !ok || ratio < 2 {
			t.Fatalf("sample %d: %v %v", i, ratio, ok)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	var f Fit
	b.ReportAllocs()
	for i := range b.N {
		f.Observe(t0.Add(time.Duration(i)*time.Millisecond), int64(i%5000), time.Second)
	}
}
