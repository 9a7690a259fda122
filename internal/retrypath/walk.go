package retrypath

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
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
	steps []Step
	seen  []*manifest.Object
	notes []string
}

func (t trail) with(s ...Step) trail {
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
	x      *Paths
	begin  Path
	found  []Path
	known  map[string]bool
	visits int
}

// findPaths finds the paths of all clients, and of gateways that none of them
// passes, with an assumed client.
func (x *Paths) findPaths() map[*manifest.Object][]Path {
	all := map[*manifest.Object][]Path{}
	passed := map[*manifest.Object]bool{}
	for _, w := range x.Workloads {
		if x.Graph.Role(w.Object) != topology.Client {
			continue
		}
		all[w.Object] = x.pathsFrom(w)
		for _, p := range all[w.Object] {
			for _, o := range p.via {
				passed[o] = true
			}
		}
	}
	for _, w := range x.Gateways {
		if !passed[w.Object] {
			all[w.Object] = x.pathsThrough(w)
		}
	}
	for _, o := range x.Files {
		all[o] = x.pathsOfFile(o)
	}
	return all
}

// pathsOfFile are the ways through a gateway that is configured by a file of its
// own: whoever calls it is unknown.
func (x *Paths) pathsOfFile(o *manifest.Object) []Path {
	k := &walk{x: x, known: map[string]bool{}, begin: Path{Client: o.Ref(), client: o, Host: o.Name}}
	start := trail{}.with(Step{Layer: assumedSDK()}).past(o)
	for _, r := range x.Graph.Readings(o) {
		for _, g := range routesAlike(r, o) {
			t := start.with(g.Step)
			for _, a := range g.targets {
				k.end(t, a.Host)
			}
			if len(g.targets) == 0 {
				k.end(t.noting("the configuration of %s names no host", o.Name), o.Name)
			}
		}
	}
	worstFirst(k.found)
	return k.found
}

func (x *Paths) pathsFrom(w *topology.Workload) []Path {
	k := &walk{x: x, known: map[string]bool{}}
	for _, b := range x.Bases(w) {
		k.begin = Path{Client: w.Object.Ref(), Known: true, client: w.Object, Container: b.Container.Name, From: b.From, Host: b.Host}
		k.call(trail{}.past(w.Object).with(x.sdk(w, b.Container, b.Vars, b.product)), w, b.Address)
	}
	worstFirst(k.found)
	return k.found
}

