package admin

import (
	"github.com/hourthree/hourthree/internal/admit"
)

// Limits is what every caller, model, target and path is held to.
type Limits struct {
	Bounds []Bound `json:"limits"`
	Rules  []Rule  `json:"workload_rules"`
	// Without are the workloads that neither have a limit themselves nor have
	// one for each of their keys.
	Without []string `json:"workloads_without_limit"`
}

// Bound is one owner with its limits; 0 is none.
type Bound struct {
	Level       string  `json:"level"` // workload, key, workload_model, model, target or passthrough
	Name        string  `json:"name"`
	Workload    string  `json:"workload,omitempty"` // of a key, or of limits for one model
	Provider    string  `json:"provider,omitempty"` // of a passthrough route
	RPM         int64   `json:"rpm,omitempty"`
	TPM         int64   `json:"tpm,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	USDPerDay   float64 `json:"usd_per_day,omitempty"`
	NoLimit     bool    `json:"no_limit"`
	Use         *Use    `json:"use,omitempty"` // of a running router
}

// Use is how much of its limits an owner uses, and what may come in at once.
// Without a limit there is nothing to be left.
type Use struct {
	InFlight     int64    `json:"in_flight"`
	RequestsLeft *int64   `json:"requests_left,omitempty"`
	TokensLeft   *int64   `json:"tokens_left,omitempty"`
	SlotsLeft    *int64   `json:"concurrency_left,omitempty"`
	USDSpent     *float64 `json:"usd_spent,omitempty"` // today, with what is reserved
	USDLeft      *float64 `json:"usd_left,omitempty"`
}

// Rule is what holds for a workload beside its limits.
type Rule struct {
	Workload string `json:"workload"`
	Priority string `json:"priority"`
	// Repeats by the caller's own retry loop: a share of its first requests,
	// and so many a second besides.
	RepeatRatio     float64 `json:"repeat_ratio"`
	RepeatPerSecond float64 `json:"repeat_per_second"`
	// MemoryShare of memory.limit is what it may hold once half is taken; 1 is
	// all of it.
	MemoryShare float64 `json:"memory_share"`
}

// UseOf is how an owner stands, as an operator sees it.
func UseOf(s admit.Standing) *Use {
	u := &Use{InFlight: int64(s.InFlight)}
	if s.Requests.PerMinute > 0 {
		u.RequestsLeft = &s.Requests.Left
	}
	if s.Tokens.PerMinute > 0 {
		u.TokensLeft = &s.Tokens.Left
	}
	if most := s.Limits.Concurrency; most > 0 {
		left := max(0, int64(most-s.InFlight))
		u.SlotsLeft = &left
	}
	if s.Limits.USDPerDay > 0 {
		spent, left := s.Spent.Dollars(), max(0, s.Limits.USDPerDay-s.Spent).Dollars()
		u.USDSpent, u.USDLeft = &spent, &left
	}
	return u
}
