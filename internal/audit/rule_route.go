package audit

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

var routeRules = map[string]Rule{
	"RTY-009": routeRetryNoBudget, "RTY-013": kongRetriesHigh, "CBK-003": routeNoHealthCheck, "TMO-002": routeNoTime, "RLM-001": routeNoLimit,
	"RLM-009": backendNoQuota, "RTE-002": nothingFailsOver, "RTE-003": oneRegion,
}

// routeRetryNoBudget: a route repeats and nothing bounds how much.
func routeRetryNoBudget(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if fields.ValueAt(rule, "retry") == nil || fields.IntOr(rule, "retry.attempts", 1) <= 0 || x.routeBounded(o, rule) {
			continue
		}
		hits = append(hits, Hit{
			Path: fmt.Sprintf("spec.rules[%d].retry", i), Observed: "retry without a constraint on " + backendNames(rule),
		})
	}
	return hits
}

// routeBounded says whether a budget bounds the retries of a rule, at each of its
// backends or at the route.
func (x *edges) routeBounded(o *manifest.Object, rule any) bool {
	if b, _ := setting(x.effective("BackendTrafficPolicy", o, rule), "spec.circuitBreaker.retryBudget"); b != nil {
		return true
	}
	refs := fields.ListAt(rule, "backendRefs")
	bounded := func(ref any) bool {
		k := backendKey(o, ref)
		for _, a := range x.attached[k] {
			if a.policy.Kind == "XBackendTrafficPolicy" && fields.ValueAt(a.policy.Root, "spec.retryConstraint") != nil {
				return true
			}
		}
		return x.meshRules(o, k).bounded()
	}
	return len(refs) > 0 && !slices.ContainsFunc(refs, func(r any) bool { return fields.IntOr(r, "weight", 1) != 0 && !bounded(r) })
}

// meshRules are Istio's rules for a backend, where Istio serves the route.
func (x *edges) meshRules(o *manifest.Object, k key) traffic {
	if k.kind != "Service" || !slices.ContainsFunc(gatewaysOf(o), func(p parent) bool {
		return strings.Contains(x.gatewayController(p.k), "istio")
	}) && len(x.meshParents(o)) == 0 {
		return traffic{}
	}
	proxies := []string{o.Namespace}
	for _, p := range gatewaysOf(o) {
		proxies = append(proxies, p.k.namespace)
	}
	return traffic{rules: x.destinationRules(k.name+"."+k.namespace+".svc.cluster.local", proxies, k.namespace)}
}

func backendNames(rule any) string {
	var list []string
	for _, b := range fields.ListAt(rule, "backendRefs") {
		list = append(list, fields.TextAt(b, "name"))
	}
	return strings.Join(list, ", ")
}

// kongRetriesHigh: Kong in front of a Service repeats more than twice.
func kongRetriesHigh(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var by *manifest.Object
	for _, r := range x.backends[key{"Service", o.Namespace, o.Name}] {
		if x.kongs(r) {
			by = r
			break
		}
	}
	const path = "metadata.annotations[konghq.com/retries]"
	if by == nil || x.kongOverride(o) {
		return nil
	}
	observed := fmt.Sprintf("none, which is %d", kongRetries)
	if fields.ValueAt(o.Root, path) != nil {
		n := fields.IntOr(o.Root, path, kongRetries)
		if n <= 2 {
			return nil
		}
		observed = fmt.Sprint(n)
	}
	return []Hit{{Path: path, Observed: observed, Related: []Related{{Object: by, Note: "Kong serves this"}}}}
}

// kongs says whether Kong serves a route.
func (x *edges) kongs(r *manifest.Object) bool {
	switch r.Kind {
	case "Ingress":
		return x.ingressClass(r) == "kong"
	case "HTTPRoute":
		return slices.ContainsFunc(gatewaysOf(r), func(p parent) bool { return strings.Contains(x.gatewayController(p.k), "kong") })
	}
	return false
}

// kongOverride says whether a KongIngress lowers the number of a Service.
func (x *edges) kongOverride(o *manifest.Object) bool {
	k := x.g.Get("KongIngress", o.Namespace, annotation(o, "konghq.com/override"))
	return k != nil && fields.ValueAt(k.Root, "proxy.retries") != nil && fields.IntOr(k.Root, "proxy.retries", kongRetries) <= 2
}

// live are the backends of a rule that get calls.
func live(rule any) []any {
	var list []any
	for _, b := range fields.ListAt(rule, "backendRefs") {
		if fields.IntOr(b, "weight", 1) != 0 {
			list = append(list, b)
		}
	}
	return list
}

// healthChecked says whether policies look at the health of backends.
func healthChecked(policies []*manifest.Object) bool {
	passive, _ := setting(policies, "spec.healthCheck.passive")
	active, _ := setting(policies, "spec.healthCheck.active")
	return passive != nil || active != nil
}

