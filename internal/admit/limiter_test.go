package admit

import (
	"math"
	"sync"
	"sync/atomic"
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
		l := NewLimiter(OfWorkload, tc.limits)
		passed, reason := 0, ""
		for passed < 100 {
			_, refusal, ok := l.Enter(start, 1000)
			if !ok {
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
	l := NewLimiter(OfWorkload, Limits{RPM: 2, TPM: 1000})
	big, _, _ := l.Enter(start, 1000)
	for range 20 {
		if _, r, ok := l.Enter(start, 1000); ok || r.Reason != ReasonTPM {
			t.Fatalf("got %v, %+v", ok, r)
		}
	}
	big.Leave(start, Use{})
	if _, r, ok := l.Enter(start, 1000); !ok {
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
	l := NewLimiter(OfWorkload, Limits{Concurrency: 2})
	a, _, _ := l.Enter(start, 1)
	b, _, _ := l.Enter(start, 1)
	a.Leave(start, Use{Tokens: 1})
	a.Leave(start, Use{Tokens: 1})
	if inside(l) != 1 {
		t.Fatalf("%d inside after one of two left twice", inside(l))
	}
	b.Leave(start, Use{})
	new(Permit).Leave(start, Use{Tokens: 1})
	if inside(l) != 0 {
		t.Fatalf("%d inside at rest", inside(l))
	}
}

func TestLimiterReconfigureKeepsState(t *testing.T) {
	l := NewLimiter(OfWorkload, Limits{RPM: 5, Concurrency: 10})
	for range 5 {
		l.Enter(start, 1)
	}
	l.Reconfigure(Limits{RPM: 5, Concurrency: 4})
	if _, r, _ := l.Enter(start, 1); r.Reason != ReasonConcurrency {
		t.Fatalf("in-flight requests were forgotten: %+v", r)
	}
	l.Reconfigure(Limits{RPM: 5})
	if _, r, _ := l.Enter(start, 1); r.Reason != ReasonRPM {
		t.Fatalf("a rate that did not change was reset: %+v", r)
	}
}

// I8 for a workload: never more inside than the limit, never fewer than none,
// and nobody inside at rest. It fails when Leave gives back twice.
func TestLimiterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{
			RPM:         rapid.Int64Range(0, 600).Draw(t, "rpm"),
			TPM:         rapid.Int64Range(0, 100_000).Draw(t, "tpm"),
			Concurrency: rapid.IntRange(0, 5).Draw(t, "concurrency"),
		}
		l := NewLimiter(OfWorkload, limits)
		now := start
		var permits []*Permit
		for range 60 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "step")))
			if rapid.Bool().Draw(t, "enter") || len(permits) == 0 {
				if p, _, ok := l.Enter(now, rapid.OneOf(rapid.Int64Range(0, 5000), rapid.Int64()).Draw(t, "tokens")); ok {
					permits = append(permits, &p)
				}
			} else {
				p := permits[0]
				for range rapid.IntRange(1, 2).Draw(t, "leaves") {
					p.Leave(now, Use{Tokens: rapid.OneOf(rapid.Int64Range(-1, 5000), rapid.Just(int64(math.MaxInt64))).Draw(t, "actual")})
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
	l := NewLimiter(OfWorkload, Limits{Concurrency: 3, TPM: 1_000_000})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				p, _, _ := l.Enter(start, 1)
				if n := inside(l); n > 3 {
					t.Errorf("%d inside, limit 3", n)
				}
				p.Leave(start, Use{Tokens: 1})
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
	l := NewLimiter(OfWorkload, Limits{RPM: 1 << 40, TPM: 1 << 40, Concurrency: 10})
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		p, _, _ := l.Enter(now, 100)
		p.Leave(now, Use{Tokens: 80})
	}
}

func BenchmarkLimiterRefusal(b *testing.B) {
	l := NewLimiter(OfWorkload, Limits{RPM: 1})
	l.Enter(start, 1)
	b.ReportAllocs()
	for b.Loop() {
		l.Enter(start, 100)
	}
}

