package drill

import (
	"math"
	"sync"
	"time"
)

// asked is what a target is told of a call.
type asked struct {
	workload *Workload
	caller   int    // of the workload
	bytes    int64  // of the request's body
	call     uint64 // number of the call, for what is drawn
	key      int    // of the workload's users
}

// answer is what a target decides for one call.
type answer struct {
	status     int           // 200, or the refusal's
	retryAfter time.Duration // 0 for none
	mode       string        // of the fault that made it fail, "" for none
	wait       time.Duration // to the answer, or to the first content of a stream
	rest       time.Duration // from there to the end of a stream

	life  <-chan struct{} // closed when the target is killed
	drop  <-chan struct{} // closed when the call is broken off
	bytes int64           // held to the end
	probe bool            // made while the breaker was half open
}

// server is the model of a target: a machine with the faults of the scenario.
// It decides in virtual time and waits for nothing. Safe for concurrent use.
type server struct {
	*Target
	seed   uint64
	faults []Fault
	book   *targetBook

	mu      sync.Mutex
	machine machine
	used    decaying         // calls of the last second
	served  int              // in all
	began   map[int]int      // served when a cold fault began, by its place
	store   *store           // nil for none
	verdict *verdict         // nil for none
	running map[*drop]uint64 // calls that a fault may break off
	probing int
	had     map[uint64]uint64 // calls, by request and the client's attempt
}

// drop is one running call that can be broken off.
type drop struct{ gone chan struct{} }

func newServer(s *Scenario, t *Target, seed uint64, book *targetBook) *server {
	v := &server{
		Target: t, seed: seed, book: book, used: decaying{over: time.Second}, began: map[int]int{}, had: map[uint64]uint64{},
		machine: machine{capacity: t.Capacity, queue: t.Queue, memory: int64(t.Memory), down: t.Down},
	}
	for _, f := range s.Faults {
		if f.Target == t.Name {
			v.faults = append(v.faults, f)
		}
		if f.Target == t.Name && f.Mode == ModeDrop {
			v.running = map[*drop]uint64{}
		}
	}
	if t.Keys != nil {
		v.store = newStore(t.Keys, seed)
	}
	if t.Verdict != nil {
		v.verdict = &verdict{Verdict: *t.Verdict, callers: map[string]*decaying{}}
	}
	return v
}

// number is that of a call, for what is drawn: by the request, its client's
// attempt, and how often this target has had it. So the same request meets the
// same luck with every contender, whatever order things happen in.
func (v *server) number(id, attempt uint64) uint64 {
	key := id<<16 | attempt<<8
	v.mu.Lock()
	defer v.mu.Unlock()
	v.had[key]++
	return key | v.had[key] - 1
}

// take decides over a call made at now, at virtual time at. Every call that was
// taken ends with leave.
func (v *server) take(now time.Time, at time.Duration, q asked) (a answer, d *drop) {
	v.mu.Lock()
	defer v.mu.Unlock()
	life, up := v.machine.serves(now)
	if !up {
		a = answer{mode: ModeConnect, status: 200}
	} else {
		a = v.decide(now, at, q)
		a.life = life
	}
	a.bytes = int64(v.PerCall) + q.bytes
	if killed := v.machine.enter(now, a.bytes, 0); killed && up {
		v.book.killed(at)
	}
	if v.running != nil {
		d = &drop{gone: make(chan struct{})}
		a.drop, v.running[d] = d.gone, q.call
	}
	if a.probe = v.book.halfOpen(); a.probe {
		v.probing++
	}
	v.book.begin(at, a, &v.machine, now, v.probing)
	return a, d
}

// decide goes through the faults, the key store, the verdict and the queue.
func (v *server) decide(now time.Time, at time.Duration, q asked) answer {
	factor := 1 + (v.Slows-1)*min(1, v.used.at(now)/v.Capacity)
	a := answer{status: 200, wait: times(v.Latency, factor), rest: times(v.Stream, factor)}
	if q.workload.Malformed || q.workload.Garbled {
		a.status, a.mode, a.wait = 400, "400", time.Millisecond
	}
	capacity := v.strike(at, q, &a)
	if capacity < 1 {
		v.book.at(at).Cold = true
	}
	if v.verdict != nil && a.mode == "" {
		v.verdict.judge(now, q, &a)
	}
	if v.store != nil && a.mode == "" {
		v.store.look(now, q, &a)
	}
	v.queueUp(now, capacity, &a)
	return a
}

// strike applies the faults of the moment and returns the factor of the
// capacity that they leave.
func (v *server) strike(at time.Duration, q asked, a *answer) (capacity float64) {
	capacity = 1
	draw, from := chance(v.seed, v.Name, q.call), 0.0
	for i := range v.faults {
		f := &v.faults[i]
		if at < f.At || at >= f.Until && f.Mode != ModeForget || f.Workload != "" && f.Workload != q.workload.Name {
			continue
		}
		switch f.Mode {
		case ModeLess:
			capacity *= f.Factor
		case ModeCold:
			capacity *= v.warmth(i, f)
		case ModeForget:
			if _, done := v.began[i]; !done {
				v.began[i] = v.served
				v.store.forget(f.Share)
			}
		case ModeDrop:
		default:
			share, draw := f.share(at), draw
			if f.Sticky {
				draw = chance(v.seed, v.Name+" sticks to "+q.workload.Name, uint64(q.caller)<<32|uint64(q.key))
			}
			if hit := draw >= from && draw < from+share; hit && a.mode == "" {
				f.apply(a)
			}
			from += share
		}
	}
	return capacity
}

