package workload

import (
	"hash/maphash"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/repeat"
)

// What lets a workload's repeats in: so many for each first request, and so many
// a second.
const (
	RepeatRatio     = repeat.Ratio
	RepeatPerSecond = repeat.PerSecond
)

// Of the ledger one of many workloads may hold a quarter when half of it is taken
// (algorithm notes, section 7); one of a few as much as leaves the same to each,
// up to where interactive work is refused.
const (
	memoryShare = 0.25
	memoryMost  = 0.85
)

// The reasons of refusals besides those of package admit.
const (
	ReasonRepeats    = "repeats"    // the allowance for repeats is used up
	ReasonUnread     = "unread"     // so many bodies were those of refused repeats that not all are read
	ReasonQuarantine = "quarantine" // with a share of nothing
)

// unreadWait is the wait that is advised to a request which was refused unread.
const unreadWait = 5 * time.Second

// repeats is what a workload knows of its callers' own retries.
type repeats struct {
	gate   repeat.Gate
	failed repeat.Memory
	window repeat.Window
}

// Arrival is a request that has come in, as far as its repeating another one is
// concerned. It belongs to the request's goroutine.
type Arrival struct {
	again bool   // counted as a repeat
	key   uint64 // of its idempotency key, 0 for none
	body  uint64 // of its path and body, 0 while it has not been needed
}

// Repeat reports a repeat of the caller's own retry loop.
func (a *Arrival) Repeat() bool { return a.again }

// Begin counts a request that came in. numbered says that the caller called it a
// retry of its own; idempotency is its key, "" for none. A repeat too many is
// refused, with the wait that is advised; End is due all the same.
func (w *Workload) Begin(now time.Time, numbered bool, idempotency string) (a Arrival, refusal admit.Refusal, ok bool) {
	if idempotency != "" {
		a.key = digestOf(idempotency, nil)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inbound++
	w.inflight++
	a.again = numbered || a.key != 0 && w.repeats.failed.Repeats(now, a.key)
	w.repeats.window.Add(now, a.again)
	switch {
	case a.again:
		refusal, ok = w.repeated(now)
		return a, refusal, ok
	case w.repeats.gate.Unread(now):
		w.unread++
		return a, admit.Refusal{Reason: ReasonUnread, Wait: unreadWait}, false
	}
	return a, refusal, true
}

// Look counts a request that only asks what there is: it repeats nothing, and is
// no work that repeats are compared with. End is due.
func (w *Workload) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inbound++
	w.inflight++
}

// Read looks at a request that has been read, unless it is known as a repeat: it
// is one when the same failed a moment ago. The body is not looked at where
// nothing failed.
func (w *Workload) Read(now time.Time, a *Arrival, path string, body []byte) (admit.Refusal, bool) {
	if a.again || w.first(now, body) {
		return admit.Refusal{}, true
	}
	a.body = digestOf(path, body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.repeats.failed.Repeats(now, a.body) {
		w.repeats.gate.Read(now, len(body), false)
		w.repeats.gate.First(now)
		return admit.Refusal{}, true
	}
	a.again = true
	w.repeats.window.Again(now)
	refusal, ok := w.repeated(now)
	w.repeats.gate.Read(now, len(body), !ok)
	return refusal, ok
}

// first counts a request that can repeat none, and reports that it is so.
func (w *Workload) first(now time.Time, body []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(body) > 0 && !w.repeats.failed.Empty(now) {
		return false
	}
	w.repeats.gate.First(now)
	return true
}

// repeated lets a repeat in or refuses it. The lock is held.
func (w *Workload) repeated(now time.Time) (admit.Refusal, bool) {
	w.again++
	wait, ok := time.Minute, false
	if w.lane.Lane != Quarantine {
		wait, ok = w.repeats.gate.Take(now)
	}
	if ok {
		return admit.Refusal{}, true
	}
	w.refused++
	return admit.Refusal{Reason: ReasonRepeats, Wait: wait}, false
}

// Failed remembers a request that failed: the same one again repeats it, before
// until if that is not zero.
func (w *Workload) Failed(now time.Time, a *Arrival, path string, body []byte, until time.Time) {
	if a.body == 0 && len(body) > 0 {
		a.body = digestOf(path, body)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repeats.failed.Failed(now, a.key, until)
	w.repeats.failed.Failed(now, a.body, until)
}

// Served takes note of an answered one. Its body is looked at, where it was not
// needed before, as long as failures are remembered: it may have been a numbered
// repeat of one of them.
func (w *Workload) Served(now time.Time, a *Arrival, path string, body []byte) {
	if a.body == 0 && len(body) > 0 && w.failing(now) {
		a.body = digestOf(path, body)
	}
	if a.key|a.body == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repeats.failed.Served(now, a.key)
	w.repeats.failed.Served(now, a.body)
}

// failing reports that failures are remembered.
func (w *Workload) failing(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.repeats.failed.Empty(now)
}

// MemoryShare is what one of so many workloads may hold of the ledger when half
// of it is taken; 0 is all of it.
func MemoryShare(sharing int) float64 {
	if sharing <= 1 {
		return 0
	}
	return max(memoryShare, memoryMost/float64(sharing))
}

// claim is what the workload may have of the ledger.
func (w *Workload) claim() admit.Claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := admit.Claim{Priority: w.spec.Priority, Holder: &w.memory}
	if w.spec.Foremost {
		c.Priority = queue.Critical
	}
	switch {
	case w.lane.Lane == Quarantine:
		c.Share, c.Strict = w.lane.Share, true
	default:
		c.Share = MemoryShare(w.spec.Sharing)
	}
	return c
}

var seed = maphash.MakeSeed()

// digestOf is a hash of a request, never 0.
func digestOf(name string, body []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(name) // never fails
	_, _ = h.WriteString("\x00" + strconv.Itoa(len(body)) + "\x00")
	_, _ = h.Write(body) // all of it: recordings and pictures differ in the middle
	return h.Sum64() | 1
}
