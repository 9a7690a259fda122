// Command speed compares this router, nginx as a plain proxy and
// httputil.ReverseProxy in one interleaved run: processor time for a JSON
// request and for a stream's chunk, added latency, memory of open streams and
// of large bodies. Everything runs on loopback; quote the ratios.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// figures are one contender's, one value a round.
type figures struct {
	JSON   []float64 `json:"cpu_ms_per_1000_json"`
	Rate   []float64 `json:"json_requests_per_second"`
	P50    []float64 `json:"p50_us_at_open_rate"`
	P99    []float64 `json:"p99_us_at_open_rate"`
	Chunk  []float64 `json:"cpu_us_per_chunk"`
	First  []float64 `json:"stream_first_content_us"`
	Idle   float64   `json:"idle_rss_mb"`
	Stream float64   `json:"kb_per_open_stream"`
	Large  float64   `json:"peak_rss_mb_8_bodies_of_10_mb"`
	LargeC float64   `json:"cpu_ms_per_10_mb_body"`
}

type bench struct {
	rounds, conns, openRate int
	span                    time.Duration
	streams                 int
	names                   []string
	by                      map[string]*figures
	dir, bin                string
}

func main() {
	contend.ServeReverseProxy()
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	quick := flag.Bool("quick", false, "two short rounds")
	out := flag.String("json", "", "write all figures to this file")
	flag.Parse()
	b := &bench{rounds: *rounds, conns: 32, openRate: 1000, span: 4 * time.Second, streams: 200, names: []string{"nginx", "ReverseProxy", "hourthree"}, by: map[string]*figures{}}
	if *quick {
		b.rounds, b.span = 2, 2*time.Second
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, out string) (err error) {
	if b.dir, err = os.MkdirTemp("", "speed"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.bin, err = contend.Build(b.dir); err != nil {
		return err
	}
	fast, err := upstream.Start(upstream.Options{Chunks: 50, Gap: 20 * time.Millisecond, Pad: 60})
	if err != nil {
		return err
	}
	defer fast.Close()
	direct, err := load.New(fast.URL, contend.Key, 50, time.Minute)
	if err != nil {
		return err
	}
	b.by["direct"] = &figures{}
	for r := range b.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", r+1, b.rounds)
		b.latency(ctx, direct, b.by["direct"])
		for _, name := range b.names {
			if err := b.round(ctx, name, fast.URL, r); err != nil {
				fmt.Fprintln(os.Stderr, name+":", err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	b.report()
	if out == "" {
		return nil
	}
	data, err := json.MarshalIndent(b.by, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o644)
}

func (b *bench) start(name, upstreamURL string) (*contend.Proxy, error) {
	o := contend.Options{Dir: b.dir, Upstreams: []string{upstreamURL}, CPU: "1", Go: "1"}
	switch name {
	case "nginx":
		return contend.Nginx(o)
	case "ReverseProxy":
		return contend.ReverseProxy(o)
	}
	return contend.Router(b.bin, o)
}

// round measures one contender once. Memory figures come from the first.
func (b *bench) round(ctx context.Context, name, up string, n int) error {
	p, err := b.start(name, up)
	if err != nil {
		return err
	}
	defer p.Stop()
	t, err := load.New(p.URL, contend.Key, 50, time.Minute)
	if err != nil {
		return err
	}
	defer t.Close()
	f := b.by[name]
	if f == nil {
		f = &figures{}
		b.by[name] = f
	}
	if n == 0 {
		time.Sleep(300 * time.Millisecond)
		f.Idle = mb(p.RSS())
	}
	body := load.Body(false, 713)
	t.Closed(ctx, b.conns, b.span/4, body) // warm
	cpu := p.CPU()
	res := t.Closed(ctx, b.conns, b.span, body)
	if ok := count(res); ok > 0 {
		f.JSON = append(f.JSON, float64((p.CPU()-cpu).Microseconds())/float64(ok))
		f.Rate = append(f.Rate, float64(ok)/b.span.Seconds())
	}
	b.latency(ctx, t, f)
	b.stream(ctx, p, t, f)
	if n == 0 {
		b.large(ctx, p, t, f)
		return b.held(ctx, name, f)
	}
	return nil
}

// latency is measured in an open loop: requests are due at fixed times.
func (b *bench) latency(ctx context.Context, t *load.Target, f *figures) {
	body := load.Body(false, 713)
	res := t.Open(ctx, b.openRate, b.span, func(int) ([]byte, bool) { return body, false })
	var took []time.Duration
	for _, r := range res {
		if r.OK {
			took = append(took, r.Took)
		}
	}
	f.P50 = append(f.P50, us(load.Quantile(took, 0.5)))
	f.P99 = append(f.P99, us(load.Quantile(took, 0.99)))
}

// stream runs 200 streams of 50 chunks, 20 ms apart.
func (b *bench) stream(ctx context.Context, p *contend.Proxy, t *load.Target, f *figures) {
	body := load.Body(true, 713)
	var mu sync.Mutex
	var first []time.Duration
	chunks := 0
	cpu := p.CPU()
	var wg sync.WaitGroup
	for i := range b.streams {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			for range 2 {
				r := t.Do(ctx, time.Now(), body, true)
				if !r.OK {
					continue
				}
				mu.Lock()
				chunks += t.Chunks
				first = append(first, r.First)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if chunks > 0 {
		f.Chunk = append(f.Chunk, float64((p.CPU()-cpu).Microseconds())/float64(chunks))
		f.First = append(f.First, us(load.Quantile(first, 0.5)))
	}
}

// large sends 8 bodies of 10 MB at once, three times.
func (b *bench) large(ctx context.Context, p *contend.Proxy, t *load.Target, f *figures) {
	body := load.Body(false, 10<<20)
	done := make(chan struct{})
	var most int64
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				most = max(most, p.RSS())
			}
		}
	})
	cpu, n := p.CPU(), 0
	for range 3 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if r := t.Do(ctx, time.Now(), body, false); r.OK {
					mu.Lock()
					n++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	close(done)
	watch.Wait()
	f.Large = mb(most)
	if n > 0 {
		f.LargeC = float64((p.CPU() - cpu).Milliseconds()) / float64(n)
	}
}

// held opens 1,000 slow streams on a fresh process and divides what they add.
func (b *bench) held(ctx context.Context, name string, f *figures) error {
	const open = 1000
	slow, err := upstream.Start(upstream.Options{Chunks: 8, Gap: 700 * time.Millisecond, Pad: 60})
	if err != nil {
		return err
	}
	defer slow.Close()
	p, err := b.start(name, slow.URL)
	if err != nil {
		return err
	}
	defer p.Stop()
	t, err := load.New(p.URL, contend.Key, 8, time.Minute)
	if err != nil {
		return err
	}
	defer t.Close()
	time.Sleep(300 * time.Millisecond)
	before := p.RSS()
	body := load.Body(true, 713)
	var wg sync.WaitGroup
	for i := range open {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			t.Do(ctx, time.Now(), body, true)
		})
	}
	time.Sleep(3500 * time.Millisecond)
	f.Stream = float64(p.RSS()-before) / 1024 / open
	wg.Wait()
	return nil
}

func (b *bench) report() {
	fmt.Printf("%-34s %9s %13s %10s\n", "median of rounds", "nginx", "ReverseProxy", "hourthree")
	line := func(what string, of func(*figures) float64) {
		fmt.Printf("%-34s", what)
		for i, name := range b.names {
			width := []int{10, 14, 11}[i]
			if f := b.by[name]; f != nil {
				fmt.Printf("%*.1f", width, of(f))
			} else {
				fmt.Printf("%*s", width, "-")
			}
		}
		fmt.Println()
	}
	direct := load.Median(b.by["direct"].P50)
	line("CPU ms / 1,000 JSON requests", func(f *figures) float64 { return load.Median(f.JSON) })
	line("JSON requests/s, one core", func(f *figures) float64 { return load.Median(f.Rate) })
	line(fmt.Sprintf("added p50 us at %d/s", b.openRate), func(f *figures) float64 { return load.Median(f.P50) - direct })
	line(fmt.Sprintf("p99 us at %d/s", b.openRate), func(f *figures) float64 { return load.Median(f.P99) })
	line("CPU us / stream chunk", func(f *figures) float64 { return load.Median(f.Chunk) })
	line("first content us, 200 streams", func(f *figures) float64 { return load.Median(f.First) })
	line("idle RSS MB", func(f *figures) float64 { return f.Idle })
	line("KB / open stream, 1,000 streams", func(f *figures) float64 { return f.Stream })
	line("peak RSS MB, 8 bodies of 10 MB", func(f *figures) float64 { return f.Large })
	line("CPU ms / 10 MB body", func(f *figures) float64 { return f.LargeC })
	if n, h := b.by["nginx"], b.by["hourthree"]; n != nil && h != nil {
		fmt.Printf("\nhourthree / nginx: JSON %.2f, chunk %.2f; / ReverseProxy: JSON %.2f, chunk %.2f\n",
			ratio(h.JSON, n.JSON), ratio(h.Chunk, n.Chunk), ratio(h.JSON, b.by["ReverseProxy"].JSON), ratio(h.Chunk, b.by["ReverseProxy"].Chunk))
	}
}

// ratio is the median of the rounds' own ratios: both sides of each ran under
// the same neighbours.
func ratio(a, b []float64) float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		r = append(r, a[i]/b[i])
	}
	return load.Median(r)
}

func count(res []load.Result) (n int) {
	for _, r := range res {
		if r.OK {
			n++
		}
	}
	return n
}

func mb(n int64) float64         { return float64(n) / (1 << 20) }
func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
