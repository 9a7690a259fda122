package attempt

import (
	"context"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/workload"
)

// proofWait is how long an extra attempt may wait for its target to prove
// itself healthy. When a target opens, all that waited for it turns to the
// next at once; the few that the allowance pays for are the proof that lets
// the others through.
const proofWait = time.Second

// What is waited for in line: a *route.Target stands for a slot of it, proof for
// its being proven healthy. They are kept apart because who waits for proof does
// not wait for a slot, and must not keep anybody from one, nor take it before them.
type proof struct{ target *route.Target }

// NewLine is a line in which requests wait for targets.
func NewLine(c queue.Config) *admit.Line { return admit.NewLine(c, room) }

// room is the target's in either case: the proof lets no call in where there is
// none.
func room(k queue.Key) (free bool, when time.Time) { return targetOf(k).Room(time.Now()) }

func targetOf(k queue.Key) *route.Target {
	if p, ok := k.(proof); ok {
		return p.target
	}
	return k.(*route.Target)
}

// Freed says that a call of the target ended, or that one which is held back
// may go.
func Freed(l *admit.Line, t *route.Target) {
	l.Notify(t)
	l.Notify(proof{t})
}

// pick asks the model for the next call. Where a moment may bring one, a
// freed slot or the proof that a target is healthy, it waits that moment, and
// so it does where others wait already. The reason for none is left in refusal.
func (x *run) pick(ctx context.Context, cancel context.CancelCauseFunc) (call *route.Call) {
	x.waited, x.refusal = nil, route.Refusal{}
	x.chance = x.Random() // once: who tries again draws no better share of a target that comes back
	tried := false
	try := func() bool {
		tried = true
		x.pass.Query = x.query(cancel)
		call, x.refusal = x.model.Pick(&x.pass)
		x.refusal.Full += len(x.pass.Taken)
		return call != nil || !x.refusal.Brief()
	}
	if x.newcomer() && try() || x.req.Line == nil {
		return call
	}
	for end := time.Now().Add(proofWait); ; {
		round := time.Now()
		w := x.waiter()
		bare := len(targets(w.Keys)) == 0 // it waits for proof alone
		fate := x.req.Line.WaitFor(ctx, w, func() bool {
			if x.pass.Taken = targets(w.Promised); bare {
				x.newcomer()
			}
			return try() || bare && x.refusal.Full > 0
		})
		now := time.Now()
		switch {
		case call != nil:
			x.waited = w
			return call
		case fate == queue.Dispatched:
			x.req.Line.Settle(w, 0) // it was charged, and gave up
			if bare && x.refusal.Full > 0 {
				continue // to wait for a slot, behind those who do
			}
		case !tried: // all that it may go to is full, or it would have tried
			x.refusal.Full = len(w.Keys)
		}
		waited := now.Sub(round) > time.Millisecond // else there is no room to wait in
		if x.refusal.Unproven == 0 || fate != queue.Expired || !waited || ctx.Err() != nil || !now.Before(end) {
			return nil
		}
	}
}

// newcomer leaves out the targets at which a try now would overtake those who
// wait, and reports that there is another one to try.
func (x *run) newcomer() bool {
	x.pass.Taken = nil
	l := x.req.Line
	if l == nil || l.Empty() {
		return true
	}
	all := x.slots(nil)
	x.pass.Taken = targets(l.Taken(all, x.req.Priority))
	return len(x.pass.Taken) < len(all)
}

// targets are those that the keys stand for a slot of.
func targets(keys []queue.Key) (list []*route.Target) {
	for _, k := range keys {
		if t, ok := k.(*route.Target); ok {
			list = append(list, t)
		}
	}
	return list
}

// waiter is the request in line. It waits for what refused it: a slot, or what
// proves a target healthy.
func (x *run) waiter() *admit.Waiter {
	w := &admit.Waiter{
		Flow: x.req.Workload.Name(), Priority: x.req.Priority, Cost: x.req.Tokens, Lease: x.req.Ticket.Lease(), Deadline: x.req.Deadline,
		Luck: x.chance, Kin: x.kin(), Denied: x.denied,
	}
	if w.Flow == workload.Open {
		w.Caller = x.req.Caller
	}
	if x.refusal.Full > 0 || x.refusal.Unproven == 0 {
		w.Keys = x.slots(w.Keys)
	}
	if x.refusal.Unproven > 0 {
		for _, k := range x.slots(nil) {
			w.Keys = append(w.Keys, proof{k.(*route.Target)})
		}
	}
	return w
}

// kin are the calls of the workload for a model that differ in nothing that a
// target's share, allowance or last resort depends on, but in what they drew.
func (x *run) kin() queue.Kin {
	q := x.query(nil)
	k := queue.Kin{Name: q.Flow, What: x.model.Name}
	for i, is := range []bool{q.Lane > 0, q.Extra, q.Proven, x.req.Repeat} {
		if is {
			k.Kind |= 1 << i
		}
	}
	return k
}

// denied is whom the refusal of what the request was told of concerns besides it.
func (x *run) denied(k queue.Key) queue.Denial {
	switch x.refusal.Why(targetOf(k)) {
	case route.WhyLarge:
		return queue.Denial{Scope: queue.DeniedAll, Large: true}
	case route.WhyLargeShare:
		return queue.Denial{Scope: queue.DeniedKin, Large: true}
	case route.WhyShare, route.WhyBudget, route.WhyUnproven:
		return queue.Denial{Scope: queue.DeniedKin}
	case route.WhyBreaker: // which may let some in by chance, and each draws once
		return queue.Denial{Scope: queue.DeniedKin, Unlucky: true}
	case route.WhyHerd:
		return queue.Denial{Scope: queue.DeniedAll}
	case route.WhyLeft:
		return queue.Denial{Scope: queue.DeniedClass}
	}
	return queue.Denial{}
}

// slots appends the targets that the request may go to: those it has not tried,
// or all where it has tried every one.
func (x *run) slots(keys []queue.Key) []queue.Key {
	for _, e := range x.model.Entries {
		if !slices.Contains(x.pass.Tried, e.Target) {
			keys = append(keys, e.Target)
		}
	}
	if len(keys) > 0 {
		return keys
	}
	for _, e := range x.model.Entries {
		keys = append(keys, e.Target)
	}
	return keys
}

// correct charges the request's flow what the call really used.
func (x *run) correct(tokens int64) {
	if x.waited != nil && tokens >= 0 {
		x.req.Line.Settle(x.waited, tokens)
	}
}
