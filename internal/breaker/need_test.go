package breaker

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// answering returns an open breaker whose last verdicts are successes by this
// share.
func answering(percent int) *Breaker {
	b := New(Default())
	for i := range 300 {
		b.Poll(t0, 0.5)
		o := Failure
		if (i+1)*percent/100 > i*percent/100 {
			o = Success
		}
		if p, ok := b.AcquireLastResort(t0, ask()); ok {
			b.Settle(t0, p, Verdict{Outcome: o})
		}
	}
	if b.phase < HalfOpen {
		b.open(t0, "test", 0.5)
	}
	return b
}

// admits is the share of last-resort calls that get in, at chances evenly
// spread, one at a time and without saying anything of the target.
func admits(b *Breaker, n Need) float64 {
	got := 0
	for i := range 100 {
		c := ask()
		c.Need, c.Rand = n, float64(i)/100
		if p, ok := b.AcquireLastResort(t0, c); ok {
			b.Settle(t0, p, Verdict{Outcome: Ignored})
			got++
		}
	}
	return float64(got) / 100
}

// TestNeed: who has nothing else is admitted to whatever answers; where
// another target would make the call wait, or a degraded model would take it,
// the share of successes decides.
func TestNeed(t *testing.T) {
	for _, c := range []struct {
		percent int
		need    Need
		from    float64
		to      float64
	}{
		{60, Nothing, 1, 1}, {60, Busy, 1, 1}, {60, Queue, 1, 1}, {60, Degraded, 1, 1},
		{45, Queue, 1, 1}, {35, Degraded, 0.1, 0.7},
		{30, Queue, 0.2, 0.8}, {30, Degraded, 0, 0.3},
		{20, Nothing, 1, 1}, {20, Busy, 1, 1}, {20, Queue, 0, 0}, {20, Degraded, 0, 0},
		{10, Busy, 1, 1}, {10, Queue, 0, 0}, {10, Degraded, 0, 0},
	} {
		if got := admits(answering(c.percent), c.need); got < c.from || got > c.to {
			t.Errorf("%d %% answered, need %d: %.2f admitted, want %.2f to %.2f", c.percent, c.need, got, c.from, c.to)
		}
	}
}

// TestSpare: a target that answers a quarter is of use, unless an operator
// holds it open.
func TestSpare(t *testing.T) {
	for percent, want := range map[int]bool{50: true, 30: true, 10: false, 0: false} {
		if got := answering(percent).Spare(t0); got != want {
			t.Errorf("%d %% answered: %v", percent, got)
		}
	}
	b := answering(50)
	b.Force(t0, ForcedOpen, time.Time{})
	if b.Spare(t0) {
		t.Error("held open, and of use")
	}
}

// TestTrickle: a dead target is asked 80 times a minute when there is nothing
// else, four or five times when another one is busy, and never for a call that
// another one only makes wait. The pauses are short again behind an answer.
func TestTrickle(t *testing.T) {
	minute := func(b *Breaker, now time.Time, n Need) (calls int) {
		for range 600 {
			now = now.Add(100 * time.Millisecond)
			c := ask()
			c.Need = n
			if p, ok := b.AcquireLastResort(now, c); ok {
				calls++
				b.Settle(now, p, Verdict{Outcome: Failure})
			}
		}
		return calls
	}
	for n, most := range map[Need][2]int{Nothing: {70, 80}, Busy: {7, 9}, Degraded: {7, 9}, Queue: {0, 0}} {
		b := New(Default())
		feed(b, t0, repeat(Failure, 40)...)
		if got := minute(b, t0, n); got < most[0] || got > most[1] {
			t.Errorf("need %d: %d calls in the first minute, want %v", n, got, most)
		}
		if got := minute(b, t0.Add(time.Minute), n); n != Nothing && got > 5 {
			t.Errorf("need %d: %d calls in the second minute", n, got)
		}
	}
	b := New(Default())
	feed(b, t0, repeat(Failure, 40)...)
	minute(b, t0, Busy)
	long := b.trickle(Busy)
	p, ok := b.AcquireLastResort(t0.Add(2*time.Minute), ask())
	if !ok {
		t.Fatal("refused behind a long pause")
	}
	b.Settle(t0.Add(2*time.Minute), p, Verdict{Outcome: Success})
	if short := b.trickle(Busy); long != maxTrickle || short != b.cfg.Trickle {
		t.Errorf("pause %v, behind an answer %v", long, short)
	}
}

// TestNeedProperties: the more a call needs the target, the more of them get
// in, whatever has happened before.
func TestNeedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		past := rapid.SliceOfN(rapid.SampledFrom([]Outcome{Success, Failure, Failure}), 40, 120).Draw(t, "past")
		make := func() *Breaker {
			b := New(Default())
			for _, o := range past {
				if p, ok := b.AcquireLastResort(t0, ask()); ok {
					b.Settle(t0, p, Verdict{Outcome: o})
				}
			}
			return b
		}
		c := ask()
		c.Rand = rapid.Float64Range(0, 0.999).Draw(t, "rand")
		in := map[Need]bool{}
		for _, n := range []Need{Nothing, Busy, Queue, Degraded} {
			c.Need = n
			b := make()
			b.trickled, b.vain = time.Time{}, 0
			_, in[n] = b.AcquireLastResort(t0, c)
		}
		if in[Queue] && !in[Busy] || in[Degraded] && !in[Busy] || in[Busy] != in[Nothing] {
			t.Fatalf("admitted by need: %v", in)
		}
	})
}

// TestHungCallsLeaveRoom: calls that hang at a target which answers others do
// not use up what it is known to carry, and not more than that much again.
func TestHungCallsLeaveRoom(t *testing.T) {
	b := answering(60)
	now := t0
	admit := func() (ps []Permit) {
		for range 100 {
			if p, ok := b.AcquireLastResort(now, ask()); ok {
				ps = append(ps, p)
			}
		}
		return ps
	}
	first := admit()
	if len(first) != leastPeak {
		t.Fatalf("%d calls at once, want %d", len(first), leastPeak)
	}
	now = now.Add(ask().Slow)
	b.Poll(now, 0.5)
	for range 40 { // it goes on answering others
		b.window.remember(now, &call{id: 1 << 40}, true)
	}
	if n := len(admit()); n != leastPeak {
		t.Errorf("%d calls beside %d that hang, want %d", n, leastPeak, leastPeak)
	}
	if n := len(admit()); n != 0 {
		t.Errorf("%d more", n)
	}
	for _, p := range first {
		b.Settle(now, p, Verdict{Outcome: Failure})
	}
	if b.late != 0 {
		t.Errorf("%d late calls left", b.late)
	}
}
