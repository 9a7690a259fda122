package retrypath

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/peer"
	"github.com/hourthree/hourthree/internal/topology"
)

// Variable is an environment variable of a container, as far as it can be read.
type Variable struct {
	Name, value string
	Path        string // within the workload
	known       bool
}

// variables are those of a container, with what it takes from ConfigMaps. All is
// false where some may be hidden in a Secret or in a ConfigMap that was not read.
func (x *Paths) variables(w *topology.Workload, c topology.Container) (vars []Variable, all bool) {
	all = true
	for _, from := range fields.ListAt(c.Root, "envFrom") {
		m := x.Graph.Get("ConfigMap", w.Object.Namespace, fields.TextAt(from, "configMapRef.name"))
		if m == nil {
			all = false
			continue
		}
		data := fields.MapAt(m.Root, "data")
		for _, k := range fields.SortedKeys(data) {
			vars = append(vars, Variable{fields.TextAt(from, "prefix") + k, fields.PlainText(data[k]), c.Path + ".envFrom", true})
		}
	}
	values := map[string]string{}
	for _, v := range vars {
		values[v.Name] = v.value
	}
	for i, e := range topology.Envs(c.Root) {
		v := Variable{Name: e.Name, value: e.Value, Path: c.Path + "." + e.Path, known: !e.From}
		if e.From {
			ref := fields.ValueAt(fields.ListAt(c.Root, "env")[i], "valueFrom.configMapKeyRef")
			if m := x.Graph.Get("ConfigMap", w.Object.Namespace, fields.TextAt(ref, "name")); m != nil {
				v.value = fields.TextAt(m.Root, "data["+fields.TextAt(ref, "key")+"]")
				v.known = v.value != ""
			}
		}
		v.value = expand(v.value, values)
		values[v.Name] = v.value
		vars = append(vars, v)
	}
	return vars, all
}

// expand puts in the variables that a value names, as the kubelet does.
func expand(value string, values map[string]string) string {
	if !strings.Contains(value, "$(") {
		return value
	}
	for name, v := range values {
		value = strings.ReplaceAll(value, "$("+name+")", v)
	}
	return value
}

// Base is a place that a client calls models at.
type Base struct {
	topology.Address
	product   string // openai, anthropic
	Container topology.Container
	Vars      []Variable
	From      string // the variable
}

// Bases are the places that a workload's containers call models at: base URLs, a
// provider's own host for a key alone, and whatever else names a provider or a
// workload that serves models.
func (x *Paths) Bases(w *topology.Workload) []Base {
	var list []Base
	for _, c := range topology.Containers(w.Object) {
		if c.Init {
			continue
		}
		vars, all := x.variables(w, c)
		list = append(list, x.addressed(w, c, vars)...)
		if all {
			list = append(list, keyed(c, vars)...)
		}
	}
	return list
}

func (x *Paths) addressed(w *topology.Workload, c topology.Container, vars []Variable) []Base {
	var list []Base
	for _, v := range vars {
		a, ok := topology.ParseAddress(v.value)
		if !ok || !v.known {
			continue
		}
		named := slices.Contains(topology.BaseNames, v.Name)
		if !named && (!strings.Contains(v.value, "://") || !x.leadsToModels(a.Host, w.Object.Namespace)) {
			continue
		}
		if !strings.Contains(v.value, "://") && !strings.Contains(a.Host, ".") && x.Service(a.Host, w.Object.Namespace) == nil {
			continue // no address: it may be anything, a key too
		}
		b := Base{a, sdkOf(v.Name, a.Host), c, vars, v.Name}
		if !slices.ContainsFunc(list, func(other Base) bool { return other.Address == b.Address }) {
			list = append(list, b)
		}
	}
	return list
}

// leadsToModels says whether a host is a provider's or that of a gateway or
// model server.
func (x *Paths) leadsToModels(host, namespace string) bool {
	if topology.Provider(host) {
		return true
	}
	s := x.Service(host, namespace)
	return s != nil && slices.ContainsFunc(x.Behind[s], func(w *topology.Workload) bool {
		r := x.Graph.Role(w.Object)
		return r == topology.Gateway || r == topology.Server
	})
}

