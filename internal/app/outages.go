package app

import (
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/watch"
)

// watcher makes the part that notices outages.
func (a *App) watcher() *watch.Watch {
	return watch.New(watch.Options{
		Config: detect.Default(), Log: a.log, Found: a.metrics.Found, Noticed: a.opt.Noticed,
		Library: func() (*incident.Library, error) {
			l, err := a.incidents()
			if err != nil {
				return nil, err
			}
			return l.Library, nil
		},
	})
}

// topology is what belongs together in a snapshot.
func topology(targets []*route.Target, s *gateway.Snapshot) detect.Topology {
	t := detect.Topology{Targets: map[string]detect.Place{}, Models: map[string][]string{}}
	for _, one := range targets {
		spec := one.Spec()
		t.Targets[spec.Name] = detect.Place{Domain: spec.Domain, Region: spec.Region}
	}
	model := func(m *route.Model) {
		for _, e := range m.Entries {
			t.Models[m.Name] = append(t.Models[m.Name], e.Spec().Name)
		}
	}
	for _, m := range s.Models {
		model(m)
	}
	if s.Wildcard != nil {
		model(s.Wildcard)
	}
	for _, p := range s.Pass {
		model(p.Model)
	}
	return t
}
