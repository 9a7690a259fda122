package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDaily(t *testing.T) {
	now := time.Date(2026, 5, 29, 22, 0, 0, 0, time.UTC)
	d := Daily{Limit: 100}
	if _, ok := d.Take(now, 60); !ok {
		t.Fatal("refused within the budget")
	}
	if wait, ok := d.Take(now, 41); ok || wait != time.Second {
		t.Errorf("%v, %v; want a moment, until the other is settled", wait, ok)
	}
	if wait, ok := d.Take(now, 101); ok || wait != 2*time.Hour {
		t.Errorf("%v, %v; want two hours to midnight", wait, ok)
	}
	d.Settle(now, Day(now), 60, 100)
	if wait, ok := d.Peek(now.In(time.FixedZone("x", 5*3600))); ok || wait != 2*time.Hour {
		t.Errorf("%v, %v", wait, ok)
	}
	next := now.Add(2 * time.Hour)
	if _, ok := d.Take(next, 1000); !ok {
		t.Error("a request above the whole budget never comes in")
	}
	if _, ok := d.Take(next, 0); ok {
		t.Error("let in with nothing left")
	}
	d.Settle(next, Day(now), 60, 0)
	if d.Used(next) != 1000 {
		t.Error("yesterday's request was settled today")
	}
	if _, ok := new(Daily).Take(now, 1<<62); !ok {
		t.Error("without a limit nothing is refused")
	}
}

// I9 for money: what is reserved never passes the budget by more than one
// request, and once all is settled the sum is what was spent.
func TestDailyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 5, 29, 0, 0, 0, 0, time.UTC)
		d := Daily{Limit: rapid.Int64Range(1, 1000).Draw(t, "limit")}
		var held []int64
		var spent int64
		for range 80 {
			if n := rapid.Int64Range(0, 300).Draw(t, "n"); len(held) == 0 || rapid.Bool().Draw(t, "come") {
				before := d.Used(now)
				if _, ok := d.Take(now, n); ok {
					held = append(held, n)
					if before > 0 && d.Used(now) > d.Limit {
						t.Fatalf("%d of %d", d.Used(now), d.Limit)
					}
				}
				continue
			}
			actual := rapid.Int64Range(0, held[0]).Draw(t, "actual")
			d.Settle(now, Day(now), held[0], actual)
			held, spent = held[1:], spent+actual
		}
		for _, n := range held {
			d.Settle(now, Day(now), n, 0)
		}
		if d.Used(now) != spent || spent > d.Limit+300 {
			t.Fatalf("%d used, %d spent of %d", d.Used(now), spent, d.Limit)
		}
	})
}

// What Level calls left can be taken, and one more cannot.
func TestLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 1_000_000).Draw(t, "rate")
		burst := rapid.Int64Range(1, 100_000).Draw(t, "burst")
		g, now := NewGCRA(rate, burst), time.Unix(1_700_000_000, 0)
		for range 10 {
			g.Take(now, rapid.Int64Range(0, burst).Draw(t, "n"))
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "step")))
		}
		level := g.Level(now)
		if _, ok := g.Peek(now, level.Left); !ok || level.Left < 0 || level.Left > burst || level.PerMinute != rate {
			t.Fatalf("%+v cannot be taken", level)
		}
		if _, ok := g.Peek(now, level.Left+1); ok && level.Left < burst {
			t.Fatalf("%+v, and one more can be", level)
		}
		if again := g.Level(now.Add(level.Reset)); again.Left != burst || again.Reset != 0 {
			t.Fatalf("%+v behind the reset of %+v", again, level)
		}
	})
	if l := (*GCRA)(nil).Level(time.Now()); l.PerMinute != 0 {
		t.Error("no limit has a rate")
	}
}
