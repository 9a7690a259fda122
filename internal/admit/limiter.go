package admit

import (
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/limit"
)

// Limits are what a workload, one of its keys or a model may use. Zero means
// unlimited.
type Limits struct {
	RPM         int64 // requests a minute
	TPM         int64 // tokens a minute, estimated on entry and settled at the end
	Concurrency int   // requests at once, to the end of their answers
	USDPerDay   Money // for a day of UTC, reserved by estimate and settled likewise
}

// Any reports that there is a limit.
func (l Limits) Any() bool { return l != Limits{} }

// Owner is whose limits a Limiter holds.
type Owner string

// The owners. OfModel is all callers of a model, OfWorkloadModel one workload's
// use of it.
const (
	OfWorkload      Owner = "workload"
	OfKey           Owner = "key"
	OfModel         Owner = "model"
	OfWorkloadModel Owner = "workload_model"
)

// The reasons of a Refusal.
const (
	ReasonConcurrency = "concurrency"
	ReasonRPM         = "rpm"
	ReasonTPM         = "tpm"
	ReasonUSD         = "usd_per_day"
)

// Refusal says which limit refused, and after how long it may not.
type Refusal struct {
	Owner  Owner // whose limit; "" for what is nobody's
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

// Limiter holds one owner to its limits. It is safe for concurrent use.
type Limiter struct {
	owner Owner

	mu     sync.Mutex
	limits Limits
	calls  limit.Concurrency
	rpm    *limit.GCRA
	tpm    *limit.GCRA
	money  limit.Daily
	rates  rates
}

// rates count how often rpm and tpm were replaced.
type rates struct{ rpm, tpm uint16 }

// NewLimiter returns a limiter that has not been used yet.
func NewLimiter(owner Owner, limits Limits) *Limiter {
	l := &Limiter{owner: owner}
	l.Reconfigure(limits)
	return l
}

// Reconfigure changes the limits. Requests inside and money spent stay counted,
// and a rate that does not change keeps its state.
func (l *Limiter) Reconfigure(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limits.RPM != l.limits.RPM {
		l.rates.rpm++
		l.rpm = limit.NewGCRA(limits.RPM, burst(limits.RPM, leastBurst))
	}
	if limits.TPM != l.limits.TPM {
		l.rates.tpm++
		l.tpm = limit.NewGCRA(limits.TPM, burst(limits.TPM, leastTokens))
	}
	l.calls.Limit, l.money.Limit = limits.Concurrency, int64(limits.USDPerDay)
	l.limits = limits
}

func burst(perMinute, least int64) int64 {
	return max(perMinute/burstShare, min(perMinute, least))
}

// Limits are those in force.
func (l *Limiter) Limits() Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits
}

// Enter asks for one request of about tokens tokens. What it will cost is not
// known yet: it is refused where no money is left at all. A refused request has
// used nothing up.
func (l *Limiter) Enter(now time.Time, tokens int64) (p Permit, refusal Refusal, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.calls.Free() {
		return p, l.refuse(ReasonConcurrency, fullWait), false
	}
	if wait, ok := l.money.Peek(now); !ok {
		return p, l.refuse(ReasonUSD, wait), false
	}
	if wait, ok := l.rpm.Peek(now, 1); !ok {
		return p, l.refuse(ReasonRPM, wait), false
	}
	if wait, ok := l.tpm.Take(now, tokens); !ok {
		return p, l.refuse(ReasonTPM, wait), false
	}
	l.rpm.Take(now, 1)
	l.calls.Acquire()
	return Permit{limiter: l, rates: l.rates, metered: l.limits.TPM > 0 || l.limits.USDPerDay > 0, reserved: Use{Tokens: tokens}}, Refusal{}, true
}

func (l *Limiter) refuse(reason string, wait time.Duration) Refusal {
	return Refusal{Owner: l.owner, Reason: reason, Wait: wait}
}

// Permit is one request's place inside a Limiter. It belongs to one ticket and
// is not copied once it is there; the zero value is a place nowhere.
type Permit struct {
	limiter  *Limiter
	reserved Use
	day      int32 // on which the money was reserved
	metered  bool  // tokens or money count
	// rates that were charged: one that a reload has put in its place is not given
	// back what it never took.
	rates rates
}

