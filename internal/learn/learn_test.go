package learn

import (
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

var t0 = time.Unix(1_700_000_000, 0)

func TestClassOf(t *testing.T) {
	for _, x := range []struct {
		mode   Mode
		tokens int
		want   Class
	}{
		{Unary, -1, 0}, {Unary, 0, 0}, {Unary, 1024, 0}, {Unary, 1025, 1}, {Unary, 8192, 1},
		{Unary, 32768, 2}, {Unary, 32769, 3}, {Stream, 10, 4}, {Stream, 1 << 30, 7},
	} {
		if got := ClassOf(x.mode, x.tokens); got != x.want {
			t.Errorf("ClassOf(%d, %d) = %d, want %d", x.mode, x.tokens, got, x.want)
		}
	}
}

func TestUnlearnedTimers(t *testing.T) {
	l := NewLatency()
	for c, want := range []Timeouts{
		{FirstContent: 120 * time.Second, Slow: 30 * time.Second},
		{FirstContent: 180 * time.Second, Slow: 40 * time.Second},
		{FirstContent: 300 * time.Second, Slow: 60 * time.Second},
		{FirstContent: 300 * time.Second, Slow: 60 * time.Second},
		{FirstContent: 10 * time.Second, Slow: 5 * time.Second},
		{FirstContent: 20 * time.Second, Slow: 10 * time.Second},
		{FirstContent: 40 * time.Second, Slow: 20 * time.Second},
		{FirstContent: 60 * time.Second, Slow: 40 * time.Second},
	} {
		want.Silence, want.Headers = want.Slow, want.FirstContent
		if got := l.Timeouts(Class(c), Bounds{}); got != want {
			t.Errorf("class %d: %+v, want %+v", c, got, want)
		}
	}
}

func TestLearnedTimers(t *testing.T) {
	stream := ClassOf(Stream, 100)
	l := NewLatency()
	for i := range 49 {
		l.Observe(t0.Add(time.Duration(i)*time.Second), stream, 2*time.Second)
	}
	if l.Timeouts(stream, Bounds{}).Learned {
		t.Fatal("learned from 49 samples")
	}
	l.Observe(t0.Add(time.Minute), stream, 2*time.Second)
	got := l.Timeouts(stream, Bounds{})
	// 2 s lies in the bucket that ends at 2.048 s.
	p99 := 2048 * time.Millisecond
	want := Timeouts{Headers: 3 * p99, FirstContent: 3 * p99, Slow: 2 * p99, Silence: 3 * p99, Learned: true}
	if got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if other := l.Timeouts(ClassOf(Unary, 100), Bounds{}); other.Learned {
		t.Error("another class learned from it")
	}
}

func TestFloorsForFastTargets(t *testing.T) {
	l, c := NewLatency(), ClassOf(Stream, 100)
	for range 100 {
		l.Observe(t0, c, 50*time.Millisecond)
	}
	got := l.Timeouts(c, Bounds{})
	want := Timeouts{Headers: 2 * time.Second, FirstContent: 2 * time.Second, Slow: time.Second, Silence: 1250 * time.Millisecond, Learned: true}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestConfigurationOverridesWhatIsLearned(t *testing.T) {
	l, c := NewLatency(), ClassOf(Stream, 100)
	if got := l.Timeouts(c, Bounds{FirstContent: 90 * time.Second, Headers: 4 * time.Second}); got.FirstContent != 90*time.Second || got.Headers != 4*time.Second {
		t.Errorf("fixed: %+v", got)
	}
	if got := l.Timeouts(c, Bounds{FirstContent: time.Second}); got.Slow != time.Second || got.Silence != time.Second || got.Headers != time.Second {
		t.Errorf("fixed below the age of slow: %+v", got)
	}
	if got := l.Timeouts(c, Bounds{Min: 50 * time.Second, Max: 70 * time.Second}); got.FirstContent != 50*time.Second {
		t.Errorf("floor: %+v", got)
	}
	if got := l.Timeouts(ClassOf(Unary, 100), Bounds{Total: time.Minute}); got.FirstContent != time.Minute {
		t.Errorf("total: %+v", got)
	}
}

// During an outage only fast answers are seen. The timers must not follow
// them down. Fails when Observe adds whatever frozen says, or when Censor
// counts nothing.
func TestTimersDoNotRatchetDown(t *testing.T) {
	l, c, now := NewLatency(), ClassOf(Stream, 100), t0
	for i := range 1000 {
		now = now.Add(100 * time.Millisecond)
		l.Observe(now, c, time.Duration(500+i)*time.Millisecond)
	}
	before := l.Timeouts(c, Bounds{})
	for range 10_000 {
		now = now.Add(10 * time.Millisecond)
		l.Observe(now, c, 100*time.Millisecond)
		l.Censor(now, c, before.FirstContent)
	}
	if after := l.Timeouts(c, Bounds{}); after != before {
		t.Errorf("before the outage %+v, in it %+v", before, after)
	}
}

// A few time-outs are tail samples and raise the estimate.
func TestStrayTimeoutsCountAtTwiceTheirAge(t *testing.T) {
	l, c, now := NewLatency(), ClassOf(Stream, 100), t0
	for i := range 400 {
		now = now.Add(10 * time.Millisecond)
		if i%101 == 100 {
			l.Censor(now, c, 3*time.Second)
		} else {
			l.Observe(now, c, 100*time.Millisecond)
		}
	}
	if top, _ := l.Quantile(c, 1); top < 6*time.Second || top > 8*time.Second {
		t.Errorf("the longest is %v, want about 6 s", top)
	}
}

// A target that has become slower than its learned timer times out every
// time. Within ten minutes the timer is the default again (known report: a
// fixed budget killed endpoints whose normal first byte was later). Fails
// when the histogram is kept while nothing but time-outs arrive.
func TestWrongTimerIsForgotten(t *testing.T) {
	l, c, now := NewLatency(), ClassOf(Stream, 100), t0
	for range 20_000 {
		now = now.Add(10 * time.Millisecond)
		l.Observe(now, c, 200*time.Millisecond)
	}
	for range 120 {
		now = now.Add(5 * time.Second)
		l.Censor(now, c, 2*time.Second)
	}
	if got := l.Timeouts(c, Bounds{}); got.Learned || got.FirstContent != 10*time.Second {
		t.Errorf("after ten minutes of time-outs: %+v", got)
	}
}

// A target that has become slower, but mostly answers in time, is learned
// although time-outs freeze the estimate.
func TestSlowerTargetRaisesTheTimer(t *testing.T) {
	l, c, now := NewLatency(), ClassOf(Stream, 100), t0
	for range 2000 {
		now = now.Add(10 * time.Millisecond)
		l.Observe(now, c, 300*time.Millisecond)
	}
	for i := range 2000 {
		now = now.Add(10 * time.Millisecond)
		limit := l.Timeouts(c, Bounds{}).FirstContent
		if d := time.Duration(1+i%5) * time.Second; d > limit {
			l.Censor(now, c, limit)
		} else {
			l.Observe(now, c, d)
		}
	}
	if got := l.Timeouts(c, Bounds{}); got.FirstContent < 5*time.Second {
		t.Errorf("answers take up to 5 s, the timer is %v", got.FirstContent)
	}
}

func TestMean(t *testing.T) {
	l, now := NewLatency(), t0
	if l.Mean(now) != 500*time.Millisecond {
		t.Fatal("unknown target")
	}
	short, long := ClassOf(Stream, 100), ClassOf(Stream, 100_000)
	for range 100 {
		now = now.Add(time.Second)
		l.Observe(now, short, 250*time.Millisecond)
		l.Observe(now, long, 2*time.Second)
	}
	if m := l.Mean(now); m < 240*time.Millisecond || m > 260*time.Millisecond {
		t.Errorf("long prompts change the mean: %v", m)
	}
	l.Observe(now, short, 10*time.Second)
	peak := l.Mean(now)
	if peak < 4*time.Second {
		t.Errorf("a peak is hidden: %v", peak)
	}
	if m := l.Mean(now.Add(5 * time.Minute)); m > 510*time.Millisecond {
		t.Errorf("an unused target stays at %v and would not be tried again", m)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	if n := unsafe.Sizeof(Latency{}); n > 4096 {
		t.Errorf("a Latency takes %d bytes", n)
	}
	l := NewLatency()
	l.Observe(t0, 0, time.Second)
	n := testing.AllocsPerRun(1000, func() {
		l.Observe(t0, 0, time.Second)
		l.Censor(t0, 1, time.Second)
	})
	if n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

func duration(t *rapid.T, name string) time.Duration {
	return time.Duration(rapid.OneOf(
		rapid.Int64Range(0, int64(time.Minute)),
		rapid.SampledFrom([]int64{-1, 0, 1, 1<<63 - 1, -1 << 63}),
	).Draw(t, name))
}

// Whatever has been seen, in whatever order of time, including nothing:
// quantiles rise with q, timers are positive and within bounds, and counts
// agree. A division by an empty histogram, or a clamp left out, fails it.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := NewLatency(), t0
		for range rapid.IntRange(0, 300).Draw(t, "samples") {
			now = now.Add(rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Millisecond, time.Second, time.Minute, 90 * 24 * time.Hour}).Draw(t, "step"))
			c := Class(rapid.IntRange(0, 255).Draw(t, "class"))
			if rapid.Bool().Draw(t, "timeout") {
				l.Censor(now, c, duration(t, "age"))
			} else {
				l.Observe(now, c, duration(t, "time"))
			}
		}
		b := Bounds{Headers: rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "headers"), FirstContent: rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(t, "first")}
		b.Min = rapid.SampledFrom([]time.Duration{0, time.Millisecond, 30 * time.Second}).Draw(t, "min")
		b.Max = rapid.SampledFrom([]time.Duration{0, 31 * time.Second, time.Hour}).Draw(t, "max")
		b.Total = rapid.SampledFrom([]time.Duration{0, 5 * time.Second, 10 * time.Minute}).Draw(t, "total")
		for c := range Class(NumClasses) {
			checkQuantiles(t, l, c)
			checkTimers(t, l.Timeouts(c, b), b, c.mode())
		}
		if m := l.Mean(now); m <= 0 {
			t.Fatalf("mean %v", m)
		}
	})
}

