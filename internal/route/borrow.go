package route

import (
	"time"

	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/limit"
)

// While a new configuration is rolled out, one upstream may be two targets: as it
// is configured, and as it is to be. They have each their own health, so that what
// the new one does to itself is not held against the other. What the upstream was
// promised they share: a call of the new one takes a slot and the rates of the one in
// force besides its own. Both together then never exceed what is configured now,
// whatever the new limits are. The one in force may borrow itself, for as long as calls
// of the one before it run on: then a call takes of all three.

// NewBeside returns a target for the same upstream as of.
func NewBeside(of *Target, spec Spec, account *Account, moved func(string, []breaker.Transition), freed func(*Target)) *Target {
	t := NewTarget(spec, account, moved, freed)
	t.of = of
	return t
}

// Retire says that the target in force is no longer so: what it may be sent is what
// the new one may, and once its own calls have ended the new one owes it nothing.
func (t *Target) Retire(limits Limits) {
	t.mu.Lock()
	defer t.mu.Unlock()
	spec := t.spec
	spec.Limits = limits
	t.apply(spec)
	t.retired = true
}

// detach ends the borrowing from a target that is out of force, as soon as all that
// is in flight there was lent. The lock is held.
func (t *Target) detach() {
	if t.of == nil {
		return
	}
	t.of.mu.Lock()
	over := t.of.retired && t.of.slots.Used().Calls <= t.of.loans
	t.of.mu.Unlock()
	if over {
		t.of = nil
	}
}

// loan is what a call holds of another target. Its zero value is nothing.
type loan struct {
	of     *Target
	slot   limit.Slot
	tokens int64
	next   *loan // of the one that it borrows from itself, nil for none
}

// borrow takes a slot and the rates of the target that t stands beside. The lock of
// t is held, here and below; that of the other is taken under it and never the other
// way round.
func (t *Target) borrow(q Query, l *loan) (Why, time.Time) {
	of := t.of
	if of == nil {
		return Admitted, time.Time{}
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if why := of.free(q); why != Admitted {
		return why, time.Time{}
	}
	if wait, ok := of.rpm.Peek(q.Now, 1+of.left(q.Rank)); !ok {
		_, one := of.rpm.Peek(q.Now, 1)
		_, why, until := rated(q.Now, wait, WhyLeft, one)
		return why, until
	}
	if wait, ok := take(of.tpm, q.Now, q.Tokens); !ok {
		of.due(q.Now, wait)
		_, small := of.tpm.Peek(q.Now, 1)
		_, why, until := rated(q.Now, wait, WhyLarge, small)
		return why, until
	}
	var next *loan
	if of.of != nil {
		next = new(loan)
		if why, until := of.borrow(q, next); why != Admitted {
			give(of.tpm, q.Now, q.Tokens)
			return why, until
		}
	}
	take(of.rpm, q.Now, 1)
	*l = loan{of: of, slot: of.slots.Take(q.Now, q.want()), tokens: q.Tokens, next: next}
	of.loans++
	return Admitted, time.Time{}
}

// undo gives everything back for a call that was not made.
func (l *loan) undo(now time.Time) {
	if l.of != nil {
		l.of.mu.Lock()
		give(l.of.rpm, now, 1)
		l.of.mu.Unlock()
		if l.next != nil {
			l.next.undo(now)
		}
		l.repay(now, 0)
	}
}

// repay gives the slot back and settles the tokens; negative ones are not known.
func (l *loan) repay(now time.Time, tokens int64) {
	of := l.of
	if of == nil {
		return
	}
	if tokens < 0 {
		tokens = l.tokens
	}
	if l.next != nil {
		l.next.repay(now, tokens)
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	of.slots.Release(&l.slot)
	of.tpm.Settle(now, l.tokens, tokens)
	of.loans--
	*l = loan{}
}
