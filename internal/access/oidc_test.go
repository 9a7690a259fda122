package access

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// idp is a scripted provider: it does what a test says.
type idp struct {
	*httptest.Server
	key, other *rsa.PrivateKey

	mu     sync.Mutex
	asked  map[string]int
	change func(claims map[string]any)
	header map[string]any // of the token
	signer *rsa.PrivateKey
	serve  http.HandlerFunc // instead of everything, nil for nothing
	form   url.Values       // of the last exchange
	nonce  string
	answer func(token string) string
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	p := &idp{asked: map[string]int{}}
	for _, k := range []**rsa.PrivateKey{&p.key, &p.other} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		*k = key
	}
	p.reset()
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// reset makes it behave.
func (p *idp) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.signer, p.serve, p.header = func(map[string]any) {}, p.key, nil, map[string]any{"alg": "RS256", "kid": "one", "typ": "JWT"}
	p.answer = func(token string) string {
		return `{"access_token":"at","token_type":"Bearer","expires_in":300,"id_token":"` + token + `"}`
	}
}

// count is how often each path was asked for.
func (p *idp) count() map[string]int { p.mu.Lock(); defer p.mu.Unlock(); return maps.Clone(p.asked) }

func (p *idp) set(f func()) { p.mu.Lock(); defer p.mu.Unlock(); f() }

