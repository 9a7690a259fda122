package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestToolsEndOnSignal: a client that sends SIGTERM instead of closing the input
// ends the process too.
func TestToolsEndOnSignal(t *testing.T) {
	if os.Getenv("HOURTHREE_TEST_TOOLS") != "" {
		os.Args = []string{"hourthree", "mcp"}
		os.Exit(run())
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestToolsEndOnSignal$")
	cmd.Env = append(os.Environ(), "HOURTHREE_TEST_TOOLS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	said := bufio.NewReader(out)
	if l, err := said.ReadString('\n'); err != nil || !strings.Contains(l, "serverInfo") {
		t.Fatalf("%.200q %v", l, err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if rest, _ := io.ReadAll(said); len(rest) > 0 {
		t.Errorf("it says %q at its end", rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestTheToolsDocumentIsRight runs each command of docs/mcp.md that shows its
// output.
func TestTheToolsDocumentIsRight(t *testing.T) {
	data, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	list := examplesOf(string(data))
	if len(list) < 2 {
		t.Fatalf("%d commands", len(list))
	}
	for _, s := range list {
		got, code := ran(t, t.TempDir(), s.command)
		if code != s.code || !matches(s.want, strings.Split(strings.TrimRight(got, "\n"), "\n")) {
			t.Errorf("docs/mcp.md:%d: %s: exit %s\n%s", s.line, s.command, code, got)
		}
	}
}
