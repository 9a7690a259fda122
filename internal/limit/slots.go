package limit

import "time"

// Load is what is in flight at a target, or how much of it may be: calls, and
// the tokens that they are estimated to take, prompt and answer. As a limit, 0
// or less is none.
type Load struct {
	Calls  int
	Tokens int64
}

// How a target's slots are shared.
const (
	// activeFor is how long a flow counts behind its last call. What is kept for
	// one that is not at work costs the others: who comes back later finds the
	// reserve with its second call, and with its first one the next free slot.
	activeFor = time.Minute
	// leastShared is the smallest limit that a part is kept of.
	leastShared = 4
	// sweepEach is how often the flows are looked through for those that left.
	sweepEach = 10 * time.Second
	// reserved is the part of the slots, one in so many, that is kept for flows
	// below their share.
	reserved = 10
	// laneMemory is how long a peak of calls is remembered, twice at most.
	laneMemory = 30 * time.Second
)

// Ranks is the number of ranks; a higher one than the last counts as the last.
const Ranks = 3

// Want is one call that asks for a slot.
type Want struct {
	Flow   string // whose it is; a workload's name
	Rank   uint8  // how little it matters: nothing is reserved for flows of a higher one
	Tokens int64  // estimated, prompt and answer; less than 1 counts as 1
	// Lane is the share of the slots, above 0, that quarantined calls may hold
	// together; 0 for a call that is not.
	Lane float64
}

// Denial says why there is no slot.
type Denial uint8

// The denials.
const (
	Granted      Denial = iota
	DeniedCalls         // all are taken
	DeniedTokens        // too many tokens in flight for so large a call
	DeniedShare         // what is left is for flows below their share
	DeniedLane          // quarantined calls hold all that they may
	// DeniedTokenShare: of the tokens, what is left is for flows below their
	// share; a smaller call may find room.
	DeniedTokenShare
)

// Slot is what a call holds; giving it back twice does nothing. The zero value
// holds nothing.
type Slot struct {
	flow        *flow
	tokens      int64
	quarantined bool
}

// Slots shares what may be in flight at a target between flows. A flow that
// holds its fair share, the limit by the flows of the last minute, or more
// of it, may not take the last tenth of the slots: long calls of one then do
// not make another wait. A flow leaves nothing to those that matter less. Quarantined calls hold at most their share of the
// slots together, one at least; where nothing is limited, of the most calls
// that were in flight in the last minute.
//
// A single call always fits when nothing else is in flight, however large it
// is. The zero value has no limit. The owner holds a lock.
type Slots struct {
	// Configured is the operator's limit of calls; 0 or less is none. It may be
	// changed at any time: lowered below what is in flight, it admits nothing
	// until enough calls have ended.
	Configured int
	// Learned is what the target was found to bear (Adaptive). It may be
	// changed likewise.
	Learned Load

	used   Load
	lane   int
	flows  map[string]*flow
	active [Ranks]int // flows that count, by rank
	swept  time.Time
	peak   peaks // of calls
}

type flow struct {
	used Load
	seen time.Time
	rank uint8
}

// Limit is what holds now: the lower one of what was configured and learned.
func (s *Slots) Limit() Load {
	l := s.Learned
	if s.Configured > 0 && (l.Calls <= 0 || s.Configured < l.Calls) {
		l.Calls = s.Configured
	}
	return l
}

// Used is what is in flight, never negative.
func (s *Slots) Used() Load { return s.used }

// Free reports that there is a slot for a small call of somebody: one that holds
// less than its share, and is not quarantined.
func (s *Slots) Free() bool {
	l := s.Limit()
	return s.used.Calls == 0 || (l.Calls <= 0 || s.used.Calls < l.Calls) && (l.Tokens <= 0 || s.used.Tokens < l.Tokens)
}

// Reserve is how many slots are kept for flows below their share.
func (s *Slots) Reserve() int { return s.reserve(s.among(Ranks - 1)) }

// reserve is the same where so many flows share the slots.
func (s *Slots) reserve(flows int) int {
	if l := s.Limit().Calls; l >= leastShared && flows > 1 {
		return max(1, l/reserved)
	}
	return 0
}

