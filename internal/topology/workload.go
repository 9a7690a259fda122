package topology

import (
	"fmt"
	"slices"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// workloadKinds are the kinds that run pods.
var workloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout", "Pod"}

// Workloads are the objects that run pods, Pods themselves left out.
func (g *Graph) Workloads() []*manifest.Object {
	var list []*manifest.Object
	for _, k := range workloadKinds[:4] {
		list = append(list, g.kinds[k]...)
	}
	return list
}

// PodPath is where the spec of its pods is in a workload.
func PodPath(o *manifest.Object) string {
	switch {
	case o.Kind == "Pod":
		return "spec"
	case o.Kind == "InferenceService":
		return "spec.predictor"
	default:
		return "spec.template.spec"
	}
}

// PodSpec is the spec of a workload's pods, nil for none.
func PodSpec(o *manifest.Object) map[string]any {
	spec, _ := fields.Object(o.Root, PodPath(o))
	return spec
}

// podLabels are the labels of a workload's pods.
func podLabels(o *manifest.Object) map[string]any {
	path := "spec.template.metadata.labels"
	if o.Kind == "Pod" {
		path = "metadata.labels"
	}
	labels, _ := fields.Object(o.Root, path)
	return labels
}

// Container is one of a workload's.
type Container struct {
	Name string
	Path string // spec.template.spec.containers[0]
	Root map[string]any
	Init bool // it ends before the others start; a sidecar among the init containers does not
}

// Containers are the workload's, init containers last.
func Containers(o *manifest.Object) []Container {
	var list []Container
	spec := PodSpec(o)
	for _, field := range []string{"containers", "initContainers"} {
		all, _ := fields.List(spec, field)
		for i, c := range all {
			root, _ := c.(map[string]any)
			name, _ := fields.Text(root, "name")
			restart, _ := fields.Text(root, "restartPolicy")
			list = append(list, Container{name, fmt.Sprintf("%s.%s[%d]", PodPath(o), field, i), root, field == "initContainers" && restart != "Always"})
		}
	}
	return list
}

// Env is a container's environment variable.
type Env struct {
	Name  string
	Path  string // below the container: env[2]
	Value string // "" when it is taken from elsewhere; it may be a secret and is never shown
	From  bool   // it is taken from a Secret, a ConfigMap or a field
}

// Envs are the variables that the container's env names.
func Envs(container map[string]any) []Env {
	list, _ := fields.List(container, "env")
	var all []Env
	for i, e := range list {
		name, _ := fields.Text(e, "name")
		value, _ := fields.Text(e, "value")
		from, _ := fields.Value(e, "valueFrom")
		all = append(all, Env{name, fmt.Sprintf("env[%d]", i), value, from != nil})
	}
	return all
}

// EnvOf is the container's variable of a name.
func EnvOf(container map[string]any, name string) (Env, bool) {
	all := Envs(container)
	i := slices.IndexFunc(all, func(e Env) bool { return e.Name == name })
	if i < 0 {
		return Env{}, false
	}
	return all[i], true
}

// Services are the Services that select a workload's pods.
func (g *Graph) Services(o *manifest.Object) []*manifest.Object {
	var list []*manifest.Object
	labels := podLabels(o)
	for _, s := range g.In("Service", o.Namespace) {
		selector, _ := fields.Object(s.Root, "spec.selector")
		if len(selector) > 0 && subset(selector, labels) {
			list = append(list, s)
		}
	}
	return list
}

// Behind are the workloads whose pods a Service selects.
func (g *Graph) Behind(service *manifest.Object) []*manifest.Object {
	selector, _ := fields.Object(service.Root, "spec.selector")
	if len(selector) == 0 {
		return nil
	}
	return g.labelled(service.Namespace, selector)
}

// indexPods finds workloads by the labels of their pods.
func (g *Graph) indexPods() {
	for _, o := range g.Workloads() {
		for k, v := range podLabels(o) {
			at := [3]string{o.Namespace, k, fmt.Sprint(v)}
			g.pods[at] = append(g.pods[at], o)
		}
	}
}

// labelled are the workloads of a namespace whose pods have all labels: those of
// the rarest label are looked at.
func (g *Graph) labelled(namespace string, labels map[string]any) []*manifest.Object {
	var fewest []*manifest.Object
	first := true
	for k, v := range labels {
		if some := g.pods[[3]string{namespace, k, fmt.Sprint(v)}]; first || len(some) < len(fewest) {
			fewest, first = some, false
		}
	}
	var list []*manifest.Object
	for _, o := range fewest {
		if subset(labels, podLabels(o)) {
			list = append(list, o)
		}
	}
	return list
}

func subset(part, whole map[string]any) bool {
	for k, v := range part {
		if w, ok := whole[k]; !ok || fmt.Sprint(v) != fmt.Sprint(w) {
			return false
		}
	}
	return true
}

// selects says whether a LabelSelector holds for labels: all of matchLabels and
// all of matchExpressions. An empty one selects everything, an absent one
// nothing. A selector that cannot be read selects nothing.
func selects(selector map[string]any, labels map[string]any) bool {
	if selector == nil {
		return false
	}
	match, err := fields.Object(selector, "matchLabels")
	if err != nil || !subset(match, labels) {
		return false
	}
	list, err := fields.List(selector, "matchExpressions")
	if err != nil {
		return false
	}
	for _, e := range list {
		if !holds(e, labels) {
			return false
		}
	}
	return true
}

func holds(expression any, labels map[string]any) bool {
	k, _ := fields.Text(expression, "key")
	operator, _ := fields.Text(expression, "operator")
	values, _ := fields.Words(expression, "values")
	have, there := labels[k]
	in := there && slices.Contains(values, fmt.Sprint(have))
	switch operator {
	case "In":
		return in
	case "NotIn":
		return !in
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	}
	return false
}
