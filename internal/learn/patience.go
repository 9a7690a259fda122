package learn

import "time"

const (
	// inVain is how many calls in a row a caller has left, before any content,
	// when the next is expected to end so too: at random, of a caller that leaves
	// half of its calls, one in 256.
	inVain = 8
	// retried is how often one of them is let through still, so that a change shows.
	retried = time.Second
	// lastAnswers say how fast a target answers now, none of them older than
	// recently.
	lastAnswers = 5
	recently    = 30 * time.Second
	// maxImpatient bounds the callers that are remembered.
	maxImpatient = 1024
)

// Patience learns which callers of a target leave before it answers anybody.
// Calls of theirs cost the target work, and the callers who stay their places,
// and no one gets an answer. It is not for concurrent use; the zero value knows
// nothing.
type Patience struct {
	callers map[Caller]*leaving // those who have left calls
	answers [lastAnswers]answer
	next    int
}

// Caller is who calls: a workload, and which of those behind it where they have
// none of their own.
type Caller struct {
	Workload string
	One      uint64
}

// leaving is a caller who has left calls.
type leaving struct {
	run     int // of them, with no answer between
	longest time.Duration
	last    time.Time     // left
	tried   time.Time     // admitted
	waited  time.Duration // for the latest answer that it has heard
	heard   time.Time
}

type answer struct {
	at   time.Time
	took time.Duration
}

// Left notes that the caller left a call of this age before any content.
func (p *Patience) Left(now time.Time, caller Caller, age time.Duration) {
	c := p.callers[caller]
	if c == nil {
		if len(p.callers) >= maxImpatient {
			clear(p.callers)
		}
		if p.callers == nil {
			p.callers = map[Caller]*leaving{}
		}
		c = &leaving{}
		p.callers[caller] = c
	}
	if now.Sub(c.last) > recently {
		c.run, c.longest = 0, 0
	}
	c.run++
	c.longest, c.last = max(c.longest, age), now
}

// Answered notes that the caller had content after so long.
func (p *Patience) Answered(now time.Time, caller Caller, took time.Duration) {
	if c := p.callers[caller]; c != nil {
		c.run, c.longest = 0, 0
		if took >= c.waited || now.Sub(c.heard) > recently {
			c.waited, c.heard = took, now
		}
	}
	p.Answers(now, took)
}

// Answers notes that the target gave content after so long, to whomever.
func (p *Patience) Answers(now time.Time, took time.Duration) {
	p.answers[p.next] = answer{now, took}
	p.next = (p.next + 1) % lastAnswers
}

// Vain reports that a call of the caller would most likely be left before the
// target answers: it has left the last ones, none of them as late as
// the fastest of the last answers, and has not lately waited for one as late: who
// does both has callers of either sort. Now and then one is let through.
func (p *Patience) Vain(now time.Time, caller Caller) bool {
	c := p.callers[caller]
	if c == nil || c.run < inVain || now.Sub(c.last) > recently || now.Sub(c.tried) >= retried {
		return false
	}
	patience := c.longest
	if now.Sub(c.heard) <= recently {
		patience = max(patience, c.waited)
	}
	for _, a := range p.answers {
		if a.at.IsZero() || now.Sub(a.at) > recently || a.took <= patience {
			return false
		}
	}
	return true
}

// Tried notes that a call of the caller is made. One that was let through, and
// that something else then refused, was none.
func (p *Patience) Tried(now time.Time, caller Caller) {
	if c := p.callers[caller]; c != nil {
		c.tried = now
	}
}
