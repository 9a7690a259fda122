// Command speed compares what this router costs with nginx as a plain proxy
// and with net/http/httputil's ReverseProxy, in front of the same fake
// upstream and in turns within one run, so that noise hits all alike. It
// measures whole processes from outside: CPU time and memory from /proc,
// latency at the client. What the columns mean is in bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/report"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// plan is how long each part takes.
type plan struct {
	Rounds int
	Warm   time.Duration
	JSON   time.Duration // a turn of the closed loop
	Open   time.Duration // a turn of the open loop
	SSE    time.Duration // a turn of streams
	Held   int           // chunks, 700 ms apart, of each of the 1,000 streams
	Rest   time.Duration // from the end of the streams to the figure "after"
	Large  int           // large requests of each connection
}

var (
	full  = plan{Rounds: 3, Warm: time.Second, JSON: 4 * time.Second, Open: 8 * time.Second, SSE: 8 * time.Second, Held: 14, Rest: 60 * time.Second, Large: 8}
	quick = plan{Rounds: 1, Warm: 300 * time.Millisecond, JSON: 2 * time.Second, Open: 2 * time.Second, SSE: 3 * time.Second, Held: 6, Rest: time.Second, Large: 2}
)

// parts are the names that -only takes.
var parts = []string{"json", "open", "sse", "refusal", "memory", "large"}

func main() {
	contend.Dispatch()
	short := flag.Bool("quick", false, "short turns: under a minute in total, coarser figures")
	rounds := flag.Int("rounds", 0, "rounds of the timed parts (default 3, with -quick 1)")
	only := flag.String("only", "", "parts to run, by comma: "+strings.Join(parts, ","))
	path := flag.String("json", "", "write all figures to this `file`")
	flag.Parse()
	p := full
	if *short {
		p = quick
	}
	if *rounds > 0 {
		p.Rounds = *rounds
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(contend.WithGo(ctx), p, *only, *path); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, only, path string) error {
	dir, err := os.MkdirTemp("", "hourthree-speed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := contend.Build(dir) // before Pin: a build wants every core
	if err != nil {
		return err
	}
	b := &bench{plan: p, dir: dir, bin: bin, out: results{Machine: report.ThisMachine(), Plan: p}}
	if b.split, err = contend.Pin(); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
	}
	runtime.GOMAXPROCS(3) // on one core: the open loop's pacer blocks a thread
	if b.up, err = contend.StartUpstream(contend.Spec{Core: b.split.Bench, Go: "1"}, upstream.Shape{Chunks: 1}); err != nil {
		return err
	}
	defer b.up.Stop()
	fmt.Println(b.out.Machine)
	started := time.Now()
	if err := b.all(ctx, func(part string) bool {
		return only == "" || strings.Contains(","+only+",", ","+part+",")
	}); err != nil {
		return err
	}
	b.out.print(os.Stdout)
	fmt.Printf("\n%.0f s.\n", time.Since(started).Seconds())
	if path == "" {
		return nil
	}
	return report.WriteJSON(path, b.out)
}

// bench is a run: its processes and its figures.
type bench struct {
	plan  plan
	dir   string
	bin   string
	split contend.Split
	up    *contend.Upstream
	out   results
}

// The contenders, in the order of the tables.
const (
	direct = "direct" // no proxy, the floor of latencies
	nginx  = "nginx"
	revp   = "ReverseProxy"
	router = "hourthree"
)

var proxies = []string{nginx, revp, router}

// start starts one contender.
func (b *bench) start(name string) (*contend.Process, error) {
	s := contend.Spec{Core: b.split.Proxy, Go: "1"}
	switch name {
	case nginx:
		return contend.Nginx(s, b.dir, nil, b.up.Addr)
	case revp:
		return contend.ReverseProxy(s, b.up.Addr)
	}
	return contend.Router(s, b.bin, b.dir, contend.Ranked, b.up.Addr)
}

// startAll starts every contender there is; the caller stops them.
func (b *bench) startAll() (map[string]*contend.Process, error) {
	all := map[string]*contend.Process{}
	for _, name := range proxies {
		p, err := b.start(name)
		if errors.Is(err, contend.ErrNoNginx) {
			fmt.Fprintln(os.Stderr, "speed:", err)
			continue
		}
		if err != nil {
			stopAll(all)
			return nil, err
		}
		all[name] = p
	}
	return all, nil
}

func stopAll(all map[string]*contend.Process) {
	for _, p := range all {
		p.Stop()
	}
}
