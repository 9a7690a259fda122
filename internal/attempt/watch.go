package attempt

import (
	"context"
	"sync"
	"time"
)

// watch is the one timer of an attempt. Its deadline is moved from phase to
// phase (headers, first content, idle) and never lies behind the total; when
// it passes, the attempt's context is cancelled with the cause of the phase.
//
// Moving the deadline only stores it: the timer, once fired, looks whether
// it is due and else sleeps on. So a chunk of a stream costs a store, not a
// timer operation.
type watch struct {
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	timer    *time.Timer
	due      time.Time
	cause    error
	total    time.Time
	late     error // cause when the total ends it
	armed    time.Time
	stopped  bool
	timedOut bool
	sending  bool // the phase of upload
}

func (w *watch) begin(cancel context.CancelCauseFunc, total time.Time, late error) {
	w.cancel, w.total, w.late = cancel, total, late
}

// phase gives the attempt until now+d, else it ends with cause.
func (w *watch) phase(now time.Time, d time.Duration, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.move(now, d, cause)
}

// upload begins the phase in which the caller's body is sent. The upstream's
// time runs only while nothing is waited for from the caller: see await and
// resume.
func (w *watch) upload(now time.Time, d time.Duration, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.move(now, d, cause)
	w.sending = true
}

// await lets only the total run, for as long as the upload lasts.
func (w *watch) await(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sending {
		w.move(now, 0, nil)
		w.sending = true
	}
}

// resume gives the upstream its time again.
func (w *watch) resume(now time.Time, d time.Duration, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sending {
		w.move(now, d, cause)
		w.sending = true
	}
}

func (w *watch) move(now time.Time, d time.Duration, cause error) {
	w.sending = false
	w.due, w.cause = now.Add(d), cause
	if d <= 0 || w.due.After(w.total) {
		w.due, w.cause = w.total, w.late
	}
	if w.stopped {
		return
	}
	if w.timer == nil {
		w.armed = w.due
		w.timer = time.AfterFunc(w.due.Sub(now), w.fire)
	} else if w.due.Before(w.armed) {
		w.armed = w.due
		w.timer.Reset(w.due.Sub(now))
	}
}

// extend moves the total: a caller's patience is for the start of an answer.
func (w *watch) extend(total time.Time) {
	w.mu.Lock()
	w.total = total
	w.mu.Unlock()
}

func (w *watch) fire() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	if left := time.Until(w.due); left > 0 {
		w.armed = w.due
		w.timer.Reset(left)
		w.mu.Unlock()
		return
	}
	w.stopped, w.timedOut = true, true
	cause := w.cause
	w.mu.Unlock()
	w.cancel(cause)
}

// stop ends the watch and reports whether it had ended the attempt.
func (w *watch) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	return w.timedOut
}
