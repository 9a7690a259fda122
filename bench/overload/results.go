package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/bench/internal/report"
	"github.com/hourthree/hourthree/bench/internal/stat"
)

// results is everything measured.
type results struct {
	Machine report.Machine `json:"machine"`
	Plan    plan           `json:"plan"`
	Turns   []*turn        `json:"turns"`
	Checks  []report.Check `json:"checks"`
}

// none is a figure that was not measured.
var none = report.Figure(math.NaN())

func ratio(x, y float64) report.Figure {
	if y == 0 {
		return none
	}
	return report.Figure(x / y)
}

func millis(d time.Duration) report.Figure {
	return report.Figure(float64(d) / float64(time.Millisecond))
}

// cell is where a figure belongs.
type cell struct {
	scenario string
	load     float64
	name     string
}

// turns are those of a cell: the ones not in doubt, or all when all are.
func (r *results) turns(c cell) (out []*turn) {
	for _, t := range r.Turns {
		if t.Scenario == c.scenario && t.Load == c.load && t.Contender == c.name {
			out = append(out, t)
		}
	}
	if sure := slices.DeleteFunc(slices.Clone(out), (*turn).doubtful); len(sure) > 0 {
		return sure
	}
	return out
}

// doubt reports whether all of a cell's turns are in doubt.
func (r *results) doubt(c cell) bool { return slices.ContainsFunc(r.turns(c), (*turn).doubtful) }

// values are a figure's over rounds; f gets the turn and that of the same
// round and contender at 1x, or another round's where there is none.
func (r *results) values(c cell, f func(t, base *turn) float64) (out []float64) {
	bases := r.turns(cell{c.scenario, 1, c.name})
	if len(bases) == 0 {
		return nil
	}
	for _, t := range r.turns(c) {
		i := max(0, slices.IndexFunc(bases, func(b *turn) bool { return b == t || b.Round == t.Round && t.Load != 1 }))
		if x := f(t, bases[i]); !math.IsNaN(x) {
			out = append(out, x)
		}
	}
	return out
}

func (r *results) median(c cell, f figure) float64 { return stat.Median(r.values(c, f.of)) }

// figure is a column of a table.
type figure struct {
	head   string
	what   string // in a sentence
	digits int
	higher bool // higher is better
	of     func(t, base *turn) float64
}

func plain(f func(t *turn) report.Figure) func(t, base *turn) float64 {
	return func(t, _ *turn) float64 { return float64(f(t)) }
}

var (
	good     = figure{"good/s", "goodput", 1, true, plain(func(t *turn) report.Figure { return t.Good })}
	fresh    = figure{"<=1s", "goodput within 1 s of arrival", 1, true, plain(func(t *turn) report.Figure { return t.Fresh })}
	kept     = figure{"x1x", "goodput kept of its own at 1x", 2, true, func(t, base *turn) float64 { return float64(ratio(float64(t.Good), float64(base.Good))) }}
	offered  = figure{"%all", "share of the offered", 1, true, func(t, _ *turn) float64 { return 100 * float64(ratio(float64(t.Good), float64(t.Offered))) }}
	tail     = figure{"p99", "p99 of the answered", 0, false, plain(func(t *turn) report.Figure { return t.P99 })}
	calls    = figure{"calls", "calls at the provider a request", 2, false, plain(func(t *turn) report.Figure { return t.Calls })}
	perGood  = figure{"", "calls at the provider a good answer", 2, false, func(t, _ *turn) float64 { return float64(ratio(float64(t.Calls*t.Offered), float64(t.Good))) }}
	refused  = figure{"ref/s", "refusals", 0, false, func(t, _ *turn) float64 { return float64(t.Refused) / t.Window }}
	critOK   = figure{"crit%", "critical workload", 0, true, plain(func(t *turn) report.Figure { return t.Critical })}
	interOK  = figure{"int%", "interactive workload", 0, true, plain(func(t *turn) report.Figure { return t.Inter })}
	peak     = figure{"MB", "peak memory", 0, false, func(t, _ *turn) float64 { return t.ofProxy(float64(t.Peak)) }}
	cpuOK    = figure{"CPU s/1k ok", "CPU of a served request", 3, false, func(_, base *turn) float64 { return 1000 * base.cpuServed() }}
	cpuNo    = figure{"s/1k refused", "CPU of a refusal", 3, false, func(t, base *turn) float64 { return 1000 * t.cpuRefusal(base) }}
	costs    = figure{"ratio", "CPU of a refusal to that of a served request", 2, false, func(t, base *turn) float64 { return t.cpuRefusal(base) / base.cpuServed() }}
	upOK     = figure{"KB ok", "", 1, false, plain(func(t *turn) report.Figure { return (t.UpOK + t.DownOK) / 1024 })}
	upNo     = figure{"KB refused: up", "", 1, false, plain(func(t *turn) report.Figure { return t.UpNo / 1024 })}
	downNo   = figure{"down", "bytes", 1, false, plain(func(t *turn) report.Figure { return t.DownNo / 1024 })}
	overview = []figure{good, fresh, kept, offered, tail, calls, refused, critOK, interOK, peak}
	refusals = []figure{cpuOK, cpuNo, costs, upOK, upNo, downNo}
)

