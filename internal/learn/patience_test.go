package learn

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPatience(t *testing.T) {
	now := time.Unix(1000, 0)
	leave := func(p *Patience, n int, age time.Duration) {
		for range n {
			p.Left(now, Caller{Workload: "a"}, age)
		}
	}
	answer := func(p *Patience, n int, took time.Duration) {
		for range n {
			p.Answered(now, Caller{Workload: "b"}, took)
		}
	}
	for name, tc := range map[string]struct {
		do   func(p *Patience)
		want bool
	}{
		"knows nothing":      {func(*Patience) {}, false},
		"left, no answers":   {func(p *Patience) { leave(p, 50, time.Second) }, false},
		"left, slow answers": {func(p *Patience) { leave(p, inVain, time.Second); answer(p, lastAnswers, 2*time.Second) }, true},
		"left too few":       {func(p *Patience) { leave(p, inVain-1, time.Second); answer(p, lastAnswers, 2*time.Second) }, false},
		"too few answers":    {func(p *Patience) { leave(p, inVain, time.Second); answer(p, lastAnswers-1, 2*time.Second) }, false},
		"one fast answer among the": {func(p *Patience) {
			leave(p, inVain, time.Second)
			answer(p, 4, 2*time.Second)
			answer(p, 1, time.Second)
		}, false},
		"fast again": {func(p *Patience) {
			leave(p, inVain, time.Second)
			answer(p, 5, 2*time.Second)
			answer(p, 1, time.Millisecond)
		}, false},
		"once waited longer": {func(p *Patience) {
			leave(p, 1, 3*time.Second)
			leave(p, inVain, time.Second)
			answer(p, lastAnswers, 2*time.Second)
		}, false},
		"was answered": {func(p *Patience) {
			leave(p, inVain, time.Second)
			p.Answered(now, Caller{Workload: "a"}, 3*time.Second)
			answer(p, lastAnswers, 2*time.Second)
		}, false},
		"answers to nobody": {func(p *Patience) {
			leave(p, inVain, time.Second)
			for range lastAnswers {
				p.Answers(now, 2*time.Second)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var p Patience
			tc.do(&p)
			p.Tried(now, Caller{Workload: "a"}) // one is let through
			if got := p.Vain(now, Caller{Workload: "a"}); got != tc.want {
				t.Errorf("vain: %v, want %v", got, tc.want)
			}
			if p.Vain(now, Caller{Workload: "b"}) {
				t.Error("a caller who was answered is refused")
			}
			if p.Vain(now.Add(recently+time.Second), Caller{Workload: "a"}) {
				t.Error("refused for what was long ago")
			}
		})
	}
}

// Whatever happens, a caller gets one call a second through, and the memory is
// bounded.
func TestPatienceLetsSomeThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Patience
		now, last := time.Unix(1000, 0), time.Unix(1000, 0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				p.Left(now, Caller{Workload: "a"}, time.Duration(rapid.IntRange(0, 2000).Draw(t, "age"))*time.Millisecond)
			case 1:
				p.Answers(now, time.Duration(rapid.IntRange(0, 4000).Draw(t, "took"))*time.Millisecond)
			default:
				if !p.Vain(now, Caller{Workload: "a"}) {
					p.Tried(now, Caller{Workload: "a"})
					last = now
				} else if now.Sub(last) >= retried {
					t.Fatalf("none let through for %s", now.Sub(last))
				}
			}
		}
		for i := range 3 * maxImpatient {
			p.Left(now, Caller{Workload: fmt.Sprint(i)}, time.Second)
		}
		if len(p.callers) > maxImpatient {
			t.Fatalf("%d callers remembered", len(p.callers))
		}
	})
}

// Callers of either sort behind one workload: those who wait are not refused for
// those who leave, however many these are.
func TestPatienceOfMixedCallers(t *testing.T) {
	var p Patience
	a, now, refused := Caller{Workload: "a"}, time.Unix(1000, 0), 0
	for i := range 600 { // ten leave at a second for each that hears its answer
		now = now.Add(100 * time.Millisecond)
		switch {
		case p.Vain(now, a):
			refused++
		case i%11 == 10:
			p.Tried(now, a)
			p.Answered(now, a, 5*time.Second+time.Duration(i%7)*time.Millisecond)
		default:
			p.Tried(now, a)
			p.Left(now, a, time.Second)
		}
	}
	if refused > 0 {
		t.Errorf("%d refused", refused)
	}
	now = now.Add(recently / 2)
	for range inVain { // a target that was fast when they heard it says nothing of their patience
		p.Left(now, Caller{Workload: "b"}, time.Second)
	}
	p.Answered(now, Caller{Workload: "b"}, 200*time.Millisecond)
	for range inVain {
		p.Tried(now, Caller{Workload: "b"})
		p.Left(now, Caller{Workload: "b"}, time.Second)
	}
	for range lastAnswers {
		p.Answers(now, 2*time.Second)
	}
	if !p.Vain(now, Caller{Workload: "b"}) {
		t.Error("who has only heard fast answers is taken for patient")
	}
}
