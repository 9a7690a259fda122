package limit

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_700_000_000, 0)

func TestGCRABurstThenRate(t *testing.T) {
	g := NewGCRA(60, 3)
	for i := range 3 {
		if _, ok := g.Take(start, 1); !ok {
			t.Fatalf("request %d of the burst refused", i+1)
		}
	}
	wait, ok := g.Take(start, 1)
	if ok || wait != time.Second {
		t.Fatalf("fourth: got %v, %v; want a wait of 1s", wait, ok)
	}
	if _, ok := g.Take(start.Add(wait-1), 1); ok {
		t.Fatal("admitted before the wait was over")
	}
	if _, ok := g.Take(start.Add(wait), 1); !ok {
		t.Fatal("refused after the wait")
	}
}

func TestGCRANoLimit(t *testing.T) {
	for _, perMinute := range []int64{0, -1, math.MinInt64} {
		g := NewGCRA(perMinute, 1)
		if _, ok := g.Take(start, math.MaxInt64); !ok {
			t.Fatalf("limit %d refused", perMinute)
		}
		g.Settle(start, 1, 2)
	}
}

func TestGCRALargeRequestPassesWhenFull(t *testing.T) {
	g := NewGCRA(6000, 100)
	if _, ok := g.Take(start, 1_000_000_000_000); !ok {
		t.Fatal("a request larger than the burst must pass a full bucket")
	}
	// It owes one burst beyond the one it took: 100 units, 1 s.
	if wait, ok := g.Take(start, 1); ok || wait > 2*time.Second {
		t.Fatalf("after it: wait %v, ok %v; want at most 2s", wait, ok)
	}
}

func TestGCRASettle(t *testing.T) {
	g := NewGCRA(600, 10)
	g.Take(start, 10)
	g.Settle(start, 10, 4)
	if _, ok := g.Take(start, 6); !ok {
		t.Fatal("the unused part of the estimate was not given back")
	}
	g.Settle(start, 6, 1_000_000)
	wait, ok := g.Peek(start, 10)
	if ok || wait != time.Minute {
		t.Fatalf("debt: wait %v; want the cap, a minute", wait)
	}
	if _, ok := g.Take(start.Add(wait), 10); !ok {
		t.Fatal("debt outlived its cap")
	}
}

func TestGCRAGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewGCRA(rapid.Int64().Draw(t, "perMinute"), rapid.Int64().Draw(t, "burst"))
		now := start
		for range 20 {
			now = now.Add(time.Duration(rapid.Int64().Draw(t, "step")))
			n := rapid.Int64().Draw(t, "n")
			wait, ok := g.Take(now, n)
			if ok != (wait == 0) || wait < 0 {
				t.Fatalf("Take = %v, %v", wait, ok)
			}
			g.Settle(now, n, rapid.Int64().Draw(t, "actual"))
		}
	})
}

func TestGCRARoundsUp(t *testing.T) {
	g := NewGCRA(7, 1)
	g.Take(start, 1)
	if wait, _ := g.Take(start, 1); wait != time.Minute/7+1 {
		t.Fatalf("wait %v; a seventh of a minute, rounded up", wait)
	}
}

// I9: what was admitted, as settled, never exceeds rate x time + burst + one
// request, and waiting as told always helps. It fails when Take does not add
// the cost to g.tat, or compares with a larger burst.
func TestGCRARateHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute := rapid.Int64Range(1, 1_000_000).Draw(t, "perMinute")
		burst := rapid.Int64Range(1, 10_000).Draw(t, "burst")
		g := NewGCRA(perMinute, burst)
		now, used := start, 0.0
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "step")))
			n := rapid.Int64Range(0, burst).Draw(t, "n")
			wait, ok := g.Take(now, n)
			if !ok {
				if _, ok = g.Take(now.Add(wait), n); !ok {
					t.Fatalf("refused after the wait of %v", wait)
				}
				now = now.Add(wait)
			}
			actual := rapid.Int64Range(0, n).Draw(t, "actual")
			g.Settle(now, n, actual)
			used += float64(actual)
			allowed := float64(perMinute)*now.Sub(start).Minutes() + float64(burst)
			if used > allowed+0.01 { // each step is rounded to nanoseconds
				t.Fatalf("used %v of %v", used, allowed)
			}
		}
	})
}

// Give and take are exact: an estimate that is settled leaves the same state
// as the real use taken at once.
func TestGCRASettleIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute := rapid.Int64Range(1, 1_000_000).Draw(t, "perMinute")
		a, b := NewGCRA(perMinute, 1000), NewGCRA(perMinute, 1000)
		now := start
		for range 20 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "step")))
			actual := rapid.Int64Range(0, 100).Draw(t, "actual")
			estimate := rapid.Int64Range(0, 100).Draw(t, "estimate")
			if _, ok := a.Peek(now, max(actual, estimate)); !ok {
				continue
			}
			a.Take(now, estimate)
			a.Settle(now, estimate, actual)
			b.Take(now, actual)
			// A bucket is full at most: what is below now does not count.
			if max(a.tat, a.at(now)) != max(b.tat, b.at(now)) {
				t.Fatalf("estimate %d, actual %d: TAT %d, want %d", estimate, actual, a.tat, b.tat)
			}
		}
	})
}

// I8: never negative, never above the limit at a grant. It fails when Release
// does not stop at 0.
func TestConcurrency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Concurrency
		model := 0
		for range 100 {
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				c.Limit = rapid.IntRange(-1, 5).Draw(t, "limit")
			case 1, 2:
				want := c.Limit <= 0 || model < c.Limit
				if c.Free() != want || c.Acquire() != want {
					t.Fatalf("limit %d, in flight %d: want %v", c.Limit, model, want)
				}
				if want {
					model++
				}
			case 3:
				c.Release()
				model = max(0, model-1)
			}
			if c.InFlight() != model {
				t.Fatalf("in flight %d, want %d", c.InFlight(), model)
			}
		}
	})
}

func BenchmarkGCRATakeSettle(b *testing.B) {
	g := NewGCRA(600_000_000, 1_000_000)
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		g.Take(now, 10)
		g.Settle(now, 10, 8)
	}
}

func BenchmarkConcurrency(b *testing.B) {
	c := Concurrency{Limit: 10}
	b.ReportAllocs()
	for b.Loop() {
		c.Acquire()
		c.Release()
	}
}

// A burst is there at once also when it is taken one by one and a unit's time
// is no whole number of nanoseconds. It fails when full is one
// cost.
func TestGCRABurstInParts(t *testing.T) {
	for _, perMinute := range []int64{7, 45, 180, 7000, 45_000_000_000} {
		for _, burst := range []int64{1, 2, 3, 10, 100} {
			g := NewGCRA(perMinute, burst)
			n := int64(0)
			for ; n <= burst; n++ {
				if _, ok := g.Peek(start, 1); !ok {
					break
				}
				if _, ok := g.Take(start, 1); !ok {
					t.Fatalf("%d a minute: Take refused what Peek had promised", perMinute)
				}
			}
			if perMinute < 1e9 && n != burst {
				t.Errorf("%d a minute, burst %d: %d at once", perMinute, burst, n)
			}
		}
	}
}
