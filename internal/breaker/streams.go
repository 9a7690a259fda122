package breaker

import "time"

const (
	cohorts       = 64
	cohortSeconds = 2
	// moment is how long breaks of a few streams among many are one event.
	moment = time.Second
	// Who lost a stream comes back for another at once. For herdFor, calls that
	// wait for content are held to what the target carried before, and by and
	// by to more: twice as many after herdStep, and so on.
	herdFor  = 30 * time.Second
	herdStep = 10 * time.Second
)

// streams counts the calls that have begun well, by the time of their first
// content: how many of them run, and how many have broken off since. A break
// is judged against those that began when it did or before. Younger streams
// may have yet to meet what broke it; they count only in the sum of all.
type streams struct {
	now     int64 // the newest cohort
	begun   [cohorts]cohort
	old     cohort    // began before all of these; what broke is halved every two minutes
	event   time.Time // the first break of the last event
	excused int       // breaks of it that did not count
	herd    time.Time // when they became more than calls usually wait
}

type cohort struct{ run, broke uint32 }

func (c cohort) share() float64 { return float64(c.broke) / float64(max(c.broke+c.run, 1)) }

// at is a cohort by its number.
func (s *streams) at(n int64) *cohort {
	if n <= s.now-cohorts {
		return &s.old
	}
	return &s.begun[uint64(n)%cohorts]
}

// advance moves on to now; cohorts that leave the ring become old.
func (s *streams) advance(now time.Time) {
	n := now.Unix() / cohortSeconds
	if n-s.now > cohorts { // all of them leave it
		for i := range s.begun {
			s.old.run += s.begun[i].run
		}
		s.begun, s.old.broke, s.now = [cohorts]cohort{}, 0, n
	}
	for s.now < n {
		s.now++
		c := s.at(s.now)
		s.old.run += c.run
		*c = cohort{}
		if s.now%cohorts == 0 {
			s.old.broke /= 2
		}
	}
}

// begin notes a call's first content.
func (s *streams) begin(now time.Time, c *call) {
	s.advance(now)
	c.begun = s.now
	s.at(c.begun).run++
}

// end notes that a call no longer runs.
func (s *streams) end(now time.Time, c *call) {
	s.advance(now)
	if c.begun > 0 {
		s.at(c.begun).run--
	}
}

// cut notes that a call that has ended had broken off. It returns the share of
// breaks among the streams that began when it did or before, and among all.
func (s *streams) cut(now time.Time, c *call) (older, all float64) {
	s.advance(now)
	s.at(c.begun).broke++
	sum := s.old
	older = sum.share()
	for n := s.now - cohorts + 1; n <= s.now; n++ {
		x := s.at(n)
		sum.run, sum.broke = sum.run+x.run, sum.broke+x.broke
		if n == c.begun {
			older = sum.share()
		}
	}
	return older, sum.share()
}

// counts reports that a break counts by itself: the first of an event, and all
// that follow within rest of it. Streams that break all the time are no event.
func (s *streams) counts(now time.Time, rest time.Duration) bool {
	d := now.Sub(s.event)
	if d >= 0 && d < moment {
		return false
	}
	if d < 0 || d >= rest {
		s.event, s.excused = now, 0
	}
	return true
}
