package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/event"
)

// What memory must differ by.
const (
	heldMore   = 1.5
	heldBytes  = 256 << 10
	heldChance = 1e-4
	// heldRequests and heldFor are what lies between two samples that are compared: a
	// single long answer that grows is no trend.
	heldRequests = 5
	heldFor      = 10 * time.Second
)

// held is the memory that a request in flight holds, over a stage.
type held struct {
	track
	sum      float64
	n        int
	requests int64 // that ended
	since    time.Time
	added    int // samples in all
}

// take adds samples; they are put together until some requests have ended.
func (h *held) take(now time.Time, samples []float64, requests int64) {
	if h.since.IsZero() {
		h.since = now
	}
	h.sum += total(samples)
	h.n += len(samples)
	h.requests += requests
	if h.n > 0 && h.requests >= heldRequests && now.Sub(h.since) >= heldFor {
		h.add(h.sum / float64(h.n))
		h.added++
		h.sum, h.n, h.requests, h.since = 0, 0, 0, now
	}
}

// inFlight compares the memory that a request in flight holds: by how much it grows in
// the stage, and, where both versions serve the same workload and nothing else, how
// much it is.
func (j *judge) inFlight(e *Exposure) Measure {
	if n := j.memory[event.Candidate].added; n != j.weighed || j.weight.Name == "" {
		j.weighed, j.weight = n, j.compareHeld(e)
	}
	return j.weight
}

func (j *judge) compareHeld(e *Exposure) Measure {
	now, was := j.memory[event.Candidate].all(), j.memory[event.Control].all()
	m := Measure{Name: "memory", N: int64(len(now)), M: int64(len(was))}
	if len(now) == 0 {
		m.Text = "nothing was seen of it"
		return m
	}
	a, b := slices.Sorted(slices.Values(now)), slices.Sorted(slices.Values(was))
	m.Candidate, m.Control = quantile(a, 0.5), quantile(b, 0.5)
	m.Text = fmt.Sprintf("%.0f KiB for a request in flight, under the version before %.0f KiB", m.Candidate/1024, m.Control/1024)
	least := max(heldBytes, m.Control/2)
	p, rise := trend(now)
	usual := 0.0
	if p < heldChance && rise >= least {
		_, usual = trend(was)
	}
	if p < heldChance && rise-max(0, usual) >= least {
		m.Verdict = Fail
		m.Text = fmt.Sprintf("memory of a request in flight grew by %.0f KiB, under the version before by %.0f KiB", rise/1024, usual/1024)
		return m
	}
	if e.any() && !e.all && len(e.whole) == 0 && len(now) >= slowLeast && len(was) >= slowLeast &&
		m.Candidate >= m.Control*heldMore+heldBytes && mannWhitney(now, was) < heldChance {
		m.Verdict = Fail
	}
	return m
}
