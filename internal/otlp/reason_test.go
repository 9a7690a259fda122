package otlp

import (
	"errors"
	"testing"
)

// A collector may repeat what it was sent: no part of a secret is logged, and a
// header without a value hides nothing else.
func TestReasonHidesHeaders(t *testing.T) {
	e := &Exporter{opt: Options{Headers: map[string]string{
		"A": "team", "B": "team-secret", "C": "team-secret-of-b", "D": "Bearer team-token", "E": "", "F": "Bearer ",
	}}}
	for range 50 { // maps have no order
		if got := e.reason(errors.New("401: team-secret-of-b, team-token, team-secret and team are refused")); got != "401: ***, ***, *** and *** are refused" {
			t.Fatal(got)
		}
	}
}
