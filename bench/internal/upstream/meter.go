package upstream

import (
	"sync"
	"time"
)

const (
	// Slot is the width of a slot of the books.
	Slot = 100 * time.Millisecond
	// slotsMost bounds the books: an hour.
	slotsMost = 36_000
)

// Meter counts calls by slots of 100 ms.
type Meter struct {
	mu       sync.Mutex
	start    time.Time
	arrivals []int
	inFlight []int // the most at once in the slot, seen at arrivals
	now      int
}

// Books are a copy of what a Meter has counted.
type Books struct {
	Start    time.Time `json:"start"`     // of the first slot
	Arrivals []int     `json:"arrivals"`  // calls that began in each slot
	InFlight []int     `json:"in_flight"` // most calls at once in each slot
	Now      int       `json:"now"`       // calls in flight
}

// NewMeter begins its first slot at start.
func NewMeter(start time.Time) *Meter { return &Meter{start: start} }

// Begin counts a call.
func (m *Meter) Begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.extend(now)
	m.now++
	if i := int(now.Sub(m.start) / Slot); i < len(m.arrivals) {
		m.arrivals[i]++
		m.inFlight[i] = max(m.inFlight[i], m.now)
	}
}

// End counts the end of a call.
func (m *Meter) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now--
}

// extend adds the slots up to now; calls in flight go on being so in each.
func (m *Meter) extend(now time.Time) {
	last := min(int(now.Sub(m.start)/Slot), slotsMost-1)
	for len(m.arrivals) <= last {
		m.arrivals = append(m.arrivals, 0)
		m.inFlight = append(m.inFlight, m.now)
	}
}

// Books copies the counts up to now.
func (m *Meter) Books(now time.Time) Books {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.extend(now)
	return Books{
		Start: m.start, Now: m.now,
		Arrivals: append([]int(nil), m.arrivals...), InFlight: append([]int(nil), m.inFlight...),
	}
}

// span is the slots from from to to, as far as there are any.
func (b Books) span(slots []int, from, to time.Time) []int {
	i := min(max(0, int(from.Sub(b.Start)/Slot)), len(slots))
	j := min(max(i, int(to.Sub(b.Start)/Slot)), len(slots))
	return slots[i:j]
}

// Calls is the calls that began from from to to, in whole slots.
func (b Books) Calls(from, to time.Time) (sum int) {
	for _, n := range b.span(b.Arrivals, from, to) {
		sum += n
	}
	return sum
}

// Peak is the most calls that began in one slot.
func (b Books) Peak(from, to time.Time) (most int) {
	for _, n := range b.span(b.Arrivals, from, to) {
		most = max(most, n)
	}
	return most
}

// MostInFlight is the most calls at once.
func (b Books) MostInFlight(from, to time.Time) (most int) {
	for _, n := range b.span(b.InFlight, from, to) {
		most = max(most, n)
	}
	return most
}

// UntilQuiet is the calls that began before the first second without any: how
// many it took a caller to leave.
func (b Books) UntilQuiet(from, to time.Time) (sum int) {
	quiet := 0
	for _, n := range b.span(b.Arrivals, from, to) {
		if n > 0 {
			quiet = 0
		} else if quiet++; quiet == int(time.Second/Slot) {
			break
		}
		sum += n
	}
	return sum
}

// Back is the time from from until a second with at least want calls begins,
// and whether there is one before to.
func (b Books) Back(from, to time.Time, want int) (time.Duration, bool) {
	s := b.span(b.Arrivals, from, to)
	const wide = int(time.Second / Slot)
	for i := 0; i+wide <= len(s); i++ {
		sum := 0
		for _, n := range s[i : i+wide] {
			sum += n
		}
		if sum >= want {
			return time.Duration(i) * Slot, true
		}
	}
	return to.Sub(from), false
}
