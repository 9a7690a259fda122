package drill

import (
	"context"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
)

// modelled is the policy of a modelled gateway, one for each instance, with
// what it has learned.
type modelled func(p *play, instance int) caller

// front is a contender that is a model: a policy on the scenario's gateway.
type front struct {
	*rooms
	model modelled

	mu       sync.Mutex
	policies []caller // by instance
}

// make makes the contender.
func (m modelled) make(p *play, _ Options) (contender, error) {
	f := &front{rooms: newRooms(p), model: m}
	for i, room := range f.all {
		f.policies = append(f.policies, m(p, i+1))
		room.died = func() { f.begin(i) }
	}
	return f, nil
}

func (f *front) policy(i int) caller {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.policies[i]
}

// begin starts an instance anew: what it has learned is lost.
func (f *front) begin(i int) {
	f.renew(i)
	f.books.begun(i + 1)
}

// renew gives an instance a policy without a past.
func (f *front) renew(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policies[i] = f.model(f.play, i+1)
}

func (f *front) call(ctx context.Context, c call) reply {
	i := f.next()
	if i < 0 {
		return reply{broken: true}
	}
	policy := f.policy(i)
	if f.Gateway == nil {
		return policy.call(ctx, c)
	}
	x := f.all[i].enter()
	defer x.exit()
	if x.full {
		return reply{broken: true}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan reply, 1)
	go func() {
		if !wait(x.queued, ctx.Done()) {
			gone <- reply{late: true, early: true} // nobody has read it
			return
		}
		x.serve(int64(f.Gateway.PerCall))
		if g, ok := policy.(*gate); ok {
			permit, refused := g.enter(c)
			if permit == nil { // nor its body read
				gone <- refused
				return
			}
			defer func() { permit.Leave(time.Now(), admit.Use{}) }()
			policy = g.caller
		}
		x.serve(int64(f.Gateway.PerCall) + c.bytes)
		gone <- policy.call(ctx, c)
	}()
	select {
	case out := <-gone:
		x.pay(out)
		return out
	case <-x.life: // killed
		cancel()
		<-gone
		return reply{broken: true}
	}
}

// act does to a modelled gateway what can be done to it.
func (f *front) act(a Action) {
	f.each(a, func(i int) {
		switch a.Do {
		case "configure": // at once, with breakers that know nothing of the new targets
			f.renew(i)
		case "restart":
			f.begin(i)
			f.all[i].leave(false)
		case "kill":
			f.all[i].kill()
		case "drain":
			f.all[i].leave(true)
		}
	})
}

func (f *front) close() {}
