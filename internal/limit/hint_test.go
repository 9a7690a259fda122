package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHintCountsWhatWasSentSince: an answer that says three are left was made
// when the calls behind it had not arrived. It fails when those are not taken
// off.
func TestHintCountsWhatWasSentSince(t *testing.T) {
	var h Hint
	first := h.Mark(start, 1)
	h.Sent(100)
	h.Sent(100)
	h.Note(start, first, Remaining{Stated: true, Left: 3}, Remaining{})
	for i := range 2 {
		if _, ok := h.Ask(start, 100); !ok {
			t.Fatalf("call %d of the two that are left", i)
		}
		h.Sent(100)
	}
	if wait, ok := h.Ask(start, 100); ok || wait != hintFor {
		t.Errorf("a third: %v %v", wait, ok)
	}
	if _, ok := h.Ask(start.Add(hintFor), 100); !ok {
		t.Error("still believed after two seconds")
	}
}

// said is one call that is answered with what is left, without a reset.
func said(h *Hint, now time.Time, left int64, served bool) {
	m := h.Mark(now, 1)
	h.Sent(1)
	h.Note(now, m, Remaining{Stated: true, Left: left}, Remaining{})
	if served {
		h.Served(now, m)
	}
}

// TestNothingLeftIsRefuted: a zero without a reset is believed for a second, and
// for a minute not at all when the next call is served and hears the same. It
// fails when Served does nothing.
func TestNothingLeftIsRefuted(t *testing.T) {
	var h Hint
	wait := func(now time.Time, want time.Duration) {
		t.Helper()
		if got, _ := h.Ask(now, 1); got != want {
			t.Errorf("%v: wait %v, want %v", now.Sub(start), got, want)
		}
	}
	before := h.Mark(start, 1)
	h.Sent(1)
	said(&h, start, 0, true)
	wait(start, zeroFor)
	h.Note(start.Add(zeroFor/2), before, Remaining{Stated: true}, Remaining{}) // was on its way
	now := start.Add(zeroFor)
	wait(now, 0)
	said(&h, now, 0, false) // refused: it is true
	wait(now, zeroFor)
	now = now.Add(zeroFor)
	said(&h, now, 0, true)
	wait(now, 0)
	for range 59 {
		now = now.Add(time.Second)
		said(&h, now, 0, true)
		wait(now, 0)
	}
	said(&h, now, 3, true) // more than what was refuted
	for range 3 {
		h.Sent(1)
	}
	wait(now, hintFor)
	now = now.Add(doubtFor)
	said(&h, now, 0, true)
	wait(now, zeroFor)
	m := h.Mark(now, 1)
	h.Sent(1)
	h.Note(now, m, Remaining{Stated: true, Reset: time.Minute}, Remaining{})
	wait(now, hintFor)
}

// TestASmallRestIsRefuted: so is a small rest, by a call beyond it; not by one
// within it, not where it has become less believable by time, and not where a
// reset is said.
func TestASmallRestIsRefuted(t *testing.T) {
	for _, x := range []struct {
		name  string
		sent  int // behind the first
		after time.Duration
		reset time.Duration
		again int64
		want  bool
	}{
		{"beyond it", 2, hintFor, 0, 2, true},
		{"within it", 1, hintFor, 0, 2, false},
		{"less is left", 2, hintFor, 0, 1, true},
		{"more is left", 2, hintFor, 0, 3, false},
		{"still believed", 2, hintFor - 1, 0, 2, false},
		{"long after", 2, hintFor + refuteFor, 0, 2, false},
		{"with a reset", 2, hintFor, time.Minute, 2, false},
	} {
		var h Hint
		r := Remaining{Stated: true, Left: 2, Reset: x.reset}
		m := h.Mark(start, 1)
		h.Sent(1)
		h.Note(start, m, r, Remaining{})
		for range x.sent {
			h.Sent(1)
		}
		now := start.Add(x.after)
		m = h.Mark(now, 1)
		h.Sent(1)
		r.Left = x.again
		h.Note(now, m, r, Remaining{})
		h.Served(now, m)
		if got := now.Before(h.requests.doubt); got != x.want {
			t.Errorf("%s: doubted %v", x.name, got)
		}
	}
}

// TestOlderAnswersChangeNothing: answers come in any order.
func TestOlderAnswersChangeNothing(t *testing.T) {
	var h Hint
	old := h.Mark(start, 1)
	h.Sent(1)
	late := h.Mark(start, 1)
	h.Sent(1)
	h.Note(start, late, Remaining{Stated: true, Left: 0, Reset: time.Second}, Remaining{})
	h.Note(start, old, Remaining{Stated: true, Left: 50}, Remaining{})
	if wait, ok := h.Ask(start, 1); ok || wait != time.Second {
		t.Errorf("open by an older answer: %v", wait)
	}
}

