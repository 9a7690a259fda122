package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/steer"
)

// mostRows is how many targets or workloads a page shows; a filter finds the rest.
const mostRows = 100

type targetsPage struct {
	Filter  string
	All     int // that fit the filter
	Shown   int
	Domains []domain
	Plots   bool
	Can     bool // actions can be ordered
}

type domain struct {
	Name    string
	Down    int
	Targets []target
}

type target struct {
	route.State
	Down   bool
	Seen   int            // verdicts in its window
	Orders []steer.Action // in force, of it
}

func showTargets(o Options, f *frame, r *http.Request) (string, any) {
	v := targetsPage{Filter: filter(r.URL.Query()), Plots: o.History != nil, Can: f.May && o.Actions != nil}
	orders := map[string][]steer.Action{}
	inForce, _ := o.actions(f.Now)
	for _, a := range inForce {
		if a.Kind == steer.Drain || a.Kind == steer.ForceOpen || a.Kind == steer.ForceClosed {
			orders[a.Subject] = append(orders[a.Subject], a)
		}
	}
	var list []target
	for _, t := range f.State.Targets {
		if fits(v.Filter, t.Name, t.Domain, t.Region, t.Provider, t.Phase) {
			list = append(list, target{t, down(t), t.Breaker.OK + t.Breaker.Failed + t.Breaker.Slow, orders[t.Name]})
		}
	}
	v.All = len(list)
	slices.SortStableFunc(list, func(a, b target) int {
		return cmp.Or(cmp.Compare(trouble(b), trouble(a)), cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(b.Seen, a.Seen), strings.Compare(a.Name, b.Name))
	})
	list = list[:min(len(list), mostRows)]
	v.Shown = len(list)
	// Domains stay where they are while their targets change: only names order them.
	for _, t := range list {
		i := slices.IndexFunc(v.Domains, func(d domain) bool { return d.Name == t.Domain })
		if i < 0 {
			i = len(v.Domains)
			v.Domains = append(v.Domains, domain{Name: t.Domain})
		}
		d := &v.Domains[i]
		d.Targets = append(d.Targets, t)
		if t.Down {
			d.Down++
		}
	}
	slices.SortFunc(v.Domains, func(a, b domain) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range v.Domains {
		slices.SortFunc(d.Targets, func(a, b target) int { return strings.Compare(a.Name, b.Name) })
	}
	return "Targets", v
}

// trouble orders targets by how much they need somebody to look at them.
func trouble(t target) int {
	n := t.PhaseNumber * 2
	if t.Down {
		n++
	}
	if t.CoolUntil != nil || len(t.Orders) > 0 {
		n++
	}
	return n
}
