package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// check is one line of the verdict.
type check struct {
	What   string `json:"what"`
	Want   string `json:"want"`
	Got    string `json:"got"`
	Passed bool   `json:"passed"`
}

// ran is everything a run has found.
type ran struct {
	Seed     uint64                    `json:"seed"`
	Duration string                    `json:"duration"`
	Samples  []sample                  `json:"samples"`
	Outcomes map[string]map[string]int `json:"outcomes"`
	Losses   []loss                    `json:"losses,omitempty"` // of the small workload, the first
	Alarms   []string                  `json:"alarms,omitempty"` // lines of the router's log
	Checks   []check                   `json:"checks"`
}

const mib = 1 << 20

// checks judges the run.
func (f *findings) checks() []check {
	var out []check
	add := func(what, want string, ok bool, got string) { out = append(out, check{what, want, got, ok}) }
	most := func(of func(sample) int64) (n int64) {
		for _, s := range f.watch.samples {
			n = max(n, of(s))
		}
		return n
	}
	free := f.taken
	if free == "" {
		free = "all"
	}
	add("given back when idle", "everything", f.taken == "", free)
	goroutines := f.before.goroutines*105/100 + 20
	add("goroutines when idle", fmt.Sprint("<= ", goroutines), f.after.goroutines <= goroutines, fmt.Sprint(f.after.goroutines))
	heap := f.before.heap*110/100 + 8*mib
	add("heap when idle", "<= "+mibs(heap), f.after.heap <= heap, mibs(f.after.heap))
	rss := most(func(s sample) int64 { return s.RSS })
	add("most resident memory", "<= "+mibs(goMemory+besides), rss <= goMemory+besides, mibs(rss))
	over, full, limit := 0, 0.0, int64(0)
	for _, s := range f.watch.samples {
		if s.Reserved > s.Limit {
			over++
		}
		full, limit = max(full, float64(s.Reserved)/float64(max(1, s.Limit))), s.Limit
	}
	add("ledger beyond "+mibs(limit), "never", over == 0, fmt.Sprintf("%d times, %.0f %% at most", over, 100*full))
	mute := most(func(s sample) int64 { return s.InFlight })
	add("requests at once", ">= 700", mute >= 700, fmt.Sprint(mute))
	add("series from made-up names", "none", !f.named() && f.traffic.names.Load() > 0,
		fmt.Sprintf("none of %d names, %d series", f.traffic.names.Load(), most(func(s sample) int64 { return s.Series })))
	p99 := f.watch.quantile(0.99)
	add("health, 99th percentile", "<= 1s", p99 <= time.Second && f.watch.sick == 0,
		fmt.Sprintf("%s, worst %s, %d failed", short(p99), short(f.watch.quantile(1)), f.watch.sick))
	add("metrics answered", "always", f.watch.missed == 0, fmt.Sprintf("%d of %d missed", f.watch.missed, f.watch.missed+len(f.watch.samples)))
	small := f.traffic.small
	add("small workload served", ">= 99.5 %", small.sent > 0 && float64(small.good) >= 0.995*float64(small.sent), share(small.good, small.sent))
	add("panics in the log", "none", len(f.alarms) == 0, fmt.Sprintf("%d of %d lines", len(f.alarms), f.lines))
	end := "orderly"
	if f.stopped != nil {
		end = f.stopped.Error()
	}
	add("one process, ended by SIGTERM", "orderly", f.stopped == nil, end)
	return out
}

// named reports a series with a model name that nobody has configured.
func (f *findings) named() bool {
	return slices.ContainsFunc(f.watch.samples, func(s sample) bool { return s.named })
}

func share(good, all int) string {
	return fmt.Sprintf("%.2f %% of %d", 100*float64(good)/float64(max(1, all)), all)
}

func mibs(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/mib) }

func short(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// points is how many moments the table shows.
const points = 10

// print writes the figures at ten points in time, what the clients got, and
// the verdict, in 80 columns.
func (f *findings) print(w io.Writer, checks []check) (passed bool) {
	fmt.Fprintf(w, "%6s %-13s %5s %5s %6s %6s %6s %5s %5s %6s %5s\n", "time", "phase", "RSS", "heap", "ledger", "gorout", "inflt", "queue", "calls", "series", "files")
	all := f.watch.samples
	for i := range min(points, len(all)) {
		s := all[(i+1)*len(all)/min(points, len(all))-1]
		fmt.Fprintf(w, "%6s %-13.13s %5d %5d %6d %6d %6d %5d %5d %6d %5d\n", time.Duration(s.Seconds*float64(time.Second)).Round(time.Second),
			s.Phase, s.RSS/mib, s.Heap/mib, s.Reserved/mib, s.Goroutines, s.InFlight, s.Queue, s.Calls, s.Series, s.Files)
	}
	fmt.Fprint(w, "memory in MiB; calls: of all targets\n\n")
	for _, kind := range slices.Sorted(maps.Keys(f.traffic.results)) {
		line := fmt.Sprintf("%-19s", kind)
		for _, outcome := range slices.Sorted(maps.Keys(f.traffic.results[kind])) {
			word := fmt.Sprintf("  %s: %d", outcome, f.traffic.results[kind][outcome])
			if len(line)+len(word) > 80 {
				fmt.Fprintln(w, line)
				line = strings.Repeat(" ", 19)
			}
			line += word
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	passed = true
	for _, c := range checks {
		word := "pass"
		if !c.Passed {
			word, passed = "FAIL", false
		}
		fmt.Fprintf(w, "%s  %-29s %-12s %.31s\n", word, c.What, c.Want, c.Got)
	}
	for _, l := range f.traffic.losses[:min(5, len(f.traffic.losses))] {
		fmt.Fprintf(w, "      the small workload got %s in %s, %.1f s after an outage\n", l.Outcome, l.Phase, l.Into)
	}
	fmt.Fprintf(w, "note  last loss of the small workload behind an outage: after %.1f s\n", f.traffic.late)
	for _, l := range f.alarms[:min(3, len(f.alarms))] {
		fmt.Fprintf(w, "      %.74s\n", l)
	}
	return passed
}

func writeJSON(path string, r ran) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