func (t *turn) ofProxy(x float64) float64 {
	if t.Contender == direct {
		return math.NaN()
	}
	return x
}

// cpuServed is CPU seconds a served request, of a turn that refuses little.
func (t *turn) cpuServed() float64 {
	return t.ofProxy(float64(ratio(float64(t.CPU), float64(t.Served))))
}

// cpuRefusal is CPU seconds a refusal: what base does not explain. There is
// none where refusals are few or the provider's.
func (t *turn) cpuRefusal(base *turn) float64 {
	if t.Refused <= t.Lost || t.Refused < 4*t.Served || t.ProviderR > int64(t.Refused/2) {
		return math.NaN()
	}
	rest := float64(t.CPU) - float64(t.Served)*base.cpuServed()
	return max(0, rest) / float64(t.Refused)
}

func (r *results) print(w io.Writer) {
	for _, s := range r.Plan.Scenarios {
		for _, load := range s.Loads {
			title := fmt.Sprintf("Bodies of %s, %gx: %.0f requests/s offered to %.0f calls/s",
				s.Name, load, load*float64(s.Slots)/service.Seconds(), float64(s.Slots)/service.Seconds())
			r.table(w, title, s, load, overview)
		}
		last := slices.Max(s.Loads)
		r.table(w, fmt.Sprintf("Bodies of %s, %gx: what a refusal costs against a served request", s.Name, last), s, last, refusals)
	}
	r.compare(w)
	r.warn(w)
	r.Checks = r.checks()
	report.Checks(w, "Targets", r.Checks)
}

func (r *results) table(w io.Writer, title string, s scenario, load float64, figures []figure) {
	rows := [][]string{{""}}
	for _, f := range figures {
		rows[0] = append(rows[0], f.head)
	}
	for _, name := range s.names {
		row, any := []string{name}, false
		for _, f := range figures {
			x := r.median(cell{s.Name, load, name}, f)
			any = any || !math.IsNaN(x)
			row = append(row, report.Number(x, f.digits))
		}
		if r.doubt(cell{s.Name, load, name}) {
			row[0] += "*"
		}
		if any {
			rows = append(rows, row)
		}
	}
	report.Table(w, title, rows)
}

// apart is the least difference that is told; less is noise.
const apart = 0.05

