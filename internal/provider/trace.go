package provider

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// ConnInfo says how far a call got, for the moment it fails. The zero value
// is ready; one serves one call. It is safe for concurrent use: the
// connection's own goroutines write it. A simulated call leaves it zero.
type ConnInfo struct {
	state atomic.Uint32
	trace httptrace.ClientTrace
}

const (
	gotConn uint32 = 1 << iota
	reusedConn
	wroteRequest
)

// Connected reports whether the call had a connection.
func (c *ConnInfo) Connected() bool { return c.state.Load()&gotConn != 0 }

// Reused reports whether that connection had served a call before: a reset or
// silence there may be the connection's fault and not the upstream's.
func (c *ConnInfo) Reused() bool { return c.state.Load()&reusedConn != 0 }

// Wrote reports whether the whole request was written, so that the upstream
// may have acted on it.
func (c *ConnInfo) Wrote() bool { return c.state.Load()&wroteRequest != 0 }

// WithTrace returns a context whose call is noted in c.
func WithTrace(ctx context.Context, c *ConnInfo) context.Context {
	c.trace.GotConn = c.got
	c.trace.WroteRequest = c.wrote
	return httptrace.WithClientTrace(ctx, &c.trace)
}

func (c *ConnInfo) got(i httptrace.GotConnInfo) {
	s := gotConn
	if i.Reused {
		s |= reusedConn
	}
	c.state.Store(s)
}

func (c *ConnInfo) wrote(i httptrace.WroteRequestInfo) {
	if i.Err == nil {
		c.state.Or(wroteRequest)
	}
}
