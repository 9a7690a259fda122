package limit

import "time"

// Kind is a quota class: what was refused. Each has its own gate, so that a
// refusal of one never shortens the wait of another.
type Kind uint8

// The quota classes.
const (
	Requests   Kind = iota // requests a minute or second
	Tokens                 // tokens a minute
	Long                   // a day's or a plan's quota
	Capacity               // the provider has no room: 529, full provisioned unit
	Account                // billing or spend limit
	Credential             // the key, deployment name or permission is wrong
	numKinds
)

var kindNames = [numKinds]string{"requests", "tokens", "long", "capacity", "account", "credential"}

// String returns the name shown on the dashboard.
func (k Kind) String() string {
	if k >= numKinds {
		return "unknown"
	}
	return kindNames[k]
}

// Outcome is how a call ended, as far as a cool-down cares.
type Outcome uint8

// The outcomes.
const (
	Other   Outcome = iota // says nothing: failure, cancel, call not made
	Served                 // the target took the call
	Refused                // refused again; Refuse follows with the details
)

// Admission is CoolDown's answer to a call, and what the call shows again when
// it ends. Values other than Free and Blocked are trials.
type Admission uint64

// The two answers that are not trials.
const (
	Free    Admission = 0
	Blocked Admission = 1

	firstTrial Admission = 2
)

// Trial reports that this call decides whether the others may follow.
func (a Admission) Trial() bool { return a >= firstTrial }

// How long a refusal blocks. Sources: the measured retry behaviour of official
// clients (waits of minutes are real, waits of days are mistakes) and a probe
// a minute as the most a refusing target should see.
const (
	// MaxWait bounds a wait that the upstream asked for.
	MaxWait = 24 * time.Hour
	// MaxBackOff bounds any other wait that the upstream did not give.
	MaxBackOff = time.Minute
	// MaxCredential bounds the wait for a refused key that was never accepted,
	// and is the wait for an account without money: both need a person. A key
	// that was accepted before is tried each MaxBackOff.
	MaxCredential = 10 * time.Minute
	// TrialLease is how long a trial call may stay without an outcome before
	// the next one may try.
	TrialLease = 30 * time.Second

	firstBackOff    = time.Second
	firstCredential = time.Minute
	firstDoubted    = 5 * time.Second // of a credential that was accepted in the last ten minutes

	// trialAfter: after a longer block one call goes first. Provisioned units
	// refuse for milliseconds at a time and need no trial.
	trialAfter = time.Second
	// given waits longer than trialAfter get up to 5 % more, at most 5 s, so
	// that several routers do not come back in the same instant.
	givenJitter    = 0.05
	maxGivenJitter = 5 * time.Second
	// backOffJitter spreads own waits by 20 % to both sides.
	backOffJitter = 0.2
)

type gate struct {
	until  time.Time
	streak int // refusals without a wait, less the successes since
}

// CoolDown keeps calls away from a target, or from every target of a provider
// account, that has refused for a limit. A block is extended, never
// shortened; nothing is admitted inside it. After a block of more than a
// second exactly one call, the trial, goes first.
//
// A refused credential blocks only when it is proof: nothing with that
// credential is accepted any more. While other calls are accepted it lowers the
// share of the calls that are let in, and after a block for a credential the
// share grows from a sixteenth with each accepted call. The zero value is ready.
type CoolDown struct {
	// Max bounds a wait that the upstream asked for; 0 means MaxWait.
	Max time.Duration

	gates    [numKinds]gate
	until    time.Time // the latest end among gates
	kind     Kind      // whose it is
	trialDue bool      // the next call after the block is a trial
	trial    Admission // the trial in flight, Free for none
	expires  time.Time // of trial
	last     Admission // the newest trial handed out
	share    share     // of the calls, by what was heard of the credential
	ramp     bool      // the trial that is due ends a block for a credential
}

// Refuse notes a refusal and returns the time until which its kind is blocked.
//
// A wait that the upstream gave is obeyed up to Max, a little longer when it
// exceeds a second. Without one (or with one that is not positive) the block
// is 1 s, doubled with every further refusal up to MaxBackOff; for a credential
// 1 min, or 5 s when it was accepted lately, up to MaxCredential, or MaxBackOff
// when it was ever accepted; for an account MaxCredential. Refusals that arrive
// inside such a block belong to calls made before it and do not double it. A
// refused credential that is no proof blocks nothing: the answer is now. rnd
// is in [0,1); anything else counts as the nearest end or, NaN, as the middle.
func (c *CoolDown) Refuse(now time.Time, k Kind, wait time.Duration, hasWait bool, rnd float64) time.Time {
	k = min(k, numKinds-1)
	g := &c.gates[k]
	rnd = unit(rnd)
	given := hasWait && wait > 0
	if k == Credential && !c.blocked(now) && !c.share.refused(now) && !given {
		return now
	}
	var nominal, actual time.Duration
	if given {
		nominal = min(wait, c.max())
		actual = nominal
		if nominal > trialAfter {
			actual += time.Duration(rnd * min(givenJitter*float64(nominal), float64(maxGivenJitter)))
		}
	} else {
		if now.Before(g.until) {
			return g.until
		}
		nominal, actual = c.backOff(now, k, rnd)
	}
	if until := now.Add(actual); until.After(g.until) {
		g.until = until
	}
	if g.until.After(c.until) {
		c.until, c.kind = g.until, k
	}
	if nominal > trialAfter {
		c.trialDue = true
		c.ramp = c.ramp || k == Credential
	}
	return g.until
}

