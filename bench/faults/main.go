// Command faults repeats a matrix of provider faults against this router,
// nginx and no router at all: two upstreams, 50 requests a second, half of
// them streams; 5 s of health, then the fault on the primary (or on both),
// then recovery. It prints what clients saw and holds it against targets.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

const (
	rate    = 50
	chunks  = 20
	patient = 30 * time.Second
)

// scenario is one row of the matrix.
type scenario struct {
	name   string
	fault  string
	both   bool
	target string // what is promised, in words
	met    func(row) bool
}

// row is what one contender did in one scenario.
type row struct {
	Scenario  string  `json:"scenario"`
	Contender string  `json:"contender"`
	Success   float64 `json:"success_percent"`
	P50, P99  float64 // ms
	Amp       float64 `json:"attempts_per_request"`
	Dead      int64   `json:"most_in_flight_on_primary"`
	Slow      int     `json:"requests_over_2s"`
	Hidden    int     `json:"hidden_truncations"`
	Primary   int     `json:"attempts_on_primary"`
	Recovery  float64 `json:"seconds_to_full_service"`
	Burst     int     `json:"most_arrivals_per_100ms_after"`
	Back      float64 `json:"percent_of_traffic_on_primary_10s_after"`
	Met       bool    `json:"target_met"`
	Target    string  `json:"target"`
}

func matrix() []scenario {
	return []scenario{
		{"hang", upstream.Hang, false, "F1: 100 %, p99 <= 2.5 s, <= 100 over 2 s, <= 75 on the dead route", func(r row) bool {
			return r.Success >= 99.9 && r.P99 <= 2500 && r.Slow <= 100 && r.Dead <= 75
		}},
		{"slow first token", upstream.Slow, false, "F2: as F1", func(r row) bool {
			return r.Success >= 99.9 && r.P99 <= 2500 && r.Slow <= 100 && r.Dead <= 75
		}},
		{"503 storm", upstream.Storm, false, "F3: 100 %, amp <= 1.02, primary <= 15", func(r row) bool { return r.Success >= 99.9 && r.Amp <= 1.02 && r.Primary <= 15 }},
		{"50 % on primary", upstream.Half, false, "F4: 100 %, amp <= 1.10", func(r row) bool { return r.Success >= 99.9 && r.Amp <= 1.10 }},
		{"50 % on both", upstream.Half, true, "F5: >= 83 %, p99 <= 1.5 s, amp <= 2.0", func(r row) bool { return r.Success >= 83 && r.P99 <= 1500 && r.Amp <= 2 }},
		{"both down", upstream.Storm, true, "F6: amp <= 0.10, full service <= 1.5 s after", func(r row) bool { return r.Amp <= 0.10 && r.Recovery <= 1.5 }},
		{"429, Retry-After 5", upstream.Limited, false, "F7: 100 %, amp <= 1.02, <= 1 a window", func(r row) bool { return r.Success >= 99.9 && r.Amp <= 1.02 && r.Primary <= 10 }},
		{"reset in mid-answer", upstream.Cut, false, "F8: 0 hidden, opens within 20", func(r row) bool { return r.Hidden == 0 && r.Primary <= 40 }},
		{"error inside a 200", upstream.InFirst, false, "F9: 100 %", func(r row) bool { return r.Success >= 99.9 }},
		{"error in mid-stream", upstream.InMiddle, false, "F9: 0 hidden, seen by the breaker", func(r row) bool { return r.Hidden == 0 && r.Primary <= 60 }},
	}
}

