package history

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// TestRestore: what is read back answers as before, and only what has changed is
// saved.
func TestRestore(t *testing.T) {
	r := newRig()
	saved := map[[2]int64]Point{}
	var order []Point
	save := func() int {
		ps := r.h.Changed(1e9)
		for _, p := range ps {
			saved[[2]int64{int64(p.Level), p.Step}] = p
		}
		order = append(order, ps...)
		r.h.Saved(ps)
		return len(ps)
	}
	i := 0
	something := func(t *Tally) {
		i++
		good(t, "suite", "a/m")
		if i%3 == 0 {
			t.Request(&event.Request{Workload: fmt.Sprint("w", i%7), Class: fault.Outage, Attempts: 1})
		}
		t.Sample(Reading{InFlight: int64(i % 5), Targets: []TargetReading{{"a/m", i % 3, i % 4}}})
	}
	for range 60 {
		r.run(30*time.Second, something)
		if n := save(); n < 3 || n > 8 {
			t.Fatalf("%d points for 30 s", n)
		}
	}
	if n := save(); n != 0 {
		t.Errorf("%d points have changed since", n)
	}
	// What comes in between is not taken for saved.
	r.second(something)
	ps := r.h.Changed(1e9)
	r.second(something)
	r.h.Saved(ps)
	if n := save(); n != 3 {
		t.Errorf("%d points, want 3", n)
	}
	back := New()
	var last []Point // each once, as a store has them, in the order written
	for i := len(order) - 1; i >= 0; i-- {
		k := [2]int64{int64(order[i].Level), order[i].Step}
		if p, ok := saved[k]; ok {
			last = append([]Point{p}, last...)
			delete(saved, k)
		}
	}
	if n := back.Restore(last); n != 0 {
		t.Fatalf("%d points cannot be read", n)
	}
	for _, subject := range []string{"", "workload:suite", "workload:w3", "target:a/m"} {
		q := Query{Subject: subject, From: start, To: r.now}
		if a, b := answer(t, r.h, r.now, q), answer(t, back, r.now, q); !reflect.DeepEqual(a, b) {
			t.Errorf("%q differs", subject)
		}
	}
	if a, b := r.h.Totals(r.now), back.Totals(r.now); !reflect.DeepEqual(a, b) {
		t.Errorf("totals %+v, before %+v", b, a)
	}
	if ps := back.Changed(1e9); len(ps) != 0 {
		t.Errorf("%d restored points count as changed", len(ps))
	}
	r.h = back // it goes on in the same steps
	r.second(something)
	if got := r.h.Totals(r.now).Windows[0].Known; got != 1 {
		t.Errorf("%v of the last minute is known", got)
	}
	for _, name := range []string{"w0", "w3", "w6"} { // two of which had nothing since
		if r.h.workloads.all[name] == nil {
			t.Errorf("%s is forgotten", name)
		}
	}
}

// TestUnread: what was not written by this form, or not whole, is left out.
func TestUnread(t *testing.T) {
	r := newRig()
	r.run(time.Second, func(t *Tally) { good(t, "suite", "a/m") })
	p := r.h.Changed(1)[0]
	row := make([]byte, rWidth)
	for name, body := range map[string][]byte{
		"another form": append([]byte{version + 1}, p.Body[1:]...), "cut": p.Body[:len(p.Body)-1], "more": append(bytes.Clone(p.Body), 0), "empty": nil,
		"name cut": slices.Concat([]byte{version, 1}, row, []byte{1, 200, 1, 'x'}), "no time": slices.Concat([]byte{version, 0}, row, []byte{0, 0}),
		"many": slices.Concat([]byte{version, 1}, row, []byte{0xff, 0xff, 0xff, 0xff, 0x7f}),
	} {
		h := New()
		if n := h.Restore([]Point{p, {Level: p.Level, Step: p.Step + 1, Body: body}}); n != 1 {
			t.Errorf("%s: %d are unread, want 1", name, n)
		}
	}
}

// full is a history of seven days with so many names, added no finer than it is kept.
func full(workloads, targets int) *rig {
	r := newRig()
	end := r.now.Add(7 * 24 * time.Hour)
	for r.now.Before(end) {
		lasted := 10 * time.Second
		switch left := end.Sub(r.now); {
		case left > 24*time.Hour:
			lasted = 10 * time.Minute
		case left > 2*time.Hour:
			lasted = time.Minute
		}
		for i := range workloads {
			name := fmt.Sprintf("workload-%03d", i)
			for range int(lasted/time.Second) / 10 {
				r.tally.Request(&event.Request{Workload: name, Content: time.Duration(100+i*40) * time.Millisecond, Attempts: 1})
			}
			r.tally.Attempt(&event.Attempt{Workload: name, Target: fmt.Sprintf("azure-sweden-%03d/gpt-5", i%targets)})
		}
		for i := range targets {
			r.tally.Breaker(fmt.Sprintf("azure-sweden-%03d/gpt-5", i), i%4)
		}
		r.h.Add(r.now, lasted, r.tally)
		r.now = r.now.Add(lasted)
	}
	return r
}

// TestSize states what 7 days of 50 workloads and 20 targets take.
func TestSize(t *testing.T) {
	r := full(50, 20)
	points := r.h.Changed(1e9)
	bytes, cells := 0, 0
	for _, p := range points {
		bytes += len(p.Body)
	}
	r.h.each(func(_ *kind, _ string, s *subject) {
		for _, c := range s.cells {
			cells += 4 * cap(c)
		}
	})
	t.Logf("in memory %d bytes, as points %d bytes in %d points", cells, bytes, len(points))
	if len(points) != 720+1440+1008 || cells > 8<<20 || bytes > 8<<20 {
		t.Errorf("%d points, %d bytes in memory, %d as points", len(points), cells, bytes)
	}
	for _, back := range []time.Duration{2 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		a := answer(t, r.h, r.now, Query{From: r.now.Add(-back), Series: []string{"offered"}})
		for i, v := range a.Series[0].Values {
			if !is(v, 5) {
				t.Fatalf("%v back, point %d of %d: %s", back, i, len(a.At), show(v))
			}
		}
	}
}

// FuzzDecode: no bytes break it, and what it takes it can give.
func FuzzDecode(f *testing.F) {
	r := newRig()
	r.run(20*time.Second, func(t *Tally) { good(t, "suite", "a/m") })
	for _, p := range r.h.Changed(1e9) {
		f.Add(p.Body)
		f.Add(p.Body[:len(p.Body)-1])
	}
	f.Add([]byte{})
	f.Add([]byte{version + 1, 3})
	f.Fuzz(func(t *testing.T, body []byte) {
		h := New()
		if h.Restore([]Point{{Level: 1, Step: 7, Body: body}}) == 0 {
			h.slots[1][7].changes++
			if n := len(h.Changed(1e9)); n != 1 {
				t.Errorf("%d points", n)
			}
		}
		h.Restore([]Point{{Level: 9, Body: body}, {Level: -1, Body: body}})
	})
}
