package main

import (
	"context"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

const (
	rate     = 50 // requests a second, every second one a stream
	chunks   = 20
	gap      = 12 * time.Millisecond
	thinking = 50 * time.Millisecond // before a JSON answer
	slow     = 2 * time.Second       // a request over it counts as slow
)

// scenario is one case of the matrix.
type scenario struct {
	id    string
	name  string
	what  string
	fault upstream.Fault
	both  bool // the backup fails too
}

var cases = []scenario{
	{"hang", "hang", "the primary takes calls and never answers", upstream.Hang, false},
	{"slow", "slow first token", "the primary takes 20 s to the first token", upstream.Slow, false},
	{"503", "503 storm", "the primary answers 503", upstream.Storm, false},
	{"half", "50 % on primary", "the primary fails half its calls with a 500", upstream.Half, false},
	{"half-both", "50 % on both", "primary and backup each fail half their calls", upstream.Half, true},
	{"down-both", "both down", "primary and backup answer 503", upstream.Storm, true},
	{"429", "429, Retry-After 5", "the primary answers 429, Retry-After 5", upstream.Limited, false},
	{"reset-first", "reset before content", "the primary resets before the first content", upstream.ResetFirst, false},
	{"reset-mid", "reset in mid-answer", "the primary resets after five chunks", upstream.ResetMid, false},
	{"error-first", "error inside a 200", "200, then an error as first event or JSON body", upstream.ErrorFirst, false},
	{"error-mid", "error in mid-stream", "200, then an error after five chunks or as JSON", upstream.ErrorMid, false},
}

// The contenders.
const (
	none     = "none" // the client speaks to the primary
	nginx    = "nginx"
	router   = "hourthree"
	balanced = "hourthree-eq" // both targets of the same order
)

var contenders = []string{none, nginx, router, balanced}

// drill runs cases.
type drill struct {
	timing timing
	dir    string
	bin    string
	logs   string
}

// one runs a case with one contender, on upstreams of its own.
func (d *drill) one(ctx context.Context, c scenario, name string) (row, error) {
	shape := upstream.Shape{Chunks: chunks, Gap: gap, Delay: thinking, Slow: d.timing.Slow}
	primary, err := contend.StartUpstream(contend.Spec{}, shape)
	if err != nil {
		return row{}, err
	}
	defer primary.Stop()
	backup, err := contend.StartUpstream(contend.Spec{}, shape)
	if err != nil {
		return row{}, err
	}
	defer backup.Stop()
	addr, stop, err := d.start(c, name, primary.Addr, backup.Addr)
	if err != nil {
		return row{}, err
	}
	defer stop()
	l, err := load.New(load.Options{Addr: addr, Key: contend.Key, Chunks: chunks, Timeout: d.timing.Patience})
	if err != nil {
		return row{}, err
	}
	defer l.Close()

	ill := []*contend.Upstream{primary}
	if c.both {
		ill = append(ill, backup)
	}
	var when window
	switched := make(chan error, 1)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { switched <- d.faults(running, c.fault, ill, &when) }()
	r, err := l.Open(ctx, load.Open{Rate: rate, Duration: d.timing.Healthy + d.timing.Fault + d.timing.Recovered, Mixed: true})
	if err != nil {
		return row{}, err
	}
	if err := <-switched; err != nil {
		return row{}, err
	}
	first, err := primary.Books()
	if err != nil {
		return row{}, err
	}
	second, err := backup.Books()
	if err != nil {
		return row{}, err
	}
	when.end = when.healed.Add(d.timing.Recovered)
	return measure(c, name, when, r, first, second), nil
}

// window is when the fault was there.
type window struct{ struck, healed, end time.Time }

// faults switches the fault on and off again.
func (d *drill) faults(ctx context.Context, f upstream.Fault, ill []*contend.Upstream, w *window) error {
	for _, phase := range []struct {
		after time.Duration
		fault upstream.Fault
		at    *time.Time
	}{{d.timing.Healthy, f, &w.struck}, {d.timing.Fault, upstream.None, &w.healed}} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(phase.after):
		}
		for _, u := range ill {
			if err := u.Set(upstream.Setting{Fault: &phase.fault}); err != nil {
				return err
			}
		}
		*phase.at = time.Now()
	}
	return nil
}

// start starts the contender and says where clients reach it.
func (d *drill) start(c scenario, name, primary, backup string) (addr string, stop func(), err error) {
	if name == none {
		return primary, func() {}, nil
	}
	log, err := d.log(c, name)
	if err != nil {
		return "", nil, err
	}
	var p *contend.Process
	switch name {
	case nginx:
		p, err = contend.Nginx(contend.Spec{}, d.dir, &contend.Failover{ReadTimeout: d.timing.Gateway, FailTimeout: d.timing.Gateway}, primary, backup)
	case router:
		p, err = contend.Router(contend.Spec{Log: log}, d.bin, d.dir, contend.Ranked, primary, backup)
	default:
		p, err = contend.Router(contend.Spec{Log: log}, d.bin, d.dir, contend.Equal, primary, backup)
	}
	if err != nil {
		return "", nil, err
	}
	return p.Addr, func() {
		p.Stop()
		if log != nil {
			log.Close()
		}
	}, nil
}
