package audit

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

var networkRules = map[string]Rule{"RLM-005": wayAround, "RLM-006": serverOpen, "RLM-007": pastTheGateway}

// wayAround: clients may call providers without the gateway. It is asked of a
// policy that selects clients, and of a client that no policy selects.
func wayAround(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	if len(x.Gateways) == 0 || closedOtherwise(x, o.Namespace) {
		return nil
	}
	if o.Kind != "NetworkPolicy" {
		w := x.WorkloadOf[o]
		if w == nil || g.Role(o) != topology.Client || closedFor(x, w) || egressPolicy(x, w) {
			return nil
		}
		return []Hit{{Path: "spec.template.metadata.labels", Observed: "no NetworkPolicy for egress selects its pods"}}
	}
	if !has(o, "Egress") {
		return nil
	}
	client := selectedClient(x, o)
	if client == nil {
		return nil
	}
	for i, rule := range fields.ListAt(o.Root, "spec.egress") {
		if path, observed := openRule(rule); path != "" && reaches(rule, 443) {
			return []Hit{{
				Path: "spec.egress[" + digits(i) + "]" + path, Observed: observed,
				Related: []Related{{Object: client.Object, Note: "is a client that may call providers directly"}},
			}}
		}
	}
	return nil
}

// has says whether a NetworkPolicy is of a type.
func has(o *manifest.Object, direction string) bool {
	types := fields.WordsAt(o.Root, "spec.policyTypes")
	if len(types) > 0 {
		return slices.Contains(types, direction)
	}
	return direction == "Ingress" || fields.ValueAt(o.Root, "spec.egress") != nil
}

func selectedClient(x *topology.Edges, o *manifest.Object) *topology.Workload {
	selector := fields.MapAt(o.Root, "spec.podSelector")
	if selector == nil {
		selector = map[string]any{}
	}
	for _, w := range x.Selected(o.Namespace, selector) {
		if x.Graph.Role(w.Object) == topology.Client && !closedFor(x, w) {
			return w
		}
	}
	return nil
}

func egressPolicy(x *topology.Edges, w *topology.Workload) bool {
	return slices.ContainsFunc(x.Covered["NetworkPolicy"][w], func(o *manifest.Object) bool { return has(o, "Egress") })
}

// closedOtherwise says whether something else than a NetworkPolicy may keep
// calls within the cluster, so that nothing is proven: a mesh that lets only
// known hosts be called.
func closedOtherwise(x *topology.Edges, namespace string) bool {
	root := topology.RootNamespace
	if x.MeshPlace != nil {
		root = x.MeshPlace.Namespace
	}
	return fields.TextAt(x.Mesh, "outboundTrafficPolicy.mode") == "REGISTRY_ONLY" || sidecarsClosed(x.Graph, root) || sidecarsClosed(x.Graph, namespace)
}

// closedFor says the same of policies of Cilium that select a workload.
func closedFor(x *topology.Edges, w *topology.Workload) bool {
	egress := func(o *manifest.Object) bool {
		return fields.ValueAt(o.Root, "spec.egress") != nil || fields.ValueAt(o.Root, "spec.egressDeny") != nil
	}
	return slices.ContainsFunc(x.Covered["CiliumNetworkPolicy"][w], egress) ||
		slices.ContainsFunc(x.Graph.Kind("CiliumClusterwideNetworkPolicy"), egress)
}

// openRule says where an egress rule lets calls leave the cluster.
func openRule(rule any) (path, observed string) {
	to := fields.ListAt(rule, "to")
	if len(to) == 0 {
		return ".to", "an egress rule to anywhere"
	}
	for i, t := range to {
		if cidr := fields.TextAt(t, "ipBlock.cidr"); wide(cidr) {
			return ".to[" + digits(i) + "].ipBlock.cidr", cidr
		}
	}
	return "", ""
}

// wide says whether a block is so large that it is the internet.
func wide(cidr string) bool {
	p, err := netip.ParsePrefix(cidr)
	return err == nil && p.Bits() <= 4
}

