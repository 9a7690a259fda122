package breaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

const never = math.MaxInt

// upstream is a simulated target behind a breaker, and the clock of a test.
type upstream struct {
	b    *Breaker
	now  time.Time
	ends []end
	rng  *rand.Rand

	admitted, refused, good, bad, trips, moves int
}

type end struct {
	at time.Time
	p  Permit
	o  Outcome
}

func newUpstream(seed uint64) *upstream {
	return &upstream{b: New(Default()), now: t0, rng: rand.New(rand.NewPCG(seed, 1))}
}

type (
	acquirer func() (Permit, bool)
	answerer func() (time.Duration, Outcome)
)

// run offers rate calls a second for d.
func (s *upstream) run(d time.Duration, rate int, acquire acquirer, answer answerer) {
	stop, next := s.now.Add(d), s.now
	for ; s.now.Before(stop); s.now = s.now.Add(5 * time.Millisecond) {
		for !next.After(s.now) {
			next = next.Add(time.Second / time.Duration(rate))
			p, ok := acquire()
			if !ok {
				s.refused++
				continue
			}
			s.admitted++
			took, o := answer()
			s.ends = append(s.ends, end{s.now.Add(took), p, o})
		}
		s.settle()
		s.b.Poll(s.now, s.rng.Float64())
		for _, e := range s.b.Events() {
			s.moves++
			if e.To == Open {
				s.trips++
			}
		}
	}
}

func (s *upstream) settle() {
	rest := s.ends[:0]
	for _, e := range s.ends {
		if e.at.After(s.now) {
			rest = append(rest, e)
			continue
		}
		if e.o == Success {
			s.good++
			s.b.FirstContent(s.now, e.p)
		} else {
			s.bad++
		}
		v := Verdict{Outcome: e.o, Rand: s.rng.Float64()}
		if e.o == leaves {
			v.Outcome, v.Left = Ignored, true
		}
		s.b.Settle(s.now, e.p, v)
	}
	s.ends = rest
}

// leaves is the end of a call whose caller has left.
const leaves Outcome = 100

func (s *upstream) with(c Call) acquirer {
	return func() (Permit, bool) {
		p, r := s.b.Acquire(s.now, c)
		return p, r == None
	}
}

func (s *upstream) acquire() (Permit, bool) { return s.with(ask())() }

// resort is what a router does whose only target this is.
func (s *upstream) resort() (Permit, bool) {
	if p, ok := s.acquire(); ok {
		return p, true
	}
	return s.b.AcquireLastResort(s.now, ask())
}

// failing answers after 50 ms, so many of a hundred badly.
func (s *upstream) failing(percent int) answerer {
	return func() (time.Duration, Outcome) {
		if s.rng.IntN(100) < percent {
			return 50 * time.Millisecond, Failure
		}
		return 50 * time.Millisecond, Success
	}
}

func always(d time.Duration, o Outcome) answerer {
	return func() (time.Duration, Outcome) { return d, o }
}

// twoOfThree fails in turn, so that no run is longer than two.
func twoOfThree() answerer {
	n := 0
	return func() (time.Duration, Outcome) {
		if n++; n%3 == 0 {
			return 50 * time.Millisecond, Success
		}
		return 50 * time.Millisecond, Failure
	}
}

var hang = always(time.Minute, Failure)

// trip fails calls until it opens.
func (s *upstream) trip() {
	for s.b.phase != Open {
		feed(s.b, s.now, Failure)
	}
	s.b.Events()
}

// afterCoolDown is behind any first cool-down.
const afterCoolDown = 7 * time.Second

