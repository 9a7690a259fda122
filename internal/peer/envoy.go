package peer

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// readEnvoy reads a bootstrap with static resources, or resources as a file
// source has them. Field names may be in either spelling of protobuf's JSON.
func readEnvoy(r *reader) {
	root := r.root()
	e := &envoy{r: r, clusters: map[string]node{}}
	static := root.first("static_resources", "staticResources")
	for _, c := range static.at("clusters").list() {
		e.clusters[c.at("name").str()] = c
	}
	resources := root.at("resources").list()
	for _, c := range resources {
		if strings.HasSuffix(c.at("@type").str(), ".Cluster") {
			e.clusters[c.at("name").str()] = c
		}
	}
	if d := root.first("dynamic_resources", "dynamicResources"); d.first("lds_config", "ldsConfig").is() || d.first("cds_config", "cdsConfig").is() {
		r.problem(d.spot().Line, "listeners or clusters come from a control plane and were not read", "audit what the control plane sends: the objects it reads, or a config dump")
	}
	for _, l := range static.at("listeners").list() {
		e.listener(l)
	}
	for _, c := range resources {
		switch {
		case strings.HasSuffix(c.at("@type").str(), ".Listener"):
			e.listener(c)
		case strings.HasSuffix(c.at("@type").str(), ".RouteConfiguration"):
			e.routes(c, envoyManager{})
		}
	}
	e.secrets(root, 0)
}

type envoy struct {
	r        *reader
	clusters map[string]node
}

// envoyManager is what an HTTP connection manager sets for its routes.
type envoyManager struct {
	idle    node
	filters []node
}

func (e *envoy) listener(l node) {
	chains := append(l.first("filter_chains", "filterChains").list(), l.first("default_filter_chain", "defaultFilterChain"))
	for _, chain := range chains {
		for _, f := range chain.at("filters").list() {
			c := f.first("typed_config", "typedConfig")
			m := envoyManager{idle: c.first("stream_idle_timeout", "streamIdleTimeout"), filters: c.first("http_filters", "httpFilters").list()}
			if rc := c.first("route_config", "routeConfig"); rc.is() {
				e.routes(rc, m)
			} else if rds := c.at("rds"); rds.is() {
				e.r.problem(rds.spot().Line, "routes come from a control plane and were not read", "audit what the control plane sends, or a config dump")
			}
		}
	}
}

func (e *envoy) routes(rc node, m envoyManager) {
	for _, vh := range rc.first("virtual_hosts", "virtualHosts").list() {
		for _, route := range vh.at("routes").list() {
			action := route.at("route")
			for _, name := range envoyClusters(action) {
				if len(e.r.g.Routes) > maxRoutes {
					return
				}
				e.add(vh, route, m, name)
			}
		}
	}
}

// envoyClusters are the clusters of a route; "" for one that is chosen by a
// header or a plugin.
func envoyClusters(action node) []string {
	if name := action.at("cluster").str(); name != "" {
		return []string{name}
	}
	var names []string
	for _, c := range action.first("weighted_clusters", "weightedClusters").at("clusters").list() {
		names = append(names, c.at("name").str())
	}
	if len(names) == 0 && action.is() {
		names = []string{""}
	}
	return names
}

func (e *envoy) add(vh, n node, m envoyManager, name string) {
	action, cluster := n.at("route"), e.clusters[name]
	match := n.at("match").first("prefix", "path", "path_separated_prefix").str()
	label := n.at("name").str()
	if label == "" {
		label = strings.Trim(vh.at("name").str()+" "+match+" "+name, " ")
	}
	route := Route{Name: label, Spot: n.spot(), Limits: e.limits(vh, n, m)}
	var eds bool
	route.Targets, eds = envoyTargets(cluster)
	route.More = cluster.o == nil || eds
	route.Models = evidence(route.Targets, name, match, label)
	route.Retry = envoyRetry(vh, action, cluster)
	route.Timers = envoyTimers(action, envoyPolicy(vh, action), cluster, m)
	if cluster.o != nil {
		route.Breaker = envoyBreaker(cluster, len(route.Targets))
		t := envoyThresholds(cluster)
		route.Bounds.Pending = t.first("max_pending_requests", "maxPendingRequests").count(1024)
		route.Bounds.Connections = t.first("max_requests", "maxRequests").count(1024)
	}
	e.r.add(route)
}

