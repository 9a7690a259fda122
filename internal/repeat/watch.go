package repeat

import (
	"fmt"
	"time"
)

// The rule that moves a workload to the quarantine lane and back (algorithm
// notes, section 7).
const (
	enterAmplification = 3.5 // inbound per distinct request, in a minute: official clients repeat twice, which makes 3
	enterExcess        = 0.1 // the workload's repeats among everything that came in
	dominantExcess     = 0.5 // the same among all repeats, while the router is overloaded
	leastRepeats       = 120 // a minute: twice what the allowance lets in at any rate

	leaveAmplification = 1.2
	leaveCalm          = 10 * time.Minute
	leaveLoad          = 0.8 // of the demand at entry
)

// Suspect is a workload as the rule sees it.
type Suspect struct {
	Name    string
	Traffic Traffic
	// Quarantined says that the rule has moved it before; Demand is what it asked
	// for then, in distinct requests a second.
	Quarantined bool
	Demand      float64
	// Placed says that somebody else has: the rule leaves it alone.
	Placed bool
}

// Move is what the rule decides about a workload, with the evidence.
type Move struct {
	Name string
	In   bool // into quarantine, or out of it
	// Stay says that it would leave if its load were back: nothing is moved.
	Stay bool
	Why  string
}

// Watch applies the rule to all workloads. The zero value is ready.
type Watch struct {
	calm map[string]time.Time // since when
	said map[string]bool      // that it stays for want of load
}

// Judge looks at the last minute. overloaded says that the router has refused
// work for want of memory or room meanwhile. With nobody else to protect no
// workload is moved.
func (w *Watch) Judge(now time.Time, overloaded bool, all []Suspect) (moves []Move) {
	inbound, repeats, busy := int64(0), int64(0), 0
	for _, s := range all {
		inbound += s.Traffic.Inbound
		repeats += s.Traffic.Repeats
		if s.Traffic.Inbound > s.Traffic.Repeats {
			busy++
		}
	}
	for _, s := range all {
		switch {
		case s.Placed:
		case s.Quarantined:
			moves = w.leave(now, s, moves)
		case busy > 1:
			moves = enter(s, inbound, repeats, overloaded, moves)
		}
	}
	w.forget(all)
	return moves
}

// enter decides over a workload outside.
func enter(s Suspect, inbound, repeats int64, overloaded bool, moves []Move) []Move {
	t := s.Traffic
	if t.Repeats < leastRepeats {
		return moves
	}
	a, excess, part := t.Amplification(), share(t.Repeats, inbound), share(t.Repeats, repeats)
	why := ""
	switch {
	case a >= enterAmplification && excess >= enterExcess:
		why = fmt.Sprintf("%.1f inbound for each distinct request in the last minute, %.0f %% of all inbound is its repeats", a, 100*excess)
	case overloaded && part >= dominantExcess && excess >= enterExcess:
		why = fmt.Sprintf("the router refuses work and %.0f %% of all repeats are its own (%.0f %% of all inbound)", 100*part, 100*excess)
	default:
		return moves
	}
	return append(moves, Move{Name: s.Name, In: true, Why: why})
}

// leave decides over a workload inside. A fall in traffic is no recovery: it
// leaves when it has been calm for long and is so in a minute of about the load
// that it came with.
func (w *Watch) leave(now time.Time, s Suspect, moves []Move) []Move {
	if s.Traffic.Amplification() > leaveAmplification {
		delete(w.calm, s.Name)
		delete(w.said, s.Name)
		return moves
	}
	since, calm := w.calm[s.Name]
	if !calm {
		w.begin(now, s.Name)
		return moves
	}
	if now.Sub(since) < leaveCalm {
		return moves
	}
	load := s.Traffic.Demand() / max(s.Demand, 1e-9)
	if load >= leaveLoad {
		why := fmt.Sprintf("%.2f inbound for each distinct request, calm for %s and now at %.0f %% of the load at entry", s.Traffic.Amplification(), leaveCalm, 100*load)
		return append(moves, Move{Name: s.Name, Why: why})
	}
	if w.said[s.Name] {
		return moves
	}
	w.said[s.Name] = true
	why := fmt.Sprintf("unverified: calm for %s, but at %.0f %% of the load at entry; it stays until the load is back or an operator releases it", leaveCalm, 100*load)
	return append(moves, Move{Name: s.Name, Stay: true, Why: why})
}

func (w *Watch) begin(now time.Time, name string) {
	if w.calm == nil {
		w.calm, w.said = map[string]time.Time{}, map[string]bool{}
	}
	w.calm[name] = now
}

// forget drops what is known of workloads that the rule does not hold.
func (w *Watch) forget(all []Suspect) {
	held := map[string]bool{}
	for _, s := range all {
		held[s.Name] = s.Quarantined && !s.Placed
	}
	for name := range w.calm {
		if !held[name] {
			delete(w.calm, name)
			delete(w.said, name)
		}
	}
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
