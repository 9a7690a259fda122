package main

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// ranWith runs a command with arguments.
func ranWith(c *cobra.Command, args ...string) (string, error) {
	var out strings.Builder
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

const testKey = "a-key-of-the-operator"

// asks answers whoami to who shows the key.
func asks(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer "+testKey:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/api/v1/whoami":
		_, _ = io.WriteString(w, `{"name":"alice","role":"operate","via":"key"}`)
	default:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"error":"This needs the role operate; alice has view."}`)
	}
}

func keyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOperatorKey: where the key is taken from, and what is said without one, with
// a wrong one, and with one that may not do it.
func TestOperatorKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(asks))
	defer s.Close()
	t.Setenv(adminKeyVariable, "")
	_, err := ranWith(whoamiCommand(), "--admin", s.URL)
	var e exit
	if !errors.As(err, &e) || e.code != exitRun || !strings.Contains(err.Error(), "$HOURTHREE_ADMIN_KEY") || !strings.Contains(err.Error(), "--admin-key-file") {
		t.Error(err)
	}
	if out, err := ranWith(whoamiCommand(), "--admin", s.URL, "--admin-key-file", keyFile(t, testKey+"\n")); err != nil || out != "alice, who may operate (key)\n" {
		t.Errorf("%q %v", out, err)
	}
	t.Setenv(adminKeyVariable, testKey)
	if out, err := ranWith(whoamiCommand(), "--admin", s.URL, "--json"); err != nil || !strings.Contains(out, `"via":"key"`) {
		t.Errorf("%q %v", out, err)
	}
	if _, err := ranWith(quarantineCommand(), "suite", "--why", "x", "--admin", s.URL); err == nil || !strings.Contains(err.Error(), "needs the role operate") {
		t.Error(err)
	}
	t.Setenv(adminKeyVariable, "the-key-of-a-workload")
	if _, err := ranWith(whoamiCommand(), "--admin", s.URL); err == nil || !strings.Contains(err.Error(), "admin.keys") || strings.Contains(err.Error(), "the-key-of-a-workload") {
		t.Error(err)
	}
}

// TestOperatorKeyStaysWithItsRouter: it follows no redirect, and crosses no public
// network without encryption.
func TestOperatorKeyStaysWithItsRouter(t *testing.T) {
	t.Setenv(adminKeyVariable, testKey)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the key went elsewhere: %s", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	s := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/api/v1/whoami", http.StatusTemporaryRedirect))
	defer s.Close()
	if _, err := ranWith(whoamiCommand(), "--admin", s.URL); err == nil || !strings.Contains(err.Error(), "307") {
		t.Error(err)
	}
	for _, far := range []string{"http://ops.example.com", "http://203.0.113.5:8081"} {
		if _, err := ranWith(whoamiCommand(), "--admin", far); err == nil || !strings.Contains(err.Error(), "without encryption") {
			t.Errorf("%s: %v", far, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "::1", "10.1.2.3", "hourthree", "hourthree.prod.svc", "localhost"} {
		if !nearby(host) {
			t.Errorf("%s is far", host)
		}
	}
	if _, err := ranWith(whoamiCommand(), "--admin", "http:///x"); err == nil || !strings.Contains(err.Error(), "is no address") {
		t.Error(err)
	}
}

// TestOperatorCA: a certificate of one's own authority is believed when it is
// named, and else the remedy is.
func TestOperatorCA(t *testing.T) {
	t.Setenv(adminKeyVariable, testKey)
	s := httptest.NewTLSServer(http.HandlerFunc(asks))
	defer s.Close()
	if _, err := ranWith(whoamiCommand(), "--admin", s.URL); err == nil || !strings.Contains(err.Error(), "--admin-ca") {
		t.Error(err)
	}
	ca := keyFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	if out, err := ranWith(whoamiCommand(), "--admin", s.URL, "--admin-ca", ca); err != nil || !strings.HasPrefix(out, "alice") {
		t.Errorf("%q %v", out, err)
	}
	if _, err := ranWith(whoamiCommand(), "--admin", s.URL, "--admin-ca", keyFile(t, "nothing")); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Error(err)
	}
}

// TestActionsLogHasItsOwnLines: what somebody had written down does not look like a line
// of the log.
func TestActionsLogHasItsOwnLines(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"entries":[{"id":7,"at":"2026-05-29T13:37:00Z","who":"eve\n    8 x","what":"denied","why":"POST of /x\n    9 2026-05-29 13:37:00 ada: undo\u001b[2J"}]}`)
	}))
	defer s.Close()
	out, err := ranWith(actionsLogCommand(), "--admin", s.URL)
	if err != nil || strings.Count(out, "\n") != 2 || strings.Contains(out, "\x1b") {
		t.Errorf("%q %v", out, err)
	}
}
