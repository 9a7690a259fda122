package budget

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_700_000_000, 0)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// takes is the number of tokens that can be taken at once, at most 1000.
func takes(b *Budget, now time.Time) int {
	n := 0
	for n < 1000 && b.Take(now) {
		n++
	}
	return n
}

var (
	failed  = Result{Failure: true, Fast: true}
	success = Result{OK: true}
)

func TestReserveIsSpentOnce(t *testing.T) {
	b := New(Config{})
	if n := takes(b, start); n != 10 {
		t.Fatalf("%d tokens at the start, want 10", n)
	}
	if n := takes(b, after(3600)); n != 0 {
		t.Fatalf("%d tokens after an idle hour, want none", n)
	}
}

func TestReserveIsNotRefilledByTime(t *testing.T) {
	cfg := Default()
	cfg.PerSuccess = 1
	b := New(cfg)
	takes(b, start)
	for range 100 {
		b.Settle(start, success)
	}
	if n := takes(b, after(3600)); n != 0 {
		t.Fatalf("%d tokens after an idle hour, want none", n)
	}
}

func TestBothBucketsAreNeeded(t *testing.T) {
	b := New(Config{})
	takes(b, start)
	for range 100 {
		b.Request(start)
	}
	if b.Take(start) {
		t.Fatal("requests alone paid for an extra attempt")
	}
	for range 100 {
		b.Settle(start, success)
	}
	if n := takes(b, start); n != 10 {
		t.Fatalf("100 requests and successes paid for %d extra attempts, want 10", n)
	}
	for range 100 {
		b.Settle(start, success)
	}
	if b.Take(start) {
		t.Fatal("successes alone paid for an extra attempt")
	}
}

func TestSuccessesSaveUpToTheCap(t *testing.T) {
	b := New(Config{Ratio: 1, PerSuccess: 1, Window: time.Second, Cap: 5, Reserve: 100})
	for range 50 {
		b.Settle(start, success)
	}
	if n := takes(b, start); n != 5 {
		t.Fatalf("%d tokens, cap 5", n)
	}
}

func TestWindowExpires(t *testing.T) {
	b := New(Config{})
	for range 1000 {
		b.Request(start)
		b.Settle(start, success)
	}
	if got := b.Snapshot(after(9)).RatioTokens; got != 110 {
		t.Fatalf("after 9 s: %v tokens, want 110", got)
	}
	if got := b.Snapshot(after(10)).RatioTokens; got != 10 {
		t.Fatalf("after 10 s: %v tokens, want the reserve, 10", got)
	}
}

// A caller of a request a minute earns its reserve back: it may repeat one in
// ten, although nothing it earns lasts ten seconds.
func TestReserveIsEarnedBack(t *testing.T) {
	b := New(Config{})
	takes(b, start)
	var now time.Time
	for i := range 30 {
		now = after(float64(60 * i))
		b.Request(now)
		b.Settle(now, success)
	}
	if n := takes(b, now); n != 3 {
		t.Fatalf("30 requests earned %d extra attempts, want 3", n)
	}
}

func TestRefund(t *testing.T) {
	b := New(Config{})
	for range 50 {
		if !b.Take(start) {
			t.Fatal("refunds were lost")
		}
		b.Refund(start)
	}
	if s := b.Snapshot(start); s.Tokens != 10 || s.Extras != 0 {
		t.Fatalf("got %+v", s)
	}
}

func TestRatioOffTakesNothing(t *testing.T) {
	b := New(Config{Window: time.Second, Reserve: 10, Cap: 10, PerSuccess: 1, MaxRatio: 1})
	b.Request(start)
	if b.Take(start) {
		t.Fatal("ratio 0 must turn extra attempts off")
	}
}

// half plays seconds of a target that fails half its calls, extra attempts
// like first ones, beginning at the given second.
func half(b *Budget, from, seconds int) {
	extras := 0
	for s := from; s < from+seconds; s++ {
		for i := range 40 {
			now := after(float64(s) + float64(i)/40)
			b.Request(now)
			r := failed
			if i%2 == 0 {
				r = success
			}
			b.Settle(now, r)
			if r == failed && b.Take(now) {
				if extras++; extras%2 == 0 {
					r = success
				}
				r.Extra = true
				b.Settle(now, r)
			}
		}
	}
}