// families are SDKs by what their variables begin with: what the base URL and the
// key are called, and where they call by themselves.
var families = []struct {
	product, key, host string
	bases              []string
}{
	{"openai", "OPENAI_API_KEY", "api.openai.com", []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_BASE_URL", "AZURE_OPENAI_ENDPOINT", "LLM_BASE_URL", "LITELLM_BASE_URL", "LITELLM_API_BASE"}},
	{"anthropic", "ANTHROPIC_API_KEY", "api.anthropic.com", []string{"ANTHROPIC_BASE_URL", "LLM_BASE_URL", "LITELLM_BASE_URL", "LITELLM_API_BASE"}},
}

// keyed are the providers that a container has a key for and no base URL.
func keyed(c topology.Container, vars []Variable) []Base {
	var list []Base
	has := func(name string) bool {
		return slices.ContainsFunc(vars, func(v Variable) bool { return v.Name == name })
	}
	for _, f := range families {
		if has(f.key) && !slices.ContainsFunc(f.bases, has) {
			list = append(list, Base{topology.Address{Host: f.host, TLS: true}, f.product, c, vars, f.key})
		}
	}
	return list
}

func sdkOf(name, host string) string {
	if strings.HasPrefix(name, "ANTHROPIC") || strings.Contains(host, "anthropic") {
		return "anthropic"
	}
	return "openai"
}

// gateway is a gateway's configuration in a ConfigMap.
type gateway struct {
	Step
	targets []topology.Address
}

// configs are the configurations that a workload's pods use: of each, the routes
// that do the same as one.
func (x *Paths) configs(w *topology.Workload) []gateway {
	var list []gateway
	hands := x.handsOf(w)
	for _, m := range x.configMaps(w) {
		for _, r := range x.Graph.Readings(m) {
			own := routesAlike(r, m)
			for i := range own {
				if hands != nil {
					own[i].Hands = hands
				}
			}
			list = append(list, own...)
		}
	}
	return list
}

// routesAlike are the routes of a configuration, those with the same layer
// together.
func routesAlike(r topology.Reading, m *manifest.Object) []gateway {
	var list []gateway
	var routes [][]string
	for _, route := range r.Gateway.Routes {
		for _, l := range r.Gateway.Layers(route.Name) {
			l.Hands = layers.Proxied()
			g := gateway{Step: newStep(m, r.At(route.Retry.Spot.Path), l)}
			i := slices.IndexFunc(list, func(o gateway) bool { return sameLayer(o.Layer, l) })
			if i < 0 {
				i, list, routes = len(list), append(list, g), append(routes, nil)
			}
			routes[i] = append(routes[i], route.Name)
			for _, t := range route.Targets {
				list[i].add(cmp.Or(t.Host, providerHost(t)))
			}
		}
	}
	for i := range list {
		name := r.Gateway.Product + " in " + topology.NameOf(m)
		if len(list) > 1 {
			name += " for " + strings.Join(routes[i][:min(len(routes[i]), 3)], ", ")
			if len(routes[i]) > 3 {
				name += ", …"
			}
		}
		list[i].Name = name
	}
	return list
}

func sameLayer(a, b layers.Layer) bool {
	return maps.Equal(a.Attempts, b.Attempts) && a.Fallbacks == b.Fallbacks && a.Budget == b.Budget &&
		a.Timeout == b.Timeout && a.PerTry == b.PerTry && a.Assumed == b.Assumed
}

// handsOf is what a workload states that it hands out, nil for nothing.
func (x *Paths) handsOf(w *topology.Workload) map[layers.Class]layers.Class {
	for _, at := range []string{"spec.template.metadata", "metadata"} {
		words := fields.WordsAt(w.Object.Root, at+".annotations["+HandsAnnotation+"]")
		if len(words) == 0 {
			continue
		}
		hands := layers.Proxied()
		for _, word := range words {
			from, to, ok := strings.Cut(word, "=")
			if ok && slices.Contains(layers.Classes(), layers.Class(from)) && slices.Contains(layers.Classes(), layers.Class(to)) {
				hands[layers.Class(from)] = layers.Class(to)
			}
		}
		return hands
	}
	return nil
}

// configMaps are those that a workload's pods mount, each once.
func (x *Paths) configMaps(w *topology.Workload) []*manifest.Object {
	var list []*manifest.Object
	add := func(name string) {
		if m := x.Graph.Get("ConfigMap", w.Object.Namespace, name); m != nil && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	for _, v := range fields.ListAt(topology.PodSpec(w.Object), "volumes") {
		add(fields.TextAt(v, "configMap.name"))
		for _, s := range fields.ListAt(v, "projected.sources") {
			add(fields.TextAt(s, "configMap.name"))
		}
	}
	for _, c := range topology.Containers(w.Object) {
		for _, e := range fields.ListAt(c.Root, "env") {
			add(fields.TextAt(e, "valueFrom.configMapKeyRef.name"))
		}
	}
	return list
}

// providerHost is where a target goes that names its provider and no host.
func providerHost(t peer.Target) string {
	switch t.Provider {
	case "openai":
		return "api.openai.com"
	case "anthropic":
		return "api.anthropic.com"
	case "gemini", "google":
		return "generativelanguage.googleapis.com"
	case "mistral":
		return "api.mistral.ai"
	case "groq":
		return "api.groq.com"
	}
	return ""
}

func (g *gateway) add(url string) {
	if a, ok := topology.ParseAddress(url); ok && !slices.Contains(g.targets, a) {
		g.targets = append(g.targets, a)
	}
}
