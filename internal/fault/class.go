// Package fault is the vocabulary of failure: the class of an outcome, the
// tables that turn an upstream's answer into a class, the parser for every
// way an upstream says "come back later", and the advice the router gives its
// own callers.
//
// It decides from status, machine codes, headers and content type, in the
// order of the tables; it never reads prose unless a table row says so. It
// does no I/O, reads no clock and imports nothing of this module.
package fault

// Class is the outcome of an attempt or of a request.
type Class uint8

// The classes. Only Outage is evidence of a failing target and only OK of a
// healthy one; every other class says nothing about the target's health.
const (
	OK            Class = iota // the answer is whole
	Client                     // the caller must change the request
	ContentPolicy              // refused for its content
	Credential                 // our key, model name or configuration for that target is wrong
	Capacity                   // throttled, quota or provisioned unit full: later, or elsewhere
	Account                    // billing or spend limit exhausted: that key is dead for long
	Outage                     // connect, reset, timeout, 5xx, error in a 200, empty or truncated answer
	Deadline                   // the caller's own limit passed
	Canceled                   // the caller left
	Overload                   // the router's own refusal
	numClasses
)

var classNames = [numClasses]string{
	"ok", "client", "content_policy", "credential", "capacity",
	"account", "outage", "deadline", "canceled", "overload",
}

// String returns the name used in metrics, headers and error bodies.
func (c Class) String() string {
	if c >= numClasses {
		return "unknown"
	}
	return classNames[c]
}

// Scope is the smallest thing that is limited or broken. A candidate outside
// the scope may still serve the request.
type Scope uint8

// The scopes, from narrow to wide.
const (
	ScopeRequest  Scope = iota // this request alone
	ScopeTarget                // one model deployment
	ScopeKey                   // the provider account or credential
	ScopeRegion                // the provider's region
	ScopeProvider              // the whole provider
)

var scopeNames = [...]string{"request", "target", "key", "region", "provider"}

// String returns the name used in logs and tables.
func (s Scope) String() string {
	if int(s) >= len(scopeNames) {
		return "unknown"
	}
	return scopeNames[s]
}
