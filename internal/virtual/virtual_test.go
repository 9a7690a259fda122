package virtual

import (
	"sync"
	"testing"
	"time"
)

// TestHoursPass: time passes without passing, in several bubbles at once, with
// the test's own reporter and without.
func TestHoursPass(t *testing.T) {
	for _, tested := range []bool{false, true} {
		if tested {
			Under(t)
		}
		began := time.Now()
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				var took time.Duration
				err := Run(func() {
					start := time.Now()
					done := make(chan struct{})
					go func() {
						time.Sleep(3 * time.Hour)
						close(done)
					}()
					<-done
					took = time.Since(start)
				})
				if err != nil || took != 3*time.Hour {
					t.Errorf("under a test %v: %v, %v", tested, took, err)
				}
			})
		}
		running.Wait()
		if time.Since(began) > time.Hour {
			t.Error("it was waited for")
		}
	}
}