// TestRulesMatter shows for every rule a situation that it decides: with the
// rule the situation ends as wanted, with the rule switched off it does not.
func TestRulesMatter(t *testing.T) {
	tests := []struct {
		name string
		off  func(*Config)
		want func(*upstream) bool
	}{
		{"failure ratio", func(c *Config) { c.MinRequests = never }, func(s *upstream) bool {
			s.run(60*time.Second, 4, s.acquire, s.failing(0))
			s.run(12*time.Second, 4, s.acquire, twoOfThree())
			return s.trips > 0
		}},
		{"minimum of verdicts", func(c *Config) { c.MinRequests = 1 }, func(s *upstream) bool {
			s.run(time.Second, 18, s.acquire, twoOfThree())
			return s.trips == 0
		}},
		{"failures in a row", func(c *Config) { c.Run = never }, func(s *upstream) bool {
			s.run(10*time.Second, 50, s.acquire, s.failing(0))
			s.run(300*time.Millisecond, 50, s.acquire, s.failing(100))
			return s.trips > 0
		}},
		{"ratio of the last verdicts", func(c *Config) { c.Last = never }, func(s *upstream) bool {
			s.run(10*time.Second, 50, s.acquire, s.failing(0))
			s.run(1200*time.Millisecond, 50, s.acquire, twoOfThree())
			return s.trips > 0
		}},
		{"long failure ratio", func(c *Config) { c.LongMin = never }, func(s *upstream) bool {
			for _, o := range repeat(Failure, 12) {
				s.now = s.now.Add(8 * time.Second)
				feed(s.b, s.now, o, Success)
			}
			return s.b.phase != Closed
		}},
		{"slow", func(c *Config) { c.SlowRatio = 2 }, func(s *upstream) bool { // every call succeeds, late
			s.run(20*time.Second, 5, s.with(Call{Slow: 4 * time.Second}), always(4500*time.Millisecond, Success))
			return s.trips > 0
		}},
		{"silence", func(c *Config) { c.Waiting = never }, func(s *upstream) bool {
			s.run(5*time.Second, 10, s.acquire, hang)
			return s.trips > 0
		}},
		{"slow verdicts count as failures when calls are few", func(c *Config) { c.LongMin = never }, func(s *upstream) bool {
			s.run(40*time.Second, 1, s.with(Call{Slow: 4 * time.Second}), hang)
			return s.trips > 0
		}},
		{"connect", func(c *Config) { c.Connects = maxRun + 1 }, func(s *upstream) bool {
			for range 3 {
				p, _ := s.acquire()
				s.b.Settle(s.now, p, Verdict{Outcome: Failure, Connect: true})
			}
			return s.b.phase == Open
		}},
		{"probes in a row", func(c *Config) { c.Probes = 1 }, func(s *upstream) bool {
			s.trip()
			s.now = s.now.Add(afterCoolDown)
			feed(s.b, s.now, Success, Success, Failure)
			return s.b.phase == Open && s.b.trips == 2
		}},
		{"lease", func(c *Config) { c.MaxLease = time.Hour }, func(s *upstream) bool {
			s.trip()
			s.b.Acquire(s.now.Add(afterCoolDown), Call{Slow: time.Second})
			s.b.Poll(s.now.Add(afterCoolDown+31*time.Second), 0.5)
			return s.b.phase == Open
		}},
		{"ramp", func(c *Config) { c.Ramp = 0 }, coldTarget},
		{"growing cool-down", func(c *Config) { c.MaxCoolDown = c.CoolDown }, func(s *upstream) bool {
			s.run(10*time.Minute, 10, s.acquire, s.failing(100))
			return s.trips < 20
		}},
		{"upstream's wait", func(c *Config) { c.MaxFloor = 0 }, func(s *upstream) bool {
			s.trip()
			s.b.Floor(s.now, s.now.Add(time.Minute))
			return s.b.Phase(s.now.Add(59*time.Second)) == Open
		}},
		{"pause between last resorts", func(c *Config) { c.Trickle = 0 }, func(s *upstream) bool {
			s.run(time.Minute, 50, s.resort, s.failing(100))
			return s.admitted < 180
		}},
	}
	for _, tt := range tests {
		on, off := newUpstream(1), newUpstream(1)
		tt.off(&off.b.cfg)
		if !tt.want(on) {
			t.Errorf("%s: not as wanted", tt.name)
		}
		if tt.want(off) {
			t.Errorf("%s: as wanted without the rule too", tt.name)
		}
	}
}

// coldTarget: after an outage the target bears 300 calls a second and warms
// to 1000 over 15,000 answers; 800 a second are offered.
func coldTarget(s *upstream) bool {
	s.trip()
	s.now = s.now.Add(afterCoolDown)
	warm, used, second := 0, 0, int64(0)
	s.run(100*time.Second, 800, s.acquire, func() (time.Duration, Outcome) {
		if sec := s.now.Unix(); sec != second {
			second, used = sec, 0
		}
		if used++; used > 300+700*min(warm, 15_000)/15_000 {
			return 0, Failure
		}
		warm++
		return 0, Success
	})
	return s.trips == 0 && s.b.phase == Closed
}