// envoyTargets are the endpoints that the cluster names, and whether there may be
// more.
func envoyTargets(c node) (targets []Target, more bool) {
	if c.o == nil {
		return nil, true
	}
	kind := c.at("type").str()
	more = kind == "EDS" || kind == "ORIGINAL_DST" || c.first("cluster_type", "clusterType").is()
	for _, group := range c.first("load_assignment", "loadAssignment").at("endpoints").list() {
		for _, lb := range group.first("lb_endpoints", "lbEndpoints").list() {
			a := lb.at("endpoint", "address").first("socket_address", "socketAddress")
			t := Target{Name: c.at("name").str(), Host: hostOf(a.at("address").str()), Spot: a.spot()}
			t.Provider, t.Region = locate(t.Host)
			if reg := group.at("locality", "region").str(); reg != "" && t.Provider != "" {
				t.Region = reg
			}
			targets = append(targets, t)
		}
	}
	return targets, more || len(targets) == 0
}

func envoyThresholds(c node) node {
	list := c.first("circuit_breakers", "circuitBreakers").at("thresholds")
	for _, t := range list.list() {
		if p := t.at("priority").str(); p == "" || p == "DEFAULT" {
			return t
		}
	}
	return list
}

// envoyOn are the conditions of retry_on by class. Envoy repeats any method.
var envoyOn = map[string][]layers.Class{
	"5xx":                     {layers.Connect, layers.Reset, layers.Server},
	"gateway-error":           {layers.Server},
	"reset":                   {layers.Connect, layers.Reset},
	"reset-before-request":    {layers.Connect},
	"connect-failure":         {layers.Connect},
	"refused-stream":          {layers.Connect},
	"envoy-ratelimited":       {layers.Capacity},
	"unavailable":             {layers.Server},
	"internal":                {layers.Server},
	"deadline-exceeded":       {layers.Server},
	"resource-exhausted":      {layers.Capacity},
	"http3-post-connect-fail": {layers.Connect},
}

// envoyPolicy is the retry policy of a route, else of its virtual host.
func envoyPolicy(vh, action node) node {
	p := action.first("retry_policy", "retryPolicy")
	if own := vh.first("retry_policy", "retryPolicy"); !p.is() && own.is() {
		return own
	}
	return p
}

func envoyRetry(vh, action, cluster node) Retry {
	p := envoyPolicy(vh, action)
	out := Retry{Spot: p.spot(), Attempts: attempts(byDefault(1, p.spot()))}
	on := p.first("retry_on", "retryOn").str()
	if on == "" {
		return out
	}
	count := plus(p.first("num_retries", "numRetries").count(1), 1)
	out.Spot = count.Spot
	for _, c := range strings.Split(on, ",") {
		c = strings.TrimSpace(c)
		out.On = append(out.On, c)
		for _, class := range envoyOn[c] {
			out.Attempts[class] = count
		}
		if c == "envoy-ratelimited" || c == "resource-exhausted" {
			out.Attempts[layers.Capacity] = at(count, p.first("retry_on", "retryOn").spot())
		}
	}
	if slices.Contains(out.On, "retriable-status-codes") {
		l := p.first("retriable_status_codes", "retriableStatusCodes")
		var codes []string
		for _, c := range l.list() {
			codes = append(codes, c.str())
		}
		out.On = append(out.On, codes...)
		byCode(out.Attempts, count, codes)
		if slices.Contains(codes, "429") {
			out.Attempts[layers.Capacity] = at(count, l.spot())
		}
	}
	back := p.first("retry_back_off", "retryBackOff").first("base_interval", "baseInterval")
	out.Backoff = back.text(25 * time.Millisecond)
	out.Repeated = byDefault(true, p.spot())
	return envoyBudget(out, cluster)
}

func at[T any](v Value[T], s Spot) Value[T] { v.Spot = s; return v }

// envoyBudget: without a budget three repeats run at once.
func envoyBudget(out Retry, cluster node) Retry {
	if cluster.o == nil {
		return out
	}
	t := envoyThresholds(cluster)
	b := t.first("retry_budget", "retryBudget")
	if !b.is() {
		out.Budget = byDefault(0.0, b.spot())
		out.Parallel = t.first("max_retries", "maxRetries").count(3)
		return out
	}
	share := 20.0
	if v := b.first("budget_percent", "budgetPercent"); v.is() {
		if f, ok := v.at("value").num(); ok {
			share = f
		}
	}
	out.Budget = set(share/100, b.spot())
	return out
}

func envoyTimers(action, policy, cluster node, m envoyManager) Timers {
	t := Timers{Total: action.at("timeout").text(15 * time.Second)}
	t.PerTry = policy.first("per_try_timeout", "perTryTimeout").text(0)
	idle := action.first("idle_timeout", "idleTimeout")
	if !idle.is() && m.idle.o != nil && m.idle.is() {
		idle = m.idle
	}
	t.Idle = idle.text(5 * time.Minute)
	if cluster.o != nil {
		t.Connect = cluster.first("connect_timeout", "connectTimeout").text(5 * time.Second)
	}
	return t
}

