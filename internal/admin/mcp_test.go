package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestToolsOfTheLibrary: agents of this machine reach /mcp; other sites and
// rebound names do not.
func TestToolsOfTheLibrary(t *testing.T) {
	called := 0
	h := Handler(Options{Metrics: http.NotFoundHandler(), MCP: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ })})
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"127.0.0.1:8081", "", 200},
		{"127.0.0.1:8081", "https://evil.example", 403},
		{"evil.example", "", 403},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://"+c.host+"/mcp", nil)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s from %q: %d, want %d", c.host, c.origin, w.Code, c.status)
		}
	}
	if called != 1 {
		t.Errorf("called %d times", called)
	}
}
