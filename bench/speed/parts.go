package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/stat"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

const (
	closedConns = 32
	openRate    = 1000 // requests a second
	sseStreams  = 200
	sseChunks   = 50
	sseGap      = 20 * time.Millisecond
	heldStreams = 1000
	heldGap     = 700 * time.Millisecond
	heldRamp    = 1500 * time.Millisecond
	largeConns  = 8
	largeBytes  = 10 << 20
	patience    = 30 * time.Second
)

// all runs the parts that are wanted: the timed ones in turns against
// contenders that stay up, those about memory each against a fresh process.
func (b *bench) all(ctx context.Context, want func(string) bool) error {
	up, err := b.startAll()
	if err != nil {
		return err
	}
	defer stopAll(up)
	timed := []struct {
		name  string
		floor bool // measured without a proxy too
		turn  func(ctx context.Context, addr string, p *contend.Process, c *contender) error
	}{{"json", false, b.jsonTurn}, {"open", true, b.openTurn}, {"sse", true, b.sseTurn}, {"refusal", false, b.refusalTurn}}
	for _, t := range timed {
		for round := 0; want(t.name) && round < b.plan.Rounds; round++ {
			fmt.Fprintf(os.Stderr, "%s, round %d of %d\n", t.name, round+1, b.plan.Rounds)
			for _, name := range turns(round, t.floor) {
				addr := b.up.Addr
				if p := up[name]; p != nil {
					addr = p.Addr
				} else if name != direct {
					continue
				}
				if err := t.turn(ctx, addr, up[name], b.out.of(name)); err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, name, err)
				}
			}
		}
	}
	stopAll(up)
	clear(up)
	if want("memory") {
		if err := b.memory(ctx); err != nil {
			return err
		}
	}
	if want("large") {
		return b.large(ctx)
	}
	return nil
}

// turns is the order of a round: another contender begins each time.
func turns(round int, floor bool) []string {
	names := slices.Clone(proxies)
	if floor {
		names = append(names, direct)
	}
	k := round % len(names)
	return append(names[k:], names[:k]...)
}

func (b *bench) shape(s upstream.Shape) error { return b.up.Set(upstream.Setting{Shape: &s}) }

func client(addr string, o load.Options) (*load.Client, error) {
	o.Addr, o.Key, o.Timeout = addr, contend.Key, patience
	return load.New(o)
}