// TestLargeCallsAreNotStarved: a call that is estimated at more than what is
// left goes as long as half of the quota is there, or anything where the quota
// is not known.
func TestLargeCallsAreNotStarved(t *testing.T) {
	for _, x := range []struct {
		left, most int64
		want       bool
	}{{1, 0, true}, {0, 0, false}, {60, 100, true}, {40, 100, false}, {900, 1000, true}} {
		var h Hint
		h.Note(start, h.Mark(start, 1), Remaining{}, Remaining{Stated: true, Left: x.left, Most: x.most})
		if _, ok := h.Ask(start, 800); ok != x.want {
			t.Errorf("%d left of %d: %v", x.left, x.most, ok)
		}
	}
}

// TestNothingLeftIsHeardOnce: answers of calls that were on their way when nothing
// left was heard, without a reset, say the same and do not make it last longer. It
// fails when each begins another second.
func TestNothingLeftIsHeardOnce(t *testing.T) {
	var h Hint
	var marks [5]Mark
	for i := range marks {
		marks[i] = h.Mark(start, 1)
		h.Sent(1)
	}
	for i, m := range marks {
		h.Note(start.Add(time.Duration(i)*zeroFor/8), m, Remaining{Stated: true}, Remaining{})
	}
	if wait, _ := h.Ask(start.Add(zeroFor/2), 1); wait != zeroFor/2 {
		t.Errorf("wait %v, want %v", wait, zeroFor/2)
	}
}

// TestWhatAnotherHeardIsNotRefuted: a call that was served beyond what was left
// refutes what its own answer says, not what that of another one does.
func TestWhatAnotherHeardIsNotRefuted(t *testing.T) {
	var h Hint
	said(&h, start, 0, true)
	now := start.Add(zeroFor)
	silent := h.Mark(now, 1)
	h.Sent(1)
	said(&h, now, 0, false)
	h.Served(now, silent)
	if wait, _ := h.Ask(now, 1); wait != zeroFor {
		t.Errorf("wait %v, want %v", wait, zeroFor)
	}
}

// TestLessThanNothingIsRefuted: less than nothing is nothing, and refuted as that.
func TestLessThanNothingIsRefuted(t *testing.T) {
	var h Hint
	said(&h, start, -5, true)
	now := start.Add(zeroFor)
	said(&h, now, -5, true)
	if wait, ok := h.Ask(now, 1); !ok {
		t.Errorf("wait %v", wait)
	}
}

// TestHintProperties: whatever was said, nobody is kept away for more than two
// seconds from the last word, and what is let in between two words is no more
// than was left.
func TestHintProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Hint
		now, until, kept := start, start, start
		left, zero := int64(-1), int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				n := rapid.Int64Range(-1, 1<<50).Draw(t, "tokens")
				wait, ok := h.Ask(now, n)
				if ok != (wait == 0) || wait < 0 || wait > 0 && now.Add(wait).After(until) {
					t.Fatalf("%v %v, believed for %v", wait, ok, until.Sub(now))
				}
				if !ok {
					return
				}
				if h.Sent(n); left == 0 && now.Before(kept) {
					t.Fatal("nothing was left")
				}
				left = max(-1, left-1)
			},
			"note": func(t *rapid.T) {
				r := Remaining{Stated: true, Left: rapid.Int64Range(-5, 5).Draw(t, "left"), Most: rapid.Int64().Draw(t, "most")}
				m := h.Mark(now, 1)
				m.calls--
				h.Note(now, m, r, Remaining{Stated: rapid.Bool().Draw(t, "t"), Left: rapid.Int64().Draw(t, "tokens")})
				until, kept = now.Add(hintFor), now.Add(hintFor)
				if r.Left <= 0 && m.calls < zero { // it was on its way
					left = -1
				} else if left = max(0, r.Left); left == 0 {
					zero, kept = m.calls+1, now.Add(zeroFor)
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}

func BenchmarkHint(b *testing.B) {
	var h Hint
	b.ReportAllocs()
	for i := range b.N {
		now := start.Add(time.Duration(i) * time.Millisecond)
		m := h.Mark(now, 1)
		h.Ask(now, 100)
		h.Sent(100)
		h.Note(now, m, Remaining{Stated: true, Left: 100}, Remaining{Stated: true, Left: 100000})
	}
}
