package drill

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"sync"
	"time"
)

// answer is what a target decides for one call.
type answer struct {
	status     int           // 200, or the refusal's
	retryAfter time.Duration // 0 for none
	mode       string        // of the fault that made it fail, "" for none
	wait       time.Duration // to the answer, or to the first content of a stream
	rest       time.Duration // from there to the end of a stream
}

// server is the model of a target: a queue in front of a fixed capacity, which
// refusals use up as well, and the faults of the scenario. It decides in
// virtual time and waits for nothing. Safe for concurrent use.
type server struct {
	Target
	seed   uint64
	faults []Fault
	book   *targetBook

	mu       sync.Mutex
	busy     time.Time // when the work taken on is done
	inflight int
}

func newServer(s *Scenario, t Target, seed uint64, book *targetBook) *server {
	v := &server{Target: t, seed: seed, book: book}
	for _, f := range s.Faults {
		if f.Target == t.Name {
			v.faults = append(v.faults, f)
		}
	}
	return v
}

// maxBacklog bounds the work behind the queue's end: connections that a real
// server's listener would no longer accept.
const maxBacklog = 2 * time.Second

// take decides over a call made at now, at virtual time at.
func (v *server) take(now time.Time, at time.Duration, call uint64) answer {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := answer{status: 200, wait: v.Latency, rest: v.Stream}
	capacity := v.Capacity
	draw := chance(v.seed, v.Name, call)
	from := 0.0
	for i := range v.faults {
		f := &v.faults[i]
		if at < f.At || at >= f.Until {
			continue
		}
		if f.Mode == ModeLess {
			capacity *= f.Factor
			continue
		}
		share := f.share(at)
		if hit := draw >= from && draw < from+share; hit && a.mode == "" {
			f.apply(&a)
		}
		from += share
	}
	v.work(now, capacity, &a)
	v.inflight++
	v.book.begin(at, a, v.inflight, v.load(now))
	return a
}

// share is the share at a moment of a fault that rises or falls.
func (f *Fault) share(at time.Duration) float64 {
	if f.To == 0 {
		return f.Share
	}
	done := float64(at-f.At) / float64(f.Until-f.At)
	return f.Share + (f.To-f.Share)*done
}

func (f *Fault) apply(a *answer) {
	a.mode, a.retryAfter = f.Mode, f.RetryAfter
	switch status := f.status(); {
	case status > 0:
		a.status, a.wait = status, f.After
	case f.Mode == ModeSlow:
		a.wait, a.rest = time.Duration(float64(a.wait)*f.Factor), time.Duration(float64(a.rest)*f.Factor)
	case f.Mode == ModeReset, f.Mode == ModeConnect, f.Mode == ModeInside:
		a.wait = f.After
	}
}

// work books the call's work, or refuses it when the queue is full. What fails
// early costs no more than a refusal.
func (v *server) work(now time.Time, capacity float64, a *answer) {
	v.busy = latest(v.busy, now)
	queued := v.busy.Sub(now)
	cost := 1.0
	switch {
	case a.mode != "" && a.mode != ModeSlow && a.mode != ModeCut && a.mode != ModeHang:
		cost = v.Refusal
	case queued > v.Queue:
		*a = answer{status: 429, wait: time.Millisecond}
		cost = v.Refusal
	default:
		a.wait += queued
	}
	v.busy = earliest(v.busy.Add(time.Duration(cost/math.Max(capacity, 1e-6)*float64(time.Second))), now.Add(v.Queue+maxBacklog))
}

// load is the work waiting, as a share of what the queue takes; above 1 it
// refuses.
func (v *server) load(now time.Time) float64 {
	return v.busy.Sub(now).Seconds() / math.Max(v.Queue.Seconds(), 1/v.Capacity)
}

// leave ends a call.
func (v *server) leave() {
	v.mu.Lock()
	v.inflight--
	v.mu.Unlock()
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// chance is a number in [0,1) that depends on its arguments alone.
func chance(seed uint64, name string, n uint64) float64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], n)
	_, _ = h.Write(b[:]) // never fails
	_, _ = h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // finaliser of MurmurHash3
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}
