package retrypath

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// Annotations by which a workload says what its code does; of the workload or
// its pod template.
const (
	RetriesAnnotation = "hourthree.dev/sdk-retries"
	TimeoutAnnotation = "hourthree.dev/sdk-timeout"
	// HandsAnnotation says as which class a gateway hands out another, such as
	// 429=5xx.
	HandsAnnotation = "hourthree.dev/hands"
)

// What products do where nothing is set, see docs of each.
const (
	sdkRetries     = 2
	sdkTimeout     = 600 * time.Second
	istioRetries   = 2
	EnvoyRetries   = 2 // of Envoy Gateway, once retry is set
	nginxTries     = 3
	KongRetries    = 5
	litellmRetries = 2
	aiGatewayLimit = 60 * time.Second
)

// istioWords are the conditions of Istio where a route names none.
var istioWords = []string{"connect-failure", "refused-stream", "unavailable", "cancelled"}

// envoyWords are the conditions of Envoy Gateway where a policy names none.
var envoyWords = []string{"connect-failure", "refused-stream", "unavailable", "cancelled", "retriable-status-codes", "503"}

// Step is a layer of a path and the place that it was read from.
type Step struct {
	layers.Layer
	Object *manifest.Object
	Path   string
}

func newStep(o *manifest.Object, path string, l layers.Layer) Step {
	l.File = cmp.Or(l.File, o.Origin.File)
	if l.Line == 0 {
		l.Line = topology.PlaceOf(o, path).Line
	}
	return Step{l, o, path}
}

// assumedSDK is the layer of a client that was not read: the default of the SDKs
// of OpenAI and Anthropic.
func assumedSDK() layers.Layer {
	return layers.Layer{
		Name: "client SDK", Product: "sdk", Attempts: layers.Same(sdkRetries + 1), Timeout: sdkTimeout,
		Assumed: "the client was not read: 2 retries and 600 s are the default of the SDKs of OpenAI and Anthropic",
	}
}

// sdk is the layer of a client's own library, in one of its containers.
func (x *Paths) sdk(w *topology.Workload, c topology.Container, vars []Variable, product string) Step {
	l := assumedSDK()
	l.Name = product + " SDK in " + w.Object.Name
	l.Assumed = "retries in code cannot be seen: 2 are the SDK's default; the annotation " + RetriesAnnotation + " states others"
	path := c.Path
	for _, v := range vars {
		n, err := strconv.Atoi(strings.TrimSpace(v.value))
		if err == nil && n >= 0 && slices.Contains(topology.RetryNames, v.Name) {
			l.Attempts, path = layers.Same(plusOne(n)), v.Path
			l.Assumed = v.Name + " is a convention of applications, not of the SDK"
			break
		}
	}
	limit := time.Duration(0)
	for _, at := range []string{"metadata", "spec.template.metadata"} {
		place := at + ".annotations[" + RetriesAnnotation + "]"
		if n, err := strconv.Atoi(fields.TextAt(w.Object.Root, place)); err == nil && n >= 0 {
			l.Attempts, l.Assumed, path = layers.Same(plusOne(n)), "", place
		}
		if d, err := fields.Duration(w.Object.Root, at+".annotations["+TimeoutAnnotation+"]"); err == nil && d > 0 {
			limit = d
		}
	}
	if limit > 0 || l.Assumed == "" {
		l.Timeout = limit // the default is not assumed of one who states something else
	}
	return newStep(w.Object, path, l)
}

// plusOne are the attempts of a number of retries.
func plusOne(retries int) int { return min(max(retries, 0), layers.Most) + 1 }

// repeating gives the classes of conditions a number of attempts.
func repeating(words []string, attempts int) map[layers.Class]int {
	m := map[layers.Class]int{}
	for _, c := range EnvoyClasses(words) {
		m[c] = attempts
	}
	return m
}

// EnvoyClasses are the classes of failure that Envoy's retry conditions cover. A
// reset counts as 5xx for Envoy, since it will be answered with one; statuses of
// gRPC do not come from a model's HTTP API.
func EnvoyClasses(words []string) []layers.Class {
	var list []layers.Class
	for _, w := range words {
		switch w := strings.ToLower(w); w {
		case "5xx", "gateway-error":
			list = append(list, layers.Connect, layers.Reset, layers.Server)
		case "reset":
			list = append(list, layers.Connect, layers.Reset)
		case "connect-failure", "refused-stream", "reset-before-request":
			list = append(list, layers.Connect)
		case "envoy-ratelimited":
			list = append(list, layers.Capacity)
		default:
			list = append(list, codeClasses(w)...)
		}
	}
	return list
}

