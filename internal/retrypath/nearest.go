package retrypath

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/spelling"
	"github.com/hourthree/hourthree/internal/topology"
)

// nearest suggests workloads whose names resemble one.
func (x *Paths) nearest(name string) string {
	type near struct {
		name string
		d    int
	}
	var list []near
	all := x.startable()
	for _, o := range all {
		d := spelling.Distance(strings.ToLower(name), o.Name)
		if strings.Contains(o.Name, strings.ToLower(name)) {
			d = 1
		}
		if d <= max(2, len(name)/3) {
			list = append(list, near{topology.NameOf(o), d})
		}
	}
	slices.SortStableFunc(list, func(a, b near) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.name, b.name)) })
	if len(list) == 0 {
		if len(all) == 0 {
			return "; no workload was read"
		}
		return fmt.Sprintf("; %d workloads were read, such as %s", len(all), topology.NameOf(all[0]))
	}
	var nearest []string
	for _, n := range list[:min(len(list), 5)] {
		nearest = append(nearest, n.name)
	}
	return "; the nearest are " + strings.Join(nearest, ", ")
}
