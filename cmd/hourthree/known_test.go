package main

import (
	"io"
	"log"
	"os"
	"testing"

	"github.com/hourthree/hourthree/internal/app"
)

// Breaks when serve leaves the standard logger on: net/http would print parts
// of answers to it.
func TestServingSilencesTheStandardLogger(t *testing.T) {
	defer log.SetOutput(os.Stderr)
	if err := serve(app.Options{ConfigPath: t.TempDir() + "/none.yaml"}); err == nil {
		t.Error("served without a file")
	}
	if log.Writer() != io.Discard {
		t.Error("the standard logger prints")
	}
}
