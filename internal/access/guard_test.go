package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"pgregory.net/rapid"
)

// TestKeys: who may ask for what, with which key.
func TestKeys(t *testing.T) {
	r := newRig(t, config())
	for _, c := range []struct {
		method, path, key string
		want              int
	}{
		{"GET", "/healthz", "", 200}, {"GET", "/readyz", "", 200}, {"GET", "/livez", "", 200}, {"GET", "/healthz/../metrics", "", 401},
		{"GET", "/metrics", "", 401}, {"GET", "/", "", 401}, {"GET", "/incidents", "", 401}, {"POST", "/mcp", "", 401}, {"GET", "/api/v1/whoami", "", 401},
		{"GET", "/metrics", scrapKey, 200}, {"HEAD", "/api/v1/state", scrapKey, 200}, {"POST", "/mcp", scrapKey, 200}, {"GET", "/incidents", scrapKey, 200},
		{"POST", "/api/v1/changes", scrapKey, 403}, {"PUT", "/api/v1/workloads/a/quarantine", scrapKey, 403}, {"DELETE", "/api/v1/workloads/a/quarantine", scrapKey, 403},
		{"PATCH", "/x", scrapKey, 403}, {"BREW", "/x", scrapKey, 403}, {"POST", "/mcp/x", scrapKey, 403}, {"POST", "/healthz", scrapKey, 200},
		{"PUT", "/api/v1/workloads/a/quarantine", aliceKey, 200}, {"GET", "/metrics", aliceKey, 200},
		{"GET", "/metrics", "a-key-of-a-workload", 401}, {"GET", "/metrics", Digest(scrapKey), 401}, {"GET", "/metrics", " ", 401},
	} {
		resp := r.ask(asked{method: c.method, url: c.path, key: c.key})
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with %q: %d, want %d", c.method, c.path, c.key, resp.StatusCode, c.want)
		}
		if c.want == 401 && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), `Bearer realm="hourthree"`) {
			t.Errorf("%s %s: WWW-Authenticate is %q", c.method, c.path, resp.Header.Get("WWW-Authenticate"))
		}
	}
	if got := text(r.ask(asked{url: "/api/v1/whoami", key: scrapKey})); got != "prometheus (view, key)" {
		t.Error(got)
	}
	if got := text(r.ask(asked{method: "POST", url: "/api/v1/changes", key: scrapKey})); !strings.Contains(got, "needs the role operate") || !strings.Contains(got, "prometheus has the role view") {
		t.Error(got)
	}
	for _, scheme := range []string{"Basic YTpi", "bearer " + "nothing-at-all-known", aliceKey} {
		if resp := r.ask(asked{url: "/", header: map[string]string{"Authorization": scheme}}); resp.StatusCode != 401 {
			t.Errorf("%q: %d", scheme, resp.StatusCode)
		}
	}
	if resp := r.ask(asked{url: "/", header: map[string]string{"Authorization": "bEaReR " + aliceKey}}); resp.StatusCode != 200 {
		t.Errorf("the scheme in other letters: %d", resp.StatusCode)
	}
}

// TestNobodyConfigured: on this machine and nowhere else, as without access.
func TestNobodyConfigured(t *testing.T) {
	r := newRig(t, Config{Listen: "127.0.0.1:8081", Hosts: nil})
	if got := text(r.ask(asked{method: "POST", url: "/api/v1/changes"})); got != "operator (operate, loopback)" {
		t.Error(got)
	}
	for _, path := range []string{"/", "/healthz", "/login"} {
		if resp := r.ask(asked{url: "http://evil.example" + path}); resp.StatusCode != 403 {
			t.Errorf("%s of another name: %d", path, resp.StatusCode)
		}
	}
	if resp := r.ask(asked{url: "/login?next=/api/v1/state"}); resp.StatusCode != 303 || resp.Header.Get("Location") != "/api/v1/state" {
		t.Errorf("login: %d", resp.StatusCode)
	}
}