// pathsThrough are the ways in through which an unknown client reaches a
// gateway: every route that leads to it or, without any, straight.
func (x *Paths) pathsThrough(w *topology.Workload) []Path {
	k := &walk{x: x, known: map[string]bool{}, begin: Path{Client: w.Object.Ref(), client: w.Object}}
	start := trail{}.with(Step{Layer: assumedSDK()}).noting("no client of %s was read", topology.NameOf(w.Object))
	for _, s := range w.Services {
		for _, route := range x.RoutesTo[topology.Key{Kind: "Service", Namespace: s.Namespace, Name: s.Name}] {
			k.begin.Host = "route " + topology.NameOf(route)
			k.route(start, route, "")
		}
	}
	k.found = slices.DeleteFunc(k.found, func(p Path) bool { return !slices.Contains(p.via, w.Object) })
	if len(k.found) == 0 {
		k.begin.Host = w.Object.Name
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
		k.end(t.noting("the path leads back to %s", o.Ref()), topology.NameOf(o))
	case len(t.seen) >= maxSteps, len(t.steps) >= maxSteps:
		k.end(t.noting("the path is longer than %d objects and was not followed further", maxSteps), topology.NameOf(o))
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
func (k *walk) call(t trail, w *topology.Workload, a topology.Address) {
	x := k.x
	host := x.FullIn(a.Host, w.Object.Namespace)
	has, known := x.HasSidecar(w)
	routes := x.Sidecars.Find(host, func(o *manifest.Object) bool {
		return o.Kind != "VirtualService" || topology.VisibleIn(o, w.Object.Namespace) && !slices.Contains(t.seen, o)
	})
	istio := slices.ContainsFunc(routes, func(o *manifest.Object) bool { return o.Kind == "VirtualService" })
	switch {
	case len(routes) == 0 && has && !a.TLS && (x.Service(a.Host, w.Object.Namespace) != nil || len(x.Entries.Named(host, nil)) > 0):
		k.arrive(t.with(x.istioDefault(w, host)), w.Object.Namespace, a.Host)
	case istio && a.TLS:
		k.arrive(t.noting("VirtualService %s does not see the call: it is TLS", topology.NameOf(routes[0])), w.Object.Namespace, a.Host)
	case len(routes) == 0 || istio && known && !has:
		k.arrive(t, w.Object.Namespace, a.Host)
	default:
		if istio && !known {
			t = t.noting("%s is taken to have a sidecar of Istio: its namespace was not read", topology.NameOf(w.Object))
		}
		for _, r := range routes {
			k.route(t, r, host)
		}
	}
}

// istioDefault is what a sidecar does for a host without a VirtualService.
func (x *Paths) istioDefault(w *topology.Workload, host string) Step {
	l := layers.Layer{Name: "Istio sidecar of " + w.Object.Name, Product: "istio", Hands: layers.Proxied()}
	l.Attempts, l.Assumed = x.meshDefault()
	rules := topology.Traffic{Rules: x.DestinationRules(host, []string{w.Object.Namespace}, w.Object.Namespace)}
	if b, _ := rules.Section("retryBudget"); b != nil {
		l.Budget = share(b, "percent", 20)
	}
	if l.Assumed == "" {
		return newStep(x.MeshPlace, "data[mesh]", l)
	}
	return newStep(w.Object, "metadata", l)
}

// arrive is a call that has left its sidecar: the host is a Gateway's, a
// Service's, a route's, or outside.
func (k *walk) arrive(t trail, namespace, host string) {
	x := k.x
	service := x.Service(host, namespace)
	if gateway, ok := x.gatewayOf(service, host, namespace); ok {
		if n := k.throughGateway(t, gateway); n > 0 {
			return
		}
	}
	if service != nil {
		k.enterService(t, service)
		return
	}
	routes := x.Routes.Named(host, nil)
	if len(routes) == 0 && !topology.Provider(host) && len(x.Entries.Named(host, nil)) == 0 {
		if routes = topology.Kept(x.Routes.Any, x.Graph.On); len(routes) > maxAny {
			t, routes = t.noting("%d routes name no host, none of them was followed", len(routes)), nil
		} else if len(routes) > 0 {
			t = t.noting("%s is taken to be served by a route that names no host", host)
		}
	}
	for _, r := range routes {
		k.route(t, r, host)
	}
	if len(routes) == 0 {
		if !topology.Provider(host) {
			t = t.noting("nothing that was read serves %s", host)
		}
		k.end(t, host)
	}
}

// gatewayOf is the Gateway that a Service is made for.
func (x *Paths) gatewayOf(service *manifest.Object, host, namespace string) (topology.Key, bool) {
	if service != nil {
		labels := fields.MapAt(service.Root, "metadata.labels")
		if name := fields.TextAt(labels, "[gateway.envoyproxy.io/owning-gateway-name]"); name != "" {
			return topology.Key{Kind: "Gateway", Namespace: fields.TextAt(labels, "[gateway.envoyproxy.io/owning-gateway-namespace]"), Name: name}, true
		}
		if name := fields.TextAt(labels, "[gateway.networking.k8s.io/gateway-name]"); name != "" {
			return topology.Key{Kind: "Gateway", Namespace: service.Namespace, Name: name}, true
		}
		return topology.Key{}, false
	}
	name, space, ok := topology.ServiceName(host, namespace)
	if !ok {
		return topology.Key{}, false
	}
	unhashed, _ := strings.CutSuffix(name, name[strings.LastIndexByte(name, '-')+1:])
	for _, made := range []string{name + "." + space, name, strings.TrimSuffix(unhashed, "-")} {
		if k, ok := x.MadeFor[made]; ok {
			return k, true
		}
	}
	return topology.Key{}, false
}

// throughGateway follows the routes of a Gateway and says how many there are.
func (k *walk) throughGateway(t trail, gateway topology.Key) (n int) {
	for _, r := range k.x.RoutesOf[gateway] {
		n++
		k.route(t, r, "")
	}
	return n
}

// enterService is a call that has reached a Service.
func (k *walk) enterService(t trail, s *manifest.Object) {
	t = t.with(k.x.serviceSteps(s)...)
	behind := k.x.Behind[s]
	if name := fields.TextAt(s.Root, "spec.externalName"); name != "" && len(t.seen) < maxSteps {
		k.arrive(t.past(s), s.Namespace, name)
		return
	}
	if len(behind) == 0 {
		k.end(t.noting("no workload that was read is behind Service %s", topology.NameOf(s)), "Service "+topology.NameOf(s))
	}
	for _, w := range behind {
		k.enter(t, w)
	}
}

// enter is a call that has reached a workload.
func (k *walk) enter(t trail, w *topology.Workload) {
	if k.stop(t, w.Object) {
		return
	}
	t = t.past(w.Object)
	role := k.x.Graph.Role(w.Object)
	if role == topology.Server || role == topology.Picker {
		k.end(t, topology.NameOf(w.Object))
		return
	}
	if configs := k.x.configs(w); len(configs) > 0 {
		for _, g := range configs {
			k.leave(t.with(g.Step), w, g.targets)
		}
		return
	}
	if s, ok := k.x.unconfigured(w); ok {
		t = t.with(s)
	} else if bases := k.x.Bases(w); len(bases) > 0 {
		for _, b := range bases {
			k.call(t.with(k.x.sdk(w, b.Container, b.Vars, b.product)), w, b.Address)
		}
		return
	}
	k.end(t, topology.NameOf(w.Object))
}

// leave is a gateway's call to its targets.
func (k *walk) leave(t trail, w *topology.Workload, targets []topology.Address) {
	if len(targets) == 0 {
		k.end(t.noting("the configuration of %s names no host", topology.NameOf(w.Object)), topology.NameOf(w.Object))
	}
	for _, a := range targets {
		k.call(t, w, a)
	}
}

// unconfigured is what a known gateway does whose configuration was not read.
func (x *Paths) unconfigured(w *topology.Workload) (Step, bool) {
	for _, c := range topology.Containers(w.Object) {
		image := topology.Repository(fields.TextAt(c.Root, "image"))
		if !c.Init && strings.Contains(image, "litellm") {
			return newStep(w.Object, c.Path+".image", layers.Layer{
				Name: "LiteLLM in " + w.Object.Name, Product: "litellm", Attempts: layers.Same(litellmRetries + 1), Hands: layers.Proxied(),
				Assumed: "its configuration was not read: LiteLLM's router retries twice where nothing is set",
			}), true
		}
	}
	return Step{}, false
}
