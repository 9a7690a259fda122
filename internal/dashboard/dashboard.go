// Package dashboard is what an operator looks at while something is wrong: pages
// about the router's targets, workloads, outages, rollout, memory and actions, made
// on the server from the values of the rooms that decide. It decides nothing, keeps
// nothing and changes nothing: its buttons ask the API of the operator's listener, and
// every page is whole without scripts.
//
// A Handler is safe for concurrent use; what it shows is asked anew for each page.
// Every source but the state and the limits may be missing, and hides its part then.
package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/watch"
)

// Options are where the pages get what they show. State and Limits are needed.
type Options struct {
	State   func(now time.Time) admin.State
	Limits  func(now time.Time) admin.Limits
	Outages func(now time.Time) watch.Report
	// Actions are the orders in force and those that ended lately.
	Actions func(now time.Time) admin.Actions
	// Audit is the end of the audit log below an ID, or from the newest for 0: at most
	// so many entries, the newest first.
	Audit func(before int64, most int) ([]steer.Entry, error)
	// Rollout is the newest; ok is false where there was none.
	Rollout func(now time.Time) (s rollout.Status, ok bool)
	// History and Totals are the past of the router, its targets and its workloads.
	History func(now time.Time, q history.Query) (history.Answer, error)
	Totals  func(now time.Time) history.Totals
	// Objectives are how the service level objectives stand.
	Objectives func() []detect.Budget
	// Incidents says that the library is served beside the dashboard.
	Incidents bool
}

// Handler serves the pages, below whatever it is mounted at: its paths are absolute.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	for _, p := range pages() {
		mux.Handle("GET "+p.pattern, o.page(p))
	}
	mux.HandleFunc("GET /plot", o.plot)
	mux.HandleFunc("GET /api/v1/verdict", o.verdict)
	for name, a := range assets() {
		mux.Handle("GET "+assetRoot+name, a)
	}
	mux.HandleFunc("/", o.lost)
	return mux
}

// page is one path with what it shows.
type page struct {
	pattern string
	name    string // of its template, and of its entry in the navigation
	// show makes what the template shows; no title means that there is no such page.
	show func(o Options, f *frame, r *http.Request) (title string, data any)
}

func pages() []page {
	return []page{
		{"/{$}", "overview", showOverview},
		{"/targets", "targets", showTargets},
		{"/workloads", "workloads", showWorkloads},
		{"/outages", "outages", showOutages},
		{"/outages/{id}", "outage", showOutage},
		{"/rollout", "rollout", showRollout},
		{"/capacity", "capacity", showCapacity},
		{"/actions", "actions", showActions},
		{"/drills", "drills", showDrills},
		{"/past", "past", showPast},
	}
}

// frame is what every page has.
type frame struct {
	Now     time.Time
	Title   string
	Here    string // the entry of the navigation
	Nav     []link
	Person  access.Person
	May     bool // operate, and there is an API to operate with
	SignOut bool
	State   admin.State
	Open    int // outages
	Page    any
}

type link struct {
	Name, Path, Text, Key string
	Here                  bool
	Count                 int
}

func (o Options) frame(r *http.Request, here string) *frame {
	now := time.Now()
	f := &frame{Now: now, Here: here, Person: access.From(r.Context()), State: o.State(now)}
	f.May = f.Person.Role == access.Operate
	f.SignOut = f.Person.Via == "session" || f.Person.Via == "oidc"
	if o.Outages != nil {
		f.Open = o.Outages(now).Open
	}
	if here == "outage" {
		here = "outages"
	}
	for _, l := range []link{
		{Name: "overview", Path: "/", Text: "Overview"},
		{Name: "targets", Path: "/targets", Text: "Targets"},
		{Name: "workloads", Path: "/workloads", Text: "Workloads"},
		{Name: "outages", Path: "/outages", Text: "Outages", Count: f.Open},
		{Name: "rollout", Path: "/rollout", Text: "Rollout"},
		{Name: "capacity", Path: "/capacity", Text: "Memory and queue"},
		{Name: "actions", Path: "/actions", Text: "Actions"},
		{Name: "drills", Path: "/drills", Text: "Drills"},
		{Name: "incidents", Path: "/incidents", Text: "Incidents"},
	} {
		if o.hides(l.Name) {
			continue
		}
		l.Here, l.Key = l.Name == here, string(rune('1'+len(f.Nav)))
		f.Nav = append(f.Nav, l)
	}
	return f
}

// hides reports that the source of a page is missing.
func (o Options) hides(name string) bool {
	switch name {
	case "outages":
		return o.Outages == nil
	case "rollout":
		return o.Rollout == nil
	case "actions":
		return o.Actions == nil && o.Audit == nil
	case "incidents":
		return !o.Incidents
	}
	return false
}

// page serves a page, or only what changes of it to a page that is open already.
func (o Options) page(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := o.frame(r, p.name)
		if o.hides(p.name) || p.name == "outage" && o.Outages == nil {
			o.lost(w, r)
			return
		}
		f.Title, f.Page = p.show(o, f, r)
		if f.Title == "" {
			o.lost(w, r)
			return
		}
		send(w, r, http.StatusOK, p.name, f)
	})
}

// lost answers where there is no page.
func (o Options) lost(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("{\"error\":\"There is nothing at this path.\"}\n")) // a reader that has left is told nothing
		return
	}
	f := o.frame(r, "")
	f.Title = "There is nothing here"
	send(w, r, http.StatusNotFound, "lost", f)
}

// filter is what was typed to find some of many rows, at most 200 characters.
func filter(q url.Values) string {
	s := []rune(strings.TrimSpace(q.Get("q")))
	return string(s[:min(len(s), 200)])
}

// fits reports that a filter is part of one of the texts, whatever the case.
func fits(filter string, texts ...string) bool {
	if filter == "" {
		return true
	}
	filter = strings.ToLower(filter)
	for _, t := range texts {
		if strings.Contains(strings.ToLower(t), filter) {
			return true
		}
	}
	return false
}
