package retrypath

import (
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// route follows a route for a host, "" for any of its hosts.
func (k *walk) route(t trail, o *manifest.Object, host string) {
	if k.stop(t, o) {
		return
	}
	t = t.past(o)
	switch o.Kind {
	case "VirtualService":
		k.virtualService(t, o, 0)
	case "HTTPRoute", "AIGatewayRoute":
		k.gatewayRoute(t, o)
	case "Ingress":
		k.ingress(t, o, host)
	case "IngressRoute":
		k.ingressRoute(t, o, host)
	case "ApisixRoute":
		k.apisixRoute(t, o, host)
	}
}

func (k *walk) virtualService(t trail, o *manifest.Object, depth int) {
	for i, h := range fields.ListAt(o.Root, "spec.http") {
		if d := fields.MapAt(h, "delegate"); d != nil && depth < 4 {
			if to := k.x.Graph.Get("VirtualService", fields.TextOr(d, "namespace", o.Namespace), fields.TextAt(d, "name")); to != nil {
				k.virtualService(t.past(to), to, depth+1)
			}
		}
		for _, r := range fields.ListAt(h, "route") {
			if w := fields.IntOr(r, "weight", -1); w == 0 && len(fields.ListAt(h, "route")) > 1 {
				continue
			}
			d := fields.ValueAt(r, "destination")
			next := t.with(k.x.istioStep(o, i, h, d))
			host := fields.TextAt(d, "host")
			if s := k.x.Service(host, o.Namespace); s != nil {
				k.enterService(next, s)
				continue
			}
			if len(k.x.Entries.Named(host, nil)) == 0 && !topology.Provider(host) {
				next = next.noting("nothing that was read is %s", host)
			}
			k.end(next, host)
		}
	}
}

func (k *walk) gatewayRoute(t trail, o *manifest.Object) {
	for i, rule := range fields.ListAt(o.Root, "spec.rules") {
		next := t.with(k.x.EnvoyGateway(o, i, rule)...)
		for _, b := range fields.ListAt(rule, "backendRefs") {
			to := topology.BackendKey(o, b)
			if fields.IntOr(b, "weight", 1) != 0 && k.x.Granted(o, to) {
				k.backend(next, to)
			}
		}
	}
}

// backend follows what a backendRef names.
func (k *walk) backend(t trail, to topology.Key) {
	o := k.x.Graph.Get(to.Kind, to.Namespace, to.Name)
	if o == nil {
		k.end(t.noting("%s %s/%s was not read", to.Kind, to.Namespace, to.Name), to.Kind+" "+to.Namespace+"/"+to.Name)
		return
	}
	switch to.Kind {
	case "Service":
		k.enterService(t, o)
	case "AIServiceBackend":
		if !k.stop(t, o) {
			ref := fields.ValueAt(o.Root, "spec.backendRef")
			k.backend(t.past(o), topology.Key{Kind: fields.TextOr(ref, "kind", "Service"), Namespace: fields.TextOr(ref, "namespace", o.Namespace), Name: fields.TextAt(ref, "name")})
		}
	case "Backend":
		k.endpoints(t, o)
	case "InferencePool":
		workloads := k.x.Selected(o.Namespace, poolSelector(o))
		for _, w := range workloads {
			k.enter(t, w)
		}
		if len(workloads) == 0 {
			k.end(t, "InferencePool "+topology.NameOf(o))
		}
	default:
		k.named(t, o)
	}
}

// poolSelector is the LabelSelector of an InferencePool; older versions have the
// labels themselves.
func poolSelector(o *manifest.Object) map[string]any {
	selector := fields.MapAt(o.Root, "spec.selector")
	if selector == nil || selector["matchLabels"] != nil || selector["matchExpressions"] != nil {
		return selector
	}
	return map[string]any{"matchLabels": selector}
}

func (k *walk) endpoints(t trail, o *manifest.Object) {
	hosts := EndpointHosts(o)
	for _, h := range hosts {
		switch s := k.x.Service(h, o.Namespace); {
		case k.stop(t, o):
		case s != nil:
			k.enterService(t.past(o), s)
		default:
			k.end(t.past(o), h)
		}
	}
	if len(hosts) == 0 {
		k.end(t, "Backend "+topology.NameOf(o))
	}
}

// EndpointHosts are the hosts of a Backend of Envoy Gateway.
func EndpointHosts(o *manifest.Object) []string {
	var hosts []string
	for _, e := range fields.ListAt(o.Root, "spec.endpoints") {
		h := fields.TextOr(e, "fqdn.hostname", fields.TextAt(e, "ip.address"))
		if h = strings.ToLower(strings.TrimSuffix(h, ".")); h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// named follows the hosts that a backend of another kind names, agentgateway's
// being the one that is known.
func (k *walk) named(t trail, o *manifest.Object) {
	hosts := fields.WordsAt(o.Root, "spec.static.host")
	for _, h := range within(o.Root, "host", 0) {
		if s, ok := h.(string); ok && !slices.Contains(hosts, s) {
			hosts = append(hosts, s)
		}
	}
	for _, h := range hosts {
		k.end(t, h)
	}
	if len(hosts) == 0 {
		k.end(t, o.Kind+" "+topology.NameOf(o))
	}
}

func (k *walk) ingress(t trail, o *manifest.Object, host string) {
	var done []string
	for _, b := range topology.IngressBackends(o) {
		if host != "" && b.Host != "" && b.Host != host && !wildcard(b.Host, host) || slices.Contains(done, b.Service) {
			continue
		}
		done = append(done, b.Service)
		if s := k.x.Graph.Get("Service", o.Namespace, b.Service); s != nil {
			k.enterService(t.with(k.x.ingressSteps(o, s)...), s)
		} else {
			k.end(t.noting("Service %s/%s was not read", o.Namespace, b.Service), "Service "+o.Namespace+"/"+b.Service)
		}
	}
}

func wildcard(pattern, host string) bool {
	h := topology.Hosts{}
	h.Add(pattern, nil)
	return len(h.Named(host, nil)) > 0
}

func (k *walk) ingressRoute(t trail, o *manifest.Object, host string) {
	for _, r := range fields.ListAt(o.Root, "spec.routes") {
		if names := topology.MatchHosts(fields.TextAt(r, "match")); host != "" && !slices.Contains(names, host) && !slices.Contains(names, "") {
			continue
		}
		next := t
		for _, m := range fields.ListAt(r, "middlewares") {
			if o := k.x.Graph.Get("Middleware", fields.TextOr(m, "namespace", o.Namespace), fields.TextAt(m, "name")); o != nil {
				next = next.with(k.x.traefikSteps(o, 0)...)
			}
		}
		for _, s := range fields.ListAt(r, "services") {
			if fields.TextOr(s, "kind", "Service") == "Service" {
				k.backend(next, topology.Key{Kind: "Service", Namespace: fields.TextOr(s, "namespace", o.Namespace), Name: fields.TextAt(s, "name")})
			}
		}
	}
}

func (k *walk) apisixRoute(t trail, o *manifest.Object, host string) {
	for _, r := range fields.ListAt(o.Root, "spec.http") {
		if names := fields.WordsAt(r, "match.hosts"); host != "" && len(names) > 0 && !slices.Contains(names, host) {
			continue
		}
		for _, b := range fields.ListAt(r, "backends") {
			to := topology.Key{Kind: "Service", Namespace: o.Namespace, Name: fields.TextAt(b, "serviceName")}
			next := t
			if s := k.x.Graph.Get(to.Kind, to.Namespace, to.Name); s != nil {
				next = next.with(k.x.apisixSteps(o, s)...)
			}
			k.backend(next, to)
		}
	}
}
