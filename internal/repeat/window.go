package repeat

import "time"

const (
	numParts  = 6
	partWidth = 10 * time.Second
)

// Window counts what came in during the last minute, in steps of 10 s. The zero
// value is ready.
type Window struct {
	parts  [numParts]counts
	newest int64 // part number since the epoch
}

type counts struct{ inbound, repeats int64 }

// Add notes a request.
func (w *Window) Add(now time.Time, repeats bool) {
	c := w.part(now)
	c.inbound++
	if repeats {
		c.repeats++
	}
}

// Again turns a request of Add into a repeat: its body has shown it.
func (w *Window) Again(now time.Time) { w.part(now).repeats++ }

func (w *Window) part(now time.Time) *counts {
	w.turn(now)
	return &w.parts[w.newest%numParts]
}

func (w *Window) turn(now time.Time) {
	n := now.UnixNano() / int64(partWidth)
	if n-w.newest > numParts {
		*w = Window{newest: n}
	}
	for w.newest < n {
		w.newest++
		w.parts[w.newest%numParts] = counts{}
	}
}

// Traffic is what came in within a window.
type Traffic struct {
	Inbound, Repeats int64
	Seconds          float64
}

// Traffic sums the window up at now.
func (w *Window) Traffic(now time.Time) Traffic {
	w.turn(now)
	t := Traffic{Seconds: (numParts-1)*partWidth.Seconds() + float64(now.UnixNano()%int64(partWidth))/1e9}
	for _, c := range w.parts {
		t.Inbound += c.inbound
		t.Repeats += min(c.repeats, c.inbound)
	}
	return t
}

// Amplification is inbound requests for each distinct one, 1 without repeats.
func (t Traffic) Amplification() float64 {
	if t.Inbound == 0 {
		return 1
	}
	return float64(t.Inbound) / float64(max(1, t.Inbound-t.Repeats))
}

// Demand is distinct requests a second.
func (t Traffic) Demand() float64 { return float64(t.Inbound-t.Repeats) / t.Seconds }