// codeClasses are the classes of an HTTP status or a range of them.
func codeClasses(word string) []layers.Class {
	from, to, isRange := strings.Cut(strings.TrimPrefix(word, "http_"), "-")
	low, err := strconv.Atoi(from)
	high := low
	if isRange && err == nil {
		high, err = strconv.Atoi(to)
	}
	var list []layers.Class
	if err == nil && low <= 429 && high >= 429 {
		list = append(list, layers.Capacity)
	}
	if err == nil && low <= 599 && high >= 500 {
		list = append(list, layers.Server)
	}
	return list
}

// istioStep is what a route of a VirtualService does before one destination.
func (x *Paths) istioStep(o *manifest.Object, i int, http, destination any) Step {
	path := fmt.Sprintf("spec.http[%d].retries", i)
	l := layers.Layer{Name: "VirtualService " + topology.NameOf(o), Product: "istio", Hands: layers.Proxied(), Timeout: fields.DurationAt(http, "timeout")}
	retries := fields.ValueAt(http, "retries")
	switch {
	case retries == nil:
		l.Attempts, l.Assumed = x.meshDefault()
	default:
		words := fields.WordsAt(retries, "retryOn")
		if len(words) == 0 {
			words = istioWords
		}
		l.Attempts = repeating(words, plusOne(fields.IntOr(retries, "attempts", 0)))
		l.PerTry = fields.DurationAt(retries, "perTryTimeout")
	}
	if b, _ := x.Destination(o, destination).Section("retryBudget"); b != nil {
		l.Budget = share(b, "percent", 20)
	}
	return newStep(o, path, l)
}

// meshDefault is what Istio does where a route says nothing of retries.
func (x *Paths) meshDefault() (attempts map[layers.Class]int, assumed string) {
	policy := fields.MapAt(x.Mesh, "defaultHttpRetryPolicy")
	if policy == nil {
		return repeating(istioWords, istioRetries+1), "Istio retries twice where nothing is set"
	}
	words := fields.WordsAt(policy, "retryOn")
	if len(words) == 0 {
		words = istioWords
	}
	return repeating(words, plusOne(fields.IntOr(policy, "attempts", istioRetries))), ""
}

// share is a percentage as a share, def where none stands.
func share(root any, path string, def float64) float64 {
	n, err := fields.Number(root, path)
	if err != nil || fields.ValueAt(root, path) == nil {
		n = def
	}
	return n / 100
}

// EnvoyGateway are what the rule of a route and the policies in force on it
// do: the route's limit outside, the policy's retries inside. Where both have a
// retry or a limit for requests, Envoy Gateway takes the route's and leaves the
// policy's; a budget is the policy's in any case.
func (x *Paths) EnvoyGateway(route *manifest.Object, i int, rule any) []Step {
	policies := x.InForce("BackendTrafficPolicy", route, rule)
	retry, by := topology.Setting(policies, "spec.retry")
	limit, limiter := topology.Setting(policies, "spec.timeout.http.requestTimeout")
	budget, _ := topology.Setting(policies, "spec.circuitBreaker.retryBudget")
	own := fields.ValueAt(rule, "retry") != nil
	if own {
		retry, by = nil, nil
	}
	if route.Kind == "AIGatewayRoute" || fields.ValueAt(rule, "timeouts.request") != nil || fields.ValueAt(rule, "timeouts.backendRequest") != nil && !own {
		limit, limiter = nil, nil
	}
	var list []Step
	if s, ok := x.routeStep(route, i, rule); ok {
		if own && budget != nil {
			s.Budget = fraction(budget)
		}
		list = append(list, s)
	}
	if by == nil {
		by = limiter
	}
	if by == nil {
		return append(list, x.agentgatewaySteps(route, rule)...)
	}
	l := layers.Layer{Name: "BackendTrafficPolicy " + topology.NameOf(by), Product: "envoy-gateway", Hands: layers.Proxied()}
	l.Timeout = fields.DurationAt(map[string]any{"limit": limit}, "limit")
	if retry != nil {
		l.Attempts = repeating(envoyGatewayWords(retry), plusOne(fields.IntOr(retry, "numRetries", EnvoyRetries)))
		l.PerTry = fields.DurationAt(retry, "perRetry.timeout")
	}
	if budget != nil && !own {
		l.Budget = fraction(budget)
	}
	return append(list, newStep(by, "spec.retry", l))
}

