// Package history keeps the numbers that an operator looks back at, for seven days
// at falling resolution and in bounded space, without a time-series server.
//
// The package is pure: now is an argument. Its types are not safe for concurrent
// use.
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
	Name string `json:"name"` // offered, goodput, attempts, refused, degraded, failed, in_flight, queued, memory, first_content
	// Subject is what it is of: "" for the router, else "workload:NAME",
	// "target:NAME" or "model:NAME".
	Subject string     `json:"subject"`
	Unit    string     `json:"unit"` // per_second, count, bytes, seconds, ratio
	Values  []*float64 `json:"values"`
}
