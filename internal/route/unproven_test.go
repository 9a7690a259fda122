package route

import (
	"testing"
	"time"
)

// wait makes calls that stay without content.
func wait(t *testing.T, a *Target, at time.Time, n int, patient bool) {
	t.Helper()
	for range n {
		q := query(at)
		q.Patient = patient
		if c, why, _ := a.Try(q); c == nil {
			t.Fatalf("refused: %d", why)
		}
	}
}

// TestUnproven: calls pile up at a target that has never answered.
func TestUnproven(t *testing.T) {
	now := t0.Add(time.Minute)
	for _, c := range []struct {
		name     string
		calls    int
		patient  int // older ones that wait for their callers
		age      time.Duration
		answered bool
		want     bool
	}{
		{"idle", 0, 0, 0, false, false},
		{"seven", 7, 0, 10 * time.Second, false, false},
		{"eight, young", 8, 0, 1900 * time.Millisecond, false, false},
		{"eight, old", 8, 0, 2 * time.Second, false, true},
		{"eight, old, and one was answered", 8, 0, 10 * time.Second, true, false},
		{"eight that wait for their callers", 0, 8, 0, false, false},
		{"eight, young, behind an upload", 8, 1, time.Second, false, false},
	} {
		a := target("a", "x", Limits{})
		if c.answered {
			call, _, _ := a.Try(query(t0))
			call.FirstContent(t0)
		}
		wait(t, a, t0, c.patient, true)
		wait(t, a, now.Add(-c.age), c.calls, false)
		if got := a.unproven(now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestPiledUpFirstChoice: first attempts pass over it as long as another target
// takes them.
func TestPiledUpFirstChoice(t *testing.T) {
	now := t0.Add(time.Minute)
	for _, c := range []struct {
		name   string
		second func() *Target
		extra  bool
		want   string
	}{
		{"another is idle", func() *Target { return target("second", "y", Limits{}) }, false, "second"},
		{"another is idle, an extra attempt", func() *Target { return target("second", "y", Limits{}) }, true, "first"},
		{"there is no other", func() *Target { return nil }, false, "first"},
		{"another is drained", func() *Target {
			a := target("second", "y", Limits{})
			a.Steer(now, Steering{Drained: true, Factor: 1})
			return a
		}, false, "first"},
		{"another is open", func() *Target {
			a := target("second", "y", Limits{})
			wear(t, a, now, 0)
			return a
		}, false, "first"},
		{"another is as bad", func() *Target {
			a := target("second", "y", Limits{})
			wait(t, a, now.Add(-10*time.Second), 8, false)
			return a
		}, false, "first"},
	} {
		first := target("first", "x", Limits{})
		wait(t, first, now.Add(-5*time.Second), 8, false)
		m := order(first)
		if second := c.second(); second != nil {
			m = order(first, second)
		}
		goesTo(t, c.name, m, now, c.extra, c.want)
	}
}
