package rollout

import "testing"

// What has no model is not shown with an empty one.
func TestCellWords(t *testing.T) {
	for k, want := range map[cellKey]string{{"w", "m"}: "workload w, model m", {"w", ""}: "workload w"} {
		if got := k.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