// Of 10,000 calls half fail: it opens. A fifth: it never does, whatever the
// seed.
func TestPartialFailure(t *testing.T) {
	for seed := range uint64(20) {
		half, fifth := newUpstream(seed), newUpstream(seed)
		half.run(30*time.Second, 50, half.acquire, half.failing(50))
		fifth.run(200*time.Second, 50, fifth.acquire, fifth.failing(20))
		if half.trips == 0 || fifth.trips > 0 {
			t.Errorf("seed %d: %d trips at one half, %d at one fifth", seed, half.trips, fifth.trips)
		}
	}
}

// One failure on a quiet target is no ratio of the last verdicts: taking the
// few that are young enough for all fails it.
func TestOneFailureOnAQuietTarget(t *testing.T) {
	s := newUpstream(1)
	s.run(60*time.Second, 2, s.acquire, s.failing(0))
	s.now = s.now.Add(11 * time.Second)
	feed(s.b, s.now, Failure)
	if s.b.phase != Closed {
		t.Error("opened")
	}
}

// B02: users press stop, early or late, again and again. Counting Ignored as
// Failure fails it.
func TestCancelStorm(t *testing.T) {
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 3 * time.Second} {
		s := newUpstream(1)
		s.run(time.Minute, 20, s.acquire, func() (time.Duration, Outcome) {
			if s.rng.IntN(3) == 0 {
				return 200 * time.Millisecond, Success
			}
			return after, Ignored
		})
		if s.trips > 0 || s.refused > 0 {
			t.Errorf("cancels after %v: %d trips", after, s.trips)
		}
	}
}

// A router that has just begun knows nothing of a target, and its callers leave
// before the age that is slow where nothing is known: their leaving says that
// the target hangs. It fails without deserted. Callers who leave early, or after
// anybody was answered, say nothing: at a healthy target of 20 s the impatient
// ones leave between the answers of those who wait.
func TestCallersWhoLeaveASilentTarget(t *testing.T) {
	for _, c := range []struct {
		name   string
		rate   int
		after  time.Duration
		other  int // one in so many, the first too, is answered, 0 for none
		took   time.Duration
		opens  bool
		within time.Duration
	}{
		{"a hang", 5, 15 * time.Second, 0, 0, true, 20 * time.Second},
		{"a hang and little traffic", 1, 15 * time.Second, 0, 0, true, 30 * time.Second},
		{"early", 20, 9 * time.Second, 0, 0, false, 2 * time.Minute},
		{"some are answered", 5, 15 * time.Second, 20, 0, false, 2 * time.Minute},
		{"the impatient leave", 1, 11 * time.Second, 40, 20 * time.Second, false, 5 * time.Minute},
	} {
		s, n := newUpstream(1), 0
		s.run(c.within, c.rate, s.with(Call{Slow: 30 * time.Second, Silence: 30 * time.Second}), func() (time.Duration, Outcome) {
			if n++; c.other > 0 && n%c.other == 1 {
				return c.took, Success
			}
			return c.after, leaves
		})
		if opened := s.trips > 0; opened != c.opens {
			t.Errorf("%s: %d trips", c.name, s.trips)
		}
	}
}

// Callers who lose patience just after the age of slow do not hide a hang:
// leaving them out of the slow rule (left) fails the second half, taking
// their slow verdict back the first.
func TestImpatientCallersDoNotHideAHang(t *testing.T) {
	s := newUpstream(1)
	s.run(10*time.Second, 10, s.with(Call{Slow: 4 * time.Second}), always(4100*time.Millisecond, Ignored))
	if s.trips == 0 {
		t.Error("closed after 10 s of nothing")
	}
	// And where half of the calls are answered at once it stays closed.
	s = newUpstream(1)
	n := 0
	s.run(30*time.Second, 10, s.acquire, func() (time.Duration, Outcome) {
		if n++; n%2 == 0 {
			return 0, Success
		}
		return 4100 * time.Millisecond, Ignored
	})
	if s.trips > 0 {
		t.Error("opened although half of the calls were answered and none failed")
	}
}

// One call that hangs alone must not blind the silence rule for its lifetime,
// which asking for the oldest call in flight does; nor is it a silence.
func TestStragglerDoesNotHideSilence(t *testing.T) {
	s := newUpstream(1)
	get := s.with(Call{Silence: 4 * time.Second}) // so that no other rule sees the hang
	get()
	s.run(10*time.Second, 20, get, s.failing(0))
	if s.trips > 0 {
		t.Fatal("one straggler opened it")
	}
	s.run(5*time.Second, 20, get, hang)
	if s.trips == 0 {
		t.Error("closed after 5 s of silence")
	}
}

