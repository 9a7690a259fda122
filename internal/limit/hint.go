package limit

import "time"

// hintFor is how long an upstream's word on what is left is believed: others
// may use the same quota, and it refills (algorithm notes, 5).
const hintFor = 2 * time.Second

// What is said without a reset may be what some proxy always says. Then nothing
// left keeps calls away for no longer than they wait for a rate (paced in route),
// and what is refuted is not believed for a minute: a call that it would have
// kept away, a little later, was served and heard the same again. After a longer
// rest the quota may have become whole, and be used up again.
const (
	zeroFor   = time.Second
	refuteFor = 10 * time.Second
	doubtFor  = time.Minute
)

// Mark is a point in the order of a target's calls: how many calls and
// estimated tokens had been sent before. Every call takes one along, and whether
// it went although less had been said to be left.
type Mark struct {
	calls, tokens                int64
	beyondRequests, beyondTokens beyond
}

// beyond is what had been said to be left, and one more; 0 for a call that had
// enough of it.
type beyond int64

// Remaining is what an upstream says of one of its quotas.
type Remaining struct {
	Stated bool
	Left   int64         // in calls or tokens; below 0 counts as 0
	Most   int64         // the whole quota, 0 when it was not said
	Reset  time.Duration // until it is whole again, 0 or less when it was not said
}

// Hint is a gate from what an upstream said is left of its quotas: what it
// said, less what has been sent since. It is believed for two seconds, or until
// the quota is whole again when that is sooner: then calls go again, and the
// next answer tells. So nothing left alone keeps nobody away for longer, and for a
// second only when no reset is said.
//
// A call needs what it is estimated to take, yet no more than half of the quota
// where that is known, and any rest where it is not: a large one is not starved
// while small ones keep the hint fresh. What was said without a reset and is
// refuted by calls that were served is not believed for a minute. The zero value is ready. The owner
// holds a lock.
type Hint struct {
	sent             Mark
	requests, tokens hint
}

type hint struct {
	since int64     // of the mark that it is counted from
	end   int64     // in the same count: what is sent past it is too much
	need  int64     // the most that a call needs of it; 0 for 1
	until time.Time // when it is no longer believed
	bare  bool      // said without a reset
	heard int64     // calls sent before nothing left was heard last, likewise

	lie   int64     // so much and less, said without a reset, is not believed
	doubt time.Time // until then
}

// Mark is the point that the next call, of so many tokens, takes along.
func (h *Hint) Mark(now time.Time, tokens int64) Mark {
	return Mark{h.sent.calls, h.sent.tokens, h.requests.beyond(now, h.sent.calls, 1), h.tokens.beyond(now, h.sent.tokens, tokens)}
}

func (h *hint) beyond(now time.Time, sent, n int64) beyond {
	if !h.bare || now.Before(h.until) || now.Sub(h.until) >= refuteFor || !h.short(sent, n) {
		return 0
	}
	return beyond(h.end - h.since + 1)
}

// Served notes that the call with the mark was answered.
func (h *Hint) Served(now time.Time, m Mark) {
	h.requests.served(now, m.calls+1, m.beyondRequests)
	h.tokens.served(now, m.tokens, m.beyondTokens)
}

// served doubts what the call heard when it should have found nothing left, and
// no more was left behind it.
func (h *hint) served(now time.Time, since int64, b beyond) {
	if b <= 0 || !h.bare || h.since != since || h.end-h.since >= int64(b) {
		return
	}
	h.lie, h.doubt, h.until = int64(b)-1, now.Add(doubtFor), time.Time{}
}

// Sent notes a call of so many tokens.
func (h *Hint) Sent(tokens int64) {
	h.sent.calls++
	h.sent.tokens += max(0, tokens)
}

// Note takes what was said in answer to the call with the mark. An answer to an
// older call than that of the last one changes nothing.
func (h *Hint) Note(now time.Time, m Mark, requests, tokens Remaining) {
	h.requests.note(now, m, m.calls+1, h.sent.calls, requests) // the call itself is in what is left
	h.tokens.note(now, m, m.tokens, h.sent.calls, tokens)
}

func (h *hint) note(now time.Time, m Mark, since, sent int64, r Remaining) {
	if !r.Stated || since < h.since && now.Before(h.until) || r.Reset <= 0 && h.stale(now, m, r.Left) {
		return
	}
	left, believed := max(0, min(r.Left, maxCost)), hintFor
	switch {
	case r.Reset > 0:
		believed = min(believed, r.Reset)
	case left == 0:
		believed, h.heard = zeroFor, sent
	}
	h.since, h.end, h.need = since, since+left, max(0, r.Most)/2
	h.until, h.bare = now.Add(believed), r.Reset <= 0
}

// stale reports that what was said without a reset is refuted, or that nothing
// left was heard when the call was on its way.
func (h *hint) stale(now time.Time, m Mark, left int64) bool {
	return left <= h.lie && now.Before(h.doubt) || left <= 0 && m.calls < h.heard
}

// Ask tells whether a call of so many tokens finds something left, and
// otherwise how long to wait, more than 0.
func (h *Hint) Ask(now time.Time, tokens int64) (wait time.Duration, ok bool) {
	return max(h.requests.wait(now, h.sent.calls, 1), h.tokens.wait(now, h.sent.tokens, tokens)), h.open(now, tokens)
}

func (h *Hint) open(now time.Time, tokens int64) bool {
	return h.requests.wait(now, h.sent.calls, 1) == 0 && h.tokens.wait(now, h.sent.tokens, tokens) == 0
}

func (h *hint) wait(now time.Time, sent, n int64) time.Duration {
	if !now.Before(h.until) || !h.short(sent, n) {
		return 0
	}
	return h.until.Sub(now)
}

// short reports that less is left than a call of so much needs.
func (h *hint) short(sent, n int64) bool { return h.end-sent < max(1, min(n, h.need)) }

// Left is what is believed to be left, for the operator; false for what is not
// known.
func (h *Hint) Left(now time.Time) (requests, tokens int64, known [2]bool) {
	known = [2]bool{now.Before(h.requests.until), now.Before(h.tokens.until)}
	return max(0, h.requests.end-h.sent.calls), max(0, h.tokens.end-h.sent.tokens), known
}
