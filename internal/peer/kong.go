package peer

import (
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// readKong reads a declarative configuration: each service is a route, or each of
// its routes that has an AI plugin of its own.
func readKong(r *reader) {
	root := r.root()
	k := kong{r: r, root: root, upstreams: map[string]node{}}
	for _, u := range root.at("upstreams").list() {
		k.upstreams[u.at("name").str()] = u
	}
	for _, s := range root.at("services").list() {
		if s.at("enabled").str() == "false" {
			continue
		}
		k.service(s)
	}
	r.secrets(root, 0)
}

type kong struct {
	r         *reader
	root      node
	upstreams map[string]node
}

// plugins are those in force for a service and a route of it.
func (k kong) plugins(s, route node) []node {
	name, rname := s.at("name").str(), route.at("name").str()
	var out []node
	for _, p := range k.root.at("plugins").list() {
		svc, rt := p.at("service"), p.at("route")
		if (!svc.is() || ref(svc) == name && name != "") && (!rt.is() || ref(rt) == rname && rname != "") {
			out = append(out, p)
		}
	}
	out = append(out, s.at("plugins").list()...)
	out = append(out, route.at("plugins").list()...)
	return slices.DeleteFunc(out, func(p node) bool { return p.at("enabled").str() == "false" })
}

func ref(n node) string {
	if s := n.at("name").str(); s != "" {
		return s
	}
	return n.str()
}

func (k kong) service(s node) {
	routes := s.at("routes").list()
	for _, rt := range k.root.at("routes").list() {
		if n := s.at("name").str(); n != "" && ref(rt.at("service")) == n {
			routes = append(routes, rt)
		}
	}
	if len(routes) == 0 {
		routes = []node{{o: s.o, path: s.path}}
	}
	at := -1 // where the service's own route stands
	for _, rt := range routes {
		plugins := k.plugins(s, rt)
		ai := find(plugins, "ai-proxy", "ai-proxy-advanced")
		own := ai.is() && strings.HasPrefix(ai.path, rt.path+".") && rt.path != s.path
		if own || at < 0 {
			k.add(s, rt, plugins, ai, own)
		}
		switch {
		case own:
		case at < 0:
			at = len(k.r.g.Routes) - 1
		default: // its other routes differ in their limits only
			if l := kongLimits(rt, plugins); weaker(l, k.r.g.Routes[at].Limits) {
				k.r.g.Routes[at].Limits = l
			}
		}
	}
}

// weaker says that a covers fewer callers than b.
func weaker(a, b Limits) bool {
	return b.Any.V && (!a.Any.V || a.Only != "" && b.Only == "")
}

// find is the last of the plugins that has one of the names.
func find(plugins []node, names ...string) node {
	for _, p := range slices.Backward(plugins) {
		if slices.Contains(names, p.at("name").str()) {
			return p
		}
	}
	return node{}
}

func (k kong) add(s, rt node, plugins []node, ai node, own bool) {
	route := Route{Name: s.at("name").str(), Spot: s.spot(), Limits: kongLimits(s, plugins)}
	if own || route.Name == "" {
		route.Name, route.Spot = rt.at("name").str(), rt.spot()
	}
	names := []string{s.at("name").str(), rt.at("name").str(), s.at("url").str(), s.at("path").str()}
	for _, p := range rt.at("paths").list() {
		names = append(names, p.str())
	}
	k.fromService(s, &route)
	if ai.is() {
		kongAI(ai, &route)
	}
	route.Models = evidence(route.Targets, names...)
	if ai.is() {
		route.Models = "has the plugin " + ai.at("name").str()
	}
	k.r.add(route)
}

// fromService: the proxy below repeats what failed before it was sent; nginx does
// not repeat a POST after.
func (k kong) fromService(s node, route *Route) {
	count := plus(s.at("retries").count(5), 1)
	route.Retry = Retry{
		Spot: count.Spot, Attempts: attempts(count, layers.Connect), On: []string{"error", "timeout"},
		Backoff: byDefault(time.Duration(0), count.Spot), Moves: true,
		Repeated: byDefault(false, count.Spot),
	}
	route.Timers = Timers{
		Connect: s.at("connect_timeout").span(time.Millisecond, time.Minute),
		Idle:    s.at("read_timeout").span(time.Millisecond, time.Minute),
	}
	host := s.at("host").str()
	if host == "" {
		host = hostOf(s.at("url").str())
	}
	if u, ok := k.upstreams[host]; ok {
		for _, t := range u.at("targets").list() {
			h := hostOf(t.at("target").str())
			target := Target{Name: h, Host: h, Spot: t.at("target").spot()}
			target.Provider, target.Region = locate(h)
			route.Targets = append(route.Targets, target)
		}
		route.Breaker = kongBreaker(u, len(route.Targets))
		return
	}
	t := Target{Name: host, Host: hostOf(host), Spot: s.first("url", "host").spot()}
	t.Provider, t.Region = locate(t.Host)
	route.Targets = []Target{t}
	route.Breaker = Breaker{Kind: byDefault(None, s.spot()), Hosts: 1}
}

func kongBreaker(u node, hosts int) Breaker {
	bad := u.at("healthchecks", "passive", "unhealthy")
	b := Breaker{Kind: byDefault(None, bad.spot()), Hosts: hosts}
	if n := bad.at("http_failures").count(0); n.V > 0 {
		b.Kind, b.Threshold = set(Consecutive, n.Spot), floats(n)
		return b
	}
	for _, key := range []string{"tcp_failures", "timeouts"} {
		if n := bad.at(key).count(0); n.V > 0 {
			b.Kind, b.Threshold, b.Blind = set(Consecutive, n.Spot), floats(n), "answers with an error"
		}
	}
	return b
}

// kongAI: the plugins call the model themselves; the advanced one has a balancer
// of its own.
func kongAI(ai node, route *Route) {
	c := ai.at("config")
	list := c.at("targets").list()
	if len(list) == 0 {
		list = []node{c}
	}
	route.Targets = nil
	for _, t := range list {
		m := t.at("model")
		target := Target{
			Name: m.at("name").str(), Model: m.at("name").str(), Provider: m.at("provider").str(), Spot: t.spot(),
			Host: hostOf(m.at("options", "upstream_url").str()),
		}
		if res := m.at("options", "azure_instance").str(); res != "" && !strings.ContainsAny(res, "{$") {
			target.Host = res + ".openai.azure.com"
		}
		if own, region := locate(target.Host); own != "" {
			target.Provider, target.Region = own, region
		}
		if reg := m.at("options", "bedrock", "aws_region").str(); reg != "" {
			target.Region = reg
		}
		route.Targets = append(route.Targets, target)
	}
	if ai.at("name").str() != "ai-proxy-advanced" {
		return
	}
	b := c.at("balancer")
	count := plus(b.at("retries").count(5), 1)
	route.Retry.Spot, route.Retry.Attempts = count.Spot, attempts(count, layers.Connect)
	route.Retry.On = []string{"error", "timeout"}
	if crit := b.at("failover_criteria"); crit.is() {
		route.Retry.On = nil
		for _, x := range crit.list() {
			route.Retry.On = append(route.Retry.On, x.str())
		}
		nextUpstream(&route.Retry, count, at(set(true, count.Spot), crit.spot()))
	}
	route.Timers.Connect = b.at("connect_timeout").span(time.Millisecond, time.Minute)
	route.Timers.Idle = b.at("read_timeout").span(time.Millisecond, time.Minute)
	route.Breaker = Breaker{Kind: unknown[Kind](b), Hosts: len(list)}
	if n := b.at("max_fails"); n.is() {
		v := n.count(0)
		route.Breaker.Kind, route.Breaker.Threshold = set(Consecutive, v.Spot), floats(v)
		if v.V == 0 && v.Known() {
			route.Breaker.Kind = set(None, v.Spot)
		}
	}
}

var kongLimiters = []string{"rate-limiting", "rate-limiting-advanced", "ai-rate-limiting-advanced", "response-ratelimiting", "request-termination"}

// kongLimits: a plugin of one consumer covers nobody else.
func kongLimits(s node, plugins []node) Limits {
	out := Limits{Any: byDefault(false, s.spot()), Spot: s.at("plugins").spot()}
	for _, p := range plugins {
		if !slices.Contains(kongLimiters, p.at("name").str()) {
			continue
		}
		only := ""
		if c := p.first("consumer", "consumer_group"); c.is() {
			only = "the consumer " + ref(c)
		}
		if only == "" || out.Only != "" || !out.Any.V {
			out = Limits{Any: set(true, p.spot()), Only: only, Spot: p.spot()}
		}
		if only == "" {
			return out
		}
	}
	return out
}