func checkQuantiles(t *rapid.T, l *Latency, c Class) {
	last := time.Duration(0)
	for _, q := range []float64{-1, 0, 0.01, 0.5, 0.9, 0.99, 1, 2} {
		d, n := l.Quantile(c, q)
		if d < last || (n == 0) != (d == 0) || n > most {
			t.Fatalf("class %d: quantile %v is %v of %d samples, the one below is %v", c, q, d, n, last)
		}
		last = d
	}
}

func checkTimers(t *rapid.T, x Timeouts, b Bounds, m Mode) {
	first := x.FirstContent
	if x.Headers <= 0 || first <= 0 || x.Slow <= 0 || x.Silence <= 0 || x.Headers > first || x.Slow > first || x.Silence > first {
		t.Fatalf("timers out of order: %+v", x)
	}
	if b.Total > 0 && first > b.Total || b.FirstContent > 0 && first > b.FirstContent || b.Headers > 0 && x.Headers > b.Headers {
		t.Fatalf("timers above what is configured: %+v, %+v", x, b)
	}
	if b.FirstContent > 0 || b.Total > 0 {
		return
	}
	lo, hi := giveUpFloor[m], giveUpCeiling[m]
	if b.Min > 0 {
		lo = b.Min
	}
	if b.Max > 0 {
		hi = b.Max
	}
	if first < min(lo, hi) || first > hi {
		t.Fatalf("first content %v outside [%v, %v]", first, lo, hi)
	}
}

