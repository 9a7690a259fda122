package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/cobra"
)

// answering is an operator's listener that knows one path, and answers it with what
// answer is then.
func answering(t *testing.T, path string, answer *string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, *answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// said runs a command and returns what it writes.
func said(c *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}
