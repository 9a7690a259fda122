package drill

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// rooms are the instances that a contender runs on, by the scenario's gateway:
// calls go round, and each costs and holds by one rule, whoever the contender
// is.
type rooms struct {
	*play
	all  []*room
	turn atomic.Uint64
}

// room is one instance.
type room struct {
	play  *play
	book  *targetBook
	other func() int64 // bytes that it holds besides its calls
	died  func()       // it was killed for lack of memory; called with the lock

	mu      sync.Mutex
	machine machine
	away    bool // drained
}

// newRooms makes the instances; one without bounds when the scenario says
// nothing.
func newRooms(p *play) *rooms {
	r := &rooms{play: p}
	g := p.Gateway
	if g == nil {
		g = &Gateway{Instances: 1}
	}
	for i := range g.Instances {
		r.all = append(r.all, &room{
			play: p, book: p.books.gateways[i], other: func() int64 { return 0 }, died: func() {},
			machine: machine{capacity: g.Capacity / float64(g.Instances), queue: g.Queue, memory: int64(g.Memory), down: g.Down},
		})
	}
	return r
}

// next is the instance whose turn it is, of those that serve; -1 when none
// does.
func (r *rooms) next() int {
	now := time.Now()
	for range r.all {
		if i := int(r.turn.Add(1)) % len(r.all); r.all[i].serves(now) {
			return i
		}
	}
	return -1
}

// each does something to the instances that an action is for, one after the
// other.
func (r *rooms) each(a Action, do func(i int)) {
	for i := range r.all {
		if a.Instance > 0 && a.Instance != i+1 {
			continue
		}
		do(i)
		if a.Every > 0 && i < len(r.all)-1 {
			time.Sleep(a.Every)
		}
	}
}

func (r *room) serves(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, up := r.machine.serves(now)
	return up && !r.away
}

// leave takes the instance out of the round, or back in.
func (r *room) leave(away bool) {
	r.mu.Lock()
	r.away = away
	r.mu.Unlock()
}

// kill ends everything on the instance.
func (r *room) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine.kill(time.Now())
	r.killed()
}

func (r *room) killed() {
	r.book.killed(r.play.since())
	r.died()
}

// guest is a call on an instance.
type guest struct {
	room   *room
	life   <-chan struct{} // closed when the instance is killed
	queued time.Duration   // for the work before it
	full   bool            // the system turns the connection away
	held   int64
}

// enter puts a call on the instance, at the cost of an early refusal. While it
// waits for the work before it nothing of it has been read, and it holds a share
// of what a call takes.
func (r *room) enter() *guest {
	now, g := time.Now(), r.play.Gateway
	x := &guest{room: r, held: int64(float64(g.PerCall) * g.Waiting)}
	r.mu.Lock()
	defer r.mu.Unlock()
	x.life, _ = r.machine.serves(now)
	other := r.other()
	if r.machine.enter(now, x.held, other) {
		r.killed()
	}
	x.full, x.queued = r.machine.full(now), r.machine.waits(now)
	r.machine.work(now, 1, g.Early)
	r.book.beginAt(r.play.since(), &r.machine, now, x.full, r.machine.held+other)
	return x
}

// serve lets the call take what it holds while it is served.
func (x *guest) serve(bytes int64) {
	r, now := x.room, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	other := r.other()
	if r.machine.hold(now, bytes-x.held, other) {
		r.killed()
	}
	x.held = bytes
	r.book.holds(r.play.since(), r.machine.held+other)
}

// pay books the rest of a call's cost when its outcome is known: nothing more
// for what was refused, or left by its caller, before its body was read, a
// refusal's for any other refusal, and all of it for what was served or kept the
// instance busy in vain. What an instance was killed with, the next does not owe.
func (x *guest) pay(out reply) {
	r, g, cost := x.room, x.room.play.Gateway, 1.0
	switch {
	case out.early || x.killed():
		return
	case out.status >= 400:
		cost = g.Refusal
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine.work(time.Now(), 1, max(0, cost-g.Early))
}

// killed reports that the instance was killed since the call came.
func (x *guest) killed() bool {
	select {
	case <-x.life:
		return true
	default:
		return false
	}
}

// exit takes the call off.
func (x *guest) exit() {
	x.room.mu.Lock()
	defer x.room.mu.Unlock()
	x.room.machine.exit(x.held)
}

// gatewayName is that of an instance, from 0.
func gatewayName(i int) string { return fmt.Sprintf("gateway-%d", i+1) }
