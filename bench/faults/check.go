package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/report"
)

// coolDown is the router's default cool-down after the first opening.
const coolDown = 5 * time.Second

// checker holds the router's rows against the targets.
type checker struct {
	rows   map[string]row // by case and contender
	timing timing
	out    []report.Check
}

// checks are those targets whose cases were run.
func checks(rows []row, t timing) []report.Check {
	c := checker{rows: map[string]row{}, timing: t}
	for _, r := range rows {
		c.rows[r.Case+" "+r.Contender] = r
	}
	c.slow("F1", "hang")
	c.slow("F2", "slow")
	c.storm()
	c.half()
	c.halfBoth(router)
	c.halfBoth(balanced)
	c.downBoth(router)
	c.downBoth(balanced)
	c.limited()
	c.resets()
	c.errors()
	c.recovery()
	return c.out
}

// row of a case, and whether it was run.
func (c *checker) row(name, contender string) (row, bool) {
	r, ok := c.rows[name+" "+contender]
	return r, ok
}

func (c *checker) add(id, target string, met bool, measured string, args ...any) {
	c.out = append(c.out, report.Check{ID: id, Target: target, Measured: fmt.Sprintf(measured, args...), Met: met})
}

// slow: nobody waits out a timeout on a dead route.
func (c *checker) slow(id, name string) {
	r, ok := c.row(name, router)
	if !ok {
		return
	}
	c.add(id, name+": success 100 %", r.Success >= 100, "%.1f %%", r.Success)
	c.add(id, name+": p99 <= 2.5 s", r.P99 <= 2500, "%.2f s", r.P99/1000)
	c.add(id, name+": at most 100 requests over 2 s", r.Slow <= 100, "%d", r.Slow)
	c.add(id, name+": in flight on the dead route <= 75", r.InFlight <= 75, "%d", r.InFlight)
}

func (c *checker) storm() {
	r, ok := c.row("503", router)
	if !ok {
		return
	}
	c.add("F3", "503: success 100 %", r.Success >= 100, "%.1f %%", r.Success)
	c.add("F3", "503: p50 of good answers <= healthy + 10 ms", r.AddedP50 <= 10, "%+.0f ms", r.AddedP50)
	c.add("F3", "503: attempts a request <= 1.02", r.Amplification <= 1.02, "%.3f", r.Amplification)
	c.add("F3", "503: calls on the primary <= 15", r.Primary <= 15, "%d", r.Primary)
}

func (c *checker) half() {
	r, ok := c.row("half", router)
	if !ok {
		return
	}
	c.add("F4", "half: success 100 %", r.Success >= 100, "%.1f %%", r.Success)
	c.add("F4", "half: attempts a request <= 1.10", r.Amplification <= 1.10, "%.3f", r.Amplification)
	c.add("F4", "half: p99 <= healthy + 100 ms", r.P99 <= r.HealthyP99+100, "%.0f ms, healthy %.0f", r.P99, r.HealthyP99)
}

// halfBoth has the reference's target and the design's own aim beside it: an
// allowance of 1.9 attempts a request cannot reach 93 %.
func (c *checker) halfBoth(who string) {
	r, ok := c.row("half-both", who)
	if !ok {
		return
	}
	at := "half-both"
	if who == balanced {
		at += ", same order"
	}
	c.add("F5", at+": success >= 93 % (design: near 85 %)", r.Success >= 93, "%.1f %%", r.Success)
	c.add("F5", at+": p99 <= 1.5 s", r.P99 <= 1500, "%.2f s", r.P99/1000)
	c.add("F5", at+": attempts a request <= 2.0", r.Amplification <= 2, "%.2f", r.Amplification)
	if alone, ok := c.row("half-both", none); ok {
		c.add("F5", at+": never worse than no gateway", r.Success >= alone.Success, "%.1f %%, none %.1f %%", r.Success, alone.Success)
	}
}

