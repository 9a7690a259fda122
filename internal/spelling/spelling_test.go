package spelling

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	known := []string{"listen", "models", "model"}
	for wrong, want := range map[string]string{"listne": "listen", "modle": "model", "modelss": "models", "providers": "", "": "", strings.Repeat("m", Longest+1): ""} {
		if got := Nearest(wrong, known); got != want {
			t.Errorf("%q is near %q, want %q", wrong, got, want)
		}
	}
	long := strings.Repeat("a", Longest+1)
	if Distance(long, "a") != Longest+1 || Nearest("a", []string{long}) != "" {
		t.Error("a long name is compared")
	}
}

// TestDistance: the distance is a metric on short names, and an exchange of
// neighbours is one edit.
func TestDistance(t *testing.T) {
	if Distance("conenct", "connect") != 1 || Distance("", "abc") != 3 || Distance("same", "same") != 0 {
		t.Error("distance")
	}
	name := rapid.StringMatching(`[a-c]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		d := Distance(a, b)
		if d != Distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
	})
}
