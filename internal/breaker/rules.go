package breaker

import "time"

// Transition is a change of phase, with the numbers behind it.
type Transition struct {
	From, To Phase
	Reason   string
	At       time.Time
	// Verdicts of the short window and calls without content, before it.
	OK, Failed, Slow, Waiting int
}

// silence is the reason of a trip that calls without an answer brought about.
const silence = "silence"

// keptEvents bounds what an owner that never asks can make the breaker hold.
const keptEvents = 64

// Events returns the transitions since the last call, oldest first.
func (b *Breaker) Events() []Transition {
	if len(b.events) == 0 {
		return nil
	}
	e := b.events
	b.events = nil
	return e
}

// Poll applies the rules that need time to pass: slow calls, silence, an
// expired lease, a cool-down that is over. It returns when it wants to be
// called again; zero when nothing waits for time.
func (b *Breaker) Poll(now time.Time, rnd float64) time.Time {
	b.advance(now, rnd)
	if b.judgeWaiting(now) && b.phase <= Ramp {
		b.judge(now, rnd)
	}
	if b.phase <= Ramp && b.silent(now) {
		b.waiting.each(func(c *call) { b.window.remember(now, c, false) })
		b.silenced = now
		b.open(now, silence, rnd)
	}
	switch {
	case b.phase == Ramp || b.waiting.n > 0:
		return now.Add(100 * time.Millisecond)
	case b.phase == Open:
		return b.until
	}
	return b.forcedUntil
}

// judgeWaiting gives slow verdicts to the calls that have reached their age,
// each once and all at the same age: judging whatever is in flight at its
// present age would favour the long calls. It reports whether there were any.
func (b *Breaker) judgeWaiting(now time.Time) (any bool) {
	for i := range b.waiting.lists {
		l := &b.waiting.lists[i]
		for c := l.unjudged; c != nil && c.slow > 0 && now.Sub(c.start) >= c.slow; c = l.unjudged {
			l.unjudged = c.next
			c.late = true
			b.late++
			b.waiting.late++
			b.window.add(now, slow)
			b.mark(now, c, failed)
			any = true
		}
	}
	return any
}

// judge applies the rules on verdicts.
//
// There is no rule on a few slow calls among many, although at a 99th
// percentile five of ten are no accident: it would open the target that has
// become slower because it took another's load, and leave none.
func (b *Breaker) judge(now time.Time, rnd float64) {
	b.window.advance(now)
	short, long := &b.window.spans[short].sum, &b.window.spans[long].sum
	judged := short.verdicts() + int(short[left])
	connects := b.cfg.Connects
	switch {
	case exceeds(short, b.cfg.MinRequests, b.cfg.FailureRatio):
		b.open(now, "failure_ratio", rnd)
	case long.verdicts() > short.verdicts() && exceeds(long, b.cfg.LongMin, b.cfg.FailureRatio):
		// Only when the verdicts reach back beyond the short window: within
		// it MinRequests is the minimum that was asked for.
		b.open(now, "failure_ratio_long", rnd)
	case b.run >= b.cfg.Run:
		b.open(now, "failures_in_a_row", rnd)
	case long.verdicts() >= b.cfg.Last && b.lastFailed(now):
		b.open(now, "failure_ratio_last", rnd)
	case judged >= b.cfg.MinRequests && float64(short[slow]) >= b.cfg.SlowRatio*float64(judged):
		b.open(now, "slow", rnd)
	case b.connects >= connects && now.Sub(b.connect[(b.connects-connects)%maxRun]) <= b.cfg.Window:
		b.open(now, "connect", rnd)
	}
}

func exceeds(c *counts, least int, share float64) bool {
	n := c.verdicts()
	return n >= least && float64(c[failed]) >= share*float64(n)
}

// lastFailed applies the ratio to the last verdicts, when that many are young
// enough: on a quiet target they may be few, and a few prove nothing.
func (b *Breaker) lastFailed(now time.Time) bool {
	good, n := b.window.last(now, b.cfg.Last, b.cfg.Window)
	return n >= b.cfg.Last && float64(n-good) >= b.cfg.FailureRatio*float64(n)
}

// silent reports a hang of the whole target: enough calls are overdue, one of
// them has waited for its Silence, none of them saw a first content of any
// call since it began, and enough is missing by the calls that are overdue or
// by the rate of before. Calls that others have overtaken do not count: they
// may be hung, the target is not.
func (b *Breaker) silent(now time.Time) bool {
	if b.waiting.n < b.cfg.Waiting {
		return false
	}
	late, longest := 0, false
	for i := range b.waiting.lists {
		for c := b.waiting.lists[i].head; c != nil; c = c.next {
			if c.after != b.contents || c.silence <= 0 {
				continue
			}
			age, silence := now.Sub(c.start), max(c.silence, overdue*b.slowest)
			if age < silence/overdue {
				break // those behind it are younger
			}
			late++
			longest = longest || age >= silence
		}
	}
	if late < b.cfg.Waiting || !longest {
		return false
	}
	since := now.Sub(b.content)
	if late >= silenceProof || b.content.IsZero() || since > rateFor {
		return true
	}
	return float64(b.window.contents(b.content))/10*since.Seconds() >= silenceProof
}

