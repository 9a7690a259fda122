package app

import (
	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/route"
)

func limitsOf(l config.Limits) admit.Limits {
	return admit.Limits{RPM: l.RPM, TPM: l.TPM, Concurrency: l.Concurrency, USDPerDay: admit.USD(l.USDPerDay)}
}

// quotas finds the limits of models again, by name, or makes them. A model that
// has none any more keeps its limiter: requests are inside.
func (d *draft) quotas() gateway.Quotas {
	q := gateway.Quotas{Models: map[string]*admit.Limiter{}, Before: map[string]*admit.Limiter{}, Dearest: map[string]admit.Price{}, Prices: map[string]admit.Price{}}
	for name, m := range d.config.Models {
		limits := limitsOf(m.Limits)
		if l := d.prior.limits[name]; l != nil {
			q.Models[name] = l
		} else if limits.Any() {
			q.Models[name] = admit.NewLimiter(admit.OfModel, limits)
		}
	}
	return q
}

// prices notes what targets charge, and for each model what a request may cost
// at most: at the dearest target of the model, its last resort and its
// fallbacks.
func (d *draft) prices() {
	q := &d.snapshot.Quotas
	for public, c := range d.config.Models {
		for _, t := range c.Targets {
			if t.Price != nil {
				input, cached, output := t.Price.Prices()
				q.Prices[targetName(public, t)] = admit.Price{Input: input, Cached: cached, Output: output}
			}
		}
	}
	for name, m := range d.models {
		if price := dearest(q.Prices, m); price != (admit.Price{}) {
			q.Dearest[name] = price
		}
	}
}

func dearest(prices map[string]admit.Price, m *route.Model) (p admit.Price) {
	if m == nil {
		return p
	}
	for _, e := range m.Entries {
		p = p.Dearest(prices[e.Spec().Name])
	}
	p = p.Dearest(dearest(prices, m.Fallback)) // circles are refused
	for _, f := range m.Policy {
		p = p.Dearest(dearest(prices, f))
	}
	return p
}

// modelOf is what a target of a public model asks its provider for; "" is
// whatever name was asked for.
func modelOf(public string, t config.Target) string {
	switch {
	case t.Model == "*" || t.Model == "" && public == "*":
		return ""
	case t.Model == "":
		return public
	}
	return t.Model
}

func targetName(public string, t config.Target) string {
	if m := modelOf(public, t); m != "" {
		return t.Provider + "/" + m
	}
	return t.Provider + "/*"
}