// I9: whatever is estimated and revised, what is settled is no more than rate
// and burst allow and one request more; and once everybody has left, the rate
// and the budget are where the real use alone would have them.
func TestI9Quota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{TPM: rapid.Int64Range(600, 600_000).Draw(t, "tpm"), USDPerDay: Money(rapid.Int64Range(1, 1_000_000).Draw(t, "usd"))}
		l, burst := NewLimiter(OfWorkload, limits), burst(limits.TPM, leastTokens)
		now := start
		type held struct {
			p   Permit
			use Use
		}
		var in []*held
		var settled Use
		most := 2 * burst // what one is charged at most
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "step")))
			if len(in) == 0 || rapid.Bool().Draw(t, "enter") {
				first := rapid.Int64Range(0, 20_000).Draw(t, "tokens")
				p, _, ok := l.Enter(now, first)
				if !ok {
					continue
				}
				h := &held{p: p, use: Use{Tokens: rapid.Int64Range(0, 20_000).Draw(t, "revised"), Cost: Money(rapid.Int64Range(0, 100_000).Draw(t, "cost"))}}
				if _, ok := h.p.Revise(now, h.use); ok {
					in = append(in, h)
				} else {
					h.p.Undo(now)
				}
				continue
			}
			h := in[0]
			in = in[1:]
			actual := Use{rapid.Int64Range(0, min(h.use.Tokens, most)).Draw(t, "actual"), Money(rapid.Int64Range(0, int64(h.use.Cost)).Draw(t, "spent"))}
			h.p.Leave(now, actual)
			settled.Tokens, settled.Cost = settled.Tokens+actual.Tokens, settled.Cost+actual.Cost
		}
		for _, h := range in {
			h.p.Leave(now, Use{})
		}
		allowed := limits.TPM*int64(now.Sub(start))/int64(time.Minute) + burst + most
		if settled.Tokens > allowed || settled.Cost > limits.USDPerDay+100_000 {
			t.Fatalf("%+v settled, %d tokens and %d allowed", settled, allowed, limits.USDPerDay)
		}
		s := l.Standing(now)
		if s.InFlight != 0 || s.Spent != settled.Cost {
			t.Fatalf("%+v at rest, %+v settled", s, settled)
		}
		if _, _, ok := l.Enter(now.Add(10*time.Hour), burst); !ok {
			t.Fatal("the rate does not come back")
		}
	})
}

// F08: a thousand that leave early count with what they really used.
func TestF08LeavingGivesTheReservationBack(t *testing.T) {
	l := NewLimiter(OfWorkload, Limits{TPM: 60_000_000, USDPerDay: USD(1000)})
	now := start
	for range 1000 {
		p, refusal, ok := l.Enter(now, 4000)
		if !ok {
			t.Fatal(refusal)
		}
		if refusal, ok := p.Revise(now, Use{Tokens: 5000, Cost: USD(0.9)}); !ok {
			t.Fatal(refusal)
		}
		p.Leave(now, Use{Tokens: 280, Cost: USD(0.001)})
	}
	s := l.Standing(now)
	if used := burst(60_000_000, leastTokens) - s.Tokens.Left; used < 280_000 || used > 281_000 {
		t.Errorf("%d tokens are counted, 280,000 were used", used)
	}
	if s.Spent != 1000*USD(0.001) {
		t.Errorf("%v dollars are counted", s.Spent.Dollars())
	}
}

// K06: of fifty at once the one that fits comes in.
func TestK06OneOfFifty(t *testing.T) {
	l := NewLimiter(OfKey, Limits{USDPerDay: USD(1)})
	var wg sync.WaitGroup
	var in atomic.Int64
	for range 50 {
		wg.Go(func() {
			p, _, ok := l.Enter(start, 100)
			if !ok {
				return
			}
			if refusal, ok := p.Revise(start, Use{Cost: USD(0.9)}); ok {
				in.Add(1)
			} else if refusal.Owner != OfKey || refusal.Reason != ReasonUSD || refusal.Wait <= 0 {
				t.Errorf("%+v", refusal)
			}
		})
	}
	wg.Wait()
	if in.Load() != 1 {
		t.Errorf("%d came in on a budget for one", in.Load())
	}
}

