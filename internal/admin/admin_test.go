package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/route"
)

func get(t *testing.T, h http.Handler, host, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	var notReady error
	until := time.Now().Add(time.Minute)
	h := Handler(Options{
		State: func(now time.Time) State {
			return State{At: now, Targets: []route.State{{Name: "sim/<script>", Phase: "open", CoolUntil: &until, CoolKind: "capacity"}}}
		},
		Limits: func(time.Time) Limits {
			left, spent := int64(7), 1.5
			return Limits{Without: []string{"bad<b>"}, Rules: []Rule{{Workload: "w", MemoryShare: 0.25}}, Bounds: []Bound{
				{Level: "workload", Name: "w", RPM: 70, USDPerDay: 5, Use: &Use{InFlight: 3, RequestsLeft: &left, USDSpent: &spent, USDLeft: &spent}}, {Level: "key", Name: "12345678", Workload: "w", NoLimit: true},
			}}
		},
		Ready:   func() error { return notReady },
		Metrics: http.NotFoundHandler(),
	})
	page := get(t, h, "127.0.0.1:8081", "/api/v1/state")
	var l Limits
	if w := get(t, h, "localhost", "/api/v1/limits"); json.Unmarshal(w.Body.Bytes(), &l) != nil || len(l.Bounds) != 2 || l.Bounds[0].Use.InFlight != 3 {
		t.Errorf("limits: %s", w.Body)
	}
	if csp := page.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("policy %q", csp)
	}
	var s State
	if w := get(t, h, "localhost", "/api/v1/state"); json.Unmarshal(w.Body.Bytes(), &s) != nil || len(s.Targets) != 1 {
		t.Errorf("state: %s", w.Body)
	}
	if w := get(t, h, "[::1]:8081", "/readyz"); w.Code != 200 {
		t.Errorf("ready: %d", w.Code)
	}
	notReady = errors.New("draining")
	if w := get(t, h, "127.0.0.1", "/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), "draining") {
		t.Errorf("draining: %d %s", w.Code, w.Body)
	}
	if w := get(t, h, "127.0.0.1", "/healthz"); w.Code != 200 {
		t.Errorf("alive: %d", w.Code)
	}
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "192.0.2.1"} {
		if w := get(t, h, host, "/api/v1/state"); w.Code != 403 {
			t.Errorf("%s: %d, want 403", host, w.Code)
		}
	}
}

// The library of incidents is served beside the state, to the same callers.
func TestIncidentsAreMounted(t *testing.T) {
	library := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { plain(w, http.StatusOK, "library "+r.URL.Path) })
	h := Handler(Options{Metrics: http.NotFoundHandler(), Incidents: library})
	for _, path := range []string{"/incidents", "/incidents/HT-0001", "/api/incidents", "/api/incidents/HT-0001"} {
		if w := get(t, h, "127.0.0.1:8081", path); w.Code != 200 || w.Body.String() != "library "+path {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if w := get(t, h, "evil.example", path); w.Code != 403 {
			t.Errorf("%s of another site: %d", path, w.Code)
		}
	}
	if w := get(t, Handler(Options{Metrics: http.NotFoundHandler()}), "127.0.0.1", "/incidents"); w.Code != 404 {
		t.Errorf("without a library: %d", w.Code)
	}
}

// The dashboard has every path that nothing else is at, and only for reading; the API
// keeps its answers.
func TestDashboardIsMounted(t *testing.T) {
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { plain(w, http.StatusOK, "dashboard "+r.URL.Path) })
	library := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "library") })
	h := Handler(Options{Metrics: http.NotFoundHandler(), Dashboard: seen, Incidents: library})
	for _, path := range []string{"/", "/targets", "/outages/O-1", "/nowhere"} {
		if w := get(t, h, "127.0.0.1:8081", path); w.Body.String() != "dashboard "+path {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if w := get(t, h, "evil.example", path); w.Code != http.StatusForbidden {
			t.Errorf("%s of another site: %d", path, w.Code)
		}
	}
	for method, paths := range map[string]map[string]int{
		http.MethodGet:  {"/healthz": 200, "/incidents/HT-0001": 200, "/api/v1/nothing": 404, "/api/v1/workloads/w/quarantine": 405},
		http.MethodPost: {"/": 404, "/api/v1/state": 405},
	} {
		for path, want := range paths {
			r := httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want || strings.Contains(w.Body.String(), "dashboard") {
				t.Errorf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, want)
			}
		}
	}
}

// TestHeaders: nothing is framed or loaded by others, and a handler with scripts of
// its own says so in its own policy.
func TestHeaders(t *testing.T) {
	const own = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'"
	h := Handler(Options{Metrics: http.NotFoundHandler(), Incidents: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/incidents" {
			w.Header().Set("Content-Security-Policy", own)
		}
		plain(w, http.StatusOK, "x")
	})})
	if got := get(t, h, "127.0.0.1", "/incidents").Header(); got.Get("Content-Security-Policy") != own || got.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%v", got)
	}
	got := get(t, h, "127.0.0.1", "/incidents/x").Header()
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	if csp := got.Get("Content-Security-Policy"); strings.Contains(csp, "script-src") || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("%q", csp)
	}
}
