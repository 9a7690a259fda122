package topology

import (
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// beside marks what is beside the path and bears on it: quotas and policies of
// its namespaces, nodes, settings of a whole mesh or controller, alerts.
func (s *scope) beside() {
	workloads := s.g.Workloads()
	s.first(s.g.kinds["Node"], "may run ", workloads, func(_, w *manifest.Object) bool { return s.answers(w) })
	for space := range s.g.spaces["ResourceQuota"] {
		s.first(s.g.In("ResourceQuota", space), "quota of the namespace of ", s.workloadsIn(space), func(_, w *manifest.Object) bool { return s.answers(w) })
	}
	for space := range s.g.spaces["NetworkPolicy"] {
		s.first(s.g.In("NetworkPolicy", space), "selects ", s.workloadsIn(space), func(o, w *manifest.Object) bool {
			selector, _ := fields.Object(o.Root, "spec.podSelector")
			return s.g.roles[w].Role != "" && (selector == nil || selects(selector, podLabels(w)))
		})
	}
	s.first(s.g.kinds["ApplicationSet"], "deploys ", workloads, func(o, w *manifest.Object) bool {
		namespace, _ := fields.Text(o.Root, "spec.template.spec.destination.namespace")
		return s.answers(w) && (w.Namespace == namespace || o.Name == w.Name)
	})
	for _, o := range s.g.kinds["ConfigMap"] {
		s.settings(o)
	}
	for _, o := range s.g.kinds["PrometheusRule"] {
		s.alerts(o)
	}
}

func (s *scope) workloadsIn(space string) []*manifest.Object {
	var list []*manifest.Object
	for _, k := range workloadKinds[:4] {
		list = append(list, s.g.In(k, space)...)
	}
	return list
}

// first marks each object by the first workload that f holds for.
func (s *scope) first(objects []*manifest.Object, by string, workloads []*manifest.Object, f func(o, w *manifest.Object) bool) {
	for _, o := range objects {
		i := slices.IndexFunc(workloads, func(w *manifest.Object) bool { return f(o, w) })
		if i >= 0 {
			s.mark(o, by+workloads[i].Ref().String())
		}
	}
}

// settings marks the configuration of a mesh or controller that a path uses.
func (s *scope) settings(o *manifest.Object) {
	data, _ := fields.Object(o.Root, "data")
	switch {
	case data["mesh"] != nil && strings.HasPrefix(o.Name, "istio") && s.g.Any():
		s.mark(o, "configuration of the mesh")
	case strings.Contains(o.Name, "nginx") && strings.HasSuffix(o.Name, "controller"):
		if i := slices.IndexFunc(s.g.kinds["Ingress"], s.g.On); i >= 0 {
			s.mark(o, "configuration of the controller of "+s.g.kinds["Ingress"][i].Ref().String())
		}
	default:
		for _, d := range s.g.texts[o] {
			if d.Root["kind"] == "EnvoyGateway" && s.g.Any() {
				s.mark(o, "configuration of Envoy Gateway")
			}
		}
	}
}

// prefixes are those of metrics about model calls.
var prefixes = []string{
	"litellm_", "vllm:", "vllm_", "sglang:", "hourthree_", "gen_ai_", "llm_", "inference_pool_", "inference_objective_", "inference_extension_", "agentgateway_", "bifrost_", "tgi_",
}

// alerts marks rules about model calls: by the name of a metric or of what is on
// the path.
func (s *scope) alerts(o *manifest.Object) {
	if !s.g.Any() {
		return
	}
	groups, _ := fields.List(o.Root, "spec.groups")
	for _, g := range groups {
		rules, _ := fields.List(g, "rules")
		for _, r := range rules {
			expr, _ := fields.Text(r, "expr")
			if name := s.g.AboutModels(expr); name != "" {
				s.mark(o, "a rule is about "+name)
				return
			}
		}
	}
}

// AboutModels is the first word of a PromQL expression that says it is about
// model calls: a metric's name or that of a workload, Service or route of the
// path; "" for none.
func (g *Graph) AboutModels(expr string) string {
	for _, w := range strings.FieldsFunc(expr, func(r rune) bool {
		return !(r == '_' || r == ':' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(w, p) }) || g.served[w] {
			return w
		}
	}
	return ""
}