// advance applies what time alone brings: the end of a lease, of a cool-down,
// of an operator's decision, the ramp's progress, shorter cool-downs.
func (b *Breaker) advance(now time.Time, rnd float64) {
	if b.forced != Auto && !b.forcedUntil.IsZero() && !now.Before(b.forcedUntil) {
		b.Force(now, Auto, time.Time{})
	}
	if b.probe != nil && !now.Before(b.leaseEnd) {
		b.lose(now, b.probe, rnd)
	}
	switch b.phase {
	case Open:
		if b.over(now) {
			b.move(now, HalfOpen, "cool_down_over")
		}
	case Ramp:
		b.rise(now)
	case Closed:
		if n := int(now.Sub(b.eased) / time.Minute); b.trips > 0 && n > 0 {
			b.trips, b.eased = max(0, b.trips-n), b.eased.Add(time.Duration(n)*time.Minute)
		}
	}
}

func (b *Breaker) over(now time.Time) bool { return !b.until.IsZero() && !now.Before(b.until) }

// lose ends the lease of a probe that has not reported.
func (b *Breaker) lose(now time.Time, c *call, rnd float64) {
	b.probe = nil
	b.mark(now, c, failed)
	if c.long && b.long == nil {
		b.long = c
		return
	}
	b.waiting.remove(c)
	c.lost = true
	if c.kind == kindProbe {
		b.open(now, "probe_lost", rnd)
	} else {
		b.proofs = 0
	}
}

// rise moves the ramp on with time: not while 5 % or more of the last 5 s
// failed, and back by half, once a second, at 20 %.
func (b *Breaker) rise(now time.Time) {
	dt := now.Sub(b.step)
	if dt < 100*time.Millisecond {
		return
	}
	b.step = now
	b.window.advance(now)
	last := &b.window.spans[last5].sum
	n := float64(last.verdicts())
	switch bad := float64(last[failed]); {
	case n > 0 && bad >= halveAt*n:
		if now.Sub(b.halved) >= time.Second {
			b.share, b.halved = max(minShare, b.share/2), now
		}
		return
	case n > 0 && bad >= holdAt*n:
		return
	}
	if b.share += dt.Seconds() / max(b.cfg.Ramp.Seconds(), 1e-3); b.share >= 1 {
		b.share, b.eased = 1, now
		b.note(now, Closed, "full_share") // same generation: nothing was interrupted
	}
}

// open starts a cool-down. Each trip doubles it, up to the maximum; health
// halves it again with time. The spread keeps replicas from probing at once.
func (b *Breaker) open(now time.Time, reason string, rnd float64) {
	if b.forced != Auto {
		return
	}
	d := b.cfg.CoolDown
	for i := 0; i < b.trips && d < b.cfg.MaxCoolDown; i++ {
		d *= 2
	}
	d = min(d, b.cfg.MaxCoolDown)
	b.trips = min(b.trips+1, maxTrips)
	b.until = now.Add(time.Duration(float64(d) * (0.8 + 0.4*min(max(rnd, 0), 1))))
	if b.floor.After(b.until) {
		b.until = b.floor
	}
	b.reason = reason
	b.move(now, Open, reason)
}

// move changes the phase. Calls given out before it no longer count, except
// that last-resort calls run on across the end of a cool-down.
func (b *Breaker) move(now time.Time, to Phase, reason string) {
	b.note(now, to, reason)
	if to == HalfOpen {
		return
	}
	b.gen++
	b.probe, b.long = nil, nil
	b.proofs, b.run, b.connects, b.first = 0, 0, 0, b.nextID+1
	b.streams.excused = 0
	b.waiting.clear()
	b.window.reset(now)
}

func (b *Breaker) note(now time.Time, to Phase, reason string) {
	b.window.advance(now)
	s := &b.window.spans[short].sum
	if len(b.events) < keptEvents {
		b.events = append(b.events, Transition{
			From: b.phase, To: to, Reason: reason, At: now,
			OK: int(s[ok]), Failed: int(s[failed]), Slow: int(s[slow]), Waiting: b.waiting.n,
		})
	}
	b.phase, b.since, b.cold = to, now, false
	if to == Closed {
		b.trust, b.slowest = 0, 0
	}
}
