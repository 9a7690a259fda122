package main

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	got := parse(`# HELP go_goroutines Number of goroutines.
go_goroutines 17
go_memstats_heap_inuse_bytes 1.5e+06
hourthree_memory_reserved_bytes 65536
hourthree_memory_limit_bytes 1e+08
hourthree_inflight 3
hourthree_queue_length 2
hourthree_target_inflight{target="a/real"} 4
hourthree_target_inflight{target="b/real"} 5
hourthree_requests_total{model="soak-made-up-7",workload="w",class="ok"} 1
`)
	want := sample{Goroutines: 17, Heap: 1_500_000, Reserved: 65536, Limit: 100_000_000, InFlight: 3, Queue: 2, Calls: 9, Series: 7, named: true}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The same seed plays the same phases and faults.
func TestTheSeedDecides(t *testing.T) {
	play := func(seed uint64) (out []string) {
		s := newSchedule(seed)
		for range 24 {
			p := s.next()
			out = append(out, p.name, s.mode(p, "a"), s.mode(p, "c"))
		}
		return out
	}
	if !reflect.DeepEqual(play(1), play(1)) {
		t.Error("two runs of one seed differ")
	}
	if reflect.DeepEqual(play(1), play(2)) {
		t.Error("two seeds play the same")
	}
}

func TestPhasesSayWhatIsHealthy(t *testing.T) {
	for _, p := range phases() {
		s := newSchedule(1)
		for range 50 {
			for _, name := range providers {
				if p.well && s.mode(p, name) != healthy {
					t.Errorf("%s: %s is not healthy", p.name, name)
				}
			}
		}
		if p.faults && s.mode(p, "c") != healthy {
			t.Errorf("%s leaves nobody healthy", p.name)
		}
	}
}

// good is what a run finds that has kept every promise.
func good() *findings {
	at := sample{Seconds: 1, Phase: "calm", RSS: 100 * mib, Reserved: 10 * mib, Limit: 100 * mib, InFlight: 900, Goroutines: 2000}
	w := &watch{samples: []sample{at, at, at}, health: []time.Duration{time.Millisecond}}
	f := &findings{watch: w, traffic: newTraffic(nil, nil), before: idle{20, 5 * mib}, after: idle{20, 5 * mib}, lines: 7}
	f.traffic.small = counts{1000, 996}
	f.traffic.names.Add(5)
	f.traffic.count("unary", "200")
	return f
}

func TestVerdict(t *testing.T) {
	for name, spoil := range map[string]func(*findings){
		"":           func(*findings) {},
		"leak":       func(f *findings) { f.taken = "target a/real 1" },
		"goroutines": func(f *findings) { f.after.goroutines = 42 },
		"heap":       func(f *findings) { f.after.heap = 14 * mib },
		"RSS":        func(f *findings) { f.watch.samples[1].RSS = goMemory + besides + 1 },
		"ledger":     func(f *findings) { f.watch.samples[1].Reserved = 100*mib + 1 },
		"too few":    func(f *findings) { f.watch.samples = f.watch.samples[:0] },
		"series":     func(f *findings) { f.watch.samples[2].named = true },
		"slow":       func(f *findings) { f.watch.health[0] = 2 * time.Second },
		"sick":       func(f *findings) { f.watch.sick = 1 },
		"missed":     func(f *findings) { f.watch.missed = 1 },
		"losses":     func(f *findings) { f.traffic.small.good = 994 },
		"nobody":     func(f *findings) { f.traffic.small = counts{} },
		"panic":      func(f *findings) { f.alarms = []string{"panic: x"} },
		"ended":      func(f *findings) { f.stopped = errors.New("exit status 2") },
	} {
		f := good()
		spoil(f)
		passed := f.print(io.Discard, f.checks())
		if passed != (name == "") {
			t.Errorf("%q: passed %v", name, passed)
		}
	}
}

func TestTheTableFits(t *testing.T) {
	f, out := good(), new(strings.Builder)
	f.taken = strings.Repeat("target a/real 1, ", 20)
	f.watch.samples[0] = sample{Seconds: 1199, Phase: "large bodies", RSS: 9999 * mib, Heap: 9999 * mib, Reserved: 9999 * mib, Goroutines: 99999, InFlight: 99999, Queue: 9999, Calls: 9999, Series: 99999, Files: 9999}
	f.alarms = []string{strings.Repeat("x", 300)}
	f.print(out, f.checks())
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