func envoyGatewayWords(retry any) []string {
	triggers, codes := fields.WordsAt(retry, "retryOn.triggers"), fields.WordsAt(retry, "retryOn.httpStatusCodes")
	switch {
	case len(triggers) == 0 && len(codes) == 0:
		return envoyWords
	case len(triggers) == 0:
		return append([]string{"connect-failure"}, codes...)
	case !slices.Contains(triggers, "retriable-status-codes"):
		return triggers
	}
	if len(codes) == 0 {
		codes = []string{"503"}
	}
	return append(slices.Clone(triggers), codes...)
}

// fraction is a retry budget of Envoy Gateway as a share: 20 per cent where it
// names none.
func fraction(budget any) float64 {
	if fields.ValueAt(budget, "percent") == nil {
		return 0.2
	}
	n, _ := fields.Number(budget, "percent.numerator")
	if d, _ := fields.Number(budget, "percent.denominator"); d > 0 {
		return n / d
	}
	return n / 100
}

// routeStep is what the rule of a route of the Gateway API does by itself.
func (x *Paths) routeStep(o *manifest.Object, i int, rule any) (Step, bool) {
	l := layers.Layer{Name: o.Kind + " " + topology.NameOf(o), Product: "gateway-api", Hands: layers.Proxied()}
	l.Timeout, l.PerTry = fields.DurationAt(rule, "timeouts.request"), fields.DurationAt(rule, "timeouts.backendRequest")
	if o.Kind == "AIGatewayRoute" && fields.ValueAt(rule, "timeouts.request") == nil {
		l.Timeout, l.Assumed = aiGatewayLimit, "60 s is Envoy AI Gateway's default"
	}
	path := fmt.Sprintf("spec.rules[%d]", i)
	if retry := fields.ValueAt(rule, "retry"); retry != nil {
		words := append([]string{"reset"}, fields.WordsAt(retry, "codes")...)
		l.Attempts = repeating(words, plusOne(fields.IntOr(retry, "attempts", EnvoyRetries)))
		if fields.ValueAt(retry, "attempts") == nil {
			l.Assumed = "the route does not say how often: 2 retries"
		}
		path += ".retry"
		if b := x.constraint(o, rule); b != nil {
			l.Budget = share(b, "budget.percent", 20)
		}
	} else if l.Timeout > 0 {
		path += ".timeouts"
	}
	l.Attempts = x.linkerd(o.Root, l.Attempts, &l)
	return newStep(o, path, l), l.Tries() > 1 || l.Timeout > 0 || l.PerTry > 0
}

// constraint is the retry constraint of the backends of a rule, nil where one of
// them has none.
func (x *Paths) constraint(o *manifest.Object, rule any) any {
	var found any
	for _, b := range fields.ListAt(rule, "backendRefs") {
		found = nil
		for _, a := range x.Attached[topology.BackendKey(o, b)] {
			if c := fields.ValueAt(a.Policy.Root, "spec.retryConstraint"); c != nil && a.Policy.Kind == "XBackendTrafficPolicy" {
				found = c
			}
		}
		if found == nil {
			return nil
		}
	}
	return found
}

// agentgatewaySteps are what policies of agentgateway do for a rule.
func (x *Paths) agentgatewaySteps(route *manifest.Object, rule any) []Step {
	policies := x.InForce("AgentgatewayPolicy", route, rule)
	retry, by := topology.Setting(policies, "spec.traffic.retry")
	limit, limiter := topology.Setting(policies, "spec.traffic.timeouts.request")
	if by == nil {
		by = limiter
	}
	if by == nil {
		return nil
	}
	l := layers.Layer{Name: "AgentgatewayPolicy " + topology.NameOf(by), Product: "agentgateway", Hands: layers.Proxied()}
	l.Timeout = fields.DurationAt(map[string]any{"limit": limit}, "limit")
	if retry != nil {
		words := append([]string{"reset"}, fields.WordsAt(retry, "codes")...)
		l.Attempts = repeating(words, plusOne(fields.IntOr(retry, "attempts", 1)))
	}
	return []Step{newStep(by, "spec.traffic.retry", l)}
}

// linkerd adds what the annotations of a Service or route make Linkerd's proxy
// do.
func (x *Paths) linkerd(root map[string]any, attempts map[layers.Class]int, l *layers.Layer) map[layers.Class]int {
	at := func(name string) string { return "metadata.annotations[" + name + "]" }
	words := fields.WordsAt(root, at("retry.linkerd.io/http"))
	if d := fields.DurationAt(root, at("timeout.linkerd.io/request")); d > 0 {
		l.Timeout = d
	}
	if len(words) == 0 {
		return attempts
	}
	m := map[layers.Class]int{}
	for _, w := range words {
		classes := codeClasses(w)
		if w == "5xx" || w == "gateway-error" {
			classes = []layers.Class{layers.Server}
		}
		for _, c := range classes {
			m[c] = plusOne(fields.IntOr(root, at("retry.linkerd.io/limit"), 1))
		}
	}
	if d := fields.DurationAt(root, at("retry.linkerd.io/timeout")); d > 0 {
		l.PerTry = d
	}
	return m
}