// K03 and K04: no more than rate and burst in any minute, also over its end.
func TestK04NoDoubleRateAtTheBoundary(t *testing.T) {
	l := NewLimiter(OfWorkload, Limits{RPM: 100})
	minute := start.Truncate(time.Minute)
	in := 0
	for _, at := range []time.Duration{59900 * time.Millisecond, 60100 * time.Millisecond} {
		for range 1022 {
			if p, _, ok := l.Enter(minute.Add(at), 0); ok {
				p.Leave(minute.Add(at), Use{})
				in++
			}
		}
	}
	if in > 10+1 {
		t.Errorf("%d came in within 200 ms at 100 a minute", in)
	}
}

// A rate that a reload replaces is not given back what it never took.
func TestReloadDoesNotMintTokens(t *testing.T) {
	l := NewLimiter(OfWorkload, Limits{TPM: 1000})
	p, _, _ := l.Enter(start, 900)
	l.Reconfigure(Limits{TPM: 2000})
	q, _, _ := l.Enter(start, 1900)
	p.Leave(start, Use{})
	if _, _, ok := l.Enter(start, 200); ok {
		t.Error("the new rate was given back what the old one had taken")
	}
	q.Leave(start, Use{})
}

// A reload that changes one rate leaves what is reserved of the other to be settled.
func TestReloadOfOneRateSettlesTheOther(t *testing.T) {
	l := NewLimiter(OfWorkload, Limits{RPM: 10, TPM: 100_000})
	p, _, _ := l.Enter(start, 16_000)
	q, _, _ := l.Enter(start, 1)
	l.Reconfigure(Limits{RPM: 20, TPM: 100_000})
	p.Leave(start, Use{})
	if left := l.Standing(start).Tokens.Left; left < 16_000 {
		t.Errorf("%d tokens left, the reservation is lost", left)
	}
	l.Reconfigure(Limits{RPM: 20, TPM: 200_000})
	q.Undo(start)
	if left := l.Standing(start).Requests.Left; left != 10 {
		t.Errorf("%d requests left: the new rate was given back what the old one had taken", left)
	}
}

// I9 for requests that are larger than what may come at once: what they really
// used holds the next ones up until the rate has made up for it.
func TestLargeRequestsKeepToTheRate(t *testing.T) {
	l, used := NewLimiter(OfWorkload, Limits{TPM: 200_000}), int64(0)
	for s := range 600 {
		now := start.Add(time.Duration(s) * time.Second)
		for {
			p, _, ok := l.Enter(now, 150_000)
			if !ok {
				break
			}
			p.Leave(now, Use{Tokens: 150_000})
			used += 150_000
		}
	}
	if most := int64(10*200_000 + 150_000 + 20_000); used > most {
		t.Errorf("%d tokens in ten minutes at 200000 a minute", used)
	}
}

func TestPrice(t *testing.T) {
	p := Price{Input: 2.5, Output: 10, Cached: 1.25}
	if got := p.Cost(1_000_000, 400_000, 100_000); got != USD(1.5+0.5+1) {
		t.Errorf("%v", got.Dollars())
	}
	if p.Cost(0, 0, 0) != 0 || p.Cost(-1, 5, -1) != 0 || p.Cost(10, 50, 0) != USD(10*1.25/1e6) {
		t.Error("counts that make no sense cost money")
	}
	if d := p.Dearest(Price{Input: 1, Output: 20}); d != (Price{Input: 2.5, Output: 20, Cached: 1.25}) {
		t.Errorf("%+v", d)
	}
}
