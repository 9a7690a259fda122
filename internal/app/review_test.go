package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReloadKeepsItsListenersSafe: a router that listens for everybody with
// keys must not take a file without keys, whatever address that file names:
// addresses change with a restart only.
func TestReloadKeepsItsListenersSafe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hourthree.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rest := "admin: {listen: 127.0.0.1:0}\nproviders: {a: {type: simulated}}\nmodels: {m: {targets: [{provider: a}]}}\n"
	write("listen: 0.0.0.0:0\n" + rest + "workloads: {w: {keys: [0123456789abcdef0123]}}\n")
	a, err := New(Options{ConfigPath: path, Env: os.LookupEnv, Stdout: new(strings.Builder), Stderr: new(strings.Builder)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	write("listen: 127.0.0.1:0\n" + rest)
	if err := a.Reload(); err == nil {
		t.Fatal("keys were dropped on a public listener")
	}
	if a.gateway.Snapshot().Directory.Identify("") != nil {
		t.Error("a caller without a key is served")
	}
}
