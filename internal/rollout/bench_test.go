package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
)

func BenchmarkRequest(b *testing.B) {
	var s Seen
	all := names(200)
	r := event.Request{Model: "m", Attempts: 1, Content: time.Second, BytesIn: 900}
	for i := range b.N {
		r.Workload, r.Arm = all[i%len(all)], event.Control
		s.Request(&r)
	}
	b.ReportAllocs()
}

func BenchmarkAttempt(b *testing.B) {
	var s Seen
	all := names(200)
	a := event.Attempt{Model: "m", Number: 1, Arm: event.Control}
	for i := range b.N {
		a.Workload = all[i%len(all)]
		s.Attempt(&a)
	}
	b.ReportAllocs()
}

// A tick with a thousand workloads that have all sent something, half of them
// exposed.
func BenchmarkTick(b *testing.B) {
	w := newWorld(1, 1000, 1000, usualRun)
	w.hit = map[string]bool{}
	seen := &Seen{}
	w.fill(seen, nil, 0, time.Minute)
	c := DefaultConfig()
	c.Stages = []Stage{{Share: 0.5}}
	r := New(c, "v2", "v1", nil, w.traffic(), start)
	at := time.Duration(0)
	worst := time.Duration(0)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		at += time.Second
		w.fill(seen, r.Exposure(), at, time.Second)
		b.StartTimer()
		began := time.Now()
		r.Tick(start.Add(at), seen, w.traffic())
		worst = max(worst, time.Since(began))
	}
	if r.Done() {
		b.Fatal(r.why)
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
}

// A request costs no allocation once its names are known.
func TestSeenAllocatesNothing(t *testing.T) {
	var s Seen
	all := names(50)
	i := 0
	one := func() {
		r := event.Request{Workload: all[i%50], Model: "m", Attempts: 1, Content: time.Second}
		s.Request(&r)
		a := event.Attempt{Workload: all[i%50], Model: "m", Number: 1}
		s.Attempt(&a)
		s.Memory(event.Control, int64(i))
		i++
	}
	for range 50 {
		one()
	}
	if n := testing.AllocsPerRun(1000, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// However many names come, what is kept is bounded, and nothing is lost.
func TestSeenIsBounded(t *testing.T) {
	w := newWorld(1, 1, 20, usualRun)
	seen := &Seen{}
	r := New(DefaultConfig(), "v2", "v1", nil, w.traffic(), start)
	for tick := range 5 {
		for i := range 2 * maxCells {
			seen.Request(&event.Request{Workload: fmt.Sprint("w", tick, "-", i), Model: "m", Arm: event.Candidate})
		}
		if len(seen.cells) > maxCells+1 {
			t.Fatalf("%d names", len(seen.cells))
		}
		r.Tick(start.Add(time.Duration(tick)*time.Second), seen, w.traffic())
	}
	n := int64(0)
	for s := range r.judge.strata {
		n += s.stage[event.Candidate].distinct()
	}
	if r.judge.known > maxCells+1 || n != 10*maxCells {
		t.Errorf("%d strata, %d requests", r.judge.known, n)
	}
}
