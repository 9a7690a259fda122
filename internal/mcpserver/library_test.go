package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
)

// TestToolsAsListed: what clients and models trip over.
func TestToolsAsListed(t *testing.T) {
	r := newRig(t, &Audit{})
	n := 0
	for tool, err := range r.client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		a := tool.Annotations
		if a == nil || !a.ReadOnlyHint || !a.IdempotentHint || a.DestructiveHint == nil || *a.DestructiveHint || a.OpenWorldHint == nil || a.Title == "" || tool.Title == "" {
			t.Errorf("%s: all hints have to be said: %+v", tool.Name, a)
		}
		if len(tool.Description) < 40 || len(tool.Description) > 500 {
			t.Errorf("%s: description of %d bytes", tool.Name, len(tool.Description))
		}
		compiled(t, tool.Name+"-in", tool.InputSchema)
		for what, s := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
			m := s.(map[string]any)
			if m["type"] != "object" || m["oneOf"] != nil || m["anyOf"] != nil || m["allOf"] != nil {
				t.Errorf("%s: the %s schema is no plain object: %v", tool.Name, what, m)
			}
			strict(t, tool.Name+" "+what, m)
		}
		if props, ok := tool.OutputSchema.(map[string]any)["properties"].(map[string]any); ok && tool.Name != "search" && tool.Name != "fetch" && props["summary"] == nil {
			t.Errorf("%s: no summary in its answer", tool.Name)
		}
	}
	if n != 14 || len(r.server.Tools()) != n {
		t.Errorf("%d tools, Tools() says %d", n, len(r.server.Tools()))
	}
	c := r.client.InitializeResult().Capabilities
	if said, err := json.Marshal(c); err != nil || strings.Contains(string(said), "logging") || c.Tools == nil || c.Tools.ListChanged || c.Resources == nil || c.Prompts != nil {
		t.Errorf("capabilities: %+v", c)
	}
	if n := len(newRig(t, nil).server.Tools()); n != 8 {
		t.Errorf("without the audit there are %d tools, want 8", n)
	}
}

// strict: no null types, nothing that is not named, bounds on every argument.
func strict(t *testing.T, where string, m map[string]any) {
	t.Helper()
	if _, many := m["type"].([]any); many {
		t.Errorf("%s: several types: %v", where, m["type"])
	}
	props, _ := m["properties"].(map[string]any)
	if m["type"] == "object" && m["additionalProperties"] == nil {
		t.Errorf("%s: takes what is not named", where)
	}
	if m["type"] == "object" && m["additionalProperties"] == true {
		t.Errorf("%s: takes what is not named", where)
	}
	for name, p := range props {
		pm := p.(map[string]any)
		if strings.HasSuffix(where, " input") {
			if pm["description"] == nil {
				t.Errorf("%s.%s: no description", where, name)
			}
			if pm["type"] == "string" && pm["maxLength"] == nil || pm["type"] == "array" && pm["maxItems"] == nil || pm["type"] == "integer" && pm["maximum"] == nil {
				t.Errorf("%s.%s: no bound", where, name)
			}
		}
		strict(t, where+"."+name, pm)
	}
	if items, ok := m["items"].(map[string]any); ok {
		strict(t, where+"[]", items)
	}
}