// A burst of calls that have just begun behind one that is late is not a
// silence: counting waiting calls instead of overdue ones opens it.
func TestBurstBehindALateCall(t *testing.T) {
	s := newUpstream(1)
	s.run(10*time.Second, 50, s.acquire, s.failing(0))
	s.acquire()
	s.now = s.now.Add(4 * time.Second)
	for range 100 {
		s.acquire()
	}
	s.b.Poll(s.now, 0.5)
	if s.b.phase != Closed {
		t.Error("opened")
	}
}

// Streams that run for minutes have answered when they begin. If they counted
// only at their end, the quarter that fails at once would be all there is.
func TestLongStreamsAreSuccesses(t *testing.T) {
	s := newUpstream(1)
	var running []Permit
	for i := range 400 {
		s.now = s.now.Add(50 * time.Millisecond)
		p, ok := s.acquire()
		if !ok {
			t.Fatalf("refused after %d calls", i)
		}
		if i%4 == 0 {
			s.b.Settle(s.now, p, Verdict{Outcome: Failure})
			continue
		}
		s.b.FirstContent(s.now, p)
		running = append(running, p)
	}
	if s.b.phase != Closed {
		t.Fatal("opened")
	}
	for _, p := range running { // and when they break off, that is what counts
		s.b.Settle(s.now, p, Verdict{Outcome: Failure, Rand: 0.5})
	}
	if s.b.phase != Open {
		t.Error("closed although every stream broke off")
	}
}

// ramping brings it to the start of the ramp.
func (s *upstream) ramping() {
	s.trip()
	s.now = s.now.Add(afterCoolDown)
	feed(s.b, s.now, repeat(Success, 3)...)
}

// The ramp holds while 5 % fail and goes back while 20 % do. Without the
// cases in rise the shares go on rising.
func TestRampIsGated(t *testing.T) {
	for _, tt := range []struct {
		percent  int
		min, max float64
	}{{0, 0.37, 0.40}, {10, 0.19, 0.33}, {30, minShare, 0.15}} {
		s := newUpstream(3)
		s.ramping()
		s.run(10*time.Second, 100, s.acquire, s.failing(0))
		s.run(10*time.Second, 100, s.acquire, s.failing(tt.percent))
		if s.b.phase != Ramp || s.b.share < tt.min || s.b.share > tt.max {
			t.Errorf("%d %% failing: %v at %.2f, want %.2f to %.2f", tt.percent, s.b.phase, s.b.share, tt.min, tt.max)
		}
	}
}

// The ramp's calls in flight are bounded by its share of what was borne. A
// peak that is noted when calls begin, not when they are answered, fails it:
// here 500 pile up before it opens.
func TestRampConcurrency(t *testing.T) {
	s := newUpstream(1)
	s.run(5*time.Second, 400, s.acquire, s.failing(0)) // 20 at once
	s.now = s.now.Add(time.Second)
	s.settle()
	var hung []Permit
	for range 500 {
		p, _ := s.acquire()
		hung = append(hung, p)
	}
	s.ramping()
	for _, p := range hung {
		s.b.Settle(s.now, p, Verdict{Outcome: Ignored})
	}
	s.b.share = 0.5
	n := 0
	for range 200 {
		p, r := s.b.Acquire(s.now, ask())
		if r == None {
			n++
			defer s.b.Settle(s.now, p, Verdict{})
		} else if r == RampConcurrency && n < 9 {
			t.Fatalf("refused at %d in flight", n)
		}
	}
	if n < 9 || n > 11 {
		t.Errorf("%d calls at half of 20", n)
	}
}

// Promise 10, the sad half: a target that fails half of its calls, with no
// other, is used for all of them, and the machine does not flap. Proving by
// three last-resort calls in a row, whatever the share, changes phase 300
// times.
func TestLastResortAtHalfFailure(t *testing.T) {
	s := newUpstream(1)
	s.run(2*time.Minute, 50, s.resort, s.failing(50))
	if share := float64(s.good) / float64(s.admitted+s.refused); share < 0.47 {
		t.Errorf("%.2f of all calls succeeded, a half could", share)
	}
	if s.moves > 40 {
		t.Errorf("%d changes of phase in two minutes", s.moves)
	}
}

