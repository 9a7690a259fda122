//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// agent is what the official MCP client printed.
type agent struct {
	Server struct{ Name string }
	Tools  []struct {
		Name                      string
		InputSchema, OutputSchema map[string]any
		Annotations               map[string]any
	}
	Resources int
	Results   []struct {
		Name       string
		IsError    bool
		Structured map[string]any
		Text       string
		Thrown     string
	}
}

// agentOf runs the official client of MCP with calls.
func agentOf(t *testing.T, calls []any, how ...string) agent {
	t.Helper()
	in, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	text := ended(t, bytes.NewReader(in), "node", append([]string{"mcp.mjs"}, how...)...)
	var a agent
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return a
}

// ended is what a program of test/clients prints until it ends.
func ended(t *testing.T, in *bytes.Reader, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.WaitDelay = clientsDir, 5*time.Second
	if in != nil {
		cmd.Stdin = in
	}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%.500s\n%.500s", name, args, err, out.String(), log.String())
	}
	return out.Bytes()
}

func exposed(t *testing.T) string {
	t.Helper()
	files, _ := filepath.Glob(root + "/examples/audit/exposed/*.yaml")
	var all []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return strings.Join(all, "\n---\n")
}

// TestAgent: the official client uses every tool, over standard input and
// output and over HTTP, and holds each answer to the schema it was given.
func TestAgent(t *testing.T) {
	binary, err := filepath.Abs(routerBin)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(root + "/examples/audit")
	if err != nil {
		t.Fatal(err)
	}
	calls := []any{
		[]any{"search_incidents", map[string]any{"query": "retry storm", "limit": 3}},
		[]any{"list_incidents", map[string]any{"causes": []string{"retry-amplification"}}},
		[]any{"get_incident", map[string]any{"id": "HT-0001"}},
		[]any{"get_topic", map[string]any{"kind_of_word": "cause", "word": "retry-amplification"}},
		[]any{"vocab", map[string]any{}},
		[]any{"list_topics", map[string]any{}},
		[]any{"search", map[string]any{"query": "retry storm"}},
		[]any{"fetch", map[string]any{"id": "HT-0001"}},
	}
	library := len(calls)
	calls = append(calls,
		[]any{"audit_run", map[string]any{}},
		[]any{"audit_manifests", map[string]any{"yaml": exposed(t)}},
		[]any{"audit_findings", map[string]any{"run_id": "LAST", "limit": 5}},
		[]any{"audit_explain", map[string]any{"id": "PTH-001"}},
		[]any{"audit_path", map[string]any{"workload": "apps/copilot"}},
		[]any{"audit_access", map[string]any{}}, // an error: there is no cluster
	)
	served := startMCP(t, "--root", folder)
	for name, how := range map[string][]string{
		"stdio": {"stdio", binary, "mcp", "--root", folder}, "http": {"http", served},
	} {
		t.Run(name, func(t *testing.T) {
			a := agentOf(t, calls, how...)
			if len(a.Tools) != len(calls) || a.Server.Name != "hourthree" || a.Resources == 0 {
				t.Errorf("%d tools of %q, %d resources", len(a.Tools), a.Server.Name, a.Resources)
			}
			for i, r := range a.Results {
				last := i == len(a.Results)-1
				if r.Thrown != "" || r.IsError != last || !last && len(r.Structured) == 0 {
					t.Errorf("%s: %s%.300s", r.Name, r.Thrown, r.Text)
				}
			}
		})
	}
	t.Run("serve", func(t *testing.T) {
		f := startFake(t)
		r := startRouter(t, conf{"providers": upstreams(f), "workloads": workloads(), "models": conf{"plain": order("plain/ok.plain")}})
		a := agentOf(t, calls[:library], "http", r.admin+"/mcp")
		if len(a.Tools) != library {
			t.Errorf("the operator's listener offers %d tools, want the library's %d", len(a.Tools), library)
		}
		for _, r := range a.Results {
			if r.Thrown != "" || r.IsError {
				t.Errorf("%s: %s%.300s", r.Name, r.Thrown, r.Text)
			}
		}
	})
	t.Run("inspector", func(t *testing.T) {
		for _, target := range [][]string{{binary, "mcp"}, {served, "--transport", "http"}} {
			list := ended(t, nil, "node_modules/.bin/mcp-inspector", append(append([]string{"--cli"}, target...), "--method", "tools/list")...)
			if !json.Valid(list) || !bytes.Contains(list, []byte(`"audit_manifests"`)) {
				t.Errorf("%v: %.300s", target, list)
			}
			call := ended(t, nil, "node_modules/.bin/mcp-inspector", append(append([]string{"--cli"}, target...), "--method", "tools/call", "--tool-name", "get_incident", "--tool-arg", "id=HT-0001")...)
			if !json.Valid(call) || !bytes.Contains(call, []byte(`"structuredContent"`)) {
				t.Errorf("%v: %.300s", target, call)
			}
		}
	})
}

var toolsLine = regexp.MustCompile(`tools at (http://\S+)`)

// startMCP serves tools over HTTP and answers the address.
func startMCP(t *testing.T, args ...string) string {
	t.Helper()
	var log tail
	cmd := exec.Command(routerBin, append([]string{"mcp", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("hourthree mcp ends with %v: %s", err, log.String())
		}
	})
	for range 100 {
		if m := toolsLine.FindStringSubmatch(log.String()); m != nil {
			return m[1]
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("hourthree mcp does not serve: %s", log.String())
	return ""
}