// TestEveryRecord: each fits, all pages together are the whole, and claims keep
// their kind and source.
func TestEveryRecord(t *testing.T) {
	r := newRig(t, nil, long())
	largest := 0
	for _, rec := range r.server.library.All() {
		m := r.answer("get_incident", args{"id": rec.ID})
		data, _ := json.Marshal(m)
		largest = max(largest, len(data))
		claims := r.pages("get_incident", "claims", args{"id": rec.ID})
		if len(claims) != len(rec.Claims) {
			t.Errorf("%s: %d claims of %d", rec.ID, len(claims), len(rec.Claims))
		}
		kinds := map[string]incident.Claim{}
		for _, c := range rec.Claims {
			kinds[c.ID] = c
		}
		for _, c := range claims {
			c := c.(map[string]any)
			if want := kinds[c["id"].(string)]; c["kind"] != string(want.Kind) || c["source"] != want.Source {
				t.Errorf("%s: claim %v says %v, want %s of %s", rec.ID, c["id"], c["kind"], want.Kind, want.Source)
			}
		}
		if n := len(r.pages("get_incident", "timeline", args{"id": rec.ID})); n != len(rec.Timeline) {
			t.Errorf("%s: %d moments of %d", rec.ID, n, len(rec.Timeline))
		}
		f := r.answer("fetch", args{"id": rec.ID})
		for _, k := range []string{"id", "title", "text", "url", "metadata"} {
			if f[k] == nil {
				t.Errorf("%s: fetch has no %s", rec.ID, k)
			}
		}
		for _, c := range rec.Claims[:1] {
			if !strings.Contains(f["text"].(string), "["+string(r.ledger(rec)[0].Claim.Kind)+", ") {
				t.Errorf("%s: the text does not say the kind of %s", rec.ID, c.ID)
			}
		}
	}
	m := r.answer("get_incident", args{"id": "OWN-0001"})
	if m["next_cursor"] == nil || m["omitted"].(map[string]any)["timeline"] == nil {
		t.Errorf("the longest record is not cut: %v", m["omitted"])
	}
	if text := r.answer("fetch", args{"id": "OWN-0001"})["text"].(string); !strings.Contains(text, "lines are left out") {
		t.Error("the longest record's text does not say that it is cut")
	}
	t.Logf("the largest first page has %d bytes", largest)
}

func (r *rig) ledger(rec *incident.Record) []incident.Ranked { return rec.Ledger() }

func TestEveryWord(t *testing.T) {
	r := newRig(t, nil, long())
	words := r.server.library.Words()
	n := 0
	for _, k := range words.Kinds {
		for _, w := range k.Words {
			n++
			got := r.pages("get_topic", "incidents", args{"kind_of_word": string(k.Kind), "word": w.Slug})
			if len(got) != w.Records {
				t.Errorf("%s %s: %d incidents of %d", k.Kind, w.Slug, len(got), w.Records)
			}
			if m := r.answer("vocab", args{"word": w.Slug}); len(m["words"].([]any)) == 0 {
				t.Errorf("%s: no meaning", w.Slug)
			}
		}
		if got := r.pages("vocab", "words", args{"kind_of_word": string(k.Kind)}); len(got) != len(k.Words) {
			t.Errorf("%s: %d words of %d", k.Kind, len(got), len(k.Words))
		}
	}
	if got := r.pages("vocab", "words", nil); len(got) != n {
		t.Errorf("%d words of %d", len(got), n)
	}
	if got := r.pages("list_topics", "topics", nil); len(got) != len(r.server.library.Topics().Topics) {
		t.Errorf("%d topics", len(got))
	}
	if m := r.answer("vocab", nil); m["claim_kinds"].(map[string]any)["confirmed"] == nil {
		t.Error("the kinds of claims are not explained")
	}
}

// TestSearchesFit: any words, any limit.
func TestSearchesFit(t *testing.T) {
	r := newRig(t, nil, long())
	var vocabulary []string
	for _, rec := range r.server.library.All() {
		vocabulary = append(vocabulary, strings.Fields(rec.Title)...)
	}
	rapid.Check(t, func(rt *rapid.T) {
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 8).Draw(rt, "words"), " ")
		limit := rapid.IntRange(1, maxLimit).Draw(rt, "limit")
		m := r.answer("search_incidents", args{"query": query, "limit": limit})
		if n := len(m["incidents"].([]any)); n > limit {
			rt.Fatalf("%d incidents, asked for %d", n, limit)
		}
		for _, hit := range r.answer("search", args{"query": query})["results"].([]any) {
			if h := hit.(map[string]any); len(h) != 3 || h["id"] == "" || h["title"] == "" || h["url"] == "" {
				rt.Fatalf("a result of search is %v", h)
			}
		}
	})
	want := len(r.server.library.All())
	for _, limit := range []int{1, 7, maxLimit} {
		if got := r.pages("list_incidents", "incidents", args{"limit": limit}); len(got) != want {
			t.Errorf("limit %d: %d incidents of %d", limit, len(got), want)
		}
	}
	found := r.pages("search_incidents", "incidents", args{"query": "retry storm", "limit": 3})
	if m := r.answer("search_incidents", args{"query": "retry storm"}); len(found) != int(m["total"].(float64)) {
		t.Errorf("all pages have %d, the total is %v", len(found), m["total"])
	}
}

