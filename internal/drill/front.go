package drill

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// front is the scenario's gateway with a modelled policy on it: instances that
// share the capacity, each with what its policy has learned.
type front struct {
	*play
	policy func(instance int) caller
	rooms  []*room
	turn   atomic.Uint64
}

// room is one instance of the gateway.
type room struct {
	book *targetBook

	mu      sync.Mutex
	machine machine
	policy  caller
	away    bool // drained
}

// newRooms makes the instances of the scenario's gateway; one without bounds
// when it says nothing.
func (p *play) newRooms() (out []*room) {
	g := p.Gateway
	if g == nil {
		g = &Gateway{Instances: 1}
	}
	for i := range g.Instances {
		out = append(out, &room{
			book:    p.books.gateways[i],
			machine: machine{capacity: g.Capacity / float64(g.Instances), queue: g.Queue, memory: int64(g.Memory), down: g.Down},
		})
	}
	return out
}

func newFront(p *play, policy func(instance int) caller) *front {
	f := &front{play: p, policy: policy, rooms: p.newRooms()}
	for i, r := range f.rooms {
		r.policy = policy(i + 1)
	}
	return f
}

// next is the instance whose turn it is, of those that serve; nil when none
// does.
func (f *front) next() *room {
	now := time.Now()
	for range f.rooms {
		r := f.rooms[int(f.turn.Add(1))%len(f.rooms)]
		r.mu.Lock()
		_, up := r.machine.serves(now)
		up = up && !r.away
		r.mu.Unlock()
		if up {
			return r
		}
	}
	return nil
}

func (f *front) call(ctx context.Context, c call) reply {
	r := f.next()
	if r == nil {
		return reply{broken: true}
	}
	if f.Gateway == nil {
		return r.policy.call(ctx, c)
	}
	policy, life, queued, full := r.enter(f.play, c)
	held := f.waiting(c)
	defer func() { r.exit(held) }()
	if full { // the system turns the connection away
		return reply{broken: true}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan reply, 1)
	go func() {
		if !wait(queued, ctx.Done()) {
			gone <- reply{late: true}
			return
		}
		held += r.hold(f.play, int64(f.Gateway.PerCall)+c.bytes-held)
		gone <- policy.call(ctx, c)
	}()
	select {
	case out := <-gone:
		r.pay(f.Gateway, out)
		return out
	case <-life: // killed
		cancel()
		<-gone
		return reply{broken: true}
	}
}

// waiting is the memory of a connection that waits for its turn, when nothing
// of it has been read: a share of what a call takes.
func (p *play) waiting(call) int64 { return int64(float64(p.Gateway.PerCall) * p.Gateway.Waiting) }

// enter puts a call on the instance, at the cost of an early refusal: it waits
// for the work before it, or is turned away.
func (r *room) enter(p *play, c call) (policy caller, life <-chan struct{}, queued time.Duration, full bool) {
	now, at := time.Now(), p.since()
	r.mu.Lock()
	defer r.mu.Unlock()
	life, _ = r.machine.serves(now)
	if r.machine.enter(now, p.waiting(c), 0) {
		r.book.killed(at)
	}
	full, queued = r.machine.full(now), r.machine.waits(now)
	r.machine.work(now, 1, p.Gateway.Early)
	r.book.beginAt(at, &r.machine, now, full, r.machine.held)
	return r.policy, life, queued, full
}

// hold is what a call takes more when it is served.
func (r *room) hold(p *play, more int64) int64 {
	now, at := time.Now(), p.since()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine.hold(now, more, 0) {
		r.book.killed(at)
	}
	r.book.holds(at, r.machine.held)
	return more
}

// pay books the rest of a call's cost when its outcome is known: nothing more
// for what was refused before its body was read, a refusal's for any other
// refusal, and all of it for what was served or kept the instance busy in vain.
func (r *room) pay(g *Gateway, out reply) {
	cost := 1.0
	switch {
	case out.early:
		return
	case out.status >= 400:
		cost = g.Refusal
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine.work(time.Now(), 1, max(0, cost-g.Early))
}

func (r *room) exit(held int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machine.exit(held)
}

// act does to a modelled gateway what can be done to it. What it has learned is
// lost when it starts anew.
func (f *front) act(a Action) {
	for i, r := range f.rooms {
		if a.Instance > 0 && a.Instance != i+1 {
			continue
		}
		r.mu.Lock()
		switch a.Do {
		case "restart":
			r.policy = f.policy(i + 1)
			f.books.begun(i + 1)
		case "kill":
			r.machine.kill(time.Now())
			r.book.killed(f.since())
			r.policy = f.policy(i + 1)
			f.books.begun(i + 1)
		case "drain":
			r.away = true
		}
		r.mu.Unlock()
		if a.Every > 0 && i < len(f.rooms)-1 {
			time.Sleep(a.Every)
		}
	}
}

func (f *front) close() {}

// gatewayName is that of an instance, from 0.
func gatewayName(i int) string { return fmt.Sprintf("gateway-%d", i+1) }