// jsonTurn is the closed loop: what a request costs at saturation.
func (b *bench) jsonTurn(ctx context.Context, addr string, p *contend.Process, c *contender) error {
	if err := b.shape(upstream.Shape{Chunks: 1}); err != nil {
		return err
	}
	l, err := client(addr, load.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.Closed(ctx, load.Closed{Conns: closedConns, Duration: b.plan.Warm}); err != nil {
		return err
	}
	before := p.CPU()
	r, err := l.Closed(ctx, load.Closed{Conns: closedConns, Duration: b.plan.JSON})
	if err != nil {
		return err
	}
	used := p.CPU() - before
	c.fail("json", r)
	c.add("json_cpu_ms_per_1k", perThousand(used, len(r.Samples)))
	c.add("json_rps", float64(len(r.Samples))/r.Elapsed.Seconds())
	return nil
}

// openTurn is the open loop: what latency a proxy adds below saturation.
func (b *bench) openTurn(ctx context.Context, addr string, p *contend.Process, c *contender) error {
	if err := b.shape(upstream.Shape{Chunks: 1}); err != nil {
		return err
	}
	l, err := client(addr, load.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.Open(ctx, load.Open{Rate: openRate, Duration: b.plan.Warm}); err != nil {
		return err
	}
	before := p.CPU()
	r, err := l.Open(ctx, load.Open{Rate: openRate, Duration: b.plan.Open})
	if err != nil {
		return err
	}
	c.fail("open", r)
	if p != nil {
		c.add("open_cpu_ms_per_1k", perThousand(p.CPU()-before, len(r.Samples)))
	}
	q := stat.Quantiles(r.Took(), 0.5, 0.99)
	c.add("open_p50_us", micros(q[0]))
	c.add("open_p99_us", micros(q[1]))
	return nil
}

// sseTurn is 200 streams of 50 chunks a second each.
func (b *bench) sseTurn(ctx context.Context, addr string, p *contend.Process, c *contender) error {
	if err := b.shape(upstream.Shape{Chunks: sseChunks, Gap: sseGap}); err != nil {
		return err
	}
	l, err := client(addr, load.Options{Chunks: sseChunks, Delays: true})
	if err != nil {
		return err
	}
	defer l.Close()
	before := p.CPU()
	r, err := l.Closed(ctx, load.Closed{Kind: load.Stream, Conns: sseStreams, Duration: b.plan.SSE, Ramp: time.Second})
	if err != nil {
		return err
	}
	c.fail("sse", r)
	if p != nil {
		c.add("sse_cpu_us_per_chunk", micros(p.CPU()-before)/float64(max(r.Chunks(), 1)))
	}
	c.add("sse_chunks_per_s", float64(r.Chunks())/r.Elapsed.Seconds())
	q := stat.Quantiles(r.Delays, 0.5, 0.99)
	c.add("sse_delay_p50_us", micros(q[0]))
	c.add("sse_delay_p99_us", micros(q[1]))
	c.add("sse_first_p50_us", micros(stat.Quantile(r.First(), 0.5)))
	return nil
}

// refusalTurn is the closed loop of a workload beyond its limit: what the router
// spends on a request that it refuses before its body is read. Nobody else has
// such a workload.
func (b *bench) refusalTurn(ctx context.Context, addr string, p *contend.Process, c *contender) error {
	if c != b.out.of(router) {
		return nil
	}
	l, err := load.New(load.Options{Addr: addr, Key: contend.OverKey, Timeout: patience})
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.Closed(ctx, load.Closed{Conns: closedConns, Duration: b.plan.Warm}); err != nil { // uses up the burst
		return err
	}
	before := p.CPU()
	r, err := l.Closed(ctx, load.Closed{Conns: closedConns, Duration: b.plan.JSON})
	if err != nil {
		return err
	}
	used, refused := p.CPU()-before, 0
	for _, s := range r.Samples {
		if s.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < len(r.Samples)*99/100 {
		c.Failed["refusal: not refused"] = len(r.Samples) - refused
	}
	c.add("refusal_cpu_ms_per_1k", perThousand(used, refused))
	return nil
}

// memory holds 1,000 streams open at each contender, fresh, and looks again
// when they have been gone for a while.
func (b *bench) memory(ctx context.Context) error {
	if err := b.shape(upstream.Shape{Chunks: b.plan.Held, Gap: heldGap}); err != nil {
		return err
	}
	up, err := b.startAll()
	if err != nil {
		return err
	}
	defer stopAll(up)
	for _, name := range proxies {
		if p := up[name]; p != nil {
			fmt.Fprintf(os.Stderr, "memory, %s\n", name)
			if err := b.hold(ctx, p, b.out.of(name)); err != nil {
				return fmt.Errorf("memory, %s: %w", name, err)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "memory, %v of rest\n", b.plan.Rest)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.plan.Rest):
	}
	for name, p := range up {
		b.out.of(name).add("rss_after_mb", mb(p.RSS()))
	}
	return nil
}

func (b *bench) hold(ctx context.Context, p *contend.Process, c *contender) error {
	l, err := client(p.Addr, load.Options{Chunks: b.plan.Held})
	if err != nil {
		return err
	}
	defer l.Close()
	idle := p.RSS()
	held := make(chan int64, 1)
	go func() { held <- heldMemory(p, time.Now().Add(heldRamp+heldGap), time.Duration(b.plan.Held-4)*heldGap) }()
	r, err := l.Closed(ctx, load.Closed{Kind: load.Stream, Conns: heldStreams, Duration: patience, Each: 1, Ramp: heldRamp})
	most := <-held
	if err != nil {
		return err
	}
	c.fail("memory", r)
	c.add("rss_idle_mb", mb(idle))
	c.add("rss_held_mb", mb(most))
	c.add("kb_per_stream", float64(most-idle)/1024/heldStreams)
	return nil
}

// heldMemory is the highest RSS seen from from on, for as long as d, when all
// streams are open.
func heldMemory(p *contend.Process, from time.Time, d time.Duration) (most int64) {
	time.Sleep(time.Until(from))
	for end := from.Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		most = max(most, p.RSS())
	}
	return most
}

// large sends 8 bodies of 10 MB at a time through each contender, fresh.
func (b *bench) large(ctx context.Context) error {
	if err := b.shape(upstream.Shape{Chunks: 1}); err != nil {
		return err
	}
	up, err := b.startAll()
	if err != nil {
		return err
	}
	defer stopAll(up)
	for _, name := range turns(0, true) {
		addr, p := b.up.Addr, up[name]
		if p != nil {
			addr = p.Addr
		} else if name != direct {
			continue
		}
		fmt.Fprintf(os.Stderr, "large bodies, %s\n", name)
		if err := b.largeTurn(ctx, addr, p, b.out.of(name)); err != nil {
			return fmt.Errorf("large bodies, %s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) largeTurn(ctx context.Context, addr string, p *contend.Process, c *contender) error {
	l, err := client(addr, load.Options{Payload: largeBytes})
	if err != nil {
		return err
	}
	defer l.Close()
	idle, before := p.RSS(), p.CPU()
	r, err := l.Closed(ctx, load.Closed{Conns: largeConns, Each: b.plan.Large, Duration: patience})
	if err != nil {
		return err
	}
	c.fail("large", r)
	c.add("large_p50_ms", micros(stat.Quantile(r.Took(), 0.5))/1000)
	if p != nil {
		c.add("large_cpu_ms", perThousand(p.CPU()-before, len(r.Samples))/1000)
		c.add("large_idle_mb", mb(idle))
		c.add("large_peak_mb", mb(p.Peak()))
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func mb(n int64) float64 { return float64(n) / (1 << 20) }

func perThousand(d time.Duration, n int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(max(n, 1)) * 1000
}
