package audit

import (
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
)

// around marks what is beside the path and bears on it: quotas and policies of
// its namespaces, nodes, settings of a whole mesh or controller, alerts.
func (s *scope) around(o *manifest.Object) {
	switch kindOf(o) {
	case "ResourceQuota":
		s.first(o, "quota of the namespace of ", func(w *manifest.Object) bool { return w.Namespace == o.Namespace && s.answers(w) })
	case "NetworkPolicy":
		selector, _ := Object(o.Root, "spec.podSelector")
		s.first(o, "selects ", func(w *manifest.Object) bool {
			return w.Namespace == o.Namespace && s.g.roles[w].Role != "" && (selector == nil || Selects(selector, PodLabels(w)))
		})
	case "Node":
		s.first(o, "may run ", s.answers)
	case "ConfigMap":
		s.settings(o)
	case "ApplicationSet":
		s.applications(o)
	case "PrometheusRule":
		s.alerts(o)
	}
}

// first marks o by the first workload that f holds for.
func (s *scope) first(o *manifest.Object, by string, f func(*manifest.Object) bool) {
	for _, w := range s.g.Workloads() {
		if f(w) {
			s.mark(o, by+w.Ref().String())
			return
		}
	}
}

// settings marks the configuration of a mesh or controller that a path uses.
func (s *scope) settings(o *manifest.Object) {
	data, _ := Object(o.Root, "data")
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

// applications marks an ApplicationSet that deploys a workload of the path, by
// the namespace it deploys to or by the workload's name.
func (s *scope) applications(o *manifest.Object) {
	namespace, _ := Text(o.Root, "spec.template.spec.destination.namespace")
	s.first(o, "deploys ", func(w *manifest.Object) bool {
		return s.answers(w) && (w.Namespace == namespace || o.Name == w.Name)
	})
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
	groups, _ := List(o.Root, "spec.groups")
	for _, g := range groups {
		rules, _ := List(g, "rules")
		for _, r := range rules {
			expr, _ := Text(r, "expr")
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