// Preferred reports that flows of a lower rank, which matter more, are at work.
func (s *Slots) Preferred(rank uint8) bool {
	return rank > 0 && s.among(min(rank, Ranks-1)-1) > 0
}

// among is how many flows that matter as much or more share the slots.
func (s *Slots) among(rank uint8) (flows int) {
	for _, n := range s.active[:rank+1] {
		flows += n
	}
	return flows
}

// Ask tells whether Take would be within the limits, and takes note that the
// flow is at work.
func (s *Slots) Ask(now time.Time, w Want) Denial {
	f := s.flow(now, w)
	flows := s.among(f.rank)
	l := s.Limit()
	if w.Lane > 0 && s.lane >= s.laneLimit(now, l, w.Lane) {
		return DeniedLane
	}
	if s.used.Calls == 0 {
		return Granted
	}
	if l.Calls > 0 {
		if free := l.Calls - s.used.Calls; free <= 0 {
			return DeniedCalls
		} else if free <= s.reserve(flows) && f.used.Calls*flows >= l.Calls {
			return DeniedShare
		}
	}
	return s.askTokens(f, flows, max(1, w.Tokens), l.Tokens)
}

func (s *Slots) askTokens(f *flow, flows int, n, most int64) Denial {
	if most <= 0 {
		return Granted
	}
	left := most - s.used.Tokens
	if n > left {
		return DeniedTokens
	}
	if flows > 1 && n > left-most/reserved && f.used.Tokens >= most/int64(flows) {
		return DeniedTokenShare
	}
	return Granted
}

// laneLimit is how many quarantined calls there may be.
func (s *Slots) laneLimit(now time.Time, l Load, share float64) int {
	if l.Calls > 0 {
		return max(1, int(share*float64(l.Calls)))
	}
	return max(1, int(share*s.peak.top(now, laneMemory, float64(s.used.Calls))))
}

// Take takes a slot, within the limits or not: Ask tells.
func (s *Slots) Take(now time.Time, w Want) Slot {
	f := s.flow(now, w)
	slot := Slot{flow: f, tokens: max(1, w.Tokens), quarantined: w.Lane > 0}
	f.used.Calls++
	f.used.Tokens += slot.tokens
	s.used.Calls++
	s.used.Tokens += slot.tokens
	if w.Lane > 0 {
		s.lane++
	}
	s.peak.top(now, laneMemory, float64(s.used.Calls))
	return slot
}

// Release gives the slot back.
func (s *Slots) Release(slot *Slot) {
	if slot.flow == nil {
		return
	}
	slot.flow.used.Calls--
	slot.flow.used.Tokens -= slot.tokens
	s.used.Calls--
	s.used.Tokens -= slot.tokens
	if slot.quarantined {
		s.lane--
	}
	*slot = Slot{}
}

// flow finds a flow, or begins one, and notes that it is at work.
func (s *Slots) flow(now time.Time, w Want) *flow {
	s.sweep(now)
	rank := min(w.Rank, Ranks-1)
	f := s.flows[w.Flow]
	switch {
	case f == nil:
		if s.flows == nil {
			s.flows = map[string]*flow{}
		}
		f = &flow{rank: rank}
		s.flows[w.Flow] = f
		s.active[rank]++
	case f.rank != rank: // it was given another
		s.active[f.rank]--
		s.active[rank]++
		f.rank = rank
	}
	f.seen = now
	return f
}

// sweep forgets the flows that hold nothing and have been silent for long.
func (s *Slots) sweep(now time.Time) {
	if now.Sub(s.swept) < sweepEach {
		return
	}
	s.swept = now
	for name, f := range s.flows {
		if f.used.Calls == 0 && now.Sub(f.seen) >= activeFor {
			delete(s.flows, name)
			s.active[f.rank]--
		}
	}
}

// peaks is the highest of the values of a while: of one to two spans. The zero
// value is ready.
type peaks struct {
	at        time.Time
	now, then float64
}

// top adds a value and returns the highest.
func (p *peaks) top(now time.Time, span time.Duration, v float64) float64 {
	switch age := now.Sub(p.at); {
	case p.at.IsZero() || age >= 2*span:
		p.at, p.now, p.then = now, v, v
	case age >= span:
		p.at, p.now, p.then = p.at.Add(span), v, p.now
	}
	p.now = max(p.now, v)
	return max(p.now, p.then)
}
