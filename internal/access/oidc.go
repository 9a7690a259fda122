package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Bounds of what is asked of a provider.
const (
	askLimit   = 5 * time.Second  // for one call
	askTries   = 2                // for its description
	askPause   = 5 * time.Second  // after its description could not be had
	describes  = time.Hour        // as long a description counts
	maxToldUs  = 1 << 20          // of one answer
	maxHead    = 64 << 10         // of its head
	clockSkew  = time.Minute      // between its clock and ours
	tokenAge   = 10 * time.Minute // since a token was made
	longestJWT = 64 << 10
)

// OIDC is how people sign in with an OpenID provider.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string // "" for a public client
	RedirectURL  string // of /oidc/callback at this listener
	Scopes       []string
	NameClaim    string // email where it is empty
	Operate      Claim  // who may operate
	View         Claim  // who may view
}

// issuer is a provider and what is known of it. Its description is asked for when
// somebody wants to sign in, so one that is down holds up nothing else.
type issuer struct {
	conf   OIDC
	id     string // of everything that decides who has which role
	client *http.Client

	turn chan struct{} // whoever holds it may ask; it guards what is below
	mu   sync.Mutex    // for reading beside a holder
	told *described
	err  error
	at   time.Time // of the last try
}

// described is a provider's description.
type described struct {
	provider *oidc.Provider
	style    oauth2.AuthStyle
	at       time.Time
}

// dialer connects to a provider; nil is the system's way.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// same is the issuer as it is, or a new one where the settings are not the same.
func (i *issuer) same(c OIDC, dial dialer) *issuer {
	text, _ := json.Marshal(c) // texts and lists of texts
	sum := sha256.Sum256(text)
	id := hex.EncodeToString(sum[:])
	if i != nil && i.id == id {
		return i
	}
	return &issuer{conf: c, id: id, turn: make(chan struct{}, 1), client: newClient(dial)}
}

// newClient is the connection to a provider, which is asked a few times a day. A
// redirect is not followed: what is sent is for the provider alone.
func newClient(dial dialer) *http.Client {
	t := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: askLimit,
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxHead, DialContext: dial,
	}
	if dial == nil {
		t.DialContext, t.Proxy = (&net.Dialer{Timeout: askLimit}).DialContext, http.ProxyFromEnvironment
	}
	return &http.Client{
		Transport: bounded{t}, Timeout: askLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (i *issuer) host() string {
	u, err := url.Parse(i.conf.Issuer)
	if err != nil {
		return i.conf.Issuer
	}
	return u.Host
}

// bounded cuts answers that are longer than any provider's.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxToldUs)
	}
	return resp, err
}

// describe returns the provider's description: what is known, else what it says
// now. After a failure it is not asked again for a moment.
func (i *issuer) describe(ctx context.Context) (*described, error) {
	if d, err, ok := i.known(time.Now()); ok {
		return d, err
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d, err, ok := i.known(time.Now()); ok { // another one has asked meanwhile
		return d, err
	}
	// Whoever asked may leave: others want to know too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTries*askLimit)
	defer cancel()
	var d *described
	var err error
	for range askTries {
		if d, err = i.ask(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.at, i.err = time.Now(), err
	if err == nil {
		i.told = d
	}
	if i.told != nil { // an old description is better than none
		return i.told, nil
	}
	return nil, err
}

func (i *issuer) known(now time.Time) (*described, error, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.told != nil && (now.Sub(i.told.at) < describes || i.err != nil && now.Sub(i.at) < askPause):
		return i.told, nil, true
	case i.told == nil && i.err != nil && now.Sub(i.at) < askPause:
		return nil, i.err, true
	}
	return nil, nil, false
}

// ask asks the provider to describe itself.
func (i *issuer) ask(ctx context.Context) (*described, error) {
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.conf.Issuer)
	if err != nil {
		return nil, err
	}
	var more struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Keys    string   `json:"jwks_uri"`
	}
	if err := p.Claims(&more); err != nil {
		return nil, err
	}
	at := p.Endpoint()
	for _, each := range []string{at.AuthURL, at.TokenURL, more.Keys} {
		if u, err := url.Parse(each); err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && strings.HasPrefix(i.conf.Issuer, "http://")) {
			return nil, fmt.Errorf("its description names %q, which is no https address", clip(each, 100))
		}
	}
	d := &described{provider: p, style: oauth2.AuthStyleInHeader, at: time.Now()}
	if i.conf.ClientSecret == "" || len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		d.style = oauth2.AuthStyleInParams
	}
	return d, nil
}

