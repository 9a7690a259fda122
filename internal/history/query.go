package history

import "time"

// Query asks for a stretch of the past.
type Query struct {
	From, To time.Time // to now, and from an hour before it, where nothing is said
	// Step is the resolution: whole seconds. 0 takes the finest that is kept for the
	// whole stretch and gives 720 points at most.
	Step time.Duration
	// Series are names; none asks for all of the subject's.
	Series []string
	// Subject is "" for the router, else "workload:NAME" or "target:NAME".
	Subject string
}

// Totals are sums over windows that end now.
type Totals struct {
	At      time.Time `json:"at"`
	Windows []Window  `json:"windows"` // the last minute, hour and day
}

// Window is what happened in one of them.
type Window struct {
	Name    string `json:"name"`    // 1m, 1h, 24h
	Seconds int64  `json:"seconds"` // how long it is
	// Known is the share of it that the router has seen, 0 to 1.
	Known  float64 `json:"known"`
	Counts Sums    `json:"counts"`
	// PerSecond are the same over the time that is known; null where nothing is.
	PerSecond *Rates `json:"per_second"`
}

// Sums are counts. Offered is everything that came in; of it goodput was answered
// as it should be, degraded was answered by a last resort, refused was turned away
// by the router itself, and failed was not answered for any other reason than the
// caller's own request or its leaving.
type Sums struct {
	Offered  int64 `json:"offered"`
	Goodput  int64 `json:"goodput"`
	Attempts int64 `json:"attempts"` // calls to targets
	Refused  int64 `json:"refused"`
	Degraded int64 `json:"degraded"`
	Failed   int64 `json:"failed"`
}

// Rates are the same per second.
type Rates struct {
	Offered  float64 `json:"offered"`
	Goodput  float64 `json:"goodput"`
	Attempts float64 `json:"attempts"`
	Refused  float64 `json:"refused"`
	Degraded float64 `json:"degraded"`
	Failed   float64 `json:"failed"`
}