// routeNoHealthCheck: several backends, and nothing takes a failing one out.
func routeNoHealthCheck(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		backends := live(rule)
		if len(backends) < 2 || healthChecked(x.effective("BackendTrafficPolicy", o, rule)) {
			continue
		}
		watched := func(b any) bool {
			v, _ := x.meshRules(o, backendKey(o, b)).section("outlierDetection")
			return v != nil && ejects(v)
		}
		if !slices.ContainsFunc(backends, func(b any) bool { return !watched(b) }) {
			continue
		}
		hits = append(hits, Hit{
			Path: fmt.Sprintf("spec.rules[%d].backendRefs", i), Observed: fmt.Sprintf("%d backends, no health check on the route", len(backends)),
		})
	}
	return hits
}

// timers are the policies that may hold a limit for requests, and where.
var timers = map[string]string{
	"BackendTrafficPolicy": "spec.timeout.http.requestTimeout", "AgentgatewayPolicy": "spec.traffic.timeouts.request",
	"TrafficPolicy": "spec.timeouts.request",
}

// routeNoTime: neither the route nor a policy on it ends a call that hangs.
func routeNoTime(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if len(fields.ListAt(rule, "backendRefs")) == 0 || fields.DurationAt(rule, "timeouts.request") > 0 || fields.DurationAt(rule, "timeouts.backendRequest") > 0 || x.timed(o, rule) {
			continue
		}
		shown := func(path string) string {
			if v := fields.ValueAt(rule, path); v != nil {
				return fields.Short(fields.PlainText(v))
			}
			return "unset"
		}
		hits = append(hits, Hit{
			Path:     fmt.Sprintf("spec.rules[%d].timeouts", i),
			Observed: "request " + shown("timeouts.request") + ", backendRequest " + shown("timeouts.backendRequest"),
		})
	}
	return hits
}

func (x *edges) timed(o *manifest.Object, rule any) bool {
	for kind, path := range timers {
		if v, _ := setting(x.effective(kind, o, rule), path); fields.DurationAt(map[string]any{"v": v}, "v") > 0 {
			return true
		}
	}
	return false
}

// limiters are the policies that may hold a rate limit, and where.
var limiters = map[string][]string{
	"AgentgatewayPolicy": {"spec.traffic.rateLimit"},
	"TrafficPolicy":      {"spec.rateLimit"},
	"RateLimitPolicy":    {"spec.limits", "spec.rateLimit", "spec.defaults.limits", "spec.overrides.limits"},
	"TokenRateLimitPolicy": {
		"spec.limits", "spec.defaults.limits", "spec.overrides.limits",
	},
}

// routeNoLimit: calls come in through a route that no rate limit covers.
func routeNoLimit(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if len(live(rule)) == 0 || x.limited(o, rule) {
			continue // without backends it only redirects or refuses
		}
		hits = append(hits, Hit{Path: fmt.Sprintf("spec.rules[%d]", i), Observed: "no rate limit on the route or its Gateway"})
	}
	return hits
}

func (x *edges) limited(o *manifest.Object, rule any) bool {
	policies := x.effective("BackendTrafficPolicy", o, rule)
	for _, path := range []string{"spec.rateLimit.local.rules", "spec.rateLimit.global.rules"} {
		if v, _ := setting(policies, path); len(fields.AsList(v)) > 0 {
			return true
		}
	}
	for kind, paths := range limiters {
		policies := x.effective(kind, o, rule)
		for _, path := range paths {
			if v, _ := setting(policies, path); v != nil {
				return true
			}
		}
	}
	for _, name := range fields.WordsAt(o.Root, "metadata.annotations[konghq.com/plugins]") {
		if p := x.g.Get("KongPlugin", o.Namespace, name); p != nil && strings.Contains(fields.TextAt(p.Root, "plugin"), "rate-limiting") {
			return true
		}
	}
	return slices.ContainsFunc(fields.ListAt(rule, "filters"), func(f any) bool {
		m := x.g.Get(fields.TextAt(f, "extensionRef.kind"), o.Namespace, fields.TextAt(f, "extensionRef.name"))
		return m != nil && (fields.ValueAt(m.Root, "spec.rateLimit") != nil || strings.Contains(fields.TextAt(m.Root, "plugin"), "rate-limiting"))
	})
}

// backendNoQuota: one caller can use up a backend.
func backendNoQuota(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	observed := "no quota for each caller"
	for _, a := range x.attached[key{o.Kind, o.Namespace, o.Name}] {
		if a.policy.Kind == "QuotaPolicy" {
			if tellsCallers(a.policy) {
				return nil
			}
			observed = "QuotaPolicy " + a.policy.Name + " counts all callers together"
		}
	}
	routes := x.backends[key{o.Kind, o.Namespace, o.Name}]
	for _, r := range routes {
		for _, rule := range fields.ListAt(r.Root, "spec.rules") {
			uses := slices.ContainsFunc(live(rule), func(b any) bool { return backendKey(r, b) == key{o.Kind, o.Namespace, o.Name} })
			if uses && !perCaller(x.effective("BackendTrafficPolicy", r, rule)) {
				return []Hit{{
					Path: "spec", Observed: observed,
					Related: []Related{{Object: r, Path: "spec.rules", Note: "leads here without a limit for each caller"}},
				}}
			}
		}
	}
	if len(routes) > 0 || x.perCaller[o.Namespace] {
		return nil
	}
	return []Hit{{Path: "spec", Observed: observed}}
}

