package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/watch"
)

// TestOutages: they are told as JSON, what is suspected and what comes next.
func TestOutages(t *testing.T) {
	o := detect.Outage{ID: "O-7", State: detect.Unverified, Words: "unverified: traffic at 15 % of onset", Waves: 2, Scope: []detect.Subject{{Kind: detect.Model, Name: "m<x>"}},
		Suspects: []detect.Suspect{
			{Subject: detect.Subject{Kind: detect.Workload, Name: "suite"}, Score: 0.97, Text: "has part"},
			{Subject: detect.Subject{Kind: detect.Target, Name: "a/m"}, Score: 0.5},
		}}
	h := Handler(Options{
		Metrics: http.NotFoundHandler(), State: func(time.Time) State { return State{} }, Limits: func(time.Time) Limits { return Limits{} },
		Outages: func(now time.Time) watch.Report {
			return watch.Report{At: now, Open: 1, Outages: []watch.Outage{{Outage: o}}}
		},
	})
	if w := get(t, h, "localhost", "/api/v1/outages"); w.Code != 200 || !strings.Contains(w.Body.String(), `"id": "O-7"`) || !strings.Contains(w.Body.String(), `"kind": "workload"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestChanges: a change made elsewhere is taken with its time, as one line, and a
// mistake is told with what to do.
func TestChanges(t *testing.T) {
	var heard []detect.Change
	h := Handler(Options{Metrics: http.NotFoundHandler(), Changed: func(c detect.Change, _ By) { heard = append(heard, c) }})
	post := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/changes", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := post(`{"at":"2026-05-29T09:18:00Z","what":"upstream\nrollout","scope":"australiaeast","who":"hook"}`); w.Code != 204 || len(heard) != 1 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	want := detect.Change{At: time.Date(2026, 5, 29, 9, 18, 0, 0, time.UTC), What: "upstream rollout", Scope: "australiaeast", By: "hook"}
	if heard[0] != want {
		t.Errorf("%+v", heard[0])
	}
	if w := post(`{"what":"deploy"}`); w.Code != 204 || len(heard) != 2 || time.Since(heard[1].At) > time.Minute {
		t.Errorf("%d %+v", w.Code, heard)
	}
	if w := post(`{"what":"rollout","dose":0.25,"reverts":" the\nfeature"}`); w.Code != 204 || heard[2].Dose != 0.25 || heard[2].Reverts != "the feature" {
		t.Errorf("%d %+v", w.Code, heard)
	}
	for _, bad := range []string{`{}`, `{"what":"x","dose":0}`, `{"what":"x","dose":1.5}`, `{"what":"x","dose":-1}`, `{"what":"x","reverts":"x"}`, `{"what":"x","at":"2099-01-01T00:00:00Z"}`, `{"what":"x","how":"y"}`} {
		if w := post(bad); w.Code != 400 || !strings.Contains(w.Body.String(), "error") {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	if len(heard) != 3 {
		t.Errorf("%d heard", len(heard))
	}
}

// TestSLOs: the objectives are told with their budgets, as a list also when there are
// none.
func TestSLOs(t *testing.T) {
	var list []detect.Budget
	h := Handler(Options{Metrics: http.NotFoundHandler(), SLOs: func() []detect.Budget { return list }})
	if w := get(t, h, "localhost", "/api/v1/slos"); w.Code != 200 || !strings.Contains(w.Body.String(), `"slos": []`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	list = []detect.Budget{{Name: "a", Left: 0.5, Burns: []detect.Burn{{Window: "5m", Rate: 62}}}}
	w := get(t, h, "localhost", "/api/v1/slos")
	for _, want := range []string{`"name": "a"`, `"budget_left": 0.5`, `"burn_rate": 62`, `"known_seconds": 0`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is not in %s", want, w.Body)
		}
	}
}
