package incident

import "testing"

func TestOpen(t *testing.T) {
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.All()) < 100 {
		t.Errorf("%d records", len(l.All()))
	}
}