// tellsCallers says whether a QuotaPolicy has a quota of a model for callers that
// it tells apart. One that is only watched holds nobody back.
func tellsCallers(policy *manifest.Object) bool {
	for _, m := range fields.ListAt(policy.Root, "spec.perModelQuotas") {
		if slices.ContainsFunc(fields.ListAt(m, "quota.bucketRules"), func(r any) bool {
			return len(fields.ListAt(r, "clientSelectors")) > 0 && fields.ValueAt(r, "shadowMode") != true
		}) {
			return true
		}
	}
	return false
}

// perCaller says whether policies limit each value of a header by itself.
func perCaller(policies []*manifest.Object) bool {
	distinct := func(h any) bool { return fields.TextAt(h, "type") == "Distinct" }
	for _, p := range policies {
		for _, path := range []string{"spec.rateLimit.global.rules", "spec.rateLimit.local.rules"} {
			for _, r := range fields.ListAt(p.Root, path) {
				for _, s := range fields.ListAt(r, "clientSelectors") {
					if slices.ContainsFunc(fields.ListAt(s, "headers"), distinct) {
						return true
					}
				}
			}
		}
	}
	return false
}

// nothingFailsOver: a second backend that no failure leads to.
func nothingFailsOver(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if len(live(rule)) < 2 {
			continue
		}
		policies := x.effective("BackendTrafficPolicy", o, rule)
		retry, _ := setting(policies, "spec.retry")
		if retry != nil && fields.IntOr(retry, "numRetries", envoyRetries) > 0 || healthChecked(policies) {
			continue
		}
		observed := "neither retry nor health check for HTTPRoute " + o.Name
		if retry != nil {
			observed = "retry with 0 tries and no health check for HTTPRoute " + o.Name
		}
		hits = append(hits, Hit{Path: fmt.Sprintf("spec.rules[%d].backendRefs", i), Observed: observed})
	}
	return hits
}

// RegionAnnotation declares the region of a backend whose host does not tell it.
const RegionAnnotation = "hourthree.dev/region"

// oneRegion: all backends of a rule fail together.
func oneRegion(g *Graph, o *manifest.Object) []Hit {
	x := g.edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		backends := live(rule)
		all, known := map[string]bool{}, len(backends) > 1
		for _, b := range backends {
			places := x.places(backendKey(o, b))
			known = known && len(places) > 0
			for _, p := range places {
				all[p] = true
			}
		}
		if !known || len(all) != 1 {
			continue
		}
		for at := range all {
			hits = append(hits, Hit{Path: fmt.Sprintf("spec.rules[%d].backendRefs", i), Observed: fmt.Sprintf("%d backends, all at %s", len(backends), at)})
		}
	}
	return hits
}

// places are where a backend is, each once: its declared region, the region in
// its host's name, or the host. None where that is not known.
func (x *edges) places(k key) []string {
	o := x.g.Get(k.kind, k.namespace, k.name)
	if o == nil {
		return nil
	}
	if r := annotation(o, RegionAnnotation); r != "" {
		return []string{"region " + r}
	}
	switch k.kind {
	case "AIServiceBackend":
		ref := fields.ValueAt(o.Root, "spec.backendRef")
		to := key{fields.TextOr(ref, "kind", "Service"), fields.TextOr(ref, "namespace", o.Namespace), fields.TextAt(ref, "name")}
		if to.kind == "AIServiceBackend" {
			return nil
		}
		return x.places(to)
	case "Backend":
		var list []string
		for _, h := range endpointHosts(o) {
			place := strings.ToLower(h)
			if r := regionIn(place); r != "" {
				place = "region " + r
			}
			if !slices.Contains(list, place) {
				list = append(list, place)
			}
		}
		return list
	case "Service":
		return []string{"Service " + placeName(o)}
	}
	return nil
}

var regionHosts = regexp.MustCompile(`^(?:bedrock(?:-runtime)?(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com|([a-z0-9-]+)-aiplatform\.googleapis\.com|([a-z0-9]+)\.api\.cognitive\.microsoft\.com)$`)

// regionIn is the region in the name of a provider's host, with the provider, ""
// for none.
func regionIn(host string) string {
	m := regionHosts.FindStringSubmatch(host)
	if m == nil || net.ParseIP(host) != nil {
		return ""
	}
	for i, provider := range []string{"aws", "gcp", "azure"} {
		if m[i+1] != "" {
			return provider + " " + m[i+1]
		}
	}
	return ""
}
