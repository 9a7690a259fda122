package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/workload"
)

type workloadsPage struct {
	Filter  string
	All     int
	Shown   int
	Rows    []caller
	Plots   bool
	Rates   bool
	Can     bool // actions can be ordered
	Without []string
}

type caller struct {
	workload.State
	Quarantined   bool
	Offered, Good *float64 // a second, over the last minute
	Bounds        []admin.Bound
	Orders        []steer.Action
}

// mostRates bounds how many workloads the past is asked about for one page.
const mostRates = 50

func showWorkloads(o Options, f *frame, r *http.Request) (string, any) {
	v := workloadsPage{Filter: filter(r.URL.Query()), Plots: o.History != nil, Can: f.May && o.Actions != nil}
	limits := o.Limits(f.Now)
	v.Without = limits.Without[:min(len(limits.Without), 20)]
	bounds := map[string][]admin.Bound{}
	for _, b := range limits.Bounds {
		name := cmp.Or(b.Workload, b.Name)
		if (b.Level == "workload" || b.Workload != "") && !b.NoLimit && len(bounds[name]) < 4 {
			bounds[name] = append(bounds[name], b)
		}
	}
	orders := map[string][]steer.Action{}
	inForce, _ := o.actions(f.Now)
	for _, a := range inForce {
		switch name, ok := strings.CutPrefix(a.Subject, "workload:"); {
		case a.Kind == steer.Quarantine:
			orders[a.Subject] = append(orders[a.Subject], a)
		case a.Kind == steer.Budget && ok:
			orders[name] = append(orders[name], a)
		}
	}
	for _, w := range f.State.Workloads {
		if fits(v.Filter, w.Name, w.Priority, string(w.Lane.Lane)) {
			v.Rows = append(v.Rows, caller{State: w, Quarantined: w.Lane.Lane == workload.Quarantine, Bounds: bounds[w.Name], Orders: orders[w.Name]})
		}
	}
	v.All = len(v.Rows)
	slices.SortStableFunc(v.Rows, func(a, b caller) int {
		return cmp.Or(cmp.Compare(odd(b), odd(a)), cmp.Compare(b.Inbound, a.Inbound), strings.Compare(a.Name, b.Name))
	})
	v.Rows = v.Rows[:min(len(v.Rows), mostRows)]
	v.Shown = len(v.Rows)
	v.Rates = o.rates(f.Now, v.Rows)
	return "Workloads", v
}

// odd puts workloads that somebody moved before the others.
func odd(c caller) int {
	n := 0
	if c.Quarantined {
		n += 2
	}
	if len(c.Orders) > 0 {
		n++
	}
	return n
}

// rates asks what the workloads bring in and what they get, over the last minute.
func (o Options) rates(now time.Time, rows []caller) bool {
	if o.History == nil {
		return false
	}
	for i := range rows[:min(len(rows), mostRates)] {
		a, err := o.History(now, history.Query{From: now.Add(-time.Minute), To: now, Series: []string{"offered", "goodput"}, Subject: "workload:" + rows[i].Name})
		if err != nil {
			continue // its cell says that nothing is known
		}
		for _, s := range a.Series {
			switch s.Name {
			case "offered":
				rows[i].Offered = mean(s.Values)
			case "goodput":
				rows[i].Good = mean(s.Values)
			}
		}
	}
	return true
}

// mean of what is known, nil for nothing.
func mean(values []*float64) *float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	sum /= float64(n)
	return &sum
}
