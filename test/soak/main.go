// Command soak runs the built router for a long time under traffic of every
// kind that has broken others, and says whether it has kept its bounds and
// given everything back. It starts the router and fake upstreams as processes
// of their own, on loopback, and needs nothing but Go and Linux' /proc.
//
// The first tenth of the run is a warm-up with everything in it. Behind it, and
// again at the end, traffic pauses and the router at rest is measured: what it
// holds then may not grow. In between, phases follow each other in an order
// that the seed decides: calm, ten times the load, 10 MiB bodies, upstreams
// that fail in changing ways, 1,000 mute streams, and total outages with
// callers that repeat.
//
// It exits 0 when every line of the verdict passed, and 1 otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// options are what the command line decides.
type options struct {
	duration time.Duration
	seed     uint64
	json     string
	log      string
}

func main() {
	dispatch()
	runtime.LockOSThread() // children end with the thread that started them
	var o options
	flag.DurationVar(&o.duration, "duration", 20*time.Minute, "how long traffic runs")
	brief := flag.Bool("short", false, "run for 60 s")
	flag.Uint64Var(&o.seed, "seed", 1, "decides phases, faults and clients")
	flag.StringVar(&o.json, "json", "", "write everything to this `file`")
	flag.StringVar(&o.log, "log", "", "write the router's log to this `file`")
	flag.Parse()
	if *brief {
		o.duration = time.Minute
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := soak(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

// How long the run's parts take.
const (
	longestPhase  = 20 * time.Second
	shortestPhase = 6 * time.Second
	settle        = 45 * time.Second // for everything to be given back, at most
	idleFor       = 4 * time.Second  // for connections that idle to end
)

// idle is the router at rest.
type idle struct{ goroutines, heap int64 }

// findings are what the verdict is made of.
type findings struct {
	watch   *watch
	traffic *traffic
	before  idle // behind the warm-up
	after   idle
	taken   string // what was not given back
	stopped error  // how the router ended, nil for in order
	alarms  []string
	lines   int // of log
}

func soak(ctx context.Context, o options) (bool, error) {
	dir, err := os.MkdirTemp("", "hourthree-soak")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	bin, err := build(dir)
	if err != nil {
		return false, err
	}
	up, err := startUpstreams()
	if err != nil {
		return false, err
	}
	defer up.stop()
	log := io.Discard
	if o.log != "" {
		file, err := os.Create(o.log)
		if err != nil {
			return false, err
		}
		defer file.Close()
		log = file
	}
	r, err := startRouter(bin, dir, up.addrs, log)
	if err != nil {
		return false, err
	}
	defer r.kill()
	f, err := play(ctx, o, r, up)
	if err != nil {
		return false, fmt.Errorf("%w\n%s", err, r.log.last())
	}
	f.stopped = r.stop()
	f.alarms, f.lines = r.log.alarms(), r.log.lines
	checks := f.checks()
	passed := f.print(os.Stdout, checks)
	if o.json != "" {
		err = writeJSON(o.json, ran{o.seed, o.duration.String(), f.watch.samples, f.traffic.results, f.traffic.losses, f.alarms, checks})
	}
	return passed, err
}

// play runs the warm-up, the phases and the rests.
func play(ctx context.Context, o options, r *router, up *upstreams) (*findings, error) {
	f := &findings{watch: &watch{router: r, start: time.Now()}}
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		f.watch.run(watching)
	}()
	defer func() {
		stop()
		<-watched
	}()
	s := newSchedule(o.seed)
	f.traffic = newTraffic(r, up)
	kinds := len(phases())
	warm := o.duration / 10 / time.Duration(kinds)
	if err := f.stretch(ctx, s, warm*time.Duration(kinds), warm); err != nil {
		return nil, err
	}
	var err error
	if f.before, _, err = f.pause(ctx); err != nil {
		return nil, err
	}
	length := min(longestPhase, max(shortestPhase, o.duration/60))
	if err := f.stretch(ctx, s, o.duration-o.duration/10, length); err != nil {
		return nil, err
	}
	f.after, f.taken, err = f.pause(ctx)
	return f, err
}

// stretch runs phases for a time, then sends every client away.
func (f *findings) stretch(ctx context.Context, s *schedule, whole, each time.Duration) error {
	clients, leave := context.WithCancel(ctx)
	f.traffic.ctx = clients
	defer func() {
		leave()
		f.traffic.crowd.wg.Wait()
		f.traffic.client.CloseIdleConnections()
	}()
	for end := time.Now().Add(whole); time.Until(end) > each/2; {
		p := s.next()
		f.watch.enter(p.name)
		err := s.run(ctx, p, each, f.traffic)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if !f.traffic.router.running() {
			return fmt.Errorf("the router ended in the middle: %w", f.traffic.router.err)
		}
	}
	return nil
}

// pause waits until everything is given back, or for as long as that may take,
// and measures the router at rest.
func (f *findings) pause(ctx context.Context) (i idle, taken string, err error) {
	f.watch.enter("rest")
	r := f.traffic.router
	for end := time.Now().Add(settle); ; {
		s, err := state(r)
		if err != nil {
			return i, "", err
		}
		if taken = s.taken(); taken == "" || time.Now().After(end) {
			break
		}
		if !rest(ctx, 200*time.Millisecond) {
			return i, "", errors.New("interrupted")
		}
	}
	if !rest(ctx, idleFor) {
		return i, "", errors.New("interrupted")
	}
	i.goroutines, i.heap, err = rested(r)
	return i, taken, err
}