// Revise replaces the estimate, once more is known of the request. Where there
// is no room for a larger one, the old one stays.
func (p *Permit) Revise(now time.Time, use Use) (Refusal, bool) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait, ok := p.reserve(now, use.Cost); !ok {
		return l.refuse(ReasonUSD, wait), false
	}
	if l.tpm == nil || p.rates.tpm != l.rates.tpm || p.reserved.Tokens == use.Tokens {
		return Refusal{}, true
	}
	before := *l.tpm
	l.tpm.Settle(now, p.reserved.Tokens, 0)
	if wait, ok := l.tpm.Take(now, use.Tokens); !ok {
		*l.tpm = before
		return l.refuse(ReasonTPM, wait), false
	}
	p.reserved.Tokens = use.Tokens
	return Refusal{}, true
}

// reserve asks for the money. The lock is held.
func (p *Permit) reserve(now time.Time, cost Money) (time.Duration, bool) {
	l := p.limiter
	if cost == 0 && p.reserved.Cost == 0 && l.money.Limit <= 0 {
		return 0, true
	}
	l.money.Settle(now, int64(p.day), int64(p.reserved.Cost), 0)
	wait, ok := l.money.Take(now, int64(cost))
	if p.reserved.Cost = 0; ok {
		p.reserved.Cost, p.day = cost, int32(limit.Day(now))
	}
	return wait, ok
}

// Leave gives the place back and replaces the estimate by what was really used.
// Only the first call counts.
func (p *Permit) Leave(now time.Time, use Use) { p.end(now, use, false) }

// Undo gives everything back: the request did not come in after all.
func (p *Permit) Undo(now time.Time) { p.end(now, Use{}, true) }

func (p *Permit) end(now time.Time, use Use, undo bool) {
	l := p.limiter
	if l == nil {
		return
	}
	p.limiter = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls.Release()
	if undo && p.rates.rpm == l.rates.rpm {
		l.rpm.Settle(now, 1, 0)
	}
	if p.rates.tpm == l.rates.tpm {
		l.tpm.Settle(now, p.reserved.Tokens, use.Tokens)
	}
	if use.Cost == 0 && p.reserved.Cost == 0 {
		return
	}
	if p.reserved.Cost == 0 {
		p.day = int32(limit.Day(now))
	}
	l.money.Settle(now, int64(p.day), int64(p.reserved.Cost), int64(use.Cost))
}

// Rate is how much of a rate is left.
type Rate = limit.Level

// Binding is what is left of the tightest limit of requests and of that of
// tokens; one with a rate of 0 where there is none. Limiters may be nil.
func Binding(now time.Time, limiters ...*Limiter) (requests, tokens Rate) {
	for _, l := range limiters {
		if l == nil {
			continue
		}
		r, t := l.left(now)
		requests, tokens = tighter(requests, r), tighter(tokens, t)
	}
	return requests, tokens
}

func (l *Limiter) left(now time.Time) (requests, tokens Rate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rpm == nil && l.tpm == nil {
		return requests, tokens
	}
	return l.rpm.Level(now), l.tpm.Level(now)
}

func tighter(a, b Rate) Rate {
	if a.PerMinute == 0 || b.PerMinute > 0 && (b.Left < a.Left || b.Left == a.Left && b.PerMinute < a.PerMinute) {
		return b
	}
	return a
}

// Standing is how an owner stands with its limits.
type Standing struct {
	Limits   Limits
	InFlight int
	Requests limit.Level
	Tokens   limit.Level
	Spent    Money // today, with what is reserved
}

// Standing reports the limiter at now. A nil limiter limits nothing.
func (l *Limiter) Standing(now time.Time) Standing {
	if l == nil {
		return Standing{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return Standing{
		Limits: l.limits, InFlight: l.calls.InFlight(), Requests: l.rpm.Level(now), Tokens: l.tpm.Level(now), Spent: Money(l.money.Used(now)),
	}
}
