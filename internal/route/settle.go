package route

import (
	"errors"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/budget"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/limit"
)

// ErrOpened is the cause with which a waiting call is cancelled when its
// target opens: the request moves on instead of paying for the hang.
var ErrOpened = errors.New("target opened while the call waited for content")

// fastFailure is the age below which a failure counts as fast for the
// evidence-led retry ratio: it cost the caller little time and the target
// little work.
const fastFailure = time.Second

// Result is how a call ended.
type Result struct {
	Verdict fault.Verdict
	Learn   time.Duration // the latency to learn from: first content of a stream, whole unary answer; 0 for none
	Timeout bool          // one of our own timers ended it
	Tokens  int64         // tokens really used; negative when unknown: the estimate stands
}

// FirstContent says that the first content of the call arrived: the call no
// longer waits, and a target opening later leaves it alone.
func (c *Call) FirstContent(now time.Time) {
	t := c.Target
	t.mu.Lock()
	t.pass(now)
	if c.listed {
		t.answered(now, c)
		t.timed(now, c)
		t.heard(now, c)
	}
	t.breaker.FirstContent(now, c.permit)
	trial := c.trial.Trial() || c.account.Trial()
	if !c.settled && !c.served { // a trial has shown what it was to show: the stream may take minutes
		c.served = true
		t.cool.Settle(now, c.trial, limit.Served)
		c.owner.mu.Lock()
		c.owner.cool.Settle(now, c.account, limit.Served)
		c.owner.mu.Unlock()
	}
	moved := t.after(now)
	herding := t.breaker.Herding(now)
	t.mu.Unlock()
	t.tell(moved)
	if (herding || trial) && t.freed != nil { // a call that is held back may go
		t.freed(t)
	}
}

// Settle ends the call and gives back everything it held. Later calls do
// nothing.
func (c *Call) Settle(now time.Time, r Result) {
	t := c.Target
	t.mu.Lock()
	if c.settled {
		t.mu.Unlock()
		return
	}
	c.settled = true
	switch {
	case c.listed && r.Verdict.Class == fault.OK:
		t.answered(now, c)
		t.heard(now, c)
	case c.listed && r.Verdict.Class == fault.Canceled && !c.patient && !c.left:
		t.callers.Left(now, c.caller, now.Sub(c.start))
	}
	t.waiting.remove(c)
	t.learn(now, c, r.Verdict)
	t.slots.Release(&c.slot)
	t.settleTokens(now, c, r)
	c.loan.repay(now, r.Tokens)
	t.judge(now, c, r)
	moved := t.after(now)
	t.mu.Unlock()
	t.tell(moved)
	c.inform(now, BudgetResult(c, r.Verdict, now.Sub(c.start), r.Timeout))
	if t.freed != nil {
		t.freed(t)
	}
}

// answered notes that a call no longer waits.
func (t *Target) answered(now time.Time, c *Call) {
	t.waiting.remove(c)
	if !c.patient {
		t.room.Answered(now, uint8(c.class), now.Sub(c.start), c.light)
	}
}

// heard notes who was there to hear the answer.
func (t *Target) heard(now time.Time, c *Call) {
	switch {
	case c.patient:
	case c.left:
		t.callers.Answers(now, now.Sub(c.start))
	default:
		t.callers.Answered(now, c.caller, now.Sub(c.start))
	}
}

// Left says that the caller is gone and that the call runs on without it, for as
// long as its answer still says something of the target: then end is called, once.
// Nobody else waits for it.
func (c *Call) Left(now time.Time, end func(error)) {
	t := c.Target
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.settled:
		return
	case !c.listed: // it has been answered, or passed over
		end(fault.ErrClientGone)
		return
	case c.left:
		return
	case !c.patient:
		t.callers.Left(now, c.caller, now.Sub(c.start))
	}
	c.left, c.cancel = true, end
	t.waiting.left++
	t.forsake()
}

// Forsake ends the calls without a caller, from now on: the router stops, and
// nothing is to be learnt any more.
func (t *Target) Forsake() {
	t.mu.Lock()
	t.stopping = true
	t.forsake()
	t.mu.Unlock()
}

// forsake ends the calls without a caller that the breaker no longer heeds, or all
// of them where the router stops. The lock is held.
func (t *Target) forsake() {
	if t.waiting.left == 0 {
		return
	}
	for c, next := t.waiting.root.next, (*Call)(nil); c != &t.waiting.root; c = next {
		if next = c.next; c.left && (t.stopping || !t.breaker.Heeds(c.permit)) {
			t.waiting.remove(c)
			c.cancel(ErrOpened)
		}
	}
}

