package main

import (
	"fmt"
	"io"
	"math"
	"sort"
	"strings"

	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/report"
	"github.com/hourthree/hourthree/bench/internal/stat"
)

// results is everything measured.
type results struct {
	Machine    report.Machine        `json:"machine"`
	Plan       plan                  `json:"plan"`
	Contenders map[string]*contender `json:"contenders"`
	Checks     []report.Check        `json:"checks"`
}

// contender is one contender's figures, a list over rounds by name.
type contender struct {
	Figures map[string][]float64 `json:"figures"`
	Failed  map[string]int       `json:"failed,omitempty"` // requests by part and what became of them
}

func (r *results) of(name string) *contender {
	if r.Contenders == nil {
		r.Contenders = map[string]*contender{}
	}
	c := r.Contenders[name]
	if c == nil {
		c = &contender{Figures: map[string][]float64{}, Failed: map[string]int{}}
		r.Contenders[name] = c
	}
	return c
}

func (c *contender) add(figure string, x float64) {
	c.Figures[figure] = append(c.Figures[figure], x)
}

func (c *contender) fail(part string, r load.Result) {
	for _, s := range r.Samples {
		if s.Outcome != load.OK {
			c.Failed[fmt.Sprintf("%s: %s, status %d", part, s.Outcome, s.Status)]++
		}
	}
}

// median of a figure over the rounds; NaN when it was not measured.
func (r *results) median(name, figure string) float64 {
	return stat.Median(r.of(name).Figures[figure])
}

// ratio of a figure to another contender's, as median over rounds.
func (r *results) ratio(name, to, figure string) float64 {
	return stat.MedianRatio(r.of(name).Figures[figure], r.of(to).Figures[figure])
}

// added is a latency less that without a proxy, as median over rounds.
func (r *results) added(name, figure string) float64 {
	return stat.MedianDiff(r.of(name).Figures[figure], r.of(direct).Figures[figure])
}

// column is a column of a table.
type column struct {
	head   string
	digits int
	value  func(name string) float64
}

func (r *results) table(w io.Writer, title string, names []string, columns ...column) {
	rows := [][]string{{""}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.head)
	}
	for _, name := range names {
		row, any := []string{name}, false
		for _, c := range columns {
			x := c.value(name)
			any = any || !math.IsNaN(x)
			row = append(row, report.Number(x, c.digits))
		}
		if any {
			rows = append(rows, row)
		}
	}
	if len(rows) > 1 {
		report.Table(w, title, rows)
	}
}

func (r *results) print(w io.Writer) {
	med := func(f string) func(string) float64 { return func(n string) float64 { return r.median(n, f) } }
	to := func(base, f string) func(string) float64 {
		return func(n string) float64 { return r.ratio(n, base, f) }
	}
	plus := func(f string) func(string) float64 {
		return func(n string) float64 {
			if n == direct {
				return math.NaN()
			}
			return r.added(n, f)
		}
	}
	withFloor := append([]string{direct}, proxies...)
	r.table(w, fmt.Sprintf("JSON, closed loop, %d connections: CPU of the proxy", closedConns), proxies,
		column{"ms/1k requests", 1, med("json_cpu_ms_per_1k")}, column{"x nginx", 2, to(nginx, "json_cpu_ms_per_1k")},
		column{"x ReverseProxy", 2, to(revp, "json_cpu_ms_per_1k")}, column{"requests/s", 0, med("json_rps")})
	r.table(w, fmt.Sprintf("JSON, open loop, %d requests/s: latency added to direct", openRate), withFloor,
		column{"p50 us", 0, med("open_p50_us")}, column{"p99 us", 0, med("open_p99_us")},
		column{"added p50", 0, plus("open_p50_us")}, column{"added p99", 0, plus("open_p99_us")},
		column{"CPU ms/1k", 0, med("open_cpu_ms_per_1k")}, column{"x nginx", 2, to(nginx, "open_cpu_ms_per_1k")})
	r.table(w, fmt.Sprintf("SSE, %d streams of 50 chunks/s (delay and time to first content in us)", sseStreams), withFloor,
		column{"CPU us/chunk", 1, med("sse_cpu_us_per_chunk")}, column{"x nginx", 2, to(nginx, "sse_cpu_us_per_chunk")},
		column{"delay p50", 0, med("sse_delay_p50_us")}, column{"p99", 0, med("sse_delay_p99_us")},
		column{"first p50", 0, med("sse_first_p50_us")}, column{"chunks/s", 0, med("sse_chunks_per_s")})
	served := func(n string) float64 { // a stream of answerChunks, from the other parts
		return r.median(n, "json_cpu_ms_per_1k") + r.median(n, "sse_cpu_us_per_chunk")*answerChunks
	}
	r.table(w, fmt.Sprintf("Refusal before the body is read, closed loop, %d connections", closedConns), []string{router},
		column{"ms/1k refusals", 1, med("refusal_cpu_ms_per_1k")},
		column{"x JSON", 2, func(n string) float64 {
			return r.median(n, "refusal_cpu_ms_per_1k") / r.median(n, "json_cpu_ms_per_1k")
		}},
		column{fmt.Sprintf("x stream of %d", answerChunks), 3, func(n string) float64 { return r.median(n, "refusal_cpu_ms_per_1k") / served(n) }})
	r.table(w, fmt.Sprintf("Memory, %d open streams (resident MB)", heldStreams), proxies,
		column{"idle", 1, med("rss_idle_mb")}, column{"held", 1, med("rss_held_mb")}, column{"KB/stream", 1, med("kb_per_stream")},
		column{fmt.Sprintf("%v after", r.Plan.Rest), 1, med("rss_after_mb")})
	r.table(w, fmt.Sprintf("Large bodies, %d x 10 MB at once", largeConns), withFloor,
		column{"CPU ms/request", 1, med("large_cpu_ms")}, column{"x ReverseProxy", 2, to(revp, "large_cpu_ms")},
		column{"idle MB", 1, med("large_idle_mb")}, column{"peak MB", 1, med("large_peak_mb")}, column{"p50 ms", 0, med("large_p50_ms")})
	r.printFailed(w)
	r.Checks = r.checks()
	if len(r.Checks) > 0 {
		report.Checks(w, "Targets (1st: for now; P: where it goes)", r.Checks)
	}
}