func TestRatioGrowsOnEvidence(t *testing.T) {
	b := New(Config{})
	half(b, 0, 4)
	if r := b.Snapshot(after(4)).Ratio; r != 0.1 {
		t.Fatalf("after 4 s, without a baseline: ratio %v", r)
	}
	half(b, 4, 2)
	if r := b.Snapshot(after(6)).Ratio; r <= 0.1 || b.Wide(after(6)) {
		t.Fatalf("after 6 s: ratio %v, wide %v", r, b.Wide(after(6)))
	}
	half(b, 6, 8)
	if r := b.Snapshot(after(14)).Ratio; r < 0.5 || !b.Wide(after(14)) {
		t.Fatalf("after 14 s: ratio %v, wide %v", r, b.Wide(after(14)))
	}
}

func TestRatioComesBack(t *testing.T) {
	many := func(n int, r Result) func(*Budget, time.Time) {
		return func(b *Budget, now time.Time) {
			for range n {
				b.Settle(now, r)
			}
		}
	}
	for _, tc := range []struct {
		name  string
		event func(*Budget, time.Time)
		wait  float64
		back  bool
	}{
		{"nothing", func(*Budget, time.Time) {}, 1, false},
		{"a capacity refusal", many(1, Result{Capacity: true}), 0, true},
		{"a time-out", many(1, Result{Failure: true, TimedOut: true}), 0, true},
		{"a cancel", many(1, Result{Canceled: true, TimedOut: true}), 1, false},
		{"one slow failure", many(1, Result{Failure: true}), 1, false},
		{"many slow failures", func(b *Budget, now time.Time) {
			many(40, Result{Failure: true})(b, now)
			many(40, success)(b, now)
		}, 1, true},
		{"extra attempts all failing", many(150, Result{Extra: true, Failure: true, Fast: true}), 1, true},
		{"first attempts all failing", many(40, failed), 1, true},
		{"caller's mistakes", many(100, Result{}), 1, false},
		{"no more traffic", func(*Budget, time.Time) {}, 12, true},
		{"an idle hour", func(b *Budget, _ time.Time) { half(b, 14, 1) }, 3600, true},
	} {
		b := New(Config{})
		half(b, 0, 14)
		if !b.Wide(after(14)) {
			t.Fatal("did not grow")
		}
		tc.event(b, after(14))
		if r := b.Snapshot(after(14 + tc.wait)).Ratio; (r == 0.1) != tc.back {
			t.Errorf("%s: ratio %v", tc.name, r)
		}
	}
}

func TestRatioComesBackWithItsTokens(t *testing.T) {
	b := New(Config{})
	half(b, 0, 14)
	for i := range 400 { // save up
		b.Request(after(14))
		b.Settle(after(14), Result{OK: true, Extra: i%2 == 0})
	}
	b.Settle(after(14), Result{Capacity: true})
	s := b.Snapshot(after(14))
	if most := 0.1*float64(s.Requests) + 10; s.RatioTokens > most {
		t.Fatalf("%v tokens after the ratio came back, want at most %v", s.RatioTokens, most)
	}
}

func TestTroubleKeepsTheRatioDownForAWindow(t *testing.T) {
	b := New(Config{})
	b.Settle(after(0), Result{Capacity: true})
	half(b, 0, 9)
	if r := b.Snapshot(after(9.9)).Ratio; r != 0.1 {
		t.Fatalf("ratio %v inside ten seconds of a refusal", r)
	}
	half(b, 10, 4)
	if r := b.Snapshot(after(14)).Ratio; r <= 0.1 {
		t.Fatal("did not grow after the refusal had aged")
	}
}

func TestRareFailuresDoNotGrowIt(t *testing.T) {
	b := New(Config{})
	for i := range 20_000 {
		now := after(float64(i) / 500)
		b.Request(now)
		r := success
		if i%20 == 0 {
			r = failed
		}
		b.Settle(now, r)
		if r == failed && b.Take(now) {
			b.Settle(now, Result{OK: true, Extra: true})
		}
	}
	if r := b.Snapshot(after(40)).Ratio; r != 0.1 {
		t.Fatalf("5 %% failures, which the ratio pays for, grew it to %v", r)
	}
}