// fund tells the other targets of the model that a request has begun. A
// target that is mostly a second choice sees few first attempts of its own:
// what it may take of extra ones is a share of the requests that it stands
// behind, and they are compared with these.
func (c *Call) fund(now time.Time, entries []Entry) {
	c.behind = entries
	for _, e := range entries {
		if t := e.Target; t != c.Target {
			t.mu.Lock()
			t.budget.Request(now)
			t.mu.Unlock()
		}
	}
}

// inform tells them how the request's first attempt ended. Capacity and
// time-outs are the other target's own and are left out.
func (c *Call) inform(now time.Time, r budget.Result) {
	r.Capacity, r.TimedOut = false, false
	for _, e := range c.behind {
		if t := e.Target; t != c.Target {
			t.mu.Lock()
			t.budget.Settle(now, r)
			t.mu.Unlock()
		}
	}
}

func (t *Target) settleTokens(now time.Time, c *Call, r Result) {
	if t.tpm == nil {
		return
	}
	actual := r.Tokens
	if actual < 0 {
		actual = c.tokens
	}
	t.tpm.Settle(now, c.tokens, actual)
}

// judge hands the verdict to each policy that keeps a view of the target.
func (t *Target) judge(now time.Time, c *Call, r Result) {
	v := r.Verdict
	t.breaker.Settle(now, c.permit, breaker.Verdict{Outcome: outcomeOf(v), Connect: v.Reason == "connect", Left: !c.patient && (v.Class == fault.Canceled || v.Class == fault.Deadline), Rand: spread(now, c.start)})
	switch {
	case c.patient: // its time is mostly its caller's
	case r.Learn > 0 && v.Class == fault.OK:
		t.latency.Observe(now, c.class, r.Learn)
	case r.Timeout && v.Class == fault.Outage:
		t.latency.Censor(now, c.class, now.Sub(c.start))
	}
	t.budget.Settle(now, BudgetResult(c, v, now.Sub(c.start), r.Timeout))
	t.coolDown(now, c, v)
	if v.HasWait && v.Breaker {
		t.breaker.Floor(now, now.Add(v.Wait))
	}
}

// coolDown feeds the refusal to the gate it concerns: the account's for what
// is wrong with the key, the target's for everything else.
func (t *Target) coolDown(now time.Time, c *Call, v fault.Verdict) {
	kind, refused := refusalKind(v)
	own, shared := limit.Other, limit.Other
	wide := v.Scope >= fault.ScopeKey && (v.Class == fault.Account || v.Class == fault.Credential)
	switch {
	case v.Class == fault.OK && c.served: // said with the first content
	case v.Class == fault.OK:
		own, shared = limit.Served, limit.Served
	case refused && wide:
		shared = limit.Refused
	case refused:
		own = limit.Refused
	}
	t.cool.Settle(now, c.trial, own)
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.owner.cool.Settle(now, c.account, shared)
	switch {
	case !refused:
	case wide:
		c.owner.cool.Refuse(now, kind, v.Wait, v.HasWait, spread(now, c.start))
	case c.owner == t.account: // else the key that was refused is no longer used
		t.cool.Refuse(now, kind, v.Wait, v.HasWait, spread(now, c.start))
	}
}

func refusalKind(v fault.Verdict) (limit.Kind, bool) {
	switch v.Class {
	case fault.Capacity:
		if v.HasWait && v.Wait > time.Minute {
			return limit.Long, true
		}
		return limit.Capacity, true
	case fault.Account:
		return limit.Account, true
	case fault.Credential:
		return limit.Credential, true
	}
	return 0, false
}

func outcomeOf(v fault.Verdict) breaker.Outcome {
	switch {
	case v.Class == fault.OK:
		return breaker.Success
	case v.Breaker:
		return breaker.Failure
	case v.Class == fault.Capacity:
		return breaker.Capacity
	}
	return breaker.Ignored
}

// BudgetResult is what a call's end tells a retry allowance.
func BudgetResult(c *Call, v fault.Verdict, age time.Duration, timeout bool) budget.Result {
	return budget.Result{
		Extra:    c.extra,
		OK:       v.Class == fault.OK,
		Failure:  v.Breaker,
		Fast:     v.Breaker && !timeout && age < fastFailure,
		Capacity: v.Class == fault.Capacity,
		TimedOut: timeout,
		Canceled: v.Class == fault.Canceled,
	}
}

