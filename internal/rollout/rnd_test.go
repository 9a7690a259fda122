package rollout

import (
	"math"
	"math/rand/v2"
)

func exp(x float64) float64 { return math.Exp(x) }

func poisson(rnd *rand.Rand, mean float64) int {
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rnd.NormFloat64())))
	}
	limit, p, n := math.Exp(-mean), 1.0, -1
	for p > limit {
		p *= rnd.Float64()
		n++
	}
	return n
}
