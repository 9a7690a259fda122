package topology

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// findPath finds the objects that are on the way from a client to a model: those
// that say so or are known, then what they refer to and what refers to them,
// until nothing is added, and last what bears on them from beside.
func (g *Graph) findPath() {
	s := &scope{g: g, hosts: map[string]string{}, called: map[*manifest.Object]bool{}, products: map[*manifest.Object]string{}}
	g.search = s
	for _, o := range g.all {
		s.seed(o)
	}
	s.spread()
	for _, w := range g.Workloads() { // what serves models may call others, so clients come last
		if by := calls(w); by != "" {
			s.role(w, Client, by)
		}
	}
	s.spread()
	for _, o := range g.all {
		if s.answers(o) || g.on[o] != "" && slices.Contains(servedKinds, o.Kind) {
			g.served[o.Name] = true
		}
	}
	s.beside()
}

// servedKinds are the kinds, workloads apart, by whose names metrics and alerts
// speak of model calls.
var servedKinds = []string{"Service", "HTTPRoute", "AIGatewayRoute", "InferencePool"}

// scope is the search for the path. It only ever adds, so it ends.
type scope struct {
	g        *Graph
	hosts    map[string]string           // that clients call, and by what that is known
	called   map[*manifest.Object]bool   // what a client calls by its host
	products map[*manifest.Object]string // of ConfigMaps that hold a gateway's configuration
}

// maxRounds bounds how far references are followed: real paths have a handful of
// steps.
const maxRounds = 50

// spread follows references until nothing is added.
func (s *scope) spread() {
	for round, before := 0, -1; round < maxRounds && before != s.found(); round++ {
		before = s.found()
		for _, o := range s.g.all {
			s.visit(o)
		}
	}
}

func (s *scope) found() int { return len(s.g.on) + len(s.g.roles) + len(s.hosts) + len(s.called) }

// modelKinds are the kinds that exist only for models.
var modelKinds = []string{
	"AIGatewayRoute", "AIServiceBackend", "QuotaPolicy", "InferencePool", "AgentgatewayBackend", "InferenceService", "LLMInferenceService",
}

func (s *scope) mark(o *manifest.Object, by string) {
	if o != nil && s.g.on[o] == "" {
		s.g.on[o] = by
	}
}

func (s *scope) role(o *manifest.Object, r Role, by string) {
	if o == nil || s.g.roles[o].Role != "" {
		return
	}
	s.g.roles[o] = RoleOf{Object: o.Ref(), Role: r, By: by}
	s.mark(o, by)
	if r == Client {
		for _, h := range bases(o) {
			s.hosts[h] = "called by " + o.Ref().String()
		}
	}
}

// seed marks an object that is known by itself.
func (s *scope) seed(o *manifest.Object) {
	_, by := declared(o)
	switch kind := KindOf(o); {
	case slices.Contains(workloadKinds, kind):
		if r, by := stated(o); slices.Contains(parts, r) {
			s.role(o, r, by)
		} else if r != "" {
			s.mark(o, by)
		}
	case by != "":
		s.mark(o, by)
	case slices.Contains(modelKinds, kind):
		s.mark(o, "kind "+o.Kind)
	case o.Group == manifest.FileGroup:
		s.mark(o, "configuration of "+o.Kind)
	}
	if KindOf(o) == "ConfigMap" {
		s.g.texts[o] = documents(o)
		if s.products[o] = cmp.Or(productOf(s.g.texts[o]), LeadsToModels(s.g.gateways[o])); s.products[o] != "" {
			s.mark(o, "configuration of "+s.products[o])
		}
	}
}

