package limit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// line is a target that takes latency for a call and serves rate of them a
// second: who comes too early waits in its queue.
type line struct {
	room    Room
	rate    float64
	latency time.Duration
	busy    time.Time
	waiting []pending // by their end
	queue   time.Duration
}

type pending struct {
	began, ends time.Time
	light       bool
}

func (l *line) until(now time.Time) {
	for len(l.waiting) > 0 && !l.waiting[0].ends.After(now) {
		c := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.room.Answered(c.ends, 0, c.ends.Sub(c.began), c.light)
	}
}

func (l *line) crowded(now time.Time) bool {
	l.until(now)
	return l.room.Crowded(now, len(l.waiting))
}

func (l *line) call(now time.Time) {
	l.until(now)
	if l.busy.Before(now) {
		l.busy = now
	}
	l.queue = l.busy.Sub(now)
	c := pending{began: now, ends: now.Add(l.queue + l.latency), light: l.room.Light(now, len(l.waiting))}
	l.busy = l.busy.Add(time.Duration(float64(time.Second) / l.rate))
	l.waiting = append(l.waiting, c)
	slices.SortFunc(l.waiting, func(a, b pending) int { return a.ends.Compare(b.ends) })
}

// TestRoomIsUsedAndNotOverrun: of twice the calls that a target serves, those
// that it has room for keep it busy, and its queue stays short. It
// fails when calls from the queue teach how long a call takes.
func TestRoomIsUsedAndNotOverrun(t *testing.T) {
	for _, rate := range []float64{3, 14, 100} {
		l := &line{rate: rate, latency: 400 * time.Millisecond}
		rnd := rand.New(rand.NewPCG(1, uint64(rate)))
		now, served, longest := start, 0.0, 0.0
		const length = 1200.0
		for now.Sub(start).Seconds() < length {
			now = now.Add(time.Duration(rnd.ExpFloat64() / (2 * rate) * float64(time.Second)))
			if l.crowded(now) {
				continue
			}
			l.call(now)
			served++
			if now.Sub(start) > 10*time.Second {
				longest = max(longest, l.queue.Seconds()*rate)
			}
		}
		expected := rate * 0.4
		if most := 3*math.Sqrt(expected) + 5; longest > most {
			t.Errorf("rate %v: %.1f calls in the queue, want at most %.1f", rate, longest, most)
		}
		if used := served / length / rate; used < 0.98 {
			t.Errorf("rate %v: %.1f %% used", rate, 100*used)
		}
	}
}

// TestRoomByChance: a target that does not queue is seldom called crowded,
// with arrivals and waits at random, and also while its traffic rises.
func TestRoomByChance(t *testing.T) {
	for _, rate := range []float64{0.5, 5, 50} {
		var r Room
		rnd := rand.New(rand.NewPCG(2, uint64(10*rate)))
		type waiter struct {
			began, ends time.Time
			light       bool
		}
		var ws []waiter
		now, crowded, calls := start, 0, 0
		for calls < 20_000 {
			speed := rate
			if calls < 1000 { // from a tenth of it
				speed *= 0.1 + 0.9*float64(calls)/1000
			}
			now = now.Add(time.Duration(rnd.ExpFloat64() / speed * float64(time.Second)))
			slices.SortFunc(ws, func(a, b waiter) int { return a.ends.Compare(b.ends) })
			for len(ws) > 0 && !ws[0].ends.After(now) {
				r.Answered(ws[0].ends, 3, ws[0].ends.Sub(ws[0].began), ws[0].light)
				ws = ws[1:]
			}
			if r.Crowded(now, len(ws)) {
				crowded++
			}
			calls++
			wait := time.Duration(math.Exp(rnd.NormFloat64()*0.6-0.6) * float64(time.Second))
			ws = append(ws, waiter{now, now.Add(wait), r.Light(now, len(ws))})
		}
		if share := float64(crowded) / float64(calls); share > 0.05 {
			t.Errorf("rate %v: %.1f %% of calls found it crowded", rate, 100*share)
		}
	}
}

// TestRoomBehindAPause: a burst at a target that was idle does not find it
// crowded because its answers have grown old, one right behind them does. It
// fails without roomStale.
func TestRoomBehindAPause(t *testing.T) {
	for _, c := range []struct {
		pause time.Duration
		want  bool
	}{
		{0, true},
		{4 * time.Second, true},
		{roomStale * roomFor, false},
		{time.Hour, false},
	} {
		var r Room
		for i := range 100 {
			r.Answered(start.Add(time.Duration(i)*100*time.Millisecond), 0, time.Second, true)
		}
		now := start.Add(9900*time.Millisecond + c.pause)
		if got := r.Crowded(now, 30); got != c.want {
			t.Errorf("%v behind the last answer, 30 calls wait: crowded %v", c.pause, got)
		}
	}
}

func TestRoomProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Room
		now := start
		if n := rapid.IntRange(0, 1<<20).Draw(t, "waiting"); r.Crowded(now, n) {
			t.Fatal("nothing is known, yet it is crowded")
		}
		t.Repeat(map[string]func(*rapid.T){
			"answer": func(t *rapid.T) {
				wait := time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(t, "wait"))
				r.Answered(now, rapid.Uint8().Draw(t, "class"), wait, rapid.Bool().Draw(t, "light"))
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Second), int64(time.Minute)).Draw(t, "step")))
			},
			"": func(t *rapid.T) {
				if e := r.expected(now); !(e >= 0) || math.IsInf(e, 0) {
					t.Fatalf("%v calls expected", e)
				}
				if r.Crowded(now, roomLeast-1) {
					t.Fatal("crowded with fewer calls than any target may have")
				}
				n := rapid.IntRange(0, 1000).Draw(t, "waiting")
				if r.Crowded(now, n) && !r.Crowded(now, n+1) {
					t.Fatalf("crowded with %d and not with one more", n)
				}
			},
		})
	})
}
