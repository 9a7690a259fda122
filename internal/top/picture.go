// Package top shows in a terminal what the operator's listener of a router tells:
// whether it is us or them, what is wrong and who is suspected, every target and
// workload, the actions in force and the rollout. It only reads, and decides nothing.
//
// Draw is pure: a picture and a view make the text of a screen. Reading and the loop
// around it are not. Nothing here is safe for concurrent use but what Read returns,
// which is not changed any more.
package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/steer"
)

// ErrAbsent is the error of a path that a router does not serve: its part is not shown.
var ErrAbsent = errors.New("not served")

// Get reads a path of the operator's listener.
type Get func(ctx context.Context, path string) ([]byte, error)

// Picture is what was read at one time. What is not served is nil.
type Picture struct {
	Router  string // its address
	At      time.Time
	State   *State // nil until the router has answered once
	Outages []Outage
	Totals  *Window // of the last minute
	Verdict *Verdict
	SLOs    []SLO
	Actions *[]steer.Action
	Rollout *rollout.Status
	Rates   map[string]Rates // by workload, since the picture before; without those that are not known
	LostAt  time.Time        // since when the router does not answer, zero while it does
	LostWhy string
}

// State is what is shown of /api/v1/state. Of a router of another version only what
// it has is there.
type State struct {
	At       time.Time `json:"at"`
	Version  string    `json:"version"`
	ConfigID string    `json:"config_id"`
	Refused  string    `json:"config_refused"`
	Draining bool      `json:"draining"`
	InFlight int64     `json:"in_flight"`
	Queued   int64     `json:"queued"`
	Reserved int64     `json:"memory_reserved_bytes"`
	Limit    int64     `json:"memory_limit_bytes"`
	Targets  []Target  `json:"targets"`

	Workloads []Workload `json:"workloads"`
}

// Target is a line of the targets.
type Target struct {
	Name     string     `json:"name"`
	Domain   string     `json:"domain"`
	Breaker  string     `json:"breaker"`
	Success  float64    `json:"success_share"`
	InFlight int        `json:"in_flight"`
	Limit    int        `json:"concurrency_limit"`
	Drained  bool       `json:"drained"`
	Cool     *time.Time `json:"cool_down_until"`
	CoolKind string     `json:"cool_down_kind"`
	Window   struct {
		Share     float64    `json:"ramp_share"`
		OpenUntil *time.Time `json:"open_until"`
		Forced    string     `json:"forced"`
		OK        int        `json:"ok"`
		Failed    int        `json:"failed"`
		Slow      int        `json:"slow"`
	} `json:"window"`
}

// Workload is a line of the workloads.
type Workload struct {
	Name     string  `json:"name"`
	Priority string  `json:"priority"`
	Inbound  int64   `json:"inbound"`
	Attempts int64   `json:"attempts"`
	Refused  int64   `json:"refused_repeats"`
	Unread   int64   `json:"refused_unread"`
	InFlight int64   `json:"in_flight"`
	In       float64 `json:"amplification_in"`
	Out      float64 `json:"amplification_out"`
	Lane     struct {
		Name string `json:"name"`
		By   string `json:"by"`
	} `json:"lane"`
}

// Outage is what is shown of an outage.
type Outage struct {
	ID       string     `json:"id"`
	State    string     `json:"state"`
	Words    string     `json:"words"`
	Onset    time.Time  `json:"onset"`
	Ended    *time.Time `json:"ended"`
	Waves    int        `json:"waves"`
	Scope    []Subject  `json:"scope"`
	Suspects []Suspect  `json:"suspects"`
	Changes  []Suspect  `json:"changes"`
}

// Subject is what something is about.
type Subject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Suspect may be the source of an outage.
type Suspect struct {
	Subject
	Score float64 `json:"score"`
	Text  string  `json:"text"`
}

// Verdict is the first sentence of the dashboard: whether it is us or them.
type Verdict struct {
	Who  string `json:"who"`
	Head string `json:"head"`
	Text string `json:"text"`
}

// SLO is how an objective stands.
type SLO struct {
	Name      string  `json:"name"`
	Model     string  `json:"model"`
	Workload  string  `json:"workload"`
	Objective float64 `json:"objective"`
	Window    string  `json:"window"`
	Good      int64   `json:"good"`
	Bad       int64   `json:"bad"`
	Left      float64 `json:"budget_left"`
	Burning   string  `json:"burning"`
	Burns     []struct {
		Window string  `json:"window"`
		Rate   float64 `json:"burn_rate"`
	} `json:"burns"`
}

