package admin

import (
	"fmt"
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
	// Dose is how much of its scope has the change from then on, above 0 and up to 1.
	Dose *float64 `json:"dose"`
	// Reverts is the what of the change that this one takes back.
	Reverts string `json:"reverts"`
}

// Budgets are the objectives with what is left of their budgets.
type Budgets struct {
	At   time.Time       `json:"at"`
	SLOs []detect.Budget `json:"slos"`
}

func slos(now time.Time, list []detect.Budget) Budgets {
	if list == nil {
		list = []detect.Budget{}
	}
	return Budgets{At: now, SLOs: list}
}

// change serves POST of a change.
func (o Options) change(w http.ResponseWriter, r *http.Request) {
	var c External
	if !operates(w, r) || !order(w, r, &c) {
		return
	}
	now := time.Now()
	by := byOf(r, c.Who)
	told := detect.Change{At: now, What: line(c.What), Scope: line(c.Scope), By: by.Name, Reverts: line(c.Reverts)}
	switch {
	case told.What == "":
		problem(w, http.StatusBadRequest, "what: say what was changed.")
		return
	case c.At != nil && c.At.After(now.Add(time.Minute)):
		problem(w, http.StatusBadRequest, "at: the time is in the future. Post a change when it is made.")
		return
	case c.Dose != nil && !(*c.Dose > 0 && *c.Dose <= 1):
		problem(w, http.StatusBadRequest, fmt.Sprintf("dose: %v is not above 0 and up to 1. For a change that is taken back post another with reverts.", *c.Dose))
		return
	case told.Reverts == told.What:
		problem(w, http.StatusBadRequest, "reverts: the change cannot take back itself. Say in what that it is taken back.")
		return
	}
	if c.At != nil {
		told.At = *c.At
	}
	if c.Dose != nil {
		told.Dose = *c.Dose
	}
	o.Changed(told, by)
	w.WriteHeader(http.StatusNoContent)
}
