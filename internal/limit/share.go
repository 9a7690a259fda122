package limit

import (
	"math"
	"time"
)

// When a refused credential is proof against it, and how much of the traffic
// follows the evidence.
const (
	// A refusal is proof when the credential has never been accepted, or not
	// for knownGood, or when so many in a row were refused for so long.
	knownGood  = 10 * time.Minute
	manyInRow  = 20
	manyFor    = 10 * time.Second
	someInRow  = 10
	someFor    = time.Minute
	servedStep = 0.25 // each accepted call lifts the share by a fifth,
	refuseStep = 0.3  // each refused one lowers it as much: they cancel at 55 % accepted
	slack      = 2.0  // so much of the depth costs nothing: 6 refusals more than that
	deepest    = 6.0  // a sixteenth of the calls
	// leastEvery is the longest pause between two calls: evidence at low rates.
	leastEvery = 5 * time.Second

	// futileAfter outcomes at an eighth of the calls or fewer, without a rise
	// past a quarter, show that keeping away does not help.
	futileAfter = 12
	half        = slack + 1
	quarter     = slack + 2
	eighth      = slack + 3
	firstHold   = 5 * time.Minute // how long that is believed, doubled each time
	longestHold = time.Hour
)

// share is how much of the traffic a credential gets whose calls are refused
// and accepted in turn. A key store that is overloaded recovers only when it
// is asked less, hence the share; one that refuses at random, whatever it is
// asked, does not, hence futile. The zero value lets everything in.
type share struct {
	depth  float64 // the share is 2^-(depth-slack), 1 up to slack
	left   bool    // most were refused: down to the least share at once, and up from there
	credit float64 // calls that may go now, kept while the share is below 1
	went   time.Time
	row    int       // refusals since the last accepted call
	good   time.Time // of the last accepted call

	low    int           // outcomes since the depth passed eighth
	futile time.Time     // until when keeping away is known not to help
	hold   time.Duration // the last such stretch
}

// level is the share of calls that go, in (0,1].
func (s *share) level() float64 { return math.Exp2(-max(0, s.depth-slack)) }

// served notes an accepted call.
func (s *share) served(now time.Time) {
	s.row, s.good = 0, now
	s.move(now, -servedStep)
}

// refused notes a refused one and reports whether it is proof.
func (s *share) refused(now time.Time) (proof bool) {
	s.row++
	s.move(now, refuseStep)
	since := now.Sub(s.good)
	return !s.recent(now) || s.row >= s.many(now) && since >= manyFor || s.row >= someInRow && since >= someFor
}

// many is how many refusals in a row are too many to be chance. A credential
// that is known to be refused at random has longer rows.
func (s *share) many(now time.Time) int {
	if now.Before(s.futile) {
		return 3 * manyInRow
	}
	return manyInRow
}

// recent reports a credential that was accepted not long ago.
func (s *share) recent(now time.Time) bool { return !s.good.IsZero() && now.Sub(s.good) < knownGood }

func (s *share) move(now time.Time, by float64) {
	s.depth = min(deepest, max(0, s.depth+by))
	if s.depth >= half && !s.left {
		s.depth, s.left = deepest, true
	}
	switch {
	case s.depth == 0:
		*s = share{row: s.row, good: s.good}
	case s.depth < quarter:
		s.low = 0
	case now.Before(s.futile):
		s.low = 0
	case s.depth >= eighth || s.low > 0:
		s.low++
	}
	if s.low >= futileAfter {
		s.low = 0
		if s.row >= futileAfter { // nothing was accepted: no share will do
			return
		}
		s.hold = min(longestHold, max(firstHold, 2*s.hold))
		s.futile = now.Add(s.hold)
	}
}

// restart begins the return after a block.
func (s *share) restart() { s.depth, s.left, s.credit, s.low = deepest, true, 0, 0 }

// admit lets the share through, evenly spread. needy calls have nowhere else to
// go: they are let in where keeping away does not help.
func (s *share) admit(now time.Time, needy bool) bool {
	level := s.level()
	if level == 1 || needy && now.Before(s.futile) && s.row < s.many(now) {
		s.credit, s.went = 1, now
		return true
	}
	s.credit = min(1, s.credit+level)
	if s.credit < 1 && now.Sub(s.went) < leastEvery {
		return false
	}
	s.credit, s.went = max(0, s.credit-1), now
	return true
}
