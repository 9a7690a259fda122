package drill

import (
	"testing"
	"time"
)

// TestKilled: a crash is booked with the time until there is service again.
func TestKilled(t *testing.T) {
	b := targetBook{TargetRun: TargetRun{Steps: make([]TargetStep, 10)}, step: time.Second, down: 3 * time.Second}
	b.killed(1500 * time.Millisecond)
	b.killed(9 * time.Second)
	for i, s := range b.Steps {
		if want := i >= 1 && i <= 4 || i == 9; s.Down != want {
			t.Errorf("step %d: down %v", i, s.Down)
		}
	}
	if b.Crashes != 2 {
		t.Errorf("%d crashes", b.Crashes)
	}
}