// envoyBreaker reads outlier detection. Of its rules only failures in a row and
// the success rate are on without a word; both rates need a number of hosts.
func envoyBreaker(c node, hosts int) Breaker {
	od := c.first("outlier_detection", "outlierDetection")
	b := Breaker{Kind: byDefault(None, od.spot()), Hosts: hosts}
	if !od.is() {
		return b
	}
	b.Kind = set(Consecutive, od.spot())
	b.Threshold = floats(od.first("consecutive_5xx", "consecutive5xx").count(5))
	share := od.first("enforcing_failure_percentage", "enforcingFailurePercentage").count(0)
	if share.Known() && share.V > 0 {
		b.Kind = set(Ratio, share.Spot)
		b.Threshold = floats(od.first("failure_percentage_threshold", "failurePercentageThreshold").count(85))
		b.Threshold.V /= 100
		b.MinHosts = od.first("failure_percentage_minimum_hosts", "failurePercentageMinimumHosts").count(5)
		return b
	}
	rate := od.first("enforcing_success_rate", "enforcingSuccessRate").count(100)
	if least := od.first("success_rate_minimum_hosts", "successRateMinimumHosts").count(5); Is(rate, 0) {
		return b
	} else if least.Known() && hosts >= least.V {
		b.Kind, b.MinHosts, b.Threshold = byDefault(Ratio, od.spot()), least, unknown[float64](od)
	}
	return b
}

func floats(v Value[int]) Value[float64] {
	return Value[float64]{V: float64(v.V), State: v.State, Spot: v.Spot}
}

// limits looks for a rate limit on the way to a route. Descriptors of request
// headers count only requests that have the header.
func (e *envoy) limits(vh, route node, m envoyManager) Limits {
	spot := route.spot()
	if len(m.filters) == 0 {
		return Limits{Spot: spot}
	}
	global := false
	for _, f := range m.filters {
		name := f.at("name").str() + " " + f.first("typed_config", "typedConfig").at("@type").str()
		switch {
		case strings.Contains(name, "local_ratelimit") || strings.Contains(name, "LocalRateLimit"):
			if f.first("typed_config", "typedConfig").first("token_bucket", "tokenBucket").is() || e.override(vh, "local_ratelimit") || e.override(route, "local_ratelimit") {
				return Limits{Any: set(true, f.spot()), Spot: f.spot()}
			}
		case strings.Contains(name, "ratelimit") || strings.Contains(name, "RateLimit"):
			global = true
		case strings.Contains(name, "ext_proc") || strings.Contains(name, "ext_authz") || strings.Contains(name, ".lua") || strings.Contains(name, ".wasm"):
			return Limits{Spot: f.spot()} // may limit; the file does not tell
		}
	}
	if !global {
		return Limits{Any: byDefault(false, spot), Spot: spot}
	}
	return envoyDescriptors(route.at("route"), vh, spot)
}

func (e *envoy) override(n node, filter string) bool {
	for _, k := range n.first("typed_per_filter_config", "typedPerFilterConfig").keys() {
		if strings.Contains(k, filter) {
			return true
		}
	}
	return false
}

func envoyDescriptors(action, vh node, spot Spot) Limits {
	list := append(action.first("rate_limits", "rateLimits").list(), vh.first("rate_limits", "rateLimits").list()...)
	if len(list) == 0 {
		return Limits{Any: set(false, spot), Spot: spot}
	}
	out := Limits{Any: set(true, list[0].spot()), Spot: list[0].spot()}
	for _, l := range list {
		only := ""
		for _, a := range l.at("actions").list() {
			h := a.first("request_headers", "requestHeaders")
			if skip, _ := h.first("skip_if_absent", "skipIfAbsent").bool(); h.is() && !skip {
				only = "requests with the header " + h.first("header_name", "headerName").str()
			}
		}
		if only == "" {
			out.Only = ""
			return out
		}
		out.Only = only
	}
	return out
}

// secrets finds header values and inline strings.
func (e *envoy) secrets(n node, depth int) {
	if depth > 48 {
		return
	}
	if key := lastKey(n.path); key == "inline_string" || key == "inlineString" {
		if strings.Contains(strings.ToLower(n.path), "secret") || strings.Contains(n.path, "credential") {
			e.r.secret(n.str(), n.spot())
		}
	}
	if h := n.at("header"); h.is() && keyName.MatchString(h.at("key").str()) {
		e.r.secret(h.at("value").str(), h.at("value").spot())
	}
	for _, c := range n.fields() {
		e.secrets(c, depth+1)
	}
	for _, c := range n.list() {
		e.secrets(c, depth+1)
	}
}

// unbounded is a count that bounds nothing: the largest of 32 bits, or one of
// that size.
const unbounded = math.MaxInt32 / 2
