package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

var workloadRules = map[string]Rule{
	"TMO-007": killedEarly, "CAP-003": quotaTooSmall, "CAP-005": noScaler, "CAP-006": scalesOnCPU, "AVL-001": singleReplica,
	"AVL-002": noDisruptionBudget, "AVL-004": oneZone, "INF-001": pickerSingle, "INF-002": pickerMissing,
}

const defaultGrace = 30 // seconds, of Kubernetes

// killedEarly: pods end before the longest call that a route allows.
func killedEarly(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	w := x.WorkloadOf[o]
	if r := g.Role(o); w == nil || r != topology.Gateway && r != topology.Server {
		return nil
	}
	path := topology.PodPath(o) + ".terminationGracePeriodSeconds"
	grace := time.Duration(fields.IntOr(o.Root, path, defaultGrace)) * time.Second
	var longest time.Duration
	var by *manifest.Object
	for _, s := range w.Services {
		for _, r := range x.RoutesTo[topology.Key{Kind: "Service", Namespace: s.Namespace, Name: s.Name}] {
			if d := longestCall(x, r, s); d > longest {
				longest, by = d, r
			}
		}
	}
	if by == nil || longest <= grace {
		return nil
	}
	return []Hit{{
		Path: path, Observed: fmt.Sprintf("%s, a call may take %s", seconds(grace), seconds(longest)),
		Related: []Related{{Object: by, Path: "spec", Note: "lets a call take " + seconds(longest)}},
	}}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

// longestCall is the longest call that a route allows towards a Service.
func longestCall(x *topology.Edges, r, s *manifest.Object) time.Duration {
	var longest time.Duration
	for _, rule := range fields.ListAt(r.Root, "spec.rules") {
		leads := slices.ContainsFunc(fields.ListAt(rule, "backendRefs"), func(b any) bool {
			return topology.BackendKey(r, b) == topology.Key{Kind: "Service", Namespace: s.Namespace, Name: s.Name}
		})
		if !leads {
			continue
		}
		d := fields.DurationAt(rule, "timeouts.request")
		if v, _ := topology.Setting(x.InForce("BackendTrafficPolicy", r, rule), "spec.timeout.http.requestTimeout"); v != nil && d == 0 {
			d = fields.DurationAt(map[string]any{"v": v}, "v")
		}
		longest = max(longest, d)
	}
	for _, h := range fields.ListAt(r.Root, "spec.http") {
		for _, d := range fields.ListAt(h, "route") {
			if x.Service(fields.TextAt(d, "destination.host"), r.Namespace) == s {
				longest = max(longest, fields.DurationAt(h, "timeout"))
			}
		}
	}
	return longest
}

// quotaTooSmall: the namespace cannot hold as many pods as the autoscaler wants.
func quotaTooSmall(g *evidence, o *manifest.Object) []Hit {
	k, ok := topology.Scales(o)
	target := g.Get(k.Kind, k.Namespace, k.Name)
	field := "spec.maxReplicas"
	if o.Kind == "ScaledObject" {
		field = "spec.maxReplicaCount"
	}
	replicas := fields.IntOr(o.Root, field, 0)
	if !ok || target == nil || replicas <= 0 {
		return nil
	}
	needs := needs(target)
	for _, q := range g.In("ResourceQuota", o.Namespace) {
		if !covers(q, target, needs) {
			continue
		}
		hard := fields.MapAt(q.Root, "spec.hard")
		for _, name := range fields.SortedKeys(hard) {
			limit, err := fields.Quantity(hard, "["+name+"]")
			need := needs[canonical(name)] * float64(replicas)
			if err != nil || need <= limit*(1+1e-9) {
				continue
			}
			return []Hit{{
				Path: field, Observed: fmt.Sprintf("%d replicas need %s of %s, the quota has %s", replicas, quantity(need), name, fields.PlainText(hard[name])),
				Related: []Related{{Object: q, Path: "spec.hard[" + name + "]", Note: "the quota"}},
			}}
		}
	}
	return nil
}

// canonical is the full name of what a quota counts.
func canonical(name string) string {
	switch name {
	case "cpu", "memory", "ephemeral-storage":
		return "requests." + name
	case "count/pods":
		return "pods"
	}
	return name
}

// quantity writes bytes with a binary unit, other amounts as they are.
func quantity(n float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}} {
		if n >= u.size {
			return fmt.Sprintf("%.4g%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.4g", n)
}

// needs is what one pod of a workload takes from a quota. Requests are the limits
// where only those are set.
func needs(o *manifest.Object) map[string]float64 {
	sum, peak := map[string]float64{"pods": 1}, map[string]float64{}
	for _, c := range topology.Containers(o) {
		own := map[string]float64{}
		limits, requests := fields.MapAt(c.Root, "resources.limits"), fields.MapAt(c.Root, "resources.requests")
		for r := range limits {
			n, _ := fields.Quantity(limits, "["+r+"]")
			own["limits."+r], own["requests."+r] = n, n
		}
		for r := range requests {
			own["requests."+r], _ = fields.Quantity(requests, "["+r+"]")
		}
		for r, n := range own {
			if c.Init {
				peak[r] = max(peak[r], n)
			} else {
				sum[r] += n
			}
		}
	}
	for r, n := range peak {
		sum[r] = max(sum[r], n)
	}
	overhead := fields.MapAt(topology.PodSpec(o), "overhead")
	for r := range overhead {
		n, _ := fields.Quantity(overhead, "["+r+"]")
		sum["requests."+r] += n
	}
	return sum
}

// covers says whether a quota counts a workload's pods. What its scopes mean for
// them must be certain.
func covers(q, target *manifest.Object, needs map[string]float64) bool {
	best := len(needs) == 1 // nothing but the pod itself
	for _, s := range fields.WordsAt(q.Root, "spec.scopes") {
		switch s {
		case "NotTerminating":
		case "BestEffort":
			if !best {
				return false
			}
		case "NotBestEffort":
			if best {
				return false
			}
		default:
			return false
		}
	}
	for _, e := range fields.ListAt(q.Root, "spec.scopeSelector.matchExpressions") {
		class := fields.TextAt(topology.PodSpec(target), "priorityClassName")
		in := slices.Contains(fields.WordsAt(e, "values"), class)
		if fields.TextAt(e, "scopeName") != "PriorityClass" || class == "" || fields.TextAt(e, "operator") != "In" || !in {
			return false
		}
	}
	return true
}

// noScaler: a gateway stays as small as it is.
func noScaler(g *evidence, o *manifest.Object) []Hit {
	if g.Role(o) != topology.Gateway || o.Kind == "DaemonSet" || len(g.Edges().ScalersOf(o)) > 0 {
		return nil
	}
	return []Hit{{Path: "spec.replicas", Observed: "no HorizontalPodAutoscaler and no ScaledObject for it"}}
}

// scalesOnCPU: a gateway that waits for models uses little of it.
func scalesOnCPU(g *evidence, o *manifest.Object) []Hit {
	k, ok := topology.Scales(o)
	target := g.Get(k.Kind, k.Namespace, k.Name)
	if !ok || target == nil || g.Role(target) != topology.Gateway {
		return nil
	}
	metrics := fields.ListAt(o.Root, "spec.metrics")
	for _, m := range metrics {
		if fields.TextAt(m, "resource.name") != "cpu" && fields.TextAt(m, "containerResource.name") != "cpu" {
			return nil
		}
	}
	observed := "cpu alone"
	if len(metrics) == 0 {
		observed = "none, which is cpu"
	}
	return []Hit{{Path: "spec.metrics", Observed: observed, Related: []Related{{Object: target, Note: "is scaled by it"}}}}
}

// singleReplica: there is no other when it goes. None at all is switched off.
func singleReplica(g *evidence, o *manifest.Object) []Hit {
	if g.Role(o) != topology.Gateway || o.Kind == "DaemonSet" || fields.IntOr(o.Root, "spec.replicas", 1) == 0 || g.Edges().Floor(o) >= 2 {
		return nil
	}
	observed := "1"
	if fields.ValueAt(o.Root, "spec.replicas") == nil {
		observed = "none, which is 1"
	}
	scalers := g.Edges().ScalersOf(o)
	if len(scalers) > 0 {
		observed = fmt.Sprintf("its autoscaler may leave %d", g.Edges().Floor(o))
	}
	h := Hit{Path: "spec.replicas", Observed: observed}
	for _, s := range scalers {
		h.Related = append(h.Related, Related{Object: s, Path: "spec", Note: "does not keep two"})
	}
	return []Hit{h}
}

// noDisruptionBudget: a drain may take all pods at once. Of a single pod a budget
// would only block the drain.
func noDisruptionBudget(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	w := x.WorkloadOf[o]
	if w == nil || g.Role(o) != topology.Gateway || o.Kind == "DaemonSet" || x.Floor(o) < 2 || len(x.Covered["PodDisruptionBudget"][w]) > 0 {
		return nil
	}
	return []Hit{{Path: "spec.template.metadata.labels", Observed: "no PodDisruptionBudget selects its pods"}}
}

const zoneLabel = "topology.kubernetes.io/zone"

// oneZone: what takes the zone takes all nodes. It is reported on the first node.
func oneZone(g *evidence, o *manifest.Object) []Hit {
	first, zone := g.zone()
	if first == nil || first != o {
		return nil
	}
	return []Hit{{Path: "metadata.labels[" + zoneLabel + "]", Observed: "all nodes are in zone " + zone}}
}

// oneZoneOf is the zone that all nodes are in which take ordinary pods, and the
// first of them; nil where there are more zones, or nothing is known of one.
func oneZoneOf(g *topology.Graph) (first *manifest.Object, zone string) {
	for _, n := range g.Kind("Node") {
		if fields.ValueAt(n.Root, "spec.unschedulable") == true || controlPlane(n) {
			continue
		}
		at := fields.TextAt(n.Root, "metadata.labels["+zoneLabel+"]")
		if at == "" {
			at = fields.TextAt(n.Root, "metadata.labels[failure-domain.beta.kubernetes.io/zone]")
		}
		if first == nil {
			first, zone = n, at
		}
		if at == "" || at != zone {
			return nil, ""
		}
	}
	return first, zone
}

// controlPlane says whether a node takes no ordinary pods.
func controlPlane(n *manifest.Object) bool {
	return slices.ContainsFunc(fields.ListAt(n.Root, "spec.taints"), func(t any) bool {
		k, effect := fields.TextAt(t, "key"), fields.TextAt(t, "effect")
		return (k == "node-role.kubernetes.io/control-plane" || k == "node-role.kubernetes.io/master") && effect != "PreferNoSchedule"
	})
}

// picker is the reference of an InferencePool to its endpoint picker, with its
// path; older versions call it an extension.
func picker(o *manifest.Object) (ref map[string]any, path string) {
	for _, path := range []string{"spec.endpointPickerRef", "spec.extensionRef"} {
		if m := fields.MapAt(o.Root, path); m != nil && fields.TextOr(m, "kind", "Service") == "Service" {
			return m, path
		}
	}
	return nil, ""
}

// pickerSingle: one pod decides for a whole pool, and without it nothing goes.
func pickerSingle(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	ref, path := picker(o)
	s := g.Get("Service", o.Namespace, fields.TextAt(ref, "name"))
	if ref == nil || fields.TextAt(ref, "failureMode") == "FailOpen" || s == nil {
		return nil
	}
	replicas := 0
	var behind []Related
	for _, w := range x.Behind[s] {
		n := x.Floor(w.Object)
		if w.Object.Kind == "DaemonSet" {
			n = 2
		}
		replicas += n
		behind = append(behind, Related{Object: w.Object, Path: "spec.replicas", Note: "the endpoint picker"})
	}
	if len(behind) == 0 || replicas >= 2 {
		return nil
	}
	mode := fields.TextOr(ref, "failureMode", "none, which is FailClose")
	for _, r := range x.RoutesTo[topology.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}] {
		for _, p := range topology.GatewaysOf(r) {
			note := "gateways differ in what they do without a picker: try it"
			if c := x.GatewayController(p.Gateway); c != "" {
				note = c + ": gateways differ in what they do without a picker: try it"
			}
			behind = append(behind, Related{Object: r, Path: "spec.parentRefs", Note: note})
		}
	}
	return []Hit{{
		Path: path + ".failureMode", Observed: fmt.Sprintf("failureMode %s, %d replica of the endpoint picker", mode, replicas), Related: behind,
	}}
}

// pickerMissing: the pool names an endpoint picker that is not there.
func pickerMissing(g *evidence, o *manifest.Object) []Hit {
	ref, path := picker(o)
	if ref == nil || g.Get("Service", o.Namespace, fields.TextAt(ref, "name")) != nil {
		return nil
	}
	return []Hit{{Path: path + ".name", Observed: "there is no Service " + o.Namespace + "/" + fields.TextAt(ref, "name")}}
}
