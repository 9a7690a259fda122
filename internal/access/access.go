// Package access decides who the operator is and what that person may do on the
// operator's listener: by a bearer key, by a session of the dashboard, or by OpenID
// Connect. Where nobody is configured the listener is on loopback and whoever
// reaches it may operate.
package access

import (
	"context"
)

// Role is what somebody may do. The second includes the first.
type Role string

// The roles.
const (
	View    Role = "view"
	Operate Role = "operate"
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
	return Person{Name: "operator", Role: Operate, Via: "loopback"}
}
