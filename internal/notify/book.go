package notify

import (
	"slices"
	"time"
)

const (
	// apart is the least time between two messages about the same event and state of
	// the same subject.
	apart = time.Minute
	// room is how many messages may wait for one webhook.
	room = 64
	// maxAlso bounds the notices that a message tells of besides its own.
	maxAlso = 8
	// maxMarks and maxSeen bound what is remembered of messages and notices.
	maxMarks = 1024
	maxSeen  = 256
	// firstPause and longestPause are the bounds of the pause before a repeat, drawn
	// from 0 to twice the one before.
	firstPause   = time.Second
	longestPause = time.Minute
	// longestAsked bounds what a receiver may ask for with Retry-After.
	longestAsked = 5 * time.Minute
	// within is for how long a message is tried.
	within = 15 * time.Minute
)

// Message is a notice on its way, with those that it covers.
type Message struct {
	Notice
	Also    []Notice // older ones that were not told, the oldest first
	Untold  int      // further ones
	Tries   int      // made so far
	Renewal bool     // of an outage that is open still

	due    time.Time // not before
	queued time.Time
}

// cover takes over what an older message would have told.
func (m *Message) cover(old *Message) {
	all := append(slices.Clone(old.Also), old.Notice)
	m.Untold += old.Untold
	if extra := len(all) - maxAlso; extra > 0 {
		m.Untold += extra
		all = all[extra:]
	}
	m.Also = all
}

// Outcome is what became of a try.
type Outcome struct {
	Delivered bool
	Again     bool          // another try may help; of one that was not delivered
	After     time.Duration // what the receiver asked for, 0 for nothing
}

// Stats counts what became of notices and messages. Every notice is in exactly one of
// Merged, Duplicates, Dropped, Delivered (without Renewed), Refused, Failed or
// Waiting.
type Stats struct {
	Delivered  int64
	Renewed    int64 // deliveries that only say that an outage is open still
	Refused    int64 // messages that the receiver refused for good
	Failed     int64 // messages given up
	Dropped    int64 // messages for which there was no room
	Merged     int64 // notices covered by a newer one
	Duplicates int64
	Waiting    int
	Unrenewed  int64 // failed deliveries of renewals
}

// Book decides what one webhook is sent next, and when. It is pure and not safe for
// concurrent use.
type Book struct {
	// Retries is how often a message is repeated at most.
	Retries int
	// Renew is how often an open outage is told again; 0 for never.
	Renew time.Duration
	// Hurry ends all waiting: what is there is tried once and given up.
	Hurry bool

	waiting []*Message // in the order of being offered
	flight  *Message   // handed out
	pause   time.Time  // nothing is sent before
	streak  int        // failures in a row
	marks   []mark
	seen    []string
	open    []standing
	stats   Stats
}

// mark is when something was last told.
type mark struct {
	key string
	at  time.Time
}

// standing is an outage that has not ended.
type standing struct {
	notice Notice
	told   time.Time
}

// Stats is what became of everything so far.
func (b *Book) Stats() Stats {
	s := b.stats
	s.Waiting = len(b.waiting)
	if b.flight != nil && !b.flight.Renewal {
		s.Waiting++
	}
	return s
}

// Offer takes a notice in. One that is there already is not told again, one of a
// subject about which something waits takes its place, and one that was told in the
// last minute waits until it is over.
func (b *Book) Offer(now time.Time, n Notice) {
	if slices.Contains(b.seen, n.ID) {
		b.stats.Duplicates++
		return
	}
	if b.seen = append(b.seen, n.ID); len(b.seen) > maxSeen {
		b.seen = slices.Delete(b.seen, 0, 1)
	}
	b.stand(now, n)
	m := &Message{Notice: n, queued: now, due: b.told(now, n.limited())}
	if i := slices.IndexFunc(b.waiting, func(w *Message) bool { return w.group() == n.group() }); i >= 0 {
		m.cover(b.waiting[i])
		b.stats.Merged++
		b.waiting[i] = m
		return
	}
	b.waiting = append(b.waiting, m)
	if len(b.waiting) > room {
		b.waiting = slices.Delete(b.waiting, b.least(), b.least()+1)
		b.stats.Dropped++
	}
}

// least is the message that goes when there is no room: the oldest that is about no
// outage, else the oldest.
func (b *Book) least() int {
	return max(0, slices.IndexFunc(b.waiting, func(m *Message) bool { return m.Kind != OfOutage }))
}