// TestNames: under which names it is asked for.
func TestNames(t *testing.T) {
	r := newRig(t, config())
	ask := func(host string, own net.Addr) int {
		q := httptest.NewRequest("GET", "/metrics", nil)
		q.Host = host
		q.Header.Set("Authorization", "Bearer "+scrapKey)
		if own != nil {
			q = q.WithContext(context.WithValue(q.Context(), http.LocalAddrContextKey, own))
		}
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		return w.Code
	}
	pod := &net.TCPAddr{IP: net.ParseIP("10.1.2.3"), Port: 8081}
	for host, want := range map[string]int{
		"127.0.0.1:8081": 200, "localhost": 200, "[::1]:8081": 200, "ops.example.com": 200, "OPS.example.com:8081": 200, "safe.example.com": 200,
		"10.1.2.3:8081": 200, "10.1.2.4:8081": 403, "evil.example": 403, "ops.example.com.evil.example": 403, "": 403, "x.ops.example.com": 403,
	} {
		if got := ask(host, pod); got != want {
			t.Errorf("%q: %d, want %d", host, got, want)
		}
	}
	if got := ask("10.1.2.3:8081", nil); got != 403 {
		t.Errorf("an address that is not known to be its own: %d", got)
	}
	if r.count(reasonHost) == 0 {
		t.Error("not counted")
	}
	if resp := r.ask(asked{url: "http://evil.example/healthz"}); resp.StatusCode != 200 {
		t.Errorf("a balancer's probe: %d", resp.StatusCode)
	}
}

// TestSession: a cookie in place of a key, what it is like and how it ends.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, config())
		c := r.signIn("", aliceKey)
		if len(c) != 1 || c[0].Name != "hourthree" || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Secure || c[0].Path != "/" || c[0].Domain != "" || len(c[0].Value) < 43 {
			t.Errorf("cookie %+v", c)
		}
		if got := text(r.ask(asked{url: "/", cookies: c})); got != "alice (operate, session)" {
			t.Error(got)
		}
		other := r.signIn("", aliceKey, c...) // it is another one then
		if other[0].Value == c[0].Value || r.ask(asked{url: "/", cookies: c}).StatusCode != 401 {
			t.Error("signing in does not end the session that was there")
		}
		safe := r.signIn("https://ops.example.com", aliceKey)
		if safe[0].Name != "__Host-hourthree" || !safe[0].Secure {
			t.Errorf("over TLS: %+v", safe)
		}
		if proxied := r.signIn("http://safe.example.com", aliceKey); proxied[0].Name != "__Host-hourthree" || !proxied[0].Secure {
			t.Errorf("behind a proxy that ends TLS: %+v", proxied)
		}
		tossed := &http.Cookie{Name: "hourthree", Value: safe[0].Value}
		if got := r.ask(asked{url: "https://ops.example.com/", cookies: []*http.Cookie{tossed}}).StatusCode; got != 401 {
			t.Errorf("a cookie that a neighbour can set: %d", got)
		}
		if h := r.ask(asked{url: "https://ops.example.com/", cookies: safe}).Header.Get("Strict-Transport-Security"); h == "" {
			t.Error("no HSTS over TLS")
		}
		for _, at := range []string{"http://ops.example.com/", "https://localhost:8081/"} {
			if h := r.ask(asked{url: at}).Header.Get("Strict-Transport-Security"); h != "" {
				t.Errorf("HSTS at %s", at)
			}
		}
		time.Sleep(59 * time.Minute)
		if got := r.ask(asked{url: "/", cookies: other}).StatusCode; got != 200 {
			t.Errorf("after 59 idle minutes: %d", got)
		}
		time.Sleep(time.Hour)
		if got := r.ask(asked{url: "/", cookies: other}).StatusCode; got != 401 {
			t.Errorf("after an idle hour: %d", got)
		}
		busy := r.signIn("", aliceKey)
		for range 23 {
			time.Sleep(30 * time.Minute)
			if got := r.ask(asked{url: "/", cookies: busy}).StatusCode; got != 200 {
				t.Fatalf("in use: %d", got)
			}
		}
		time.Sleep(30 * time.Minute)
		if got := r.ask(asked{url: "/", cookies: busy}).StatusCode; got != 401 {
			t.Errorf("after 12 hours in use: %d", got)
		}
	})
}

