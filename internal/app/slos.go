package app

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/telemetry"
)

// objectives are a configuration's, by name.
func objectives(c *config.Config) (out []detect.SLO) {
	for _, name := range slices.Sorted(maps.Keys(c.SLOs)) {
		s := c.SLOs[name]
		out = append(out, detect.SLO{
			Name: name, Model: s.Model, Workload: s.Workload, Objective: s.Objective,
			Window: cmp.Or(s.Window, config.DefaultSLO().Window).Duration(), FirstContent: s.FirstContent.Duration(),
		})
	}
	return out
}

// burning is what the metrics say of the objectives.
func (a *App) burning() (out []telemetry.SLOReading) {
	for _, b := range a.watch.Budgets() {
		r := telemetry.SLOReading{Name: b.Name, Left: b.Left, Rates: map[string]float64{}}
		for _, w := range b.Burns {
			r.Rates[w.Window] = w.Rate
		}
		out = append(out, r)
	}
	return out
}
