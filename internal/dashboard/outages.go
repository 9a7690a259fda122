package dashboard

import (
	"net/http"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/watch"
)

// mostOutages is how many the list has, the newest first.
const mostOutages = 50

type outagesPage struct {
	Open, Over []watch.Outage
	Hidden     int
}

func showOutages(o Options, f *frame, _ *http.Request) (string, any) {
	v := outagesPage{}
	all := o.Outages(f.Now).Outages
	v.Hidden = max(0, len(all)-mostOutages)
	for _, one := range all[:len(all)-v.Hidden] {
		if one.Ended == nil {
			v.Open = append(v.Open, one)
		} else {
			v.Over = append(v.Over, one)
		}
	}
	return "Outages", v
}

type outagePage struct {
	watch.Outage
	Lead   *detect.Suspect
	Others []detect.Suspect
	Top    float64 // of the loads: the length of a full bar
}

func showOutage(o Options, f *frame, r *http.Request) (string, any) {
	for _, one := range o.Outages(f.Now).Outages {
		if one.ID != r.PathValue("id") {
			continue
		}
		v := outagePage{Outage: one}
		if len(one.Suspects) > 0 {
			v.Lead, v.Others = &one.Suspects[0], one.Suspects[1:]
		}
		for _, l := range one.Load {
			v.Top = max(v.Top, l.Onset, l.Now)
		}
		return one.ID, v
	}
	return "", nil
}

// Part is a load as a share of the longest bar.
func (p outagePage) Part(load float64) float64 { return load / max(p.Top, 1e-9) }

// Of is the load now as a share of that at onset.
func (p outagePage) Of(l detect.Load) float64 { return l.Now / l.Onset }
