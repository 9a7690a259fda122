package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
)

// What bounds a walk: a graph may lead in circles and branch at every step.
const (
	maxPaths = 64
	maxSteps = 24 // objects on one path
	maxVisit = 4096
	maxAny   = 8 // routes for any host; with more of them nobody can say which serves one
)

// trail is what a walk has passed. It is copied where it branches.
type trail struct {
	steps []step
	seen  []*manifest.Object
	notes []string
}

func (t trail) with(s ...step) trail {
	t.steps = append(slices.Clip(t.steps), s...)
	return t
}

func (t trail) past(o *manifest.Object) trail {
	t.seen = append(slices.Clip(t.seen), o)
	return t
}

func (t trail) noting(format string, args ...any) trail {
	if note := fmt.Sprintf(format, args...); !slices.Contains(t.notes, note) {
		t.notes = append(slices.Clip(t.notes), note)
	}
	return t
}

// walk finds the paths of one workload.
type walk struct {
	x      *edges
	begin  Path
	found  []Path
	known  map[string]bool
	visits int
}

// findPaths finds the paths of all clients, and of gateways that none of them
// passes, with an assumed client.
func (x *edges) findPaths() map[*manifest.Object][]Path {
	all := map[*manifest.Object][]Path{}
	passed := map[*manifest.Object]bool{}
	for _, w := range x.workloads {
		if x.g.Role(w.o) != Client {
			continue
		}
		all[w.o] = x.pathsFrom(w)
		for _, p := range all[w.o] {
			for _, o := range p.via {
				passed[o] = true
			}
		}
	}
	for _, w := range x.served {
		if !passed[w.o] {
			all[w.o] = x.pathsThrough(w)
		}
	}
	for _, o := range x.files {
		all[o] = x.pathsOfFile(o)
	}
	return all
}

// pathsOfFile are the ways through a gateway that is configured by a file of its
// own: whoever calls it is unknown.
func (x *edges) pathsOfFile(o *manifest.Object) []Path {
	k := &walk{x: x, known: map[string]bool{}, begin: Path{Client: o.Ref(), client: o, Host: o.Name}}
	start := trail{}.with(step{Layer: AssumedSDK()}).past(o)
	for _, r := range x.g.gateways[o] {
		for _, g := range routesAlike(r, o) {
			t := start.with(g.step)
			for _, a := range g.targets {
				k.end(t, a.host)
			}
			if len(g.targets) == 0 {
				k.end(t.noting("the configuration of %s names no host", o.Name), o.Name)
			}
		}
	}
	worstFirst(k.found)
	return k.found
}

func (x *edges) pathsFrom(w *workload) []Path {
	k := &walk{x: x, known: map[string]bool{}}
	for _, b := range x.bases(w) {
		k.begin = Path{Client: w.o.Ref(), Known: true, client: w.o, Container: b.container.Name, From: b.from, Host: b.host}
		k.call(trail{}.past(w.o).with(x.sdk(w, b.container, b.vars, b.product)), w, b.address)
	}
	worstFirst(k.found)
	return k.found
}

// pathsThrough are the ways in through which an unknown client reaches a
// gateway: every route that leads to it or, without any, straight.
func (x *edges) pathsThrough(w *workload) []Path {
	k := &walk{x: x, known: map[string]bool{}, begin: Path{Client: w.o.Ref(), client: w.o}}
	start := trail{}.with(step{Layer: AssumedSDK()}).noting("no client of %s was read", placeName(w.o))
	for _, s := range w.before {
		for _, route := range x.backends[key{"Service", s.Namespace, s.Name}] {
			k.begin.Host = "route " + placeName(route)
			k.route(start, route, "")
		}
	}
	k.found = slices.DeleteFunc(k.found, func(p Path) bool { return !slices.Contains(p.via, w.o) })
	if len(k.found) == 0 {
		k.begin.Host = w.o.Name
		k.enter(start, w)
	}
	worstFirst(k.found)
	return k.found
}