func (c *CoolDown) max() time.Duration {
	if c.Max <= 0 {
		return MaxWait
	}
	return c.Max
}

// backOff is the wait when the upstream gave none, without and with jitter.
func (c *CoolDown) backOff(now time.Time, k Kind, rnd float64) (nominal, actual time.Duration) {
	first, most := firstBackOff, MaxBackOff
	switch k {
	case Credential:
		first, most = firstCredential, MaxCredential
		if c.share.recent(now) {
			first = firstDoubted
		}
		if !c.share.good.IsZero() { // what was good once may be so again without a person here
			most = MaxBackOff
		}
	case Account:
		first, most = MaxCredential, MaxCredential
	}
	g := &c.gates[k]
	nominal = min(first<<g.streak, most)
	if nominal < most {
		g.streak++
	}
	spread := 1 - backOffJitter + 2*backOffJitter*rnd
	return nominal, min(time.Duration(float64(nominal)*spread), most)
}

// Until is the end of the latest block and the kind behind it; false when
// nothing is blocked.
func (c *CoolDown) Until(now time.Time) (time.Time, Kind, bool) {
	if !now.Before(c.until) {
		return time.Time{}, 0, false
	}
	return c.until, c.kind, true
}

// Kind is the quota class behind a call that is not let in: of the latest
// block, or the credential when only a share of the calls is.
func (c *CoolDown) Kind(now time.Time) Kind {
	if c.Partial(now) {
		return Credential
	}
	return c.kind
}

// Partial reports that a share of the calls is let in, because some with the
// same credential are refused.
func (c *CoolDown) Partial(now time.Time) bool {
	return !c.blocked(now) && !c.onTrial(now) && !c.trialDue && c.share.level() < 1
}

// Again is when a call that was refused for its credential may be made anew,
// where others with that credential are accepted; zero where that is not so.
func (c *CoolDown) Again(now time.Time) time.Time {
	if c.blocked(now) || c.share.good.IsZero() || c.share.depth == 0 {
		return time.Time{}
	}
	return now.Add(leastEvery)
}

// Share is that share, 1 for all of them.
func (c *CoolDown) Share() float64 { return c.share.level() }

// Forget ends every block and trial: what was refused, a key for instance, is
// no longer used. Calls admitted before may still be settled.
func (c *CoolDown) Forget() { *c = CoolDown{Max: c.Max, last: c.last} }

// Reopens is when it is worth asking again: the end of the block, or, while a
// trial is out, a second from now or the end of its lease, whichever is
// sooner; while only a share is let in, when the next call goes at the latest.
// It is zero when Admit would let any call in.
func (c *CoolDown) Reopens(now time.Time) time.Time {
	if c.blocked(now) {
		return c.until
	}
	if c.Partial(now) {
		if next := c.share.went.Add(leastEvery); next.After(now) {
			return next
		}
	}
	if !c.onTrial(now) {
		return time.Time{}
	}
	if soon := now.Add(time.Second); soon.Before(c.expires) {
		return soon
	}
	return c.expires
}

// Admit answers one call: Blocked inside a block, while a trial is out or when
// it is not of the share let in; a trial when the block before was long, else
// Free. Every answer but Blocked must be shown to Settle.
func (c *CoolDown) Admit(now time.Time) Admission { return c.admit(now, false) }

// AdmitNeedy is Admit for a call that has nowhere else to go. Where letting in
// a share has not helped, all of these are let in.
func (c *CoolDown) AdmitNeedy(now time.Time) Admission { return c.admit(now, true) }

func (c *CoolDown) admit(now time.Time, needy bool) Admission {
	if c.blocked(now) || c.onTrial(now) {
		return Blocked
	}
	if !c.trialDue {
		if !c.share.admit(now, needy) {
			return Blocked
		}
		return Free
	}
	c.last = max(c.last+1, firstTrial)
	c.trial, c.expires = c.last, now.Add(TrialLease)
	return c.trial
}

func (c *CoolDown) blocked(now time.Time) bool { return now.Before(c.until) }

func (c *CoolDown) onTrial(now time.Time) bool {
	return c.trial != Free && now.Before(c.expires)
}

// Settle notes how an admitted call ended. Only the trial in flight ends the
// trial: served, the others may follow; otherwise the next call is a trial
// again. A trial may be settled as soon as its answer begins; settling it
// again, or after its lease ended, counts as any other call.
func (c *CoolDown) Settle(now time.Time, a Admission, o Outcome) {
	if a.Trial() && a == c.trial {
		c.trial = Free
		if o == Served && !c.blocked(now) {
			c.trialDue = false
			if c.ramp {
				c.ramp = false
				c.share.restart()
			}
		}
	}
	if o == Served {
		c.OK(now)
	}
}

// OK notes a served call: each takes one doubling off the next block and speaks
// for the credential. To be told once a call. Inside a
// block, or before a trial has ended well, it says nothing, for the call may
// be older than the refusal.
func (c *CoolDown) OK(now time.Time) {
	if c.trialDue || c.blocked(now) {
		return
	}
	c.share.served(now)
	for k := range c.gates {
		c.gates[k].streak = max(0, c.gates[k].streak-1)
	}
}

// unit brings r into [0,1]; NaN becomes the middle.
func unit(r float64) float64 {
	if r != r {
		return 0.5
	}
	return min(1, max(0, r))
}
