// Package admin is the operator's listener: health, metrics, and the state of
// every target and workload as JSON, the dashboard that package dashboard makes of
// it, and the few changes that an operator can make while the router runs. It holds
// no state and decides nothing. Who may ask for what is decided by package access, in
// front of everything here.
package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/watch"
	"github.com/hourthree/hourthree/internal/workload"
)

// State is everything an operator can see.
type State struct {
	At        time.Time        `json:"at"`
	Version   string           `json:"version"`
	Config    string           `json:"config"` // where the configuration came from
	ConfigID  string           `json:"config_id"`
	Loaded    time.Time        `json:"config_loaded"`
	Refused   string           `json:"config_refused,omitempty"` // why the newest file was not taken
	Draining  bool             `json:"draining"`
	InFlight  int64            `json:"in_flight"`
	Queued    int64            `json:"queued"`
	Reserved  int64            `json:"memory_reserved_bytes"`
	Limit     int64            `json:"memory_limit_bytes"`
	Simulated bool             `json:"simulated"`
	Models    []ModelState     `json:"models"`
	Targets   []route.State    `json:"targets"`
	Workloads []workload.State `json:"workloads"`
	Changes   []Change         `json:"changes"` // the last ones, newest first
	Actions   []steer.Action   `json:"actions"` // in force, likewise
}

// ModelState is one public model and where it may go.
type ModelState struct {
	Name     string   `json:"name"`
	Targets  []string `json:"targets"`
	Degraded string   `json:"degraded,omitempty"`
	Pinned   string   `json:"pinned,omitempty"` // the one target that an operator has its requests go to
}

// Options are what the listener shows.
type Options struct {
	State  func(now time.Time) State
	Limits func(now time.Time) Limits
	// Outages are those that were noticed; Changed hears of changes made elsewhere.
	// Both may be nil, and are not served then.
	Outages func(now time.Time) watch.Report
	Changed func(detect.Change, By)
	// History answers for a stretch of the past, Totals for the windows that end now.
	// Both may be nil, and are not served then.
	History func(now time.Time, q history.Query) (history.Answer, error)
	Totals  func(now time.Time) history.Totals
	// SLOs are the objectives with their budgets. It may be nil.
	SLOs    func() []detect.Budget
	Ready   func() error // why the router is not ready, nil when it is
	Metrics http.Handler
	// Incidents serves the library of incidents: /incidents, /api/incidents and
	// what is below. It may be nil.
	Incidents http.Handler
	// MCP serves the library's tools to agents, at /mcp. It may be nil.
	MCP     http.Handler
	Rollout Rollout
	// Dashboard serves the pages, at every path that nothing else is at. It may be
	// nil.
	Dashboard http.Handler
	// Access lets in who may. Where it is nil everybody on this machine may operate.
	Access *access.Guard
	Steering
}

// Handler serves the listener.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
			return
		}
		plain(w, http.StatusOK, "ok\n")
	})
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /api/v1/state", func(w http.ResponseWriter, _ *http.Request) { data(w, o.State(time.Now())) })
	mux.HandleFunc("GET /api/v1/limits", func(w http.ResponseWriter, _ *http.Request) { data(w, o.Limits(time.Now())) })
	mux.HandleFunc("GET /api/v1/whoami", func(w http.ResponseWriter, r *http.Request) { data(w, access.From(r.Context())) })
	if o.Outages != nil {
		mux.HandleFunc("GET /api/v1/outages", func(w http.ResponseWriter, _ *http.Request) { data(w, o.Outages(time.Now())) })
	}
	if o.SLOs != nil {
		mux.HandleFunc("GET /api/v1/slos", func(w http.ResponseWriter, _ *http.Request) { data(w, slos(time.Now(), o.SLOs())) })
	}
	if o.Changed != nil {
		mux.HandleFunc("POST /api/v1/changes", o.change)
	}
	if o.History != nil {
		mux.HandleFunc("GET /api/v1/history", o.past)
	}
	if o.Totals != nil {
		mux.HandleFunc("GET /api/v1/history/totals", func(w http.ResponseWriter, _ *http.Request) { data(w, o.Totals(time.Now())) })
	}
	if o.Dashboard != nil { // its first sentence, for programs
		mux.Handle("GET /api/v1/verdict", o.Dashboard)
	}
	o.steering(mux)
	o.Rollout.serve(mux)
	if o.Incidents != nil {
		for _, path := range []string{"/incidents", "/incidents/", "/api/incidents", "/api/incidents/"} {
			mux.Handle(path, o.Incidents)
		}
	}
	if o.MCP != nil {
		mux.Handle("/mcp", underOwnName(o.MCP))
	}
	if o.Access == nil {
		o.Access = access.New(access.Options{})
	}
	return secure(o.Access.Handler(o.pages(mux)))
}

// pages leads to the dashboard what is asked of nothing else here. What belongs to
// the API keeps its own answers, to a wrong method too.
func (o Options) pages(mux *http.ServeMux) http.Handler {
	if o.Dashboard == nil {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if _, pattern := mux.Handler(r); pattern == "" && reads && !strings.HasPrefix(r.URL.Path, "/api/") {
			o.Dashboard.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// underOwnName lets a handler that answers to names of this machine alone be asked
// for under those that the guard in front has let pass.
func underOwnName(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := r.WithContext(r.Context())
		own.Host = "localhost"
		next.ServeHTTP(w, own)
	})
}

func data(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // likewise
}

// secure closes what a page of an operator is exposed to: framing, scripts from
// elsewhere, and other sites looking at what it loads. A handler that serves pages
// of its own with scripts sets a Content-Security-Policy for them, in place of this
// one, which allows none.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "same-origin") // with none at all a form would name no origin
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func plain(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // likewise
}
