package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hourthree/hourthree/internal/library"
)

func served(t *testing.T, a *Audit) (*httptest.Server, *rig) {
	t.Helper()
	r := newRig(t, a)
	s := httptest.NewServer(Handler(func() (*Server, error) { return r.server, nil }, nil))
	t.Cleanup(s.Close)
	return s, r
}

// post sends one message as a client does.
func post(t *testing.T, url, body string, headers map[string]string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range headers {
		if k == "Host" {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// TestOverHTTP: who may ask, and in which versions of the protocol.
func TestOverHTTP(t *testing.T) {
	s, _ := served(t, nil)
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_incident","arguments":{"id":"HT-0001"}}}`
	current := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_incident","arguments":{"id":"HT-0001"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, c := range []struct {
		name, body string
		headers    map[string]string
		status     int
		want       string
	}{
		{"legacy initialize", initialize, nil, 200, `"protocolVersion":"2025-06-18"`},
		{"a call of the old protocol", call, map[string]string{"MCP-Protocol-Version": "2025-06-18"}, 200, `"structuredContent"`},
		{"a call of the current protocol", current, map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "get_incident"}, 200, `"structuredContent"`},
		{"another name in the header", current, map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "fetch"}, 400, `-32020`},
		{"another site", initialize, map[string]string{"Origin": "https://evil.example"}, 403, ""},
		{"another site, as a browser says it", initialize, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, ""},
		{"a rebound name", initialize, map[string]string{"Host": "evil.example"}, 403, ""},
		{"no JSON", "nonsense", nil, 400, ""},
		{"a batch", " \r\n\t[" + call + "," + call + "]", nil, 400, "batches"},
		{"a batch of the version that had them", "[" + call + "]", map[string]string{"MCP-Protocol-Version": "2025-03-26"}, 400, "batches"},
		{"space before a message", "\n " + initialize, nil, 200, `"protocolVersion"`},
		{"nothing", "", nil, 400, ""},
		{"more than words need", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", maxSmall) + `"}`, nil, 413, ""},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413, ""},
	} {
		res, text := post(t, s.URL, c.body, c.headers)
		if res.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %.200s; want %d with %q", c.name, res.StatusCode, text, c.status, c.want)
		}
		if c.status == 200 && !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %s", c.name, res.Header.Get("Content-Type"))
		}
		if res.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: a session, though there are none", c.name)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		req, _ := http.NewRequestWithContext(t.Context(), method, s.URL, nil)
		req.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
}

// TestClientOverHTTP: the whole way of an agent, every call by itself.
func TestClientOverHTTP(t *testing.T) {
	s, r := served(t, &Audit{})
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r.client = c
	n := 0
	for _, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 14 {
		t.Errorf("%d tools", n)
	}
	m := r.answer("audit_manifests", args{"yaml": stack(t)})
	r.answer("audit_findings", args{"run_id": m["run_id"]}) // another request, the same process
}

// TestLeavingOverHTTP: with the current protocol a caller who leaves ends what
// was done for it.
func TestLeavingOverHTTP(t *testing.T) {
	s, r := served(t, &Audit{})
	a := r.server.auditor
	a.turn <- struct{}{}
	defer a.end()
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "audit_manifests", "arguments": map[string]any{"yaml": "a: b"}, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{}, "io.modelcontextprotocol/clientInfo": map[string]any{"name": "t", "version": "1"},
		},
	}})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, bytes.NewReader(body))
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "audit_manifests"} {
		req.Header.Set(k, v)
	}
	client := &http.Client{Timeout: 200 * time.Millisecond}
	if res, err := client.Do(req); err == nil {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("answered though another audit has the turn: %d %s", res.StatusCode, text)
	}
	done := make(chan struct{})
	go func() { s.Close(); close(done) }() // waits for handlers
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Error("the handler goes on for a caller that has left")
	}
}

func TestUnreadableLibrary(t *testing.T) {
	told := 0
	h := Handler(func() (*Server, error) { return nil, errors.New("broken") }, func(error) { told++ })
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(initialize)))
	if w.Code != http.StatusInternalServerError || told != 1 || strings.Contains(w.Body.String(), "broken") {
		t.Errorf("%d %s, told %d times", w.Code, w.Body, told)
	}
}

// TestSlowAudit: a listener's limit for pages does not cut an audit off.
func TestSlowAudit(t *testing.T) {
	r := newRig(t, &Audit{})
	s := httptest.NewUnstartedServer(Handler(func() (*Server, error) { return r.server, nil }, nil))
	s.Config.WriteTimeout = 100 * time.Millisecond
	s.Start()
	defer s.Close()
	r.server.auditor.turn <- struct{}{}
	time.AfterFunc(400*time.Millisecond, r.server.auditor.end)
	body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"audit_manifests","arguments":{"yaml":"a: b"}}}`
	if res, text := post(t, s.URL, body, nil); res.StatusCode != 200 || !strings.Contains(text, `"result"`) {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}

// TestKeyedListener: the listener of its own asks for the key, or is loopback.
func TestKeyedListener(t *testing.T) {
	r := newRig(t, &Audit{})
	ready := make(chan net.Addr, 1)
	go func() {
		_ = library.Serve(t.Context(), library.ServerOptions{
			Listen: "127.0.0.1:0", Key: "0123456789abcdef", Ready: func(a net.Addr) { ready <- a },
			Handler: Handler(func() (*Server, error) { return r.server, nil }, nil),
		})
	}()
	url := "http://" + (<-ready).String() + "/mcp"
	if res, _ := post(t, url, initialize, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", res.StatusCode)
	}
	if res, text := post(t, url, initialize, map[string]string{"Authorization": "Bearer 0123456789abcdef"}); res.StatusCode != 200 {
		t.Errorf("with the key: %d %s", res.StatusCode, text)
	}
}

// TestOverStreams: one client over a pair of streams, which ends with its input.
func TestOverStreams(t *testing.T) {
	r := newRig(t, nil)
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.server.Run(t.Context(), in, out); out.Close() }()
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_incidents","arguments":{"query":"retry"}}}`
	if _, err := io.WriteString(write, initialize+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+call+"\n"); err != nil {
		t.Fatal(err)
	}
	write.Close() // at once: what was asked is answered all the same
	said := bufio.NewReader(read)
	for _, want := range []string{`"serverInfo"`, `"structuredContent"`} {
		l, err := said.ReadString('\n')
		if err != nil || !strings.Contains(l, want) {
			t.Errorf("%.300s %v; want %s", l, err, want)
		}
		if !json.Valid([]byte(l)) {
			t.Errorf("no message of the protocol: %.100q", l)
		}
	}
	if rest, err := io.ReadAll(said); err != nil || len(rest) > 0 {
		t.Errorf("after the end of its input it says %q, %v", rest, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