// answerChunks is an answer of ordinary length.
const answerChunks = 300

// printFailed names what did not succeed: its figures are not worth much.
func (r *results) printFailed(w io.Writer) {
	var lines []string
	for name, c := range r.Contenders {
		for part, n := range c.Failed {
			lines = append(lines, fmt.Sprintf("FAILED: %s, %s: %d requests", name, part, n))
		}
	}
	sort.Strings(lines)
	if len(lines) > 0 {
		fmt.Fprintln(w, "\n"+strings.Join(lines, "\n"))
	}
}

// short is x with as many digits as mean something.
func short(x float64) string {
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// checks holds the router against the targets whose base was measured.
func (r *results) checks() (out []report.Check) {
	atMost := func(id, what string, measured, limit float64, unit string) {
		if math.IsNaN(measured) || math.IsNaN(limit) {
			return
		}
		out = append(out, report.Check{ID: id, Target: what + " <= " + short(limit) + unit, Measured: short(measured) + unit, Met: measured <= limit})
	}
	json, sse := r.ratio(router, nginx, "json_cpu_ms_per_1k"), r.ratio(router, nginx, "sse_cpu_us_per_chunk")
	stream := r.median(router, "kb_per_stream")
	atMost("1st", "CPU a JSON request", json, 3.5, " x nginx")
	atMost("1st", "CPU a chunk", sse, 2, " x nginx")
	atMost("1st", "memory an open stream", stream, 60, " KB")
	atMost("P1", "CPU a JSON request", json, 2.2, " x nginx")
	atMost("P1", "CPU a JSON request", r.ratio(router, revp, "json_cpu_ms_per_1k"), 0.65, " x ReverseProxy")
	if rps := r.ratio(router, nginx, "json_rps"); !math.IsNaN(rps) {
		out = append(out, report.Check{ID: "P2", Target: "requests/s on one core >= 0.45 x nginx", Measured: fmt.Sprintf("%.2f x nginx", rps), Met: rps >= 0.45})
	}
	atMost("P3", "added p50 at 1,000/s", r.added(router, "open_p50_us"), 1.4*r.added(nginx, "open_p50_us"), " us")
	atMost("P3", "p99 at 1,000/s", r.median(router, "open_p99_us"), 1.2*r.median(nginx, "open_p99_us"), " us")
	atMost("P4", "CPU a chunk", sse, 1.6, " x nginx")
	atMost("P5", "chunk delay p99", r.ratio(router, nginx, "sse_delay_p99_us"), 1.5, " x nginx")
	atMost("P6", "memory an open stream", stream, 40, " KB")
	if r.Plan.Rest == full.Rest {
		atMost("P6", "memory 60 s after the streams", r.median(router, "rss_after_mb"), 1.3*r.median(router, "rss_idle_mb"), " MB")
	}
	const inFlight = largeConns * largeBytes / (1 << 20)
	atMost("P7", "large bodies, peak memory", r.median(router, "large_peak_mb"), r.median(router, "large_idle_mb")+1.3*inFlight, " MB")
	atMost("P7", "large bodies, CPU", r.ratio(router, revp, "large_cpu_ms"), 1.4, " x ReverseProxy")
	atMost("P8", "memory when idle", r.median(router, "rss_idle_mb"), 25, " MB")
	return out
}
