package config

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	maxSLOs               = 64
	leastBudget, mostTime = 24 * time.Hour, 2160 * time.Hour
)

// slos checks the objectives.
func (k *checker) slos() {
	if n := len(k.c.SLOs); n > maxSLOs {
		k.error("slos", fmt.Sprintf("has %d objectives, and %d are watched at most", n, maxSLOs), "keep those that somebody would get up for")
	}
	callers := slices.Sorted(maps.Keys(k.c.Workloads))
	if len(callers) == 0 {
		callers = []string{"open"} // it serves everybody
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.SLOs)) {
		s, path := k.c.SLOs[name], "slos."+name
		k.known(path+".model", "model", s.Model, k.models)
		k.known(path+".workload", "workload", s.Workload, callers)
		if w, ok := k.c.Workloads[s.Workload]; ok && s.Model != "" && len(w.Models) > 0 && !slices.Contains(w.Models, s.Model) {
			k.error(path+".model", "is one that the workload may not use", "add it to the workload's models, or name another")
		}
		if t := s.Window.Duration(); t < leastBudget || t > mostTime {
			k.error(path+".window", fmt.Sprintf("must be %s to %s", Duration(leastBudget), Duration(mostTime)), "")
		}
		if total := k.c.Defaults.Timeouts.Total; s.FirstContent >= total && total > 0 {
			k.error(path+".first_content", fmt.Sprintf("is not shorter than defaults.timeouts.total, %s: no answer could miss it", total), "")
		}
	}
}
