package main

import (
	"bytes"
	"os"
	"testing"
)

// TestFilesAreCurrent: schema and reference are those of the types.
func TestFilesAreCurrent(t *testing.T) {
	files, err := generate("..")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile("../" + path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./internal/config", path, err)
		}
	}
}
