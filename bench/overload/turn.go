package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/hourthree/hourthree/bench/internal/report"
	"github.com/hourthree/hourthree/bench/internal/stat"
)

// scenario is a size of bodies and a capacity that this machine can offer ten
// times of.
type scenario struct {
	Name   string    `json:"name"`
	Bytes  int       `json:"body_bytes"`
	Slots  int       `json:"slots"`
	Loads  []float64 `json:"loads"` // multiples of the capacity
	Rounds int       `json:"rounds"`
	names  []string
}

// turn is one contender under one load, in one round.
type turn struct {
	Scenario  string  `json:"scenario"`
	Load      float64 `json:"load"`
	Round     int     `json:"round"`
	Contender string  `json:"contender"`

	Offered   report.Figure  `json:"offered_per_s"`
	Good      report.Figure  `json:"goodput_per_s"`           // whole, within the time-out of an attempt
	Fresh     report.Figure  `json:"goodput_first_s_per_s"`   // whole, within it of the request's arrival
	P50       report.Figure  `json:"p50_ms_good"`             // from arrival, retries included
	P99       report.Figure  `json:"p99_ms_good"`             // the same
	Calls     report.Figure  `json:"provider_calls_per_req"`  // per logical request
	Wasted    report.Figure  `json:"provider_wasted_percent"` // of calls, served to a caller that had left
	Served    int            `json:"attempts_served"`
	Refused   int            `json:"attempts_refused"` // answered with another status than 200
	Lost      int            `json:"attempts_lost"`    // late, broken or cut short
	Statuses  map[string]int `json:"statuses"`
	Critical  report.Figure  `json:"critical_ok_percent"` // within the plan's lag
	Inter     report.Figure  `json:"interactive_ok_percent"`
	Noisy     report.Figure  `json:"noisy_ok_percent"`
	Peak      report.Figure  `json:"peak_rss_mb"`
	CPU       report.Figure  `json:"cpu_s"`
	UpOK      report.Figure  `json:"bytes_up_per_served"`
	DownOK    report.Figure  `json:"bytes_down_per_served"`
	UpNo      report.Figure  `json:"bytes_up_per_refusal"`
	DownNo    report.Figure  `json:"bytes_down_per_refusal"`
	LateP99   report.Figure  `json:"generator_late_p99_ms"` // or how far it was behind at the end
	Foreign   report.Figure  `json:"foreign_cpu_percent"`   // of the machine, used by what is not of this benchmark
	Window    float64        `json:"window_s"`
	ProviderR int64          `json:"provider_refused"`
}

// lateMost is how many ms late requests may begin before a turn is in doubt.
const lateMost = 50

// doubtful reports whether the load was not what it should have been.
func (t *turn) doubtful() bool { return t.LateP99 > lateMost }

// foreign is the CPU time that is neither this process's nor its children's.
func foreign(provider, p *process) time.Duration {
	return machineBusy() - self() - provider.usage().cpu - p.usage().cpu
}

// window is the part of a turn that counts.
type window struct{ from, to time.Time }

func (w window) has(t time.Time) bool { return !t.Before(w.from) && t.Before(w.to) }

// play starts a provider and a contender anew, loads them and stops them.
func (b *bench) play(ctx context.Context, s scenario, name string, load float64, round int) (*turn, error) {
	core := b.split.Bench
	if name == direct {
		core = b.split.Proxy // nobody else is there
	}
	provider, err := startProvider(core, s.Slots)
	if err != nil {
		return nil, err
	}
	defer provider.stop()
	at := site{core: b.split.Proxy, dir: b.dir, router: b.router, nginx: b.nginx, upstream: provider.addr, slots: s.Slots}
	p, err := at.start(name)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	addr := provider.addr
	if p != nil {
		addr = p.addr
	}
	w := newWire(addr, s.Bytes)
	defer w.close()
	c := &clients{wire: w, capacity: at.perSecond(), times: load, seed: uint64(round + 1)}
	t := &turn{Scenario: s.Name, Load: load, Round: round, Contender: name}
	return t, b.measure(ctx, c, t, provider, p)
}

