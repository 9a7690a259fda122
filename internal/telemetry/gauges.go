package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reading is the state that is measured when somebody asks, rather than
// counted as it happens.
type Reading struct {
	Reserved, MemoryLimit int64
	InFlight, Queued      int64
	Outages               int            // that have not ended
	Actions               map[string]int // of operators, in force, by kind
	Targets               []TargetReading
	Workloads             []WorkloadReading
}

// TargetReading is one target's gauges.
type TargetReading struct {
	Name         string
	Phase        int // 0 closed, 1 ramp, 2 half-open, 3 open
	InFlight     int
	SuccessShare float64
	Steered      string  // what an operator has ordered of it, "" for nothing
	Cooling      float64 // seconds until the cool-down ends, 0 for none
	BudgetTokens float64
}

// WorkloadReading is one workload's gauges.
type WorkloadReading struct {
	Name         string
	In, Out      float64 // amplification
	BudgetTokens float64
	Quarantined  bool
	Refused      int64 // repeats refused since the start
	Memory       int64 // bytes held
}

type gauges struct {
	read func(time.Time) Reading

	phase, calls, share, cooling, budget, amplification *prometheus.Desc
	reserved, limit, inflight, queue, outages           *prometheus.Desc
	quarantined, refused, held, actions, steered        *prometheus.Desc
}

// Gauges registers the gauges; read is called on every scrape.
func Gauges(reg prometheus.Registerer, read func(time.Time) Reading) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("hourthree_"+name, help, labels, nil)
	}
	reg.MustRegister(&gauges{
		read:          read,
		phase:         desc("breaker_state", "0 closed, 1 ramp, 2 half-open, 3 open.", "target"),
		calls:         desc("target_inflight", "Upstream calls in flight.", "target"),
		share:         desc("target_success_ratio", "Smoothed share of successes over 60 s.", "target"),
		cooling:       desc("target_cool_down_seconds", "Time left of the longest cool-down.", "target"),
		budget:        desc("retry_budget_tokens", "Extra attempts that the retry allowance has left.", "scope", "name"),
		amplification: desc("amplification_ratio", "Inbound per distinct request (in), upstream calls per inbound request (out).", "workload", "side"),
		reserved:      desc("memory_reserved_bytes", "Bytes of the memory budget in use."),
		limit:         desc("memory_limit_bytes", "The memory budget."),
		inflight:      desc("inflight", "Client requests being served."),
		quarantined:   desc("workload_quarantined", "1 for a workload in the quarantine lane.", "workload"),
		refused:       desc("refused_repeats_total", "Repeats of a caller's own retry loop that were refused.", "workload"),
		held:          desc("workload_memory_bytes", "Bytes of the memory budget that a workload holds.", "workload"),
		outages:       desc("incidents_open", "Outages that were noticed and are not called over."),
		actions:       desc("actions_in_force", "Actions of operators in force: drain, force-open, force-closed, quarantine, shed, budget, pin.", "kind"),
		steered:       desc("target_held", "1 for a target that an operator has drained or whose breaker is held, which its state is not to be read without.", "target"),
		queue:         desc("queue_length", "Requests waiting for a target's slot."),
	})
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.phase, g.calls, g.share, g.cooling, g.budget, g.amplification, g.reserved, g.limit, g.inflight, g.queue, g.outages, g.quarantined, g.refused, g.held, g.actions, g.steered} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	r := g.read(time.Now())
	put(g.reserved, float64(r.Reserved))
	put(g.limit, float64(r.MemoryLimit))
	put(g.inflight, float64(r.InFlight))
	put(g.queue, float64(r.Queued))
	put(g.outages, float64(r.Outages))
	for kind, n := range r.Actions {
		put(g.actions, float64(n), kind)
	}
	for _, t := range r.Targets {
		put(g.steered, boolean(t.Steered != ""), t.Name)
		put(g.phase, float64(t.Phase), t.Name)
		put(g.calls, float64(t.InFlight), t.Name)
		put(g.share, t.SuccessShare, t.Name)
		put(g.cooling, t.Cooling, t.Name)
		put(g.budget, t.BudgetTokens, "target", t.Name)
	}
	for _, w := range r.Workloads {
		put(g.amplification, w.In, w.Name, "in")
		put(g.amplification, w.Out, w.Name, "out")
		put(g.budget, w.BudgetTokens, "workload", w.Name)
		put(g.held, float64(w.Memory), w.Name)
		put(g.quarantined, boolean(w.Quarantined), w.Name)
		ch <- prometheus.MustNewConstMetric(g.refused, prometheus.CounterValue, float64(w.Refused), w.Name)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
