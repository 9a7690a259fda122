package watch

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/incident"
)

var start = time.Date(2026, 5, 29, 9, 0, 0, 0, time.UTC)

// storm feeds a minute of health and one of a storm.
func storm(w *Watch) time.Time {
	l := w.Listener()
	now := start
	for second := range 120 {
		for range 10 {
			l.RequestDone(&event.Request{Workload: "external", Model: "m", Attempts: 1})
			l.AttemptDone(&event.Attempt{Workload: "external", Target: "a/m"})
		}
		if second >= 60 {
			for range 50 {
				l.RequestDone(&event.Request{Workload: "suite", Model: "m", Class: fault.Outage, Repeat: true})
			}
			l.RequestDone(&event.Request{Workload: "suite", Model: "m", Class: fault.Outage, Attempts: 1})
			l.AttemptDone(&event.Attempt{Workload: "suite", Target: "a/m", Class: fault.Outage, Status: 500})
		}
		now = now.Add(time.Second)
		w.Poll(now)
		w.Poll(now.Add(100 * time.Millisecond)) // is not looked at twice
	}
	return now
}

// TestStorm: what is found is logged as one line with its numbers, counted, told to
// whoever hears it, and reported with incidents that look like it and their drill.
func TestStorm(t *testing.T) {
	var log bytes.Buffer
	found, heard := 0, 0
	w := New(Options{
		Config: detect.Default(), Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Found: func(string) { found++ }, Noticed: func(detect.Notice) { heard++ },
		Library: func() (*incident.Library, error) { return incident.Open() },
	})
	w.Use(detect.Topology{Targets: map[string]detect.Place{"a/m": {Domain: "a"}}, Models: map[string][]string{"m": {"a/m"}}})
	now := storm(w)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if found == 0 || heard != len(lines) || found >= heard {
		t.Errorf("%d findings counted, %d notices heard, %d lines", found, heard, len(lines))
	}
	named := slices.ContainsFunc(lines, func(l string) bool {
		var v struct{ Level, What, Suspect string }
		return json.Unmarshal([]byte(l), &v) == nil && v.Level == "WARN" && v.What == "source" && v.Suspect == "workload suite"
	})
	if !named {
		t.Errorf("no line names suite:\n%s", log.String())
	}
	r := w.Report(now)
	if r.Open != 1 || w.Open() != 1 || len(r.Outages) != 1 {
		t.Fatalf("%d open, %d in all", r.Open, len(r.Outages))
	}
	like := r.Outages[0].Similar
	if len(like) == 0 || len(like) > mostSimilar || !slices.ContainsFunc(like, func(s Similar) bool { return len(s.Drills) > 0 }) {
		t.Errorf("alike: %+v", like)
	}
	t.Logf("alike: %+v", like)
}

// A fact costs no allocation.
func TestCost(t *testing.T) {
	w := New(Options{Config: detect.Default(), Log: slog.New(slog.DiscardHandler)})
	l := w.Listener()
	r := &event.Request{Workload: "w", Model: "m", Target: "a/m", Content: time.Second, BytesIn: 3000, Attempts: 1}
	a := &event.Attempt{Workload: "w", Target: "a/m"}
	if n := testing.AllocsPerRun(1000, func() { l.RequestDone(r); l.AttemptDone(a) }); n > 0 {
		t.Errorf("%v allocations for a request and its call", n)
	}
}

// BenchmarkRequest is what a request and its call cost.
func BenchmarkRequest(b *testing.B) {
	w := New(Options{Config: detect.Default(), Log: slog.New(slog.DiscardHandler)})
	l := w.Listener()
	r := &event.Request{Workload: "w", Model: "m", Target: "a/m", Content: time.Second, BytesIn: 3000, Attempts: 1}
	a := &event.Attempt{Workload: "w", Target: "a/m"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.RequestDone(r)
			l.AttemptDone(a)
		}
	})
}

// Requests go on while the detectors look, are asked and are told.
func TestConcurrent(t *testing.T) {
	w := New(Options{Config: detect.Default(), Log: slog.New(slog.DiscardHandler)})
	l := w.Listener()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				l.RequestDone(&event.Request{Workload: "w", Model: "m", Attempts: 1})
				l.AttemptDone(&event.Attempt{Workload: "w", Target: "a/m"})
			}
		})
	}
	now := start
	for range 50 {
		now = now.Add(time.Second)
		w.Poll(now)
		w.Tell(detect.Change{At: now, What: "x"})
		_ = w.Report(now)
	}
	wg.Wait()
	w.Poll(now.Add(time.Second))
}
