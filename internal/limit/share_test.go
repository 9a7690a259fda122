package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// caller makes calls with one credential at an even rate and settles each at
// once.
type caller struct {
	c        CoolDown
	now      time.Time
	accepted func() bool
	admitted int
	served   int
}

func newCaller(accepted func() bool) *caller { return &caller{now: start, accepted: accepted} }

// call offers one call, every step, and reports whether it was admitted.
func (x *caller) call(step time.Duration, needy bool) bool {
	x.now = x.now.Add(step)
	admit := x.c.Admit
	if needy {
		admit = x.c.AdmitNeedy
	}
	a := admit(x.now)
	if a == Blocked {
		return false
	}
	x.admitted++
	if x.accepted() {
		x.served++
		x.c.Settle(x.now, a, Served)
		return true
	}
	x.c.Settle(x.now, a, Refused)
	x.c.Refuse(x.now, Credential, 0, false, 0.5)
	return true
}

func chance(p float64, seed uint64) func() bool {
	r := rand.New(rand.NewPCG(seed, 1))
	return func() bool { return r.Float64() < p }
}

func always() bool { return true }
func never() bool  { return false }

// A key that was never accepted is left at the first refusal, and one that is
// idle for long counts as such. It fails when every refusal is judged by share.
func TestNeverAcceptedKeyIsLeftAtOnce(t *testing.T) {
	x := newCaller(never)
	x.call(time.Second, true)
	if until, kind, blocked := x.c.Until(x.now); !blocked || kind != Credential || until.Sub(x.now) != time.Minute {
		t.Fatalf("blocked %v for %v, kind %v", blocked, until.Sub(x.now), kind)
	}
	y := newCaller(always)
	y.call(time.Second, true)
	y.accepted = never
	y.call(knownGood, true)
	if _, _, blocked := y.c.Until(y.now); !blocked {
		t.Fatal("a key last accepted ten minutes ago is not left at its first refusal")
	}
}

// A key that is revoked in the middle of traffic gets few calls more, and then
// no more than a trial each time a block ends. It fails without proof by many
// refusals in a row.
func TestRevokedKeyIsLeft(t *testing.T) {
	for _, step := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		x := newCaller(always)
		for range 100 {
			x.call(step, true)
		}
		x.accepted, x.admitted = never, 0
		begin := x.now
		for x.now.Sub(begin) < 2*time.Minute {
			x.call(step, true)
		}
		if _, _, blocked := x.c.Until(x.now); !blocked && x.c.Admit(x.now) == Free {
			t.Fatalf("a call each %v: not left after two minutes", step)
		}
		// a score until most are gone, and a sixteenth of those of ten seconds
		most := 40 + 2*int(manyFor/step)/16
		if x.admitted > most {
			t.Errorf("a call each %v: %d calls with a revoked key, want %d at most", step, x.admitted, most)
		}
		for range int(time.Hour / step) {
			x.call(step, true)
		}
		if x.admitted > most+80 { // a trial a minute, a little earlier by jitter
			t.Errorf("a call each %v: %d calls in an hour with a revoked key", step, x.admitted)
		}
	}
}

// While most calls are accepted, a refusal takes nothing from the others. It
// fails when one refusal blocks.
func TestRareRefusalsBlockNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		accepted := chance(rapid.Float64Range(0.8, 1).Draw(t, "accepted"), rapid.Uint64().Draw(t, "seed"))
		step := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(20*time.Second)).Draw(t, "step"))
		x := newCaller(always)
		x.call(step, false)
		x.accepted = accepted
		for range 2000 {
			x.call(step, false)
			if _, _, blocked := x.c.Until(x.now); blocked {
				t.Fatal("blocked")
			}
		}
		if x.admitted < 1800 {
			t.Fatalf("%d of 2000 calls admitted", x.admitted)
		}
	})
}