// productOf is the gateway that a ConfigMap's documents configure.
func productOf(list []Document) string {
	for _, d := range list {
		has := func(k string) bool { return d.Root[k] != nil }
		_, isMap := d.Root["providers"].(map[string]any)
		switch {
		case has("model_list"):
			return "LiteLLM"
		case isMap && anyHas(d.Root["providers"], "network_config", "keys"):
			return "Bifrost"
		case has("strategy") && has("targets"), has("retry") && has("provider"):
			return "Portkey"
		case has("providers") && has("models") && has("targets"):
			return "hourthree"
		}
	}
	return ""
}

// anyHas says whether an element of a map has a field of one of the names.
func anyHas(v any, names ...string) bool {
	m, _ := v.(map[string]any)
	for _, e := range m {
		for _, f := range names {
			if x, _ := fields.Value(e, f); x != nil {
				return true
			}
		}
	}
	return false
}

// visit follows what an object refers to.
func (s *scope) visit(o *manifest.Object) {
	switch KindOf(o) {
	case "Deployment", "StatefulSet", "DaemonSet":
		s.mounts(o)
	case "Pod":
		s.pod(o)
	case "Rollout":
		s.rollout(o)
	case "Service":
		s.service(o)
	case "InferencePool":
		s.pool(o)
	case "HTTPRoute", "AIGatewayRoute":
		s.route(o)
	case "Gateway":
		s.gateway(o)
	case "Ingress", "IngressRoute", "ApisixRoute":
		s.ingress(o)
	case "VirtualService", "DestinationRule", "ServiceEntry":
		s.mesh(o)
	case "Backend", "AIServiceBackend":
		s.backend(o)
	default:
		s.attached(o)
	}
}

// mounts gives the role of a gateway to what mounts a gateway's configuration.
func (s *scope) mounts(o *manifest.Object) {
	if s.g.roles[o].Role != "" {
		return
	}
	volumes, _ := fields.List(PodSpec(o), "volumes")
	for _, v := range volumes {
		name, _ := fields.Text(v, "configMap.name")
		if product := s.products[s.g.Get("ConfigMap", o.Namespace, name)]; product != "" {
			s.role(o, Gateway, "mounts the configuration of "+product)
		}
	}
}

// pod gives a Pod the role of the workload whose labels it has.
func (s *scope) pod(o *manifest.Object) {
	if s.g.roles[o].Role != "" {
		return
	}
	for _, k := range workloadKinds[:4] {
		for _, w := range s.g.In(k, o.Namespace) {
			selector, _ := fields.Object(w.Root, "spec.selector")
			if r := s.g.roles[w]; r.Role != "" && selects(selector, podLabels(o)) {
				s.role(o, r.Role, "pod of "+w.Ref().String())
				return
			}
		}
	}
}

func (s *scope) rollout(o *manifest.Object) {
	name, _ := fields.Text(o.Root, "spec.workloadRef.name")
	if r := s.g.roles[s.g.Get("Deployment", o.Namespace, name)]; r.Role != "" {
		s.role(o, r.Role, "rolls out "+r.Object.String())
	}
	s.mounts(o)
}

// names are the host names of a Service. The last is one in its namespace only.
func names(o *manifest.Object) []string {
	full := o.Name + "." + o.Namespace
	return []string{full, full + ".svc", full + ".svc.cluster.local", o.Name}
}

// serviceAt is the Service that a host names as seen from a namespace, nil for
// none.
func (g *Graph) serviceAt(host, from string) *manifest.Object {
	host = strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
	name, namespace, ok := strings.Cut(host, ".")
	if !ok {
		namespace = from
	}
	return g.Get("Service", namespace, name)
}

func (s *scope) service(o *manifest.Object) {
	if external, _ := fields.Text(o.Root, "spec.externalName"); Provider(external) {
		s.mark(o, "names the provider's host "+external)
	}
	behind := s.g.Behind(o)
	for _, w := range behind {
		if r := s.g.roles[w]; r.Role != "" && r.Role != Client {
			s.mark(o, "selects "+w.Ref().String())
		}
	}
	if c := s.caller(o); c != nil {
		s.mark(o, "called by "+c.Ref().String())
		s.called[o] = true
	}
	if s.called[o] {
		for _, w := range behind {
			s.role(w, serves(w), "behind "+o.Ref().String()+", "+s.g.on[o])
		}
	}
}

