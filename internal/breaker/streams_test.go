package breaker

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flowing has streams that began rate a second over d, up to t0, and all run.
func flowing(rate int, d time.Duration) (b *Breaker, running []Permit) {
	b = New(Default())
	n := int(d.Seconds()) * rate
	for i := range n {
		now := t0.Add(-d + d*time.Duration(i)/time.Duration(n))
		p, _ := b.Acquire(now, ask())
		b.FirstContent(now, p)
		running = append(running, p)
	}
	return b, running
}

// breakOff breaks a share of the streams within half a second, those that
// began last at first, at last or in any order, while new calls end with o.
func breakOff(b *Breaker, running []Permit, share float64, order string, seed uint64, o Outcome) {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := len(running)
	for i, j := range rng.Perm(n) {
		switch order {
		case "oldest first":
			j = i
		case "youngest first":
			j = n - 1 - i
		}
		now := t0.Add(500 * time.Millisecond * time.Duration(i) / time.Duration(n))
		if rng.Float64() < share {
			b.Settle(now, running[j], Verdict{Outcome: Failure, Rand: 0.5})
		}
		if i%(n/10) == 0 {
			feed(b, now, o)
		}
	}
}

// TestCutStreams: a cut of some of the streams is one event; a cut of most of
// them, or of some while new calls fail too, is an outage. Counting every
// break fails the first rows, counting none of those that are excused the
// others.
func TestCutStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  int
		d     time.Duration
		share float64
		next  Outcome // of new calls
		want  Phase
	}{
		{"4 % of 1,200", 10, 2 * time.Minute, 0.04, Success, Closed},
		{"17 % of 1,200", 10, 2 * time.Minute, 0.17, Success, Closed},
		{"17 % of 60", 1, time.Minute, 0.17, Success, Closed},
		{"17 % of streams that run for ten minutes", 2, 10 * time.Minute, 0.17, Success, Closed},
		{"40 % of 1,200", 10, 2 * time.Minute, 0.4, Success, Closed},
		{"all of 1,200", 10, 2 * time.Minute, 1, Success, Open},
		{"all of 15", 1, 15 * time.Second, 1, Ignored, Open},
		{"all of 12", 1, 12 * time.Second, 1, Ignored, Open},
		{"70 % of 1,200", 10, 2 * time.Minute, 0.7, Success, Open},
		{"17 % of 1,200, and new calls fail", 10, 2 * time.Minute, 0.17, Failure, Open},
	} {
		for _, order := range []string{"any order", "oldest first", "youngest first"} {
			b, running := flowing(c.rate, c.d)
			breakOff(b, running, c.share, order, 1, c.next)
			if got := b.Phase(t0.Add(time.Second)); got != c.want {
				t.Errorf("%s, %s: %v, want %v", c.name, order, got, c.want)
			}
		}
	}
}

// TestCutProperties: whatever runs and whoever is hit, less than a quarter
// never opens it, and all of at least twelve streams always do.
func TestCutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, d := rapid.IntRange(1, 20).Draw(t, "rate"), time.Duration(rapid.IntRange(30, 300).Draw(t, "s"))*time.Second
		order := rapid.SampledFrom([]string{"any order", "oldest first", "youngest first"}).Draw(t, "order")
		seed := rapid.Uint64().Draw(t, "seed")
		b, running := flowing(rate, d)
		breakOff(b, running, rapid.Float64Range(0, 0.25).Draw(t, "share"), order, seed, Success)
		if b.phase != Closed {
			t.Fatalf("opened: %s", b.reason)
		}
		b, running = flowing(rate, d)
		breakOff(b, running, 1, order, seed, Success)
		if b.phase != Open {
			t.Fatal("closed although every stream broke off")
		}
	})
}

// TestStreamsBreakAtAnAge: the streams of a target that ends each of them at
// 20 s are many and run on, but none of those is older. Judging by all that
// run keeps it closed for as long again.
func TestStreamsBreakAtAnAge(t *testing.T) {
	b, running := flowing(10, 20*time.Second)
	for i := range 300 {
		now := t0.Add(time.Duration(i) * 100 * time.Millisecond)
		b.Settle(now, running[i], Verdict{Outcome: Failure, Rand: 0.5})
		p, r := b.Acquire(now, ask())
		if r != None {
			if d := now.Sub(t0); d > 4*time.Second {
				t.Errorf("open after %v", d)
			}
			return
		}
		b.FirstContent(now, p)
		running = append(running, p)
	}
	t.Error("closed after half a minute")
}

// TestStreamsFailOneByOne: where most streams break sooner or later, it opens
// when as many have broken as run on, not never.
func TestStreamsFailOneByOne(t *testing.T) {
	b, now, rng := New(Default()), t0, rand.New(rand.NewPCG(1, 1))
	var running []Permit
	for range 1200 { // 1 in 20 each second, over two minutes
		now = now.Add(100 * time.Millisecond)
		if p, r := b.Acquire(now, ask()); r == None {
			b.FirstContent(now, p)
			running = append(running, p)
		}
		rest := running[:0]
		for _, p := range running {
			if rng.IntN(200) == 0 {
				b.Settle(now, p, Verdict{Outcome: Failure, Rand: 0.5})
				continue
			}
			rest = append(rest, p)
		}
		running = rest
		if b.phase == Open {
			return
		}
	}
	t.Error("closed")
}

// TestHerd: behind a cut no more calls wait than before it, by and by more,
// and after half a minute as many as there are. One stream that breaks is no
// cut.
func TestHerd(t *testing.T) {
	waiting := func(b *Breaker, now time.Time) (n int) {
		var ps []Permit
		for range 200 {
			if p, r := b.Acquire(now, ask()); r == None {
				ps = append(ps, p)
			} else if r != Herd {
				t.Fatalf("refused by %d", r)
			}
		}
		for _, p := range ps {
			b.Settle(now, p, Verdict{Outcome: Ignored})
		}
		return len(ps)
	}
	b, running := flowing(10, 2*time.Minute)
	b.Settle(t0, running[600], Verdict{Outcome: Failure})
	if n := waiting(b, t0); n != 200 {
		t.Errorf("%d calls let in behind one break", n)
	}
	b, running = flowing(10, 2*time.Minute)
	breakOff(b, running, 0.17, "any order", 1, Success)
	cut := b.streams.herd
	for after, want := range map[time.Duration]int{time.Second: leastPeak, 15 * time.Second: 5 * leastPeak / 2, herdFor: 200} {
		if n := waiting(b, cut.Add(after)); n != want {
			t.Errorf("%d calls let in %v behind the cut, want %d", n, after, want)
		}
	}
}

// TestAllStreamsBreakBesideShortCalls: once half of the streams have broken,
// those before count in the row too. Without charge it stays closed.
func TestAllStreamsBreakBesideShortCalls(t *testing.T) {
	b, running := flowing(1, 12*time.Second)
	feed(b, t0, repeat(Success, 100)...)
	breakOff(b, running, 1, "youngest first", 1, Ignored)
	if b.phase != Open || b.reason != "failures_in_a_row" {
		t.Errorf("%v, %s", b.phase, b.reason)
	}
}
