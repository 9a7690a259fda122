// Package layers multiplies retries: given the layers that a call passes on its
// way from a client to a model, it says how many calls can come of one, for each
// class of failure, what bounds them, and whether the layers' time limits nest.
// It is pure, and imports no other room; who reads the layers from manifests and
// configurations is the audit.
package layers

import "time"

// Class is a kind of failure that a layer may or may not repeat after.
type Class string

// The classes: layers differ in which of them they repeat.
const (
	Connect  Class = "connect"
	Reset    Class = "reset" // reset or time-out after the request was sent
	Server   Class = "5xx"
	Capacity Class = "429"
)

// Classes are all of them.
func Classes() []Class { return []Class{Connect, Reset, Server, Capacity} }

// Layer is one place on the path that may repeat a call.
type Layer struct {
	Name    string // what it is: openai SDK, BackendTrafficPolicy llm/retry, LiteLLM router
	Product string
	// Attempts are the calls that one call into this layer can become, for each
	// class; a class that is absent counts 1.
	Attempts map[Class]int
	// Hands is the class that this layer's own caller sees after a failure, where
	// it is known to differ: a proxy answers 503 to a connection it did not get.
	Hands map[Class]Class
	// Fallbacks are further targets that are tried after the first has failed;
	// each gets Attempts.
	Fallbacks int
	// Budget bounds repeats to this share of calls in the steady state, 0 for no
	// bound.
	Budget float64
	// Timeout is of the whole call through this layer and PerTry of one attempt;
	// 0 for none or unknown.
	Timeout, PerTry time.Duration
	// Assumed says why the numbers are not read but taken for granted, "" when
	// they were read.
	Assumed string
	File    string
	Line    int
}

// Proxied is what the caller of an HTTP proxy sees of a connection or an
// exchange that failed behind it: an answer with a 5xx status.
func Proxied() map[Class]Class { return map[Class]Class{Connect: Server, Reset: Server} }

// Same gives every class the same number of attempts.
func Same(attempts int) map[Class]int {
	m := map[Class]int{}
	for _, c := range Classes() {
		m[c] = attempts
	}
	return m
}

// For are the attempts after failures of a class, at least 1.
func (l Layer) For(c Class) int { return max(l.Attempts[c], 1) }

// Tries are the most attempts of any class.
func (l Layer) Tries() int {
	most := 1
	for _, n := range l.Attempts {
		most = max(most, n)
	}
	return most
}

// targets are those that the layer may try one after the other.
func (l Layer) targets() int { return add(1, max(l.Fallbacks, 0)) }

// hands is the class that the layer's caller sees.
func (l Layer) hands(c Class) Class {
	if to, ok := l.Hands[c]; ok {
		return to
	}
	return c
}
