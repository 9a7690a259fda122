package provider

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrPath says that a path or model name cannot be asked for: it would leave
// the API's own part of the upstream.
var ErrPath = errors.New("path not allowed")

// endpoint is where a provider's API is.
//
// A base_url that is only a host gets the usual path: /v1, or for Azure
// /openai. One with a path is used as it is, for servers that have their API
// elsewhere (https://api.groq.com/openai/v1, https://models.github.ai/inference);
// for Azure a trailing /openai or /openai/v1 is taken as already said.
type endpoint struct {
	scheme, host string
	prefix       string // decoded path before the call's own, no trailing slash
	azure        bool
	dated        string // Azure's api-version in the dated style
	version      string // api-version added to every call, "" for none
}

func newEndpoint(s Spec) (endpoint, error) {
	u, err := url.Parse(s.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return endpoint{}, fmt.Errorf("provider %s: base_url must be an http or https URL", s.Name)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return endpoint{}, fmt.Errorf("provider %s: base_url must have no user, query or fragment", s.Name)
	}
	e := endpoint{scheme: u.Scheme, host: u.Host, prefix: strings.TrimRight(u.Path, "/")}
	if s.Type != Azure {
		if e.prefix == "" {
			e.prefix = "/v1"
		}
		return e, nil
	}
	e.azure, e.version = true, s.APIVersion
	e.prefix = strings.TrimSuffix(strings.TrimSuffix(e.prefix, "/v1"), "/openai") + "/openai"
	if s.V1 || s.APIVersion == "" {
		e.prefix += "/v1"
	} else {
		e.dated = s.APIVersion
	}
	return e, nil
}

// perDeployment are the paths that Azure's dated style has below a
// deployment. Others have the model in the body or none.
var perDeployment = map[string]bool{
	"/chat/completions": true, "/completions": true, "/embeddings": true,
	"/images/generations": true, "/images/edits": true,
	"/audio/speech": true, "/audio/transcriptions": true, "/audio/translations": true,
}

// url is the address of a call. The path is decoded and comes from a client.
func (e *endpoint) url(path, model, query string) (*url.URL, error) {
	if path == "" || path[0] != '/' || leaves(path) {
		return nil, ErrPath
	}
	u := &url.URL{Scheme: e.scheme, Host: e.host, Path: e.prefix + path}
	if e.dated != "" && model != "" && perDeployment[path] {
		if leaves("/" + model) {
			return nil, ErrPath
		}
		u.Path = e.prefix + "/deployments/" + model + path
		if strings.ContainsRune(model, '/') {
			u.RawPath = (&url.URL{Path: e.prefix}).EscapedPath() + "/deployments/" + url.PathEscape(model) + path
		}
	}
	u.RawQuery = cleanQuery(query, e.version)
	return u, nil
}

// leaves reports whether a path has a segment that servers resolve upwards.
// A backslash counts as a slash: some servers read it so.
func leaves(path string) bool {
	if !strings.Contains(path, ".") {
		return false
	}
	for s := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if s == "." || s == ".." {
			return true
		}
	}
	return false
}

// notPassed are query parameters that never go upstream: credentials, and the
// version, which is the provider's to say.
var notPassed = map[string]bool{
	"api-version": true, "api-key": true, "api_key": true, "apikey": true, "key": true,
	"access_token": true, "subscription-key": true, "token": true,
}

// cleanQuery drops what must not pass and leaves the rest byte for byte.
func cleanQuery(query, version string) string {
	if query == "" && version == "" {
		return ""
	}
	var b strings.Builder
	if version != "" {
		b.WriteString("api-version=" + url.QueryEscape(version))
	}
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if pair == "" || err != nil || notPassed[strings.ToLower(name)] {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(pair)
	}
	return b.String()
}
