package limit

import "time"

// hintFor is how long an upstream's word on what is left is believed: others
// may use the same quota, and it refills (algorithm notes, 5).
const hintFor = 2 * time.Second

// Mark is a point in the order of a target's calls: how many calls and
// estimated tokens had been sent before. Every call takes one along.
type Mark struct{ calls, tokens int64 }

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
// next answer tells. So nothing left alone keeps nobody away for longer.
//
// A call needs what it is estimated to take, yet no more than half of the quota
// where that is known, and any rest where it is not: a large one is not starved
// while small ones keep the hint fresh. The zero value is ready. The owner
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
}

// Mark is the point that the next call takes along.
func (h *Hint) Mark() Mark { return h.sent }

// Sent notes a call of so many tokens.
func (h *Hint) Sent(tokens int64) {
	h.sent.calls++
	h.sent.tokens += max(0, tokens)
}

// Note takes what was said in answer to the call with the mark. An answer to an
// older call than that of the last one changes nothing.
func (h *Hint) Note(now time.Time, m Mark, requests, tokens Remaining) {
	h.requests.note(now, m.calls+1, requests) // the call itself is in what is left
	h.tokens.note(now, m.tokens, tokens)
}

func (h *hint) note(now time.Time, since int64, r Remaining) {
	if !r.Stated || since < h.since && now.Before(h.until) {
		return
	}
	believed := hintFor
	if r.Reset > 0 {
		believed = min(believed, r.Reset)
	}
	*h = hint{since: since, end: since + max(0, min(r.Left, maxCost)), need: max(0, r.Most) / 2, until: now.Add(believed)}
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
	if !now.Before(h.until) || h.end-sent >= max(1, min(n, h.need)) {
		return 0
	}
	return h.until.Sub(now)
}

// Left is what is believed to be left, for the operator; false for what is not
// known.
func (h *Hint) Left(now time.Time) (requests, tokens int64, known [2]bool) {
	known = [2]bool{now.Before(h.requests.until), now.Before(h.tokens.until)}
	return max(0, h.requests.end-h.sent.calls), max(0, h.tokens.end-h.sent.tokens), known
}
