package peer

import (
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// readLiteLLM reads a proxy's config.yaml. Its router is the only loop: it tells
// the provider's client to make no repeats of its own.
func readLiteLLM(r *reader) {
	root := r.root()
	r.secrets(root, 0)
	groups := map[string][]node{}
	var names []string
	for _, m := range root.at("model_list").list() {
		name := m.at("model_name").str()
		if name == "" {
			continue
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], m)
	}
	for _, name := range names {
		route := Route{Name: name, Spot: groups[name][0].at("model_name").spot(), Models: "is a model of LiteLLM"}
		for _, m := range groups[name] {
			route.Targets = append(route.Targets, deployment(m))
		}
		litellmRoute(root, groups[name], &route)
		r.add(route)
	}
}

// deployment is one entry of model_list.
func deployment(m node) Target {
	p := m.at("litellm_params")
	t := Target{Name: m.at("model_name").str(), Spot: m.spot(), Host: hostOf(p.first("api_base", "base_url").str())}
	t.Provider, t.Model, _ = strings.Cut(p.at("model").str(), "/")
	if t.Model == "" {
		t.Provider, t.Model = p.at("custom_llm_provider").str(), t.Provider
	}
	if own, region := locate(t.Host); own != "" {
		t.Provider, t.Region = own, region
	}
	if set := p.first("region_name", "aws_region_name", "vertex_location").str(); set != "" && !strings.Contains(set, "os.environ/") {
		t.Region = set
	}
	return t
}

// litellmRoute fills in what the router does for a group of deployments.
func litellmRoute(root node, deployments []node, route *Route) {
	router, module := root.at("router_settings"), root.at("litellm_settings")
	route.Retry = litellmRetry(router, module, deployments)
	route.Timers = litellmTimers(router, module, deployments)
	route.Breaker = litellmBreaker(router, len(deployments))
	route.Bounds.Pending = litellmPending(root, deployments)
	route.Limits = Limits{Spot: router.spot()} // keys and teams are kept in its database
	for _, s := range []node{router, module} {
		for _, f := range s.at("fallbacks").list() {
			for _, to := range f.at(route.Name).list() {
				route.Fallbacks = append(route.Fallbacks, Fallback{To: fallbackName(to), Spot: to.spot()})
			}
		}
	}
	if len(route.Fallbacks) > 0 {
		return
	}
	for _, s := range []node{router, module} {
		for _, to := range s.at("default_fallbacks").list() {
			if to.str() != route.Name {
				route.Fallbacks = append(route.Fallbacks, Fallback{To: to.str(), Spot: to.spot()})
			}
		}
	}
}

func fallbackName(n node) string {
	if name := n.at("model").str(); name != "" {
		return name
	}
	return n.str()
}

// policies are the names of the exceptions of a retry policy, by class.
var policies = map[layers.Class][]string{
	layers.Connect:  {"InternalServerErrorRetries"},
	layers.Reset:    {"TimeoutErrorRetries"},
	layers.Server:   {"InternalServerErrorRetries"},
	layers.Capacity: {"RateLimitErrorRetries"},
}

// litellmRetry reads the number of repeats. Documentation gives both 0 and 2 for
// what is not set: it is unknown.
func litellmRetry(router, module node, deployments []node) Retry {
	n := router.at("num_retries")
	if !n.is() && module.at("num_retries").is() {
		n = module.at("num_retries")
	}
	count := unknown[int](n)
	if n.is() {
		count = plus(n.count(0), 1)
	}
	for _, d := range deployments { // a deployment's own number wins
		if own := d.at("litellm_params", "num_retries"); own.is() {
			if v := plus(own.count(0), 1); !count.Known() || v.V > count.V {
				count = v
			}
		}
	}
	out := Retry{
		Spot: count.Spot, Attempts: attempts(count, layers.Classes()...),
		Backoff:  byDefault(500*time.Millisecond, router.at("retry_after").spot()),
		Repeated: byDefault(true, count.Spot),
	}
	for class, names := range policies {
		for _, name := range names {
			if p := router.at("retry_policy", name); p.is() {
				out.Attempts[class] = plus(p.count(0), 1)
			}
		}
	}
	for _, class := range layers.Classes() {
		if v := out.Attempts[class]; v.Known() && v.V > 1 {
			out.On = append(out.On, string(class))
		}
	}
	return out
}

func litellmTimers(router, module node, deployments []node) Timers {
	total := router.at("timeout")
	if !total.is() {
		total = module.at("request_timeout")
	}
	for _, d := range deployments {
		if own := d.at("litellm_params").first("timeout", "request_timeout"); own.is() {
			total = own
			break
		}
	}
	t := Timers{PerTry: unknown[time.Duration](total), Idle: unknown[time.Duration](router.at("stream_timeout"))}
	if total.is() {
		t.PerTry = total.span(time.Second, 0)
	}
	return t
}

// litellmBreaker is the cool-down: a number of failures within a minute.
func litellmBreaker(router node, hosts int) Breaker {
	b := Breaker{Kind: byDefault(Consecutive, router.at("allowed_fails").spot()), Hosts: hosts}
	if off, ok := router.at("disable_cooldowns").bool(); ok && off {
		b.Kind = set(None, router.at("disable_cooldowns").spot())
	}
	if f := router.at("allowed_fails"); f.is() {
		v := f.count(0)
		b.Threshold = Value[float64]{V: float64(v.V), State: v.State, Spot: v.Spot}
	}
	return b
}

// litellmPending finds a bound on what runs at once, anywhere.
func litellmPending(root node, deployments []node) Value[int] {
	for _, n := range []node{
		root.at("general_settings", "global_max_parallel_requests"), root.at("general_settings", "max_parallel_requests"),
		root.at("router_settings", "default_max_parallel_requests"), root.at("litellm_settings", "max_parallel_requests"),
	} {
		if n.is() {
			return n.count(0)
		}
	}
	bounded := len(deployments) > 0
	for _, d := range deployments {
		p := d.at("litellm_params")
		if !p.at("max_parallel_requests").is() && !p.at("rpm").is() && !p.at("tpm").is() && !d.at("rpm").is() && !d.at("tpm").is() {
			bounded = false
		}
	}
	if bounded {
		return set(1, deployments[0].at("litellm_params").spot())
	}
	return byDefault(0, root.at("router_settings", "default_max_parallel_requests").spot())
}
