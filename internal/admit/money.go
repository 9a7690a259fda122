package admit

import "math"

// Money is an amount in billionths of a US dollar.
type Money int64

// USD is an amount in dollars. What is no amount is 0, and sums stay in range.
func USD(dollars float64) Money {
	if !(dollars > 0) {
		return 0
	}
	return Money(min(math.Ceil(dollars*1e9), math.MaxInt64/8))
}

// Dollars is the amount in dollars.
func (m Money) Dollars() float64 { return float64(m) / 1e9 }

// Price is what a target charges, in US dollars for a million tokens.
type Price struct {
	Input, Output float64
	// Cached is for the part of the input that the provider had in its cache.
	Cached float64
}

// Cost is what a call costs. cached is part of input.
func (p Price) Cost(input, cached, output int64) Money {
	cached = min(max(0, cached), max(0, input))
	return USD((float64(max(0, input)-cached)*p.Input + float64(cached)*p.Cached + float64(max(0, output))*p.Output) / 1e6)
}

// Dearest is the higher of two prices, part by part.
func (p Price) Dearest(q Price) Price {
	return Price{Input: max(p.Input, q.Input), Output: max(p.Output, q.Output), Cached: max(p.Cached, q.Cached)}
}

// Use is what a request took, or is estimated to take.
type Use struct {
	Tokens int64
	Cost   Money
}
