package admin

import (
	"net/http"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
)

// External is a change that was made elsewhere: a deploy, or what a provider says
// of itself.
type External struct {
	At    *time.Time `json:"at"`    // now where nothing is said
	What  string     `json:"what"`  // the same text for the same change in several scopes
	Scope string     `json:"scope"` // a region, domain, target, model or workload; everything where nothing is said
	Who   string     `json:"who"`
}

// change serves POST of a change.
func (o Options) change(w http.ResponseWriter, r *http.Request) {
	var c External
	if !operates(w, r) || !order(w, r, &c) {
		return
	}
	now := time.Now()
	told := detect.Change{At: now, What: line(c.What), Scope: line(c.Scope), By: line(c.Who)}
	switch {
	case told.What == "":
		problem(w, http.StatusBadRequest, "what: say what was changed.")
		return
	case c.At != nil && c.At.After(now.Add(time.Minute)):
		problem(w, http.StatusBadRequest, "at: the time is in the future. Post a change when it is made.")
		return
	case c.At != nil:
		told.At = *c.At
	}
	o.Changed(told)
	w.WriteHeader(http.StatusNoContent)
}
