// Command faults drives one client load through the same outages with no
// gateway, with nginx and with this router, and reports what clients saw, what
// upstreams were sent and how each came back. Two fake upstreams, primary and
// backup; 50 requests a second, every second one a stream of 20 chunks; 5 s of
// health, 25 s of fault, 20 s of recovery. How to read it is in
// bench/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hourthree/hourthree/bench/internal/contend"
	"github.com/hourthree/hourthree/bench/internal/report"
)

// timing is how long each phase takes and how patient everybody is.
type timing struct {
	Healthy   time.Duration `json:"healthy"`
	Fault     time.Duration `json:"fault"`
	Recovered time.Duration `json:"recovered"`
	Patience  time.Duration `json:"client_timeout"`
	Gateway   time.Duration `json:"nginx_timeout"` // read timeout and fail_timeout
	Slow      time.Duration `json:"slow_first_token"`
}

var (
	full  = timing{Healthy: 5 * time.Second, Fault: 25 * time.Second, Recovered: 20 * time.Second, Patience: 30 * time.Second, Gateway: 10 * time.Second, Slow: 20 * time.Second}
	quick = timing{Healthy: 3 * time.Second, Fault: 10 * time.Second, Recovered: 8 * time.Second, Patience: 12 * time.Second, Gateway: 4 * time.Second, Slow: 8 * time.Second}
)

// settings is what the command line says.
type settings struct {
	timing     timing
	only       string
	contenders string
	parallel   bool
	logs       string
}

func main() {
	contend.Dispatch()
	s := settings{timing: full}
	short := flag.Bool("quick", false, "phases of 3, 10 and 8 s and shorter timeouts: for a look, not for a verdict")
	flag.StringVar(&s.only, "only", "", "run the cases with any of these, by comma, in their id or name; see -list")
	flag.StringVar(&s.contenders, "contenders", "", "contenders to run, by comma: "+strings.Join(contenders, ","))
	serial := flag.Bool("serial", false, "one contender after the other instead of all of a case side by side")
	flag.StringVar(&s.logs, "logs", "", "keep the router's logs in this `directory`")
	path := flag.String("json", "", "write all figures to this `file`")
	list := flag.Bool("list", false, "name the cases and stop")
	flag.Parse()
	if *list {
		for _, c := range cases {
			fmt.Printf("%-12s %-21s %s\n", c.id, c.name, c.what)
		}
		return
	}
	if *short {
		s.timing = quick
	}
	s.parallel = !*serial
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(contend.WithGo(ctx), s, *path); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// results is everything measured.
type results struct {
	Machine report.Machine `json:"machine"`
	Timing  timing         `json:"timing"`
	Rows    []row          `json:"rows"`
	Checks  []report.Check `json:"checks"`
}

func run(ctx context.Context, s settings, path string) error {
	if len(chosen(s.only)) == 0 {
		return fmt.Errorf("no case has %q in its name; see -list", s.only)
	}
	dir, err := os.MkdirTemp("", "hourthree-faults")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &drill{timing: s.timing, dir: dir, logs: s.logs}
	if s.logs != "" {
		if err := os.MkdirAll(s.logs, 0o755); err != nil {
			return err
		}
	}
	if d.bin, err = contend.Build(dir); err != nil {
		return err
	}
	out := results{Machine: report.ThisMachine(), Timing: s.timing}
	fmt.Println(out.Machine)
	for _, c := range chosen(s.only) {
		rows, err := d.all(ctx, c, s)
		if err != nil {
			return err
		}
		printCase(os.Stdout, c, rows)
		out.Rows = append(out.Rows, rows...)
	}
	out.Checks = checks(out.Rows, s.timing)
	report.Checks(os.Stdout, "Targets, for hourthree", out.Checks)
	if path == "" {
		return nil
	}
	return report.WriteJSON(path, out)
}

// chosen are the cases that hold any of the words in their id or name.
func chosen(words string) (out []scenario) {
	for _, c := range cases {
		if slices.ContainsFunc(strings.Split(words, ","), func(w string) bool { return w == c.id || strings.Contains(c.name, w) }) {
			out = append(out, c)
		}
	}
	return out
}

func named(list, name string) bool {
	return list == "" || strings.Contains(","+list+",", ","+name+",")
}

// all runs one case with every contender it has, side by side: each has its
// own upstreams, and 50 requests a second are little work.
func (d *drill) all(ctx context.Context, c scenario, s settings) ([]row, error) {
	var names []string
	for _, name := range contenders {
		if named(s.contenders, name) && (name != balanced || c.both) {
			names = append(names, name)
		}
	}
	rows, errs := make([]row, len(names)), make([]error, len(names))
	fmt.Fprintf(os.Stderr, "%s: %s\n", c.id, strings.Join(names, ", "))
	var wg sync.WaitGroup
	for i, name := range names {
		one := func() { rows[i], errs[i] = d.one(ctx, c, name) }
		if s.parallel {
			wg.Go(one)
		} else {
			one()
		}
	}
	wg.Wait()
	var done []row
	for i, err := range errs {
		switch {
		case errors.Is(err, contend.ErrNoNginx):
			fmt.Fprintln(os.Stderr, "faults:", err)
		case err != nil:
			return nil, fmt.Errorf("%s, %s: %w", c.id, names[i], err)
		default:
			done = append(done, rows[i])
		}
	}
	return done, nil
}

// log is the file a contender's output goes to, nil for none.
func (d *drill) log(c scenario, name string) (*os.File, error) {
	if d.logs == "" {
		return nil, nil
	}
	return os.Create(filepath.Join(d.logs, c.id+"-"+name+".log"))
}
