package breaker

import (
	"testing"
	"time"
)

// slowed is a breaker that has taken a target for silent, and the calls that wait.
func slowed(t *testing.T) (b *Breaker, now time.Time, calls []Permit) {
	t.Helper()
	b, now = New(Default()), t0
	call := Call{Silence: 600 * time.Millisecond, Slow: 10 * time.Second}
	get := func() Permit {
		p, why := b.Acquire(now, call)
		if why != None {
			t.Fatalf("refused: %d", why)
		}
		return p
	}
	for range 400 {
		p := get()
		now = now.Add(50 * time.Millisecond)
		b.FirstContent(now, p)
		b.Settle(now, p, Verdict{Outcome: Success})
	}
	for b.Phase(now) == Closed {
		calls = append(calls, get())
		now = now.Add(50 * time.Millisecond)
		b.Poll(now, 0.5)
		if len(calls) > 100 {
			t.Fatal("no silence noticed")
		}
	}
	if b.reason != silence {
		t.Fatalf("opened for %q", b.reason)
	}
	return b, now, calls
}

// A target that answers after all what it was taken for silent on is slow: its
// cool-down is over, and the answers are the proof.
func TestAnAnswerRefutesSilence(t *testing.T) {
	b, now, calls := slowed(t)
	begun := now
	for i, p := range calls[:4] {
		now = now.Add(100 * time.Millisecond)
		b.FirstContent(now, p)
		b.Settle(now, p, Verdict{Outcome: Success})
		if i == 0 && b.Phase(now) != HalfOpen {
			t.Fatalf("%v after an answer", b.Phase(now))
		}
	}
	if b.Phase(now) != Ramp {
		t.Fatalf("%v after four answers", b.Phase(now))
	}
	if b.trips != 0 {
		t.Errorf("%d trips counted against a target that was not dead", b.trips)
	}
	// What has been that late is not silence any more at the same age.
	for b.Phase(now) == Ramp && now.Sub(begun) < 2*time.Second {
		p, _ := b.AcquireLastResort(now, Call{Silence: 600 * time.Millisecond, Slow: 10 * time.Second})
		_ = p
		now = now.Add(50 * time.Millisecond)
		b.Poll(now, 0.5)
	}
	if b.Phase(now) != Ramp {
		t.Errorf("silent again at %v", now.Sub(begun))
	}
}

// Only the calls that the silence was of take it back, and only a silence is.
func TestWhatRefutesNothing(t *testing.T) {
	b, now, calls := slowed(t)
	b.Force(now, ForcedOpen, time.Time{})
	b.FirstContent(now, calls[0])
	if b.Phase(now) != Open {
		t.Error("an answer ended an operator's decision")
	}

	b, now, calls = slowed(t)
	b.Settle(now, calls[0], Verdict{Outcome: Failure})
	b.Settle(now, calls[1], Verdict{Outcome: Ignored, Left: true})
	if b.Phase(now) != Open {
		t.Error("an end without an answer took the silence back")
	}

	b, now = New(Default()), t0
	late, _ := b.Acquire(now, Call{Slow: time.Minute})
	for range 20 {
		p, _ := b.Acquire(now, Call{Slow: time.Minute})
		b.Settle(now, p, Verdict{Outcome: Failure})
	}
	if b.Phase(now) != Open {
		t.Fatal("closed after 20 failures")
	}
	b.FirstContent(now, late)
	if b.Phase(now) != Open {
		t.Error("one answer took failures back")
	}
}

// The same when the cool-down is over before the first of them is answered.
func TestAnAnswerRefutesSilenceBehindTheCoolDown(t *testing.T) {
	b, now, calls := slowed(t)
	now = now.Add(7 * time.Second)
	b.Poll(now, 0.5)
	if p := b.Phase(now); p != HalfOpen {
		t.Fatalf("phase %s", p)
	}
	b.FirstContent(now, calls[0])
	if s := b.window.recentShare(now); s < 1 {
		t.Errorf("%.2f of the last calls succeeded, and none has failed", s)
	}
}
