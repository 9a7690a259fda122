package breaker

import (
	"testing"
	"time"
)

var t0 = time.Unix(1_796_000_000, 0)

func ask() Call {
	return Call{Slow: 4 * time.Second, Silence: 4 * time.Second, Lease: 20 * time.Second, Rand: 0.5}
}

func at(d time.Duration) time.Time { return t0.Add(d) }

// feed makes calls that end at once, each with the next outcome.
func feed(b *Breaker, now time.Time, outcomes ...Outcome) (admitted int) {
	for _, o := range outcomes {
		if p, r := b.Acquire(now, ask()); r == None {
			admitted++
			if o == Success {
				b.FirstContent(now, p)
			}
			b.Settle(now, p, Verdict{Outcome: o, Rand: 0.5})
		}
	}
	return admitted
}

func repeat(o Outcome, n int) []Outcome {
	out := make([]Outcome, n)
	for i := range out {
		out[i] = o
	}
	return out
}

func opened(t *testing.T) *Breaker {
	t.Helper()
	b := New(Default())
	feed(b, t0, repeat(Failure, 20)...)
	if b.Phase(t0) != Open {
		t.Fatalf("phase %v, want open", b.Phase(t0))
	}
	return b
}

func TestTrips(t *testing.T) {
	mix := func(failures, of int) (out []Outcome) {
		for i := range 200 {
			if i%of < failures {
				out = append(out, Failure)
			} else {
				out = append(out, Success)
			}
		}
		return out
	}
	tests := []struct {
		name     string
		outcomes []Outcome
		want     Phase
	}{
		{"all fail", repeat(Failure, 20), Open},
		{"too few to tell", repeat(Failure, 9), Closed},
		{"half fail", mix(1, 2), Open},
		{"a fifth fails", mix(1, 5), Closed},
		{"cancels and callers' mistakes", repeat(Ignored, 500), Closed},
		{"capacity refusals", repeat(Capacity, 500), Closed},
		{"one failure among fifty", append(repeat(Success, 50), Failure), Closed},
	}
	for _, tt := range tests {
		b := New(Default())
		for i, o := range tt.outcomes {
			feed(b, at(time.Duration(i)*10*time.Millisecond), o)
		}
		if got := b.Phase(at(2 * time.Second)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestConnectFailures(t *testing.T) {
	b := New(Default())
	for range 3 {
		p, _ := b.Acquire(t0, ask())
		b.Settle(t0, p, Verdict{Outcome: Failure, Connect: true, Rand: 0.5})
	}
	if b.Phase(t0) != Open {
		t.Error("three failed connects in a row leave it closed")
	}
}

// TestHang: calls hang for a minute; the breaker must not wait for them.
// Counting failures only when calls end (as most breakers do) fails here.
func TestHang(t *testing.T) {
	tests := []struct {
		name     string
		every    time.Duration
		c        Call
		before   time.Duration // healthy time, for the rate
		openBy   time.Duration
		mostHung int
	}{
		{"10 a second, unlearned", 100 * time.Millisecond, ask(), 0, 5 * time.Second, 52},
		{"50 a second, learned", 20 * time.Millisecond, Call{Slow: time.Second, Silence: 1500 * time.Millisecond, Lease: 2 * time.Second, Rand: 0.5}, 5 * time.Second, 1700 * time.Millisecond, 86},
		{"1 a second, learned", time.Second, Call{Slow: time.Second, Silence: 1500 * time.Millisecond, Lease: 2 * time.Second, Rand: 0.5}, time.Minute, 40 * time.Second, 41},
	}
	for _, tt := range tests {
		b := New(Default())
		now := t0
		for ; now.Before(at(tt.before)); now = now.Add(tt.every) {
			p, _ := b.Acquire(now, tt.c)
			b.FirstContent(now, p)
			b.Settle(now, p, Verdict{Outcome: Success})
		}
		// The first call of the hang begins while others are still answered.
		b.Acquire(now, tt.c)
		p, _ := b.Acquire(now, tt.c)
		b.FirstContent(now.Add(50*time.Millisecond), p)
		fault, hung := now, 0
		next := now
		for b.Phase(now) == Closed && now.Sub(fault) < 2*time.Minute {
			if !now.Before(next) {
				if _, r := b.Acquire(now, tt.c); r == None {
					hung++
				}
				next = next.Add(tt.every)
			}
			b.Poll(now, 0.5)
			now = now.Add(10 * time.Millisecond)
		}
		if took := now.Sub(fault); took > tt.openBy || hung > tt.mostHung {
			t.Errorf("%s: open after %v with %d calls stuck, want %v and %d", tt.name, took, hung, tt.openBy, tt.mostHung)
		}
	}
}

// TestQuietIsNotSilence: a few slow calls on a target that is asked rarely
// are not a hang; without the rate in silent this opens.
func TestQuietIsNotSilence(t *testing.T) {
	b := New(Default())
	c := Call{Slow: time.Hour, Silence: 1500 * time.Millisecond, Lease: time.Minute}
	for i := range 10 {
		now := at(time.Duration(i) * time.Second)
		p, _ := b.Acquire(now, c)
		b.FirstContent(now, p)
		b.Settle(now, p, Verdict{Outcome: Success})
	}
	for range 6 {
		b.Acquire(at(10*time.Second), c)
	}
	b.Poll(at(15*time.Second), 0.5)
	if b.Phase(at(15*time.Second)) != Closed {
		t.Error("six seconds of quiet at one answer a second opened it")
	}
}

func TestSlowVerdictIsTakenBack(t *testing.T) {
	b := New(Default())
	var ps []Permit
	for range 9 {
		p, _ := b.Acquire(t0, Call{Slow: time.Second, Silence: time.Hour, Lease: time.Minute})
		ps = append(ps, p)
	}
	b.Poll(at(2*time.Second), 0.5)
	if s := b.Snapshot(at(2 * time.Second)); s.Failed != 9 || s.Slow != 9 {
		t.Fatalf("%+v", s)
	}
	for _, p := range ps {
		b.FirstContent(at(3*time.Second), p)
		b.Settle(at(3*time.Second), p, Verdict{Outcome: Success})
	}
	if s := b.Snapshot(at(3 * time.Second)); s.Failed != 0 || s.OK != 9 || s.Slow != 9 {
		t.Errorf("%+v, want no failure, 9 successes that were slow", s)
	}
}

// TestOneProbe is B01: 200 calls meet the end of the cool-down, one goes in.
func TestOneProbe(t *testing.T) {
	b := opened(t)
	now := at(6 * time.Second)
	admitted := 0
	for range 200 {
		if p, r := b.Acquire(now, ask()); r == None {
			admitted++
			if !p.Probe() {
				t.Error("not a probe")
			}
		}
	}
	if admitted != 1 {
		t.Errorf("%d admitted, want 1", admitted)
	}
}

// TestLostProbe: a probe that never reports costs its lease, not the target.
func TestLostProbe(t *testing.T) {
	b := opened(t)
	now := at(6 * time.Second)
	if _, r := b.Acquire(now, ask()); r != None {
		t.Fatal(r)
	}
	now = now.Add(20 * time.Second)
	b.Poll(now, 0.5)
	if b.Phase(now) != Open {
		t.Fatalf("%v after a lost probe, want open", b.Phase(now))
	}
	now = now.Add(11 * time.Second) // the second cool-down is twice the first
	if p, r := b.Acquire(now, ask()); r != None || !p.Probe() {
		t.Errorf("no probe after the second cool-down: %v", r)
	}
}

// TestNeutralProbe: a cancelled or throttled probe frees its lease and
// decides nothing.
func TestNeutralProbe(t *testing.T) {
	for _, o := range []Outcome{Ignored, Capacity} {
		b := opened(t)
		now := at(6 * time.Second)
		p, _ := b.Acquire(now, ask())
		b.Settle(now, p, Verdict{Outcome: o})
		if b.Phase(now) != HalfOpen {
			t.Errorf("%v: %v", o, b.Phase(now))
		}
		if _, r := b.Acquire(now, ask()); r != None {
			t.Errorf("%v: the lease is not free: %v", o, r)
		}
	}
}

// TestRamp: after three probes traffic returns in shares, and a cold target
// that cannot take more is given time.
func TestRamp(t *testing.T) {
	b := opened(t)
	now := at(6 * time.Second)
	for range 3 {
		p, r := b.Acquire(now, ask())
		if r != None {
			t.Fatal(r)
		}
		b.FirstContent(now, p)
		b.Settle(now, p, Verdict{Outcome: Success})
	}
	if b.Phase(now) != Ramp {
		t.Fatalf("%v after three probes", b.Phase(now))
	}
	shares := map[int]float64{}
	for s := range 65 {
		n := 0
		for range 100 {
			now = now.Add(10 * time.Millisecond)
			if feed(b, now, Success) == 1 {
				n++
			}
		}
		shares[s] = float64(n) / 100
	}
	for s, want := range map[int]float64{0: 0.07, 15: 0.31, 30: 0.56, 45: 0.81} {
		if got := shares[s]; got < want-0.05 || got > want+0.05 {
			t.Errorf("second %d: share %.2f, want about %.2f", s, got, want)
		}
	}
	if b.Phase(now) != Closed {
		t.Errorf("%v after 65 s", b.Phase(now))
	}
}

// TestColdTarget replays a target that starts with 300 calls a second and
// warms to 1000 over 15,000 successes, at 800 a second offered: the ramp must
// not trip it again. With 100 % at once it trips.
func TestColdTarget(t *testing.T) {
	b := opened(t)
	now, warm, trips := at(6*time.Second), 0, 0
	refused, second, used := 0, int64(0), 0
	for range 120 * 800 {
		now = now.Add(time.Second / 800)
		if now.Unix() != second {
			second, used = now.Unix(), 0
		}
		p, r := b.Acquire(now, ask())
		if r != None {
			refused++
			continue
		}
		if used++; used > 300+700*min(warm, 15000)/15000 {
			b.Settle(now, p, Verdict{Outcome: Failure, Rand: 0.5})
		} else {
			warm++
			b.FirstContent(now, p)
			b.Settle(now, p, Verdict{Outcome: Success})
		}
		for _, e := range b.Events() {
			if e.To == Open {
				trips++
			}
		}
	}
	if trips > 1 || b.Phase(now) != Closed { // the one is opened's own
		t.Errorf("%d trips, %v at the end", trips, b.Phase(now))
	}
}

// TestLastResort: with nowhere else to go, a target that answers half its
// calls is used for all of them; a dead one gets two calls a second, and its
// recovery is seen by the next of them.
func TestLastResort(t *testing.T) {
	half := New(Default())
	for i := range 40 {
		feed(half, t0, []Outcome{Failure, Success}[i%2])
	}
	if half.Phase(t0) != Open {
		t.Fatal("not open")
	}
	admitted := 0
	for i := range 100 {
		now := at(time.Duration(i) * 10 * time.Millisecond)
		if p, ok := half.AcquireLastResort(now, ask()); ok {
			admitted++
			half.Settle(now, p, Verdict{Outcome: []Outcome{Failure, Success}[i%2]})
		}
	}
	if admitted != 100 {
		t.Errorf("%d of 100 calls admitted to a target that answers half", admitted)
	}

	dead := New(Default())
	feed(dead, t0, repeat(Failure, 40)...)
	for range 20 { // what opened it may be less than the ring holds
		if p, ok := dead.AcquireLastResort(at(time.Second), ask()); ok {
			dead.Settle(at(time.Second), p, Verdict{Outcome: Failure})
		}
	}
	admitted = 0
	now := at(2 * time.Second)
	for ; now.Before(at(22 * time.Second)); now = now.Add(20 * time.Millisecond) {
		if p, ok := dead.AcquireLastResort(now, ask()); ok {
			admitted++
			dead.Settle(now, p, Verdict{Outcome: Failure})
		}
	}
	if admitted < 24 || admitted > 28 {
		t.Errorf("%d calls in 20 s to a dead target, want four in three seconds", admitted)
	}
	healed := now
	for ; now.Before(healed.Add(5 * time.Second)); now = now.Add(20 * time.Millisecond) {
		p, ok := dead.AcquireLastResort(now, ask())
		if !ok && now.Sub(healed) > 800*time.Millisecond {
			t.Fatalf("refused %v after recovery", now.Sub(healed))
		}
		if ok {
			dead.FirstContent(now, p)
			dead.Settle(now, p, Verdict{Outcome: Success})
		}
	}
}

func TestFloor(t *testing.T) {
	b := opened(t)
	b.Floor(t0, at(time.Hour))
	if got := b.Reopens(t0); !got.Equal(at(120 * time.Second)) {
		t.Errorf("reopens %v after, want the longest floor of 120 s", got.Sub(t0))
	}
}

// TestForeignGeneration: successes of calls from before the outage do not
// close it, failures from before a recovery do not open it.
func TestForeignGeneration(t *testing.T) {
	b := New(Default())
	var old []Permit
	for range 30 {
		p, _ := b.Acquire(t0, ask())
		old = append(old, p)
	}
	feed(b, t0, repeat(Failure, 20)...)
	now := at(6 * time.Second)
	p, _ := b.Acquire(now, ask())
	for _, o := range old[:15] {
		b.Settle(now, o, Verdict{Outcome: Success})
	}
	if b.Phase(now) != HalfOpen || b.proofs != 0 {
		t.Fatalf("old successes moved it to %v with %d proofs", b.Phase(now), b.proofs)
	}
	b.Settle(now, p, Verdict{Outcome: Success})
	for range 2 {
		feed(b, now, Success)
	}
	for _, o := range old[15:] {
		b.Settle(now, o, Verdict{Outcome: Failure})
	}
	if b.Phase(now) != Ramp {
		t.Errorf("old failures moved it to %v", b.Phase(now))
	}
}

func BenchmarkCall(b *testing.B) {
	b.ReportAllocs()
	br := New(Default())
	c := ask()
	now := t0
	for b.Loop() {
		now = now.Add(time.Millisecond)
		p, _ := br.Acquire(now, c)
		br.FirstContent(now, p)
		br.Settle(now, p, Verdict{Outcome: Success})
	}
}

// TestBrokenStreamsAreFailuresInARow: streams that begin well and break later,
// each before the one behind it begins, are a run all the same. It fails when
// the first content of a stream ends the run for good.
func TestBrokenStreamsAreFailuresInARow(t *testing.T) {
	b, now := New(Default()), t0
	var open []Permit
	started := 0
	for b.phase == Closed && started < 40 {
		now = now.Add(20 * time.Millisecond)
		p, _ := b.Acquire(now, ask())
		b.FirstContent(now.Add(10*time.Millisecond), p)
		started++
		if open = append(open, p); len(open) > 3 { // three more are under way when one breaks
			b.Settle(now.Add(15*time.Millisecond), open[0], Verdict{Outcome: Failure})
			open = open[1:]
		}
	}
	for len(open) > 0 { // nothing new begins
		now = now.Add(20 * time.Millisecond)
		b.Settle(now, open[0], Verdict{Outcome: Failure})
		open = open[1:]
	}
	if e := b.Events(); len(e) == 0 || started > 14 {
		t.Fatalf("not opened by %d broken streams", started)
	}
}
