// Command overload measures goodput beyond capacity: logical requests answered
// whole and in time, a second, at 1, 2, 5 and 10 times what an upstream can
// serve. It compares this router, nginx with limits tuned to that capacity,
// nginx as a plain proxy and no proxy at all.
//
// The provider has a number of slots and holds one for 200 ms a call (between
// 150 and 250, evenly); half the calls are streams of 8 chunks over that time.
// Calls wait first come first served, 10 s of capacity at most, and are served
// even when their caller has left. Refusing one costs 2 ms of a slot.
//
// Clients are an open loop: requests arrive as a Poisson process, whatever
// became of those before. An attempt is given up after 1 s. As the official
// SDKs do, a client tries twice more after 408, 409, 429, 5xx, a broken
// connection or a time-out, 0.5 s * 2^i less up to 25 % later, but obeys
// x-should-retry and a Retry-After of up to a minute, and says how often it has
// tried and how long it waits. A stream that breaks after its head is not tried
// again. Three workloads have keys of their own: critical asks for 10 % of the
// capacity and interactive for 30 %, at any load; noisy asks for all the rest.
//
// A turn starts the provider and the contender anew and takes figures of the
// second part of the load, when retries are in full swing: arrivals and good
// ends are counted each within that window. Contenders take turns within each
// load of each round, beginning with another one each time, and get the same
// requests at the same times. Figures are medians over rounds, ratios medians
// of the ratios within a round.
//
// CPU and memory are read from /proc for the contender's processes. CPU of a
// refusal is what a turn used beyond its served requests, at their cost in the
// same round's turn at 1x, divided by the refusals: an upper bound, because
// calls given up are in it. Where fewer attempts were refused than lost there
// is no such figure.
//
// A turn in which requests began late is in doubt: a few are played again, and
// figures of such turns count only where there are no others, marked with a *.
//
// It never tunes a contender to what was measured. The two hourthree
// contenders differ in a rate limit for the noisy workload alone; so do the two
// nginx contenders with limits. It needs nginx and says so where there is none.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/report"
)

// plan is how long and how much.
type plan struct {
	Settle    time.Duration `json:"settle"`  // load that does not count
	Measure   time.Duration `json:"measure"` // load that does
	Lag       time.Duration `json:"lag"`     // in which a workload's request has to succeed
	Again     int           `json:"again"`   // turns in doubt that may be played again
	Scenarios []scenario    `json:"scenarios"`
}

const (
	smallBytes = 2 << 10
	largeBytes = 1 << 20
	small      = "2 KB"
	large      = "1 MiB"
)

func full() plan {
	return plan{Settle: 3 * time.Second, Measure: 2300 * time.Millisecond, Lag: 2 * time.Second, Again: 3, Scenarios: []scenario{
		{small, smallBytes, 40, []float64{1, 2, 5, 10}, 2, contenders},
		{large, largeBytes, 4, []float64{1, 10}, 1, largeContenders},
	}}
}

func quick() plan {
	return plan{Settle: 1200 * time.Millisecond, Measure: 1300 * time.Millisecond, Lag: 1200 * time.Millisecond, Again: 2, Scenarios: []scenario{
		{small, smallBytes, 40, []float64{1, 10}, 1, contenders},
		{large, largeBytes, 4, []float64{1, 10}, 1, []string{router, nginxLimit}},
	}}
}

func main() {
	dispatch()
	short := flag.Bool("quick", false, "1x and 10x once, short turns: under a minute, for a look, not for a verdict")
	rounds := flag.Int("rounds", 0, "rounds of both scenarios (default 2 of 2 KB, 1 of 1 MiB)")
	only := flag.String("contenders", "", "contenders to run, by comma: "+strings.Join(contenders, ","))
	bodies := flag.String("bodies", "", "run one scenario only: "+small+" or "+large)
	path := flag.String("json", "", "write all figures to this `file`")
	flag.Parse()
	p := full()
	if *short {
		p = quick()
	}
	p.narrow(*bodies, *only, *rounds)
	if len(p.Scenarios) == 0 {
		fmt.Fprintf(os.Stderr, "overload: nothing to run with -contenders %q -bodies %q\n", *only, *bodies)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(contend.WithGo(ctx), p, *path); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// narrow keeps what is asked for: one size of bodies, some contenders, other
// rounds; "" and 0 ask for nothing.
func (p *plan) narrow(bodies, only string, rounds int) {
	for i := range p.Scenarios {
		s := &p.Scenarios[i]
		s.names = chosen(s.names, only)
		if rounds > 0 {
			s.Rounds = rounds
		}
	}
	p.Scenarios = slices.DeleteFunc(p.Scenarios, func(s scenario) bool {
		return len(s.names) == 0 || bodies != "" && s.Name != bodies
	})
}

// bench is a run.
type bench struct {
	plan   plan
	dir    string
	router string
	nginx  string // "" when there is none
	split  contend.Split
	out    results
}

func run(ctx context.Context, p plan, path string) error {
	dir, err := os.MkdirTemp("", "hourthree-overload")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{plan: p, dir: dir, out: results{Machine: report.ThisMachine(), Plan: p}}
	if b.nginx, err = findNginx(); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
	}
	if b.router, err = contend.Build(dir); err != nil { // before Pin: a build wants every core
		return err
	}
	if b.split, err = contend.Pin(); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
	}
	runtime.GOMAXPROCS(1)
	fmt.Println(b.out.Machine)
	started := time.Now()
	for _, s := range p.Scenarios {
		if err := b.scenario(ctx, s); err != nil {
			return err
		}
	}
	b.out.print(os.Stdout)
	fmt.Printf("\n%.0f s.\n", time.Since(started).Seconds())
	if path == "" {
		return nil
	}
	return report.WriteJSON(path, b.out)
}

// scenario plays every contender at every load, round by round.
func (b *bench) scenario(ctx context.Context, s scenario) error {
	names := slices.Clone(s.names)
	if b.nginx == "" {
		names = slices.DeleteFunc(names, isNginx)
	}
	if len(names) == 0 {
		return nil
	}
	for round := range s.Rounds {
		for i, load := range s.Loads {
			fmt.Fprintf(os.Stderr, "%s bodies, %gx, round %d of %d\n", s.Name, load, round+1, s.Rounds)
			k := (round + i) % len(names)
			for _, name := range slices.Concat(names[k:], names[:k]) {
				t, err := b.play(ctx, s, name, load, round)
				if err != nil {
					return fmt.Errorf("%s bodies, %gx, %s: %w", s.Name, load, name, err)
				}
				b.out.Turns = append(b.out.Turns, t)
				if t.doubtful() && b.plan.Again > 0 {
					b.plan.Again--
					if t, err = b.play(ctx, s, name, load, round); err != nil {
						return err
					}
					b.out.Turns = append(b.out.Turns, t)
				}
			}
		}
	}
	return nil
}
