package library

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const testKey = "a-key-of-the-library"

func TestGuard(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for name, tc := range map[string]struct {
		key, host string
		header    func(http.Header)
		status    int
	}{
		"loopback":          {"", "127.0.0.1:8082", nil, 200},
		"a rebound name":    {"", "evil.example:8082", nil, 403},
		"no key":            {testKey, "library.example", nil, 401},
		"no key, loopback":  {testKey, "127.0.0.1", nil, 401},
		"bearer":            {testKey, "library.example", func(h http.Header) { h.Set("Authorization", "bearer "+testKey) }, 200},
		"x-api-key":         {testKey, "library.example", func(h http.Header) { h.Set("x-api-key", testKey) }, 200},
		"browser":           {testKey, "library.example", func(h http.Header) { h.Set("Authorization", "Basic "+basic("anybody", testKey)) }, 200},
		"another key":       {testKey, "library.example", func(h http.Header) { h.Set("x-api-key", testKey+"x") }, 401},
		"the name is a key": {testKey, "library.example", func(h http.Header) { h.Set("Authorization", "Basic "+basic(testKey, "")) }, 401},
		"no scheme":         {testKey, "library.example", func(h http.Header) { h.Set("Authorization", testKey) }, 401},
	} {
		r := httptest.NewRequest("GET", "http://"+tc.host+"/api/incidents", nil)
		if tc.header != nil {
			tc.header(r.Header)
		}
		w := httptest.NewRecorder()
		ServerOptions{Key: tc.key, Handler: ok}.guard().ServeHTTP(w, r)
		if w.Code != tc.status || strings.Contains(w.Body.String(), testKey) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestPageElsewhereWithAKey: a page of an origin that is named can ask with the
// key, although its browser asks without one first; others cannot.
func TestPageElsewhereWithAKey(t *testing.T) {
	const page = "https://a.example"
	ask := func(o ServerOptions, method, origin, key string) *httptest.ResponseRecorder {
		o.Key, o.Handler = testKey, Handler(Embedded, Options{Origins: []string{page}})
		r := httptest.NewRequest(method, "http://library.example/api/incidents/HT-0001", nil)
		r.Header.Set("Origin", origin)
		if method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", "GET")
			r.Header.Set("Access-Control-Request-Headers", "x-api-key")
		}
		if key != "" {
			r.Header.Set("x-api-key", key)
		}
		w := httptest.NewRecorder()
		o.guard().ServeHTTP(w, r)
		return w
	}
	open := ServerOptions{Preflights: true}
	w := ask(open, "OPTIONS", page, "")
	if w.Code != 204 || w.Body.Len() > 0 || w.Header().Get("Access-Control-Allow-Origin") != page || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "X-API-Key") {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	if w := ask(open, "GET", page, testKey); w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != page {
		t.Errorf("with the key: %d %v", w.Code, w.Header())
	}
	if w := ask(open, "GET", page, ""); w.Code != 401 {
		t.Errorf("without: %d", w.Code)
	}
	if w := ask(open, "OPTIONS", "https://b.example", ""); w.Body.Len() > 0 || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %d %v", w.Code, w.Header())
	}
	if w := ask(ServerOptions{}, "OPTIONS", page, ""); w.Code != 401 {
		t.Errorf("where no origin is named: %d", w.Code)
	}
}

func basic(name, password string) string {
	r := httptest.NewRequest("GET", "/", nil)
	r.SetBasicAuth(name, password)
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
}

func TestRefusedAddresses(t *testing.T) {
	for name, o := range map[string]ServerOptions{
		"open to all": {Listen: "0.0.0.0:0"}, "every interface": {Listen: ":0"}, "another name": {Listen: "library.example:0"},
		"no port": {Listen: "127.0.0.1"}, "short key": {Listen: "127.0.0.1:0", Key: "short"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		o.Ready = func(net.Addr) { t.Errorf("%s: served", name); cancel() }
		if err := Serve(ctx, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		cancel()
	}
}

// A request that runs when the server is told to end gets its answer.
func TestGracefulEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	at, inside, release := make(chan net.Addr, 1), make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		w.WriteHeader(http.StatusTeapot)
	})
	go func() {
		done <- Serve(ctx, ServerOptions{Listen: "127.0.0.1:0", Handler: h, Ready: func(a net.Addr) { at <- a }})
	}()
	addr := <-at
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + addr.String() + "/")
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-inside
	cancel()
	select {
	case <-done:
		t.Fatal("ended before its request")
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if s := <-status; s != http.StatusTeapot {
		t.Errorf("status %d", s)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
