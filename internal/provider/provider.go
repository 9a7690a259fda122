package provider

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/hourthree/hourthree/internal/admit"
)

// ErrNoRefresh says that a provider's credential cannot be renewed.
var ErrNoRefresh = errors.New("credential cannot be refreshed")

// Deps are what a provider may be given instead of its own. All are optional
// but for a simulated provider, which needs a RoundTripper.
type Deps struct {
	// RoundTripper replaces the provider's own transport. It must not change
	// hosts, follow redirects or repeat calls.
	RoundTripper http.RoundTripper
	// TokenSource replaces Azure's default credential chain.
	TokenSource TokenSource
	// Dial replaces the network under the provider's own transport. The
	// environment's proxies are not used then.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// RootCAs replaces the system's certificate authorities.
	RootCAs *x509.CertPool
	// UserAgent is sent to the upstream in place of the client's; default "hourthree".
	UserAgent string
}

// Provider speaks to one upstream account. It is safe for concurrent use.
type Provider struct {
	spec    Spec
	at      endpoint
	fixed   http.Header // not changed after New
	tokens  *tokens     // nil with a key
	secrets []secret
	trip    http.RoundTripper
}

// New makes a provider. It fails when the Spec cannot work: unknown type, a
// base_url that is no URL, a missing credential. It makes no call.
func New(spec Spec, deps Deps) (*Provider, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	at, err := newEndpoint(spec)
	if err != nil {
		return nil, err
	}
	if deps.UserAgent == "" {
		deps.UserAgent = "hourthree"
	}
	p := &Provider{spec: spec, at: at, fixed: spec.fixedHeaders(deps.UserAgent), secrets: spec.secrets(), trip: deps.RoundTripper}
	if spec.Auth == AuthEntra {
		source := deps.TokenSource
		if source == nil {
			if source, err = azureSource(spec.EntraScope); err != nil {
				return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
			}
		}
		p.tokens = newTokens(source)
	}
	if p.trip == nil {
		if spec.Type == Simulated {
			return nil, fmt.Errorf("provider %s: a simulated provider needs a simulation", spec.Name)
		}
		p.trip = newTransport(spec, deps)
	}
	return p, nil
}

// Spec returns what the provider was made from, defaults filled in.
func (p *Provider) Spec() Spec { return p.spec }

// String names the provider, without its credential.
func (p *Provider) String() string { return p.spec.String() }

// GoString is String: %#v holds no credential either.
func (p *Provider) GoString() string { return p.spec.String() }

var (
	errForeign  = errors.New("request is not for this provider")
	errNoTicket = errors.New("no ticket from admission")
)

// RoundTrip makes the call of a request that Request built, once, with leave
// from admission: without a good ticket nothing is sent. Redirects
// are returned, not followed. Answers in gzip or deflate, which were not
// asked for, are decoded as they are read; of other codings the body and its
// Content-Encoding stay as they are. The caller closes the answer's body.
func (p *Provider) RoundTrip(ticket *admit.Ticket, out *http.Request) (*http.Response, error) {
	if !ticket.Call() {
		return nil, fmt.Errorf("provider %s: %w", p.spec.Name, errNoTicket)
	}
	if out.URL.Host != p.at.host || out.URL.Scheme != p.at.scheme {
		return nil, fmt.Errorf("provider %s: %w", p.spec.Name, errForeign)
	}
	resp, err := p.trip.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if !empty(out, resp) {
		decode(resp)
	}
	p.redactHeader(resp.Header, out.Header)
	return resp, nil
}

// empty reports an answer that has no body, whatever its headers say of one.
func empty(out *http.Request, resp *http.Response) bool {
	return out.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified ||
		resp.StatusCode >= 300 && resp.ContentLength == 0
}

// Refresh renews the credential after the upstream refused it. It returns nil
// when one more call is worth making, ErrNoRefresh with a key, and an error
// when the credential was renewed a moment ago already.
func (p *Provider) Refresh(ctx context.Context) error {
	if p.tokens == nil {
		return ErrNoRefresh
	}
	if err := p.tokens.renew(ctx); err != nil {
		return fmt.Errorf("provider %s: %w", p.spec.Name, err)
	}
	return nil
}

// Close gives up connections nobody uses. Calls in flight go on undisturbed
// and close theirs when they end; later calls still work.
func (p *Provider) Close() {
	if c, ok := p.trip.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
