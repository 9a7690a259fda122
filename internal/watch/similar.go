package watch

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/incident"
)

// Similar is a public incident that looks like an outage.
type Similar struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Alike are the words of the library that fit both.
	Alike []string `json:"alike"`
	// Drills show it: hourthree drill run NAME.
	Drills []string `json:"drills"`
}

const (
	mostSimilar  = 3
	leastSimilar = 2 // words
)

// words are those of the library that fit what a detector finds.
var words = map[string][]string{
	detect.Drop:     {"high-error-rate", "intermittent-errors"},
	detect.Broken:   {"stream-drop", "wrong-output"},
	detect.In:       {"retry-amplification", "missing-backoff", "traffic-spike"},
	detect.Out:      {"retry-amplification"},
	detect.Mix:      {"high-error-rate"},
	detect.Relabel:  {"error-reclassification", "capacity-quota"},
	detect.Theirs:   {"client-4xx", "upstream-provider-fault"},
	detect.SlowerBy: {"high-latency"},
	detect.Left:     {"high-error-rate", "upstream-provider-fault"},
	detect.SloBurn:  {"high-error-rate"},
}

// describe puts an outage into words of the library.
func describe(o *detect.Outage) map[string]bool {
	out := map[string]bool{}
	for _, f := range o.Findings {
		for _, w := range words[f.Detector] {
			out[w] = true
		}
	}
	if o.Waves > 1 {
		out["recurring-waves"] = true
	}
	if o.State == detect.Unverified || o.Waves > 1 {
		out["false-recovery"] = true
	}
	if len(o.Suspects) > 0 {
		switch o.Suspects[0].Kind {
		case detect.Target, detect.Domain:
			out["upstream-provider-fault"] = true
		case detect.Cause:
			out["config-rollout"], out["code-rollout"] = true, true
		}
	}
	return out
}

// similar are the incidents that share most with an outage, rare words counting
// for more than frequent ones.
func (w *Watch) similar(o *detect.Outage) []Similar {
	list := []Similar{}
	if w.opt.Library == nil {
		return list
	}
	l, err := w.opt.Library()
	if err != nil { // it is reported where the library is served
		return list
	}
	type scored struct {
		Similar
		score float64
	}
	sought, all := describe(o), l.All()
	how := map[string]int{}
	for _, r := range all {
		for _, word := range tags(r) {
			how[word]++
		}
	}
	var found []scored
	for _, r := range all {
		s := scored{Similar: Similar{ID: r.ID, Title: r.Title, Drills: slices.Clone(r.Drills), Alike: []string{}}}
		for _, word := range tags(r) {
			if sought[word] {
				s.Alike = append(s.Alike, word)
				s.score += math.Log(float64(len(all)+1) / float64(how[word]))
			}
		}
		if len(s.Alike) >= leastSimilar {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.ID, b.ID))
	})
	for _, s := range found[:min(mostSimilar, len(found))] {
		list = append(list, s.Similar)
	}
	return list
}

func tags(r *incident.Record) []string { return slices.Concat(r.Tags.Causes, r.Tags.Symptoms) }