// Promise 10, the happy half: dead for minutes, then well, nobody refused
// later than 1.5 s after. The target was once known to bear the load, or
// never was; then what it bears has to be found out, which takes 2 s.
func TestRecoveryWithNowhereElseToGo(t *testing.T) {
	well := always(200*time.Millisecond, Success)
	for _, known := range []bool{true, false} {
		s := newUpstream(1)
		calm := 1500 * time.Millisecond
		if known {
			s.run(time.Minute, 200, s.resort, well)
		} else {
			calm = 2 * time.Second
		}
		s.run(3*time.Minute, 200, s.resort, s.failing(100))
		s.run(calm, 200, s.resort, well)
		s.refused = 0
		s.run(2*time.Minute, 200, s.resort, well)
		if s.refused > 0 || s.b.phase != Closed {
			t.Errorf("known %v: %d refused after recovery, %v at the end", known, s.refused, s.b.phase)
		}
	}
}

// A dead target is not hung on to: of calls that all hang, few get in.
func TestLastResortAtAHungTarget(t *testing.T) {
	s := newUpstream(1)
	s.run(10*time.Second, 50, s.resort, s.failing(0))
	s.run(5*time.Second, 50, s.resort, hang)
	s.admitted = 0
	s.run(time.Minute, 50, s.resort, hang)
	if s.admitted > 40 {
		t.Errorf("%d calls sent to hang", s.admitted)
	}
}

// The last resort stops at the load the target is known to carry, and right
// after a silence at one call: what waited then counts against it.
func TestLastResortIsBounded(t *testing.T) {
	s := newUpstream(1)
	s.run(5*time.Second, 400, s.acquire, s.failing(0)) // 20 at once
	s.now = s.now.Add(time.Second)
	s.settle()
	s.trip()
	feed(s.b, s.now, Ignored)
	admit := func() (n int) {
		for range 200 {
			if _, ok := s.b.AcquireLastResort(s.now, ask()); ok {
				n++
			}
		}
		return n
	}
	if n := admit(); n < 20 || n > 22 {
		t.Errorf("%d calls at once to a target that bore 20", n)
	}
	s = newUpstream(1)
	s.run(10*time.Second, 50, s.acquire, s.failing(0))
	for s.b.phase == Closed {
		s.run(100*time.Millisecond, 50, s.with(Call{Silence: 1500 * time.Millisecond}), hang)
	}
	if n := admit(); n != 1 {
		t.Errorf("%d calls at once to a target that has just fallen silent", n)
	}
}

// A stream that proved the target and then broke off is no proof in a row.
func TestBrokenProof(t *testing.T) {
	s := newUpstream(1)
	s.trip()
	s.now = s.now.Add(afterCoolDown)
	first, _ := s.acquire()
	s.b.FirstContent(s.now, first)
	feed(s.b, s.now, Success)
	s.b.Settle(s.now, first, Verdict{Outcome: Failure})
	feed(s.b, s.now, Success, Success)
	if s.b.phase != HalfOpen || s.b.proofs != 2 {
		t.Errorf("%v with %d proofs", s.b.phase, s.b.proofs)
	}
}

// The stream that proves the target ends in the ramp, where its failure counts
// once and takes nothing below zero.
func TestProofBreaksOffInTheRamp(t *testing.T) {
	s := newUpstream(1)
	s.trip()
	s.now = s.now.Add(afterCoolDown)
	feed(s.b, s.now, Success, Success)
	last, _ := s.acquire()
	s.b.FirstContent(s.now, last)
	if w := s.b.Snapshot(s.now); s.b.phase != Ramp || w.OK != 1 || w.Failed != 0 {
		t.Fatalf("%v, %+v", s.b.phase, w)
	}
	s.b.Settle(s.now, last, Verdict{Outcome: Failure})
	if w := s.b.Snapshot(s.now); s.b.phase != Ramp || w.OK != 0 || w.Failed != 1 {
		t.Errorf("%v, %+v", s.b.phase, w)
	}
}

// Cool-downs are spread by a fifth, whatever number comes in.
func TestCoolDownIsSpread(t *testing.T) {
	for _, tt := range []struct {
		rnd  float64
		want time.Duration
	}{{0, 4 * time.Second}, {0.5, 5 * time.Second}, {1, 6 * time.Second}, {-7, 4 * time.Second}, {99, 6 * time.Second}} {
		b := New(Default())
		for range 10 {
			p, _ := b.Acquire(t0, ask())
			b.Settle(t0, p, Verdict{Outcome: Failure, Rand: tt.rnd})
		}
		if got := b.until.Sub(t0); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.rnd, got, tt.want)
		}
	}
}