func TestFindsWhatIsSeen(t *testing.T) {
	r := newRig(t, nil)
	m := r.answer("search_incidents", args{"query": "429 answers become 500 and every layer retries", "causes": []string{"retry-amplification"}})
	var ids []string
	for _, i := range m["incidents"].([]any) {
		ids = append(ids, i.(map[string]any)["id"].(string))
	}
	if !slices.Contains(ids, "HT-0001") {
		t.Errorf("found %v, want HT-0001 among them", ids)
	}
	m = r.answer("search_incidents", args{"query": "HT-0002 five given calls in a row fail independently with probability", "limit": 1})
	if matched := m["incidents"].([]any)[0].(map[string]any)["matched"].(map[string]any); matched["kind"] != "illustrative" {
		t.Errorf("a claim without its kind: %v", matched)
	}
	if text := r.answer("fetch", args{"id": "HT-0002"})["text"].(string); !strings.Contains(text, "The Engineer, read in full") {
		t.Error("the connectors' text does not say how a source was read")
	}
	res := r.answer("search", args{"query": "retry storm"})["results"].([]any)
	if _, err := r.client.CallTool(t.Context(), &mcp.CallToolParams{Name: "fetch", Arguments: args{"id": res[0].(map[string]any)["id"]}}); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, &Audit{})
	long := strings.Repeat("A", 300_000)
	for _, c := range []struct {
		tool string
		a    args
		want string
	}{
		{"get_incident", args{"id": "HT-9998"}, "did you mean"},
		{"get_incident", args{"id": "nothing like it"}, "search_incidents"},
		{"get_incident", args{"id": "HT-0001", "cursor": "???"}, "none for the first page"},
		{"get_incident", args{}, "id"},
		{"get_incident", args{"id": 7}, "string"},
		{"get_incident", args{"id": "HT-0001", "other": 1}, "other"},
		{"get_incident", args{"id": long}, "maxLength"},
		{"get_topic", args{"kind_of_word": "cause", "word": "retry-amplifcation"}, "retry-amplification"},
		{"get_topic", args{"kind_of_word": "reason", "word": "oom"}, "enum"},
		{"get_topic", args{"kind_of_word": "cause", "word": "qqqqqqqqqqqq"}, "vocab"},
		{"vocab", args{"word": "timeuot"}, ""},
		{"vocab", args{"word": "oom", "kind_of_word": "domain"}, "without kind_of_word"},
		{"list_incidents", args{"causes": []string{"ooom"}}, "oom"},
		{"list_incidents", args{"since": "yesterday"}, "2026-05"},
		{"list_incidents", args{"check": "RTY-99"}, "RTY"},
		{"list_incidents", args{"cursor": "x"}, "cursor"},
		{"list_incidents", args{"limit": 26}, "26"},
		{"search_incidents", args{"query": ""}, "minLength"},
		{"search_incidents", args{"query": "  "}, "nothing to look for"},
		{"search_incidents", args{"query": "a", "cursor": "zzzz"}, "cursor"},
		{"fetch", args{"id": "doc-1"}, "there is no incident"},
		{"audit_run", args{}, "audit_manifests"},
		{"audit_access", args{}, "--cluster"},
		{"audit_manifests", args{}, "either yaml or paths"},
		{"audit_manifests", args{"yaml": "a: b", "paths": []string{"x"}}, "either yaml or paths"},
		{"audit_manifests", args{"paths": []string{"x"}}, "--root"},
		{"audit_manifests", args{"yaml": long}, "maxLength"},
		{"audit_manifests", args{"yaml": strings.Repeat("é", maxManifest/2+1)}, "262146 bytes"},
		{"audit_manifests", args{"yaml": "a: b", "checks": []string{"RTY-0O6"}}, "RTY-006"},
		{"audit_findings", args{}, "audit_run"},
		{"audit_path", args{"workload": "a"}, "audit_run"},
		{"audit_explain", args{"id": "RTY-066"}, "RTY-006"},
		{"audit_explain", args{"id": "rty"}, "RTY-001"},
		{"audit_explain", args{"id": "0123456789abcdef"}, "audit_findings"},
	} {
		if got := r.refused(c.tool, c.a); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q does not say %q", c.tool, got, c.want)
		}
	}
	if _, err := r.client.CallTool(t.Context(), &mcp.CallToolParams{Name: "kubectl"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

// TestCursorOfAnother: a cursor belongs to its question.
func TestCursorOfAnother(t *testing.T) {
	r := newRig(t, nil, long())
	next := r.answer("get_incident", args{"id": "OWN-0001"})["next_cursor"]
	if next == nil {
		t.Fatal("no cursor")
	}
	if got := r.refused("get_incident", args{"id": "HT-0001", "cursor": next}); !strings.Contains(got, "not one of this question") {
		t.Error(got)
	}
}

func TestResources(t *testing.T) {
	r := newRig(t, nil)
	n := map[string]int{}
	for res, err := range r.client.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		scheme, _, _ := strings.Cut(res.URI, "://")
		n[scheme]++
		got, err := r.client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: res.URI})
		if err != nil {
			t.Fatalf("%s: %v", res.URI, err)
		}
		if text := got.Contents[0].Text; !strings.HasPrefix(text, "# ") || len(text) > budget {
			t.Errorf("%s: %d bytes, begins with %.20q", res.URI, len(text), text)
		}
		if got.CacheScope != "private" {
			t.Errorf("%s may be kept by others: %q", res.URI, got.CacheScope)
		}
	}
	if n["incident"] != len(r.server.library.All()) || n["check"] != len(audit.Catalogue()) {
		t.Errorf("resources: %v", n)
	}
	for _, uri := range []string{"incident://ht-0001", "check://rty-006"} {
		if _, err := r.client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{"incident://HT-9999", "check://NO-1", "file:///etc/passwd"} {
		if _, err := r.client.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is there", uri)
		}
	}
}

