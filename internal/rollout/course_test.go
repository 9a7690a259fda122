package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"pgregory.net/rapid"
)

// reaches reports that whoever is exposed in a is in b.
func reaches(a, b *Exposure) bool {
	for i := range 8 {
		for u := 0.0; u < 1; u += 0.05 {
			if w := fmt.Sprint("w", i); a.Arm(w, u) == event.Candidate && b.Arm(w, u) != event.Candidate {
				return false
			}
		}
	}
	return true
}

// feed makes some requests under the exposure of the time, with chances that are
// drawn for each tick.
func feed(t *rapid.T, rnd *rand.Rand, seen *Seen, e *Exposure) {
	n := rapid.IntRange(0, 60).Draw(t, "requests")
	bad := rapid.SampledFrom([]float64{0, 0, 0.01, 0.3, 1}).Draw(t, "bad")
	class := rapid.SampledFrom([]fault.Class{fault.Outage, fault.Client, fault.Capacity, fault.Canceled}).Draw(t, "class")
	for range n {
		w := fmt.Sprint("w", rnd.IntN(8))
		r := event.Request{Workload: w, Model: "m", Attempts: 1, Arm: e.Arm(w, rnd.Float64()), Content: time.Second}
		if r.Arm == event.Candidate && rnd.Float64() < bad {
			r.Class = class
		}
		seen.Attempt(&event.Attempt{Workload: w, Model: "m", Number: 1, Class: r.Class, Arm: r.Arm})
		seen.Request(&r)
	}
}

// Over random histories: exposure rises by itself only in a tick whose verdict is a
// pass, goes to nothing in the tick of a failure, and never rises after an end; no
// operator raises it on a failure; a restart changes nothing of it.
func TestExposureRisesOnAPassOnly(t *testing.T) {
	var passed, failed, promoted int
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c := DefaultConfig()
		c.Bake, c.Requests, c.Patience, c.Window = 20*time.Second, 30, 3*time.Minute, 10*time.Second
		traffic := Traffic{Workloads: map[string]float64{}}
		for i := range 8 {
			traffic.Workloads[fmt.Sprint("w", i)] = float64(1 + i)
		}
		now, seen := start, &Seen{}
		r := New(c, "v2", "v1", []string{"models"}, traffic, now)
		stages := 0
		for range rapid.IntRange(1, 120).Draw(t, "ticks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			old, was, age := r.Exposure(), r.state, now.Sub(r.since)
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			case 0:
				err := r.Promote(now, "ada", "it is well")
				if (err == nil) != (was == Baking) || was != Baking && r.Exposure() != old {
					t.Fatalf("promote in %s: %v", was, err)
				}
				promoted++
			case 1:
				if err := r.Halt(now, "ada", "a feeling"); (err == nil) != (was == Baking) {
					t.Fatalf("halt in %s: %v", was, err)
				} else if err == nil && (r.state != Halted || r.exposure.any()) {
					t.Fatalf("halted: %+v", r.exposure)
				}
			case 2:
				data, err := r.Marshal()
				if err != nil {
					t.Fatal(err)
				}
				before := r
				if r, err = Restore(c, data, now); err != nil {
					t.Fatal(err)
				}
				if r.state != before.state || r.stage != before.stage || !reaches(old, r.Exposure()) || !reaches(r.Exposure(), old) {
					t.Fatalf("restored: %+v, before %+v", r.exposure, old)
				}
			default:
				feed(t, rnd, seen, old)
				requests := r.seen
				moments := r.Tick(now, seen, traffic)
				e := r.Exposure()
				for _, cell := range seen.cells {
					if !reflect.DeepEqual(*cell, cell0) {
						t.Fatal("seen is not empty")
					}
				}
				s := r.Status(now)
				if was != Baking && (e != old || r.state != was || len(moments) > 0) {
					t.Fatalf("%s changed into %s", was, r.state)
				}
				if !reaches(e, old) && (s.Verdict != Pass || age < c.Bake || age < c.Window || r.seen < c.Requests && requests+1000 < c.Requests || len(moments) == 0) {
					t.Fatalf("exposure rose: %s after %v: %+v", s.Verdict, age, s)
				}
				for _, m := range s.Measures {
					if m.Verdict == Fail && (r.state != Reverted || e.any()) {
						t.Fatalf("%s failed, and it is %s, exposed to %+v", m.Name, r.state, e)
					}
				}
				if s.Verdict == Fail {
					failed++
					if r.state != Reverted || e.any() {
						t.Fatalf("failed: %s", r.state)
					}
				} else if was == Baking && r.state == Baking && !reaches(old, e) {
					t.Fatal("somebody is not exposed any more")
				}
				if r.stage > stages {
					passed++
				}
				stages = r.stage
			}
		}
	})
	if passed < 20 || failed < 20 || promoted < 20 {
		t.Errorf("the histories show little: %d passed, %d failed, %d promoted", passed, failed, promoted)
	}
}

