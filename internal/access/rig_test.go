package access

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

const (
	aliceKey = "alice-has-a-key-of-hers"
	scrapKey = "prometheus-has-one-too"
)

// rig is a guard in front of a handler that says who asks.
type rig struct {
	t       *testing.T
	g       *Guard
	handler http.Handler

	mu     sync.Mutex
	notes  []Note
	denied map[string]int
}

func config() Config {
	return Config{Listen: "0.0.0.0:8081", Hosts: []string{"ops.example.com", "https://safe.example.com"}, Keys: []Key{
		{Name: "alice", Key: aliceKey, Role: Operate}, {Name: "prometheus", Key: Digest(scrapKey), Role: View},
	}}
}

func newRig(t *testing.T, c Config) *rig {
	t.Helper()
	r := &rig{t: t, denied: map[string]int{}}
	r.g = New(Options{
		Noted:  func(n Note) { r.mu.Lock(); defer r.mu.Unlock(); r.notes = append(r.notes, n) },
		Denied: func(reason string) { r.mu.Lock(); defer r.mu.Unlock(); r.denied[reason]++ },
	})
	if err := r.g.Use(c); err != nil {
		t.Fatal(err)
	}
	r.handler = r.g.Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, From(q.Context()).String())
	}))
	return r
}

// asked is a request of a test.
type asked struct {
	method, url, key, from string
	header                 map[string]string
	cookies                []*http.Cookie
	form                   url.Values
}

func (r *rig) ask(a asked) *http.Response {
	r.t.Helper()
	if a.method == "" {
		a.method = "GET"
	}
	if !strings.Contains(a.url, "://") {
		a.url = "http://127.0.0.1:8081" + a.url
	}
	q := httptest.NewRequest(a.method, a.url, strings.NewReader(a.form.Encode()))
	q.TLS = nil
	if strings.HasPrefix(a.url, "https") {
		q = httptest.NewRequest(a.method, a.url, strings.NewReader(a.form.Encode()))
	}
	if a.form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if a.key != "" {
		q.Header.Set("Authorization", "Bearer "+a.key)
	}
	if a.from != "" {
		q.RemoteAddr = a.from
	}
	for k, v := range a.header {
		q.Header.Set(k, v)
	}
	for _, c := range a.cookies {
		q.AddCookie(c)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w.Result()
}

func text(resp *http.Response) string {
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

var fromOwnPage = map[string]string{"Sec-Fetch-Site": "same-origin"}

// signIn signs in with a key and returns the browser's cookies.
func (r *rig) signIn(at, key string, have ...*http.Cookie) []*http.Cookie {
	r.t.Helper()
	resp := r.ask(asked{method: "POST", url: at + "/login", form: url.Values{"key": {key}, "next": {"/here"}}, header: fromOwnPage, cookies: have})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/here" {
		r.t.Fatalf("sign-in: %d to %q\n%s", resp.StatusCode, resp.Header.Get("Location"), text(resp))
	}
	return resp.Cookies()
}

func (r *rig) said() []Note {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Note{}, r.notes...)
}

func (r *rig) count(reason string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied[reason]
}