// Failed last-resort calls do not extend the cool-down.
func TestLastResortDoesNotExtend(t *testing.T) {
	s := newUpstream(1)
	s.trip()
	until := s.b.until
	for range 30 {
		s.now = s.now.Add(100 * time.Millisecond)
		if p, ok := s.b.AcquireLastResort(s.now, ask()); ok {
			s.b.Settle(s.now, p, Verdict{Outcome: Failure})
		}
	}
	if !s.b.until.Equal(until) || s.b.trips != 1 {
		t.Errorf("open until %v, was %v; %d trips", s.b.until, until, s.b.trips)
	}
}

// A last-resort call that outlives its lease beside a late one has been
// judged: what it says later, good or bad, is no second verdict. Settle or
// FirstContent without the check of lost fails it.
func TestLostLastResort(t *testing.T) {
	for _, o := range []Outcome{Success, Failure} {
		s := newUpstream(1)
		s.trip()
		late, _ := s.b.AcquireLastResort(s.now, ask())
		s.now = s.now.Add(4 * time.Second) // ask().Slow
		s.b.Poll(s.now, 0.5)
		p, _ := s.b.AcquireLastResort(s.now, ask())
		if !late.Long() || p.Long() {
			t.Fatal("two may run on")
		}
		s.now = s.now.Add(4 * time.Second)
		s.b.Poll(s.now, 0.5)
		before, run := s.b.window, s.b.run
		if o == Success {
			s.b.FirstContent(s.now, p)
		}
		s.b.Settle(s.now, p, Verdict{Outcome: o})
		if s.b.window != before || s.b.proofs != 0 || s.b.run != run || s.b.inflight != 1 {
			t.Errorf("outcome %d of a lost call counts", o)
		}
	}
}

// A whole unary answer may take longer than MaxLease and still be healthy.
func TestLeaseFitsSlowAnswers(t *testing.T) {
	s := newUpstream(1)
	s.trip()
	s.now = s.now.Add(afterCoolDown)
	p, _ := s.b.Acquire(s.now, Call{Slow: time.Minute, Lease: 2 * time.Minute})
	s.now = s.now.Add(45 * time.Second)
	s.b.Poll(s.now, 0.5)
	s.b.Settle(s.now, p, Verdict{Outcome: Success})
	if s.b.phase != HalfOpen || s.b.proofs != 1 {
		t.Errorf("%v with %d proofs", s.b.phase, s.b.proofs)
	}
}

// The cool-down grows with trips, shrinks with health, and is not forgotten
// at the first recovery.
func TestTripsFadeSlowly(t *testing.T) {
	s := newUpstream(1)
	s.run(2*time.Minute, 20, s.acquire, s.failing(100))
	before := s.b.trips
	s.run(3*time.Minute, 20, s.acquire, s.failing(0))
	if s.b.phase != Closed || s.b.trips < before-3 || s.b.trips == 0 {
		t.Fatalf("%v, %d doublings, were %d", s.b.phase, s.b.trips, before)
	}
	s.run(20*time.Minute, 1, s.acquire, s.failing(0))
	if s.b.trips != 0 {
		t.Errorf("%d doublings after 20 minutes of health", s.b.trips)
	}
}

func TestForce(t *testing.T) {
	s := newUpstream(1)
	s.b.Force(s.now, ForcedOpen, time.Time{})
	s.run(10*time.Minute, 5, s.resort, s.failing(0))
	if s.admitted > 0 || s.b.Phase(s.now) != Open || s.b.Snapshot(s.now).Forced != "open" {
		t.Fatalf("forced open: %d admitted, %v", s.admitted, s.b.Phase(s.now))
	}
	s.b.Force(s.now, Auto, time.Time{})
	if p, r := s.b.Acquire(s.now, ask()); r != None || !p.Probe() {
		t.Fatal("released: it has to prove itself")
	}
	s.b.Force(s.now, ForcedClosed, s.now.Add(time.Minute))
	s.refused, s.trips = 0, 0
	s.run(59*time.Second, 20, s.acquire, s.failing(100))
	if s.refused > 0 || s.trips > 0 {
		t.Fatalf("forced closed: %d refused", s.refused)
	}
	s.run(10*time.Second, 20, s.acquire, s.failing(100))
	if s.trips == 0 {
		t.Error("the rules did not come back")
	}
}