func (i *issuer) oauth(d *described) *oauth2.Config {
	at := d.provider.Endpoint()
	at.AuthStyle = d.style
	scopes := i.conf.Scopes
	if !slices.Contains(scopes, oidc.ScopeOpenID) {
		scopes = append([]string{oidc.ScopeOpenID}, scopes...)
	}
	return &oauth2.Config{ClientID: i.conf.ClientID, ClientSecret: i.conf.ClientSecret, RedirectURL: i.conf.RedirectURL, Endpoint: at, Scopes: scopes}
}

// person exchanges a code for a token, and reads in it who it is.
func (i *issuer) person(ctx context.Context, code string, f flight) (Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, i.client), 2*askLimit)
	defer cancel()
	d, err := i.describe(ctx)
	if err != nil {
		return Person{}, unreachable{err}
	}
	token, err := i.oauth(d).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, exchangeError(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" || len(raw) > longestJWT {
		return Person{}, errors.New("the provider's answer holds no ID token")
	}
	claims, err := i.verify(ctx, d, raw, f.Nonce)
	if err != nil {
		return Person{}, fmt.Errorf("the provider's ID token is not accepted: %w", err)
	}
	name, err := i.conf.nameOf(claims)
	if err != nil {
		return Person{}, err
	}
	role, err := i.conf.roleOf(claims)
	return Person{Name: name, Role: role, Via: viaOIDC}, err
}

// verify checks an ID token: who signed it, for whom, when, and for which sign-in.
func (i *issuer) verify(ctx context.Context, d *described, raw, nonce string) (map[string]any, error) {
	t, err := d.provider.Verifier(&oidc.Config{ClientID: i.conf.ClientID, SkipExpiryCheck: true}).Verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return nil, err
	}
	now := time.Now()
	notBefore, _ := claims["nbf"].(float64)
	azp, _ := claims["azp"].(string)
	switch {
	case t.Expiry.Add(clockSkew).Before(now):
		return nil, errors.New("it has expired")
	case t.IssuedAt.After(now.Add(clockSkew)), time.Unix(int64(notBefore), 0).After(now.Add(clockSkew)):
		return nil, errors.New("it is of the future; the clocks of the provider and of this machine differ")
	case now.Sub(t.IssuedAt) > tokenAge:
		return nil, errors.New("it was made long ago; the clocks of the provider and of this machine may differ")
	case nonce == "" || t.Nonce != nonce:
		return nil, errors.New("it belongs to another sign-in")
	case azp != "" && azp != i.conf.ClientID, azp == "" && len(t.Audience) > 1:
		return nil, errors.New("it was made for another client")
	}
	return claims, nil
}

// unreachable says that the provider cannot be asked.
type unreachable struct{ err error }

func (u unreachable) Error() string { return "the provider cannot be reached: " + u.err.Error() }

// exchangeError is a refusal of the provider without its body, which may repeat
// what it was sent.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return fmt.Errorf("the provider does not accept the sign-in: %s %s", refused.Response.Status, plainly(refused.ErrorCode))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) {
		return unreachable{err}
	}
	var out *url.Error
	if errors.As(err, &out) {
		return unreachable{err}
	}
	return errors.New("the provider's answer is not understood")
}
