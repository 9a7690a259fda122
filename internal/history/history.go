// Package history keeps the numbers that an operator looks back at, for seven days
// at falling resolution and in bounded space, without a time-series server: 10 s for
// 2 hours, 1 min for 24 hours, 10 min for 7 days.
//
// What is kept are counts, which are added up where steps are put together, and the
// highest of what was read; ratios, rates and quantiles are made when somebody asks,
// so that they are right at every resolution. Of every step is known for how long the
// router ran in it: a step in which it did not is unknown, never zero.
//
// The package is pure: now is an argument. Its types are not safe for concurrent
// use: package app counts under one lock, and keeps and asks under another.
package history

// Answer is a stretch of the past, in columns: At are Unix seconds, and every
// series has a value for each of them, null where nothing is known.
type Answer struct {
	Step   int64    `json:"step"` // seconds
	At     []int64  `json:"at"`
	Series []Series `json:"series"`
}

// Series is one line.
type Series struct {
	Name string `json:"name"` // offered, goodput, attempts, refused, degraded, failed, in_flight, queued, memory, outages, first_content_p50 and _p95, amplification_in and _out, breaker
	// Subject is what it is of: "" for the router, else "workload:NAME" or
	// "target:NAME".
	Subject string     `json:"subject"`
	Unit    string     `json:"unit"` // per_second, count, bytes, seconds, ratio; of breaker 0 closed, 1 ramp, 2 half-open, 3 open
	Values  []*float64 `json:"values"`
}
