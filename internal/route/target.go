package route

import (
	"math"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/learn"
	"github.com/hourthree/hourthree/internal/limit"
)

// Limits are what a target may be sent. Zero means unlimited.
type Limits struct {
	RPM         int64 // requests a minute
	TPM         int64 // tokens a minute, estimated at dispatch and settled at the end
	Concurrency int   // calls in flight, held to the end of a stream
}

// Spec is the configured part of a target. A reload replaces it; the state
// beside it stays.
type Spec struct {
	Name     string // "provider/model"
	Provider string
	Model    string // name at the provider; "" sends the requested name
	Region   string
	Domain   string // failure domain
	Limits   Limits
	Breaker  breaker.Config
	Budget   budget.Config
	Bounds   learn.Bounds
}

// Account is what the targets of one provider credential share: a key that
// is refused or has run out of money takes all of them out together.
type Account struct {
	mu   sync.Mutex
	cool limit.CoolDown
}

// Target is one model deployment at one provider, the unit of health. It
// composes the pure policies under one mutex; it does no I/O and starts no
// goroutine. Time and randomness come from the caller.
type Target struct {
	moved func(name string, ts []breaker.Transition) // called without the lock
	freed func(*Target)                              // likewise, behind every settled call

	mu       sync.Mutex
	spec     Spec
	account  *Account
	breaker  *breaker.Breaker
	latency  *learn.Latency
	budget   *budget.Budget
	cool     limit.CoolDown
	slots    limit.Slots
	adapt    limit.Adaptive // what the slots are limited to
	fit      learn.Fit      // of first contents, for adapt
	gaps     learn.Gaps     // of streams, likewise
	callers  learn.Patience // of callers who leave
	hint     limit.Hint
	full     bool       // the last call found no slot
	told     limit.Load // that there was room for when those who wait were last told
	rpm      *limit.GCRA
	tpm      *limit.GCRA
	tokens   time.Time  // when tpm has room for a call that found none
	of       *Target    // whose slots and rates a call takes too, nil for none
	loans    int        // slots that calls of another hold
	waiting  callList   // calls that have no content yet, oldest first
	room     limit.Room // for how many of them
	steering Steering   // what an operator has ordered
	stopping bool
	retired  bool // another stands in its place
}

// NewTarget returns a target in good standing. moved hears every change of
// the breaker's phase, freed of every call that ended; both may be nil.
func NewTarget(spec Spec, account *Account, moved func(string, []breaker.Transition), freed func(*Target)) *Target {
	t := &Target{account: account, moved: moved, freed: freed, steering: Steering{Factor: 1}}
	t.breaker = breaker.New(spec.Breaker)
	t.latency = learn.NewLatency()
	t.budget = budget.New(spec.Budget)
	t.waiting.init()
	t.apply(spec)
	return t
}

// Reconfigure replaces the configured part and keeps health, learned
// latencies, cool-downs and calls in flight. With another account, that is
// with another key, the target's own cool-downs end too: they were the answer
// to the old one.
func (t *Target) Reconfigure(spec Spec, account *Account) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if account != t.account {
		t.account = account
		t.cool.Forget()
		t.hint = limit.Hint{}
	}
	t.breaker.Reconfigure(spec.Breaker)
	t.budget.Reconfigure(spec.Budget)
	t.apply(spec)
}

func (t *Target) apply(spec Spec) {
	if spec.Limits.RPM != t.spec.Limits.RPM || t.rpm == nil {
		t.rpm = requests(spec.Limits.RPM)
	}
	if spec.Limits.TPM != t.spec.Limits.TPM || t.tpm == nil {
		t.tpm = tokens(spec.Limits.TPM)
	}
	t.slots.Configured = spec.Limits.Concurrency
	t.spec = spec
}

// requests is the gate for a quota of requests. At once may go what half a
// second allows, two at least: providers enforce the limit over less than a
// minute. Azure OpenAI looks at 1 s or 10 s and refuses the 11th request in a
// second at 600 a minute (learn.microsoft.com, "Manage Azure OpenAI quota");
// OpenAI says that 60,000 a minute may be enforced as 1,000 a second
// (platform.openai.com, "Rate limits"). Calls that find no room now wait for it
// as for a slot, so the smaller burst refuses little. Never more than 10 s
// allow: of 6 a minute, one.
func requests(perMinute int64) *limit.GCRA {
	return limit.NewGCRA(perMinute, min(perMinute/6, max(2, (perMinute+119)/120)))
}

