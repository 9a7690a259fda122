// Package access decides who the operator is and what that person may do on the
// operator's listener: by a bearer key, by a session of the dashboard, or by OpenID
// Connect. Where nobody is configured the listener is on loopback and whoever
// reaches it may operate.
//
// It keeps keys and the ids of sessions as digests only, writes no secret anywhere,
// and never serves what it guards: a handler behind it asks From who is there. A
// Guard is safe for concurrent use; what a reload changes is one immutable value,
// and sessions and failures have locks of their own. It starts no goroutine.
package access

import (
	"context"
	"time"
)

// Role is what somebody may do. The second includes the first.
type Role string

// The roles.
const (
	View    Role = "view"
	Operate Role = "operate"
)

// includes reports whether who has the role may do what needs another.
func (r Role) includes(need Role) bool { return r == need || r == Operate }

// How somebody has shown who they are. Loopback is not at all.
const (
	Loopback   = "loopback"
	viaKey     = "key"
	viaSession = "session"
	viaOIDC    = "oidc"
)

// Person is who asks.
type Person struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	Via  string `json:"via"` // loopback, key, session, oidc
}

type contextKey struct{}

// With returns a context in which p asks.
func With(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From is who asks; without a person whoever is on this machine, who may operate.
func From(ctx context.Context) Person {
	if p, ok := ctx.Value(contextKey{}).(Person); ok {
		return p
	}
	return Person{Name: "operator", Role: Operate, Via: Loopback}
}

// What a note is about.
const (
	SignedIn  = "signed-in"
	SignedOut = "signed-out"
	Ended     = "session-ended" // by the configuration
	Denied    = "denied"
)

// Note is what the record of who did what should hold: a session that began or
// ended, or a denial that means something. It holds no secret.
type Note struct {
	At   time.Time
	What string // signed-in, signed-out, session-ended, denied
	// Who it was; without a name where that is not known.
	Who  Person
	From string // address
	Why  string
	// Missed is how many notes of that person, or of all unknown, were left out since
	// the last: there may be many, and nobody fills the record.
	Missed int
}

// Reasons of denials, which the metric has as its label.
const (
	reasonNoCredential = "no_credential"
	reasonWrongKey     = "wrong_key"
	reasonShutOut      = "shut_out" // too many wrong keys
	reasonRole         = "role"
	reasonHost         = "host"
	reasonOrigin       = "origin"
	reasonOIDC         = "oidc"
)