// warmth is what a cold target can do: more with each call that it has served.
func (v *server) warmth(i int, f *Fault) float64 {
	if _, ok := v.began[i]; !ok {
		v.began[i] = v.served
	}
	return min(1, f.Factor+(1-f.Factor)*float64(v.served-v.began[i])/float64(f.Warm))
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
	if status := f.status(); status > 0 {
		a.status, a.wait = status, f.After
		return
	}
	switch f.Mode {
	case ModeSlow:
		a.wait, a.rest = times(a.wait, f.Factor), times(a.rest, f.Factor)
	case ModeFirst:
		a.wait = times(a.wait, f.Factor)
	case ModeDrip:
		a.rest = times(a.rest, f.Factor)
	case ModeReset, ModeConnect, ModeInside:
		a.wait = f.After
	}
}

// fails reports that the answer is no success by the fault of its mode alone.
func (a *answer) fails() bool {
	switch a.mode {
	case "", ModeSlow, ModeFirst, ModeDrip:
		return false
	}
	return true
}

// queueUp books the call's work, or refuses it when the queue is full. What
// fails early costs no more than a refusal.
func (v *server) queueUp(now time.Time, capacity float64, a *answer) {
	cost, queued := 1.0, v.machine.waits(now)
	early := a.fails() && a.mode != ModeCut && a.mode != ModeHang && a.mode != ModeWrong
	switch {
	case early:
		cost = v.Refusal
	case v.machine.full(now):
		*a = answer{status: v.Full, wait: time.Millisecond}
		cost = v.Refusal
	default:
		a.wait += queued
		v.used.add(now, 1)
		if a.mode == "" {
			v.served++
		}
	}
	v.machine.work(now, capacity, cost)
}

// content notes the first content of a stream: a probe has proved what it was to.
func (v *server) content(a *answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a.probe {
		a.probe = false
		v.probing--
	}
}

// leave ends a call.
func (v *server) leave(a *answer, d *drop) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.machine.exit(a.bytes)
	if a.probe {
		v.probing--
	}
	delete(v.running, d)
}

// breakOff breaks a share of the running calls, drawn anew at each moment.
func (v *server) breakOff(at time.Duration, share float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for d, call := range v.running {
		if chance(v.seed, v.Name+" drop "+at.String(), call) < share {
			close(d.gone)
			delete(v.running, d)
		}
	}
}

// store is a key store and the cache in front of it. Its owner locks it.
type store struct {
	KeyStore
	seed    uint64
	machine machine
	lost    float64      // share of the cache that was forgotten
	known   map[int]bool // what was looked up since
}

func newStore(k *KeyStore, seed uint64) *store {
	return &store{KeyStore: *k, seed: seed, machine: machine{capacity: k.Capacity, queue: k.Queue}}
}

// look finds the caller's key: at once when the cache knows it. Before anything
// was forgotten it knows all.
func (s *store) look(now time.Time, q asked, a *answer) {
	if s.known[q.key] || chance(s.seed, "forgotten", uint64(q.key)) >= s.lost {
		return
	}
	if s.machine.full(now) {
		s.machine.work(now, 1, s.Refusal)
		a.status, a.mode, a.wait = 401, "401", time.Millisecond
		return
	}
	a.wait += s.machine.waits(now)
	s.machine.work(now, 1, 1)
	s.known[q.key] = true
}

// forget loses a share of the cache.
func (s *store) forget(share float64) { s.lost, s.known = share, map[int]bool{} }

// verdict is a limiter that punishes all for one. Its owner locks it.
type verdict struct {
	Verdict
	callers map[string]*decaying
	until   time.Time
}

func (l *verdict) judge(now time.Time, q asked, a *answer) {
	name := callerName(q.workload, q.caller)
	d := l.callers[name]
	if d == nil {
		d = &decaying{over: 10 * time.Second}
		l.callers[name] = d
	}
	d.add(now, 1)
	if d.at(now)/10 > l.RPS {
		l.until = latest(l.until, now.Add(l.For))
	}
	if now.Before(l.until) {
		a.status, a.mode, a.wait = 429, "429", time.Millisecond
	}
}

// decaying is a sum that forgets: exponentially, with a mean age of over.
type decaying struct {
	over time.Duration
	last time.Time
	sum  float64
}

func (d *decaying) at(now time.Time) float64 {
	if d.last.IsZero() {
		return 0
	}
	return d.sum * math.Exp(-now.Sub(d.last).Seconds()/d.over.Seconds())
}

func (d *decaying) add(now time.Time, n float64) {
	d.sum = d.at(now) + n
	d.last = now
}

func times(d time.Duration, f float64) time.Duration { return time.Duration(float64(d) * f) }
