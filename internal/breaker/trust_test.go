package breaker

import (
	"testing"
	"time"
)

// returning is a target that bore 40 calls at once, has been dead for minutes
// and may be asked again.
func returning() *upstream {
	s := newUpstream(1)
	s.run(time.Minute, 200, s.resort, always(200*time.Millisecond, Success))
	s.run(3*time.Minute, 200, s.resort, s.failing(100))
	s.now = s.now.Add(time.Second)
	s.settle()
	for s.b.Phase(s.now) != Open { // the next cool-down runs
		feed(s.b, s.now, Failure)
		s.now = s.now.Add(time.Second)
	}
	s.b.Events()
	return s
}

// flood lets in as many last-resort calls as there is room for.
func (s *upstream) flood(n Need) (ps []Permit) {
	c := ask()
	c.Need = n
	for range 500 {
		if p, ok := s.b.AcquireLastResort(s.now, c); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

func (s *upstream) end(ps []Permit, o Outcome) {
	s.now = s.now.Add(100 * time.Millisecond)
	for _, p := range ps {
		if o == Success {
			s.b.FirstContent(s.now, p)
		}
		s.b.Settle(s.now, p, Verdict{Outcome: o})
	}
}

// TestTrustGrowsWithAnswers: what a target that was dead gets at once grows
// with its answers, faster where callers have nothing else. Letting in all
// that it once bore, as soon as one call in twenty is answered, fails it.
func TestTrustGrowsWithAnswers(t *testing.T) {
	for n, want := range map[Need][]int{
		Nothing: {1, 4, 16, 41},
		Busy:    {1, 2, 4, 8, 16, 32},
	} {
		s := returning()
		s.b.cfg.Probes, s.b.trickled = never, time.Time{} // it stays open, and no pause runs
		for i, want := range want {
			ps := s.flood(n)
			if got := len(ps); got != want {
				t.Errorf("need %d, round %d: %d calls at once, want %d", n, i, got, want)
			}
			if s.b.phase != Open {
				t.Fatal("not open")
			}
			s.end(ps, Success)
		}
	}
}

// TestTrustShrinks: a refusal for capacity halves it, failures take less, and
// a target that answers none is dead again.
func TestTrustShrinks(t *testing.T) {
	for _, c := range []struct {
		need     Need
		outcomes []Outcome // of one call at a time
		min, max int
	}{
		{Busy, []Outcome{Capacity}, 4, 4},
		{Busy, []Outcome{Capacity, Capacity}, 2, 2},
		{Nothing, []Outcome{Capacity}, 8, 8},
		{Busy, repeat(Failure, 4), 6, 6},
		{Nothing, repeat(Failure, 8), 15, 15},
		{Busy, repeat(Failure, 25), 0, 1},
		{Nothing, repeat(Failure, 25), 0, 1},
	} {
		s := returning()
		for len(s.flood(c.need)) == 0 {
			s.now = s.now.Add(time.Second)
		}
		s.b.trust = map[Need]float64{Busy: 8, Nothing: 16}[c.need]
		feedWindow(s, 10)
		for _, o := range c.outcomes {
			call := ask()
			call.Need = c.need
			p := s.b.begin(s.now, call, kindLast)
			s.b.Settle(s.now, p, Verdict{Outcome: o})
		}
		s.b.waiting.clear()
		if got := len(s.flood(c.need)); got < c.min || got > c.max {
			t.Errorf("need %d, %d times %d: %d calls at once, want %d to %d", c.need, len(c.outcomes), c.outcomes[0], got, c.min, c.max)
		}
	}
}

// feedWindow makes the last verdicts good ones.
func feedWindow(s *upstream, n int) {
	for i := range n {
		s.b.window.remember(s.now, &call{id: uint64(1<<40 + i)}, true)
	}
}

// TestPartialReturn: a target that was dead and answers a part of its calls
// again is used for all of them, where there is nothing else: promise 10 holds
// behind a total outage too. Halving the trust with each failure fails it.
func TestPartialReturn(t *testing.T) {
	for percent, want := range map[int]float64{50: 0.45, 80: 0.15} {
		s := returning()
		s.run(30*time.Second, 200, s.resort, s.failing(percent))
		s.good, s.bad, s.admitted, s.refused = 0, 0, 0, 0
		s.run(time.Minute, 200, s.resort, s.failing(percent))
		if share := float64(s.good) / float64(s.admitted+s.refused); share < want {
			t.Errorf("%d %% fail: %.2f of all calls succeeded, want %.2f", percent, share, want)
		}
	}
}

// TestSlowAnswersProve: a target that has become eight times slower, with no
// other, proves itself by slow answers. Ending every trial at the age of slow
// fails it. Where another target is busy nobody has to wait so long.
func TestSlowAnswersProve(t *testing.T) {
	for n, want := range map[Need]bool{Nothing: true, Busy: false} {
		s := newUpstream(1)
		c := Call{Slow: time.Second, Silence: 1250 * time.Millisecond, Lease: 10 * time.Second, Need: n}
		s.run(time.Minute, 23, s.with(c), always(200*time.Millisecond, Success))
		for s.b.phase == Closed {
			s.run(100*time.Millisecond, 23, s.with(c), hang)
		}
		s.ends = nil
		s.good = 0
		s.run(3*time.Second, 23, func() (Permit, bool) {
			return s.b.AcquireLastResort(s.now, c)
		}, always(1600*time.Millisecond, Success))
		if got := s.b.RecentShare(s.now) > 0; got != want {
			t.Errorf("need %d: answered %v, want %v", n, got, want)
		}
	}
}

// TestOneLateTrial: while a slow trial runs on, a dead target gets one call
// more at a time and no third.
func TestOneLateTrial(t *testing.T) {
	s := newUpstream(1)
	s.trip()
	most := 0
	for range 200 {
		s.now = s.now.Add(50 * time.Millisecond)
		s.b.Poll(s.now, 0.5)
		if s.b.phase != Open {
			break
		}
		if p, ok := s.b.AcquireLastResort(s.now, Call{Slow: time.Second, Lease: 20 * time.Second}); ok {
			s.ends = append(s.ends, end{s.now.Add(20 * time.Second), p, Failure})
		}
		out := 0
		for _, e := range s.ends {
			if c := e.p.valid(); c != nil && !c.lost {
				out++
			}
		}
		most = max(most, out)
	}
	if most != 2 {
		t.Errorf("%d trials at once", most)
	}
}