func TestHealthy(t *testing.T) {
	b := New(Default())
	if b.Healthy(t0) || !b.Unblemished(t0) {
		t.Error("without a verdict it is unblemished, not healthy")
	}
	feed(b, t0, repeat(Success, 9)...)
	if b.Healthy(t0) {
		t.Error("with nine")
	}
	feed(b, t0, Success, Failure)
	if !b.Healthy(t0) || b.Unblemished(t0) {
		t.Error("with ten of eleven it is healthy, not unblemished")
	}
	feed(b, t0, Capacity)
	if b.Healthy(at(9*time.Second)) || !b.Healthy(at(11*time.Second)) {
		t.Error("a capacity refusal counts for 10 s")
	}
	feed(b, at(12*time.Second), repeat(Failure, 2)...)
	if b.Healthy(at(12 * time.Second)) {
		t.Error("with three failures of thirteen")
	}
	feed(b, at(20*time.Second), repeat(Success, 40)...)
	if !b.Healthy(at(79*time.Second)) || b.Healthy(at(80*time.Second)) {
		t.Error("verdicts count for 60 s")
	}
}

// The picker's weight: unknown is not bad, failures are (B10), and a trip
// does not wipe them out.
func TestSuccessShare(t *testing.T) {
	b := New(Default())
	if got := b.SuccessShare(t0); got != 1 {
		t.Errorf("unknown: %v", got)
	}
	feed(b, t0, repeat(Failure, 8)...)
	if got := b.SuccessShare(t0); got != 1.0/9 {
		t.Errorf("eight failures: %v", got)
	}
	feed(b, t0, repeat(Failure, 12)...)
	if got := b.SuccessShare(at(time.Second)); b.phase != Open || got != 1.0/11 {
		t.Errorf("after the trip: %v", got)
	}
	if got := b.SuccessShare(at(2 * time.Minute)); got != 1 {
		t.Errorf("two minutes later: %v", got)
	}
}

func TestEventsCarryTheirNumbers(t *testing.T) {
	b := New(Default())
	feed(b, t0, repeat(Failure, 20)...)
	e := b.Events()
	if len(e) != 1 || e[0].From != Closed || e[0].To != Open || e[0].Reason != "failures_in_a_row" || e[0].Failed != 10 || e[0].OK != 0 {
		t.Errorf("%+v", e)
	}
	if b.Events() != nil {
		t.Error("delivered twice")
	}
	for i := range 1000 {
		b.Force(at(time.Duration(i)*time.Second), ForcedOpen, time.Time{})
	}
	if n := len(b.Events()); n > keptEvents {
		t.Errorf("%d events kept for nobody", n)
	}
}