func (c *checker) downBoth(who string) {
	r, ok := c.row("down-both", who)
	if !ok {
		return
	}
	at := "down-both"
	if who == balanced {
		at += ", same order"
	}
	c.add("F6", at+": attempts a request <= 0.10", r.Amplification <= 0.10, "%.3f", r.Amplification)
	alone := "" // the floor: what this machine's noise costs without a gateway
	if n, ok := c.row("down-both", none); ok {
		alone = fmt.Sprintf(", none %.0f ms", n.P99)
	}
	c.add("F6", at+": answers within 50 ms (p99)", r.P99 <= 50, "%.0f ms%s", r.P99, alone)
	c.add("F6", at+": every refusal has Retry-After", r.RetryAfter >= 100, "%.1f %%", r.RetryAfter)
	c.add("F6", at+": full service <= 1.5 s after recovery", r.Service <= 1.5, "%.1f s", r.Service)
}

func (c *checker) limited() {
	r, ok := c.row("429", router)
	if !ok {
		return
	}
	// One at the start of each window of 5 s, and one for the last to begin.
	most := int(math.Ceil(c.timing.Fault.Seconds()/5)) + 1
	c.add("F7", "429: success 100 %", r.Success >= 100, "%.1f %%", r.Success)
	c.add("F7", "429: attempts a request <= 1.02", r.Amplification <= 1.02, "%.3f", r.Amplification)
	c.add("F7", fmt.Sprintf("429: one call a Retry-After window on the primary: <= %d", most), r.Primary <= most, "%d", r.Primary)
}

func (c *checker) resets() {
	if r, ok := c.row("reset-first", router); ok {
		c.add("F8", "reset-first: success 100 %", r.Success >= 100, "%.1f %%", r.Success)
	}
	r, ok := c.row("reset-mid", router)
	if !ok {
		return
	}
	c.add("F8", "reset-mid: JSON success 100 %", r.JSONSuccess >= 100, "%.1f %%", r.JSONSuccess)
	c.add("F8", "reset-mid: left within 20 calls", r.UntilLeft <= 20, "%d", r.UntilLeft)
	c.add("F8", "reset-mid: hidden truncations 0", r.Hidden == 0, "%d", r.Hidden)
}

func (c *checker) errors() {
	if r, ok := c.row("error-first", router); ok {
		c.add("F9", "error-first: success 100 %", r.Success >= 100, "%.1f %%", r.Success)
		c.add("F9", "error-first: made-up answers 0", r.Hidden == 0, "%d", r.Hidden)
	}
	r, ok := c.row("error-mid", router)
	if !ok {
		return
	}
	c.add("F9", "error-mid: JSON success 100 %", r.JSONSuccess >= 100, "%.1f %%", r.JSONSuccess)
	c.add("F9", "error-mid: every failure visible", r.Hidden == 0, "%d hidden, %s", r.Hidden, outcomes(r))
	c.add("F9", "error-mid: the breaker sees it (left within 20 calls)", r.UntilLeft <= 20, "%d", r.UntilLeft)
}

func outcomes(r row) string {
	var s []string
	for _, o := range []load.Outcome{load.Told, load.Broken, load.Refused, load.Late} {
		if n := r.Outcomes[o]; n > 0 {
			s = append(s, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(s) == 0 {
		return "no failures"
	}
	return strings.Join(s, ", ")
}

// recovery is judged on the 503 case, where every call is answered at once,
// and probes on hang, where each stays in flight until it is given up.
func (c *checker) recovery() {
	for _, name := range []string{"503", "hang"} {
		r, ok := c.row(name, router)
		if !ok {
			continue
		}
		c.add("F10", name+": peak of arrivals <= 1.3 x steady", float64(r.Burst) <= 1.3*steady, "%d in 100 ms, steady %d", r.Burst, steady)
		limit := (coolDown + 3*time.Second).Seconds()
		back := fmt.Sprintf("%.1f s", r.Back)
		if math.IsNaN(float64(r.Back)) {
			back = fmt.Sprintf("not in %v, %.0f %% at the end", c.timing.Recovered, r.ShareAtEnd)
		}
		c.add("F10", fmt.Sprintf("%s: 80 %% of traffic back <= cool-down + 3 s = %.0f s", name, limit), float64(r.Back) <= limit, "%s", back)
	}
	if r, ok := c.row("hang", router); ok {
		c.add("F10", "hang: one probe in flight once open", r.InFlightLate <= 1, "%d in the last third", r.InFlightLate)
	}
}
