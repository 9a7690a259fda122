package learn

import (
	"math"
	"time"
)

const (
	fitMemory = 5 * time.Minute // time constant of what is remembered
	fitEnough = 20              // samples before anything is said
	fitClip   = 2               // times the usual: what is longer counts as that long
	fitLeast  = time.Millisecond
	fitFloor  = 0.2 // of the mean: nothing is expected sooner, or one prompt without a size would outweigh all
)

// Fit is how long first content usually takes by the size of the prompt:
// a + b x tokens, by least squares over the last minutes with every error
// relative to what was expected. A time above twice that counts as twice: an
// overload does not teach what is usual, and a target that has become slower for
// good is believed in some minutes. The zero value is ready; the owner holds a
// lock.
type Fit struct {
	at                 time.Time
	n, w, x, xx, y, xy float64 // decaying sums: samples, then weighted by 1/expected^2
	base, slope        float64 // the fit in seconds, and per 1,000 tokens
}

// Observe notes a first content behind a prompt of about so many tokens, and
// returns how many times the usual it took; false while that is not known.
func (f *Fit) Observe(now time.Time, prompt int64, took time.Duration) (ratio float64, ok bool) {
	k, y := float64(max(0, prompt))/1000, max(took, fitLeast).Seconds()
	usual := y
	if f.n >= 1 {
		usual = max(f.base+f.slope*k, fitFloor*f.y/f.w)
	}
	ratio, ok = y/usual, f.n >= fitEnough
	if ok {
		y = min(y, fitClip*usual)
	}
	f.add(now, k, y, usual)
	return ratio, ok
}

func (f *Fit) add(now time.Time, k, y, usual float64) {
	if !f.at.IsZero() {
		d := math.Exp(-max(now.Sub(f.at), 0).Seconds() / fitMemory.Seconds())
		f.n, f.w, f.x, f.xx, f.y, f.xy = f.n*d, f.w*d, f.x*d, f.xx*d, f.y*d, f.xy*d
	}
	f.at = now
	w := 1 / (usual * usual)
	f.n++
	f.w, f.x, f.xx, f.y, f.xy = f.w+w, f.x+w*k, f.xx+w*k*k, f.y+w*y, f.xy+w*k*y
	f.solve()
}

// solve finds the line; neither of its two parts is ever negative.
func (f *Fit) solve() {
	mean := f.x / f.w
	spread := f.xx/f.w - mean*mean
	f.base, f.slope = f.y/f.w, 0
	if spread <= 1e-6*(1+mean*mean) { // prompts of one size
		return
	}
	slope := (f.xy/f.w - mean*f.y/f.w) / spread
	switch base := f.y/f.w - slope*mean; {
	case slope <= 0:
	case base < 0:
		f.base, f.slope = 0, f.xy/f.xx
	default:
		f.base, f.slope = base, slope
	}
}

const (
	paceFalls = 0.2  // of the way to a shorter gap
	paceRises = 0.01 // to a longer one
)

// Gaps is how far apart the tokens of a target's streams usually are. It follows
// a faster target at once and a slower one in hundreds of samples. The zero
// value is ready; the owner holds a lock.
type Gaps struct {
	usual float64
	n     int
}

// Observe notes the median gap of a piece of a stream and returns how many times
// the usual it is; false while that is not known.
func (g *Gaps) Observe(median time.Duration) (ratio float64, ok bool) {
	x := max(median, time.Microsecond).Seconds()
	if g.n == 0 {
		g.usual = x
	}
	ratio, ok = x/g.usual, g.n >= fitEnough
	g.n = min(g.n+1, fitEnough)
	step := paceRises
	if x < g.usual {
		step = paceFalls
	}
	g.usual += step * (min(x, fitClip*g.usual) - g.usual)
	return ratio, ok
}
