// Package budget is the retry allowance: how many extra attempts a workload
// may cause and a target may be sent. An extra attempt is anything after a
// request's first one: retry, fallback or hedge. There is one Budget for each
// workload and one for each target, and an extra attempt needs a token from
// both.
//
// Each Budget is two buckets in AND. The first is filled by requests (a ratio
// of them, over 10 s), so extra attempts never exceed ratio x requests + a
// fixed reserve. The second is filled by successes, so in a total outage it
// runs dry and attempts for each request fall to 1.00. The ratio may grow, but
// only on evidence that extra attempts do good; see review.
//
// The package reads no clock, starts no goroutine and does no I/O. A Budget is
// not safe for concurrent use: its owner holds a lock. It never chooses a
// target and never judges an outcome; it is told.
package budget

import (
	"math"
	"time"
)

// Config is the configured part. The zero Config stands for Default.
type Config struct {
	// Ratio is the share of requests that may be repeated, in tokens for each
	// request. 0 turns charged extra attempts off.
	Ratio float64
	// MaxRatio is what Ratio may grow to on evidence; at most Ratio means that
	// it never grows.
	MaxRatio float64
	// PerSuccess is what each success earns, in tokens. While the ratio is
	// grown a success earns as much as a request does.
	PerSuccess float64
	// Window is how long what a request earned stays beyond the reserve, and
	// how far the evidence reaches back.
	Window time.Duration
	// Cap is the most that successes can save up, in tokens.
	Cap float64
	// Reserve is what each of the two buckets holds at the start, in tokens.
	// The first is not filled beyond it except by the last Window's requests.
	Reserve float64
}

// Default is the recommended configuration. The ratio is that of the SRE
// literature; the two buckets in AND were the only policy that recovered by
// itself at 90 % load in our simulations.
func Default() Config {
	return Config{Ratio: 0.1, MaxRatio: 1, PerSuccess: 0.1, Window: 10 * time.Second, Cap: 100, Reserve: 10}
}

const (
	numSlots = 10 // of a window
	// unit is one token in the integers the buckets count in, so that bounds
	// hold exactly.
	unit = 1_000_000
	// maxTokens bounds what a configured number of tokens may be.
	maxTokens = 1e9

	minuteSlots = 6
	minuteSlot  = 10 * time.Second
)

// Budget is one workload's or one target's allowance.
type Budget struct {
	cfg                 Config // as given
	ratioBase, ratioMax int64  // in units, as all amounts below
	perSuccess          int64
	cap                 int64
	reserveMax          int64
	price               int64 // of an extra attempt; unit, unless an operator has scaled it; 0 for none
	paid                int64 // for the last one
	factor              float64
	width               time.Duration // of a slot

	base  time.Time         // origin of tick; set by the first use
	tick  int64             // number of the current slot
	slots [numSlots]slot    // ring, by number
	kept  int64             // earned by requests, in the reserve
	saved int64             // earned by successes
	ratio int64             // in force
	grown growth            // why ratio is above ratioBase
	long  [minuteSlots]flow // ring, for the amplification
	longN int64             // number of the current one
}

// slot is what happened in a tenth of the window, by the time it was decided.
type slot struct {
	tokens    int64 // earned by requests and not spent
	requests  int64
	takes     int64
	first     sample // first attempts that ended
	extra     sample // extra attempts that ended, free ones too
	slow      int64  // failures that took long
	trouble   int64  // capacity refusals and time-outs
	successes int64
}

// flow counts what came in and what went out beyond it.
type flow struct{ requests, extras int64 }

// New returns a budget with its reserve full.
func New(cfg Config) *Budget {
	b := &Budget{price: unit, factor: 1}
	b.configure(cfg)
	b.kept, b.saved = b.reserveMax, min(b.reserveMax, b.cap)
	b.ratio = b.ratioBase
	b.grown.reset()
	return b
}

// Reconfigure replaces the configured part. Tokens stay, as far as the new
// bounds allow; a grown ratio starts over. The same Config changes nothing.
func (b *Budget) Reconfigure(cfg Config) {
	if cfg == b.cfg {
		return
	}
	width := b.width
	b.configure(cfg)
	if b.width != width {
		for i := range b.slots {
			b.expire(&b.slots[i])
		}
		b.base, b.tick, b.longN, b.long = time.Time{}, 0, 0, [minuteSlots]flow{}
		b.grown.reset()
	}
	b.kept = min(b.kept, b.reserveMax)
	b.saved = min(b.saved, b.cap)
	b.restart()
}

func (b *Budget) configure(cfg Config) {
	b.cfg = cfg
	if cfg == (Config{}) {
		cfg = Default()
	}
	if cfg.Window <= 0 {
		cfg.Window = Default().Window
	}
	b.ratioBase = units(cfg.Ratio)
	b.ratioMax = max(b.ratioBase, units(cfg.MaxRatio))
	b.perSuccess = units(cfg.PerSuccess)
	b.cap = units(cfg.Cap)
	b.reserveMax = units(cfg.Reserve)
	b.width = max(time.Millisecond, cfg.Window/numSlots)
}

// units converts tokens. NaN and negative numbers count as 0.
func units(tokens float64) int64 {
	if !(tokens > 0) {
		return 0
	}
	return int64(math.Round(min(tokens, maxTokens) * unit))
}

// Request notes that a first attempt began. It earns the ratio.
func (b *Budget) Request(now time.Time) {
	s := b.roll(now)
	s.requests++
	s.tokens += b.ratio
	b.long[b.longN%minuteSlots].requests++
}

// Scale multiplies the allowance: an extra attempt costs so much less, or more, of
// both buckets, what they hold already included. 0 lets none be paid for. 1 is as
// configured. What is earned stays the same, so that 1 again leaves nothing behind.
func (b *Budget) Scale(factor float64) {
	b.factor, b.price = factor, 0
	if factor > 0 {
		b.price = max(1, int64(math.Round(min(unit/factor, maxTokens*unit))))
	}
}

