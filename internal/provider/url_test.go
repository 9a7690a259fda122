package provider

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustNew(t testing.TB, s Spec, d Deps) *Provider {
	t.Helper()
	if s.Name == "" {
		s.Name = "p"
	}
	p, err := New(s, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestURL: where each type's calls go.
func TestURL(t *testing.T) {
	const chat = "/chat/completions"
	dated := Spec{Type: Azure, BaseURL: "https://c.openai.azure.com", APIKey: "k", APIVersion: "2024-10-21"}
	undated := Spec{Type: Azure, BaseURL: "https://c.openai.azure.com/", APIKey: "k"}
	v1 := dated
	v1.V1, v1.APIVersion = true, "preview"
	behind := dated
	behind.BaseURL = "https://apim.example/team/openai/"
	compatible := func(base string) Spec { return Spec{Type: Compatible, BaseURL: base} }
	for _, c := range []struct {
		spec               Spec
		path, model, query string
		want               string
	}{
		{Spec{Type: OpenAI, APIKey: "k"}, chat, "gpt-5", "", "https://api.openai.com/v1/chat/completions"},
		{Spec{Type: OpenAI, APIKey: "k", BaseURL: "https://eu.api.openai.com"}, "/models", "", "limit=2", "https://eu.api.openai.com/v1/models?limit=2"},
		{compatible("http://localhost:8000"), chat, "m", "", "http://localhost:8000/v1/chat/completions"},
		{compatible("http://localhost:8000/"), chat, "m", "", "http://localhost:8000/v1/chat/completions"},
		{compatible("https://api.groq.com/openai/v1/"), chat, "m", "", "https://api.groq.com/openai/v1/chat/completions"},
		{compatible("https://models.github.ai/inference"), chat, "m", "", "https://models.github.ai/inference/chat/completions"},
		{dated, chat, "gpt-5-prod", "", "https://c.openai.azure.com/openai/deployments/gpt-5-prod/chat/completions?api-version=2024-10-21"},
		{dated, chat, "d", "api-version=2023-05-15&x=1", "https://c.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21&x=1"},
		{dated, chat, "a/b c", "", "https://c.openai.azure.com/openai/deployments/a%2Fb%20c/chat/completions?api-version=2024-10-21"},
		{dated, "/responses", "d", "", "https://c.openai.azure.com/openai/responses?api-version=2024-10-21"},
		{dated, "/models", "", "", "https://c.openai.azure.com/openai/models?api-version=2024-10-21"},
		{undated, chat, "d", "api-version=2023-05-15", "https://c.openai.azure.com/openai/v1/chat/completions"},
		{v1, chat, "d", "", "https://c.openai.azure.com/openai/v1/chat/completions?api-version=preview"},
		{behind, chat, "d", "", "https://apim.example/team/openai/deployments/d/chat/completions?api-version=2024-10-21"},
		{Spec{Type: OpenAI, APIKey: "k"}, "/files/a b", "", "api-key=s&after=f%201&KEY=s&%6bey=s&subscription-key=s&&", "https://api.openai.com/v1/files/a%20b?after=f%201"},
		{Spec{Type: OpenAI, APIKey: "k"}, "/files/a?b#c%", "", "", "https://api.openai.com/v1/files/a%3Fb%23c%25"},
	} {
		p := mustNew(t, c.spec, Deps{})
		r, err := p.Request(t.Context(), Call{Method: "POST", Path: c.path, Model: c.model, RawQuery: c.query})
		if err != nil || r.URL.String() != c.want || r.Host != r.URL.Host {
			t.Errorf("%s %s: %v %v\nwant %s", c.spec.BaseURL, c.path, r, err, c.want)
		}
	}
}

// TestPathStays: whatever a client puts in a path, the call stays below the
// API's own prefix, at the provider's host.
func TestPathStays(t *testing.T) {
	for _, c := range []struct{ path, model string }{
		{"/../admin", ""}, {"/files/../../admin", ""}, {"/./x", ""}, {"/..", ""}, {`/a\..\b`, ""}, {"", ""}, {"models", ""},
		{"/chat/completions", ".."}, {"/chat/completions", "a/../../b"},
	} {
		p := mustNew(t, Spec{Type: Azure, BaseURL: "https://c.example", APIKey: "k", APIVersion: "v"}, Deps{})
		if r, err := p.Request(t.Context(), Call{Method: "GET", Path: c.path, Model: c.model}); !errors.Is(err, ErrPath) {
			t.Errorf("%q %q: %v %v", c.path, c.model, r, err)
		}
	}
	p := mustNew(t, Spec{Type: OpenAI, APIKey: "k"}, Deps{})
	rapid.Check(t, func(t *rapid.T) {
		path := "/" + rapid.String().Draw(t, "path")
		r, err := p.Request(t.Context(), Call{Method: "GET", Path: path, RawQuery: rapid.String().Draw(t, "query")})
		if err != nil {
			return
		}
		clean, err := r.URL.Parse(r.URL.EscapedPath())
		if r.URL.Host != "api.openai.com" || !strings.HasPrefix(r.URL.EscapedPath(), "/v1/") || err != nil || !strings.HasPrefix(clean.Path, "/v1/") {
			t.Fatalf("%q went to %s", path, r.URL)
		}
	})
}

// TestSpecRefused: what cannot work is refused when the provider is made, and
// the reason holds no secret.
func TestSpecRefused(t *testing.T) {
	const secret = "sk-very-secret"
	for name, s := range map[string]Spec{
		"type":          {Type: "telepathy", APIKey: secret},
		"no key":        {Type: OpenAI},
		"blank key":     {Type: OpenAI, APIKey: " \n"},
		"azure no key":  {Type: Azure, BaseURL: "https://c.example"},
		"broken key":    {Type: OpenAI, APIKey: secret + "\nX: y"},
		"no url":        {Type: Compatible, APIKey: secret},
		"url scheme":    {Type: Compatible, BaseURL: "ftp://" + secret + "@h", APIKey: secret},
		"url user":      {Type: Compatible, BaseURL: "https://u:" + secret + "@h/v1"},
		"url query":     {Type: Compatible, BaseURL: "https://h/v1?key=" + secret},
		"url broken":    {Type: Compatible, BaseURL: "https://u:" + secret + "@h:port/%zz"},
		"entra":         {Type: OpenAI, Auth: AuthEntra, APIKey: secret},
		"auth":          {Type: OpenAI, Auth: "magic", APIKey: secret},
		"header":        {Type: Compatible, BaseURL: "http://h", Headers: map[string]string{"Host": secret}},
		"header value":  {Type: Compatible, BaseURL: "http://h", Headers: map[string]string{"X-A": secret + "\r\n"}},
		"header name":   {Type: Compatible, BaseURL: "http://h", Headers: map[string]string{"X A": secret}},
		"hop by hop":    {Type: Compatible, BaseURL: "http://h", Headers: map[string]string{"connection": "close"}},
		"no simulation": {Type: Simulated},
	} {
		s.Name = "p"
		p, err := New(s, Deps{})
		if err == nil || p != nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the reason holds the secret: %v", name, err)
		}
	}
	if _, err := New(Spec{Name: "p", Type: OpenAI}, Deps{}); !errors.Is(err, ErrNoCredential) {
		t.Error(err)
	}
}

// TestForeignRequest: a request for another host is not sent with this
// provider's connections.
func TestForeignRequest(t *testing.T) {
	p := mustNew(t, Spec{Type: OpenAI, APIKey: "k"}, Deps{RoundTripper: roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("sent")
		return nil, errForeign
	})})
	r, _ := http.NewRequest("GET", "https://elsewhere.example/v1/models", nil)
	if _, err := p.RoundTrip(ticket(t), r); !errors.Is(err, errForeign) {
		t.Error(err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