// Window is what happened in a stretch of time, a second; nil where nothing is known.
type Window struct {
	Name      string `json:"name"`
	PerSecond *struct {
		Offered  float64 `json:"offered"`
		Goodput  float64 `json:"goodput"`
		Attempts float64 `json:"attempts"`
		Refused  float64 `json:"refused"`
		Degraded float64 `json:"degraded"`
		Failed   float64 `json:"failed"`
	} `json:"per_second"`
}

// Rates are a second.
type Rates struct{ Inbound, Attempts, Refused float64 }

// Once reads a picture, or says why there is none.
func Once(ctx context.Context, get Get, before *Picture, now time.Time) (*Picture, error) {
	p := &Picture{Router: before.Router, At: now}
	if err := p.read(ctx, get); err != nil {
		return nil, err
	}
	p.rates(before)
	return p, nil
}

// Read reads a picture. Of a router that does not answer the one before is kept, with
// since when and why.
func Read(ctx context.Context, get Get, before *Picture, now time.Time) *Picture {
	p, err := Once(ctx, get, before, now)
	if err != nil {
		lost := *before
		if lost.LostAt.IsZero() {
			lost.LostAt = now
		}
		lost.LostWhy = err.Error()
		return &lost
	}
	return p
}

func (p *Picture) read(ctx context.Context, get Get) error {
	p.State = &State{}
	if err := into(ctx, get, "/api/v1/state", p.State); err != nil {
		return err
	}
	var outages struct {
		Outages []Outage `json:"outages"`
	}
	var actions struct {
		InForce []steer.Action `json:"in_force"`
	}
	var totals struct {
		Windows []Window `json:"windows"`
	}
	var r rollout.Status
	var v Verdict
	var slos struct {
		SLOs []SLO `json:"slos"`
	}
	for _, part := range []struct {
		path string
		into any
		then func()
	}{
		{"/api/v1/outages", &outages, func() { p.Outages = outages.Outages }},
		{"/api/v1/verdict", &v, func() {
			if v.Text != "" {
				p.Verdict = &v
			}
		}},
		{"/api/v1/slos", &slos, func() { p.SLOs = slos.SLOs }},
		{"/api/v1/history/totals", &totals, func() { p.Totals = minute(totals.Windows) }},
		{"/api/v1/actions", &actions, func() { p.Actions = &actions.InForce }},
		{"/api/v1/rollout", &r, func() {
			if r.Version != "" {
				p.Rollout = &r
			}
		}},
	} {
		err := into(ctx, get, part.path, part.into)
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return err
		}
		part.then()
	}
	return nil
}

func into(ctx context.Context, get Get, path string, v any) error {
	text, err := get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s is not understood: %w; is it a router of this version?", path, err)
	}
	return nil
}

func minute(ws []Window) *Window {
	for i := range ws {
		if ws[i].Name == "1m" && ws[i].PerSecond != nil {
			return &ws[i]
		}
	}
	return nil
}

// rates are what has come since the picture before. A count that has fallen is of a
// router that was started again: nothing is known then.
func (p *Picture) rates(before *Picture) {
	p.Rates = map[string]Rates{}
	if before.State == nil {
		return
	}
	seconds := p.State.At.Sub(before.State.At).Seconds()
	if seconds <= 0 {
		p.Rates = before.Rates
		return
	}
	then := map[string]Workload{}
	for _, w := range before.State.Workloads {
		then[w.Name] = w
	}
	for _, w := range p.State.Workloads {
		b, ok := then[w.Name]
		if !ok || w.Inbound < b.Inbound || w.Attempts < b.Attempts || w.Refused+w.Unread < b.Refused+b.Unread {
			continue
		}
		p.Rates[w.Name] = Rates{
			Inbound: float64(w.Inbound-b.Inbound) / seconds, Attempts: float64(w.Attempts-b.Attempts) / seconds,
			Refused: float64(w.Refused+w.Unread-b.Refused-b.Unread) / seconds,
		}
	}
}

// open are the outages that have not ended.
func (p *Picture) open() (out []Outage) {
	for _, o := range p.Outages {
		if o.Ended == nil {
			out = append(out, o)
		}
	}
	return out
}