// tokens is the gate for a quota of tokens. A sixth of a minute may go at once:
// Azure counts them by the minute, and one request may need more than a second
// allows.
func tokens(perMinute int64) *limit.GCRA {
	return limit.NewGCRA(perMinute, perMinute/6)
}

// Spec returns the configured part.
func (t *Target) Spec() Spec {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spec
}

// Why a target refused a call.
type Why uint8

// The refusals. Breaker refusals may be overridden by the all-targets-open
// rule; the others are limits and never are.
const (
	Admitted Why = iota
	WhyBreaker
	WhyCooling    // a limit's refusal is to be waited out
	WhyAccount    // the same, of the account
	WhyCredential // the same, of the key or the name
	WhyFull       // no slot, or no room for the rate that does not come in a moment
	WhyRate       // no room for longer
	WhyDeadline
	WhyBudget
	WhyUnproven // as WhyBudget, but calls are under way that may prove the target healthy
	WhyDrained
	WhyForced // an operator holds the breaker open

	WhyHerd // as WhyFull, while there are slots: nobody is to wait there besides those who do

	// As WhyFull, but there is room for others.
	WhyLarge      // for smaller calls
	WhyShare      // for flows below their share, or without quarantined calls
	WhyLargeShare // the same, or for smaller calls
	WhyLeft       // what is left of the rate is for calls that matter more
)

// Query is what a request needs of a target.
type Query struct {
	Now    time.Time
	Rand   float64 // in [0,1)
	Class  learn.Class
	Tokens int64  // estimated tokens, prompt and answer
	Prompt int64  // those of the prompt alone
	Flow   string // whose call it is, for sharing the slots: the workload's name
	Caller uint64 // which of its callers, where they have no workload of their own
	// Rank is how little the request matters, 0 the most.
	Rank uint8
	// Lane is the share of the slots that quarantined calls may hold together; 0
	// for a call that is not.
	Lane   float64
	Until  time.Time // the request's deadline
	Cancel func(error)
	// Proven asks for a target that is proven healthy, or none.
	Proven bool
	// Need is what the request has besides a target that is not closed.
	Need breaker.Need
	// Patient says that the call takes as long as its caller needs to send the
	// body: it is not judged by how long others took.
	Patient bool
	// Account is what the call is made on; nil for the target's own. They
	// differ when a reload has brought another key meanwhile.
	Account *Account
	// OneAccount says that the model has no other account to make the call on.
	OneAccount bool
	// Only says that the model has no other target and no degraded model: the
	// call is not told to move on when the target opens.
	Only bool
	// Extra says that this is not the request's first attempt. Payer is then
	// the workload's side of the allowance.
	Extra bool
	Payer Payer
}

func (q *Query) caller() learn.Caller { return learn.Caller{Workload: q.Flow, One: q.Caller} }

// Payer is the workload's side of the retry allowance: an extra attempt at a
// target that is not proven healthy takes one token from it and one from the
// target's own budget.
type Payer interface {
	Take(now time.Time) bool
	Refund(now time.Time)
	// Wide reports that evidence has widened the ratio so far that a target
	// may be tried a second time.
	Wide(now time.Time) bool
}

// Call is one attempt's hold on a target: breaker permit, concurrency slot,
// quota reservation. Settle gives all of it back, exactly once.
type Call struct {
	Target   *Target
	Model    string // the target's own model name, "" to send the requested one
	Timeouts learn.Timeouts
	Probe    bool // this call decides over an open target
	Last     bool // admitted although the breaker is not closed
	Divert   bool // an extra attempt that was free

	permit  breaker.Permit
	trial   limit.Admission
	owner   *Account // the account the call is made on
	account limit.Admission
	class   learn.Class
	tokens  int64
	prompt  int64
	caller  learn.Caller
	slot    limit.Slot
	loan    loan
	mark    limit.Mark
	extra   bool
	patient bool
	light   bool    // few others waited when it began
	behind  []Entry // the model's targets, for a first attempt
	start   time.Time
	cancel  func(error)

	prev, next *Call // in Target.waiting
	listed     bool
	settled    bool
	served     bool // the cool-downs know that it was
	left       bool // its caller is gone, it is not
}

// callList is an intrusive ring of calls without content, in start order.
type callList struct {
	root Call
	n    int // the patient ones left out: they wait for their callers
	left int // calls whose caller is gone
}

func (l *callList) init() { l.root.prev, l.root.next = &l.root, &l.root }

func (l *callList) push(c *Call) {
	c.prev, c.next = l.root.prev, &l.root
	c.prev.next, c.next.prev = c, c
	c.listed = true
	if !c.patient {
		l.n++
	}
}

