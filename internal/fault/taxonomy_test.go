package fault

import (
	"encoding/json"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// taxonomy is one observed answer with what it means.
type taxonomy struct {
	ID        string            `json:"id"`
	Provider  string            `json:"provider"`
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      json.RawMessage   `json:"body"`
	SSE       []string          `json:"sse"`
	Phase     string            `json:"phase"`
	Class     string            `json:"class"`
	Scope     string            `json:"scope"`
	Again     bool              `json:"retry_same_endpoint"`
	Elsewhere bool              `json:"try_other_endpoint"`
	Breaker   bool              `json:"counts_against_breaker"`
	Wait      *float64          `json:"retry_after_s"`
}

var classOf = map[string]Class{
	"client_fix": Client, "context_length": Client, "content_filter": ContentPolicy, "auth_config": Credential, "not_found": Credential,
	"reschedule_rate": Capacity, "reschedule_quota": Capacity, "capacity": Capacity, "quota_exhausted": Account, "outage": Outage, "stream_error": Outage,
}

var scopeOf = map[string]Scope{
	"request": ScopeRequest, "deployment": ScopeTarget, "key": ScopeKey, "region": ScopeRegion, "provider": ScopeProvider,
}

// deviations are the cases where this router knows better, with the reason.
var deviations = map[string]string{
	"azure_openai_ptu-059": "told from azure_openai-061 by prose only: stays the caller's, no other target",
}

// absolute are the cases whose wait is a moment, so that the catalogue states
// no length.
var absolute = map[string]bool{"openai_chatgpt_backend-047": true, "openrouter-278": true}

// decidedByRelay are streams whose fault is in their end, not in an event.
func decidedByRelay(c taxonomy) bool {
	if len(c.SSE) == 0 {
		return c.Status == 200 && c.Phase != ""
	}
	for _, e := range c.SSE {
		if strings.Contains(e, `"error":{`) || strings.Contains(e, `"error": {`) || strings.Contains(e, "response.failed") || strings.Contains(e, "event: error") {
			return strings.Contains(e, "content_filter_results")
		}
	}
	return true
}

func load(t *testing.T) []taxonomy {
	t.Helper()
	data, err := os.ReadFile("testdata/taxonomy.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []taxonomy
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func typeAndVendor(provider string) (string, string) {
	switch provider {
	case "openai", "openai_chatgpt_backend":
		return "openai", ""
	case "azure_openai", "azure_openai_ptu", "azure_apim", "foundry_models":
		return "azure", ""
	case "nvidia_api_catalog":
		return "openai-compatible", "nim"
	}
	if strings.HasPrefix(provider, "proxy_") {
		return "openai-compatible", ""
	}
	return "openai-compatible", provider
}

// now lies before every absolute time in the cases.
var now = time.Date(2026, 9, 21, 0, 0, 0, 0, time.UTC)

func (c taxonomy) judge(t *testing.T, rewrite func(string) string) Verdict {
	t.Helper()
	kind, vendor := typeAndVendor(c.Provider)
	table, ok := TableFor(kind)
	if !ok {
		t.Fatalf("no table for %s", kind)
	}
	if c.Status == 200 {
		data := c.Body
		for _, e := range c.SSE {
			for line := range strings.SplitSeq(e, "\n") {
				if d, ok := strings.CutPrefix(line, "data: "); ok && (strings.Contains(d, "error") || strings.Contains(d, "failed")) {
					data = []byte(d)
				}
			}
		}
		return table.ClassifyEvent(vendor, []byte(rewrite(string(data))), now)
	}
	h := http.Header{}
	for k, v := range c.Headers {
		h.Set(k, v)
	}
	body := []byte(c.Body)
	var text string
	if json.Unmarshal(c.Body, &text) == nil {
		body = []byte(text)
	}
	return table.Classify(Answer{Vendor: vendor, Status: c.Status, Header: h, Body: []byte(rewrite(string(body))), Now: now})
}

func same(s string) string { return s }

func TestTaxonomy(t *testing.T) {
	cases := load(t)
	judged := 0
	for _, c := range cases {
		if decidedByRelay(c) || deviations[c.ID] != "" {
			continue
		}
		if c.Status == 200 && c.SSE == nil && !strings.Contains(string(c.Body), "error") {
			continue // found by the check of the body
		}
		judged++
		v := c.judge(t, same)
		if want := classOf[c.Class]; v.Class != want {
			t.Errorf("%s: class %v (%s), want %v", c.ID, v.Class, v.Reason, want)
			continue
		}
		if want := scopeOf[c.Scope]; v.Scope != want && c.Class != "stream_error" {
			t.Errorf("%s: scope %v, want %v", c.ID, v.Scope, want)
		}
		// Capacity is never evidence of failure here, whatever its status.
		if want := c.Breaker && v.Class == Outage; v.Breaker != want {
			t.Errorf("%s: breaker %v, want %v", c.ID, v.Breaker, want)
		}
		// What may follow an error inside a stream depends on how far it had
		// come, which the relay knows.
		if c.Phase == "" && (v.Again != c.Again || v.Elsewhere != c.Elsewhere) {
			t.Errorf("%s: again %v elsewhere %v, want %v %v", c.ID, v.Again, v.Elsewhere, c.Again, c.Elsewhere)
		}
		switch {
		case c.Wait == nil && v.HasWait && !absolute[c.ID]:
			t.Errorf("%s: wait %v, want none", c.ID, v.Wait)
		case c.Wait != nil && (!v.HasWait || math.Abs(v.Wait.Seconds()-*c.Wait) > 0.01**c.Wait):
			t.Errorf("%s: wait %v %v, want %v s", c.ID, v.HasWait, v.Wait, *c.Wait)
		}
	}
	t.Logf("%d of %d cases judged here", judged, len(cases))
	if judged < 150 {
		t.Errorf("only %d cases judged", judged)
	}
}
