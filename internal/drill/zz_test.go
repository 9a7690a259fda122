package drill

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	data, err := os.ReadFile("drills/" + os.Getenv("ZZ") + ".yaml")
	if err != nil {
		t.Skip()
	}
	s, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range strings.Split(os.Getenv("ZC"), ",") {
		r, err := Play(s, Options{Contenders: []string{n}, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		run := r.Runs[0]
		fmt.Printf("%s took %v inbound %d upstream %d\n", n, run.Took, run.Totals.Inbound, run.Totals.Upstream)
		for _, j := range run.Criteria {
			fmt.Println("  ", j.Met, j.Value, j.Name)
		}
		if os.Getenv("ZV") != "" {
			for i := range run.Workloads[0].Steps {
				at := float64(i) * run.Step.Seconds()
				g := run.Gateways
				fmt.Printf("%5.0f", at)
				for _, w := range run.Workloads {
					c := w.Steps[i]
					fmt.Printf(" | %s f%d g%d r%d l%d in%d up%d p99 %.0f", w.Name, c.Fresh, c.Good, c.Refused, c.Late, c.Inbound, c.Upstream, w.P99[i])
				}
				for _, x := range g {
					fmt.Printf(" | c%d fl%d ld%.2f m%.2f %v", x.Steps[i].Calls, x.Steps[i].InFlight, x.Steps[i].Load, x.Steps[i].Memory, x.Steps[i].Down)
				}
				fmt.Println()
			}
		}
	}
}
