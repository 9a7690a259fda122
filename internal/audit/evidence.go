package audit

import (
	"sync"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

// evidence is what rules decide by: the objects and what they mean to each other,
// the paths through them, and the options. What several rules ask for is found
// when it is first asked for, once. It is otherwise immutable.
type evidence struct {
	*topology.Graph
	opt    Options
	paths  func() *retrypath.Paths
	alerts func() alerts
	// zone is the zone that all nodes are in, and the first of them.
	zone func() (*manifest.Object, string)
	// callers are the namespaces with a limit for each caller.
	callers func() map[string]bool
}

// gather builds the evidence of an audit; defaults of the options are filled in.
func gather(objects []*manifest.Object, opt Options) *evidence {
	if opt.MaxAttempts <= 0 {
		opt.MaxAttempts = 10
	}
	g := topology.New(objects, opt.Context)
	return &evidence{
		Graph: g, opt: opt,
		paths:   sync.OnceValue(func() *retrypath.Paths { return retrypath.New(g) }),
		alerts:  sync.OnceValue(func() alerts { return findAlerts(g) }),
		zone:    sync.OnceValues(func() (*manifest.Object, string) { return oneZoneOf(g) }),
		callers: sync.OnceValue(func() map[string]bool { return callersTold(g) }),
	}
}