// spread spreads cool-downs: a number in [0,1) from the call's own start, so
// that policies stay free of a random source. Nanoseconds of distinct calls
// are as good as random for jitter.
func spread(now, start time.Time) float64 {
	x := uint64(now.UnixNano()) ^ uint64(start.UnixNano())<<17
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // finaliser of MurmurHash3
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// after runs under the lock behind every change: when the breaker opened,
// the calls without content are told to move on. Not at a target that still
// answers enough of them: all at once they would overrun the next.
func (t *Target) after(now time.Time) []breaker.Transition {
	moved := t.breaker.Events()
	for _, m := range moved {
		if m.To != breaker.Open || t.breaker.Spare(now) {
			continue
		}
		for !t.waiting.empty() {
			c := t.waiting.root.next
			t.waiting.remove(c)
			if c.cancel != nil {
				c.cancel(ErrOpened)
			}
		}
	}
	t.forsake()
	return moved
}

func (t *Target) tell(moved []breaker.Transition) {
	if len(moved) > 0 && t.moved != nil {
		t.moved(t.Spec().Name, moved)
	}
}

// Poll runs the rules that need time to pass: slow and silent calls, expired
// probe leases, a limit that grows.
func (t *Target) Poll(now time.Time) {
	t.mu.Lock()
	t.breaker.Poll(now, spread(now, now))
	t.pass(now)
	t.detach()
	news := t.news()
	moved := t.after(now)
	t.mu.Unlock()
	t.tell(moved)
	if news && t.freed != nil {
		t.freed(t)
	}
}

// State is one target as an operator sees it.
type State struct {
	Name        string           `json:"name"`
	Provider    string           `json:"provider"`
	Model       string           `json:"model"`
	Region      string           `json:"region,omitempty"`
	Domain      string           `json:"domain"`
	Phase       string           `json:"breaker"`
	PhaseNumber int              `json:"breaker_number"` // 0 closed, 1 ramp, 2 half-open, 3 open
	Breaker     breaker.Snapshot `json:"window"`
	Healthy     bool             `json:"proven_healthy"`
	Success     float64          `json:"success_share"`
	InFlight    int              `json:"in_flight"`
	Limit       int              `json:"concurrency_limit,omitempty"`
	CoolUntil   *time.Time       `json:"cool_down_until,omitempty"`
	CoolKind    string           `json:"cool_down_kind,omitempty"`
	KeyShare    float64          `json:"credential_share,omitempty"` // of the calls let in while some with the same credential are refused
	Drained     bool             `json:"drained,omitempty"`
	Steered     string           `json:"steered,omitempty"` // drained, forced open, forced closed: what an operator has ordered
	Load        Load             `json:"load"`
	Latency     time.Duration    `json:"latency_ns,omitempty"` // expected of a short call, by which targets are compared; 0 until one has ended well
	// FirstContent is the median until the first content, or until the whole answer
	// where it does not stream; 0 until a call has ended well.
	FirstContent time.Duration   `json:"first_content_ns,omitempty"`
	Budget       budget.Snapshot `json:"retry_budget"`
}

// State reports the target at now.
func (t *Target) State(now time.Time) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	phase := t.breaker.Phase(now)
	s := State{
		Name: t.spec.Name, Provider: t.spec.Provider, Model: t.spec.Model, Region: t.spec.Region, Domain: t.spec.Domain,
		Phase: phase.String(), PhaseNumber: phase.Number(), Breaker: t.breaker.Snapshot(now),
		Healthy: t.breaker.Healthy(now), Success: t.breaker.SuccessShare(now),
		InFlight: t.slots.Used().Calls, Load: t.load(now), Limit: t.spec.Limits.Concurrency, Drained: t.steering.Drained, Steered: t.steered(now),
		Budget: t.budget.Snapshot(now),
	}
	if t.latency.Known() {
		s.Latency, s.FirstContent = t.latency.Mean(now), t.latency.Median()
	}
	until, kind, blocked := t.cool.Until(now)
	t.account.mu.Lock()
	shared, sharedKind, sharedBlocked := t.account.cool.Until(now)
	if share := min(t.cool.Share(), t.account.cool.Share()); share < 1 {
		s.KeyShare = share
	}
	t.account.mu.Unlock()
	if sharedBlocked && shared.After(until) {
		until, kind, blocked = shared, sharedKind, true
	}
	if blocked {
		s.CoolUntil, s.CoolKind = &until, kind.String()
	}
	return s
}
