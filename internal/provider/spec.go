package provider

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// The provider types this package speaks.
const (
	OpenAI     = "openai"
	Azure      = "azure"
	Compatible = "openai-compatible"
	Simulated  = "simulated"
)

// The ways a provider authenticates.
const (
	AuthKey   = "key"
	AuthEntra = "entra"
)

// Defaults of a Spec.
const (
	DefaultBaseURL        = "https://api.openai.com/v1"
	DefaultEntraScope     = "https://cognitiveservices.azure.com/.default"
	DefaultConnectTimeout = 3 * time.Second

	// simulatedBaseURL is never dialled: a simulated provider has no socket.
	simulatedBaseURL = "http://simulated.invalid/v1"
)

// ErrNoCredential says that a provider has no credential to send. Such a
// provider is not made: a client's own credential never takes the place.
var ErrNoCredential = errors.New("no credential")

// Spec is one account at an upstream. It is data: equal Specs make providers
// that behave the same.
type Spec struct {
	Name    string // the configuration's name, used in errors
	Type    string // OpenAI, Azure, Compatible or Simulated
	BaseURL string // see endpoint in url.go for how paths are joined to it

	// APIKey is secret: no printed form of a Spec holds it. Surrounding white
	// space is dropped. Compatible servers may have none.
	APIKey string `json:"-"`
	Auth   string // AuthKey (default) or AuthEntra (azure only)
	// EntraScope is the scope tokens are asked for; default DefaultEntraScope.
	EntraScope string

	// APIVersion is Azure's dated api-version. With one, calls take the form
	// /openai/deployments/{name}/…?api-version=; without one, or with V1, they
	// take the undated form /openai/v1/….
	APIVersion string
	V1         bool

	Vendor string // flavour of a compatible server, for classification
	Region string
	Domain string // failure domain

	// Headers are set on every call and win over a client's. They may not
	// name a header that belongs to the connection or to the message's length.
	Headers map[string]string

	// ConnectTimeout bounds name resolution, connect and TLS together;
	// default DefaultConnectTimeout.
	ConnectTimeout time.Duration
}

// Equal reports whether two providers made from the Specs would be the same.
func (s Spec) Equal(o Spec) bool {
	h, oh := s.Headers, o.Headers
	return maps.Equal(h, oh) && s.Name == o.Name && s.Type == o.Type && s.BaseURL == o.BaseURL &&
		s.APIKey == o.APIKey && s.Auth == o.Auth && s.EntraScope == o.EntraScope &&
		s.APIVersion == o.APIVersion && s.V1 == o.V1 && s.Vendor == o.Vendor &&
		s.Region == o.Region && s.Domain == o.Domain && s.ConnectTimeout == o.ConnectTimeout
}

// String names the provider, without credential or configured headers.
func (s Spec) String() string {
	return fmt.Sprintf("provider %s (%s, %s, region %q, domain %q)", s.Name, s.Type, hostOf(s.BaseURL), s.Region, s.Domain)
}

// GoString is String: %#v holds no credential either.
func (s Spec) GoString() string { return s.String() }

// LogValue is String, for structured logs.
func (s Spec) LogValue() slog.Value { return slog.StringValue(s.String()) }

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "?"
	}
	return u.Host
}

// complete fills in defaults and checks the Spec.
func (s Spec) complete() (Spec, error) {
	s.APIKey = strings.TrimSpace(s.APIKey)
	if s.Auth == "" {
		s.Auth = AuthKey
	}
	if s.EntraScope == "" {
		s.EntraScope = DefaultEntraScope
	}
	if s.ConnectTimeout <= 0 {
		s.ConnectTimeout = DefaultConnectTimeout
	}
	switch s.Type {
	case OpenAI:
		if s.BaseURL == "" {
			s.BaseURL = DefaultBaseURL
		}
	case Simulated:
		if s.BaseURL == "" {
			s.BaseURL = simulatedBaseURL
		}
	case Azure, Compatible:
	default:
		return s, fmt.Errorf("provider %s: unknown type %q", s.Name, s.Type)
	}
	if err := s.checkAuth(); err != nil {
		return s, err
	}
	return s, s.checkHeaders()
}

func (s Spec) checkAuth() error {
	switch {
	case s.Auth != AuthKey && s.Auth != AuthEntra:
		return fmt.Errorf("provider %s: unknown auth %q", s.Name, s.Auth)
	case s.Auth == AuthEntra && s.Type != Azure:
		return fmt.Errorf("provider %s: auth %q is for type %q", s.Name, AuthEntra, Azure)
	case !httpguts.ValidHeaderFieldValue(s.APIKey):
		return fmt.Errorf("provider %s: api_key has characters that a header cannot carry", s.Name)
	case s.APIKey == "" && s.Auth == AuthKey && (s.Type == OpenAI || s.Type == Azure):
		return fmt.Errorf("provider %s: %w", s.Name, ErrNoCredential)
	}
	return nil
}

func (s Spec) checkHeaders() error {
	for name, value := range s.Headers {
		key := http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("provider %s: headers: %q is not a valid header", s.Name, name)
		}
		if hopByHop[key] || key == "Host" || key == "Content-Length" || key == "Accept-Encoding" {
			return fmt.Errorf("provider %s: headers: %s cannot be set", s.Name, key)
		}
	}
	return nil
}
