package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

// none stands where there is nothing to show.
const none = "-"

// figures are the numbers of one line of a table.
type figures struct {
	Name, Fresh, Good, Up, In, P99, Peak, Crashes, Met, Verdict string
}

func figuresOf(r *drill.Run) figures {
	t := r.Totals
	met := 0
	for _, j := range r.Criteria {
		if j.Met {
			met++
		}
	}
	return figures{
		Name:    nameOf(r),
		Fresh:   count(t.Fresh),
		Good:    percent(t.Good, t.Fresh),
		Up:      ratio(t.Upstream, t.Fresh),
		In:      ratio(t.Inbound, t.Fresh),
		P99:     millis(worstP99(r)),
		Peak:    count(peakCalls(r)),
		Crashes: count(crashes(r)),
		Met:     fmt.Sprintf("%d/%d", met, len(r.Criteria)),
		Verdict: verdict(r),
	}
}

func nameOf(r *drill.Run) string {
	if s := clean(r.Contender); s != "" {
		return s
	}
	return "unnamed"
}

// verdict is FAIL for a missed criterion, lacks when nothing was missed but a
// criterion needs what the version has not, and otherwise pass.
func verdict(r *drill.Run) string {
	if len(r.Criteria) == 0 {
		return none
	}
	if !r.Passed() {
		return "FAIL"
	}
	for _, j := range r.Criteria {
		if !j.Met {
			return "lacks"
		}
	}
	return "pass"
}

// worstP99 is the highest p99 of any step of any workload, in ms, or 0.
func worstP99(r *drill.Run) float64 {
	worst := 0.0
	for _, s := range r.Workloads {
		for _, v := range s.P99 {
			if finite(v) {
				worst = max(worst, v)
			}
		}
	}
	return worst
}

// peakCalls is the most calls in one step at one target.
func peakCalls(r *drill.Run) int {
	peak := 0
	for _, t := range r.Targets {
		for _, s := range t.Steps {
			peak = max(peak, s.Calls)
		}
	}
	return peak
}

func crashes(r *drill.Run) int {
	n := 0
	for _, t := range slices.Concat(r.Targets, r.Gateways) {
		n += t.Crashes
	}
	return n
}

// hollow is the word for a criterion that a contender met although the
// scenario says that it misses it.
const hollow = "proves nothing"

// mark says how a criterion ended for a contender, and what there is to say of
// it.
func mark(j drill.Judgement, contender string) (word, said string) {
	switch {
	case j.Err != "":
		return "ERROR", clean(j.Err)
	case j.Met && slices.Contains(j.Fails, contender):
		return hollow, Figure(j.Value)
	case j.Met:
		return "met", Figure(j.Value)
	case j.Needs != "":
		return "not yet", "needs " + clean(j.Needs)
	}
	return "MISSED", Figure(j.Value)
}

// statuses says how often the last replies had which status.
func statuses(c drill.Counts) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(c.Status)) {
		parts = append(parts, fmt.Sprintf("%d %s", status, count(c.Status[status])))
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

// told reports that a run has last replies besides 200, or wrong ones.
func told(r *drill.Run) bool {
	for status, n := range r.Totals.Status {
		if status != 200 && n > 0 {
			return true
		}
	}
	return r.Totals.Wrong > 0
}

// place is a line on a target, or on an instance of the gateway.
type place struct {
	Name, Calls, InFlight, Memory, Crashes, Down, Probes string
	notable                                              bool // has what only some have
}

// placesOf are the instances of the gateway and then the targets.
func placesOf(run *drill.Run) []place {
	var out []place
	for _, t := range slices.Concat(run.Gateways, run.Targets) {
		calls, inFlight, probes, down, memory := 0, 0, 0, 0, 0.0
		for _, s := range t.Steps {
			calls, inFlight, probes = calls+s.Calls, max(inFlight, s.InFlight), max(probes, s.Probing)
			if finite(s.Memory) {
				memory = max(memory, s.Memory)
			}
			down += bit(s.Down)
		}
		p := place{
			Name: clean(t.Name), Calls: count(calls), InFlight: count(inFlight), Memory: none,
			Crashes: count(t.Crashes), Down: none, Probes: none, notable: memory > 0 || t.Crashes > 0 || down > 0,
		}
		if memory > 0 {
			p.Memory = share(memory)
		}
		if down > 0 {
			p.Down = short(time.Duration(down) * run.Step)
		}
		if len(t.Moves) > 0 {
			p.Probes = count(probes)
		}
		out = append(out, p)
	}
	return out
}

// share is a part of a bound; 100 % is said of all of it and of nothing less.
func share(v float64) string {
	return strconv.FormatFloat(math.Floor(1000*v+1e-9)/10, 'f', 1, 64) + "%"
}

// Figure writes the value of a criterion: no powers of ten, and a time that
// has no end is never.
func Figure(value string) string {
	v, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || math.IsNaN(v):
		return clean(value)
	case math.IsInf(v, 0):
		return "never"
	case math.Abs(v) >= 1e4 && math.Abs(v) < 1e15:
		return count(int(math.Round(v)))
	}
	return clean(value)
}

// contenders are the names in the results, each once, in order.
func contenders(results []*drill.Result) []string {
	var names []string
	seen := map[string]bool{}
	for _, r := range results {
		for i := range r.Runs {
			if name := nameOf(&r.Runs[i]); !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// verdictOf is the verdict of the contender with that name.
func verdictOf(r *drill.Result, name string) string {
	for i := range r.Runs {
		if nameOf(&r.Runs[i]) == name {
			return verdict(&r.Runs[i])
		}
	}
	return none
}

// present drops results that are nil.
func present(results []*drill.Result) []*drill.Result {
	var out []*drill.Result
	for _, r := range results {
		if r != nil {
			out = append(out, r)
		}
	}
	return out
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// clean makes a string fit for one line: control characters, which a terminal
// would obey, become spaces.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.Join(strings.Fields(s), " ")
}

// count writes 12,345 up to six digits, and then 1.23M.
func count(n int) string {
	f := math.Abs(float64(n))
	switch {
	case f >= 1e9:
		return trim3(float64(n)/1e9) + "G"
	case f >= 1e6:
		return trim3(float64(n)/1e6) + "M"
	case f >= 1e3:
		return fmt.Sprintf("%d,%03d", n/1000, int(f)%1000)
	}
	return strconv.Itoa(n)
}

// trim3 writes three digits that count.
func trim3(v float64) string {
	switch f := math.Abs(v); {
	case !finite(v):
		return none
	case f >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case f >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func ratio(a, b int) string {
	if b <= 0 {
		return none
	}
	return trim3(float64(a) / float64(b))
}

// percent rounds down: 100.0% is said of all and of nothing less.
func percent(a, b int) string {
	if b <= 0 {
		return none
	}
	return strconv.FormatFloat(math.Floor(1000*float64(a)/float64(b))/10, 'f', 1, 64) + "%"
}

// millis writes a time given in ms; none for 0.
func millis(ms float64) string {
	switch {
	case !finite(ms) || ms <= 0:
		return none
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	}
	return trim3(ms/1000) + "s"
}

// short is a duration without its empty parts.
func short(d time.Duration) string {
	s := d.Round(time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
