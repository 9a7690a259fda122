package app

import (
	"net/http"

	"github.com/hourthree/hourthree/internal/dashboard"
)

// dashboard makes the pages of the operator's listener from what the rooms know.
func (a *App) dashboard() http.Handler {
	return dashboard.Handler(dashboard.Options{
		State: a.state, Limits: a.limits, Outages: a.watch.Report, Objectives: a.watch.Budgets, Actions: a.actions, Audit: a.entries, Rollout: a.RolloutStatus,
		History: a.past.answers(), Totals: a.past.sums(), Incidents: true,
	})
}
