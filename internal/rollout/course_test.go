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

// history is a rollout to which anything happens.
type history struct {
	*rapid.T
	rnd                      *rand.Rand
	c                        Config
	r                        *Rollout
	now                      time.Time
	seen                     *Seen
	traffic                  Traffic
	bad                      float64 // share of the candidate's requests that end
	class                    fault.Class
	passed, failed, promoted int
}

// feed makes some requests under the exposure of the time, and returns how many the
// candidate had.
func (h *history) feed() (candidate int64) {
	for range rapid.IntRange(0, 60).Draw(h.T, "requests") {
		w := fmt.Sprint("w", h.rnd.IntN(8))
		r := event.Request{Workload: w, Model: "m", Attempts: 1, Arm: h.r.Exposure().Arm(w, h.rnd.Float64()), Content: time.Second}
		if r.Arm == event.Candidate {
			candidate++
			if h.rnd.Float64() < h.bad {
				r.Class = h.class
			}
		}
		h.seen.Attempt(&event.Attempt{Workload: w, Model: "m", Number: 1, Class: r.Class, Arm: r.Arm})
		h.seen.Request(&r)
	}
	return candidate
}

func (h *history) tick() {
	old, was, stage, age := h.r.Exposure(), h.r.state, h.r.stage, h.now.Sub(h.r.since)
	requests := h.r.seen + h.feed()
	moments := h.r.Tick(h.now, h.seen, h.traffic)
	e, s := h.r.Exposure(), h.r.Status(h.now)
	for _, c := range h.seen.cells {
		if *c != (cell{}) {
			h.Fatal("seen is not empty")
		}
	}
	if was != Baking && (e != old || h.r.state != was || len(moments) > 0) {
		h.Fatalf("%s changed into %s", was, h.r.state)
	}
	if !reaches(e, old) && (s.Verdict != Pass || age < max(h.c.Bake, h.c.Window) || requests < h.c.Requests || len(moments) == 0) {
		h.Fatalf("exposure rose after %v and %d requests: %+v", age, requests, s)
	}
	for _, m := range s.Measures {
		if m.Verdict == Fail && (h.r.state != Reverted || e.any()) {
			h.Fatalf("%s failed, and it is %s, exposed to %+v", m.Name, h.r.state, e)
		}
	}
	if s.Verdict == Fail {
		h.failed++
		if h.r.state != Reverted || e.any() {
			h.Fatalf("failed: %s", h.r.state)
		}
	} else if was == Baking && h.r.state == Baking && !reaches(old, e) {
		h.Fatal("somebody is not exposed any more")
	}
	if h.r.stage > stage {
		h.passed++
	}
}

func (h *history) promote() {
	old, was := h.r.Exposure(), h.r.state
	if err := h.r.Promote(h.now, "ada", "it is well"); (err == nil) != (was == Baking) || was != Baking && h.r.Exposure() != old {
		h.Fatalf("promote in %s: %v", was, err)
	}
	h.promoted++
}

func (h *history) halt() {
	was := h.r.state
	if err := h.r.Halt(h.now, "ada", "a feeling"); (err == nil) != (was == Baking) {
		h.Fatalf("halt in %s: %v", was, err)
	} else if err == nil && (h.r.state != Halted || h.r.exposure.any()) {
		h.Fatalf("halted: %+v", h.r.exposure)
	}
}

func (h *history) restart() {
	before := h.r
	data, err := before.Marshal()
	if err != nil {
		h.Fatal(err)
	}
	if h.r, err = Restore(h.c, data, h.now); err != nil {
		h.Fatal(err)
	}
	if h.r.state != before.state || h.r.stage != before.stage || !reaches(before.exposure, h.r.exposure) || !reaches(h.r.exposure, before.exposure) {
		h.Fatalf("restored: %+v, before %+v", h.r.exposure, before.exposure)
	}
}

// Over random histories: exposure rises by itself only in a tick whose verdict is a
// pass, goes to nothing in the tick of a failure, and never rises after an end; no
// operator raises it after one; a restart changes nothing of it.
func TestExposureRisesOnAPassOnly(t *testing.T) {
	var passed, failed, promoted int
	rapid.Check(t, func(t *rapid.T) {
		h := history{T: t, rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), c: DefaultConfig(), now: start, seen: &Seen{}}
		h.bad = rapid.SampledFrom([]float64{0, 0, 0.01, 0.1, 0.3, 1}).Draw(t, "bad")
		h.class = rapid.SampledFrom([]fault.Class{fault.Outage, fault.Client, fault.Capacity, fault.Canceled}).Draw(t, "class")
		h.c.Bake, h.c.Requests, h.c.Patience, h.c.Window = 10*time.Second, 20, 3*time.Minute, 5*time.Second
		h.traffic = Traffic{Workloads: map[string]float64{}}
		for i := range 8 {
			h.traffic.Workloads[fmt.Sprint("w", i)] = float64(1 + i)
		}
		h.r = New(h.c, "v2", "v1", []string{"models"}, h.traffic, h.now)
		for range rapid.IntRange(20, 120).Draw(t, "ticks") {
			h.now = h.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 99).Draw(t, "what") {
			case 97:
				h.promote()
			case 98:
				h.halt()
			case 99:
				h.restart()
			default:
				h.tick()
			}
		}
		passed, failed, promoted = passed+h.passed, failed+h.failed, promoted+h.promoted
	})
	if t.Logf("%d passed, %d failed, %d promoted", passed, failed, promoted); passed < 10 || failed < 5 || promoted < 5 {
		t.Error("the histories show little")
	}
}

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