func (l *callList) remove(c *Call) {
	if !c.listed {
		return
	}
	c.prev.next, c.next.prev = c.next, c.prev
	c.prev, c.next, c.listed = nil, nil, false
	if !c.patient {
		l.n--
	}
	if c.left {
		l.left--
	}
}

// oldest is when the first of those counted in n began; zero when there is none.
func (l *callList) oldest() time.Time {
	for c := l.root.next; c != &l.root; c = c.next {
		if !c.patient {
			return c.start
		}
	}
	return time.Time{}
}

func (l *callList) empty() bool { return l.root.next == &l.root }

// Try asks the target for a call. On refusal it tells why and, where that is
// known, when to come back.
func (t *Target) Try(q Query) (*Call, Why, time.Time) {
	return t.admit(q, func(call breaker.Call) (breaker.Permit, Why) {
		switch p, refusal := t.breaker.Acquire(q.Now, call); refusal {
		case breaker.None:
			return p, Admitted
		case breaker.Herd:
			return p, WhyHerd
		default:
			return p, WhyBreaker
		}
	}, false)
}

// TryLastResort asks for a call although the breaker is not closed: no target
// that is has room for it. Limits and cool-downs hold as ever.
func (t *Target) TryLastResort(q Query) (*Call, Why, time.Time) {
	return t.admit(q, func(call breaker.Call) (breaker.Permit, Why) {
		if p, ok := t.breaker.AcquireLastResort(q.Now, call); ok {
			return p, Admitted
		}
		return breaker.Permit{}, WhyBreaker
	}, true)
}

// Room reports that the target's limits leave room for a call, and where the
// rate or a cool-down does not, when it will. Where they do it says when there is
// more, for calls that find none: for large ones, and for those that leave some
// of the rate to others; and when a long cool-down is over.
// It does not say that a call would be admitted: that is for Try.
func (t *Target) Room(now time.Time) (free bool, when time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.roomyAll(now)
}

// roomyAll is that. The lock is held, here and below; that of the one which lends is
// only ever taken under the other's.
func (t *Target) roomyAll(now time.Time) (free bool, when time.Time) {
	free, when = t.roomy(now)
	if t.of != nil && free {
		t.of.mu.Lock()
		lent, later := t.of.roomyAll(now)
		t.of.mu.Unlock()
		if free = lent; !lent || when.IsZero() || !later.IsZero() && later.Before(when) {
			when = later
		}
	}
	return free, when
}

// roomy is Room without what another target lends.
func (t *Target) roomy(now time.Time) (free bool, when time.Time) {
	t.pass(now)
	if !t.slots.Free() {
		return false, time.Time{}
	}
	hinted, _ := t.hint.Ask(now, 1)
	rated, _ := t.rpm.Peek(now, 1)
	spent, _ := t.tpm.Peek(now, 1)
	cooling := t.cooling(now)
	if wait := max(hinted, rated, spent, cooling); wait > 0 && wait <= paced {
		return false, now.Add(wait)
	}
	large, _ := t.hint.Ask(now, math.MaxInt64)
	polite, _ := t.rpm.Peek(now, 1+t.left(limit.Ranks-1))
	return true, soonest(now, large, polite, cooling, t.tokens.Sub(now))
}

// soonest is the first of the waits, of those that there are.
func soonest(now time.Time, waits ...time.Duration) (when time.Time) {
	for _, wait := range waits {
		if at := now.Add(wait); wait > 0 && (when.IsZero() || at.Before(when)) {
			when = at
		}
	}
	return when
}

// left is how much of the rate a call leaves for those that matter more: with a
// few calls a second they would come too late for each, behind work that waits
// for longer. The lock is held.
func (t *Target) left(rank uint8) int64 {
	if t.rpm.Burst() > 1 && t.slots.Preferred(rank) {
		return 1
	}
	return 0
}

// cooling is what is left of the target's and its account's cool-downs. The lock
// is held.
func (t *Target) cooling(now time.Time) time.Duration {
	if t.trusted(now) {
		return 0
	}
	t.account.mu.Lock()
	defer t.account.mu.Unlock()
	return max(t.cool.Reopens(now).Sub(now), t.account.cool.Reopens(now).Sub(now), 0)
}

// crowded reports that another call would wait in the target's own queue.
func (t *Target) crowded(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.room.Crowded(now, t.waiting.n)
}

