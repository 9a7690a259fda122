package drill

import (
	"math"
	"time"
)

// machine is the model of what something runs on: work is done at a fixed rate
// behind a queue, calls in flight hold memory, and past its memory it is killed
// with everything on it. It waits for nothing. Its owner locks it.
type machine struct {
	capacity float64       // full calls a second, 0 for no bound
	queue    time.Duration // work that may wait
	memory   int64         // bytes, 0 for no bound
	down     time.Duration // from a kill to service

	busy     time.Time     // when the work taken on is done
	inflight int           // calls on it
	held     int64         // bytes they hold
	back     time.Time     // when it serves again after a kill
	life     chan struct{} // closed by a kill
}

// maxBacklog bounds the work behind the queue's end: connections that a real
// server's listener would no longer accept.
const maxBacklog = 2 * time.Second

// serves reports that the machine is up, and what is closed when it is killed.
func (m *machine) serves(now time.Time) (life <-chan struct{}, ok bool) {
	if now.Before(m.back) {
		return nil, false
	}
	if m.life == nil {
		m.life = make(chan struct{})
	}
	return m.life, true
}

// waits is how long work that comes now waits.
func (m *machine) waits(now time.Time) time.Duration { return max(0, m.busy.Sub(now)) }

// full reports that the queue takes no more.
func (m *machine) full(now time.Time) bool { return m.capacity > 0 && m.waits(now) > m.queue }

// work books the cost of a call, as a share of a full one, at a factor of the
// capacity.
func (m *machine) work(now time.Time, factor, cost float64) {
	if m.capacity == 0 {
		return
	}
	d := time.Duration(cost / math.Max(m.capacity*factor, 1e-6) * float64(time.Second))
	m.busy = earliest(latest(m.busy, now).Add(d), now.Add(m.queue+maxBacklog))
}

// load is the work waiting, as a share of what the queue takes; above 1 it
// refuses.
func (m *machine) load(now time.Time) float64 {
	if m.capacity == 0 {
		return 0
	}
	return m.waits(now).Seconds() / math.Max(m.queue.Seconds(), 1/m.capacity)
}

// enter puts a call on the machine, and kills it when that is more than it can
// hold; other is what it holds besides its calls.
func (m *machine) enter(now time.Time, bytes, other int64) (killed bool) {
	m.inflight++
	return m.hold(now, bytes, other)
}

// hold lets a call on the machine take more.
func (m *machine) hold(now time.Time, bytes, other int64) (killed bool) {
	m.held += bytes
	if now.Before(m.back) { // it is dead: what was on it is going
		return false
	}
	if m.memory > 0 && m.held+other > m.memory {
		m.kill(now)
		return true
	}
	return false
}

// exit takes a call off.
func (m *machine) exit(bytes int64) {
	m.inflight--
	m.held -= bytes
}

// kill ends everything on the machine.
func (m *machine) kill(now time.Time) {
	m.back, m.busy = now.Add(m.down), now
	if m.life != nil {
		close(m.life)
		m.life = nil
	}
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
