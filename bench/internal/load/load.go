// Package load makes chat requests over loopback TCP and says what became of
// each: a fixed number of connections (Closed) or a fixed rate (Open). It
// checks answers to the last byte, so that a proxy which loses or invents one
// is seen to. It refuses any address but a loopback literal, and is bounded in
// time, requests and connections.
//
// Open is free of coordinated omission: each request is due at its place in
// the schedule, whatever became of those before, and latency counts from then.
//
// Concurrency: one goroutine a connection or request, all of them ended when
// Closed or Open return.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Bounds of a single run.
const (
	connsMost    = 4_000
	requestsMost = 5_000_000
	durationMost = 10 * time.Minute
)

// Kind is what a request asks for.
type Kind int

// The kinds.
const (
	JSON   Kind = iota
	Stream      // of server-sent events
)

// Outcome is what became of a request.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"      // 200 with the whole answer
	Refused Outcome = "refused" // any other status
	Told    Outcome = "told"    // 200 with an error in it that a client can see
	Broken  Outcome = "broken"  // the connection broke, which a client sees
	Late    Outcome = "late"    // Options.Timeout passed
	Hidden  Outcome = "hidden"  // a 200 with a clean end that lacks content and says nothing of it
)

// Sample is one request.
type Sample struct {
	Kind       Kind
	Due        time.Time     // when it should have begun
	Took       time.Duration // from Due to the end
	First      time.Duration // from Due to the first content; 0 without any
	Status     int           // 0 without an answer
	Chunks     int           // content chunks of a stream
	Outcome    Outcome
	RetryAfter bool // the answer said when to come back
}

// Result is a run.
type Result struct {
	Samples []Sample
	Delays  []time.Duration // of every chunk, from write upstream to read here
	Elapsed time.Duration
}

// Options say where to and what.
type Options struct {
	Addr    string        // host:port, a loopback address
	Key     string        // API key
	Chunks  int           // content chunks of a whole stream
	Timeout time.Duration // of one request
	Payload int           // bytes of an image in each request; 0 for none
	Delays  bool          // keep Result.Delays
}

// Client makes requests; it keeps connections between runs until Close.
type Client struct {
	opt      Options
	requests [2][]byte // by Kind

	mu   sync.Mutex
	idle []*conn
}

// New checks the options.
func New(o Options) (*Client, error) {
	at, err := netip.ParseAddrPort(o.Addr)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("load goes to a loopback address only, not to %q", o.Addr)
	}
	if o.Timeout <= 0 {
		return nil, errors.New("load needs a timeout")
	}
	c := &Client{opt: o}
	for kind := range c.requests {
		c.requests[kind] = request(o, Kind(kind))
	}
	return c, nil
}

// Close drops the idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.idle {
		k.c.Close()
	}
	c.idle = nil
}

// Closed is a closed loop.
type Closed struct {
	Kind     Kind
	Conns    int
	Duration time.Duration // no request begins later
	Each     int           // requests of each connection at most; 0 for no limit
	Ramp     time.Duration // over which the connections begin
}

// Closed keeps l.Conns requests under way.
func (c *Client) Closed(ctx context.Context, l Closed) (Result, error) {
	if l.Conns < 1 || l.Conns > connsMost || l.Duration > durationMost {
		return Result{}, fmt.Errorf("%d connections for %v is out of bounds", l.Conns, l.Duration)
	}
	start := time.Now()
	end := start.Add(l.Duration)
	parts := make([]Result, l.Conns)
	var wg sync.WaitGroup
	for i := range l.Conns {
		wg.Go(func() {
			pause(ctx, l.Ramp*time.Duration(i)/time.Duration(l.Conns))
			each := requestsMost / l.Conns
			if l.Each > 0 {
				each = min(each, l.Each)
			}
			for now := time.Now(); each > 0 && now.Before(end) && ctx.Err() == nil; now = time.Now() {
				c.do(ctx, now, l.Kind, &parts[i])
				each--
			}
		})
	}
	wg.Wait()
	return merge(parts, start), ctx.Err()
}

// Open is an open loop.
type Open struct {
	Rate     int // requests a second
	Duration time.Duration
	Mixed    bool // every second request is a stream
}

// Open makes requests at a fixed rate.
func (c *Client) Open(ctx context.Context, l Open) (Result, error) {
	n := int(l.Duration.Seconds() * float64(l.Rate))
	if n < 1 || n > requestsMost || l.Duration > durationMost {
		return Result{}, fmt.Errorf("%d requests in %v is out of bounds", n, l.Duration)
	}
	// A thread of its own: the runtime's timers are a millisecond coarse when
	// nothing else runs, which is more than what is measured.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	parts := make([]Result, n)
	var wg sync.WaitGroup
	for i := range n {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(l.Rate))
		for wait := time.Until(due); wait > 0 && ctx.Err() == nil; wait = time.Until(due) {
			nap := syscall.NsecToTimespec(int64(min(wait, 50*time.Millisecond)))
			_ = syscall.Nanosleep(&nap, nil)
		}
		if ctx.Err() != nil {
			break
		}
		kind := JSON
		if l.Mixed {
			kind = Kind(i % 2)
		}
		wg.Go(func() { c.do(ctx, due, kind, &parts[i]) })
	}
	wg.Wait()
	return merge(parts, start), ctx.Err()
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func merge(parts []Result, start time.Time) Result {
	all := Result{Elapsed: time.Since(start)}
	for _, p := range parts {
		all.Samples = append(all.Samples, p.Samples...)
		all.Delays = append(all.Delays, p.Delays...)
	}
	return all
}

// Chunks is the number of content chunks received.
func (r Result) Chunks() (n int) {
	for _, s := range r.Samples {
		n += s.Chunks
	}
	return n
}

// Took is every latency.
func (r Result) Took() []time.Duration {
	d := make([]time.Duration, len(r.Samples))
	for i, s := range r.Samples {
		d[i] = s.Took
	}
	return d
}

// First is every time to first content.
func (r Result) First() []time.Duration {
	var d []time.Duration
	for _, s := range r.Samples {
		if s.First > 0 {
			d = append(d, s.First)
		}
	}
	return d
}