func TestReconfigure(t *testing.T) {
	b := New(Config{})
	half(b, 0, 14)
	grown := b.Snapshot(after(14))
	b.Reconfigure(Config{})
	if got := b.Snapshot(after(14)); got != grown {
		t.Fatalf("the same configuration changed %+v to %+v", grown, got)
	}
	cfg := Default()
	cfg.Ratio, cfg.Cap, cfg.Reserve = 0.2, 3, 2
	b.Reconfigure(cfg)
	if got := b.Snapshot(after(14)); got.Ratio != 0.2 || got.SuccessTokens > 3 {
		t.Fatalf("after the change: %+v", got)
	}
	cfg.Window = time.Minute
	b.Reconfigure(cfg)
	if got := b.Snapshot(after(15)); got.RatioTokens > 2 || got.Requests != 0 {
		t.Fatalf("after the change of window: %+v", got)
	}
}

func TestSnapshot(t *testing.T) {
	b := New(Config{})
	if s := b.Snapshot(start); s.Amplification != 1 || s.Tokens != 10 || s.Ratio != 0.1 {
		t.Fatalf("at the start: %+v", s)
	}
	for range 10 {
		b.Request(start)
	}
	for range 5 {
		b.Settle(start, Result{Extra: true, OK: true})
	}
	if s := b.Snapshot(after(49)); s.Amplification != 1.5 || s.Requests != 0 {
		t.Fatalf("after 49 s: %+v", s)
	}
	if s := b.Snapshot(after(61)); s.Amplification != 1 {
		t.Fatalf("after a minute: %+v", s)
	}
}

func TestGarbageConfig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 0.1}))
		b := New(Config{
			Ratio: f.Draw(t, "ratio"), MaxRatio: f.Draw(t, "max"), PerSuccess: f.Draw(t, "per"),
			Window: time.Duration(rapid.Int64().Draw(t, "window")), Cap: f.Draw(t, "cap"), Reserve: f.Draw(t, "reserve"),
		})
		now := start
		for range 50 {
			now = now.Add(time.Duration(rapid.Int64().Draw(t, "step")))
			b.Request(now)
			b.Take(now)
			b.Settle(now, Result{OK: true})
			s := b.Snapshot(now)
			for _, x := range []float64{s.Tokens, s.RatioTokens, s.SuccessTokens, s.Ratio, s.Amplification} {
				if !(x >= 0) || math.IsInf(x, 0) {
					t.Fatalf("%+v", s)
				}
			}
		}
	})
}

// I1 and I2, for every prefix of any history: charged extra attempts never
// exceed the largest ratio in force x requests + the reserve, nor the largest
// deposit x successes + the reserve. Neither bucket is ever in debt.
//
// It fails when expire adds a token to the reserve for nothing, when Take looks
// at one bucket only, when Refund is called without a Take, or when spend
// forgets the reserve.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Ratio:      rapid.Float64Range(0, 1).Draw(t, "ratio"),
			MaxRatio:   rapid.Float64Range(0, 2).Draw(t, "max"),
			PerSuccess: rapid.Float64Range(0, 1).Draw(t, "per_success"),
			Window:     time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "window")),
			Cap:        rapid.Float64Range(0, 50).Draw(t, "cap"),
			Reserve:    rapid.Float64Range(0, 20).Draw(t, "reserve"),
		}
		b := New(cfg)
		now := start
		var requests, extras, successes int
		ratio, deposit := cfg.Ratio, cfg.PerSuccess
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Second), int64(3*time.Second)).Draw(t, "step")))
			ratio = max(ratio, b.Snapshot(now).Ratio)
			deposit = max(deposit, ratio)
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1:
				n := rapid.IntRange(1, 20).Draw(t, "n")
				for range n {
					b.Request(now)
				}
				requests += n
			case 2:
				extras += takes(b, now)
			case 3:
				if extras > 0 && b.Take(now) {
					b.Refund(now)
				}
			case 4:
				r := Result{
					OK:    rapid.Bool().Draw(t, "ok"),
					Extra: rapid.Bool().Draw(t, "extra"),
					Fast:  true, Failure: rapid.Bool().Draw(t, "failure"),
					Capacity: rapid.IntRange(0, 20).Draw(t, "capacity") == 0,
				}
				n := rapid.IntRange(1, 20).Draw(t, "n")
				for range n {
					b.Settle(now, r)
				}
				if r.OK {
					successes += n
				}
			}
			if most := ratio*float64(requests) + cfg.Reserve; float64(extras) > most+1e-3 {
				t.Fatalf("I1: %d extra attempts, at most %v", extras, most)
			}
			if most := deposit*float64(successes) + cfg.Reserve; float64(extras) > most+1e-3 {
				t.Fatalf("I2: %d extra attempts, at most %v", extras, most)
			}
			if b.kept < 0 || b.saved < 0 || b.ratio < b.ratioBase || b.ratio > b.ratioMax {
				t.Fatalf("kept %d, saved %d, ratio %d", b.kept, b.saved, b.ratio)
			}
		}
	})
}

