package cluster

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzPage holds that no answer is fatal, and that what is taken from a good one
// is what JSON has in it.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"continue":"x"},"items":[{"metadata":{"name":"a","managedFields":[1],"annotations":{"` + lastApplied + `":"x","k":"v"}},"n":[1,2.5e3,null,true]}]}`,
		`{"items":null}`, `{"items":[`, `[]`, `{"items":[{"a":"` + "\xff" + `"}]}`, `{"metadata":3,"items":[]}`, `{"items":[{}],"items":[{}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got []map[string]any
		p := page{words: map[string]string{}, item: func(m map[string]any) error { got = append(got, m); return nil }}
		err := p.read(strings.NewReader(text))
		for _, m := range got {
			if _, err := json.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}
		var want struct{ Items []map[string]any }
		if err != nil || json.Unmarshal([]byte(text), &want) != nil || strings.Count(strings.ToLower(text), `items"`) != 1 ||
			strings.ContainsFunc(text, func(r rune) bool { return r == '\\' || r > 126 }) { // other spellings of a key
			return
		}
		if len(got) != len(want.Items) {
			t.Fatalf("%d items, want %d", len(got), len(want.Items))
		}
	})
}

// FuzzGuard holds that whatever passes reads an allowed kind of the same server.
func FuzzGuard(f *testing.F) {
	server := &url.URL{Scheme: "https", Host: "api.example", Path: "/base"}
	next := &answering{}
	g := newGuard(next, server, resources)
	for _, seed := range []string{
		"/api/v1/pods?limit=1", "/api/v1/namespaces/a/secrets", "/api/v1/pods/../secrets", "//other.example/api", "/apis/apps/v1/deployments/x/scale", "/api/v1/%73ecrets", "/api/v1/pods;x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, err := http.NewRequest(http.MethodGet, "https://api.example/base"+path, nil)
		if err != nil {
			return
		}
		before := next.asked
		if resp, err := g.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
		if next.asked == before {
			return
		}
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/base/"), "/")
		if r.URL.Host != "api.example" || strings.Contains(r.URL.Path, "..") || len(parts) > 7 {
			t.Fatalf("sent %s", r.URL)
		}
		for i, p := range parts {
			kind := parts[0] == "api" && i == 2 || parts[0] == "apis" && i == 3
			if kind && p != "namespaces" && !strings.Contains("configmaps nodes pods deployments virtualservices httproutes", p) {
				t.Fatalf("sent %s", r.URL)
			}
		}
	})
}
