package rollout

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// choose is the chance of k of n at a rate.
func choose(n, k int, p float64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log(1-p))
}

// Whatever the rates, as long as the candidate's is no worse than the line allows,
// the evidence of a block is worth no more than one on average: so the chance that
// it ever reaches 1/alpha is alpha at most, however often it is looked at (Ville).
func TestEvidenceIsHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(0, 8).Draw(t, "m")
		l := line{c: rapid.Float64Range(-0.3, 0.5).Draw(t, "c"), r: rapid.Float64Range(0.3, 1.4).Draw(t, "r")}
		if m == 0 {
			l = line{c: rapid.Float64Range(0.001, 0.9).Draw(t, "alone")}
		}
		thought := rapid.Float64Range(0.001, 0.6).Draw(t, "thought")
		control := rapid.Float64Range(0.001, 0.95).Draw(t, "control")
		most := min(l.c+l.r*control, 0.999)
		if most <= 0.001 {
			t.Skip("no rate is within")
		}
		candidate := rapid.Float64Range(0.0005, most).Draw(t, "candidate")
		var worth [len(effects)]float64
		for k := range n + 1 {
			for c := range m + 1 {
				b := block{cand: side{n: float64(n), bad: float64(k)}, ctl: side{n: float64(m), bad: float64(c)}}
				for i, e := range b.weigh(l, thought) {
					worth[i] += choose(n, k, candidate) * choose(m, c, control) * math.Exp(e)
				}
			}
		}
		for i, w := range worth {
			if w > 1+1e-6 {
				t.Fatalf("effect %v is worth %v", effects[i], w)
			}
		}
	})
}

// An outage that takes the same share of everything away is within the line of two
// workloads that differ by nature.
func TestOutageOfAllIsNobodysFault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, theirs := rapid.Float64Range(0, 0.5).Draw(t, "own"), rapid.Float64Range(0, 0.5).Draw(t, "theirs")
		gone := rapid.Float64Range(0, 1).Draw(t, "gone")
		b := block{cand: side{n: 1, usual: own}, ctl: side{n: 1, usual: theirs}}
		l := b.fair(0.005, others)
		now := 1 - (1-theirs)*(1-gone)
		if is, may := 1-(1-own)*(1-gone), l.c+l.r*now; is > may {
			t.Fatalf("%v is above %v", is, may)
		}
	})
}