func (p *idp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	if p.serve != nil {
		p.serve(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256","HS256","none"]}`, p.URL, p.URL+"/auth", p.URL+"/token", p.URL+"/keys")
	case "/keys":
		n := base64.RawURLEncoding.EncodeToString(p.key.N.Bytes())
		e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes())
		fmt.Fprintf(w, `{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","kid":"one","n":%q,"e":%q}]}`, n, e)
	case "/token":
		_ = r.ParseForm()
		p.form = r.PostForm
		_, _ = io.WriteString(w, p.answer(p.token()))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// token signs the claims of a sign-in.
func (p *idp) token() string {
	now := time.Now()
	claims := map[string]any{
		"iss": p.URL, "sub": "u-1", "aud": "hourthree", "exp": now.Add(5 * time.Minute).Unix(), "iat": now.Unix(), "nonce": p.nonce,
		"email": "bob@example.com", "email_verified": true, "groups": []string{"dev", "sre"}, "realm_access": map[string]any{"roles": []string{"looker"}},
	}
	p.change(claims)
	enc := base64.RawURLEncoding
	head, _ := json.Marshal(p.header)
	body, _ := json.Marshal(claims)
	text := enc.EncodeToString(head) + "." + enc.EncodeToString(body)
	if p.header["alg"] == "none" {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	sig, _ := rsa.SignPKCS1v15(rand.Reader, p.signer, crypto.SHA256, sum[:])
	return text + "." + enc.EncodeToString(sig)
}

func oidcConfig(issuer string) Config {
	c := config()
	c.OIDC = &OIDC{
		Issuer: issuer, ClientID: "hourthree", ClientSecret: "s3cret-of-the-client", RedirectURL: "https://login.example.com/oidc/callback", Scopes: []string{"email"},
		NameClaim: "email", Operate: Claim{"groups", []string{"sre"}}, View: Claim{"realm_access.roles", []string{"looker"}},
	}
	return c
}

// browser is one on its way through a sign-in.
type browser struct {
	*rig
	p       *idp
	cookies []*http.Cookie
	to      url.Values // what it brings to the provider
	from    string     // its address, which no other one has
}

// browsers is how many there were.
var browsers atomic.Int64

const loginHost = "http://login.example.com" // a proxy ends TLS

// start begins a sign-in.
func start(t *testing.T, r *rig, p *idp, next string) *browser {
	t.Helper()
	resp := r.ask(asked{url: loginHost + "/oidc/start?next=" + url.QueryEscape(next)})
	if resp.StatusCode != http.StatusFound {
		t.Fatalf("start: %d %s", resp.StatusCode, text(resp))
	}
	u, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(u.String(), p.URL+"/auth?") {
		t.Fatalf("it leads to %v", u)
	}
	p.set(func() { p.nonce = u.Query().Get("nonce") })
	n := browsers.Add(1)
	return &browser{rig: r, p: p, cookies: resp.Cookies(), to: u.Query(), from: fmt.Sprintf("198.18.%d.%d:1", n/250, n%250)}
}

// back comes back with an answer, which a test may change.
func (b *browser) back(change func(url.Values)) *http.Response {
	b.t.Helper()
	q := url.Values{"code": {"a-code"}, "state": {b.to.Get("state")}, "iss": {b.p.URL}}
	if change != nil {
		change(q)
	}
	return b.ask(asked{url: loginHost + "/oidc/callback?" + q.Encode(), cookies: b.cookies, from: b.from, header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}})
}

func sessionOf(resp *http.Response) (found []*http.Cookie) {
	for _, c := range resp.Cookies() {
		if c.Name == "__Host-hourthree" && c.Value != "" {
			found = append(found, c)
		}
	}
	return found
}

// TestOIDC: the way through a provider, and what it is asked for.
func TestOIDC(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, oidcConfig(p.URL))
	if n := p.count()["/.well-known/openid-configuration"]; n != 0 {
		t.Errorf("asked before anybody signs in, %d times", n)
	}
	if body := text(r.ask(asked{url: loginHost + "/login?next=/x"})); !strings.Contains(body, "Sign in with 127.0.0.1") || !strings.Contains(body, `href="/oidc/start?next=%2fx"`) {
		t.Errorf("the page offers no provider:\n%s", body)
	}
	b := start(t, r, p, "/outages?id=1")
	if c := b.cookies[0]; len(b.cookies) != 1 || c.Name != "__Host-hourthree-signin" || c.SameSite != http.SameSiteLaxMode || !c.HttpOnly || !c.Secure {
		t.Errorf("%+v", c)
	}
	if b.to.Get("code_challenge_method") != "S256" || b.to.Get("code_challenge") == "" || len(b.to.Get("state")) < 43 || len(b.to.Get("nonce")) < 43 || b.to.Get("scope") != "openid email" || b.to.Get("response_type") != "code" {
		t.Errorf("%v", b.to)
	}
	resp := b.back(nil)
	c := sessionOf(resp)
	if body := text(resp); resp.StatusCode != 200 || !strings.Contains(body, `content="0; url=/outages?id=1"`) || len(c) != 1 || c[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("%d %+v\n%s", resp.StatusCode, c, body)
	}
	sum := sha256.Sum256([]byte(p.form.Get("code_verifier")))
	if base64.RawURLEncoding.EncodeToString(sum[:]) != b.to.Get("code_challenge") {
		t.Error("the verifier is not that of the challenge")
	}
	if got := text(r.ask(asked{url: loginHost + "/", cookies: c})); got != "bob@example.com (operate, oidc)" {
		t.Error(got)
	}
	if n := r.said(); len(n) != 1 || n[0].What != SignedIn || n[0].Who.Name != "bob@example.com" {
		t.Errorf("%+v", n)
	}
	next := oidcConfig(p.URL)
	next.OIDC.Operate.Values = []string{"dev"}
	if err := r.g.Use(next); err != nil || r.ask(asked{url: loginHost + "/", cookies: c}).StatusCode != 401 {
		t.Error("roles are given otherwise, and the session goes on")
	}
}

// TestClaims: which claims give which role, and who is named how.
func TestClaims(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, oidcConfig(p.URL))
	for name, c := range map[string]struct {
		change func(map[string]any)
		status int
		want   string
	}{
		"both":              {func(map[string]any) {}, 200, "bob@example.com (operate, oidc)"},
		"view by an object": {func(c map[string]any) { c["groups"] = []string{"dev"} }, 200, "bob@example.com (view, oidc)"},
		"one text":          {func(c map[string]any) { c["groups"] = "sre" }, 200, "bob@example.com (operate, oidc)"},
		"a name with dots":  {func(c map[string]any) { delete(c, "groups"); c["realm_access.roles"] = "looker" }, 200, "bob@example.com (view, oidc)"},
		"none":              {func(c map[string]any) { delete(c, "groups"); delete(c, "realm_access") }, 403, "from your claim groups, nor from realm_access.roles"},
		"a part of a value": {func(c map[string]any) { c["groups"] = "sre2"; delete(c, "realm_access") }, 403, "groups"},
		"other kinds":       {func(c map[string]any) { c["groups"] = []any{1, nil, map[string]any{}}; c["realm_access"] = 7 }, 403, "groups"},
		"not verified":      {func(c map[string]any) { c["email_verified"] = false }, 400, "has not verified"},
		"no name":           {func(c map[string]any) { delete(c, "email") }, 400, "no claim email"},
		"a hostile name":    {func(c map[string]any) { c["email"] = "a\u202eb\n\x1b[31m<b>" }, 200, "ab [31m<b> (operate, oidc)"},
	} {
		p.set(func() { p.change = c.change })
		resp := start(t, r, p, "/").back(nil)
		body := text(resp)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d\n%s", name, resp.StatusCode, body)
			continue
		}
		if c.status == 200 {
			body = text(r.ask(asked{url: loginHost + "/", cookies: sessionOf(resp)}))
		}
		if !strings.Contains(body, c.want) || strings.Contains(body, "sre2") || c.status != 200 && len(sessionOf(resp)) > 0 {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// TestHostileProvider: what a token or an answer may not be.
func TestHostileProvider(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, oidcConfig(p.URL))
	claim := func(name string, value any) func() {
		return func() { p.change = func(c map[string]any) { c[name] = value } }
	}
	now := time.Now()
	for name, hostile := range map[string]func(){
		"another sign-in's nonce": claim("nonce", "another"), "no nonce": claim("nonce", nil),
		"another audience": claim("aud", "another"), "two audiences": claim("aud", []string{"hourthree", "another"}), "made for another": claim("azp", "another"),
		"another issuer": claim("iss", "https://evil.example"),
		"expired":        claim("exp", now.Add(-2*time.Minute).Unix()), "of the future": claim("iat", now.Add(5*time.Minute).Unix()), "not yet": claim("nbf", now.Add(5*time.Minute).Unix()),
		"made long ago": claim("iat", now.Add(-time.Hour).Unix()), "no time": claim("iat", nil),
		"alg none":      func() { p.header["alg"] = "none" },
		"alg HS256":     func() { p.header["alg"] = "HS256" },
		"another key":   func() { p.signer = p.other },
		"an unknown id": func() { p.header["kid"] = "two" },
		"no token":      func() { p.answer = func(string) string { return `{"access_token":"at","token_type":"Bearer"}` } },
		"no JSON":       func() { p.answer = func(string) string { return "<html>" } },
		"no end": func() {
			p.answer = func(token string) string {
				return `{"x":"` + strings.Repeat("x", 3<<20) + `","access_token":"at","id_token":"` + token + `"}`
			}
		},
	} {
		p.reset()
		p.set(hostile)
		resp := start(t, r, p, "/").back(nil)
		if body := text(resp); resp.StatusCode < 400 || len(sessionOf(resp)) > 0 || strings.Contains(body, "s3cret") {
			t.Errorf("%s: %d\n%s", name, resp.StatusCode, body)
		}
	}
	for name, change := range map[string]func(map[string]any){
		"clocks that differ": func(c map[string]any) {
			c["iat"] = now.Add(30 * time.Second).Unix()
			c["exp"] = now.Add(-30 * time.Second).Unix()
		},
		"one audience in a list": func(c map[string]any) { c["aud"] = []string{"hourthree"} },
		"two, and made for us":   func(c map[string]any) { c["aud"] = []string{"hourthree", "another"}; c["azp"] = "hourthree" },
	} {
		p.reset()
		p.set(func() { p.change = change })
		if resp := start(t, r, p, "/").back(nil); resp.StatusCode != 200 {
			t.Errorf("%s: %d\n%s", name, resp.StatusCode, text(resp))
		}
	}
	for _, n := range r.said() {
		if s := fmt.Sprintf("%+v", n); strings.Contains(s, "s3cret") || strings.Contains(s, "a-code") {
			t.Errorf("a secret is noted: %s", s)
		}
	}
}

// TestAnswersOfOthers: an answer counts once, in the browser that asked, in time.
func TestAnswersOfOthers(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, oidcConfig(p.URL))
	refused := func(name string, resp *http.Response) {
		t.Helper()
		if body := text(resp); resp.StatusCode != 400 || len(sessionOf(resp)) > 0 {
			t.Errorf("%s: %d\n%s", name, resp.StatusCode, body)
		}
	}
	b := start(t, r, p, "/")
	refused("another state", b.back(func(q url.Values) { q.Set("state", "guessed") }))
	refused("no state", b.back(func(q url.Values) { q.Del("state") }))
	if resp := b.back(nil); resp.StatusCode != 200 {
		t.Fatalf("%d", resp.StatusCode)
	}
	refused("replayed", b.back(nil))
	mine, theirs := start(t, r, p, "/"), start(t, r, p, "/")
	mine.cookies = theirs.cookies
	refused("in another browser", mine.back(nil))
	without := start(t, r, p, "/")
	without.cookies = nil
	refused("without a cookie", without.back(nil))
	made := start(t, r, p, "/")
	v := []byte(made.cookies[0].Value)
	v[len(v)-10] ^= 1
	made.cookies = []*http.Cookie{{Name: made.cookies[0].Name, Value: string(v)}}
	refused("a cookie that was changed", made.back(nil))
	refused("another provider's", start(t, r, p, "/").back(func(q url.Values) { q.Set("iss", "https://evil.example") }))
	refused("no code", start(t, r, p, "/").back(func(q url.Values) { q.Del("code") }))
	resp := start(t, r, p, "/").back(func(q url.Values) { q.Del("code"); q.Set("error", "access_denied<script>") })
	if body := text(resp); resp.StatusCode != 400 || !strings.Contains(body, "access_denied&lt;script&gt;") {
		t.Errorf("%d\n%s", resp.StatusCode, body)
	}
	before := start(t, r, p, "/")
	next := oidcConfig(p.URL)
	next.OIDC.View.Values = []string{"another"}
	if err := r.g.Use(next); err != nil {
		t.Fatal(err)
	}
	refused("configured anew", before.back(nil))
	s := newSeal()
	f := flight{State: "s", Until: time.Now().Add(flightLimit)}
	if _, err := s.open(time.Now().Add(flightLimit+time.Second), s.close(f), "s"); err == nil {
		t.Error("an answer after ten minutes counts")
	}
	if _, err := newSeal().open(time.Now(), s.close(f), "s"); err == nil {
		t.Error("a cookie of another process counts")
	}
	for i := range 2 * maxFlown {
		s.once(time.Now(), flight{State: fmt.Sprint(i), Until: time.Now().Add(flightLimit)})
	}
	if len(s.flown) > maxFlown {
		t.Errorf("%d answers are remembered", len(s.flown))
	}
}