// measure runs the load and takes the figures of its second part, when queues
// and retries have become what they stay.
func (b *bench) measure(ctx context.Context, c *clients, t *turn, provider, p *process) error {
	const margin = 100 * time.Millisecond // for the reading at the end
	start := time.Now()
	w := window{start.Add(b.plan.Settle), start.Add(b.plan.Settle + b.plan.Measure)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(ctx, w.to.Add(margin))
	}()
	defer func() { <-done }()
	pause(ctx, time.Until(w.from))
	cpu, others, began := p.usage().cpu, foreign(provider, p), time.Now()
	before, err := provider.books()
	if err != nil {
		return err
	}
	pause(ctx, time.Until(w.to))
	used := p.usage()
	others, lasted := foreign(provider, p)-others, time.Since(began)
	after, err := provider.books()
	if err != nil {
		return err
	}
	<-done
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.CPU = report.Figure((used.cpu - cpu).Seconds())
	t.Peak = report.Figure(float64(used.peak) / (1 << 20))
	t.Window = b.plan.Measure.Seconds()
	t.Foreign = ratio(100*others.Seconds(), lasted.Seconds()*float64(runtime.NumCPU()))
	t.ProviderR = after.Refused - before.Refused
	arrived := t.readRequests(c, w, b.plan.Lag)
	t.readAttempts(c, w)
	t.Calls = ratio(float64(after.Calls-before.Calls), float64(arrived))
	t.Wasted = report.Figure(stat.Percent(int(after.Wasted-before.Wasted), int(after.Calls-before.Calls-t.ProviderR)))
	return nil
}

// readRequests counts arrivals and good ends within the window, each for
// itself. Shares of workloads are of those that arrived in the window moved
// back by lag, if answered within lag.
func (t *turn) readRequests(c *clients, w window, lag time.Duration) (arrived int) {
	var came, good [workloads]int
	var took, late []time.Duration
	fresh := 0
	earlier := window{w.from.Add(-lag), w.to.Add(-lag)}
	for _, r := range c.requests {
		if w.has(r.due) {
			arrived++
			late = append(late, r.late)
		}
		if earlier.has(r.due) {
			came[r.of]++
			if r.good && r.end.Sub(r.due) <= lag {
				good[r.of]++
			}
		}
		if r.good && w.has(r.end) {
			took = append(took, r.end.Sub(r.due))
			if r.end.Sub(r.due) <= patience {
				fresh++
			}
		}
	}
	t.Offered = report.Figure(float64(arrived) / t.Window)
	t.Good = report.Figure(float64(len(took)) / t.Window)
	t.Fresh = report.Figure(float64(fresh) / t.Window)
	if len(took) == 0 {
		t.P50, t.P99 = none, none
	} else {
		q := stat.Quantiles(took, 0.5, 0.99)
		t.P50, t.P99 = millis(q[0]), millis(q[1])
	}
	share := func(of workload) report.Figure {
		return report.Figure(stat.Percent(good[of], came[of]))
	}
	t.Critical, t.Inter, t.Noisy = share(critical), share(interactive), share(noisy)
	t.LateP99 = millis(max(c.behind, stat.Quantile(late, 0.99)))
	return arrived
}

func (t *turn) readAttempts(c *clients, w window) {
	t.Statuses = map[string]int{}
	var up, down [2]int64 // served, refused
	for _, a := range c.attempts {
		if !w.has(a.at) {
			continue
		}
		r := a.reply
		t.Statuses[describe(r)]++
		kind := 0
		switch {
		case r.whole:
			t.Served++
		case r.status != 0 && r.status != http.StatusOK:
			t.Refused++
			kind = 1
		default:
			t.Lost++
			continue
		}
		up[kind] += r.up
		down[kind] += r.down
	}
	t.UpOK, t.DownOK = ratio(float64(up[0]), float64(t.Served)), ratio(float64(down[0]), float64(t.Served))
	t.UpNo, t.DownNo = ratio(float64(up[1]), float64(t.Refused)), ratio(float64(down[1]), float64(t.Refused))
}

func describe(r reply) string {
	switch {
	case r.whole:
		return "200"
	case r.late:
		return "late"
	case r.status == 0:
		return "broken"
	case r.status == http.StatusOK:
		return "200 cut short"
	}
	return fmt.Sprint(r.status)
}
