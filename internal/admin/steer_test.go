package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/steer"
)

// TestActionsAPI: who asks is who is known to be, what is wrong has its status and its
// remedy, and who may only view changes nothing.
func TestActionsAPI(t *testing.T) {
	var by By
	var asked steer.Order
	var before int64
	var most int
	var fails error
	h := Handler(Options{
		Metrics: http.NotFoundHandler(), Changed: func(detect.Change, By) {},
		Steering: Steering{
			Quarantine: func(_ string, q Quarantine) error { by = q.By; return fails },
			Release:    func(_ string, q Quarantine) error { by = q.By; return fails },
			Order: func(o steer.Order, b By) (steer.Taken, error) {
				by, asked = b, o
				return steer.Taken{Action: steer.Action{ID: "A-7", Order: o}, Warnings: []string{"mind"}}, fails
			},
			Undo: func(id string, b By, why string) (steer.Undone, error) {
				by = b
				return steer.Undone{Action: steer.Action{ID: id, EndedWhy: why}}, fails
			},
			Actions: func(time.Time) Actions { return ActionsOf(nil, make([]steer.Action, 500)) },
			Audit: func(b int64, n int) ([]steer.Entry, error) {
				before, most = b, n
				return []steer.Entry{{ID: 9}, {ID: 8}}, fails
			},
		},
	})
	send := func(p *access.Person, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if p != nil {
			r = r.WithContext(access.With(r.Context(), *p))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	drain := `{"kind":"drain","subject":"a/b","why":"x\ny","who":"ada"}`
	w := send(nil, "POST", "/api/v1/actions", drain)
	if w.Code != 201 || w.Header().Get("Location") != "/api/v1/actions/A-7" || !strings.Contains(w.Body.String(), `"warnings"`) || !strings.Contains(w.Body.String(), `"id": "A-7"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if by != (By{Name: "ada", Role: "operate", Via: "loopback"}) || asked.Why != "x y" {
		t.Errorf("%+v %+v", by, asked)
	}
	grace := &access.Person{Name: "grace", Role: access.Operate, Via: "key"}
	if send(grace, "POST", "/api/v1/actions", drain); by != (By{Name: "grace", Role: "operate", Via: "key"}) {
		t.Errorf("%+v", by)
	}
	if w := send(grace, "DELETE", "/api/v1/actions/A-7", `{"why":"enough","who":"eve"}`); w.Code != 200 || by.Name != "grace" || !strings.Contains(w.Body.String(), "enough") {
		t.Errorf("%d %s %+v", w.Code, w.Body, by)
	}
	for is, status := range map[steer.Sort]int{steer.Bad: 400, steer.Unknown: 404, steer.Conflict: 409} {
		fails = steer.Problem{Is: is, Field: "subject", Text: "no such thing."}
		for _, w := range []*httptest.ResponseRecorder{send(nil, "POST", "/api/v1/actions", drain), send(nil, "DELETE", "/api/v1/actions/A-9", `{}`)} {
			if w.Code != status || !strings.Contains(w.Body.String(), "subject: no such thing.") {
				t.Errorf("%d: %d %s", is, w.Code, w.Body)
			}
		}
	}
	fails = nil
	if w := send(nil, "POST", "/api/v1/actions", `{"kind":"drain","target_name":"x"}`); w.Code != 400 || !strings.Contains(w.Body.String(), "target_name") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	viewer := &access.Person{Name: "vi", Role: access.View, Via: "key"}
	by = By{}
	for path, method := range map[string]string{
		"/api/v1/actions": "POST", "/api/v1/actions/A-1": "DELETE", "/api/v1/workloads/w/quarantine": "PUT", "/api/v1/changes": "POST",
	} {
		if w := send(viewer, method, path, `{"what":"x"}`); w.Code != 403 || !strings.Contains(w.Body.String(), "The role operate may") {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	}
	if by != (By{}) {
		t.Errorf("done all the same by %+v", by)
	}
	if w := send(viewer, "GET", "/api/v1/actions", ""); w.Code != 200 || strings.Count(w.Body.String(), `"id"`) != maxEnded || !strings.Contains(w.Body.String(), `"in_force": []`) {
		t.Errorf("%d", w.Code)
	}
	for query, want := range map[string]int{"": 200, "?limit=2&before=10": 200, "?limit=0": 400, "?limit=1001": 400, "?before=-1": 400, "?before=x": 400} {
		if w := send(viewer, "GET", "/api/v1/audit"+query, ""); w.Code != want {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := send(nil, "GET", "/api/v1/audit?limit=2&before=10", ""); before != 10 || most != 2 || !strings.Contains(w.Body.String(), `"before": 8`) {
		t.Errorf("%d %d %s", before, most, w.Body)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} { // the log is only added to, and not from here
		if w := send(nil, method, "/api/v1/audit", `{}`); w.Code != 405 {
			t.Errorf("%s of the audit log: %d", method, w.Code)
		}
	}
}
