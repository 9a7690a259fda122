// Package route decides where a request may go. A Target holds everything
// known about one model deployment (breaker, learned latency, retry budget,
// cool-downs, limits) under one mutex; a Model is an ordered list of targets;
// Pick turns both into the next call to make, or into the reason why there is
// none and when to come back.
//
// The package does no I/O, reads no clock and starts no goroutine: time,
// randomness and the means to cancel a waiting call come in as arguments.
// Targets are safe for concurrent use; Models are immutable.
package route

import (
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
)

// Entry is one target of a model.
type Entry struct {
	*Target
	Order  int     // lower orders are tried first
	Weight float64 // share within one order, > 0
	// Account is what calls are made on; nil for the target's own.
	Account *Account
}

// Model is the public name a client asks for.
type Model struct {
	Name     string
	Entries  []Entry // sorted by Order
	Message  string  // degraded answer, "" for none
	Fallback *Model  // degraded model, nil for none
	Policy   []*Model
}

// Pass is one walk of a request over its model's targets.
type Pass struct {
	Query
	Attempts int       // made so far
	Tried    []*Target // targets tried, in order
	Taken    []*Target // targets that others are to have first
	Again    *Target   // the last target, when trying it once more is sensible
	Avoid    []string  // failure domains tried so far
	Lonely   *Target   // a target that could not be connected to: once more, when there is no other
	// Rand returns a number in [0,1).
	Random func() float64

	waited bool // for a slot, and asks again
}

// Refusal says why no target would take the call.
type Refusal struct {
	// Targets by reason. Account and Credential are cooling down like Cooling,
	// but behind a refusal that an operator must see to.
	Open, Cooling, Account, Credential, Full, Limited, Late, Unpaid, Unproven, Drained, Forced int

	Reopens time.Time

	whys []answer
}

// answer is why a target refused.
type answer struct {
	*Target
	Why
}

// Why is the reason of the one target; Admitted when it was not asked.
func (r Refusal) Why(t *Target) Why {
	for i := len(r.whys) - 1; i >= 0; i-- {
		if r.whys[i].Target == t {
			return r.whys[i].Why
		}
	}
	return Admitted
}

// Brief reports that waiting a moment may help: a concurrency limit is
// reached, or an extra attempt finds no allowance while the target it wants
// may be about to prove itself healthy.
func (r Refusal) Brief() bool { return r.Full > 0 || r.Unproven > 0 }

// Capacity reports that what stands in the way is a limit or a cool-down and
// not an outage.
func (r Refusal) Capacity() bool { return r.Open == 0 && r.Cooling+r.Full+r.Limited > 0 }

// Held reports that an operator keeps requests from every target, and nothing else
// does.
func (r Refusal) Held() bool {
	return r.Drained+r.Forced > 0 && r.Open+r.Cooling+r.Account+r.Credential+r.Full+r.Limited+r.Late+r.Unpaid+r.Unproven == 0
}

// Operator reports that every target but those that an operator has taken out and the
// late is refused for the router's own key or account: no limit and no outage, and waiting
// does not help.
func (r Refusal) Operator() bool {
	return r.Account+r.Credential > 0 && r.Open+r.Cooling+r.Full+r.Limited == 0
}

func (r *Refusal) add(t *Target, why Why, until time.Time) {
	r.whys = append(r.whys, answer{t, why})
	switch why {
	case WhyBreaker:
		r.Open++
	case WhyCooling:
		r.Cooling++
	case WhyAccount:
		r.Account++
	case WhyCredential:
		r.Credential++
	case WhyFull, WhyHerd, WhyLarge, WhyShare, WhyLargeShare, WhyLeft:
		r.Full++
	case WhyRate:
		r.Limited++
	case WhyDeadline:
		r.Late++
	case WhyBudget:
		r.Unpaid++
	case WhyUnproven:
		r.Unproven++
	case WhyDrained:
		r.Drained++
	case WhyForced:
		r.Forced++
	}
	r.reopens(until)
}

func (r *Refusal) reopens(until time.Time) {
	if !until.IsZero() && (r.Reopens.IsZero() || until.Before(r.Reopens)) {
		r.Reopens = until
	}
}

// Pick returns the next call for the pass.
func (m *Model) Pick(p *Pass) (*Call, Refusal) {
	p.OneAccount = m.single()
	c, refusal := m.pick(p)
	if c == nil {
		for _, t := range p.Tried {
			refusal.reopens(t.again(p.Now))
		}
	}
	if c != nil && !p.Extra {
		c.fund(p.Now, m.Entries)
	}
	return c, refusal
}

// single reports that all targets are called on one account.
func (m *Model) single() bool {
	for _, e := range m.Entries[min(1, len(m.Entries)):] {
		if e.Account == nil || e.Account != m.Entries[0].Account {
			return false
		}
	}
	return true
}