// So many calls wait at a target that has never answered, the oldest of them for
// so long, when first attempts go elsewhere.
const (
	unprovenCalls = 8
	unprovenWait  = 2 * time.Second
)

// unproven reports that the target may hang from the start: it has answered
// nobody yet and calls pile up there. The breaker sees that only at the age that
// is slow where nothing is known. The lock is held.
func (t *Target) unproven(now time.Time) bool {
	return t.waiting.n >= unprovenCalls && !t.breaker.Answered() && now.Sub(t.waiting.oldest()) >= unprovenWait
}

// busy reports a target whose breaker lets calls in, and which refuses them,
// if at all, for no longer than moments.
func (t *Target) busy(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.steering.Drained || t.breaker.Phase(now) > breaker.Ramp {
		return false
	}
	if t.trusted(now) {
		return true
	}
	until := t.cool.Reopens(now)
	t.account.mu.Lock()
	defer t.account.mu.Unlock()
	if t.cool.Partial(now) || t.account.cool.Partial(now) {
		return false
	}
	if shared := t.account.cool.Reopens(now); shared.After(until) {
		until = shared
	}
	return until.Sub(now) <= moments
}

// again is when a call with a credential that is only refused now and then may
// come back; zero where that is not so.
func (t *Target) again(now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.account.mu.Lock()
	defer t.account.mu.Unlock()
	if until := t.account.cool.Again(now); !until.IsZero() {
		return until
	}
	return t.cool.Again(now)
}

// moments is the longest cool-down of a target that is only busy.
const moments = 10 * time.Second

// paced is the longest wait for a target's rate that is sat out, as long as
// queue.wait allows.
const paced = time.Second

// brief is the longest rest of a limit's cool-down that is sat out; what matters
// most sits out as much as of a rate. All who wait for its end go at once: it is
// not to be many.
const brief = 250 * time.Millisecond

// acquirer asks the breaker.
type acquirer func(breaker.Call) (breaker.Permit, Why)

func (t *Target) admit(q Query, acquire acquirer, last bool) (*Call, Why, time.Time) {
	t.mu.Lock()
	c, why, until := t.admitLocked(q, acquire, last)
	moved := t.after(q.Now)
	t.mu.Unlock()
	t.tell(moved)
	return c, why, until
}

func (t *Target) admitLocked(q Query, acquire acquirer, last bool) (*Call, Why, time.Time) {
	if why, until := t.held(q.Now); why != Admitted {
		return nil, why, until
	}
	if p50, n := t.latency.Quantile(q.Class, 0.5); !q.Patient && n > 0 && q.Now.Add(p50).After(q.Until) {
		return nil, WhyDeadline, time.Time{}
	}
	if !q.Patient && t.callers.Vain(q.Now, q.caller()) {
		return nil, WhyDeadline, time.Time{}
	}
	if why := t.free(q); why != Admitted {
		return nil, why, time.Time{}
	}
	healthy := t.breaker.Healthy(q.Now)
	if q.Proven && !healthy {
		return nil, WhyBudget, time.Time{}
	}
	c := &Call{Target: t, Model: t.spec.Model, class: q.Class, tokens: q.Tokens, prompt: q.Prompt, caller: q.caller(), extra: q.Extra, patient: q.Patient, start: q.Now, cancel: q.Cancel, Last: last}
	c.Timeouts = t.latency.Timeouts(q.Class, t.spec.Bounds)
	if q.Patient {
		c.Timeouts.Slow, c.Timeouts.Silence = max(c.Timeouts.Slow, q.Until.Sub(q.Now)), 0
	}

	// Gates that hand something out come last and are undone in reverse.
	if wait, ok := t.hint.Ask(q.Now, q.Tokens); !ok {
		_, small := t.hint.Ask(q.Now, 1)
		return rated(q.Now, wait, WhyLarge, small)
	}
	if wait, ok := t.rpm.Peek(q.Now, 1+t.left(q.Rank)); !ok {
		_, one := t.rpm.Peek(q.Now, 1)
		return rated(q.Now, wait, WhyLeft, one)
	}
	take(t.rpm, q.Now, 1)
	if wait, ok := take(t.tpm, q.Now, q.Tokens); !ok {
		give(t.rpm, q.Now, 1)
		t.due(q.Now, wait)
		_, small := t.tpm.Peek(q.Now, 1)
		return rated(q.Now, wait, WhyLarge, small)
	}
	why, until := t.borrow(q, &c.loan)
	if why == Admitted {
		why, until = t.gates(q, c, acquire)
	}
	if why == Admitted && q.Extra && !healthy && !t.pay(q) {
		t.release(q.Now, c)
		why = WhyBudget
		if t.slots.Used().Calls > 0 && t.breaker.Unblemished(q.Now) {
			why = WhyUnproven
		}
	}
	if why != Admitted {
		c.loan.undo(q.Now)
		give(t.rpm, q.Now, 1)
		give(t.tpm, q.Now, q.Tokens)
		return nil, why, until
	}
	c.Divert = q.Extra && healthy
	if !q.Extra || c.Divert {
		t.budget.Request(q.Now) // what was not charged funds what will be
	}
	t.hold(q, c)
	t.callers.Tried(q.Now, c.caller)
	c.light = t.room.Light(q.Now, t.waiting.n)
	t.waiting.push(c)
	return c, Admitted, time.Time{}
}