// TestSignInsInVain: whoever comes back with nothing good is shut out, and the
// provider is not asked for each.
func TestSignInsInVain(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, oidcConfig(p.URL))
	p.set(func() { p.answer = func(string) string { return "{}" } })
	shut := 0
	for range 3 * addressBurst {
		b := start(t, r, p, "/")
		b.from = "203.0.113.9:1"
		if resp := b.back(nil); resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "" {
			shut++
		}
	}
	if n := p.count()["/token"]; n > addressBurst+5 || shut < addressBurst {
		t.Errorf("the provider is asked %d times, %d are shut out", n, shut)
	}
}

// TestProviderDown: a provider that is down or says something else keeps out nobody
// who has a key, is not asked without end, and is asked again.
func TestProviderDown(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, oidcConfig(p.URL))
	issuer := r.g.now.Load().issuer
	forget := func() {
		issuer.mu.Lock()
		defer issuer.mu.Unlock()
		issuer.at, issuer.told = time.Time{}, nil
	}
	for name, serve := range map[string]http.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"a redirect": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "https://evil.example/", http.StatusFound)
		},
		"another issuer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"https://evil.example"}`)
		},
		"no end": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q,"x":%q}`, p.URL, p.URL+"/auth", p.URL+"/token", p.URL+"/keys", strings.Repeat("x", 2<<20))
		},
		"half an address": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"`+p.URL+`","authorization_endpoint":"javascript:alert(1)"}`)
		},
		"cut off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		forget()
		before := p.count()
		p.set(func() { p.serve = serve })
		for range 5 {
			resp := r.ask(asked{url: loginHost + "/oidc/start"})
			if body := text(resp); resp.StatusCode != 502 || !strings.Contains(body, "cannot be reached") || !strings.Contains(body, `type="password"`) {
				t.Errorf("%s: %d\n%s", name, resp.StatusCode, body)
			}
		}
		const path = "/.well-known/openid-configuration"
		if n := p.count()[path] - before[path]; n != askTries {
			t.Errorf("%s: asked %d times within the pause", name, n)
		}
		if resp := r.ask(asked{url: "/metrics", key: scrapKey}); resp.StatusCode != 200 {
			t.Errorf("%s: a key does not come in: %d", name, resp.StatusCode)
		}
	}
	r.signIn("", aliceKey)
	p.reset()
	forget()
	b := start(t, r, p, "/")
	p.set(func() { p.serve = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) } })
	if resp := b.back(nil); resp.StatusCode < 400 {
		t.Errorf("down in the middle: %d", resp.StatusCode)
	}
	// An old description counts while no new one is to be had.
	issuer.mu.Lock()
	issuer.told.at = time.Now().Add(-2 * describes)
	issuer.mu.Unlock()
	start(t, r, p, "/")
}