// told is when something may be told again, and forgets what does not matter any
// more.
func (b *Book) told(now time.Time, key string) (due time.Time) {
	b.marks = slices.DeleteFunc(b.marks, func(m mark) bool { return now.Sub(m.at) >= apart })
	for _, m := range b.marks {
		if m.key == key {
			due = m.at.Add(apart)
		}
	}
	return due
}

// stand keeps the newest of each open outage.
func (b *Book) stand(now time.Time, n Notice) {
	if n.Outage == nil {
		return
	}
	i := slices.IndexFunc(b.open, func(s standing) bool { return s.notice.Subject == n.Subject })
	switch {
	case n.Outage.Ended != nil && i >= 0:
		b.open = slices.Delete(b.open, i, i+1)
	case n.Outage.Ended != nil:
	case i >= 0:
		b.open[i].notice = n
	default:
		if b.open = append(b.open, standing{n, now}); len(b.open) > maxOutages {
			b.open = slices.Delete(b.open, 0, 1)
		}
	}
}

// Next hands out the message to send now, or says how long there is nothing to do, 0
// for until the next Offer. One that was handed out comes back with Done before
// another goes.
func (b *Book) Next(now time.Time) (*Message, time.Duration) {
	if b.flight != nil {
		return nil, 0
	}
	if wait := b.pause.Sub(now); wait > 0 && !b.Hurry {
		return nil, wait
	}
	var first time.Time
	sooner := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for i, m := range b.waiting {
		if m.due.After(now) && !b.Hurry {
			sooner(m.due)
			continue
		}
		b.waiting = slices.Delete(b.waiting, i, i+1)
		return b.hand(now, m), 0
	}
	if b.Renew > 0 && !b.Hurry {
		for _, s := range b.open {
			if at := s.told.Add(b.Renew); at.After(now) {
				sooner(at)
				continue
			}
			return b.hand(now, &Message{Notice: s.notice, queued: now, Renewal: true}), 0
		}
	}
	if first.IsZero() {
		return nil, 0
	}
	return nil, first.Sub(now)
}

func (b *Book) hand(now time.Time, m *Message) *Message {
	m.Tries++
	b.flight = m
	if m.Tries == 1 && !m.Renewal {
		if b.marks = append(b.marks, mark{m.limited(), now}); len(b.marks) > maxMarks {
			b.marks = slices.Delete(b.marks, 0, 1)
		}
	}
	return m
}

// Done takes back what became of the message that was handed out; random is drawn
// from [0,1).
func (b *Book) Done(now time.Time, o Outcome, random float64) {
	m := b.flight
	b.flight = nil
	if m == nil {
		return
	}
	if o.Delivered || !o.Again {
		b.streak, b.pause = 0, time.Time{}
		b.settled(now, m, o.Delivered)
		return
	}
	b.streak++
	b.pause = now.Add(pauseOf(b.streak, o.After, random))
	switch {
	case m.Renewal:
		b.stats.Unrenewed++
	case b.Hurry || m.Tries > b.Retries || now.Sub(m.queued) >= within:
		b.stats.Failed++
	default:
		b.again(m)
	}
}

// settled is the end of a message that is not tried again.
func (b *Book) settled(now time.Time, m *Message, delivered bool) {
	switch {
	case delivered && m.Renewal:
		b.stats.Renewed++
	case delivered:
		b.stats.Delivered++
	case m.Renewal:
		b.stats.Unrenewed++
	default:
		b.stats.Refused++
	}
	for i := range b.open {
		if b.open[i].notice.Subject == m.Subject && m.Kind == OfOutage {
			b.open[i].told = now
		}
	}
}

// again puts a message back in front, unless a newer one of its subject has come.
func (b *Book) again(m *Message) {
	for _, w := range b.waiting {
		if w.group() == m.group() {
			newer := w.Also
			w.Also = nil
			w.cover(m)
			w.Also = append(w.Also, newer...)
			if extra := len(w.Also) - maxAlso; extra > 0 {
				w.Untold += extra
				w.Also = slices.Delete(w.Also, 0, extra)
			}
			b.stats.Merged++
			return
		}
	}
	m.due = time.Time{}
	b.waiting = slices.Insert(b.waiting, 0, m)
}

// pauseOf is the wait after the n-th failure in a row: drawn from nothing to a bound
// that doubles, and no less than what the receiver asked for within reason.
func pauseOf(n int, asked time.Duration, random float64) time.Duration {
	most := longestPause
	if n < 7 {
		most = min(most, firstPause<<(n-1))
	}
	return max(time.Duration(random*float64(most)), min(asked, longestAsked))
}