// compare tells the differences between each router and the nginx with the
// same knowledge, the other way round first. What is in doubt is left out.
func (r *results) compare(w io.Writer) {
	for _, pair := range [][2]string{{nginxLimit, router}, {nginxKeys, routerKeys}, {router, nginxLimit}, {routerKeys, nginxKeys}} {
		if !r.ran(pair[0]) || !r.ran(pair[1]) {
			continue
		}
		fmt.Fprintf(w, "\nWhere %s is better than %s (its figure first):\n", pair[0], pair[1])
		any := false
		for _, s := range r.Plan.Scenarios {
			for _, f := range []figure{good, fresh, kept, tail, perGood, critOK, interOK, peak, cpuOK, cpuNo} {
				if line := r.better(s, f, pair[0], pair[1]); line != "" {
					any = true
					fmt.Fprintln(w, line)
				}
			}
		}
		if !any {
			fmt.Fprintln(w, "  nowhere")
		}
	}
}

func (r *results) ran(name string) bool {
	return slices.ContainsFunc(r.Turns, func(t *turn) bool { return t.Contender == name })
}

// better is one figure at the loads at which a is better than b, or nothing.
func (r *results) better(s scenario, f figure, a, b string) string {
	var at []string
	for _, load := range s.Loads {
		if f.head == cpuOK.head && load != 1 {
			continue // the same as at 1x
		}
		one, other := cell{s.Name, load, a}, cell{s.Name, load, b}
		if r.doubt(one) || r.doubt(other) {
			continue
		}
		x, y := r.median(one, f), r.median(other, f)
		if f.higher {
			x, y = -x, -y
		}
		if y-x > apart*math.Abs(y) {
			at = append(at, fmt.Sprintf("%gx %s:%s", load, report.Number(math.Abs(x), f.digits), report.Number(math.Abs(y), f.digits)))
		}
	}
	if len(at) == 0 {
		return ""
	}
	return wrap(fmt.Sprintf("  %s, %s: %s", s.Name, f.what, strings.Join(at, ", ")))
}

// wrap breaks a line that is too wide at a space.
func wrap(s string) string {
	if len(s) <= report.Width {
		return s
	}
	i := strings.LastIndexByte(s[:report.Width], ' ')
	return s[:i] + "\n     " + wrap(s[i:])
}

// othersMost is the percentage of the machine beyond which figures are of
// contenders that had to wait for it.
const othersMost = 20

// warn says how busy the machine was with other things, and counts the turns
// whose load was not kept.
func (r *results) warn(w io.Writer) {
	var others []float64
	late := 0
	for _, t := range r.Turns {
		others = append(others, float64(t.Foreign))
		if t.doubtful() {
			late++
		}
	}
	fmt.Fprintf(w, "\nOther processes used %.0f %% of this machine (median over turns).\n", stat.Median(others))
	if stat.Median(others) > othersMost {
		fmt.Fprintln(w, "WARNING: that is a lot: contenders lacked CPU, the one that needs more the more.")
	}
	if late > 0 {
		fmt.Fprintf(w, "WARNING: in %d of %d turns requests began over %d ms late (p99): the machine was\ntoo slow or too busy. Rows with a * have no other turns: do not quote them.\n", late, len(r.Turns), lateMost)
	}
}

// keptLeast is invariant I16.
const keptLeast = 0.9

func (r *results) checks() (out []report.Check) {
	for _, s := range r.Plan.Scenarios {
		last := slices.Max(s.Loads)
		for _, name := range []string{router, routerKeys} {
			x, measured := r.median(cell{s.Name, last, name}, kept), ""
			if math.IsNaN(x) {
				continue
			}
			if r.doubt(cell{s.Name, last, name}) || r.doubt(cell{s.Name, 1, name}) {
				measured = " (in doubt)"
			}
			out = append(out, report.Check{
				ID:       "I16",
				Target:   fmt.Sprintf("%s, %s: goodput at %gx >= %.1f of its own at 1x", name, s.Name, last, keptLeast),
				Measured: fmt.Sprintf("%.2f", x) + measured, Met: x >= keptLeast,
			})
		}
	}
	return out
}
