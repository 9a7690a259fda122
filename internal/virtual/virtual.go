// Package virtual runs code in virtual time, in an ordinary binary: time passes
// when every goroutine waits, so that hours take seconds. It is
// testing/synctest, which is made for tests and, as of Go 1.26, needs a testing.T
// only to report through.
//
// Should a release of Go refuse that, Run returns ErrTestsOnly, and the same
// works under go test once a test has said Under.
package virtual

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// ErrTestsOnly says that this release of Go has virtual time in tests only.
var ErrTestsOnly = errors.New("this release of Go has virtual time in tests only; use go test ./cmd/hourthree -run TestDrillUnderTest -drill 'run --all'")

var under atomic.Pointer[testing.T]

// Under makes Run report through a test until the test ends.
func Under(t *testing.T) {
	under.Store(t)
	t.Cleanup(func() { under.Store(nil) })
}

// Run calls f in a bubble of virtual time, which begins at midnight UTC
// 2000-01-01, and returns when f and all goroutines that it started have ended.
// Calls may run at once, each in a bubble of its own. A panic in f ends the
// process, as in any goroutine.
func Run(f func()) (err error) {
	t, begun := under.Load(), false
	if t == nil {
		t = new(testing.T)
	}
	defer func() {
		if refused := recover(); refused != nil {
			err = fmt.Errorf("%w (%v)", ErrTestsOnly, refused)
		} else if !begun {
			err = ErrTestsOnly
		}
	}()
	synctest.Test(t, func(*testing.T) {
		begun = true
		f()
	})
	return nil
}