// pick looks for it: the lowest order first, another failure domain before the
// same one, balanced by weight, load, latency and success within one order.
// Where no closed target takes the call, those that are not closed are asked by
// their success share. A second call to the same target comes last and only where
// evidence allows it.
func (m *Model) pick(p *Pass) (*Call, Refusal) {
	var refusal Refusal
	p.Only = len(m.Entries) == 1 && m.Fallback == nil
	if p.Again != nil {
		again := p.Again
		p.Again = nil
		if c, _, _ := again.Try(m.query(p, again)); c != nil {
			return c, refusal
		}
	}
	fresh, left := make([]scored, 0, 8), false
	for _, e := range m.Entries {
		switch {
		case slices.Contains(p.Tried, e.Target):
		case slices.Contains(p.Taken, e.Target):
			left = true
		default:
			fresh = append(fresh, e.score(p))
		}
	}
	price(fresh)
	arrange(fresh, p.Random)
	if c := m.first(fresh, p, &refusal); c != nil {
		return c, refusal
	}
	if refusal.Open > 0 {
		need := m.need(p.Now, &refusal)
		if need == breaker.Queue && !p.waited && p.Random() < heard {
			need = breaker.Busy
		}
		p.waited = true
		if c := m.lastResort(fresh, p, need); c != nil {
			return c, refusal
		}
	}
	if lonely := p.Lonely; lonely != nil && len(m.Entries) == 1 && count(p.Tried, lonely) == 1 {
		c, why, until := lonely.Try(m.query(p, lonely))
		refusal.add(lonely, why, until)
		return c, refusal
	}
	if len(fresh) == 0 && !left && p.Extra && p.Payer.Wide(p.Now) {
		return m.second(p, &refusal), refusal
	}
	return nil, refusal
}

// first asks the candidates. A request's first attempt does not join those that
// wait at a target which may well hang, as long as another takes it.
func (m *Model) first(fresh []scored, p *Pass, refusal *Refusal) *Call {
	if p.Extra || !slices.ContainsFunc(fresh, isUnproven) {
		return m.inOrder(fresh, p, refusal)
	}
	var others, unproven []scored
	for i := range fresh {
		if fresh[i].unproven {
			unproven = append(unproven, fresh[i])
		} else {
			others = append(others, fresh[i])
		}
	}
	if c := m.inOrder(others, p, refusal); c != nil {
		return c
	}
	return m.inOrder(unproven, p, refusal)
}

func isUnproven(s scored) bool { return s.unproven }

// inOrder asks the candidates in their order. A request's first attempt does not
// join the queue of a target that stands in for an open one, where the open one
// still answers enough: what is left of the room is for those who have tried
// that and have nowhere else to go.
func (m *Model) inOrder(fresh []scored, p *Pass, refusal *Refusal) *Call {
	var open, crowded []scored
	for i := range fresh {
		if !p.Extra && len(open) > 0 && fresh[i].crowded(p.Now) {
			crowded = append(crowded, fresh[i])
			continue
		}
		before := refusal.Open
		if c := m.try(fresh[i:i+1], p, refusal, (*Target).Try); c != nil {
			return c
		}
		if refusal.Open > before {
			open = append(open, fresh[i])
		}
	}
	if len(crowded) == 0 {
		return nil
	}
	need := breaker.Queue
	if m.Fallback != nil && m.Fallback.busy(p.Now) {
		need = breaker.Degraded
	}
	if c := m.lastResort(open, p, need); c != nil {
		return c
	}
	return m.try(crowded, p, refusal, (*Target).Try)
}

// heard is the share of the calls that are offered to a failing target although
// another one is only waited for: what is known of it, its timers too, comes
// from calls.
const heard = 0.25

// lastResort asks targets that are not closed.
func (m *Model) lastResort(list []scored, p *Pass, need breaker.Need) *Call {
	byRecent(list, p.Random)
	p.Need = need
	defer func() { p.Need = breaker.Nothing }()
	return m.try(list, p, nil, (*Target).TryLastResort)
}

// need is what the model has besides targets that are not closed: none, one
// that is only busy, or with it a degraded model that takes the call. One that
// is known to bear no more now is waited for, as its own queue would be. One whose
// ramp refused the call is not busy: it is what the call is offered to.
func (m *Model) need(now time.Time, r *Refusal) breaker.Need {
	if !slices.ContainsFunc(m.Entries, func(e Entry) bool { return r.Why(e.Target) != WhyBreaker && e.busy(now) }) {
		return breaker.Nothing
	}
	if m.Fallback != nil && m.Fallback.busy(now) {
		return breaker.Degraded
	}
	if slices.ContainsFunc(m.Entries, func(e Entry) bool { return e.laden(now) }) {
		return breaker.Queue
	}
	return breaker.Busy
}

func (m *Model) busy(now time.Time) bool {
	return slices.ContainsFunc(m.Entries, func(e Entry) bool { return e.busy(now) })
}

// query is the pass's for a target that it had before.
func (m *Model) query(p *Pass, t *Target) Query {
	q := p.Query
	for _, e := range m.Entries {
		if e.Target == t {
			q.Account = e.Account
		}
	}
	return q
}

