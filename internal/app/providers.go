package app

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/provider"
	"github.com/hourthree/hourthree/internal/simulate"
)

// provider makes or finds the provider of a target. A provider with unchanged
// settings keeps its connections; simulated targets each have their own
// behaviour and so their own provider.
func (d *draft) provider(name string, t config.Target) (*provider.Provider, error) {
	p := d.config.Providers[name]
	key, behaviour := name, ""
	if p.Type == provider.Simulated {
		behaviour = fmt.Sprintf("%+v", behaviourOf(t, p))
		key = name + "\n" + t.Model + "\n" + behaviour
	}
	if s := d.providers[key]; s != nil {
		return s.provider, nil
	}
	spec := provider.Spec{
		Name: name, Type: p.Type, BaseURL: p.BaseURL, APIKey: p.APIKey.Reveal(), Auth: p.Auth, EntraScope: p.EntraScope,
		APIVersion: p.APIVersion, Vendor: p.Vendor, Region: p.Region, Domain: p.FailureDomain(name),
		ConnectTimeout: d.config.Defaults.Timeouts.Connect.Duration(),
	}
	for k, v := range p.Headers {
		if spec.Headers == nil {
			spec.Headers = map[string]string{}
		}
		spec.Headers[k] = v.Reveal()
	}
	if s := d.prior.providers[key]; s != nil && s.spec.Equal(spec) && s.simulate == behaviour {
		d.providers[key] = s
		return s.provider, nil
	}
	deps := provider.Deps{Dial: d.dial, RoundTripper: d.trip, UserAgent: d.agent}
	if p.Type == provider.Simulated {
		deps.RoundTripper = simulate.New(behaviourOf(t, p), rand.Float64)
	}
	made, err := provider.New(spec, deps)
	if err != nil {
		return nil, err
	}
	d.providers[key] = &spoken{spec: spec, simulate: behaviour, provider: made}
	return made, nil
}

// behaviourOf is how a simulated target behaves: as it says itself, else as its
// provider says, else by default.
func behaviourOf(t config.Target, p config.Provider) simulate.Options {
	s := config.DefaultSimulated()
	if said := cmp.Or(t.Simulated, p.Simulated); said != nil {
		s = *said
	}
	o := simulate.Options{
		FirstContent: s.FirstContent.Duration(), Jitter: s.Jitter, PerToken: s.PerToken.Duration(), Tokens: s.Tokens,
		Mode: s.Failure.Mode, Share: 1, RetryAfter: s.Failure.RetryAfter.Duration(), Concurrency: s.Concurrency, RPM: s.RPM,
	}
	if s.Failure.Share != nil {
		o.Share = *s.Failure.Share
	}
	return o
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func sortModels(m []admin.ModelState) {
	slices.SortFunc(m, func(a, b admin.ModelState) int { return cmp.Compare(a.Name, b.Name) })
}
