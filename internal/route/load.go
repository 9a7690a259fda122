package route

import (
	"time"

	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/limit"
)

// pass lets time pass for the learned limit. The lock is held.
func (t *Target) pass(now time.Time) {
	t.adapt.Advance(now, t.slots.Used(), t.spec.Limits.Concurrency)
	t.slots.Learned = t.adapt.Limit()
}

func (q *Query) want() limit.Want {
	return limit.Want{Flow: q.Flow, Rank: q.Rank, Tokens: q.Tokens, Lane: q.Lane}
}

// free asks for a slot, and tells why there is none. The lock is held, here and
// below.
func (t *Target) free(q Query) Why {
	t.pass(q.Now)
	denial := t.slots.Ask(q.Now, q.want())
	if denial == limit.DeniedTokenShare {
		t.adapt.Denied(limit.DeniedShare)
	} else {
		t.adapt.Denied(denial)
	}
	t.full = denial != limit.Granted && denial != limit.DeniedLane
	switch denial {
	case limit.Granted:
		return Admitted
	case limit.DeniedTokens:
		return WhyLarge
	case limit.DeniedTokenShare:
		return WhyLargeShare
	case limit.DeniedCalls:
		return WhyFull
	}
	return WhyShare
}

// laden reports that the target takes calls and that the last one found no room
// for what it was found to bear. It takes the lock.
func (t *Target) laden(now time.Time) bool {
	if !t.busy(now) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	learned, configured := t.slots.Learned.Calls, t.slots.Configured
	return t.full && learned > 0 && (configured <= 0 || learned < configured)
}

// hold takes the slot and what the call counts against.
func (t *Target) hold(q Query, c *Call) {
	c.slot, c.mark = t.slots.Take(q.Now, q.want()), t.hint.Mark(q.Now, q.Tokens)
	t.hint.Sent(q.Tokens)
	t.adapt.Began(q.Now, q.Tokens, t.slots.Used())
}

// rated refuses a call for a rate that is there again after so long. What comes
// in a moment is waited for: why names the reason where there is room for others.
func rated(now time.Time, wait time.Duration, why Why, others bool) (*Call, Why, time.Time) {
	switch {
	case wait > paced:
		why = WhyRate
	case !others:
		why = WhyFull
	}
	return nil, why, now.Add(wait)
}

// due notes when the first of those that found too few tokens left in the
// quota finds enough.
func (t *Target) due(now time.Time, wait time.Duration) {
	if at := now.Add(wait); wait <= paced && (!t.tokens.After(now) || at.Before(t.tokens)) {
		t.tokens = at
	}
}

// news reports that those who wait may find room that no call has left: the limit
// has grown, or there is none any more.
func (t *Target) news() bool {
	room, told := t.slots.Limit(), t.told
	t.told = room
	return more(int64(told.Calls), int64(room.Calls)) || more(told.Tokens, room.Tokens)
}

// more reports that a limit, where 0 is none, has grown or ended.
func more(was, is int64) bool { return was > 0 && (is > was || is <= 0) }

// timed tells the learned limit about a first content. A call that does not
// stream is timed to its end: that is the answer's length and says nothing.
func (t *Target) timed(now time.Time, c *Call) {
	t.adapt.Served()
	t.refutes(now, c)
	if c.patient || !c.class.Streams() {
		return
	}
	if ratio, ok := t.fit.Observe(now, c.prompt, now.Sub(c.start)); ok {
		t.adapt.Slow(ratio)
	}
}

// learn tells the learned limit how a call ended. A trial behind a cool-down is
// left out: its refusal says that the target refuses still, not how much it
// bears. So are waits of hours, which are for a day's quota.
func (t *Target) learn(now time.Time, c *Call, v fault.Verdict) {
	t.pass(now)
	if v.Class == fault.OK {
		t.adapt.Served()
		t.refutes(now, c)
	}
	if kind, _ := refusalKind(v); v.Class != fault.Capacity || kind == limit.Long || c.trial.Trial() {
		t.adapt.Ended()
		return
	}
	t.adapt.Refused(now, limit.Refusal{Start: c.start, Explained: t.explained(now, c), Hold: t.usual(c)})
	t.slots.Learned = t.adapt.Limit()
}

// refutes tells the hint that the call was served: what was said to be left may
// be wrong.
func (t *Target) refutes(now time.Time, c *Call) {
	if c.owner == t.account {
		t.hint.Served(now, c.mark)
	}
}

// explained reports that a quota of the target that we know of was used up.
func (t *Target) explained(now time.Time, c *Call) bool {
	_, calls := t.rpm.Peek(now, 1)
	_, tokens := t.tpm.Peek(now, c.tokens)
	_, left := t.hint.Ask(now, c.tokens)
	return !calls || !tokens || !left
}

// usual is the time until a change shows: the usual first content.
func (t *Target) usual(c *Call) time.Duration {
	if !c.class.Streams() {
		return 0
	}
	p50, _ := t.latency.Quantile(c.class, 0.5)
	return p50
}

// Pace tells the median of the gaps, twenty at least, in a piece of the call's
// stream.
func (c *Call) Pace(median time.Duration) {
	t := c.Target
	t.mu.Lock()
	defer t.mu.Unlock()
	if ratio, ok := t.gaps.Observe(median); ok {
		t.adapt.Pace(ratio)
	}
}

// Quota tells what the upstream said, in answer to the call, of what is left.
func (c *Call) Quota(now time.Time, q fault.Quota) {
	t := c.Target
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.owner == t.account { // else it is another key's
		t.hint.Note(now, c.mark, limit.Remaining(q.Requests), limit.Remaining(q.Tokens))
	}
}

// Load is what a target has in flight and may have, as an operator sees it.
type Load struct {
	Tokens        int64  `json:"tokens_in_flight"`              // estimated
	LearnedCalls  int    `json:"learned_concurrency,omitempty"` // 0 while nothing was refused
	LearnedTokens int64  `json:"learned_tokens_in_flight,omitempty"`
	Reserve       int    `json:"reserved_slots,omitempty"`      // for workloads below their share
	QuotaRequests *int64 `json:"quota_requests_left,omitempty"` // as the upstream said within two seconds, less what was sent since
	QuotaTokens   *int64 `json:"quota_tokens_left,omitempty"`
}

func (t *Target) load(now time.Time) Load {
	learned := t.adapt.Limit()
	l := Load{Tokens: t.slots.Used().Tokens, LearnedCalls: learned.Calls, LearnedTokens: learned.Tokens, Reserve: t.slots.Reserve()}
	requests, tokens, known := t.hint.Left(now)
	if known[0] {
		l.QuotaRequests = &requests
	}
	if known[1] {
		l.QuotaTokens = &tokens
	}
	return l
}
