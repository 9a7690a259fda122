// Package workload knows who is calling: it maps an API key to a workload,
// and holds each workload's own state (limits, retry allowance, counts).
// Keys are kept and compared as SHA-256 digests only; the plain key is not
// stored. A Directory is immutable and is replaced whole on reload, while a
// workload of the same name keeps its state.
package workload

import (
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/learn"
	"github.com/hourthree/hourthree/internal/queue"
)

// Open is the name of the one workload that serves everybody when no
// workload is configured.
const Open = "open"

// Spec is the configured part of a workload.
type Spec struct {
	Name     string
	Keys     []string // plain, or "sha256:" and 64 hex digits
	Models   []string // allowed models; empty allows all
	Priority queue.Priority
	Limits   admit.Limits
	// KeyLimits are what each key has for itself, ModelLimits what the workload
	// may use of one model.
	KeyLimits   admit.Limits
	ModelLimits map[string]admit.Limits
	// Foremost says that no workload matters more: nothing is left for another.
	Foremost bool
	// Sharing is how many workloads share the memory, this one included.
	Sharing int
	Budget  budget.Config
}

// Workload is one caller. It is safe for concurrent use.
type Workload struct {
	name    string
	limiter *admit.Limiter // has its own lock
	memory  admit.Holder   // likewise

	mu       sync.Mutex
	spec     Spec
	models   map[string]bool
	perModel map[string]*admit.Limiter // of models that have or had limits
	tokens   learn.Tokens
	budget   *budget.Budget
	repeats  repeats
	lane     Placement
	inbound  int64 // requests that came in
	again    int64 // of these, repeats by the caller's own retry loop
	refused  int64 // of those, refused for being one too many
	unread   int64 // requests refused because many bodies were those of such
	attempts int64 // upstream calls made for it
	inflight int64
}

// New returns a workload without history.
func New(spec Spec) *Workload {
	w := &Workload{name: spec.Name, limiter: admit.NewLimiter(admit.OfWorkload, spec.Limits), budget: budget.New(spec.Budget)}
	w.apply(spec)
	return w
}

// Reconfigure replaces the configured part and keeps the state.
func (w *Workload) Reconfigure(spec Spec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget.Reconfigure(spec.Budget)
	w.limiter.Reconfigure(spec.Limits)
	w.apply(spec)
}

func (w *Workload) apply(spec Spec) {
	w.spec = spec
	if w.lane.Lane == "" {
		w.lane.Lane = Normal
	}
	w.limitModels(spec.ModelLimits)
	w.models = nil
	if len(spec.Models) > 0 {
		w.models = make(map[string]bool, len(spec.Models))
		for _, m := range spec.Models {
			w.models[m] = true
		}
	}
}

// Name is the configured name.
func (w *Workload) Name() string { return w.name }

// Allows reports whether the workload may use the model.
func (w *Workload) Allows(model string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.models == nil || w.models[model]
}

// Priority is how much its requests matter.
func (w *Workload) Priority() queue.Priority {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spec.Priority
}

// Restricted reports that the workload may use some models only.
func (w *Workload) Restricted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.models != nil
}

// End counts the request out, with the upstream calls made for it.
func (w *Workload) End(attempts int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inflight--
	w.attempts += int64(attempts)
}

// Request tells the allowance that a first attempt began.
func (w *Workload) Request(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget.Request(now)
}

// Take spends one token on an extra attempt.
func (w *Workload) Take(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.budget.Take(now)
}

// Refund gives the token back: the attempt was not made.
func (w *Workload) Refund(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget.Refund(now)
}

// Wide reports that evidence has widened the workload's retry ratio.
func (w *Workload) Wide(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.budget.Wide(now)
}

// Scale multiplies the allowance, as an operator has ordered; 1 is as configured.
func (w *Workload) Scale(factor float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget.Scale(factor)
}

// Settle tells the allowance how an attempt ended.
func (w *Workload) Settle(now time.Time, r budget.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget.Settle(now, r)
}

// State is one workload as an operator sees it.
type State struct {
	Name     string          `json:"name"`
	Priority string          `json:"priority,omitempty"`
	Inbound  int64           `json:"inbound"`
	Repeats  int64           `json:"inbound_repeats"`
	Refused  int64           `json:"refused_repeats"`
	Unread   int64           `json:"refused_unread"`
	Lane     Placement       `json:"lane"`
	Attempts int64           `json:"attempts"`
	InFlight int64           `json:"in_flight"`
	Memory   int64           `json:"memory_bytes"`
	In       float64         `json:"amplification_in"`  // inbound per distinct request, in the last minute
	Out      float64         `json:"amplification_out"` // attempts per inbound request
	Budget   budget.Snapshot `json:"retry_budget"`
}

// State reports the workload at now.
func (w *Workload) State(now time.Time) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{
		Name: w.name, Priority: w.spec.Priority.String(), Inbound: w.inbound, Repeats: w.again, Refused: w.refused, Unread: w.unread,
		Attempts: w.attempts, InFlight: w.inflight, In: w.repeats.window.Traffic(now).Amplification(), Budget: w.budget.Snapshot(now),
		Lane: w.lane, Memory: w.memory.Bytes(),
	}
	if done := w.inbound - w.inflight; done > 0 {
		s.Out = float64(w.attempts) / float64(done)
	}
	return s
}