// reaches says whether a rule of a NetworkPolicy includes a TCP port.
func reaches(rule any, port int) bool {
	ports := fields.ListAt(rule, "ports")
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p any) bool {
		from := fields.IntOr(p, "port", 0)
		if name, isText := fields.ValueAt(p, "port").(string); isText && name == "https" {
			from = 443
		}
		to := fields.IntOr(p, "endPort", from)
		return fields.TextOr(p, "protocol", "TCP") == "TCP" && (fields.ValueAt(p, "port") == nil || from <= port && port <= to)
	})
}

// serverOpen: any pod of the cluster may call the model server.
func serverOpen(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	w := x.WorkloadOf[o]
	if w == nil || g.Role(o) != topology.Server {
		return nil
	}
	h := Hit{Path: "spec.template.metadata.labels", Observed: "no NetworkPolicy for ingress selects its pods"}
	selected := false
	for _, p := range x.Covered["NetworkPolicy"][w] {
		if !has(p, "Ingress") {
			continue
		}
		selected = true
		if rule := letsAllIn(p, o); rule >= 0 {
			h.Observed = "NetworkPolicy " + p.Name + " lets every pod in"
			h.Related = []Related{{Object: p, Path: "spec.ingress[" + digits(rule) + "]", Note: "this rule is open"}}
			return []Hit{h}
		}
	}
	inward := func(p *manifest.Object) bool {
		return p.Kind != "CiliumNetworkPolicy" || fields.ValueAt(p.Root, "spec.ingress") != nil
	}
	for _, kind := range []string{"CiliumNetworkPolicy", "AuthorizationPolicy"} {
		selected = selected || slices.ContainsFunc(x.Covered[kind][w], inward)
	}
	if selected {
		return nil
	}
	return []Hit{h}
}

// letsAllIn is the index of a rule that lets every pod call what a workload
// serves, -1 for none.
func letsAllIn(policy, o *manifest.Object) int {
	return slices.IndexFunc(fields.ListAt(policy.Root, "spec.ingress"), func(rule any) bool {
		from := fields.ListAt(rule, "from")
		all := len(from) == 0 || slices.ContainsFunc(from, func(f any) bool {
			spaces, pods := fields.ValueAt(f, "namespaceSelector"), fields.AsMap(fields.ValueAt(f, "podSelector"))
			return wide(fields.TextAt(f, "ipBlock.cidr")) || spaces != nil && len(fields.AsMap(spaces)) == 0 && len(pods) == 0
		})
		return all && (len(fields.ListAt(rule, "ports")) == 0 || slices.ContainsFunc(ports(o), func(p int) bool { return reaches(rule, p) }))
	})
}

// ports are those on which a workload serves, its metrics left out.
func ports(o *manifest.Object) []int {
	var list []int
	for _, c := range topology.Containers(o) {
		for _, p := range fields.ListAt(c.Root, "ports") {
			if n := fields.IntOr(p, "containerPort", 0); n > 0 && !strings.Contains(fields.TextAt(p, "name"), "metric") {
				list = append(list, n)
			}
		}
	}
	return list
}

// pastTheGateway: a client is configured for a provider although there is a
// gateway.
func pastTheGateway(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	w := x.WorkloadOf[o]
	other := func(s *topology.Workload) bool { return s != w }
	if w == nil || g.Role(o) != topology.Client || !slices.ContainsFunc(x.Gateways, other) {
		return nil
	}
	var hits []Hit
	for _, b := range g.paths().Bases(w) {
		if !topology.Provider(b.Host) {
			continue
		}
		path, observed := b.Container.Path+".env", b.From+" names "+topology.AnyonesHost(b.Host)
		for _, v := range b.Vars {
			if v.Name == b.From {
				path = v.Path
			}
		}
		if strings.HasSuffix(b.From, "_KEY") {
			observed = b.From + " without a base URL, which is " + b.Host
		}
		hits = append(hits, Hit{Container: b.Container.Name, Path: path, Observed: observed})
	}
	return hits
}
