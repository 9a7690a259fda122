package app

import (
	"strings"
	"testing"
	"time"
)

// TestObjectives: through the whole router, answers that begin later than an objective
// lets burn its budget; it is told with its outage, in the metrics too, and an
// objective of the same requests without a bound in time is not.
func TestObjectives(t *testing.T) {
	u1 := upstream("u1", after(2*time.Second, answers("fine")))
	s := two(u1)
	s.more += "slos:\n  late: {workload: team, objective: 0.999, first_content: 1s}\n  any: {model: m, objective: 0.99}\n"
	run(t, s, func(r *rig) {
		for range 80 {
			if got := r.do(ask{}); got.status != 200 {
				t.Fatalf("%+v", got)
			}
		}
		time.Sleep(2 * time.Second)
		budgets := r.app.watch.Budgets()
		if len(budgets) != 2 || budgets[0].Name != "any" || budgets[0].Good != 80 || budgets[0].Burning != "" || budgets[0].Left != 1 {
			t.Fatalf("%+v", budgets)
		}
		late := budgets[1]
		if late.Bad != 80 || late.Burning != "page" || late.Outage != "O-1" || late.Left >= 1 || late.Window != "30d" {
			t.Errorf("%+v", late)
		}
		if api := r.operator("/api/v1/slos"); !strings.Contains(api, `"burning": "page"`) || !strings.Contains(api, `"first_content_seconds": 1`) {
			t.Error(api)
		}
		if api := r.operator("/api/v1/verdict"); !strings.Contains(api, `"who":`) || !strings.Contains(api, `"text":`) {
			t.Errorf("the first sentence is not served: %s", api)
		}
		page := r.operator("/metrics")
		for _, want := range []string{
			`hourthree_slo_burn_rate{slo="any",window="5m"} 0`, `hourthree_slo_burn_rate{slo="late",window="3d"} 999.99`, `hourthree_slo_budget_left_ratio{slo="any"} 1`,
			`hourthree_findings_total{detector="slo_burn"} 1`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s is not in the metrics", want)
			}
		}
		if all := r.operator("/api/v1/outages"); !strings.Contains(all, "SLO late burns its budget") || !strings.Contains(all, `"slo": "late"`) {
			t.Error(all)
		}
	})
}