// TestSignOut: a session ends for good, and a link does not end it.
func TestSignOut(t *testing.T) {
	r := newRig(t, config())
	c := r.signIn("", aliceKey)
	if resp := r.ask(asked{url: "/logout", cookies: c}); resp.StatusCode != 200 || r.ask(asked{url: "/", cookies: c}).StatusCode != 200 {
		t.Error("a link signs out")
	}
	resp := r.ask(asked{method: "POST", url: "/logout", cookies: c, header: fromOwnPage, form: url.Values{}})
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/login" || len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %+v", resp.StatusCode, resp.Cookies())
	}
	if got := r.ask(asked{url: "/", cookies: c}).StatusCode; got != 401 {
		t.Errorf("after signing out: %d", got)
	}
	notes := r.said()
	if len(notes) != 2 || notes[0].What != SignedIn || notes[0].Who.Name != "alice" || notes[0].From != "192.0.2.1" || notes[1].What != SignedOut {
		t.Errorf("%+v", notes)
	}
}

// TestReloadEndsSessions: of who is not configured any more, or may do something else.
func TestReloadEndsSessions(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"key gone":     func(c *Config) { c.Keys = c.Keys[1:] },
		"key changed":  func(c *Config) { c.Keys[0].Key = "another-key-of-alice" },
		"role changed": func(c *Config) { c.Keys[0].Role = View },
		"name changed": func(c *Config) { c.Keys[0].Name = "bob" },
	} {
		r := newRig(t, config())
		c := r.signIn("", aliceKey)
		same := config()
		same.Hosts = nil
		if err := r.g.Use(same); err != nil || r.ask(asked{url: "/", cookies: c}).StatusCode != 200 {
			t.Errorf("%s: a session ends for nothing, %v", name, err)
		}
		next := config()
		change(&next)
		if err := r.g.Use(next); err != nil {
			t.Fatal(err)
		}
		if got := r.ask(asked{url: "/", cookies: c}).StatusCode; got != 401 {
			t.Errorf("%s: %d", name, got)
		}
		if notes := r.said(); notes[len(notes)-1].What != Ended || notes[len(notes)-1].Who.Name != "alice" {
			t.Errorf("%s: %+v", name, notes)
		}
	}
	r := newRig(t, config())
	// One that began while its key was being taken away.
	late := r.g.sessions.open(time.Now(), session{person: Person{Name: "alice", Role: Operate, Via: viaSession}, key: digest{1}})
	if got := r.ask(asked{url: "/", cookies: []*http.Cookie{{Name: sessionCookie, Value: late}}}).StatusCode; got != 401 {
		t.Errorf("a session of no key: %d", got)
	}
	bad := config()
	bad.Keys[0].Key = "sha256:12"
	if err := r.g.Use(bad); err == nil || r.ask(asked{url: "/", key: aliceKey}).StatusCode != 200 {
		t.Error("a bad key has changed something")
	}
}

// TestForged: a cookie alone changes nothing, whoever sends the request.
func TestForged(t *testing.T) {
	r := newRig(t, config())
	c := r.signIn("", aliceKey)
	for name, h := range map[string]map[string]string{
		"another site":                 {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a neighbour":                  {"Sec-Fetch-Site": "same-site", "Origin": "http://other.example.com"},
		"typed, or a bookmark":         {"Sec-Fetch-Site": "none"},
		"an old browser, another site": {"Origin": "https://evil.example"},
		"an old browser, a sandbox":    {"Origin": "null"},
		"another port":                 {"Origin": "http://127.0.0.1:9999"},
		"nothing said":                 {},
		"only a referrer":              {"Referer": "http://127.0.0.1:8081/"},
		"JSON of a script":             {"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Origin": "https://evil.example"},
	} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			if resp := r.ask(asked{method: method, url: "/api/v1/workloads/a/quarantine", cookies: c, header: h}); resp.StatusCode != 403 {
				t.Errorf("%s, %s: %d", name, method, resp.StatusCode)
			}
		}
		if resp := r.ask(asked{method: "POST", url: "/login", header: h, form: url.Values{"key": {scrapKey}}}); resp.StatusCode != 403 || len(resp.Cookies()) > 0 {
			t.Errorf("%s signs somebody in: %d", name, resp.StatusCode)
		}
		if resp := r.ask(asked{method: "POST", url: "/logout", header: h, cookies: c, form: url.Values{}}); resp.StatusCode != 403 {
			t.Errorf("%s signs somebody out: %d", name, resp.StatusCode)
		}
	}
	for name, h := range map[string]map[string]string{
		"our page": fromOwnPage, "our page in an old browser": {"Origin": "http://127.0.0.1:8081"},
	} {
		if resp := r.ask(asked{method: "PUT", url: "/api/v1/workloads/a/quarantine", cookies: c, header: h}); resp.StatusCode != 200 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp := r.ask(asked{method: "PUT", url: "/x", key: aliceKey}); resp.StatusCode != 200 {
		t.Errorf("a key needs no origin: %d", resp.StatusCode)
	}
	if resp := r.ask(asked{method: "PUT", url: "/x", key: "wrong-key-of-somebody", cookies: c, header: fromOwnPage}); resp.StatusCode != 401 {
		t.Errorf("a wrong key beside a good cookie: %d", resp.StatusCode)
	}
	if r.count(reasonOrigin) == 0 {
		t.Error("not counted")
	}
}

