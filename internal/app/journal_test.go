package app

import (
	"errors"
	"slices"
	"testing"
)

// TestJournalKeepsTheNewest: of a state the newest alone is written, in the order in which
// they were last told; one that the store has not taken is tried again with the next
// job, and gives way to a newer one.
func TestJournalKeepsTheNewest(t *testing.T) {
	j := newJournal()
	var wrote []string
	var failed []error
	full := true
	write := func(text string) func() error {
		return func() error {
			if full {
				return errors.New("full")
			}
			wrote = append(wrote, text)
			return nil
		}
	}
	for range maxUnwritten + 1 { // more than the queue has room for
		j.keep("a", write("old"))
	}
	j.keep("b", write("b"))
	j.keep("a", write("new"))
	j.add(job{write: func() error { return nil }})
	if err := j.flush(); err == nil || len(wrote) > 0 {
		t.Fatalf("%v %q", err, wrote)
	}
	j.keep("b", write("newer"))
	full = false
	j.start(func(err error) { failed = append(failed, err) })
	j.stop()
	if !slices.Equal(wrote, []string{"new", "newer"}) || len(failed) > 0 {
		t.Errorf("%q %v", wrote, failed)
	}
}