// serviceSteps are what stands at a Service: Linkerd's annotations, and raw Envoy
// of Cilium.
func (x *Paths) serviceSteps(s *manifest.Object) []Step {
	l := layers.Layer{Name: "Linkerd at Service " + topology.NameOf(s), Product: "linkerd", Hands: layers.Proxied()}
	l.Attempts = x.linkerd(s.Root, nil, &l)
	var list []Step
	if l.Tries() > 1 || l.Timeout > 0 {
		list = append(list, newStep(s, "metadata.annotations[retry.linkerd.io/http]", l))
	}
	for _, o := range x.Graph.In("CiliumEnvoyConfig", s.Namespace) {
		for _, to := range fields.ListAt(o.Root, "spec.services") {
			if fields.TextAt(to, "name") == s.Name && fields.TextOr(to, "namespace", o.Namespace) == s.Namespace {
				list = append(list, ciliumStep(o)...)
			}
		}
	}
	return list
}

// ciliumStep is the retry policy of raw Envoy that repeats most.
func ciliumStep(o *manifest.Object) []Step {
	l := layers.Layer{Name: "CiliumEnvoyConfig " + topology.NameOf(o), Product: "envoy", Attempts: map[layers.Class]int{}, Hands: layers.Proxied()}
	for _, key := range []string{"retry_policy", "retryPolicy"} {
		for _, p := range within(fields.ValueAt(o.Root, "spec.resources"), key, 0) {
			words := fields.WordsAt(p, "retry_on")
			n := fields.IntOr(p, "num_retries", fields.IntOr(p, "numRetries", 1))
			for c, attempts := range repeating(append(append(words, fields.WordsAt(p, "retryOn")...), fields.WordsAt(p, "retriable_status_codes")...), plusOne(n)) {
				l.Attempts[c] = max(l.Attempts[c], attempts)
			}
			l.PerTry = max(l.PerTry, fields.DurationAt(p, "per_try_timeout"))
		}
	}
	for _, b := range within(fields.ValueAt(o.Root, "spec.resources"), "retry_budget", 0) {
		l.Budget = share(b, "budget_percent.value", 20)
	}
	if l.Tries() == 1 {
		return nil
	}
	return []Step{newStep(o, "spec.resources", l)}
}

// within are the values below a key, at any depth.
func within(v any, key string, depth int) []any {
	var list []any
	switch v := v.(type) {
	case map[string]any:
		for _, k := range fields.SortedKeys(v) {
			if k == key {
				list = append(list, v[k])
			}
			if depth < 32 {
				list = append(list, within(v[k], key, depth+1)...)
			}
		}
	case []any:
		for _, e := range v {
			if depth < 32 {
				list = append(list, within(e, key, depth+1)...)
			}
		}
	}
	return list
}

// ingressSteps are what the controller of an Ingress does before a Service.
func (x *Paths) ingressSteps(o, s *manifest.Object) []Step {
	switch x.IngressClass(o) {
	case "nginx":
		return []Step{x.nginxStep(o)}
	case "kong":
		return []Step{kongStep(s)}
	case "traefik":
		var list []Step
		for _, name := range fields.WordsAt(o.Root, "metadata.annotations[traefik.ingress.kubernetes.io/router.middlewares]") {
			if full, ok := strings.CutSuffix(name, "@kubernetescrd"); ok {
				list = append(list, x.middlewareNamed(full)...)
			}
		}
		return list
	case "apisix":
		return x.apisixSteps(o, s)
	}
	return nil
}