// TestSignInPage: a person is led to it and back, a program is told.
func TestSignInPage(t *testing.T) {
	r := newRig(t, config())
	resp := r.ask(asked{url: "/outages?id=O-1", header: map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"}})
	if body := text(resp); resp.StatusCode != 401 || !strings.Contains(body, `content="0; url=/login?next=%2Foutages%3Fid%3DO-1"`) {
		t.Errorf("%d\n%s", resp.StatusCode, body)
	}
	resp = r.ask(asked{url: "/api/v1/state", header: map[string]string{"Accept": "application/json"}})
	if body := text(resp); resp.StatusCode != 401 || !strings.Contains(body, `"error":"This needs an operator's key`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp = r.ask(asked{url: "/login?next=%2F%22%3E%3Cscript%3E"})
	if body := text(resp); strings.Contains(body, "<script") || !strings.Contains(body, `type="password"`) || strings.Contains(body, "Sign in with") {
		t.Errorf("%s", body)
	}
	h := resp.Header
	if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") || h.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%q %q", csp, h.Get("X-Frame-Options"))
	}
	bad := r.ask(asked{method: "POST", url: "/login", header: fromOwnPage, form: url.Values{"key": {"a-key-of-a-workload"}, "next": {"/x"}}})
	if body := text(bad); bad.StatusCode != 401 || !strings.Contains(body, "not known here") || strings.Contains(body, "a-key-of-a-workload") || len(bad.Cookies()) > 0 {
		t.Errorf("%d %s", bad.StatusCode, body)
	}
	if resp := r.ask(asked{url: "/login?next=/x", cookies: r.signIn("", aliceKey)}); resp.StatusCode != 303 || resp.Header.Get("Location") != "/x" {
		t.Errorf("who is signed in: %d", resp.StatusCode)
	}
	if resp := r.ask(asked{method: "POST", url: "/login", header: fromOwnPage, form: url.Values{"key": {strings.Repeat("x", maxForm)}}}); resp.StatusCode != 400 {
		t.Errorf("a form without end: %d", resp.StatusCode)
	}
}

// TestWithin: whatever is asked for, a sign-in leads to this listener.
func TestWithin(t *testing.T) {
	for next, want := range map[string]string{
		"/": "/", "/outages?id=1#x": "/outages?id=1#x", "": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/",
		"https://evil.example": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "/\n/evil.example": "/", " //evil.example": "/", "evil.example": "/",
		"/login": "/", "/login?next=/login": "/", "/logout": "/", "/oidc/start": "/", "/%2f/evil.example": "/", "/%5cevil.example": "/%5cevil.example", "/" + strings.Repeat("x", 1001): "/",
	} {
		if got := within(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
	base, _ := url.Parse("https://ops.example.com/login")
	part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"/", "//", "\\", "evil.example", "http:", "https://", "\t", "\r\n", "@", ":", "%2f", "?", "#", " ", "."}))
	rapid.Check(t, func(t *rapid.T) {
		got := within(strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "next"), ""))
		// As browsers read it: without white space in it, and \ as /.
		seen := strings.ReplaceAll(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(got)), "\\", "/")
		if u, err := base.Parse(seen); err != nil || u.Host != base.Host || u.Scheme != "https" || strings.HasPrefix(seen, "//") {
			t.Fatalf("%q leads to %v, %v", got, u, err)
		}
	})
}