// gates passes the account's and the target's cool-downs and the breaker.
func (t *Target) gates(q Query, c *Call, acquire acquirer) (Why, time.Time) {
	if c.owner = q.Account; c.owner == nil {
		c.owner = t.account
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	admit := (*limit.CoolDown).Admit
	switch {
	case t.trusted(q.Now):
		admit = func(*limit.CoolDown, time.Time) limit.Admission { return limit.Free }
	case q.OneAccount || q.Extra || c.Last:
		admit = (*limit.CoolDown).AdmitNeedy
	}
	if c.account = admit(&c.owner.cool, q.Now); c.account == limit.Blocked {
		return whyCooling(&c.owner.cool, q)
	}
	if c.owner != t.account { // the old key neither waits for the new one's refusals nor tries it out
		c.trial = limit.Free
	} else if c.trial = admit(&t.cool, q.Now); c.trial == limit.Blocked {
		c.owner.cool.Settle(q.Now, c.account, limit.Other)
		return whyCooling(&t.cool, q)
	}
	permit, why := acquire(breaker.Call{
		Class: uint8(q.Class), Slow: c.Timeouts.Slow, Silence: c.Timeouts.Silence, Lease: c.lease(), Rand: q.Rand, Need: q.Need,
	})
	if why != Admitted {
		t.cool.Settle(q.Now, c.trial, limit.Other)
		c.owner.cool.Settle(q.Now, c.account, limit.Other)
		return why, t.breaker.Reopens(q.Now)
	}
	if q.Only {
		c.cancel = nil
	}
	c.permit, c.Probe = permit, permit.Probe()
	if c.Probe && c.Last && !permit.Long() { // one at a time: it may not outlive its lease
		c.Timeouts.FirstContent = min(c.Timeouts.FirstContent, c.Timeouts.Slow)
		c.Timeouts.Headers = min(c.Timeouts.Headers, c.Timeouts.Slow)
	}
	return Admitted, time.Time{}
}

// whyCooling names the refusal behind a block, or behind the trial that is out. A
// limit's that is over in a moment is waited for, as a rate is.
func whyCooling(c *limit.CoolDown, q Query) (Why, time.Time) {
	until := c.Reopens(q.Now)
	switch kind, left := c.Kind(q.Now), until.Sub(q.Now); {
	case kind == limit.Account:
		return WhyAccount, until
	case kind == limit.Credential:
		return WhyCredential, until
	case left > 0 && (left <= brief || left <= paced && q.Rank == 0):
		return WhyFull, until
	}
	return WhyCooling, until
}

// lease is how long a probe may stay without a word.
func (c *Call) lease() time.Duration {
	if c.patient {
		return c.Timeouts.Slow
	}
	return c.Timeouts.FirstContent
}

// release undoes gates for a call that was not made after all.
func (t *Target) release(now time.Time, c *Call) {
	t.breaker.Settle(now, c.permit, breaker.Verdict{Outcome: breaker.Ignored})
	t.cool.Settle(now, c.trial, limit.Other)
	c.owner.mu.Lock()
	c.owner.cool.Settle(now, c.account, limit.Other)
	c.owner.mu.Unlock()
}

// pay takes one token from each side or from neither.
func (t *Target) pay(q Query) bool {
	if !q.Payer.Take(q.Now) {
		return false
	}
	if !t.budget.Take(q.Now) {
		q.Payer.Refund(q.Now)
		return false
	}
	return true
}

func take(g *limit.GCRA, now time.Time, n int64) (time.Duration, bool) {
	if g == nil {
		return 0, true
	}
	return g.Take(now, n)
}

func give(g *limit.GCRA, now time.Time, n int64) {
	if g != nil {
		g.Settle(now, n, 0)
	}
}