// end keeps a path, once.
func (k *walk) end(t trail, to string) {
	p := k.begin
	p.To = to
	p = finish(p, t)
	var id strings.Builder
	fmt.Fprint(&id, p.Container, "|", p.Host, "|", p.To)
	for _, l := range p.Layers {
		fmt.Fprint(&id, "|", l.Name, l.Attempts, l.Timeout, l.PerTry)
	}
	if k.known[id.String()] || len(k.found) >= maxPaths {
		return
	}
	k.known[id.String()] = true
	k.found = append(k.found, p)
}

// stop says that the walk must not go on to o.
func (k *walk) stop(t trail, o *manifest.Object) bool {
	k.visits++
	switch {
	case slices.Contains(t.seen, o):
		k.end(t.noting("the path leads back to %s", o.Ref()), placeName(o))
	case len(t.seen) >= maxSteps, len(t.steps) >= maxSteps:
		k.end(t.noting("the path is longer than %d objects and was not followed further", maxSteps), placeName(o))
	case k.visits > maxVisit || len(k.found) >= maxPaths:
		if n := len(k.found); n > 0 {
			note := "there are more paths, which were not followed"
			if last := &k.found[n-1]; !slices.Contains(last.Notes, note) {
				last.Notes = append(last.Notes, note)
			}
		}
	default:
		return false
	}
	return true
}

// call is a call of a workload to a host: it passes the workload's sidecar.
func (k *walk) call(t trail, w *workload, a address) {
	x := k.x
	host := x.fullIn(a.host, w.o.Namespace)
	has, known := x.sidecar(w)
	routes := x.sidecars.find(host, func(o *manifest.Object) bool {
		return o.Kind != "VirtualService" || exported(o, w.o.Namespace) && !slices.Contains(t.seen, o)
	})
	istio := slices.ContainsFunc(routes, func(o *manifest.Object) bool { return o.Kind == "VirtualService" })
	switch {
	case len(routes) == 0 && has && !a.tls && (x.service(a.host, w.o.Namespace) != nil || len(x.entries.named(host, nil)) > 0):
		k.arrive(t.with(x.istioDefault(w, host)), w.o.Namespace, a.host)
	case istio && a.tls:
		k.arrive(t.noting("VirtualService %s does not see the call: it is TLS", placeName(routes[0])), w.o.Namespace, a.host)
	case len(routes) == 0 || istio && known && !has:
		k.arrive(t, w.o.Namespace, a.host)
	default:
		if istio && !known {
			t = t.noting("%s is taken to have a sidecar of Istio: its namespace was not read", placeName(w.o))
		}
		for _, r := range routes {
			k.route(t, r, host)
		}
	}
}

// istioDefault is what a sidecar does for a host without a VirtualService.
func (x *edges) istioDefault(w *workload, host string) step {
	l := layers.Layer{Name: "Istio sidecar of " + w.o.Name, Product: "istio", Hands: layers.Proxied()}
	l.Attempts, l.Assumed = x.meshDefault()
	rules := traffic{rules: x.destinationRules(host, []string{w.o.Namespace}, w.o.Namespace)}
	if b, _ := rules.section("retryBudget"); b != nil {
		l.Budget = share(b, "percent", 20)
	}
	if l.Assumed == "" {
		return newStep(x.meshPlace, "data[mesh]", l)
	}
	return newStep(w.o, "metadata", l)
}

// arrive is a call that has left its sidecar: the host is a Gateway's, a
// Service's, a route's, or outside.
func (k *walk) arrive(t trail, namespace, host string) {
	x := k.x
	service := x.service(host, namespace)
	if gateway, ok := x.gatewayOf(service, host, namespace); ok {
		if n := k.throughGateway(t, gateway); n > 0 {
			return
		}
	}
	if service != nil {
		k.enterService(t, service)
		return
	}
	routes := x.routes.named(host, nil)
	if len(routes) == 0 && !Provider(host) && len(x.entries.named(host, nil)) == 0 {
		if routes = kept(x.routes.any, x.g.On); len(routes) > maxAny {
			t, routes = t.noting("%d routes name no host, none of them was followed", len(routes)), nil
		} else if len(routes) > 0 {
			t = t.noting("%s is taken to be served by a route that names no host", host)
		}
	}
	for _, r := range routes {
		k.route(t, r, host)
	}
	if len(routes) == 0 {
		if !Provider(host) {
			t = t.noting("nothing that was read serves %s", host)
		}
		k.end(t, host)
	}
}

