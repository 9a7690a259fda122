package attempt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/fault"
)

// TestPlan holds I3 and I12 at the decision: never more than the limit, never
// after commit or deadline, never for the caller's own mistake, a cancel or a
// deadline, the same target at most once by itself, and the content-policy
// list at most once. Each case of next left out fails it.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1_796_000_000, 0)
		p := plan{limit: rapid.IntRange(1, Limit).Draw(t, "limit"), deadline: start.Add(time.Minute), policy: rapid.Bool().Draw(t, "policy")}
		now, repeats, policies := start, 0, 0
		policy := p.policy
		for range 10 {
			p.made++
			now = now.Add(time.Duration(rapid.IntRange(0, 30000).Draw(t, "ms")) * time.Millisecond)
			v := fault.Verdict{Class: fault.Class(rapid.IntRange(0, 9).Draw(t, "class"))}
			committed, fresh := rapid.Bool().Draw(t, "committed"), rapid.Bool().Draw(t, "fresh")
			s := p.next(now, v, committed, fresh)
			if s == stop {
				return
			}
			switch {
			case committed, p.made >= p.limit, !now.Before(p.deadline):
				t.Fatalf("went on: committed %v, %d of %d made, %v left", committed, p.made, p.limit, p.deadline.Sub(now))
			case v.Class == fault.OK, v.Class == fault.Client, v.Class == fault.Canceled, v.Class == fault.Deadline, v.Class == fault.Overload:
				t.Fatalf("went on after %v", v.Class)
			}
			if s == again {
				repeats++
			}
			if v.Class == fault.ContentPolicy {
				policies++
			}
			if repeats > 1 || policies > 1 || policies == 1 && !policy {
				t.Fatalf("%d repeats, %d policy fallbacks", repeats, policies)
			}
		}
		t.Fatal("no end")
	})
}

func TestWatch(t *testing.T) {
	first, idle, total := errors.New("first"), errors.New("idle"), errors.New("total")
	tests := []struct {
		name  string
		drive func(w *watch)
		after time.Duration
		cause error
	}{
		{"first phase", func(w *watch) { w.phase(time.Now(), time.Second, first) }, time.Second, first},
		{"moved on", func(w *watch) {
			w.phase(time.Now(), time.Second, first)
			for range 5 {
				time.Sleep(900 * time.Millisecond)
				w.phase(time.Now(), time.Second, idle)
			}
		}, 5500 * time.Millisecond, idle},
		{"shortened", func(w *watch) {
			w.phase(time.Now(), time.Minute, first)
			w.phase(time.Now(), time.Second, idle)
		}, time.Second, idle},
		{"total before phase", func(w *watch) { w.phase(time.Now(), time.Hour, first) }, 10 * time.Minute, total},
		{"total extended", func(w *watch) {
			w.extend(time.Now().Add(time.Hour))
			w.phase(time.Now(), 30*time.Minute, first)
		}, 30 * time.Minute, first},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				start := time.Now()
				w := new(watch)
				w.begin(cancel, start.Add(10*time.Minute), total)
				tt.drive(w)
				<-ctx.Done()
				if took := time.Since(start); took != tt.after || context.Cause(ctx) != tt.cause {
					t.Errorf("%v after %v, want %v after %v", context.Cause(ctx), took, tt.cause, tt.after)
				}
				if !w.stop() {
					t.Error("does not say that it fired")
				}
			})
		})
	}
}

func TestWatchStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		w := new(watch)
		w.begin(cancel, time.Now().Add(time.Hour), errors.New("total"))
		w.phase(time.Now(), time.Second, errors.New("phase"))
		if w.stop() {
			t.Error("says that it fired")
		}
		time.Sleep(2 * time.Hour)
		if ctx.Err() != nil {
			t.Error("fired after stop")
		}
	})
}