// caller is the first client whose base URL names a Service, nil for none.
func (s *scope) caller(o *manifest.Object) *manifest.Object {
	for _, n := range names(o) {
		if s.hosts[n] == "" {
			continue
		}
		for _, w := range s.g.Workloads() {
			short := n == o.Name // only from its own namespace
			if s.g.roles[w].Role == Client && (!short || w.Namespace == o.Namespace) && slices.Contains(bases(w), n) {
				return w
			}
		}
	}
	return nil
}

// serves is the role of a workload that answers model calls: a server when it
// asks for an accelerator, else a gateway.
func serves(o *manifest.Object) Role {
	for _, c := range Containers(o) {
		limits, _ := fields.Object(c.Root, "resources.limits")
		claims, _ := fields.List(c.Root, "resources.claims") // of devices
		for k := range limits {
			if accelerator.MatchString(k) {
				return Server
			}
		}
		if len(claims) > 0 {
			return Server
		}
	}
	return Gateway
}

// accelerator are the names of what models run on, as vendors' device plugins
// have them.
var accelerator = regexp.MustCompile(`/(gpu|tpu|mig-|neuron|gaudi|npu)|^gpu\.|^huawei\.com/Ascend`)

func (s *scope) pool(o *manifest.Object) {
	selector, _ := fields.Object(o.Root, "spec.selector.matchLabels")
	if len(selector) > 0 {
		for _, w := range s.g.labelled(o.Namespace, selector) {
			s.role(w, Server, "selected by "+o.Ref().String())
		}
	}
	name, _ := fields.Text(o.Root, "spec.endpointPickerRef.name")
	if svc := s.g.Get("Service", o.Namespace, name); svc != nil {
		s.mark(svc, "endpoint picker of "+o.Ref().String())
		for _, w := range s.g.Behind(svc) {
			s.role(w, Picker, "endpoint picker of "+o.Ref().String())
		}
	}
}

// backends are the names of what a rule of a route sends to.
func backends(rule any, namespace string) []manifest.Ref {
	refs, _ := fields.List(rule, "backendRefs")
	var list []manifest.Ref
	for _, r := range refs {
		b := manifest.Ref{Namespace: namespace}
		b.Group, _ = fields.Text(r, "group")
		b.Kind, _ = fields.Text(r, "kind")
		b.Name, _ = fields.Text(r, "name")
		if ns, _ := fields.Text(r, "namespace"); ns != "" {
			b.Namespace = ns
		}
		list = append(list, b)
	}
	return list
}

func (s *scope) route(o *manifest.Object) {
	hosts, _ := fields.Words(o.Root, "spec.hostnames")
	for _, h := range hosts {
		if by := s.hosts[strings.ToLower(h)]; by != "" {
			s.mark(o, "host "+h+", "+by)
			s.called[o] = true
		}
	}
	rules, _ := fields.List(o.Root, "spec.rules")
	for _, r := range rules {
		for _, b := range backends(r, o.Namespace) {
			s.sends(o, b, len(rules) == 1)
		}
	}
	if s.g.on[o] != "" {
		for _, gw := range s.g.Gateways(o) {
			s.mark(gw, "gateway of "+o.Ref().String())
		}
		s.filters(o, rules)
	}
}

// Concerns says whether a rule of a route on the path is about models, so that
// checks of rules leave those alone that send elsewhere.
func (g *Graph) Concerns(o *manifest.Object, each string, rule any) bool {
	switch {
	case KindOf(o) == "HTTPRoute" && each == "spec.rules[]":
		rules, _ := fields.List(o.Root, "spec.rules")
		return g.search.toModel(o, rule) || !slices.ContainsFunc(rules, func(r any) bool { return g.search.toModel(o, r) })
	case KindOf(o) == "VirtualService" && each == "spec.http[]":
		return g.search.meshRule(o, rule)
	}
	return true
}