var cell0 cell

func TestOperator(t *testing.T) {
	traffic := Traffic{Workloads: map[string]float64{"w": 1}}
	r := New(DefaultConfig(), "v2", "v1", nil, traffic, start)
	if err := r.Promote(start, "ada", ""); !errors.Is(err, errWhy) {
		t.Error(err)
	}
	if err := r.Promote(start.Add(time.Minute), "ada", "nobody calls at night"); err != nil || r.stage != 1 {
		t.Error(err, r.stage)
	}
	s := r.Status(start.Add(time.Minute))
	if last := s.Timeline[len(s.Timeline)-1]; last.By != "ada" || !strings.Contains(last.What, "nobody calls at night") || s.Split != "w" || s.Next == nil {
		t.Errorf("%+v", s)
	}
	if err := r.Halt(start.Add(2*time.Minute), "bob", "wrong file"); err != nil || r.state != Halted || r.Exposure().Arm("w", 0) != event.Control {
		t.Error(err, r.state)
	}
	if err := r.Promote(start, "ada", "again"); !errors.Is(err, errOver) {
		t.Error(err)
	}
	if err := r.Replace(start, "ada", "v3"); !errors.Is(err, errOver) {
		t.Error(err)
	}
	r = New(DefaultConfig(), "v2", "v1", nil, traffic, start)
	for range DefaultConfig().Stages {
		if err := r.Promote(start, "ada", "in a hurry"); err != nil {
			t.Fatal(err)
		}
	}
	if r.state != Promoted || !r.Done() || r.Exposure().Arm("anybody", 0.99) != event.Candidate {
		t.Errorf("%s", r.state)
	}
	r = New(DefaultConfig(), "v2", "v1", nil, traffic, start)
	if err := r.Replace(start, "", "v3"); err != nil || r.state != Replaced || r.Exposure().any() {
		t.Error(err, r.state)
	}
}

// What is restored is what was kept, and what cannot be is refused with a reason.
func TestRestore(t *testing.T) {
	w := newWorld(1, 5, 20, usualRun)
	seen := &Seen{}
	w.hit = map[string]bool{}
	w.fill(seen, nil, 0, 10*time.Minute)
	r := New(DefaultConfig(), "v2", "v1", []string{"models.gpt-x.targets"}, w.traffic(), start)
	r.Tick(start.Add(time.Second), seen, w.traffic())
	data, err := r.Marshal()
	if err != nil || len(data) > 4096 {
		t.Fatal(err, len(data))
	}
	again, err := Restore(DefaultConfig(), data, start.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.judge.usually(), again.judge.usually()
	if !reflect.DeepEqual(a, b) || len(a) != 5 {
		t.Errorf("%v and %v", a, b)
	}
	if !again.since.Equal(start.Add(time.Hour)) {
		t.Error("the stage is not watched anew")
	}
	for _, bad := range []string{"", "{}", `{"state":"baking","version":"v","stage":5,"stages":[{"share":1}]}`, `{"state":"odd","version":"v"}`, `{"state":"baking","stages":[{"share":1}]}`} {
		if _, err := Restore(DefaultConfig(), []byte(bad), start); err == nil || !strings.HasPrefix(err.Error(), "restore a rollout: ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := r.Halt(start, "ada", "no"); err != nil {
		t.Fatal(err)
	}
	data, _ = r.Marshal()
	if again, err = Restore(DefaultConfig(), data, start); err != nil || !again.Done() || again.Status(start).Version != "v2" || again.Exposure().any() {
		t.Errorf("%v: %+v", err, again)
	}
	if !json.Valid(data) {
		t.Error("not JSON")
	}
}