// gatewayOf is the Gateway that a Service is made for.
func (x *edges) gatewayOf(service *manifest.Object, host, namespace string) (key, bool) {
	if service != nil {
		labels := fields.MapAt(service.Root, "metadata.labels")
		if name := fields.TextAt(labels, "[gateway.envoyproxy.io/owning-gateway-name]"); name != "" {
			return key{"Gateway", fields.TextAt(labels, "[gateway.envoyproxy.io/owning-gateway-namespace]"), name}, true
		}
		if name := fields.TextAt(labels, "[gateway.networking.k8s.io/gateway-name]"); name != "" {
			return key{"Gateway", service.Namespace, name}, true
		}
		return key{}, false
	}
	name, space, ok := serviceName(host, namespace)
	if !ok {
		return key{}, false
	}
	unhashed, _ := strings.CutSuffix(name, name[strings.LastIndexByte(name, '-')+1:])
	for _, made := range []string{name + "." + space, name, strings.TrimSuffix(unhashed, "-")} {
		if k, ok := x.made[made]; ok {
			return k, true
		}
	}
	return key{}, false
}

// throughGateway follows the routes of a Gateway and says how many there are.
func (k *walk) throughGateway(t trail, gateway key) (n int) {
	for _, r := range k.x.ofGateway[gateway] {
		n++
		k.route(t, r, "")
	}
	return n
}

// enterService is a call that has reached a Service.
func (k *walk) enterService(t trail, s *manifest.Object) {
	t = t.with(k.x.serviceSteps(s)...)
	behind := k.x.behind[s]
	if name := fields.TextAt(s.Root, "spec.externalName"); name != "" && len(t.seen) < maxSteps {
		k.arrive(t.past(s), s.Namespace, name)
		return
	}
	if len(behind) == 0 {
		k.end(t.noting("no workload that was read is behind Service %s", placeName(s)), "Service "+placeName(s))
	}
	for _, w := range behind {
		k.enter(t, w)
	}
}

// enter is a call that has reached a workload.
func (k *walk) enter(t trail, w *workload) {
	if k.stop(t, w.o) {
		return
	}
	t = t.past(w.o)
	role := k.x.g.Role(w.o)
	if role == Server || role == Picker {
		k.end(t, placeName(w.o))
		return
	}
	if configs := k.x.configs(w); len(configs) > 0 {
		for _, g := range configs {
			k.leave(t.with(g.step), w, g.targets)
		}
		return
	}
	if s, ok := k.x.unconfigured(w); ok {
		t = t.with(s)
	} else if bases := k.x.bases(w); len(bases) > 0 {
		for _, b := range bases {
			k.call(t.with(k.x.sdk(w, b.container, b.vars, b.product)), w, b.address)
		}
		return
	}
	k.end(t, placeName(w.o))
}

// leave is a gateway's call to its targets.
func (k *walk) leave(t trail, w *workload, targets []address) {
	if len(targets) == 0 {
		k.end(t.noting("the configuration of %s names no host", placeName(w.o)), placeName(w.o))
	}
	for _, a := range targets {
		k.call(t, w, a)
	}
}

// unconfigured is what a known gateway does whose configuration was not read.
func (x *edges) unconfigured(w *workload) (step, bool) {
	for _, c := range Containers(w.o) {
		image := Repository(fields.TextAt(c.Root, "image"))
		if !c.Init && strings.Contains(image, "litellm") {
			return newStep(w.o, c.Path+".image", layers.Layer{
				Name: "LiteLLM in " + w.o.Name, Product: "litellm", Attempts: layers.Same(litellmRetries + 1), Hands: layers.Proxied(),
				Assumed: "its configuration was not read: LiteLLM's router retries twice where nothing is set",
			}), true
		}
	}
	return step{}, false
}