// A store that refuses whatever it is asked, load or not: callers without
// another provider get three quarters at least of what they would get without a
// router, the others leave it at its least share. It fails without futile.
func TestRandomRefusalsAreNoWorseThanNoRouter(t *testing.T) {
	for _, p := range []float64{0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.7} {
		for seed := range uint64(5) {
			x := newCaller(always)
			x.call(200*time.Millisecond, true)
			x.accepted, x.served = chance(p, seed), 0
			const n = 5 * 3600
			for range n {
				x.call(200*time.Millisecond, true)
			}
			if want := 0.75 * p * n; float64(x.served) < want {
				t.Errorf("%v accepted, seed %d: %d of %d calls served, want %.0f", p, seed, x.served, n, want)
			}
		}
	}
	x := newCaller(always)
	x.call(200*time.Millisecond, false)
	x.accepted, x.admitted = chance(0.2, 1), 0
	for range 5 * 3600 {
		x.call(200*time.Millisecond, false)
	}
	if x.admitted > 5*3600/8 {
		t.Errorf("%d calls that could go elsewhere", x.admitted)
	}
}

// A store that has lost what it knew, and fails under the load of all: it fills
// while it gets a share, and then gets everything. It fails when a served trial
// lets all calls in at once, or when the share does not fall.
func TestStoreThatRefillsGetsItsTrafficBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate, keys, capacity, refusal = 15, 600, 1.8, 0.2
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		zipf := rand.NewZipf(r, 1.1, 1, keys-1)
		known, work, last := map[uint64]bool{}, 0.0, start
		x := newCaller(always)
		x.call(time.Second, false)
		x.accepted = func() bool {
			work = max(0, work-capacity*x.now.Sub(last).Seconds())
			last = x.now
			k := zipf.Uint64()
			if known[k] {
				return true
			}
			if work > capacity {
				work += refusal
				return false
			}
			work++
			known[k] = true
			return true
		}
		for range 9 * 60 * rate {
			x.call(time.Second/rate, false)
		}
		x.admitted = 0
		for range 60 * rate {
			x.call(time.Second/rate, false)
		}
		if x.admitted < 60*rate*8/10 {
			t.Fatalf("%d of %d calls after nine minutes, %d keys known", x.admitted, 60*rate, len(known))
		}
	})
}

// The return after a block for a credential is a ramp. It fails when a served
// trial lets all in.
func TestReturnAfterACredentialIsARamp(t *testing.T) {
	x := newCaller(never)
	x.call(time.Second, false)
	x.accepted = always
	x.now = x.now.Add(time.Minute)
	var second [20]int
	for i := range 200 {
		if x.call(100*time.Millisecond, false) {
			second[i/10]++
		}
	}
	if second[0] > 3 || second[19] != 10 {
		t.Fatalf("calls in each second after the block: %v", second)
	}
	for i := 1; i < len(second); i++ {
		if second[i] > 2*second[i-1]+2 {
			t.Fatalf("from %d to %d calls in a second", second[i-1], second[i])
		}
	}
	var c CoolDown // an account without money has nothing to refill
	until := c.Refuse(start, Account, 0, false, 0.5)
	c.Settle(until, c.Admit(until), Served)
	for range 5 {
		if c.Admit(until) != Free {
			t.Fatal("held back after a block for an account")
		}
	}
}

// Whatever is heard of a credential, outside a block a call goes at least every
// five seconds, and Reopens never names a later time.
func TestShareAlwaysLetsSomeIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newCaller(always)
		x.call(time.Second, false)
		p := rapid.Float64Range(0, 1).Draw(t, "accepted")
		x.accepted = chance(p, rapid.Uint64().Draw(t, "seed"))
		last := x.now
		for range 500 {
			step := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "step"))
			free := x.c.Partial(x.now)
			if x.c.Share() < 1.0/16 || x.c.Share() > 1 {
				t.Fatalf("share %v", x.c.Share())
			}
			if next := x.c.Reopens(x.now); free && next.Sub(x.now) > leastEvery {
				t.Fatalf("reopens in %v", next.Sub(x.now))
			}
			went := x.call(step, rapid.Bool().Draw(t, "needy"))
			if went || !free {
				last = x.now
			} else if x.now.Sub(last) > leastEvery {
				t.Fatalf("nothing went for %v", x.now.Sub(last))
			}
		}
	})
}