// second offers the targets tried once another time, the earliest tried
// first.
func (m *Model) second(p *Pass, refusal *Refusal) *Call {
	for _, t := range p.Tried {
		if count(p.Tried, t) > 1 || slices.Contains(p.Taken, t) || !t.wide(p.Now) {
			continue
		}
		c, why, until := t.Try(m.query(p, t))
		if c == nil && why == WhyBreaker {
			c, why, until = t.TryLastResort(m.query(p, t))
		}
		if c != nil {
			return c
		}
		refusal.add(t, why, until)
	}
	return nil
}

func (t *Target) wide(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.budget.Wide(now)
}

func count(ts []*Target, t *Target) (n int) {
	for _, x := range ts {
		if x == t {
			n++
		}
	}
	return n
}

type asker func(*Target, Query) (*Call, Why, time.Time)

// try asks the targets in turn. A target whose limits refuse takes no part in
// the last resort either, so reasons are noted on the first round only.
func (m *Model) try(list []scored, p *Pass, refusal *Refusal, ask asker) *Call {
	for i := range list {
		q := p.Query
		q.Account = list[i].Account
		c, why, until := ask(list[i].Target, q)
		if c != nil {
			return c
		}
		if refusal != nil {
			refusal.add(list[i].Target, why, until)
		}
	}
	return nil
}

// scored is a candidate with what the choice depends on.
type scored struct {
	Entry
	cost   float64 // expected wait: latency x (outstanding + 1) / success squared
	timed  bool    // the latency is measured, not assumed
	wait   float64 // latency in seconds
	share  float64 // weight x success squared
	recent float64 // share of successes among the last verdicts
	known  bool    // its failure domain has been tried in this pass

	unproven bool // calls wait there, and none was ever answered
}

// minShare keeps a failing target at 5 % of its weight, so that its recovery
// is seen (algorithm notes: weight = max(0.05, success)^2).
const minShare = 0.05

func (e Entry) score(p *Pass) scored {
	t := e.Target
	t.mu.Lock()
	defer t.mu.Unlock()
	s := max(minShare, t.breaker.SuccessShare(p.Now))
	latency := max(t.latency.Mean(p.Now), time.Millisecond)
	return scored{
		Entry:  e,
		timed:  t.latency.Known(),
		wait:   latency.Seconds(),
		cost:   float64(t.slots.Used().Calls+1) / (s * s),
		share:  e.Weight * s * s,
		recent: t.breaker.RecentShare(p.Now),
		known:  slices.Contains(p.Avoid, t.spec.Domain),

		unproven: t.unproven(p.Now),
	}
}

// price multiplies the costs by latency. A target that has not been timed yet
// counts as fast as the fastest, or it would never be tried.
func price(list []scored) {
	fastest := 0.0
	for i := range list {
		if list[i].timed && (fastest == 0 || list[i].wait < fastest) {
			fastest = list[i].wait
		}
	}
	for i := range list {
		if !list[i].timed && fastest > 0 {
			list[i].wait = fastest
		}
		list[i].cost *= list[i].wait
	}
}

// arrange sorts candidates into the order in which they are asked: untried
// failure domains, then order, then a weighted draw in which the second
// choice wins when the first is the costlier of the two.
func arrange(list []scored, random func() float64) {
	slices.SortStableFunc(list, func(a, b scored) int {
		if a.known != b.known {
			if a.known {
				return 1
			}
			return -1
		}
		return a.Order - b.Order
	})
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && list[j].Order == list[i].Order && list[j].known == list[i].known {
			j++
		}
		balance(list[i:j], random)
		i = j
	}
}

// clearly is how much cheaper the second draw must be to go first: within it
// two targets count as equal, or the one with a little more history would
// take everything.
const clearly = 0.8

// balance orders one group. With two candidates a comparison would always
// pick the same one, so the draw itself is weighted by cost; with more, two
// are drawn by weight and the cheaper one leads (power of two choices).
func balance(g []scored, random func() float64) {
	if len(g) < 2 {
		return
	}
	if len(g) == 2 {
		a, b := g[0].share/g[0].cost, g[1].share/g[1].cost
		if random()*(a+b) >= a {
			g[0], g[1] = g[1], g[0]
		}
		return
	}
	draw(g, random)
	draw(g[1:], random)
	if g[1].cost < clearly*g[0].cost {
		g[0], g[1] = g[1], g[0]
	}
	rest := g[1:]
	slices.SortStableFunc(rest, func(a, b scored) int { return compare(a.cost/a.share, b.cost/b.share) })
}

// byRecent orders the candidates of a last resort: a draw by the square of
// their recent success. Always taking the best one would leave the others
// without calls, hence without evidence and without an allowance, for good.
func byRecent(list []scored, random func() float64) {
	for i := range list {
		s := max(minShare, list[i].recent)
		list[i].share = s * s
	}
	for i := range list {
		draw(list[i:], random)
	}
}

// draw brings one candidate, drawn by share, to the front.
func draw(g []scored, random func() float64) {
	var total float64
	for i := range g {
		total += g[i].share
	}
	x := random() * total
	for i := range g {
		if x -= g[i].share; x < 0 || i == len(g)-1 {
			g[0], g[i] = g[i], g[0]
			return
		}
	}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
