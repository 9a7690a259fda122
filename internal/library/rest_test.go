package library

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hourthree/hourthree/internal/incident"
)

func open() (*Library, error) {
	l, err := incident.Open()
	if err != nil {
		return nil, err
	}
	return New(l)
}

// shared is one handler for all tests: an index takes time to build.
var shared = Handler(Embedded, Options{})

type call struct {
	method string
	header map[string]string
}

func get(t *testing.T, h http.Handler, path string, c ...call) *httptest.ResponseRecorder {
	t.Helper()
	c = append(c, call{method: http.MethodGet})
	if c[0].method == "" {
		c[0].method = http.MethodGet
	}
	r := httptest.NewRequest(c[0].method, "http://127.0.0.1:8081"+path, nil)
	for k, v := range c[0].header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// document is the served OpenAPI document, with a compiler of its schemas.
func document(t *testing.T) (map[string]any, *jsonschema.Compiler) {
	t.Helper()
	w := get(t, shared, "/api/incidents/openapi.json")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%d: %v", w.Code, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("http://x/openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any), c
}

// schemaOf is the schema of an answer, after the references of the document.
func schemaOf(t *testing.T, doc map[string]any, path string, status int) string {
	t.Helper()
	op := doc["paths"].(map[string]any)[path].(map[string]any)["get"].(map[string]any)
	responses := op["responses"].(map[string]any)
	r, ok := responses[fmt.Sprint(status)].(map[string]any)
	if !ok {
		r = responses["default"].(map[string]any)
	}
	if ref, ok := r["$ref"].(string); ok {
		r = doc["components"].(map[string]any)["responses"].(map[string]any)[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	return r["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)["$ref"].(string)
}

// Every path that is served is described, with the parameters that it takes,
// and the other way round.
func TestDocumentIsTheInterface(t *testing.T) {
	doc, _ := document(t)
	paths := doc["paths"].(map[string]any)
	for _, e := range endpoints() {
		item, ok := paths[e.path].(map[string]any)
		if !ok {
			t.Errorf("%s is not described", e.path)
			continue
		}
		var said []string
		list, _ := item["get"].(map[string]any)["parameters"].([]any)
		for _, p := range list {
			ref := p.(map[string]any)["$ref"].(string)
			def := doc["components"].(map[string]any)["parameters"].(map[string]any)[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
			if def["in"] == "query" {
				said = append(said, def["name"].(string))
			} else if !strings.Contains(e.path, "{"+def["name"].(string)+"}") {
				t.Errorf("%s has no %s", e.path, def["name"])
			}
		}
		known := slices.Clone(e.params)
		slices.Sort(said)
		slices.Sort(known)
		if !slices.Equal(said, known) {
			t.Errorf("%s: described %v, known %v", e.path, said, known)
		}
		delete(paths, e.path)
	}
	for path := range paths {
		t.Errorf("%s is described and not served", path)
	}
}

// Every answer is what the document says.
func TestAnswersMatchTheirSchemas(t *testing.T) {
	doc, c := document(t)
	type request struct {
		route, path string
		status      int
	}
	requests := []request{
		{"/api/incidents", "/api/incidents?limit=100", 200},
		{"/api/incidents", "/api/incidents?cause=oom&cause=dns&since=2020&provider=aws&limit=2", 200},
		{"/api/incidents", "/api/incidents?provider=nobody", 200},
		{"/api/incidents", "/api/incidents?coarse=oom", 400},
		{"/api/incidents", "/api/incidents?limit=0", 400},
		{"/api/incidents", "/api/incidents?limit=x", 400},
		{"/api/incidents", "/api/incidents?cursor=x", 400},
		{"/api/incidents", "/api/incidents?cause=oomm", 400},
		{"/api/incidents", "/api/incidents?since=x", 400},
		{"/api/incidents", "/api/incidents?since=2020&since=2021", 400},
		{"/api/incidents", "/api/incidents?%zz", 400},
		{"/api/incidents", "/api/incidents?a;b", 400},
		{"/api/incidents/search", "/api/incidents/search?q=retry+storm&limit=100", 200},
		{"/api/incidents/search", "/api/incidents/search?q=zzzzqqqq", 200},
		{"/api/incidents/search", "/api/incidents/search", 400},
		{"/api/incidents/search", "/api/incidents/search?q=" + strings.Repeat("a", 501), 400},
		{"/api/incidents/{id}", "/api/incidents/HT-9999", 404},
		{"/api/incidents/{id}", "/api/incidents/HT-0001?x=1", 400},
		{"/api/incidents/{id}", "/api/incidents/ht-0001", 200},
		{"/api/incidents/topics", "/api/incidents/topics", 200},
		{"/api/incidents/topics/{kind}/{slug}", "/api/incidents/topics/cause/oomm", 404},
		{"/api/incidents/topics/{kind}/{slug}", "/api/incidents/topics/causes/oom", 404},
		{"/api/incidents/vocab", "/api/incidents/vocab", 200},
		{"/api/incidents/vocab/{word}", "/api/incidents/vocab/OOMKilled", 200},
		{"/api/incidents/vocab/{word}", "/api/incidents/vocab/oomkiled", 404},
		{"/api/incidents/stats", "/api/incidents/stats", 200},
		{"/api/incidents/openapi.json", "/api/incidents/openapi.json", 200},
	}
	l, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range l.All() {
		requests = append(requests, request{"/api/incidents/{id}", "/api/incidents/" + r.ID, 200})
	}
	for _, k := range l.Words().Kinds {
		for _, w := range k.Words {
			requests = append(requests, request{"/api/incidents/topics/{kind}/{slug}", "/api/incidents/topics/" + string(k.Kind) + "/" + w.Slug, 200})
		}
	}
	for _, q := range requests {
		w := get(t, shared, q.path)
		if w.Code != q.status || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s, want %d", q.path, w.Code, w.Header().Get("Content-Type"), q.status)
			continue
		}
		schema, err := c.Compile("http://x/openapi.json" + schemaOf(t, doc, q.route, q.status))
		if err != nil {
			t.Fatal(err)
		}
		body, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
		if err != nil {
			t.Errorf("%s: %v", q.path, err)
			continue
		}
		if err := schema.Validate(body); err != nil {
			t.Errorf("%s: %v", q.path, err)
		}
	}
}

func problem(t *testing.T, w *httptest.ResponseRecorder) Problem {
	t.Helper()
	var p Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return p
}

func TestProblems(t *testing.T) {
	for path, want := range map[string]Problem{
		"/api/incidents/topics/cause/retry-amplificatoin": {"unknown_word", "retry-amplificatoin", []string{"retry-amplification"}},
		"/api/incidents/topics/causes/oom":                {"unknown_word", "causes", []string{"cause"}},
		"/api/incidents/HT-00001":                         {"unknown_incident", "HT-00001", []string{"HT-0001"}},
		"/api/incidents/vocab/oom-kiled":                  {"unknown_word", "oom-kiled", []string{"oom-killed"}},
		"/api/incidents?caus=oom":                         {"bad_parameter", `unknown parameter "caus"; known are limit, cursor, cause`, []string{"cause"}},
		"/api/incidents/stats?verbose=1":                  {"bad_parameter", `unknown parameter "verbose": this path takes none`, nil},
		"/api/incidents/nothing/here":                     {"not_found", "openapi.json lists the paths", nil},
		"/api/incidents/":                                 {"not_found", "openapi.json lists the paths", nil},
	} {
		w := get(t, shared, path)
		p := problem(t, w)
		near := len(want.Near) == 0 || slices.Contains(p.Near, want.Near[0])
		if p.Code != want.Code || !strings.Contains(p.Message, want.Message) || !near {
			t.Errorf("%s: %d %+v", path, w.Code, p)
		}
	}
}

func TestPaging(t *testing.T) {
	for _, path := range []string{"/api/incidents?limit=7", "/api/incidents/search?q=outage&limit=7"} {
		seen := map[string]bool{}
		total := 0
		for next := ""; ; {
			var page struct {
				Incidents []struct{ ID string }
				Total     int
				Next      string
			}
			w := get(t, shared, path+next)
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
				t.Fatalf("%s: %d %s", path+next, w.Code, w.Body)
			}
			for _, i := range page.Incidents {
				if seen[i.ID] {
					t.Errorf("%s is on two pages", i.ID)
				}
				seen[i.ID] = true
			}
			if total = page.Total; page.Next == "" {
				break
			}
			next = "&cursor=" + page.Next
		}
		if len(seen) != total || total == 0 {
			t.Errorf("%s: %d of %d on all pages", path, len(seen), total)
		}
	}
}

var strongTag = regexp.MustCompile(`^"[0-9a-f]{32}"$`)

func TestConditionalRequests(t *testing.T) {
	first := get(t, shared, "/api/incidents/HT-0001")
	tag := first.Header().Get("ETag")
	if !strongTag.MatchString(tag) || first.Header().Get("Cache-Control") != "private, no-cache" {
		t.Errorf("headers %v", first.Header())
	}
	for _, value := range []string{tag, `"x", ` + tag, "W/" + tag, "*"} {
		w := get(t, shared, "/api/incidents/HT-0001", call{header: map[string]string{"If-None-Match": value}})
		if w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d", value, w.Code)
		}
	}
	if w := get(t, shared, "/api/incidents/HT-0002", call{header: map[string]string{"If-None-Match": tag}}); w.Code != 200 || w.Header().Get("ETag") == tag {
		t.Errorf("another record: %d", w.Code)
	}
	if w := get(t, shared, "/api/incidents/HT-9999", call{header: map[string]string{"If-None-Match": "*"}}); w.Code != 404 || w.Header().Get("ETag") != "" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a problem: %d %v", w.Code, w.Header())
	}
	head := get(t, shared, "/api/incidents/HT-0001", call{method: http.MethodHead})
	if head.Code != 200 || head.Body.Len() > 0 || head.Header().Get("ETag") != tag || head.Header().Get("Content-Length") != first.Header().Get("Content-Length") {
		t.Errorf("HEAD: %d %v", head.Code, head.Header())
	}
}

func TestMethodsAndHeaders(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		w := get(t, shared, "/api/incidents", call{method: method})
		if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" || problem(t, w).Code != "method_not_allowed" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
	w := get(t, shared, "/api/incidents", call{header: map[string]string{"Origin": "https://a.example"}})
	for name, want := range map[string]string{"Access-Control-Allow-Origin": "", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
}

func TestOrigins(t *testing.T) {
	h := Handler(Embedded, Options{Origins: []string{"https://a.example"}})
	for origin, want := range map[string]string{"https://a.example": "https://a.example", "https://b.example": "", "https://a.example.evil": "", "": ""} {
		w := get(t, h, "/api/incidents/stats", call{header: map[string]string{"Origin": origin}})
		if w.Header().Get("Access-Control-Allow-Origin") != want || w.Header().Get("Vary") != "Origin" {
			t.Errorf("%q: %v", origin, w.Header())
		}
	}
	if w := get(t, h, "/api/incidents", call{method: "OPTIONS", header: map[string]string{"Origin": "https://a.example"}}); w.Code != 204 || w.Header().Get("Access-Control-Allow-Methods") != "GET, HEAD" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
}

// A library that cannot be read is the operator's trouble: told to them, not to
// the caller.
func TestUnreadable(t *testing.T) {
	var told error
	h := Handler(func() (*Library, error) { return nil, fmt.Errorf("secret path") }, Options{Failed: func(err error) { told = err }})
	w := get(t, h, "/api/incidents")
	if p := problem(t, w); w.Code != 500 || p.Code != "internal" || strings.Contains(p.Message, "secret") || told == nil {
		t.Errorf("%d %+v, told %v", w.Code, p, told)
	}
}
