package admin

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/steer"
)

// By is who asks for a change.
type By struct{ Name, Role, Via string }

// Actions are those of operators.
type Actions struct {
	InForce []steer.Action `json:"in_force"` // the newest first
	Ended   []steer.Action `json:"ended"`    // lately, likewise
}

// maxEnded is how many actions that have ended are told at once.
const maxEnded = 100

// ActionsOf bounds what is told.
func ActionsOf(inForce, ended []steer.Action) Actions {
	return Actions{InForce: append([]steer.Action{}, inForce...), Ended: append([]steer.Action{}, ended[:min(len(ended), maxEnded)]...)}
}

// AuditPage is a piece of the audit log.
type AuditPage struct {
	Entries []steer.Entry `json:"entries"` // the newest first
	// Before asks for the next piece; 0 when there is none.
	Before int64 `json:"before,omitempty"`
}

// maxEntries bounds a piece of the audit log.
const (
	maxEntries     = 1000
	usuallyEntries = 100
)

// steering serves the actions and the audit log, as far as there are any.
func (o Options) steering(mux *http.ServeMux) {
	mux.HandleFunc("PUT /api/v1/workloads/{name}/quarantine", o.lane)
	mux.HandleFunc("DELETE /api/v1/workloads/{name}/quarantine", o.lane)
	if o.Actions != nil {
		mux.HandleFunc("GET /api/v1/actions", func(w http.ResponseWriter, _ *http.Request) { data(w, o.Actions(time.Now())) })
	}
	if o.Order != nil {
		mux.HandleFunc("POST /api/v1/actions", o.order)
	}
	if o.Undo != nil {
		mux.HandleFunc("DELETE /api/v1/actions/{id}", o.undo)
	}
	if o.Audit != nil {
		mux.HandleFunc("GET /api/v1/audit", o.audit)
	}
}

// operates refuses who may only look.
func operates(w http.ResponseWriter, r *http.Request) bool {
	if p := access.From(r.Context()); p.Role != access.Operate {
		problem(w, http.StatusForbidden, line(p.Name)+" may view, and not change anything. The role operate may.")
		return false
	}
	return true
}

// byOf is who asks, and says to be somebody.
func byOf(r *http.Request, says string) By {
	p := access.From(r.Context())
	return By{Name: asker(r, says), Role: string(p.Role), Via: p.Via}
}

// order serves POST of an action.
func (s Steering) order(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		steer.Order
		Who string `json:"who"`
	}
	if !operates(w, r) || !order(w, r, &asked) {
		return
	}
	asked.Why = line(asked.Why)
	taken, err := s.Order(asked.Order, byOf(r, asked.Who))
	if err != nil {
		unable(w, err)
		return
	}
	w.Header().Set("Location", "/api/v1/actions/"+taken.ID)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	data(w, taken)
}

// undo serves DELETE of an action.
func (s Steering) undo(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Why string `json:"why"`
		Who string `json:"who"`
	}
	if !operates(w, r) || !order(w, r, &asked) {
		return
	}
	undone, err := s.Undo(r.PathValue("id"), byOf(r, asked.Who), line(asked.Why))
	if err != nil {
		unable(w, err)
		return
	}
	data(w, undone)
}

// unable answers an order that is not taken.
func unable(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	var p steer.Problem
	switch errors.As(err, &p); p.Is {
	case steer.Unknown:
		status = http.StatusNotFound
	case steer.Conflict:
		status = http.StatusConflict
	}
	problem(w, status, err.Error())
}

// audit serves a piece of the audit log.
func (s Steering) audit(w http.ResponseWriter, r *http.Request) {
	before, ok := whole(r, "before", 0, 1<<62)
	most, fits := whole(r, "limit", usuallyEntries, maxEntries)
	switch {
	case !ok:
		problem(w, http.StatusBadRequest, "before: give the id of an entry; those below it come.")
		return
	case !fits || most == 0:
		problem(w, http.StatusBadRequest, "limit: give a number from 1 to 1000.")
		return
	}
	list, err := s.Audit(before, int(most))
	if err != nil {
		problem(w, http.StatusInternalServerError, "The audit log cannot be read: "+err.Error())
		return
	}
	page := AuditPage{Entries: list}
	if n := len(list); n > 0 && n == int(most) && list[n-1].ID > 1 {
		page.Before = list[n-1].ID
	}
	data(w, page)
}

// whole reads a number of the query, from 0 to most.
func whole(r *http.Request, name string, usual, most int64) (n int64, ok bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && n <= most
}
