// Package steer decides which of an operator's actions are in force: what was
// ordered, by whom, why, until when, and how it is taken back. Every action ends by
// itself. It changes nothing: package app puts what is in force to the targets, the
// workloads and the models.
//
// The package is pure: now is an argument. Its types are not safe for concurrent
// use.
package steer

import (
	"time"
)

// Kind is what an action does.
type Kind string

// The kinds of actions, with what their subject names.
const (
	// Drain lets a target get no new requests; calls in flight run on.
	Drain Kind = "drain"
	// ForceOpen holds a target's breaker open, without probes.
	ForceOpen Kind = "force-open"
	// ForceClosed lets a target have its full share whatever its breaker has seen.
	ForceClosed Kind = "force-closed"
	// Quarantine moves a workload to the quarantine lane, with Share of it.
	Quarantine Kind = "quarantine"
	// Shed refuses requests of a priority, and of those that matter less.
	Shed Kind = "shed"
	// Budget multiplies the retry allowance of a workload or a target by Factor; 0
	// lets it pay for no extra attempt.
	Budget Kind = "budget"
	// Pin sends a model's requests to Target alone.
	Pin Kind = "pin"
)

// Order is what an operator asks for.
type Order struct {
	Kind Kind `json:"kind"`
	// Subject is a target (drain, force-open, force-closed), a workload
	// (quarantine), a priority (shed), "workload:NAME" or "target:NAME" (budget), or
	// a model (pin).
	Subject string   `json:"subject"`
	Target  string   `json:"target,omitempty"` // of pin
	Share   *float64 `json:"share,omitempty"`  // of quarantine, 0 to 1
	Factor  *float64 `json:"factor,omitempty"` // of budget, 0 to 10
	For     string   `json:"for,omitempty"`    // a Go duration, 1m to 24h; the kind's default where nothing is said
	Why     string   `json:"why"`              // required
}

// Action is an order with what became of it.
type Action struct {
	ID string `json:"id"`
	Order
	By       string     `json:"by"`
	At       time.Time  `json:"at"`
	Until    time.Time  `json:"until"`
	Ended    *time.Time `json:"ended,omitempty"`
	EndedBy  string     `json:"ended_by,omitempty"` // expiry, configuration, a name, or replaced by A-8
	EndedWhy string     `json:"ended_why,omitempty"`
	// Replaced is the newer action that ended this one, "" for none. When that one is
	// undone, this one holds again.
	Replaced string `json:"replaced_by,omitempty"`
	Undo     string `json:"undo"` // the command that takes it back
}

// Entry is a line of the audit log.
type Entry struct {
	ID      int64     `json:"id"` // rises by one
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	Role    string    `json:"role,omitempty"` // view, operate; none for the router itself
	Via     string    `json:"via,omitempty"`  // loopback, key, session, oidc; on loopback who is as said
	What    string    `json:"what"`           // the kind of an action, undo, expire, release, configuration, rollout, note, sign-in, denied
	Subject string    `json:"subject"`
	Why     string    `json:"why,omitempty"`
	Action  string    `json:"action,omitempty"` // its ID
	Undo    string    `json:"undo,omitempty"`
	Digest  string    `json:"digest,omitempty"` // of this entry and the one before: a missing or changed line shows
}
