package drill

import (
	"context"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
)

// gate is a modelled gateway behind limits for each workload: those of the
// scenario, by the router's own limiter.
type gate struct {
	caller
	limits map[string]*admit.Limiter
}

// limited puts a model behind limits.
func limited(m modelled) modelled {
	return func(p *play, instance int) caller {
		g := &gate{caller: m(p, instance), limits: map[string]*admit.Limiter{}}
		for i := range p.Workloads {
			w := &p.Workloads[i]
			for n := range w.Callers {
				g.limits[callerName(w, n)] = admit.NewLimiter(admit.OfWorkload, admit.Limits{RPM: int64(w.RPM), Concurrency: w.Concurrency})
			}
		}
		return g
	}
}

// enter asks for one call, and says how it is refused when there is no permit.
func (g *gate) enter(c call) (*admit.Permit, reply) {
	permit, refusal, ok := g.limits[callerName(c.Workload, c.caller)].Enter(time.Now(), 0)
	if !ok {
		wait := max(time.Second, (refusal.Wait + time.Second - 1).Truncate(time.Second))
		return nil, reply{status: 429, early: true, after: wait}
	}
	return &permit, reply{}
}

func (g *gate) call(ctx context.Context, c call) reply {
	permit, refused := g.enter(c)
	if permit == nil {
		return refused
	}
	defer func() { permit.Leave(time.Now(), admit.Use{}) }()
	return g.caller.call(ctx, c)
}
