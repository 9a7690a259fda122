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
	first := h.Mark()
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

// TestOlderAnswersChangeNothing: answers come in any order.
func TestOlderAnswersChangeNothing(t *testing.T) {
	var h Hint
	old := h.Mark()
	h.Sent(1)
	late := h.Mark()
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
		h.Note(start, h.Mark(), Remaining{}, Remaining{Stated: true, Left: x.left, Most: x.most})
		if _, ok := h.Ask(start, 800); ok != x.want {
			t.Errorf("%d left of %d: %v", x.left, x.most, ok)
		}
	}
}

// TestHintProperties: whatever was said, nobody is kept away for more than two
// seconds from the last word, and what is let in between two words is no more
// than was left.
func TestHintProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Hint
		now, heard := start, start
		left := int64(-1)
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				n := rapid.Int64Range(-1, 1<<50).Draw(t, "tokens")
				wait, ok := h.Ask(now, n)
				if ok != (wait == 0) || wait < 0 || wait > 0 && now.Add(wait).After(heard.Add(hintFor)) {
					t.Fatalf("%v %v, heard %v ago", wait, ok, now.Sub(heard))
				}
				if !ok {
					return
				}
				if h.Sent(n); left == 0 && now.Sub(heard) < hintFor {
					t.Fatal("nothing was left")
				}
				left = max(-1, left-1)
			},
			"note": func(t *rapid.T) {
				r := Remaining{Stated: true, Left: rapid.Int64Range(-5, 5).Draw(t, "left"), Most: rapid.Int64().Draw(t, "most")}
				h.Note(now, Mark{h.Mark().calls - 1, h.Mark().tokens}, r, Remaining{Stated: rapid.Bool().Draw(t, "t"), Left: rapid.Int64().Draw(t, "tokens")})
				heard, left = now, max(0, r.Left)
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
		m := h.Mark()
		h.Ask(now, 100)
		h.Sent(100)
		h.Note(now, m, Remaining{Stated: true, Left: 100}, Remaining{Stated: true, Left: 100000})
	}
}
