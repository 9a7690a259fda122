package repeat

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 5, 29, 9, 35, 0, 0, time.UTC)

// In every stretch of time no more repeats come in than the documentation of
// Take says. It fails without the bound on what is saved up.
func TestGateBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g Gate
		now := start
		type step struct {
			at            time.Time
			first, passed float64
		}
		var log []step
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			s := step{at: now}
			for range rapid.IntRange(0, 20).Draw(t, "first") {
				g.First(now)
				s.first++
			}
			for range rapid.IntRange(0, 20).Draw(t, "repeats") {
				if _, ok := g.Take(now); ok {
					s.passed++
				}
			}
			log = append(log, s)
		}
		for i := range log {
			var first, passed float64
			before := 0.0
			for j := range i {
				if log[i].at.Sub(log[j].at) < 10*span { // decayed to nothing behind that
					before += log[j].first
				}
			}
			for _, s := range log[i:] {
				first += s.first
				passed += s.passed
				if most := Ratio*(first+before) + PerSecond*s.at.Sub(log[i].at).Seconds() + reserve; passed > most+1e-6 {
					t.Fatalf("%v repeats of %v requests in %v, at most %v", passed, first, s.at.Sub(log[i].at), most)
				}
			}
		}
	})
}

func TestGateWait(t *testing.T) {
	var g Gate
	for range reserve {
		if _, ok := g.Take(start); !ok {
			t.Fatal("the reserve is not there")
		}
	}
	last := time.Duration(0)
	for range 100 {
		wait, ok := g.Take(start)
		if ok || wait <= 0 || wait > longestWait || wait < last {
			t.Fatalf("wait %v behind %v, let in: %v", wait, last, ok)
		}
		last = wait
	}
	if _, ok := g.Take(start.Add(time.Second)); !ok {
		t.Error("a second brings a token")
	}
	if last != longestWait {
		t.Errorf("a hundred are told to come within %v", last)
	}
}

// A storm of repeats does not pay for itself, and ends with its cause.
func TestGateStorm(t *testing.T) {
	var g Gate
	now, in := start, 0
	for range 60 * 100 { // a minute of 100 repeats a second and two first requests
		now = now.Add(10 * time.Millisecond)
		if now.Nanosecond()%500_000_000 == 0 {
			g.First(now)
		}
		if _, ok := g.Take(now); ok {
			in++
		}
	}
	if in > 60+12+reserve+3 {
		t.Errorf("%d repeats came in", in)
	}
	if g.Tokens(now.Add(time.Minute)) < reserve {
		t.Error("a minute later the reserve is not back")
	}
}

// A storm of large bodies that only show when they are read is mostly refused
// unread, a small one never, and nothing is once it is over.
func TestUnread(t *testing.T) {
	for _, size := range []int{2 << 10, 8 << 20} {
		var g Gate
		now, reads := start, 0
		for range 60 * 20 { // a minute of 20 a second, all but one in 20 repeats
			now = now.Add(50 * time.Millisecond)
			if g.Unread(now) {
				continue
			}
			g.Read(now, size, reads%20 > 0)
			reads++
		}
		if small := size < 1<<20; small && reads != 1200 || !small && reads > 400 {
			t.Errorf("bodies of %d: %d of 1200 were read", size, reads)
		}
		if g.Unread(now.Add(time.Minute)) {
			t.Errorf("bodies of %d: refused unread a minute later", size)
		}
	}
}

func TestMemory(t *testing.T) {
	var m Memory
	if m.Repeats(start, 1) || !m.Empty(start) {
		t.Error("knows something")
	}
	m.Failed(start, 1, time.Time{})
	m.Failed(start.Add(30*time.Second), 1, time.Time{})
	m.Failed(start, 0, time.Time{})
	if !m.Repeats(start.Add(80*time.Second), 1) || m.Repeats(start.Add(90*time.Second), 1) {
		t.Error("not the last failure counts")
	}
	m.Failed(start.Add(31*time.Second), 2, time.Time{})
	if !m.Empty(start.Add(31*time.Second+Remembered)) || m.seen != nil || m.order != nil {
		t.Error("the room is not given back")
	}
}

// A prompt that comes again behind its answer is a common one: its failures make
// no repeats, until it has not come for a while.
func TestCommonPrompt(t *testing.T) {
	var m Memory
	m.Served(start, 1)
	if !m.Empty(start) {
		t.Error("a healthy request is remembered")
	}
	m.Failed(start, 1, time.Time{})
	m.Served(start.Add(time.Second), 1)
	now := start
	for range 100 {
		now = now.Add(2 * time.Second)
		m.Failed(now, 1, time.Time{})
		m.Served(now, 1)
		if m.Repeats(now, 1) {
			t.Fatalf("a repeat after %v", now.Sub(start))
		}
	}
	later := now.Add(2 * Remembered)
	m.Failed(later, 1, time.Time{})
	if !m.Repeats(later, 1) {
		t.Error("common for good")
	}
}

// What is remembered is what failed last, within the bound.
func TestMemoryIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		last := map[uint64]time.Time{}
		now := start
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			h := rapid.Uint64Range(1, 40).Draw(t, "hash")
			m.Failed(now, h, time.Time{})
			last[h] = now
			for h := uint64(1); h <= 40; h++ {
				at, failed := last[h]
				repeats := m.Repeats(now, h)
				if repeats && (!failed || now.Sub(at) >= Remembered) || !repeats && failed && now.Sub(at) < Remembered*15/16 {
					t.Fatalf("hash %d: %v, failed %v ago", h, repeats, now.Sub(at))
				}
			}
		}
		if m.n > most || len(m.seen) > m.n {
			t.Fatalf("%d entries, %d known", m.n, len(m.seen))
		}
	})
	var m Memory
	for h := range uint64(3 * most) {
		m.Failed(start, h+1, time.Time{})
	}
	if len(m.seen) != most || m.n != most || m.Repeats(start, 1) || !m.Repeats(start, 3*most) {
		t.Errorf("%d remembered", len(m.seen))
	}
}

func TestWindow(t *testing.T) {
	var w Window
	now := start
	for i := range 120 {
		now = start.Add(time.Duration(i) * time.Second)
		w.Add(now, i%3 > 0)
	}
	tr := w.Traffic(now)
	if a := tr.Amplification(); a < 2.8 || a > 3.2 {
		t.Errorf("amplification %v of %+v, want 3", a, tr)
	}
	if d := tr.Demand(); d < 0.3 || d > 0.37 {
		t.Errorf("demand %v, want a third", d)
	}
	if tr := w.Traffic(now.Add(time.Hour)); tr.Inbound != 0 || tr.Amplification() != 1 || tr.Demand() != 0 {
		t.Errorf("an hour later %+v", tr)
	}
	w.Add(now.Add(time.Hour), false)
	w.Again(now.Add(time.Hour))
	if a := w.Traffic(now.Add(time.Hour)).Amplification(); a != 1 {
		t.Errorf("one repeat of nothing that is in the window: %v", a)
	}
}

func BenchmarkMemoryFailed(b *testing.B) {
	var m Memory
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.Failed(start.Add(time.Duration(i)*time.Millisecond), uint64(i)*0x9e3779b97f4a7c15+1, time.Time{})
	}
}
