package workload

import (
	"maps"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
)

// limitModels puts the limits for single models in force. The lock is held, or
// the workload is new. A model that has no limit any more keeps its limiter:
// requests are inside.
func (w *Workload) limitModels(limits map[string]admit.Limits) {
	for name, l := range w.perModel {
		l.Reconfigure(limits[name])
	}
	for name, l := range limits {
		if w.perModel[name] == nil && l.Any() {
			if w.perModel == nil {
				w.perModel = map[string]*admit.Limiter{}
			}
			w.perModel[name] = admit.NewLimiter(admit.OfWorkloadModel, l)
		}
	}
}

// ForModel holds the workload to its limits for one model, nil for none.
func (w *Workload) ForModel(model string) *admit.Limiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.perModel[model]
}

// Models are the models that the workload has or had limits for.
func (w *Workload) Models() map[string]*admit.Limiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.perModel)
}

// Limiters are those of the workload and of the key, as far as there are any.
// They depend on nothing but the key.
func (k *Key) Limiters() [admit.MaxLimits]*admit.Limiter {
	return [admit.MaxLimits]*admit.Limiter{k.Workload.limiter, k.limiter}
}

// Estimate is what a request is likely to cost: the tokens of its body, and of
// the answer, of which the caller allows at most limit, 0 for any number.
func (w *Workload) Estimate(bytes, limit int64) (input, output int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens.Input(bytes), w.tokens.Output(limit)
}

// Learn takes note of what a request has really cost.
func (w *Workload) Learn(bytes, input, output int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens.Learn(bytes, input, output)
}

// Admit asks for a ticket: for the limits of the workload and of the key, and
// for memory, before a byte of the body is read. tokens is what the request is
// estimated to cost.
func (k *Key) Admit(now time.Time, l *admit.Ledger, bytes, tokens int64) (*admit.Ticket, admit.Refusal) {
	claim := k.claim()
	if claim.Strict && claim.Share == 0 {
		return nil, admit.Refusal{Reason: ReasonQuarantine, Wait: time.Minute}
	}
	return l.Admit(admit.Ask{Now: now, Bytes: bytes, Tokens: tokens, Claim: claim, Limits: k.Limiters()})
}

// Standing is how the workload stands with its own limits.
func (w *Workload) Standing(now time.Time) admit.Standing { return w.limiter.Standing(now) }

// Standing is how the key stands with the limits that it has for itself.
func (k *Key) Standing(now time.Time) admit.Standing { return k.limiter.Standing(now) }
