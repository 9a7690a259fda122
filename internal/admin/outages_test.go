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
	h := Handler(Options{Metrics: http.NotFoundHandler(), Changed: func(c detect.Change) { heard = append(heard, c) }})
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
	for _, bad := range []string{`{}`, `{"what":"x","at":"2099-01-01T00:00:00Z"}`, `{"what":"x","how":"y"}`} {
		if w := post(bad); w.Code != 400 || !strings.Contains(w.Body.String(), "error") {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	if len(heard) != 2 {
		t.Errorf("%d heard", len(heard))
	}
}
