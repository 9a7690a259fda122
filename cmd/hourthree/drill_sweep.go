package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/drill"
)

func drillSweep() *cobra.Command {
	var against []string
	var loads, depths []float64
	var durations []time.Duration
	var seeds []uint
	var file string
	c := &cobra.Command{
		Use: "sweep [NAME|FILE]", Short: "Vary load, depth and duration of a scenario; print where a contender no longer recovers",
		Long: "Varies a scenario (default capacity-dip) and prints for each contender how long\n" +
			"after the end of the faults it is as good as before, or never. Loads are shares of\n" +
			"the first target's capacity, depths shares of the faults as written.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name := "capacity-dip"
			if len(args) > 0 {
				name = args[0]
			}
			s, err := load(name)
			if err != nil {
				return exit{exitUsage, err}
			}
			w := drill.Sweep{Contenders: against, Loads: loads, Depths: depths, Durations: durations}
			for _, n := range seeds {
				w.Seeds = append(w.Seeds, uint64(n))
			}
			if err := checkSweep(&w); err != nil {
				return exit{exitUsage, err}
			}
			data, err := open(file)
			if err != nil {
				return err
			}
			defer data.drop()
			if f, ok := c.ErrOrStderr().(*os.File); ok && terminal(f) {
				w.Progress = func(done, of int) {
					fmt.Fprintf(f, "\r\033[K%d of %d runs", done, of)
					if done == of {
						fmt.Fprint(f, "\r\033[K")
					}
				}
			}
			points, err := w.Run(s)
			if err != nil {
				return exit{exitUsage, err}
			}
			frontier(c.OutOrStdout(), s, w, points)
			if err := data.json(points); err != nil {
				return exit{exitRun, err}
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&against, "against", []string{"router", "naive", "sample-breaker", "ratio-breaker", "retry-3"}, "contenders, by comma")
	c.Flags().Float64SliceVar(&loads, "load", []float64{0.5, 0.7, 0.9, 1, 1.2}, "offered loads, as shares of the first target's capacity")
	c.Flags().Float64SliceVar(&depths, "depth", []float64{0.25, 0.5, 0.75, 1}, "depths of the faults, as shares of what is written")
	c.Flags().DurationSliceVar(&durations, "duration", nil, "lengths of the faults; default as written")
	c.Flags().UintSliceVar(&seeds, "seed", []uint{1}, "seeds; the worst counts")
	c.Flags().StringVar(&file, "json", "", "write all points to this `file`")
	return c
}

func checkSweep(w *drill.Sweep) error {
	for _, l := range w.Loads {
		if !(l >= 0.001 && l <= 10) { // nor NaN
			return fmt.Errorf("--load %v: must be 0.001 to 10", l)
		}
	}
	for _, d := range w.Depths {
		if !(d >= 0 && d <= 1) {
			return fmt.Errorf("--depth %v: must be 0 to 1", d)
		}
	}
	for _, t := range w.Durations {
		if t < time.Second || t > 4*time.Hour {
			return fmt.Errorf("--duration %v: must be 1s to 4h", t)
		}
	}
	if len(w.Loads) == 0 || len(w.Depths) == 0 || len(w.Seeds) == 0 {
		return fmt.Errorf("--load, --depth and --seed need a value each")
	}
	return checkAgainst(w.Contenders)
}

// frontier prints a table for each contender and duration: depths down, loads
// across, in each cell the seconds to recovery.
func frontier(out io.Writer, s *drill.Scenario, w drill.Sweep, points []drill.Point) {
	fmt.Fprintf(out, "%s: seconds from the end of the faults until all is as before.\nnever: not within %d s and until the end, at the same load. Worst of %d seeds.\n", s.Name, int(drill.Grace.Seconds()), len(w.Seeds))
	for _, name := range w.Contenders {
		var lengths []time.Duration
		for _, p := range points {
			if p.Contender == name && !slices.Contains(lengths, p.Duration) {
				lengths = append(lengths, p.Duration)
			}
		}
		for _, t := range lengths {
			fmt.Fprintf(out, "\n%s, faults of %s\n%12s", name, t, "depth \\ load")
			for _, l := range w.Loads {
				fmt.Fprintf(out, "%8.0f%%", 100*l)
			}
			fmt.Fprintln(out)
			for _, d := range w.Depths {
				fmt.Fprintf(out, "%11.0f%%", 100*d)
				for _, l := range w.Loads {
					fmt.Fprintf(out, "%9s", worst(points, name, t, l, d))
				}
				fmt.Fprintln(out)
			}
			if l := lastGood(points, w, name, t); l > 0 {
				fmt.Fprintf(out, "recovers at every depth up to a load of %.0f %%\n", 100*l)
			} else {
				fmt.Fprintln(out, "does not recover at every depth at any of these loads")
			}
		}
	}
}

// worst is the cell of a table.
func worst(points []drill.Point, name string, t time.Duration, load, depth float64) string {
	last := time.Duration(-1)
	for _, p := range points {
		if p.Contender != name || p.Duration != t || p.Load != load || p.Depth != depth {
			continue
		}
		if !p.Recovers() || p.Recovery < 0 {
			return "never"
		}
		last = max(last, p.Recovery)
	}
	return fmt.Sprintf("%.0f", last.Seconds())
}

// lastGood is the highest load up to which every run recovered, 0 for none.
func lastGood(points []drill.Point, w drill.Sweep, name string, t time.Duration) (good float64) {
	loads := slices.Sorted(slices.Values(w.Loads))
	for _, l := range loads {
		for _, d := range w.Depths {
			if strings.HasPrefix(worst(points, name, t, l, d), "never") {
				return good
			}
		}
		good = l
	}
	return good
}
