package admit

import (
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_700_000_000, 0)

func TestLimiterReasons(t *testing.T) {
	for _, tc := range []struct {
		limits Limits
		reason string
		passed int // requests of 1,000 tokens at once
	}{
		{Limits{}, "", 100},
		{Limits{Concurrency: 3}, ReasonConcurrency, 3},
		{Limits{RPM: 5}, ReasonRPM, 5},
		{Limits{RPM: 600}, ReasonRPM, 60},
		{Limits{TPM: 4000}, ReasonTPM, 4},
		{Limits{TPM: 500_000}, ReasonTPM, 50},
	} {
		l := NewLimiter(tc.limits)
		passed, reason := 0, ""
		for passed < 100 {
			p, refusal := l.Enter(start, 1000)
			if p == nil {
				reason = refusal.Reason
				if refusal.Wait <= 0 {
					t.Errorf("%+v: refused without a wait", tc.limits)
				}
				break
			}
			passed++
		}
		if passed != tc.passed || reason != tc.reason {
			t.Errorf("%+v: %d passed, then %q; want %d, %q", tc.limits, passed, reason, tc.passed, tc.reason)
		}
	}
}

func TestLimiterRefusalUsesNothing(t *testing.T) {
	l := NewLimiter(Limits{RPM: 2, TPM: 1000})
	big, _ := l.Enter(start, 1000)
	for range 20 {
		if p, r := l.Enter(start, 1000); p != nil || r.Reason != ReasonTPM {
			t.Fatalf("got %v, %+v", p, r)
		}
	}
	big.Leave(start, 0)
	if p, r := l.Enter(start, 1000); p == nil {
		t.Fatalf("refusals used up the request rate: %+v", r)
	}
}

// inside is the number of requests that hold a permit.
func inside(l *Limiter) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls.InFlight()
}

func TestPermitLeavesOnce(t *testing.T) {
	l := NewLimiter(Limits{Concurrency: 2})
	a, _ := l.Enter(start, 1)
	b, _ := l.Enter(start, 1)
	a.Leave(start, 1)
	a.Leave(start, 1)
	if inside(l) != 1 {
		t.Fatalf("%d inside after one of two left twice", inside(l))
	}
	b.Leave(start, -1)
	(*Permit)(nil).Leave(start, 1)
	if inside(l) != 0 {
		t.Fatalf("%d inside at rest", inside(l))
	}
}

func TestLimiterReconfigureKeepsState(t *testing.T) {
	l := NewLimiter(Limits{RPM: 5, Concurrency: 10})
	for range 5 {
		l.Enter(start, 1)
	}
	l.Reconfigure(Limits{RPM: 5, Concurrency: 4})
	if _, r := l.Enter(start, 1); r.Reason != ReasonConcurrency {
		t.Fatalf("in-flight requests were forgotten: %+v", r)
	}
	l.Reconfigure(Limits{RPM: 5})
	if _, r := l.Enter(start, 1); r.Reason != ReasonRPM {
		t.Fatalf("a rate that did not change was reset: %+v", r)
	}
}

// I8 for a workload: never more inside than the limit, never fewer than none,
// and nobody inside at rest. It fails when Leave does not look at left.
func TestLimiterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			RPM:         rapid.Int64Range(0, 600).Draw(t, "rpm"),
			TPM:         rapid.Int64Range(0, 100_000).Draw(t, "tpm"),
			Concurrency: rapid.IntRange(0, 5).Draw(t, "concurrency"),
		}
		l := NewLimiter(limits)
		now := start
		var permits []*Permit
		for range 60 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "step")))
			if rapid.Bool().Draw(t, "enter") || len(permits) == 0 {
				if p, _ := l.Enter(now, rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64()).Draw(t, "tokens")); p != nil {
					permits = append(permits, p)
				}
			} else {
				p := permits[0]
				for range rapid.IntRange(1, 2).Draw(t, "leaves") {
					p.Leave(now, rapid.OneOf(rapid.Int64Range(-1, 5000), rapid.Just(int64(math.MaxInt64))).Draw(t, "actual"))
				}
				permits = permits[1:]
			}
			if n := inside(l); n != len(permits) || limits.Concurrency > 0 && n > limits.Concurrency {
				t.Fatalf("%d inside, want %d of %d", n, len(permits), limits.Concurrency)
			}
		}
	})
}

func TestLimiterConcurrent(t *testing.T) {
	l := NewLimiter(Limits{Concurrency: 3, TPM: 1_000_000})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				p, _ := l.Enter(start, 1)
				if n := inside(l); n > 3 {
					t.Errorf("%d inside, limit 3", n)
				}
				p.Leave(start, 1)
			}
		})
	}
	wg.Wait()
	if inside(l) != 0 {
		t.Fatalf("%d inside at rest", inside(l))
	}
}

func TestMemoryLimit(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct {
		name          string
		goLimit, host int64
		want          float64
	}{
		{"both", 8 * gib, 10 * gib, 0.6 * 8 * gib},
		{"container only", math.MaxInt64, 10 * gib, 0.6 * 0.9 * 10 * gib},
		{"GOMEMLIMIT only", 2 * gib, math.MaxInt64 - 4095, 0.6 * 2 * gib},
		{"GOMEMLIMIT above the container", 20 * gib, 10 * gib, 0.6 * 0.9 * 10 * gib},
		{"neither", math.MaxInt64, 0, 0.6 * 0.9 * gib},
		{"garbage", -1, -1, 0.6 * 0.9 * gib},
	} {
		if got := MemoryLimit(tc.goLimit, tc.host); math.Abs(float64(got)-tc.want) > 1 {
			t.Errorf("%s: %d, want %.0f", tc.name, got, tc.want)
		}
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := NewLimiter(Limits{RPM: 1 << 40, TPM: 1 << 40, Concurrency: 10})
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		p, _ := l.Enter(now, 100)
		p.Leave(now, 80)
	}
}

func BenchmarkLimiterRefusal(b *testing.B) {
	l := NewLimiter(Limits{RPM: 1})
	l.Enter(start, 1)
	b.ReportAllocs()
	for b.Loop() {
		l.Enter(start, 100)
	}
}