func main() {
	contend.ServeReverseProxy()
	quick := flag.Bool("quick", false, "a third of the time for each phase")
	only := flag.String("only", "", "run the scenarios whose name contains this")
	who := flag.String("contenders", "none,nginx,hourthree", "which to run")
	out := flag.String("json", "", "write the rows to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *quick, *only, strings.Split(*who, ","), *out); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, only string, contenders []string, out string) error {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := contend.Build(dir)
	if err != nil {
		return err
	}
	healthy, ill, after := 5*time.Second, 25*time.Second, 20*time.Second
	if quick {
		ill, after = 10*time.Second, 8*time.Second
	}
	fmt.Printf("%-20s %-10s %6s %6s %7s %5s %5s %5s %6s %5s %5s\n", "fault", "", "ok %", "p50ms", "p99ms", "amp", "dead", ">2s", "hidden", "recov", "burst")
	var rows []row
	for _, s := range matrix() {
		if !strings.Contains(s.name, only) {
			continue
		}
		for _, who := range contenders {
			r, err := drill(ctx, s, who, bin, dir, healthy, ill, after)
			if err != nil {
				fmt.Printf("%-20s %-10s %v\n", s.name, who, err)
				continue
			}
			rows = append(rows, r)
			fmt.Printf("%-20s %-10s %6.1f %6.0f %7.0f %5.2f %5d %5d %6d %5.1f %5d\n", s.name, who, r.Success, r.P50, r.P99, r.Amp, r.Dead, r.Slow, r.Hidden, r.Recovery, r.Burst)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	fmt.Println()
	for _, r := range rows {
		if r.Contender == "hourthree" {
			verdict := "met"
			if !r.Met {
				verdict = "MISSED"
			}
			fmt.Printf("%-7s %-20s %s\n", verdict, r.Scenario, r.Target)
		}
	}
	if out == "" {
		return nil
	}
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o644)
}

func drill(ctx context.Context, s scenario, who, bin, dir string, healthy, ill, after time.Duration) (row, error) {
	answers := upstream.Options{Chunks: chunks, Gap: 12 * time.Millisecond, Delay: 60 * time.Millisecond, Pad: 60}
	primary, err := upstream.Start(answers)
	if err != nil {
		return row{}, err
	}
	defer primary.Close()
	backup, err := upstream.Start(answers)
	if err != nil {
		return row{}, err
	}
	defer backup.Close()
	o := contend.Options{Dir: dir, Upstreams: []string{primary.URL, backup.URL}}
	base := primary.URL
	if who != "none" {
		start := func() (*contend.Proxy, error) { return contend.Nginx(o) }
		if who == "hourthree" {
			start = func() (*contend.Proxy, error) { return contend.Router(bin, o) }
		}
		p, err := start()
		if err != nil {
			return row{}, err
		}
		defer p.Stop()
		base = p.URL
	}
	t, err := load.New(base, contend.Key, chunks, patient)
	if err != nil {
		return row{}, err
	}
	defer t.Close()

	plain, stream := load.Body(false, 700), load.Body(true, 700)
	kind := func(i int) ([]byte, bool) {
		if i%2 == 0 {
			return plain, false
		}
		return stream, true
	}
	begin := time.Now()
	faultAt, healAt := begin.Add(healthy), begin.Add(healthy+ill)
	var attempts int64
	var dead int64
	faulty := time.AfterFunc(healthy, func() {
		primary.Attempts()
		backup.Attempts()
		primary.InFlight()
		primary.Set(s.fault)
		if s.both {
			backup.Set(s.fault)
		}
	})
	heal := time.AfterFunc(healthy+ill, func() {
		attempts = primary.Attempts() + backup.Attempts()
		_, dead = primary.InFlight()
		primary.Set(upstream.None)
		backup.Set(upstream.None)
	})
	defer faulty.Stop()
	defer heal.Stop()
	results := t.Open(ctx, rate, healthy+ill+after, kind)

	r := row{Scenario: s.name, Contender: who, Dead: dead, Target: s.target}
	var took []time.Duration
	var n, ok int
	lastBad := healAt
	for _, x := range results {
		if x.Hidden {
			r.Hidden++
		}
		switch {
		case x.Start.Before(faultAt):
		case x.Start.Before(healAt):
			n++
			took = append(took, x.Took)
			if x.OK {
				ok++
			}
			if x.Took > 2*time.Second {
				r.Slow++
			}
		case !x.OK && x.Start.After(lastBad):
			lastBad = x.Start
		}
	}
	if n == 0 {
		return r, fmt.Errorf("stopped before the fault")
	}
	r.Success = 100 * float64(ok) / float64(n)
	r.P50, r.P99 = ms(load.Quantile(took, 0.5)), ms(load.Quantile(took, 0.99))
	r.Amp = float64(attempts) / float64(n)
	r.Primary = primary.Arrivals(faultAt, healAt)
	r.Recovery = lastBad.Sub(healAt).Seconds()
	r.Burst = primary.Peak(healAt, healAt.Add(5*time.Second))
	end := healAt.Add(after)
	r.Back = 100 * float64(primary.Arrivals(end.Add(-time.Second), end)) / rate
	r.Met = s.met(r)
	return r, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
