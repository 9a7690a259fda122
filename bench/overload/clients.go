package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	patience     = time.Second // of one attempt
	retriesMost  = 2
	firstBackoff = 500 * time.Millisecond
	retryMost    = time.Minute // a longer Retry-After is not waited for
)

// workload is a caller with a key of its own.
type workload int

const (
	critical workload = iota
	interactive
	noisy
	workloads
)

var keys = [workloads]string{"bench-critical", "bench-interactive", "bench-noisy"}

// Shares of the capacity that the small workloads ask for at any load; the
// noisy one asks for the rest and everything beyond.
const (
	criticalShare    = 0.1
	interactiveShare = 0.3
)

// offer is what one workload asks for a second when the load is times the
// capacity.
func offer(w workload, capacity, times float64) float64 {
	switch w {
	case critical:
		return criticalShare * capacity
	case interactive:
		return interactiveShare * capacity
	}
	return capacity * (times - criticalShare - interactiveShare)
}

// request is one logical request, with all its attempts.
type request struct {
	of       workload
	due, end time.Time     // end is zero when it was not over
	late     time.Duration // from due until it began: the generator's fault
	good     bool          // answered whole by an attempt within its time-out
}

// attemptEnd is one attempt that is over.
type attemptEnd struct {
	at    time.Time
	reply reply
}

// clients are an open loop of callers.
type clients struct {
	wire     *wire
	capacity float64 // calls a second
	times    float64
	behind   time.Duration // how late the first request that never began was at the end
	seed     uint64        // the same seed makes the same requests at the same times

	mu       sync.Mutex
	requests []request
	attempts []attemptEnd
}

// run lets requests arrive until end, as a Poisson process that waits for
// nobody, and abandons those that are under way then.
func (c *clients) run(ctx context.Context, end time.Time) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	var wg sync.WaitGroup
	rate, dice := c.capacity*c.times, rand.New(rand.NewPCG(c.seed, 0))
	due := time.Now()
	for ctx.Err() == nil {
		due = due.Add(time.Duration(dice.ExpFloat64() / rate * float64(time.Second)))
		if !pause(ctx, time.Until(due)) {
			break
		}
		of, stream := c.pick(dice.Float64()*rate), dice.IntN(2) == 0
		at := due
		wg.Go(func() { c.request(ctx, of, stream, at) })
	}
	c.behind = time.Since(due)
	wg.Wait()
}

// pick is the workload at x of the offered rate.
func (c *clients) pick(x float64) workload {
	for w := critical; w < noisy; w++ {
		if x -= offer(w, c.capacity, c.times); x < 0 {
			return w
		}
	}
	return noisy
}

// request makes one request, its attempts one after the other.
func (c *clients) request(ctx context.Context, of workload, stream bool, due time.Time) {
	r := request{of: of, due: due, late: time.Since(due)}
	for try := 0; ; try++ {
		once, cancel := context.WithTimeout(ctx, patience)
		got := c.wire.attempt(once, keys[of], stream, try)
		cancel()
		if ctx.Err() != nil {
			break // the turn is over, not the request
		}
		now := time.Now()
		c.note(attemptEnd{now, got})
		wait, again := next(got, stream, try)
		if !again {
			r.end, r.good = now, got.whole
			break
		}
		if !pause(ctx, wait) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
}

func (c *clients) note(a attemptEnd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, a)
}

// next says whether an SDK tries again after r, and how long it waits first.
func next(r reply, stream bool, try int) (wait time.Duration, again bool) {
	if r.whole || try >= retriesMost || r.should == "false" {
		return 0, false
	}
	switch s := r.status; {
	case s == http.StatusOK:
		// A broken stream is the application's business. A JSON answer that
		// breaks or is late is a connection error.
		if stream {
			return 0, false
		}
	case s == 0, s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooManyRequests, s >= 500:
	case r.should == "true":
	default:
		return 0, false
	}
	if r.retryAfter > 0 && r.retryAfter <= retryMost {
		return r.retryAfter, true
	}
	return time.Duration(float64(firstBackoff<<try) * (1 - 0.25*rand.Float64())), true
}

// pause reports whether ctx lasted longer than d.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
