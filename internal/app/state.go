package app

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/telemetry"
	"github.com/hourthree/hourthree/internal/workload"
)

// state is the router as the operator sees it.
func (a *App) state(now time.Time) admin.State {
	l := a.current.Load()
	s := admin.State{
		At: now, Version: a.opt.Version, Config: l.source, ConfigID: l.id, Loaded: l.at, Draining: a.draining.Load(),
		InFlight: a.gateway.InFlight(), Queued: a.queued(), Reserved: a.gateway.Ledger.Reserved(), Limit: a.gateway.Ledger.Limit(),
	}
	if r := a.refused.Load(); r != nil {
		s.Refused = *r
	}
	for _, p := range l.config.Providers {
		s.Simulated = s.Simulated || p.Type == "simulated"
	}
	s.Targets = a.shownTargets(now)
	for _, w := range a.builder.workloadsInForce() {
		s.Workloads = append(s.Workloads, w.State(now))
	}
	snapshot, pins := a.unpinned()
	for name, m := range snapshot.Models {
		ms := admin.ModelState{Name: name, Pinned: pins[name]}
		for _, e := range m.Entries {
			ms.Targets = append(ms.Targets, e.Spec().Name)
		}
		switch {
		case m.Message != "":
			ms.Degraded = "message"
		case m.Fallback != nil:
			ms.Degraded = "model " + m.Fallback.Name
		}
		s.Models = append(s.Models, ms)
	}
	sortModels(s.Models)
	s.Changes, s.Actions = a.changes(), a.actions(now).InForce
	return s
}

// reading is the same for the metrics.
func (a *App) reading(now time.Time) telemetry.Reading {
	r := telemetry.Reading{
		Reserved: a.gateway.Ledger.Reserved(), MemoryLimit: a.gateway.Ledger.Limit(),
		InFlight: a.gateway.InFlight(), Queued: a.queued(), Outages: a.watch.Open(), Actions: a.actionsInForce(now), SLOs: a.burning(),
	}
	for _, s := range a.shownTargets(now) {
		tr := telemetry.TargetReading{Name: s.Name, Phase: s.PhaseNumber, InFlight: s.InFlight, SuccessShare: s.Success, BudgetTokens: s.Budget.Tokens, Steered: s.Steered}
		if s.CoolUntil != nil {
			tr.Cooling = s.CoolUntil.Sub(now).Seconds()
		}
		r.Targets = append(r.Targets, tr)
	}
	for _, w := range a.builder.workloadsInForce() {
		s := w.State(now)
		r.Workloads = append(r.Workloads, telemetry.WorkloadReading{Name: s.Name, In: s.In, Out: s.Out, BudgetTokens: s.Budget.Tokens, Quarantined: s.Lane.Lane == workload.Quarantine, Refused: s.Refused, Memory: s.Memory})
	}
	return r
}

func (a *App) queued() int64 {
	n, _ := a.gateway.Line.Waiting()
	return int64(n)
}

func queueOf(c *config.Config) queue.Config {
	q := c.Defaults.Queue
	return queue.Config{Length: q.Length, Bytes: q.Bytes.Bytes(), Wait: q.Wait.Duration()}
}

// welcome tells a person what is running and how to try it.
func (a *App) welcome() {
	l := a.current.Load()
	out := a.opt.Stdout
	for _, note := range l.notes {
		fmt.Fprintln(out, note)
	}
	base := "http://" + reachable(a.clientAddr)
	operator := "http://" + reachable(a.adminAddr)
	if a.certificate != nil {
		operator = "https://" + reachable(a.adminAddr)
	}
	fmt.Fprintf(out, "\nHourthree %s serves %s\n  dashboard    %s/\n  metrics      %s/metrics\n\n", a.opt.Version, base, operator, operator)
	model := firstModel(a)
	key := ""
	if len(l.config.Workloads) > 0 {
		key = " -H \"Authorization: Bearer $KEY\""
	}
	fmt.Fprintf(out, "Try it:\n\n  curl -s %s/v1/chat/completions%s -H 'Content-Type: application/json' -d '{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'\n\n", base, key, model)
}

func firstModel(a *App) string {
	models := a.state(time.Now()).Models
	if len(models) > 0 {
		return models[0].Name
	}
	return "gpt-5"
}

// reachable shows an address as a client on this machine would write it.
func reachable(addr net.Addr) string {
	s := addr.String()
	for _, any := range []string{"0.0.0.0:", "[::]:"} {
		if port, ok := strings.CutPrefix(s, any); ok {
			return "127.0.0.1:" + port
		}
	}
	return s
}
