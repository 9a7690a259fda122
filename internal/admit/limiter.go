package admit

import (
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/limit"
)

// Limits are what a workload may use. Zero means unlimited.
type Limits struct {
	RPM         int64 // requests a minute
	TPM         int64 // tokens a minute, estimated on entry and settled at the end
	Concurrency int   // requests at once, to the end of their answers
}

// The reasons of a Refusal.
const (
	ReasonConcurrency = "concurrency"
	ReasonRPM         = "rpm"
	ReasonTPM         = "tpm"
)

// Refusal says which limit refused, and after how long it may not.
type Refusal struct {
	Reason string
	Wait   time.Duration // > 0
}

// A workload may use a tenth of its minute at once, and never less than this:
// otherwise a small limit would refuse what a person does in one go.
const (
	burstShare  = 10
	leastBurst  = 10     // requests
	leastTokens = 16_384 // one ordinary long prompt
	// fullWait is the wait advised when all slots are taken. Nothing tells
	// when one becomes free.
	fullWait = time.Second
)

// Limiter holds one workload to its limits. It is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex
	limits Limits
	calls  limit.Concurrency
	rpm    *limit.GCRA
	tpm    *limit.GCRA
}

// NewLimiter returns a limiter that has not been used yet.
func NewLimiter(limits Limits) *Limiter {
	l := new(Limiter)
	l.Reconfigure(limits)
	return l
}

// Reconfigure changes the limits. Requests inside stay counted, and a rate
// that does not change keeps its state.
func (l *Limiter) Reconfigure(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limits.RPM != l.limits.RPM {
		l.rpm = limit.NewGCRA(limits.RPM, burst(limits.RPM, leastBurst))
	}
	if limits.TPM != l.limits.TPM {
		l.tpm = limit.NewGCRA(limits.TPM, burst(limits.TPM, leastTokens))
	}
	l.calls.Limit = limits.Concurrency
	l.limits = limits
}

func burst(perMinute, least int64) int64 {
	return max(perMinute/burstShare, min(perMinute, least))
}

// Enter asks for one request of about tokens tokens. It returns a permit, or
// nil and the reason; a refused request has used nothing up.
func (l *Limiter) Enter(now time.Time, tokens int64) (*Permit, Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.calls.Free() {
		return nil, Refusal{Reason: ReasonConcurrency, Wait: fullWait}
	}
	if wait, ok := l.rpm.Peek(now, 1); !ok {
		return nil, Refusal{Reason: ReasonRPM, Wait: wait}
	}
	if wait, ok := l.tpm.Take(now, tokens); !ok {
		return nil, Refusal{Reason: ReasonTPM, Wait: wait}
	}
	l.rpm.Take(now, 1)
	l.calls.Acquire()
	return &Permit{limiter: l, tokens: tokens}, Refusal{}
}

// Permit is one request's place inside a Limiter.
type Permit struct {
	limiter *Limiter
	tokens  int64
	left    bool // guarded by limiter.mu
}

// Leave gives the place back and replaces the estimated tokens by the real
// ones; a negative number keeps the estimate. Only the first call counts, and
// a nil permit has nothing to give back.
func (p *Permit) Leave(now time.Time, tokens int64) {
	if p != nil {
		p.end(now, tokens, 0)
	}
}

// Undo gives everything back: the request did not come in after all.
func (p *Permit) Undo(now time.Time) {
	if p != nil {
		p.end(now, 0, 1)
	}
}

func (p *Permit) end(now time.Time, tokens, requests int64) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	l.calls.Release()
	l.rpm.Settle(now, requests, 0)
	if tokens >= 0 {
		l.tpm.Settle(now, p.tokens, tokens)
	}
}