// nginxStep is what ingress-nginx does. Once a POST has reached a server it is
// repeated only where non_idempotent is set.
func (x *Paths) nginxStep(o *manifest.Object) Step {
	global := x.Nginx
	const prefix = "nginx.ingress.kubernetes.io/proxy-next-upstream"
	at := "metadata.annotations[" + prefix
	words, path := fields.WordsAt(o.Root, at+"]"), at+"]"
	if len(words) == 0 {
		words = fields.WordsAt(global, "proxy-next-upstream")
	}
	if len(words) == 0 {
		words = []string{"error", "timeout"}
	}
	tries := fields.IntOr(o.Root, at+"-tries]", fields.IntOr(global, "proxy-next-upstream-tries", nginxTries))
	l := layers.Layer{Name: "ingress-nginx " + topology.NameOf(o), Product: "ingress-nginx", Hands: layers.Proxied(), Attempts: map[layers.Class]int{}}
	if tries == 0 {
		tries, l.Assumed = nginxTries, "tries are not limited: at least 3 are taken"
	}
	again := slices.Contains(words, "non_idempotent") || fields.TextAt(global, "retry-non-idempotent") == "true"
	for _, w := range words {
		switch {
		case w == "off":
			tries = 1
		case w == "error" || w == "timeout":
			l.Attempts[layers.Connect] = tries
			if again {
				l.Attempts[layers.Reset] = tries
			}
		case again:
			for _, c := range codeClasses(w) {
				l.Attempts[c] = tries
			}
		}
	}
	if tries == 1 {
		l.Attempts = nil
	}
	return newStep(o, path, l)
}

// kongStep is what Kong does before a Service. It repeats what did not connect.
func kongStep(s *manifest.Object) Step {
	path := "metadata.annotations[konghq.com/retries]"
	l := layers.Layer{Name: "Kong at Service " + topology.NameOf(s), Product: "kong", Hands: layers.Proxied()}
	l.Attempts = map[layers.Class]int{layers.Connect: plusOne(fields.IntOr(s.Root, path, KongRetries))}
	if fields.ValueAt(s.Root, path) == nil {
		l.Assumed = "Kong retries five times where nothing is set"
	}
	return newStep(s, path, l)
}

// middlewareNamed finds NAMESPACE-NAME, as an annotation writes it.
func (x *Paths) middlewareNamed(full string) []Step {
	for i := range full {
		if full[i] == '-' {
			if m := x.Graph.Get("Middleware", full[:i], full[i+1:]); m != nil {
				return x.traefikSteps(m, 0)
			}
		}
	}
	return nil
}

// traefikSteps are the retries of a Middleware, or of those that it chains.
func (x *Paths) traefikSteps(m *manifest.Object, depth int) []Step {
	var list []Step
	for _, c := range fields.ListAt(m.Root, "spec.chain.middlewares") {
		if next := x.Graph.Get("Middleware", fields.TextOr(c, "namespace", m.Namespace), fields.TextAt(c, "name")); next != nil && depth < 4 {
			list = append(list, x.traefikSteps(next, depth+1)...)
		}
	}
	tries := fields.IntOr(m.Root, "spec.retry.attempts", 0)
	if tries <= 1 {
		return list
	}
	l := layers.Layer{Name: "Traefik Middleware " + topology.NameOf(m), Product: "traefik", Hands: layers.Proxied()}
	l.Attempts = map[layers.Class]int{layers.Connect: tries}
	if fields.ValueAt(m.Root, "spec.retry.retryNonIdempotentMethod") == true {
		l.Attempts[layers.Reset] = tries
		for _, w := range fields.WordsAt(m.Root, "spec.retry.status") {
			for _, c := range codeClasses(w) {
				l.Attempts[c] = tries
			}
		}
	}
	return append(list, newStep(m, "spec.retry.attempts", l))
}

// apisixSteps are what APISIX does before a Service.
func (x *Paths) apisixSteps(o, s *manifest.Object) []Step {
	l := layers.Layer{Name: "APISIX at Service " + topology.NameOf(s), Product: "apisix", Hands: layers.Proxied()}
	at, path, n := o, "metadata.annotations[k8s.apisix.apache.org/upstream-retries]", -1
	if v := fields.ValueAt(o.Root, path); v != nil {
		n = fields.IntOr(o.Root, path, -1)
	} else if up := x.Graph.Get("ApisixUpstream", s.Namespace, s.Name); up != nil && fields.ValueAt(up.Root, "spec.retries") != nil {
		at, path, n = up, "spec.retries", fields.IntOr(up.Root, "spec.retries", -1)
	}
	if n < 0 {
		n, l.Assumed = x.endpoints(s)-1, "APISIX tries every other endpoint where nothing is set"
	}
	if n <= 0 {
		return nil
	}
	for _, c := range []layers.Class{layers.Connect, layers.Reset, layers.Server} {
		if l.Attempts == nil {
			l.Attempts = map[layers.Class]int{}
		}
		l.Attempts[c] = plusOne(n)
	}
	return []Step{newStep(at, path, l)}
}

// endpoints are the pods behind a Service, as far as workloads tell.
func (x *Paths) endpoints(s *manifest.Object) int {
	n := 0
	for _, w := range x.Behind[s] {
		n += max(x.Floor(w.Object), 0)
	}
	return n
}