// Take spends one token of each bucket and returns true, or spends nothing and
// returns false. It is called at the start of the extra attempt.
func (b *Budget) Take(now time.Time) bool {
	s := b.roll(now)
	if b.ratioBase == 0 || b.price == 0 || b.saved < b.price || b.funded() < b.price {
		return false
	}
	b.saved -= b.price
	b.spend(b.price)
	b.paid = b.price
	s.takes++
	return true
}

// Refund gives back what a Take just spent: the attempt was not made.
func (b *Budget) Refund(now time.Time) {
	s := b.roll(now)
	back := min(b.paid, b.price) // between the two an operator may have changed it: no token is made
	s.tokens += back
	s.takes = max(0, s.takes-1)
	b.saved = min(b.cap, b.saved+back)
}

// funded is what requests have earned.
func (b *Budget) funded() int64 {
	sum := b.kept
	for i := range b.slots {
		sum += b.slots[i].tokens
	}
	return sum
}

// spend takes from the oldest slot first, then from the reserve.
func (b *Budget) spend(n int64) {
	for i := int64(1); i <= numSlots && n > 0; i++ {
		s := &b.slots[(b.tick+i)%numSlots]
		part := min(n, s.tokens)
		s.tokens -= part
		n -= part
	}
	b.kept -= n
}

// Result is how an attempt ended. With none of OK, Failure, Capacity and
// TimedOut set it says nothing about the target.
type Result struct {
	Extra    bool // not the request's first attempt
	OK       bool
	Failure  bool // counts against the target
	Fast     bool // a failure that cost the caller little: well under a second
	Capacity bool // refused for a limit
	TimedOut bool // ended by one of our timers
	Canceled bool // the caller left
}

// Settle notes how an attempt ended. A success earns tokens. A capacity
// refusal or a time-out brings the ratio back at once.
func (b *Budget) Settle(now time.Time, r Result) {
	s := b.roll(now)
	if r.Extra {
		b.long[b.longN%minuteSlots].extras++
	}
	if r.Canceled {
		return
	}
	if r.Capacity || r.TimedOut {
		s.trouble++
		b.back()
	}
	side := &s.first
	if r.Extra {
		side = &s.extra
	}
	switch {
	case r.OK:
		side.ok++
		side.all++
		s.successes++
		b.saved = min(b.cap, b.saved+max(b.perSuccess, b.ratio))
	case r.Failure:
		side.all++
		if !r.Fast {
			s.slow++
		}
	}
}

// roll moves to the slot of now and returns it. Earlier times stay in the
// current slot.
func (b *Budget) roll(now time.Time) *slot {
	if b.base.IsZero() {
		b.base = now
	}
	age := now.Sub(b.base)
	if to := int64(age / b.width); to > b.tick {
		for steps := min(to-b.tick, numSlots); steps > 0; steps-- {
			b.review()
			b.tick++
			b.expire(&b.slots[b.tick%numSlots])
		}
		if b.tick < to { // nothing is left of the window
			b.tick = to
			b.back()
		}
	}
	if to := int64(age / minuteSlot); to > b.longN {
		for n := max(b.longN, to-minuteSlots) + 1; n <= to; n++ {
			b.long[n%minuteSlots] = flow{}
		}
		b.longN = to
	}
	return &b.slots[b.tick%numSlots]
}

// expire empties a slot. What it had left goes to the reserve, as far as that
// is short: no token is made, so the bound on extra attempts stays exact.
func (b *Budget) expire(s *slot) {
	b.kept = max(b.kept, min(b.reserveMax, b.kept+s.tokens))
	*s = slot{}
}

// Wide reports that evidence has grown the ratio to at least half of its
// maximum: a target may then be tried a second time.
func (b *Budget) Wide(now time.Time) bool {
	b.roll(now)
	return b.ratio > b.ratioBase && 2*b.ratio >= b.ratioMax
}

// Snapshot is a Budget as an operator sees it.
type Snapshot struct {
	Tokens        float64 `json:"tokens"`         // extra attempts possible now
	RatioTokens   float64 `json:"ratio_tokens"`   // earned by requests
	SuccessTokens float64 `json:"success_tokens"` // earned by successes
	Ratio         float64 `json:"ratio"`          // in force, tokens for each request
	Factor        float64 `json:"factor"`         // by which an operator has multiplied the allowance; else 1
	Requests      int64   `json:"requests"`       // first attempts in the window
	Extras        int64   `json:"extras"`         // charged extra attempts in the window
	Successes     int64   `json:"successes"`      // in the window
	// Amplification is attempts for each request over the last minute, free
	// and charged ones together; 1 without requests.
	Amplification float64 `json:"amplification"`
}

// Snapshot reports the budget at now.
func (b *Budget) Snapshot(now time.Time) Snapshot {
	b.roll(now)
	s := Snapshot{
		RatioTokens:   float64(b.funded()) / unit,
		SuccessTokens: float64(b.saved) / unit,
		Ratio:         float64(b.ratio) / unit,
		Factor:        b.factor,
		Amplification: 1,
	}
	if b.price > 0 {
		s.Tokens = float64(min(b.funded(), b.saved) / b.price)
	}
	for i := range b.slots {
		s.Requests += b.slots[i].requests
		s.Extras += b.slots[i].takes
		s.Successes += b.slots[i].successes
	}
	var sum flow
	for _, x := range b.long {
		sum.requests += x.requests
		sum.extras += x.extras
	}
	if sum.requests > 0 {
		s.Amplification = float64(sum.requests+sum.extras) / float64(sum.requests)
	}
	return s
}
