package repeat

import "time"

// What is remembered of failed requests.
const (
	// Remembered is how long a failed request makes the same one a repeat, to a
	// sixteenth: longer than the back-off of official clients, 8 s at most.
	Remembered = time.Minute
	// most entries, about 100 bytes each: a workload that fails more often in a
	// minute is in a storm, and its oldest failures matter least.
	most = 4096
)

// Memory knows the failed requests of the last minute by a hash: of their body,
// or of their idempotency key. A request that was answered and comes again is
// none that a retry loop sends, since loops end with an answer: it is a common
// prompt, such as a monitor's, and its failures are no evidence for a while. The
// zero value is ready and takes no room.
type Memory struct {
	seen  map[uint64]seen
	order []entry // a ring, the oldest at head
	head  int
	n     int
}

type seen struct {
	at     time.Time // failed last, or came last if it is common
	until  time.Time // it is a repeat before
	common bool
}

type entry struct {
	hash uint64
	at   time.Time
}

// Empty reports that nothing is remembered: there is no need to compute a hash.
func (m *Memory) Empty(now time.Time) bool {
	m.forget(now)
	return m.n == 0
}

// Failed remembers a request that failed. until is when its caller was told to
// come again, zero for one that is not to: a request that waited for that obeys,
// and repeats nothing. A hash of 0 is none.
func (m *Memory) Failed(now time.Time, hash uint64, until time.Time) {
	m.forget(now)
	if most := now.Add(Remembered); until.IsZero() || until.After(most) {
		until = most
	}
	if old := m.seen[hash]; hash != 0 && !old.common {
		m.note(hash, seen{at: now, until: later(until, old.until)})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Served takes note of an answer to a request that failed before.
func (m *Memory) Served(now time.Time, hash uint64) {
	m.forget(now)
	if _, known := m.seen[hash]; known {
		m.note(hash, seen{at: now, common: true})
	}
}

// Repeats reports that a request with this hash failed in the last minute, that
// none was answered, and that it was not told to come by now.
func (m *Memory) Repeats(now time.Time, hash uint64) bool {
	s, known := m.seen[hash]
	return known && !s.common && now.Before(s.until)
}

func (m *Memory) note(hash uint64, s seen) {
	if old, known := m.seen[hash]; known && old.common == s.common && s.at.Sub(old.at) < Remembered/16 {
		return // storms and monitors leave few entries
	}
	if m.seen == nil {
		m.seen = map[uint64]seen{}
	}
	if m.n == most {
		m.drop()
	}
	m.seen[hash] = s
	m.push(entry{hash, s.at})
}

func (m *Memory) forget(now time.Time) {
	for m.n > 0 && now.Sub(m.order[m.head].at) >= Remembered {
		m.drop()
	}
	if m.n == 0 && m.order != nil { // an incident is over: give its room back
		*m = Memory{}
	}
}

// drop forgets the oldest. What failed again has a later entry.
func (m *Memory) drop() {
	old := m.order[m.head]
	m.head = (m.head + 1) % len(m.order)
	m.n--
	if m.seen[old.hash].at.Equal(old.at) {
		delete(m.seen, old.hash)
	}
}

func (m *Memory) push(e entry) {
	if m.n == len(m.order) {
		grown := make([]entry, min(most, max(16, 2*m.n)))
		for i := range m.n {
			grown[i] = m.order[(m.head+i)%len(m.order)]
		}
		m.order, m.head = grown, 0
	}
	m.order[(m.head+m.n)%len(m.order)] = e
	m.n++
}