// TestWrongKeys: a guesser is shut out, by address and in all; who is known or on
// this machine is not shut out by others.
func TestWrongKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, config())
		guess := func(from string) int {
			return r.ask(asked{url: "/", key: "a-guess-of-somebody", from: from}).StatusCode
		}
		right := func(from string) int { return r.ask(asked{url: "/", key: aliceKey, from: from}).StatusCode }
		for i := range addressBurst {
			if got := guess("203.0.113.9:1000"); got != 401 {
				t.Fatalf("guess %d: %d", i, got)
			}
		}
		resp := r.ask(asked{url: "/", key: "a-guess-of-somebody", from: "203.0.113.9:1001"})
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "6" || right("203.0.113.9:1002") != 429 {
			t.Errorf("one guess more: %d, Retry-After %s", resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		if got := r.ask(asked{method: "POST", url: "/login", header: fromOwnPage, from: "203.0.113.9:1", form: url.Values{"key": {aliceKey}}}).StatusCode; got != 429 {
			t.Errorf("at the form: %d", got)
		}
		if got := right("203.0.113.10:1"); got != 200 {
			t.Errorf("another address: %d", got)
		}
		if got := guess("[2001:db8::1]:1"); got != 401 {
			t.Errorf("%d", got)
		}
		for i := range addressBurst - 1 {
			guess(fmt.Sprintf("[2001:db8::%x]:1", i+2)) // all of one machine
		}
		if got := guess("[2001:db8::ffff]:1"); got != 429 {
			t.Errorf("an address of the same network: %d", got)
		}
		time.Sleep(addressEvery)
		if got := right("203.0.113.9:1003"); got != 200 {
			t.Errorf("after the wait: %d", got)
		}
		for range 3 * addressBurst { // the address is known now: others at it keep nobody out
			guess("203.0.113.9:1004")
		}
		if got := guess("203.0.113.9:1004"); got != 429 {
			t.Errorf("a guess from a known address: %d", got)
		}
		if got := right("203.0.113.9:1005"); got != 200 {
			t.Errorf("a right key from a known address: %d", got)
		}
		for i := range 2 * totalBurst {
			guess(fmt.Sprintf("198.51.%d.%d:1", i/250, i%250))
		}
		if got := right("192.0.2.77:1"); got != 429 {
			t.Errorf("with guesses from everywhere: %d", got)
		}
		if a, b := right("127.0.0.1:1"), right("203.0.113.10:1"); a != 200 || b != 200 {
			t.Errorf("this machine %d, a known address %d", a, b)
		}
		if n := r.count(reasonWrongKey); n > totalBurst+20 {
			t.Errorf("%d guesses were looked at", n)
		}
		notes := r.said()
		if len(notes) > noteBurst+5 {
			t.Errorf("%d notes", len(notes))
		}
		time.Sleep(time.Hour)
		guess("192.0.2.78:1")
		notes = r.said()
		if last := notes[len(notes)-1]; last.Missed < 50 || last.What != Denied {
			t.Errorf("%+v", last)
		}
		for _, n := range notes {
			if s := fmt.Sprintf("%+v", n); strings.Contains(s, "a-guess") || strings.Contains(s, aliceKey) {
				t.Errorf("a secret is noted: %s", s)
			}
		}
	})
}