// The estimate is never below the true quantile and at most a bucket above.
func TestQuantileError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		d := time.Duration(rapid.Int64Range(int64(finest), int64(3*time.Hour)).Draw(t, "d"))
		h.add(d)
		if got := h.quantile(0.5); float64(got) < float64(d)*0.9999 || float64(got) > 1.2*float64(d) {
			t.Fatalf("%v is read as %v", d, got)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	l := NewLatency()
	b.ReportAllocs()
	for i := range b.N {
		l.Observe(t0.Add(time.Duration(i)*time.Millisecond), 4, time.Duration(i%1000)*time.Millisecond)
	}
}

func BenchmarkTimeouts(b *testing.B) {
	l := NewLatency()
	for i := range 1000 {
		l.Observe(t0, 4, time.Duration(i)*time.Millisecond)
	}
	b.ReportAllocs()
	for range b.N {
		l.Timeouts(4, Bounds{})
	}
}

// TestWhatIsFrozenIsNotForgotten: hours of a few time-outs leave the timers as
// they were. It fails when the past of a frozen class fades: without new
// samples a call that does not stream got its unlearned two minutes again.
func TestWhatIsFrozenIsNotForgotten(t *testing.T) {
	l, now := NewLatency(), time.Date(2026, 9, 29, 10, 0, 0, 0, time.UTC)
	class := ClassOf(Unary, 100)
	for range 300 {
		now = now.Add(200 * time.Millisecond)
		l.Observe(now, class, time.Second)
	}
	before := l.Timeouts(class, Bounds{})
	for i := range 5 * 3600 * 6 {
		now = now.Add(200 * time.Millisecond)
		if i%16 == 0 {
			l.Censor(now, class, before.FirstContent)
		} else {
			l.Observe(now, class, time.Second)
		}
		if got := l.Timeouts(class, Bounds{}); !got.Learned || got.FirstContent > before.FirstContent*2 {
			t.Fatalf("after %d min of time-outs: %+v, was %+v", i/300, got, before)
		}
	}
}

// TestMedian is over all classes, as the operator sees it.
func TestMedian(t *testing.T) {
	l := NewLatency()
	if l.Median() != 0 {
		t.Errorf("of nothing: %v", l.Median())
	}
	now := time.Unix(1000, 0)
	for range 3 {
		l.Observe(now, 0, 100*time.Millisecond)
		l.Observe(now, NumClasses-1, 2*time.Second)
	}
	l.Observe(now, NumClasses-1, 2*time.Second)
	if m := l.Median(); m < 2*time.Second || m > 2380*time.Millisecond {
		t.Errorf("median %v", m)
	}
}
