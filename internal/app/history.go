package app

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/store"
	"github.com/hourthree/hourthree/internal/telemetry"
)

const (
	// keepEvery is how often what was counted is put to the past.
	keepEvery = time.Second
	// finest is the shortest step of the history.
	finest = 10 * time.Second
	// saveEvery is how often the past is saved, and what a kill costs of it at most.
	saveEvery = 30 * time.Second
	// saveAtOnce bounds the points of one transaction.
	saveAtOnce = 200
)

// recorder keeps the history beside the request path. It is safe for concurrent use.
type recorder struct {
	store *store.Store // nil for a history that is not saved
	log   *slog.Logger

	counting sync.Mutex // held for the time of a few additions
	tally    *history.Tally

	keeping sync.Mutex
	history *history.History
	spare   *history.Tally
	last    time.Time // what the tally holds began then
}

// recorder makes the history, with what the store has of it. A drill has none.
func (a *App) recorder(now time.Time) *recorder {
	if a.opt.Config != nil {
		return nil
	}
	r := &recorder{log: a.log, tally: history.NewTally(), spare: history.NewTally(), history: history.New(), last: now}
	if a.store.Path() == store.Memory {
		return r
	}
	r.store = a.store
	saved, err := a.store.LoadPoints() // a failure is logged and counted there
	if err != nil {
		return r
	}
	points := make([]history.Point, len(saved))
	for i, p := range saved {
		points[i] = history.Point{Level: p.Level, Step: p.Step, Body: p.Body}
	}
	if n := r.history.Restore(points); n > 0 {
		a.log.Warn("a part of the history cannot be read and is left out", "component", "history", "points", n, "of", len(points))
	}
	return r
}

// listener hears the flow.
func (r *recorder) listener() *event.Listener {
	return &event.Listener{Attempt: r.attempt, Request: r.request, Transition: r.moved}
}

func (r *recorder) request(e *event.Request) {
	r.counting.Lock()
	r.tally.Request(e)
	r.counting.Unlock()
}

func (r *recorder) attempt(e *event.Attempt) {
	r.counting.Lock()
	r.tally.Attempt(e)
	r.counting.Unlock()
}

// moved notes a phase that a breaker was in between two looks at it.
func (r *recorder) moved(e event.Transition) {
	for _, p := range []breaker.Phase{breaker.Closed, breaker.Ramp, breaker.HalfOpen, breaker.Open} {
		if p.String() == e.To {
			r.counting.Lock()
			r.tally.Breaker(e.Target, p.Number())
			r.counting.Unlock()
		}
	}
}

// poll lets time pass; it keeps what was counted once a second and at the end of each
// step, however often it is called.
func (r *recorder) poll(now time.Time, read func(time.Time) telemetry.Reading) {
	if r == nil {
		return
	}
	r.keeping.Lock()
	due := now.Sub(r.last) >= keepEvery || now.Unix()/int64(finest/time.Second) != r.last.Unix()/int64(finest/time.Second)
	r.keeping.Unlock()
	if due {
		r.keep(now, readingOf(read(now)))
	}
}

func (r *recorder) keep(now time.Time, reading history.Reading) {
	r.keeping.Lock()
	defer r.keeping.Unlock()
	if !now.After(r.last) {
		return // no time has passed for it
	}
	r.counting.Lock()
	full := r.tally
	r.tally, r.spare = r.spare, r.tally
	r.counting.Unlock()
	full.Sample(reading)
	r.history.Add(r.last, now.Sub(r.last), full)
	r.last = now
}

// readingOf is what the history keeps of what the metrics show.
func readingOf(m telemetry.Reading) history.Reading {
	r := history.Reading{InFlight: m.InFlight, Queued: m.Queued, Memory: m.Reserved, Outages: m.Outages}
	for _, w := range m.Workloads {
		r.Workloads = append(r.Workloads, w.Name)
	}
	for _, t := range m.Targets {
		r.Targets = append(r.Targets, history.TargetReading{Name: t.Name, InFlight: t.InFlight, Breaker: t.Phase})
	}
	return r
}

// save writes what has changed. What cannot be written is tried again the next time;
// the store logs and counts it.
func (r *recorder) save() {
	if r.store == nil {
		return
	}
	for {
		r.keeping.Lock()
		points := r.history.Changed(saveAtOnce)
		r.keeping.Unlock()
		if len(points) == 0 {
			return
		}
		out := make([]store.Point, len(points))
		for i, p := range points {
			out[i] = store.Point{Level: p.Level, Step: p.Step, Body: p.Body}
		}
		if r.store.SavePoints(out, int(history.MostPoints())) != nil {
			return
		}
		r.keeping.Lock()
		r.history.Saved(points)
		r.keeping.Unlock()
		if len(points) < saveAtOnce {
			return
		}
	}
}

// answers serves the past, nil where there is none.
func (r *recorder) answers() func(time.Time, history.Query) (history.Answer, error) {
	if r == nil {
		return nil
	}
	return r.answer
}

// sums serves the totals, nil where there are none.
func (r *recorder) sums() func(time.Time) history.Totals {
	if r == nil {
		return nil
	}
	return r.totals
}

func (r *recorder) answer(now time.Time, q history.Query) (history.Answer, error) {
	r.keeping.Lock()
	defer r.keeping.Unlock()
	return r.history.Answer(now, q)
}

func (r *recorder) totals(now time.Time) history.Totals {
	r.keeping.Lock()
	defer r.keeping.Unlock()
	return r.history.Totals(now)
}

// saving saves the history beside everything else, until done.
func (a *App) saving(done <-chan struct{}) {
	if a.past == nil || a.past.store == nil {
		return
	}
	a.saves.Go(func() {
		tick := time.NewTicker(saveEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				a.past.save()
			}
		}
	})
}

// lastPoints keeps and saves what is left when the router stops.
func (a *App) lastPoints(now time.Time) {
	if a.past != nil {
		a.past.keep(now, readingOf(a.reading(now)))
		a.past.save()
	}
}