// TestFailuresAreBounded: whatever comes, and a right key of a known address always
// comes in.
func TestFailuresAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f failures
		now := time.Unix(0, 0)
		f.good(now, "friend")
		looked, began := 0, now
		for i := range rapid.IntRange(1, 3000).Draw(t, "guesses") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			addr := fmt.Sprint("a", rapid.IntRange(0, 5).Draw(t, "of")*i)
			if _, shut := f.shut(now, addr); !shut {
				if _, over := f.failed(now, addr); !over {
					looked++
				}
			}
			if most := totalBurst + now.Sub(began).Seconds() + 1; float64(looked) > most {
				t.Fatalf("%d guesses looked at, %v allowed", looked, most)
			}
		}
		if len(f.addresses) > maxAddresses || len(f.known) > maxAddresses {
			t.Fatalf("%d and %d addresses", len(f.addresses), len(f.known))
		}
		if _, shut := f.shut(now, "friend"); shut && now.Sub(began) < knownFor {
			t.Fatal("a known address is shut out")
		}
	})
	var f failures
	for i := range 3 * maxAddresses {
		f.good(time.Unix(int64(i), 0), fmt.Sprint(i))
		f.failed(time.Unix(int64(i), 0), fmt.Sprint(i))
	}
	if len(f.known) > maxAddresses || len(f.addresses) > maxAddresses {
		t.Errorf("%d and %d addresses", len(f.known), len(f.addresses))
	}
}

// TestSessionsAreBounded: the one idle longest makes room, and no more than that.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Unix(0, 0)
	any := func(*session) bool { return true }
	ids := make([]string, 0, maxSessions+5)
	for i := range maxSessions + 5 {
		ids = append(ids, s.open(now.Add(time.Duration(i)*time.Millisecond), session{person: Person{Name: fmt.Sprint("a", i%50)}}))
	}
	if len(s.byID) != maxSessions {
		t.Errorf("%d sessions", len(s.byID))
	}
	if _, ok := s.find(now.Add(2*time.Second), ids[4], any); ok {
		t.Error("the one idle longest is still there")
	}
	if _, ok := s.find(now.Add(2*time.Second), ids[5], any); !ok {
		t.Error("a younger one is gone")
	}
	s.open(now.Add(3*time.Hour), session{})
	if len(s.byID) != 1 {
		t.Errorf("%d sessions, and all but one are over", len(s.byID))
	}
}

// TestOneWhoMayView neither ends the sessions of others nor fills the record, and what
// others do is noted beside what that one does.
func TestOneWhoMayView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, config())
		alice := r.signIn("http://127.0.0.1:8081", aliceKey)
		for range maxSessions + 1 {
			time.Sleep(time.Millisecond)
			r.signIn("http://127.0.0.1:8081", scrapKey)
			r.ask(asked{method: "POST", url: "/x%0a%1b[2J%20%2011%202026-05-29%20alice:%20undo", key: scrapKey})
		}
		if resp := r.ask(asked{url: "/", cookies: alice}); resp.StatusCode != 200 {
			t.Errorf("the session of somebody else: %d", resp.StatusCode)
		}
		for _, n := range r.said() {
			if strings.ContainsFunc(n.Why, unicode.IsControl) {
				t.Errorf("a note has lines of its own: %q", n.Why)
			}
		}
		r.ask(asked{method: "POST", url: "/logout", header: fromOwnPage, cookies: alice})
		r.ask(asked{url: "/", key: "a-guess-of-somebody"})
		notes := r.said()
		if n := len(notes); n > noteBurst+10 {
			t.Errorf("%d notes", n)
		}
		if n := len(notes); n < 2 || notes[n-2].What != SignedOut || notes[n-2].Who.Name != "alice" || notes[n-1].Why != "a key that is not configured" {
			t.Errorf("what others did is not noted: %+v", notes[n-2:])
		}
		time.Sleep(noteEvery)
		r.signIn("http://127.0.0.1:8081", scrapKey)
		if notes = r.said(); notes[len(notes)-1].Missed < maxSessions {
			t.Errorf("what was left out is not counted: %+v", notes[len(notes)-1])
		}
	})
}

// TestNotesAreBounded: names come and go with a provider's people.
func TestNotesAreBounded(t *testing.T) {
	var n notes
	for i := range 3 * maxNoted {
		if _, ok := n.take(time.Unix(int64(i), 0), fmt.Sprint(i)); !ok {
			t.Fatal("the first of somebody is not noted")
		}
	}
	if len(n.of) > maxNoted {
		t.Errorf("%d names", len(n.of))
	}
}
