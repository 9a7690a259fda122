package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNothingOfTheCallers is the property behind promise 11 on the way out:
// of whatever headers a client sends, only listed ones go upstream, and the
// credential is the provider's.
func TestNothingOfTheCallers(t *testing.T) {
	secrets := []string{
		"Authorization", "X-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization", "X-Goog-Api-Key", "X-Amz-Security-Token",
		"X-Ms-Token-Aad-Access-Token", "Ocp-Apim-Subscription-Key", "X-Forwarded-For", "Forwarded", "Hourthree-Deadline-Ms",
		"Openai-Organization", "Openai-Project", "Connection", "Te", "Upgrade", "Transfer-Encoding", "Expect", "Accept-Encoding",
		"User-Agent", "Host", "Content-Length", "X-Stainless-Timeout", "Baggage", "Referer", "Origin",
	}
	name := rapid.OneOf(rapid.SampledFrom(secrets), rapid.StringMatching(`[A-Z][a-z]{0,8}(-[A-Z][a-z]{0,8}){0,3}`))
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom([]Spec{
			{Name: "p", Type: OpenAI, APIKey: "own-key"}, {Name: "p", Type: Azure, BaseURL: "https://c.example", APIKey: "own-key"},
			{Name: "p", Type: Compatible, BaseURL: "http://h", APIKey: "own-key"}, {Name: "p", Type: Compatible, BaseURL: "http://h"},
		}).Draw(t, "spec")
		p, err := New(spec, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		client := http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {"i"}}
		for _, n := range rapid.SliceOf(name).Draw(t, "names") {
			client[n] = []string{"caller"}
		}
		before := client.Clone()
		r, err := p.Request(t.Context(), Call{Method: "POST", Path: "/chat/completions", Model: "m", Header: client})
		if err != nil {
			t.Fatal(err)
		}
		for key, values := range r.Header {
			if values[0] == "caller" && !passed[http.CanonicalHeaderKey(key)] {
				t.Fatalf("%s went out", key)
			}
		}
		want := map[string]string{"Authorization": "Bearer own-key"}
		switch {
		case spec.Type == Azure:
			want = map[string]string{"Api-Key": "own-key"}
		case spec.APIKey == "":
			want = nil
		}
		for _, key := range []string{"Authorization", "Api-Key", "X-Api-Key"} {
			if r.Header.Get(key) != want[key] {
				t.Fatalf("%s: %q", key, r.Header.Get(key))
			}
		}
		if r.Header.Get("Accept-Encoding") != "identity" || !strings.HasPrefix(r.Header.Get("User-Agent"), "hourthree") || !reflect.DeepEqual(before, client) {
			t.Fatal(r.Header, client)
		}
	})
}

// TestConfiguredHeaders: what the configuration sets wins over the client's,
// and the key wins over both.
func TestConfiguredHeaders(t *testing.T) {
	p := mustNew(t, Spec{Type: OpenAI, APIKey: "k", Headers: map[string]string{
		"openai-organization": "org-1", "X-Title": "ours", "authorization": "Bearer other",
	}}, Deps{UserAgent: "hourthree/1.2"})
	r, err := p.Request(t.Context(), Call{Method: "POST", Path: "/x", Header: http.Header{
		"X-Title": {"theirs"}, "Openai-Organization": {"org-2"}, "X-Request-Id": {"r1"}, "Openai-Beta": {"b"}, "X-Stainless-Retry-Count": {"2"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Openai-Organization": {"org-1"}, "X-Title": {"ours"}, "Authorization": {"Bearer k"}, "User-Agent": {"hourthree/1.2"},
		"Accept-Encoding": {"identity"}, "X-Request-Id": {"r1"}, "Openai-Beta": {"b"}, "X-Stainless-Retry-Count": {"2"},
	}
	if !reflect.DeepEqual(r.Header, want) {
		t.Error(r.Header)
	}
}

// TestSecretsUnprinted: no usual way of printing a Spec or Provider shows the key.
func TestSecretsUnprinted(t *testing.T) {
	s := Spec{Name: "p", Type: OpenAI, APIKey: "sk-secret", Headers: map[string]string{"X-Key": "sk-secret"}}
	p := mustNew(t, s, Deps{})
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "spec", s)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "spec", s, "provider", p)
	s.Headers = nil
	asJSON, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		fmt.Sprint(p.Spec()), fmt.Sprintf("%+v %#v", p.Spec(), p.Spec()), fmt.Sprintf("%v %+v %#v", p, p, p), log.String(), string(asJSON),
	} {
		if strings.Contains(out, "sk-secret") {
			t.Error(out)
		}
	}
}

func TestSpecEqual(t *testing.T) {
	full := Spec{"n", "t", "b", "k", "a", "e", "v", true, "V", "r", "d", map[string]string{"a": "b"}, 1}
	if !full.Equal(full) || full.Equal(Spec{}) {
		t.Error("a Spec equals itself and no other")
	}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		other := full
		reflect.ValueOf(&other).Elem().Field(i).SetZero()
		if full.Equal(other) {
			t.Errorf("%s does not count", v.Type().Field(i).Name)
		}
	}
}

// TestCopyResponseHeaders: what an answer's headers become for the client.
func TestCopyResponseHeaders(t *testing.T) {
	src := http.Header{
		"Content-Type": {"application/json"}, "Content-Encoding": {"br"}, "Openai-Processing-Ms": {"12"}, "X-Ms-Region": {"Sweden Central"},
		"X-Request-Id": {"up"}, "Apim-Request-Id": {"a"}, "Content-Disposition": {"attachment"}, "X-Multi": {"1", "2"},
		"Connection": {"keep-alive, X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"5"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"x"},
		"Content-Length": {"5"}, "Set-Cookie": {"__cf_bm=1"}, "X-Should-Retry": {"true"}, "Retry-After": {"0"}, "Retry-After-Ms": {"1"},
		"X-Ratelimit-Remaining-Requests": {"1"}, "Hourthree-Target": {"forged"}, "Cf-Ray": {"1"}, "Server": {"x"}, "Location": {"https://inside"},
		"Openai-Organization": {"org"}, "Access-Control-Allow-Origin": {"*"}, "Strict-Transport-Security": {"x"}, "Empty": nil,
	}
	dst := http.Header{"X-Request-Id": {"ours"}}
	CopyResponseHeaders(dst, src)
	want := http.Header{
		"Content-Type": {"application/json"}, "Content-Encoding": {"br"}, "Openai-Processing-Ms": {"12"}, "X-Ms-Region": {"Sweden Central"},
		"X-Request-Id": {"ours"}, "X-Upstream-Request-Id": {"up"}, "Apim-Request-Id": {"a"}, "Content-Disposition": {"attachment"}, "X-Multi": {"1", "2"},
	}
	if !reflect.DeepEqual(dst, want) {
		t.Error(dst)
	}
	dst.Add("X-Multi", "3")
	if len(src["X-Multi"]) != 2 || cap(dst["X-Multi"]) == 0 || src.Get("Retry-After") != "0" {
		t.Error("the source was changed")
	}
}
