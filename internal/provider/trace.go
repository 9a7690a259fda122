package provider

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// ConnInfo says what connection a call got, for the moment it fails. The zero value
// is ready; one serves one call. It is safe for concurrent use: the
// connection's own goroutines write it. A simulated call leaves it zero.
type ConnInfo struct {
	reused atomic.Bool
	trace  httptrace.ClientTrace
}

// Reused reports whether that connection had served a call before: a reset or
// silence there may be the connection's fault and not the upstream's.
func (c *ConnInfo) Reused() bool { return c.reused.Load() }

// WithTrace returns a context whose call is noted in c.
func WithTrace(ctx context.Context, c *ConnInfo) context.Context {
	c.trace.GotConn = c.got
	return httptrace.WithClientTrace(ctx, &c.trace)
}

func (c *ConnInfo) got(i httptrace.GotConnInfo) { c.reused.Store(i.Reused) }
