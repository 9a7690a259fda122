package peer

import (
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// readBifrost reads a config.json: each provider is a route, callers name the
// fallbacks.
func readBifrost(r *reader) {
	root := r.root()
	r.secrets(root.at("governance"), 0)
	list := root.at("providers")
	for _, name := range list.keys() {
		p := list.at(name)
		for _, k := range p.at("keys").list() {
			r.secret(k.at("value").str(), k.at("value").spot())
		}
		r.secrets(p, 0)
		r.add(bifrostRoute(root, p, name, len(list.keys())))
	}
}

func bifrostRoute(root, p node, name string, providers int) Route {
	net := p.at("network_config")
	host := hostOf(net.at("base_url").str())
	t := Target{Name: name, Provider: name, Host: host, Spot: p.spot()}
	if own, region := locate(host); own != "" {
		t.Provider, t.Region = own, region
	}
	count := plus(net.at("max_retries").count(0), 1)
	route := Route{
		Name: name, Spot: p.spot(), Models: "is a provider of Bifrost", Targets: []Target{t}, More: providers > 1,
		Retry: Retry{
			Spot: count.Spot, Attempts: attempts(count, layers.Classes()...),
			Backoff:  net.at("retry_backoff_initial").span(time.Millisecond, 500*time.Millisecond),
			Repeated: byDefault(true, count.Spot),
		},
		Timers: Timers{PerTry: net.at("default_request_timeout_in_seconds").span(time.Second, 30*time.Second)},
		Limits: bifrostLimits(root),
	}
	route.Bounds.Pending = p.at("concurrency_and_buffer_size", "buffer_size").count(5000)
	if drop, _ := root.at("client", "drop_excess_requests").bool(); !drop {
		// Behind a full queue callers wait without a bound.
		route.Bounds.Wait = Value[time.Duration]{State: Default, Spot: root.at("client", "drop_excess_requests").spot()}
	}
	return route
}

// bifrostLimits: limits belong to virtual keys, and count for all only where a
// key is asked for.
func bifrostLimits(root node) Limits {
	keys := root.at("governance", "virtual_keys")
	if !keys.is() {
		return Limits{Spot: root.at("governance").spot()}
	}
	for _, k := range keys.list() {
		if !k.at("rate_limit").is() && !k.at("rate_limit_id").is() {
			continue
		}
		l := Limits{Any: set(true, k.spot()), Spot: k.spot()}
		if on, _ := root.at("client").first("enforce_auth_on_inference", "enforce_governance_header").bool(); !on {
			l.Only, l.Spot = "callers that send a virtual key", root.at("client", "enforce_auth_on_inference").spot()
		}
		return l
	}
	return Limits{Any: set(false, keys.spot()), Spot: keys.spot()}
}
