package peer

import (
	"net"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// readHourthree reads our own file as it stands; whether it is valid is said by
// validate.
func readHourthree(r *reader) {
	root := r.root()
	r.secrets(root.at("providers"), 0)
	for _, w := range root.at("workloads").fields() {
		for _, k := range w.at("keys").list() {
			r.secret(k.str(), k.spot())
		}
	}
	listen := root.at("listen")
	open := len(root.at("workloads").keys()) == 0 && listen.is() && !loopback(listen.str())
	r.g.Open = set(open, listen.spot())
	models := root.at("models")
	for _, name := range models.keys() {
		r.add(own(root, models.at(name), name))
	}
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback() || strings.Contains(host, "$")
}

func own(root, m node, name string) Route {
	defaults := root.at("defaults")
	route := Route{Name: name, Spot: m.spot(), Models: "is a model of Hourthree", Limits: ownLimits(root, m)}
	for _, t := range m.at("targets").list() {
		p := root.at("providers", t.at("provider").str())
		route.Targets = append(route.Targets, ownTarget(t, p))
	}
	retry := defaults.at("retry")
	count := retry.at("attempts").count(3)
	route.Retry = Retry{
		Spot: count.Spot, Attempts: attempts(count, layers.Connect, layers.Reset, layers.Server), Moves: true,
		Backoff: byDefault(100*time.Millisecond, retry.spot()), Repeated: byDefault(true, retry.spot()),
		Budget: byDefault(0.1, retry.at("ratio").spot()),
	}
	if f, ok := retry.at("ratio").num(); ok {
		route.Retry.Budget = set(f, retry.at("ratio").spot())
	}
	timers := defaults.at("timeouts")
	route.Timers = Timers{
		Connect: timers.at("connect").text(3 * time.Second), Idle: timers.at("idle").text(30 * time.Second),
		Across: timers.at("total").text(10 * time.Minute),
	}
	b := defaults.at("breaker")
	route.Breaker = Breaker{Kind: byDefault(Ratio, b.spot()), Threshold: byDefault(0.5, b.at("failure_ratio").spot()), Hosts: len(route.Targets)}
	if f, ok := b.at("failure_ratio").num(); ok {
		route.Breaker.Threshold = set(f, b.at("failure_ratio").spot())
	}
	if n := b.at("min_requests").count(20); n.Known() && n.V > 200 {
		route.Breaker.Blind, route.Breaker.Kind = "any failure before "+b.at("min_requests").str()+" calls", set(Ratio, n.Spot)
	}
	q := defaults.at("queue")
	route.Bounds = Bounds{Pending: q.at("length").count(1000), Wait: q.at("wait").text(200 * time.Millisecond)}
	d := m.at("degraded")
	route.Degraded = set(d.is(), d.spot())
	return route
}

func ownTarget(t, p node) Target {
	out := Target{
		Name: t.at("provider").str(), Provider: p.at("type").str(), Host: hostOf(p.at("base_url").str()),
		Model: t.at("model").str(), Region: p.at("region").str(), Domain: p.at("domain").str(), Spot: t.spot(),
	}
	switch { // the default of the configuration
	case out.Domain != "":
	case out.Region != "":
		out.Domain = out.Provider + "-" + out.Region
	default:
		out.Domain = out.Name
	}
	return out
}

// ownLimits: every workload needs limits, or the model does.
func ownLimits(root, m node) Limits {
	if m.at("limits").is() {
		return Limits{Any: set(true, m.at("limits").spot()), Spot: m.at("limits").spot()}
	}
	list := root.at("workloads")
	if len(list.keys()) == 0 {
		if loopback(root.at("listen").str()) || !root.at("listen").is() {
			return Limits{Spot: list.spot()}
		}
		return Limits{Any: set(false, root.at("listen").spot()), Spot: root.at("listen").spot()}
	}
	limited := 0
	out := Limits{}
	for _, w := range list.fields() {
		if w.at("limits").is() || w.at("key_limits").is() || w.at("model_limits").is() {
			limited++
		} else if out.Spot.Line == 0 {
			out.Spot = w.at("limits").spot()
		}
	}
	out.Any = set(limited > 0, out.Spot)
	if limited > 0 && limited < len(list.keys()) {
		out.Only = "some workloads"
	}
	if limited == len(list.keys()) {
		out.Spot = list.spot()
	}
	return out
}
