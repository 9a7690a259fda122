package audit

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

var routeRules = map[string]Rule{
	"RTY-009": routeRetryNoBudget, "RTY-013": kongRetriesHigh, "CBK-003": routeNoHealthCheck, "TMO-002": routeNoTime, "RLM-001": routeNoLimit,
	"RLM-009": backendNoQuota, "RTE-002": nothingFailsOver, "RTE-003": oneRegion,
}

// routeRetryNoBudget: a route repeats and nothing bounds how much.
func routeRetryNoBudget(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if fields.ValueAt(rule, "retry") == nil || fields.IntOr(rule, "retry.attempts", 1) <= 0 || routeBounded(x, o, rule) {
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
func routeBounded(x *topology.Edges, o *manifest.Object, rule any) bool {
	if b, _ := topology.Setting(x.InForce("BackendTrafficPolicy", o, rule), "spec.circuitBreaker.retryBudget"); b != nil {
		return true
	}
	refs := fields.ListAt(rule, "backendRefs")
	bounded := func(ref any) bool {
		k := topology.BackendKey(o, ref)
		for _, a := range x.Attached[k] {
			if a.Policy.Kind == "XBackendTrafficPolicy" && fields.ValueAt(a.Policy.Root, "spec.retryConstraint") != nil {
				return true
			}
		}
		return bounded(meshRules(x, o, k))
	}
	return len(refs) > 0 && !slices.ContainsFunc(refs, func(r any) bool { return fields.IntOr(r, "weight", 1) != 0 && !bounded(r) })
}

// meshRules are Istio's rules for a backend, where Istio serves the route.
func meshRules(x *topology.Edges, o *manifest.Object, k topology.Key) topology.Traffic {
	if k.Kind != "Service" || !slices.ContainsFunc(topology.GatewaysOf(o), func(p topology.Parent) bool {
		return strings.Contains(x.GatewayController(p.Gateway), "istio")
	}) && len(x.MeshParents(o)) == 0 {
		return topology.Traffic{}
	}
	proxies := []string{o.Namespace}
	for _, p := range topology.GatewaysOf(o) {
		proxies = append(proxies, p.Gateway.Namespace)
	}
	return topology.Traffic{Rules: x.DestinationRules(k.Name+"."+k.Namespace+".svc.cluster.local", proxies, k.Namespace)}
}

func backendNames(rule any) string {
	var list []string
	for _, b := range fields.ListAt(rule, "backendRefs") {
		list = append(list, fields.TextAt(b, "name"))
	}
	return strings.Join(list, ", ")
}

// kongRetriesHigh: Kong in front of a Service repeats more than twice.
func kongRetriesHigh(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var by *manifest.Object
	for _, r := range x.RoutesTo[topology.Key{Kind: "Service", Namespace: o.Namespace, Name: o.Name}] {
		if kongs(x, r) {
			by = r
			break
		}
	}
	const path = "metadata.annotations[konghq.com/retries]"
	if by == nil || kongOverride(x, o) {
		return nil
	}
	observed := fmt.Sprintf("none, which is %d", retrypath.KongRetries)
	if fields.ValueAt(o.Root, path) != nil {
		n := fields.IntOr(o.Root, path, retrypath.KongRetries)
		if n <= 2 {
			return nil
		}
		observed = fmt.Sprint(n)
	}
	return []Hit{{Path: path, Observed: observed, Related: []Related{{Object: by, Note: "Kong serves this"}}}}
}

// kongs says whether Kong serves a route.
func kongs(x *topology.Edges, r *manifest.Object) bool {
	switch r.Kind {
	case "Ingress":
		return x.IngressClass(r) == "kong"
	case "HTTPRoute":
		return slices.ContainsFunc(topology.GatewaysOf(r), func(p topology.Parent) bool { return strings.Contains(x.GatewayController(p.Gateway), "kong") })
	}
	return false
}

// kongOverride says whether a KongIngress lowers the number of a Service.
func kongOverride(x *topology.Edges, o *manifest.Object) bool {
	k := x.Graph.Get("KongIngress", o.Namespace, topology.Annotation(o, "konghq.com/override"))
	return k != nil && fields.ValueAt(k.Root, "proxy.retries") != nil && fields.IntOr(k.Root, "proxy.retries", retrypath.KongRetries) <= 2
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
	passive, _ := topology.Setting(policies, "spec.healthCheck.passive")
	active, _ := topology.Setting(policies, "spec.healthCheck.active")
	return passive != nil || active != nil
}

// routeNoHealthCheck: several backends, and nothing takes a failing one out.
func routeNoHealthCheck(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		backends := live(rule)
		if len(backends) < 2 || healthChecked(x.InForce("BackendTrafficPolicy", o, rule)) {
			continue
		}
		watched := func(b any) bool {
			v, _ := meshRules(x, o, topology.BackendKey(o, b)).Section("outlierDetection")
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
func routeNoTime(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if len(fields.ListAt(rule, "backendRefs")) == 0 || fields.DurationAt(rule, "timeouts.request") > 0 || fields.DurationAt(rule, "timeouts.backendRequest") > 0 || timed(x, o, rule) {
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

func timed(x *topology.Edges, o *manifest.Object, rule any) bool {
	for kind, path := range timers {
		if v, _ := topology.Setting(x.InForce(kind, o, rule), path); fields.DurationAt(map[string]any{"v": v}, "v") > 0 {
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
func routeNoLimit(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if len(live(rule)) == 0 || limited(x, o, rule) {
			continue // without backends it only redirects or refuses
		}
		hits = append(hits, Hit{Path: fmt.Sprintf("spec.rules[%d]", i), Observed: "no rate limit on the route or its Gateway"})
	}
	return hits
}

func limited(x *topology.Edges, o *manifest.Object, rule any) bool {
	policies := x.InForce("BackendTrafficPolicy", o, rule)
	for _, path := range []string{"spec.rateLimit.local.rules", "spec.rateLimit.global.rules"} {
		if v, _ := topology.Setting(policies, path); len(fields.AsList(v)) > 0 {
			return true
		}
	}
	for kind, paths := range limiters {
		policies := x.InForce(kind, o, rule)
		for _, path := range paths {
			if v, _ := topology.Setting(policies, path); v != nil {
				return true
			}
		}
	}
	for _, name := range fields.WordsAt(o.Root, "metadata.annotations[konghq.com/plugins]") {
		if p := x.Graph.Get("KongPlugin", o.Namespace, name); p != nil && strings.Contains(fields.TextAt(p.Root, "plugin"), "rate-limiting") {
			return true
		}
	}
	return slices.ContainsFunc(fields.ListAt(rule, "filters"), func(f any) bool {
		m := x.Graph.Get(fields.TextAt(f, "extensionRef.kind"), o.Namespace, fields.TextAt(f, "extensionRef.name"))
		return m != nil && (fields.ValueAt(m.Root, "spec.rateLimit") != nil || strings.Contains(fields.TextAt(m.Root, "plugin"), "rate-limiting"))
	})
}

// backendNoQuota: one caller can use up a backend.
func backendNoQuota(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	observed := "no quota for each caller"
	for _, a := range x.Attached[topology.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}] {
		if a.Policy.Kind == "QuotaPolicy" {
			if tellsCallers(a.Policy) {
				return nil
			}
			observed = "QuotaPolicy " + a.Policy.Name + " counts all callers together"
		}
	}
	routes := x.RoutesTo[topology.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}]
	for _, r := range routes {
		for _, rule := range fields.ListAt(r.Root, "spec.rules") {
			uses := slices.ContainsFunc(live(rule), func(b any) bool {
				return topology.BackendKey(r, b) == topology.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
			})
			if uses && !perCaller(x.InForce("BackendTrafficPolicy", r, rule)) {
				return []Hit{{
					Path: "spec", Observed: observed,
					Related: []Related{{Object: r, Path: "spec.rules", Note: "leads here without a limit for each caller"}},
				}}
			}
		}
	}
	if len(routes) > 0 || g.callers()[o.Namespace] {
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

// callersTold are the namespaces with a policy that limits each caller by itself.
func callersTold(g *topology.Graph) map[string]bool {
	told := map[string]bool{}
	for _, p := range g.Kind("BackendTrafficPolicy") {
		told[p.Namespace] = told[p.Namespace] || perCaller([]*manifest.Object{p})
	}
	return told
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
func nothingFailsOver(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		if len(live(rule)) < 2 {
			continue
		}
		policies := x.InForce("BackendTrafficPolicy", o, rule)
		retry, _ := topology.Setting(policies, "spec.retry")
		if retry != nil && fields.IntOr(retry, "numRetries", retrypath.EnvoyRetries) > 0 || healthChecked(policies) {
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
func oneRegion(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		backends := live(rule)
		all, known := map[string]bool{}, len(backends) > 1
		for _, b := range backends {
			places := places(x, topology.BackendKey(o, b))
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
func places(x *topology.Edges, k topology.Key) []string {
	o := x.Graph.Get(k.Kind, k.Namespace, k.Name)
	if o == nil {
		return nil
	}
	if r := topology.Annotation(o, RegionAnnotation); r != "" {
		return []string{"region " + r}
	}
	switch k.Kind {
	case "AIServiceBackend":
		ref := fields.ValueAt(o.Root, "spec.backendRef")
		to := topology.Key{Kind: fields.TextOr(ref, "kind", "Service"), Namespace: fields.TextOr(ref, "namespace", o.Namespace), Name: fields.TextAt(ref, "name")}
		if to.Kind == "AIServiceBackend" {
			return nil
		}
		return places(x, to)
	case "Backend":
		var list []string
		for _, h := range retrypath.EndpointHosts(o) {
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
		return []string{"Service " + topology.NameOf(o)}
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