// The same bounds where the ratio does grow.
func TestBoundsWhileGrown(t *testing.T) {
	b := New(Config{})
	half(b, 0, 60)
	var sum slot
	for i := range b.slots {
		sum.requests += b.slots[i].requests
		sum.takes += b.slots[i].takes
	}
	if sum.takes == 0 || float64(sum.takes) > float64(sum.requests)+10 {
		t.Fatalf("%d extra attempts for %d requests", sum.takes, sum.requests)
	}
}

func BenchmarkRequestSettle(b *testing.B) {
	x := New(Config{})
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		x.Request(now)
		x.Settle(now, success)
	}
}

func BenchmarkTake(b *testing.B) {
	x := New(Config{})
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		x.Request(now)
		x.Take(now)
		x.Settle(now, success)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	x := New(Config{})
	b.ReportAllocs()
	for b.Loop() {
		x.Snapshot(start)
	}
}

func TestScale(t *testing.T) {
	b := New(Config{})
	b.Scale(0)
	if b.Take(start) || b.Snapshot(start).Tokens != 0 || b.Snapshot(start).Factor != 0 {
		t.Error("by 0, and an extra attempt is paid for")
	}
	b.Scale(1)
	if s := b.Snapshot(start); s.Tokens != 10 || s.Factor != 1 {
		t.Errorf("back at 1: %+v", s)
	}
	for factor, want := range map[float64]int{10: 100, 2: 20, 0.5: 5, 0.1: 1, 0.05: 0, 1e-9: 0} {
		b := New(Config{})
		b.Scale(factor)
		if shown := b.Snapshot(start).Tokens; int(shown) != want {
			t.Errorf("by %v: %v shown, want %d", factor, shown, want)
		}
		if n := takes(b, start); n != want {
			t.Errorf("by %v: %d taken, want %d", factor, n, want)
		}
	}
}

// TestScaledBothBuckets: the price is to be in each of them.
func TestScaledBothBuckets(t *testing.T) {
	b := New(Config{})
	for range 100 {
		b.Settle(start, success)
	}
	b.Scale(0.15)
	if n := takes(b, start); n != 1 {
		t.Errorf("%d taken of what requests have earned, want 1", n)
	}
}

// TestRefundOfAnotherFactor: what is given back is never more than what was paid.
func TestRefundOfAnotherFactor(t *testing.T) {
	b := New(Config{})
	b.Scale(10)
	b.Take(start)
	b.Scale(0.1)
	b.Refund(start)
	b.Scale(1)
	if s := b.Snapshot(start); s.RatioTokens > 10 || s.SuccessTokens > 10 {
		t.Errorf("a token was made: %+v", s)
	}
}

// TestScaledBound: whatever the factors, and whenever they change, extra attempts are
// at most the largest of them times what is earned and held in reserve; and a factor
// that was in force while nothing was taken leaves nothing behind.
func TestScaledBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, plain, now, requests, most := New(Config{}), New(Config{}), start, 0, 1.0
		taken, ever := 0, false
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				f := float64(rapid.IntRange(0, 40).Draw(t, "factor")) / 4
				b.Scale(f)
				most = max(most, f)
			case 1:
				for range rapid.IntRange(1, 30).Draw(t, "requests") {
					b.Request(now)
					plain.Request(now)
					b.Settle(now, success)
					plain.Settle(now, success)
					requests++
				}
			case 2:
				if b.Take(now) {
					ever = true
					if rapid.Bool().Draw(t, "refund") {
						b.Refund(now)
					} else {
						taken++
					}
				}
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			}
			if bound := most * (0.1*float64(requests) + 10); float64(taken) > bound+1e-6 {
				t.Fatalf("%d taken, bound %v", taken, bound)
			}
		}
		if !ever {
			b.Scale(1)
			if x, y := b.Snapshot(now), plain.Snapshot(now); x != y {
				t.Fatalf("scaled %+v, never %+v", x, y)
			}
		}
	})
}