// toModel says whether a backend of a rule is on the path.
func (s *scope) toModel(o *manifest.Object, rule any) bool {
	return slices.ContainsFunc(backends(rule, o.Namespace), func(b manifest.Ref) bool {
		if b.Kind == "" {
			b.Kind = "Service"
		}
		return s.g.on[s.g.Get(b.Kind, b.Namespace, b.Name)] != "" || slices.Contains(modelKinds, b.Kind)
	})
}

// meshRule says whether a rule of a VirtualService is about models: by its own
// destinations, or by a host of the whole.
func (s *scope) meshRule(o *manifest.Object, rule any) bool {
	hosts, _ := fields.Words(o.Root, "spec.hosts")
	to := destinations(rule)
	by := func(h string) bool { return s.modelHost(h, o.Namespace) != "" }
	if slices.ContainsFunc(to, by) {
		return true
	}
	routes, _ := fields.List(o.Root, "spec.http")
	elsewhere := slices.ContainsFunc(routes, func(r any) bool { return slices.ContainsFunc(destinations(r), by) })
	_, said := declared(o)
	return said != "" || !elsewhere && slices.ContainsFunc(hosts, by)
}

// destinations are the hosts that a rule of a VirtualService sends to.
func destinations(rule any) []string {
	var hosts []string
	to, _ := fields.List(rule, "route")
	for _, d := range to {
		if host, _ := fields.Text(d, "destination.host"); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// sends follows a route to a backend, both ways. Of a route that a client calls
// by its host, only the one backend of a single rule is known to be called.
func (s *scope) sends(o *manifest.Object, b manifest.Ref, single bool) {
	switch {
	case b.Kind != "":
	case o.Kind == "AIGatewayRoute":
		b.Kind = "AIServiceBackend"
	default:
		b.Kind = "Service"
	}
	to := s.g.Get(b.Kind, b.Namespace, b.Name)
	if s.g.on[to] != "" || slices.Contains(modelKinds, b.Kind) {
		s.mark(o, "sends to "+b.String())
	}
	if to != nil && (o.Kind == "AIGatewayRoute" || s.called[o] && single) {
		s.mark(to, "behind "+o.Ref().String())
		s.called[to] = true
	}
}

// filters marks the Middlewares that a route's rules name.
func (s *scope) filters(o *manifest.Object, rules []any) {
	for _, r := range rules {
		list, _ := fields.List(r, "filters")
		for _, f := range list {
			name, _ := fields.Text(f, "extensionRef.name")
			kind, _ := fields.Text(f, "extensionRef.kind")
			s.mark(s.g.Get(kind, o.Namespace, name), "filter of "+o.Ref().String())
		}
	}
}

func (s *scope) gateway(o *manifest.Object) {
	if s.g.on[o] == "" {
		return
	}
	if name, _ := fields.Text(o.Root, "spec.infrastructure.parametersRef.name"); name != "" {
		s.mark(s.g.Get("EnvoyProxy", o.Namespace, name), "of "+o.Ref().String())
	}
	class, _ := fields.Text(o.Root, "spec.gatewayClassName")
	if c := s.g.Get("GatewayClass", "", class); c != nil {
		s.mark(c, "class of "+o.Ref().String())
		name, _ := fields.Text(c.Root, "spec.parametersRef.name")
		namespace, _ := fields.Text(c.Root, "spec.parametersRef.namespace")
		s.mark(s.g.Get("EnvoyProxy", namespace, name), "of "+c.Ref().String())
	}
}

// serviceRefs are the names of the Services that an Ingress, an IngressRoute or
// an ApisixRoute sends to, each once.
func serviceRefs(o *manifest.Object) []manifest.Ref {
	var list []manifest.Ref
	add := func(v any, name, namespace string) {
		r := manifest.Ref{Kind: "Service", Namespace: o.Namespace}
		r.Name, _ = fields.Text(v, name)
		if ns, _ := fields.Text(v, namespace); namespace != "" && ns != "" {
			r.Namespace = ns
		}
		if r.Name != "" && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	each := func(root any, path string, f func(any)) {
		all, _ := fields.List(root, path)
		for _, e := range all {
			f(e)
		}
	}
	add(o.Root, "spec.defaultBackend.service.name", "")
	each(o.Root, "spec.rules", func(r any) {
		each(r, "http.paths", func(p any) { add(p, "backend.service.name", "") })
	})
	each(o.Root, "spec.routes", func(r any) {
		each(r, "services", func(v any) { add(v, "name", "namespace") })
	})
	each(o.Root, "spec.http", func(r any) {
		each(r, "backends", func(v any) { add(v, "serviceName", "") })
	})
	return list
}

func (s *scope) ingress(o *manifest.Object) {
	rules, _ := fields.List(o.Root, "spec.rules")
	for _, r := range rules {
		host, _ := fields.Text(r, "host")
		if by := s.hosts[strings.ToLower(host)]; by != "" {
			s.mark(o, "host "+host+", "+by)
			s.called[o] = true
		}
	}
	refs := serviceRefs(o)
	for _, r := range refs {
		s.sends(o, r, len(refs) == 1)
	}
	if s.g.on[o] == "" {
		return
	}
	for _, m := range middlewares(o) {
		s.mark(s.g.Get("Middleware", m.Namespace, m.Name), "middleware of "+o.Ref().String())
	}
}

// middlewares are the names of Traefik's that an Ingress or IngressRoute uses.
func middlewares(o *manifest.Object) []manifest.Ref {
	var list []manifest.Ref
	text, _ := fields.Words(o.Root, "metadata.annotations[traefik.ingress.kubernetes.io/router.middlewares]")
	for _, w := range text {
		full, _, _ := strings.Cut(w, "@")
		if name, ok := strings.CutPrefix(full, o.Namespace+"-"); ok {
			list = append(list, manifest.Ref{Namespace: o.Namespace, Name: name})
		} else if namespace, name, ok := strings.Cut(full, "-"); ok {
			list = append(list, manifest.Ref{Namespace: namespace, Name: name})
		}
	}
	routes, _ := fields.List(o.Root, "spec.routes")
	for _, r := range routes {
		all, _ := fields.List(r, "middlewares")
		for _, m := range all {
			ref := manifest.Ref{Namespace: o.Namespace}
			ref.Name, _ = fields.Text(m, "name")
			if ns, _ := fields.Text(m, "namespace"); ns != "" {
				ref.Namespace = ns
			}
			list = append(list, ref)
		}
	}
	return list
}

// modelHost says by what a host, as seen from a namespace, is on the way to a
// model.
func (s *scope) modelHost(host, from string) string {
	host = strings.ToLower(host)
	if Provider(host) {
		return "provider's host " + host
	}
	if by := s.hosts[host]; by != "" && strings.Contains(host, ".") {
		return "host " + host + ", " + by
	}
	if svc := s.g.serviceAt(host, from); svc != nil && s.g.on[svc] != "" {
		return "host of " + svc.Ref().String()
	}
	return ""
}

// mesh looks at the hosts of Istio's objects. Of a VirtualService that a client
// calls by its host, only the one destination of a single rule is known to be
// called.
func (s *scope) mesh(o *manifest.Object) {
	hosts, _ := fields.Words(o.Root, "spec.hosts")
	if host, _ := fields.Text(o.Root, "spec.host"); host != "" {
		hosts = append(hosts, host)
	}
	routes, _ := fields.List(o.Root, "spec.http")
	for _, h := range hosts {
		if s.hosts[strings.ToLower(h)] != "" {
			s.called[o] = true
		}
	}
	for _, r := range routes {
		to := destinations(r)
		if svc := s.g.serviceAt(strings.Join(to, ""), o.Namespace); svc != nil && s.called[o] && len(routes) == 1 {
			s.mark(svc, "behind "+o.Ref().String())
			s.called[svc] = true
		}
		hosts = append(hosts, to...)
	}
	for _, h := range hosts {
		if by := s.modelHost(h, o.Namespace); by != "" {
			s.mark(o, by)
		}
	}
}

func (s *scope) backend(o *manifest.Object) {
	if o.Kind == "AIServiceBackend" {
		name, _ := fields.Text(o.Root, "spec.backendRef.name")
		kind, _ := fields.Text(o.Root, "spec.backendRef.kind")
		namespace, _ := fields.Text(o.Root, "spec.backendRef.namespace")
		if namespace == "" {
			namespace = o.Namespace
		}
		s.mark(s.g.Get(kind, namespace, name), "behind "+o.Ref().String())
		return
	}
	endpoints, _ := fields.List(o.Root, "spec.endpoints")
	for _, e := range endpoints {
		host, _ := fields.Text(e, "fqdn.hostname")
		if by := s.modelHost(host, o.Namespace); host != "" && by != "" {
			s.mark(o, by)
		}
	}
}

// attached marks what is attached to something on the path.
func (s *scope) attached(o *manifest.Object) {
	switch KindOf(o) {
	case "HorizontalPodAutoscaler", "ScaledObject":
		s.follow(o, "spec.scaleTargetRef", "scales ")
	case "Canary":
		s.follow(o, "spec.targetRef", "rolls out ")
	case "ApisixUpstream":
		if svc := s.g.Get("Service", o.Namespace, o.Name); svc != nil && s.g.on[svc] != "" {
			s.mark(o, "upstream of "+svc.Ref().String())
		}
		nodes, _ := fields.List(o.Root, "spec.externalNodes")
		for _, n := range nodes {
			host, _ := fields.Text(n, "name")
			if by := s.modelHost(host, o.Namespace); host != "" && by != "" {
				s.mark(o, by)
			}
		}
	case "CiliumEnvoyConfig":
		for _, field := range []string{"spec.services", "spec.backendServices"} {
			list, _ := fields.List(o.Root, field)
			for _, v := range list {
				name, _ := fields.Text(v, "name")
				namespace, _ := fields.Text(v, "namespace")
				if namespace == "" {
					namespace = o.Namespace
				}
				if svc := s.g.Get("Service", namespace, name); svc != nil && s.g.on[svc] != "" {
					s.mark(o, "for "+svc.Ref().String())
				}
			}
		}
	default:
		if slices.Contains(policyKinds, o.Kind) {
			s.policy(o)
		}
	}
}

func (s *scope) policy(o *manifest.Object) {
	for _, k := range s.g.TargetsOf(o) {
		to := s.g.named[k]
		if to == nil && k.Kind == "HTTPRoute" {
			to = s.g.Get("AIGatewayRoute", k.Namespace, k.Name)
		}
		if to != nil && s.g.on[to] != "" {
			s.mark(o, "attached to "+to.Ref().String())
		}
	}
}

// follow marks what refers to a workload that answers model calls.
func (s *scope) follow(o *manifest.Object, path, by string) {
	kind, _ := fields.Text(o.Root, path+".kind")
	name, _ := fields.Text(o.Root, path+".name")
	if kind == "" {
		kind = "Deployment"
	}
	if w := s.g.Get(kind, o.Namespace, name); s.answers(w) {
		s.mark(o, by+w.Ref().String())
	}
}

// answers says whether a workload takes model calls: its role is another than
// client.
func (s *scope) answers(w *manifest.Object) bool {
	r := s.g.roles[w].Role
	return r != "" && r != Client
}
