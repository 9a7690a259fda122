package rollout

import (
	"cmp"
	"slices"

	"github.com/hourthree/hourthree/internal/event"
)

// Exposure is who is served by which version. It is immutable: requests read it
// while the rollout makes the next.
type Exposure struct {
	all     bool            // everybody, known or not
	whole   map[string]bool // workloads that the new version serves
	split   string          // the one that it serves in part, "" for none
	part    float64         // of its requests
	rest    float64         // of everybody's requests: where no traffic was known
	regions map[string]bool // whose targets are the new version's, nil for all
}

// Arm is the version that serves a request of a workload. u is from [0,1): drawn
// for each request or, so that a caller keeps its version, made from the caller. A
// request keeps its arm to its end.
func (e *Exposure) Arm(workload string, u float64) event.Arm {
	switch {
	case e == nil:
		return event.NoArm
	case e.all, u < e.rest, e.whole[workload], workload == e.split && u < e.part:
		return event.Candidate
	}
	return event.Control
}

// Reaches reports that calls at targets of a region see the new version.
func (e *Exposure) Reaches(region string) bool { return e.regions == nil || e.regions[region] }

// both reports that a workload may have requests of both versions at the same
// time.
func (e *Exposure) both(workload string) bool {
	return e.regions != nil || !e.all && !e.whole[workload]
}

// exposed are the workloads that the new version serves whole, by name.
func (e *Exposure) exposed() []string { return sorted(e.whole) }

func sorted(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// widen returns the exposure of a stage: whoever is exposed stays so, and others
// join until the share of the traffic is reached. Workloads join in the order of a
// hash, whole, as long as they fit in what is left of the share: the largest come
// last. What is left then goes to one that does not fit, as a share of its
// requests. Workloads without traffic join by their hash alone.
func (e *Exposure) widen(version string, s Stage, t Traffic) *Exposure {
	n := &Exposure{all: e.all, whole: map[string]bool{}, split: e.split, part: e.part, rest: e.rest, regions: e.wider(s)}
	for w := range e.whole {
		n.whole[w] = true
	}
	if n.all || s.Share >= 1 {
		n.all, n.split, n.part = true, "", 0
		for w := range t.Workloads {
			n.whole[w] = true
		}
		return n
	}
	if n.split != "" && t.Workloads[n.split] <= 0 {
		n.whole[n.split], n.split, n.part = true, "", 0 // nothing comes of it
	}
	total, left := 0.0, 0.0
	order := inOrder(version, t)
	for _, w := range order {
		total += w.rate
		left -= w.rate * n.share(w.name)
	}
	if left += s.Share * total; total <= 0 {
		n.rest = max(n.rest, s.Share)
	}
	for _, w := range order {
		need := w.rate * (1 - n.share(w.name))
		switch {
		case n.whole[w.name]:
		case w.rate <= 0 && w.u < s.Share, w.rate > 0 && need <= left*(1+1e-9):
			n.whole[w.name] = true
			left -= need
			if n.split == w.name {
				n.split, n.part = "", 0
			}
		}
	}
	if left > 0.01*s.Share*total {
		n.divide(order, left)
	}
	return n
}

// wider are the regions that a stage adds; none is taken away.
func (e *Exposure) wider(s Stage) map[string]bool {
	if len(s.Regions) == 0 || e.regions == nil && e.any() {
		return nil
	}
	out := map[string]bool{}
	for r := range e.regions {
		out[r] = true
	}
	for _, r := range s.Regions {
		out[r] = true
	}
	return out
}

// any reports that somebody is exposed.
func (e *Exposure) any() bool { return e.all || len(e.whole) > 0 || e.split != "" || e.rest > 0 }

// divide gives what is left of a share to one workload: the one that is divided
// already, or the smallest of those that do not fit.
func (e *Exposure) divide(order []load, left float64) {
	var one *load
	for i := range order {
		w := &order[i]
		switch {
		case w.rate <= 0 || e.whole[w.name]:
		case w.name == e.split:
			one = w
		case e.split == "" && (one == nil || w.rate < one.rate):
			one = w
		}
	}
	if one == nil {
		return
	}
	e.part = min(1, e.share(one.name)+left/one.rate)
	e.split = one.name
}

// share is how much of a workload is exposed, 0 to 1.
func (e *Exposure) share(workload string) float64 {
	switch {
	case e.all || e.whole[workload]:
		return 1
	case workload == e.split:
		return max(e.part, e.rest)
	}
	return e.rest
}

type load struct {
	name string
	rate float64
	u    float64 // of its hash, in [0,1)
}

func inOrder(version string, t Traffic) []load {
	out := make([]load, 0, len(t.Workloads))
	for name, rate := range t.Workloads {
		out = append(out, load{name, max(0, rate), unit(version + "\x00" + name)})
	}
	slices.SortFunc(out, func(a, b load) int { return cmp.Or(cmp.Compare(a.u, b.u), cmp.Compare(a.name, b.name)) })
	return out
}

// unit turns a text into a number of [0,1): FNV-1a, mixed so that texts that
// differ in their last letter lie apart.
func unit(s string) float64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return float64(mix(h)>>11) / (1 << 53)
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// RegionStages are the stages of a rollout by regions: each adds one to those
// before, the one with the least traffic first, and the last is everything.
func RegionStages(t Traffic) []Stage {
	order := inOrder("", Traffic{Workloads: t.Regions})
	slices.SortStableFunc(order, func(a, b load) int { return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.name, b.name)) })
	var out []Stage
	var names []string
	for _, r := range order[:max(0, len(order)-1)] {
		names = append(names, r.name)
		out = append(out, Stage{Share: 1, Regions: slices.Clone(names)})
	}
	return append(out, Stage{Share: 1})
}