// TestFillsEveryEntryOnce: whatever the sizes, all pages together are the lists.
func TestFillsEveryEntryOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lists := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 300), 0, 12), 1, 4).Draw(rt, "lists")
		space := rapid.IntRange(0, 500).Draw(rt, "room")
		var want, got []string
		at := place{}
		for page := 0; ; page++ {
			var sections []section
			taken := make([][]string, len(lists))
			left := 0
			for i, l := range lists {
				entries := make([]string, len(l))
				for j, n := range l {
					entries[j] = fmt.Sprintf("%d.%d%s", i, j, strings.Repeat(".", n))
					if page == 0 {
						want = append(want, entries[j])
					}
				}
				sections = append(sections, part(fmt.Sprint(i), entries, &taken[i]))
			}
			r := fill("q", space, at, sections)
			size, n := 0, 0
			for _, l := range taken {
				for _, e := range l {
					size, n = size+len(encoded(e))+1, n+1
				}
				got = append(got, l...)
			}
			if n > 1 && size > space {
				rt.Fatalf("%d bytes in a room of %d", size, space)
			}
			for _, k := range r.Omitted {
				left += k
			}
			if left != len(want)-len(got) {
				rt.Fatalf("says that %d are left out, %d are", left, len(want)-len(got))
			}
			if r.Next == "" {
				break
			}
			var err error
			if at, err = placeAt("q", r.Next); err != nil {
				rt.Fatal(err)
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestFatRecordsFit: texts that JSON writes six times as long, on full pages.
func TestFatRecordsFit(t *testing.T) {
	folder := fstest.MapFS{}
	for i := range 40 {
		id := fmt.Sprintf("FAT-%04d", i+1)
		folder[id+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "id: %s\ntitle: \"storm %s\"\nprovider: Own\nservice: Own\ndate: 2026-01-01\ndomain: ai-inference\n"+
			"tags: {causes: [oom], symptoms: [high-latency], topics: [retry-policy]}\nsummary: \"storm %s\"\n"+
			"sources: [{id: s1, title: Log, publisher: Us, access: full}]\nclaims: [{id: c1, text: Storm, kind: reported, source: s1}]\n",
			id, strings.Repeat("<", 100), strings.Repeat("<", 1100))}
	}
	r := newRig(t, nil, folder)
	for tool, a := range map[string]args{
		"search_incidents": {"query": "storm", "provider": "Own", "limit": maxLimit}, "list_incidents": {"provider": "Own", "limit": maxLimit},
	} {
		ids := map[string]bool{}
		for _, i := range r.pages(tool, "incidents", a) {
			ids[i.(map[string]any)["id"].(string)] = true
		}
		want := r.answer(tool, a)["total"].(float64)
		if len(ids) != int(want) || want < 40 {
			t.Errorf("%s: %d incidents on all pages, the total is %v", tool, len(ids), want)
		}
	}
	if m := r.answer("get_topic", args{"kind_of_word": "cause", "word": "oom"}); m["incidents"] == nil {
		t.Error("no topic")
	}
}
