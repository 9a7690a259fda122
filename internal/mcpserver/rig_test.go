package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
)

// rig is a server and a client of it, in one process.
type rig struct {
	*testing.T
	server *Server
	client *mcp.ClientSession
	log    bytes.Buffer
	out    map[string]*jsonschema.Schema // of each tool's output
}

func newRig(t *testing.T, a *Audit, folders ...fs.FS) *rig {
	t.Helper()
	r := &rig{T: t, out: map[string]*jsonschema.Schema{}}
	l, err := incident.Open(folders...)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := library.New(l)
	if err != nil {
		t.Fatal(err)
	}
	r.server, err = New(Options{Library: shown, Audit: a, Version: "test", Log: slog.New(slog.NewTextHandler(&r.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := r.server.mcp.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	r.client, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.client.Close() })
	for tool, err := range r.client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		r.out[tool.Name] = compiled(t, tool.Name, tool.OutputSchema)
	}
	return r
}

func compiled(t *testing.T, name string, schema any) *jsonschema.Schema {
	t.Helper()
	text, _ := json.Marshal(schema)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name + ".json")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

type args = map[string]any

// answer is a result's structured content, held to the tool's own schema and to
// the budget.
func (r *rig) answer(tool string, a args) map[string]any {
	r.Helper()
	text := r.text(tool, a)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		r.Fatal(err)
	}
	if err := r.out[tool].Validate(v); err != nil {
		r.Fatalf("%s %v: the answer is not what its schema says: %v", tool, a, err)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		r.Fatal(err)
	}
	return m
}

// text is the structured content as it was sent.
func (r *rig) text(tool string, a args) string {
	r.Helper()
	res, err := r.client.CallTool(r.Context(), &mcp.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		r.Fatalf("%s: %v", tool, err)
	}
	if res.IsError {
		r.Fatalf("%s %v: %s", tool, a, content(res))
	}
	data, err := json.Marshal(res.StructuredContent)
	if err != nil {
		r.Fatal(err)
	}
	// Four bytes a token is the usual estimate.
	if len(data)/4 > 8000 {
		r.Fatalf("%s %v: the answer has %d bytes, more than 8000 tokens", tool, a, len(data))
	}
	if content(res) == "" || !json.Valid([]byte(content(res))) {
		r.Fatalf("%s: the text is not the same as JSON", tool)
	}
	return string(data)
}

// refused is the text of an error.
func (r *rig) refused(tool string, a args) string {
	r.Helper()
	res, err := r.client.CallTool(r.Context(), &mcp.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		r.Fatalf("%s %v: %v; want a result that is an error", tool, a, err)
	}
	if !res.IsError {
		r.Fatalf("%s %v: is no error: %s", tool, a, content(res))
	}
	if n := len([]rune(content(res))); n > longText {
		r.Fatalf("%s: the error has %d characters", tool, n)
	}
	return content(res)
}

func content(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// pages gathers a list of all pages.
func (r *rig) pages(tool, list string, a args) []any {
	r.Helper()
	var all []any
	q := args{}
	for k, v := range a {
		q[k] = v
	}
	for page := 0; ; page++ {
		if page > 500 {
			r.Fatalf("%s %v: the pages do not end", tool, a)
		}
		m := r.answer(tool, q)
		entries := m[list].([]any)
		all = append(all, entries...)
		next, _ := m["next_cursor"].(string)
		if next == "" {
			return all
		}
		q["cursor"] = next
	}
}

// long is a record of a user's own that is as long as one may be.
func long() fs.FS {
	var b strings.Builder
	b.WriteString("id: OWN-0001\ntitle: A long one\nprovider: Own\nservice: Own\ndate: 2026-01-01\ndomain: ai-inference\n" +
		"tags: {causes: [oom], symptoms: [high-latency], topics: [retry-policy]}\nsummary: Long.\n" +
		"sources:\n  - {id: s1, title: Log, publisher: Us, access: full}\nclaims:\n")
	for i := 1; b.Len() < 50_000; i++ {
		fmt.Fprintf(&b, "  - {id: c%d, text: \"claim %d %s\", kind: reported, source: s1}\n", i, i, strings.Repeat("x<", 100))
	}
	b.WriteString("timeline:\n")
	for i := 0; b.Len() < 62_000; i++ {
		fmt.Fprintf(&b, "  - {at: 2026-01-01T%02d:%02dZ, what: \"moment %d %s\"}\n", i/60, i%60, i, strings.Repeat("y", 100))
	}
	return fstest.MapFS{"OWN-0001.yaml": {Data: []byte(b.String())}}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