func TestBoundedAndFree(t *testing.T) {
	if n := unsafe.Sizeof(Breaker{}); n > 7000 {
		t.Errorf("a Breaker takes %d bytes", n)
	}
	b, now := New(Default()), t0
	n := testing.AllocsPerRun(1000, func() {
		now = now.Add(7 * time.Millisecond)
		p, _ := b.Acquire(now, ask())
		b.FirstContent(now, p)
		b.Settle(now, p, Verdict{Outcome: Success})
		b.Poll(now, 0.5)
	})
	if n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// Numbers that mean nothing are brought to ones that do, NaN included.
func TestConfigIsMadeUsable(t *testing.T) {
	for _, c := range []Config{{}, {Window: -1, FailureRatio: math.NaN(), Probes: -3, CoolDown: -5}, {Window: time.Hour, LongWindow: time.Hour, Connects: 99, FailureRatio: 7}} {
		b := New(c)
		now := t0
		for i := range 2000 {
			now = now.Add(100 * time.Millisecond)
			feed(b, now, Outcome(i/500%2)) // well, ill, well, ill
			b.Poll(now, 0.5)
		}
		for range 400 {
			now = now.Add(time.Second)
			feed(b, now, Success)
		}
		if b.Phase(now) != Closed {
			t.Errorf("%+v: %v", c, b.Phase(now))
		}
	}
}

func BenchmarkFailures(b *testing.B) {
	b.ReportAllocs()
	br, now := New(Default()), t0
	for i := range b.N {
		now = now.Add(time.Millisecond)
		p, r := br.Acquire(now, ask())
		if r != None {
			continue
		}
		o := Success
		if i%4 == 0 {
			o = Failure
		}
		br.Settle(now, p, Verdict{Outcome: o, Rand: 0.5})
	}
}

func BenchmarkPollWaiting(b *testing.B) {
	b.ReportAllocs()
	br := New(Default())
	for i := range 1000 {
		br.Acquire(at(time.Duration(i)*time.Millisecond), Call{Slow: time.Hour, Silence: time.Hour})
	}
	for b.Loop() {
		br.Poll(at(2*time.Second), 0.5)
	}
}

// TestForcedClosedEnds: a target that was open before an operator held it closed has
// to prove itself, unless it has shown meanwhile that it is well; one that was closed
// goes by what was counted.
func TestForcedClosedEnds(t *testing.T) {
	for name, c := range map[string]struct {
		before  Phase
		forced  []Outcome // what the calls meanwhile come to
		after   Phase
		another Outcome // of the first call behind it
		then    Phase
	}{
		"open, nothing seen":   {Open, nil, HalfOpen, Failure, Open},
		"open, still failing":  {Open, repeat(Failure, 30), HalfOpen, Success, HalfOpen},
		"open, well by now":    {Open, repeat(Success, 400), Closed, Success, Closed},
		"closed, nothing seen": {Closed, nil, Closed, Success, Closed},
		"closed, failing":      {Closed, repeat(Failure, 30), Closed, Failure, Open},
	} {
		b := New(Default())
		if c.before == Open {
			b = opened(t)
		}
		now := at(2 * time.Second)
		b.Force(now, ForcedClosed, now.Add(10*time.Second))
		if b.Phase(now) != Closed || b.Snapshot(now).Forced != "closed" {
			t.Fatalf("%s: %v", name, b.Phase(now))
		}
		now = now.Add(9 * time.Second)
		if n := feed(b, now, c.forced...); n != len(c.forced) || b.Phase(now) != Closed {
			t.Errorf("%s: %d of %d let in, %v", name, n, len(c.forced), b.Phase(now))
		}
		now = now.Add(time.Second)
		if b.Poll(now, 0.5); b.Phase(now) != c.after {
			t.Errorf("%s: %v behind it, want %v", name, b.Phase(now), c.after)
		}
		p, r := b.Acquire(now, ask())
		if r != None || p.Probe() != (c.after == HalfOpen) {
			t.Errorf("%s: %v, probe %v", name, r, p.Probe())
		}
		b.Settle(now, p, Verdict{Outcome: c.another, Rand: 0.5})
		if b.Phase(now) != c.then {
			t.Errorf("%s: %v in the end, want %v", name, b.Phase(now), c.then)
		}
	}
}

// TestHeldOpenAgain: a newer end of the same decision is the end.
func TestHeldOpenAgain(t *testing.T) {
	b := New(Default())
	b.Force(t0, ForcedOpen, at(time.Minute))
	b.Force(at(time.Second), ForcedOpen, at(time.Hour))
	if e := b.Events(); len(e) != 1 {
		t.Errorf("%+v", e)
	}
	b.Poll(at(2*time.Minute), 0.5)
	if p := b.Phase(at(2 * time.Minute)); p != Open {
		t.Errorf("%v before its end", p)
	}
	if b.Poll(at(time.Hour), 0.5); b.Phase(at(time.Hour)) != HalfOpen {
		t.Errorf("%v at its end", b.Phase(at(time.Hour)))
	}
}

// TestEase: a target that was kept from its traffic for long gets it back through the
// ramp, and callers with nowhere else to go are let in all the same.
func TestEase(t *testing.T) {
	b := New(Default())
	if b.Ease(t0); b.Phase(t0) != Closed {
		t.Error("one that was never asked is not cold, it is new")
	}
	feed(b, t0, repeat(Success, 50)...)
	if b.Ease(at(59 * time.Second)); b.Phase(at(59*time.Second)) != Closed {
		t.Error("a minute is not long")
	}
	now := at(10 * time.Minute)
	if b.Ease(now); b.Phase(now) != Ramp {
		t.Fatal("no ramp")
	}
	ordinary, alone := 0, 0
	for range 40 {
		if p, r := b.Acquire(now, ask()); r == None {
			ordinary++
			b.Settle(now, p, Verdict{Outcome: Ignored})
		}
		if p, ok := b.AcquireLastResort(now, ask()); ok {
			alone++
			b.Settle(now, p, Verdict{Outcome: Ignored})
		}
	}
	if ordinary > 3 || alone != 40 {
		t.Errorf("%d of 40 by share, %d of 40 with nowhere else to go", ordinary, alone)
	}
	feed(b, now, repeat(Failure, 200)...)
	if b.Phase(now) != Open {
		t.Errorf("%v while it fails", b.Phase(now))
	}
}
