package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
)

// TestOutageIsNoticed: through the whole router, a workload whose callers repeat
// what fails is named as the source within a minute, what the rule did about it is
// on the list of actions and not said to have ended it, and the metrics show it.
func TestOutageIsNoticed(t *testing.T) {
	u1 := upstream("u1", after(50*time.Millisecond, answers("fine")))
	run(t, two(u1), func(r *rig) {
		ask1 := func(copies int) {
			for i := range copies {
				r.do(ask{headers: []string{"X-Stainless-Retry-Count", fmt.Sprint(i)}})
			}
			r.do(ask{key: otherKey})
		}
		for range 300 {
			ask1(1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := r.app.watch.Open(); n != 0 {
			t.Fatalf("%d outages in good health", n)
		}
		began := time.Now()
		for time.Since(began) < time.Minute {
			ask1(30)
			time.Sleep(100 * time.Millisecond)
		}
		report := r.app.watch.Report(time.Now())
		if report.Open != 1 || len(report.Outages) != 1 {
			t.Fatalf("%+v", report)
		}
		o := report.Outages[0]
		if len(o.Suspects) == 0 || o.Suspects[0].Subject != (detect.Subject{Kind: detect.Workload, Name: "team"}) {
			t.Errorf("suspects: %+v", o.Suspects)
		}
		if !slices.ContainsFunc(o.Timeline, func(m detect.Moment) bool {
			return strings.HasPrefix(m.What, "source: workload team") && m.At.Sub(began) < time.Minute
		}) {
			t.Errorf("not named: %+v", o.Timeline)
		}
		if !slices.ContainsFunc(o.Actions, func(a detect.Action) bool {
			return a.What == "quarantine" && a.Scope == "team" && a.Effect == detect.NotShown
		}) {
			t.Errorf("actions: %+v", o.Actions)
		}
		if r.app.reading(time.Now()).Outages != 1 {
			t.Error("the metrics do not show it")
		}
	})
}
