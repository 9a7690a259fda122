package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
)

// variable is an environment variable of a container, as far as it can be read.
type variable struct {
	name, value string
	path        string // within the workload
	known       bool
}

// variables are those of a container, with what it takes from ConfigMaps. All is
// false where some may be hidden in a Secret or in a ConfigMap that was not read.
func (x *edges) variables(w *workload, c Container) (vars []variable, all bool) {
	all = true
	for _, from := range listAt(c.Root, "envFrom") {
		m := x.g.Get("ConfigMap", w.o.Namespace, textAt(from, "configMapRef.name"))
		if m == nil {
			all = false
			continue
		}
		data := mapAt(m.Root, "data")
		for _, k := range sortedKeys(data) {
			vars = append(vars, variable{textAt(from, "prefix") + k, plainText(data[k]), c.Path + ".envFrom", true})
		}
	}
	values := map[string]string{}
	for _, v := range vars {
		values[v.name] = v.value
	}
	for i, e := range Envs(c.Root) {
		v := variable{name: e.Name, value: e.Value, path: c.Path + "." + e.Path, known: !e.From}
		if e.From {
			ref := valueAt(listAt(c.Root, "env")[i], "valueFrom.configMapKeyRef")
			if m := x.g.Get("ConfigMap", w.o.Namespace, textAt(ref, "name")); m != nil {
				v.value = textAt(m.Root, "data["+textAt(ref, "key")+"]")
				v.known = v.value != ""
			}
		}
		v.value = expand(v.value, values)
		values[v.name] = v.value
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

// base is a place that a client calls models at.
type base struct {
	address
	product   string // openai, anthropic
	container Container
	vars      []variable
	from      string // the variable
}

// bases are the places that a workload's containers call models at: base URLs, a
// provider's own host for a key alone, and whatever else names a provider or a
// workload that serves models.
func (x *edges) bases(w *workload) []base {
	var list []base
	for _, c := range Containers(w.o) {
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

func (x *edges) addressed(w *workload, c Container, vars []variable) []base {
	var list []base
	for _, v := range vars {
		a, ok := parseAddress(v.value)
		if !ok || !v.known {
			continue
		}
		named := slices.Contains(baseNames, v.name)
		if !named && (!strings.Contains(v.value, "://") || !x.leadsToModels(a.host, w.o.Namespace)) {
			continue
		}
		b := base{a, sdkOf(v.name, a.host), c, vars, v.name}
		if !slices.ContainsFunc(list, func(other base) bool { return other.address == b.address }) {
			list = append(list, b)
		}
	}
	return list
}

// leadsToModels says whether a host is a provider's or that of a gateway or
// model server.
func (x *edges) leadsToModels(host, namespace string) bool {
	if Provider(host) {
		return true
	}
	s := x.service(host, namespace)
	return s != nil && slices.ContainsFunc(x.behind[s], func(w *workload) bool {
		r := x.g.Role(w.o)
		return r == Gateway || r == Server
	})
}

// families are SDKs by what their variables begin with: what the base URL and the
// key are called, and where they call by themselves.
var families = []struct {
	product, key, host string
	bases              []string
}{
	{"openai", "OPENAI_API_KEY", "api.openai.com", []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "AZURE_OPENAI_ENDPOINT", "LLM_BASE_URL", "LITELLM_BASE_URL", "LITELLM_API_BASE"}},
	{"anthropic", "ANTHROPIC_API_KEY", "api.anthropic.com", []string{"ANTHROPIC_BASE_URL", "LLM_BASE_URL", "LITELLM_BASE_URL", "LITELLM_API_BASE"}},
}

// keyed are the providers that a container has a key for and no base URL.
func keyed(c Container, vars []variable) []base {
	var list []base
	has := func(name string) bool {
		return slices.ContainsFunc(vars, func(v variable) bool { return v.name == name })
	}
	for _, f := range families {
		if has(f.key) && !slices.ContainsFunc(f.bases, has) {
			list = append(list, base{address{f.host, true}, f.product, c, vars, f.key})
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
	step
	targets []address
}

// configs are the configurations that a workload's pods use.
func (x *edges) configs(w *workload) []gateway {
	var list []gateway
	for _, m := range x.configMaps(w) {
		for _, d := range x.g.Documents(m) {
			if g, ok := readGateway(m, d); ok {
				list = append(list, g)
			}
		}
	}
	if hands := x.handsOf(w); hands != nil {
		for i := range list {
			list[i].Hands = hands
		}
	}
	return list
}

// handsOf is what a workload states that it hands out, nil for nothing.
func (x *edges) handsOf(w *workload) map[layers.Class]layers.Class {
	for _, at := range []string{"spec.template.metadata", "metadata"} {
		words := wordsAt(w.o.Root, at+".annotations["+HandsAnnotation+"]")
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
func (x *edges) configMaps(w *workload) []*manifest.Object {
	var list []*manifest.Object
	add := func(name string) {
		if m := x.g.Get("ConfigMap", w.o.Namespace, name); m != nil && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	for _, v := range listAt(PodSpec(w.o), "volumes") {
		add(textAt(v, "configMap.name"))
		for _, s := range listAt(v, "projected.sources") {
			add(textAt(s, "configMap.name"))
		}
	}
	for _, c := range Containers(w.o) {
		for _, e := range listAt(c.Root, "env") {
			add(textAt(e, "valueFrom.configMapKeyRef.name"))
		}
	}
	return list
}

// readGateway reads a document as the configuration of a gateway.
func readGateway(m *manifest.Object, d Document) (gateway, bool) {
	switch {
	case d.Root == nil:
		return gateway{}, false
	case listAt(d.Root, "model_list") != nil:
		return readLiteLLM(m, d), true
	case mapAt(d.Root, "providers") != nil && within(d.Root, "network_config", 0) != nil:
		return readBifrost(m, d), true
	case mapAt(d.Root, "retry") != nil || mapAt(d.Root, "strategy") != nil && listAt(d.Root, "targets") != nil:
		return readPortkey(m, d), true
	}
	return gateway{}, false
}

func readLiteLLM(m *manifest.Object, d Document) gateway {
	l := layers.Layer{Name: "LiteLLM router in " + placeName(m), Product: "litellm", Hands: layers.Proxied()}
	n, known := 0, false
	for _, path := range []string{"router_settings.num_retries", "litellm_settings.num_retries"} {
		if valueAt(d.Root, path) != nil && !known {
			n, known = intOr(d.Root, path, litellmRetries), true
		}
	}
	if !known {
		n, l.Assumed = litellmRetries, "LiteLLM's router retries twice where nothing is set"
	}
	l.Attempts = layers.Same(plusOne(n))
	for class, name := range map[layers.Class]string{
		layers.Connect: "InternalServerErrorRetries", layers.Server: "InternalServerErrorRetries",
		layers.Reset: "TimeoutErrorRetries", layers.Capacity: "RateLimitErrorRetries",
	} {
		if path := "router_settings.retry_policy." + name; valueAt(d.Root, path) != nil {
			l.Attempts[class] = plusOne(intOr(d.Root, path, n))
		}
	}
	for _, settings := range []string{"router_settings", "litellm_settings"} {
		for _, f := range listAt(d.Root, settings+".fallbacks") {
			for _, to := range asMap(f) {
				l.Fallbacks = max(l.Fallbacks, len(asList(to)))
			}
		}
		l.Fallbacks = max(l.Fallbacks, len(listAt(d.Root, settings+".default_fallbacks")))
	}
	l.PerTry = max(span(d.Root, "router_settings.timeout"), 0)
	if l.PerTry == 0 {
		l.PerTry = span(d.Root, "litellm_settings.request_timeout")
	}
	g := gateway{step: newStep(m, d.Path, l)}
	for _, e := range listAt(d.Root, "model_list") {
		g.add(textOr(e, "litellm_params.api_base", modelHost(textAt(e, "litellm_params.model"))))
	}
	return g
}

// modelHost is the host of the provider that a model's name begins with.
func modelHost(model string) string {
	provider, _, ok := strings.Cut(model, "/")
	switch {
	case !ok || provider == "openai":
		return "https://api.openai.com"
	case provider == "anthropic":
		return "https://api.anthropic.com"
	case provider == "gemini":
		return "https://generativelanguage.googleapis.com"
	case provider == "mistral":
		return "https://api.mistral.ai"
	case provider == "groq":
		return "https://api.groq.com"
	}
	return ""
}

func readBifrost(m *manifest.Object, d Document) gateway {
	l := layers.Layer{Name: "Bifrost in " + placeName(m), Product: "bifrost", Hands: layers.Proxied()}
	most := 0
	g := gateway{}
	providers := mapAt(d.Root, "providers")
	for _, name := range sortedKeys(providers) {
		most = max(most, intOr(providers[name], "network_config.max_retries", 0))
		g.add(textOr(providers[name], "network_config.base_url", modelHost(name+"/")))
	}
	l.Attempts = layers.Same(plusOne(most))
	g.step = newStep(m, d.Path, l)
	return g
}

func readPortkey(m *manifest.Object, d Document) gateway {
	l := layers.Layer{Name: "Portkey in " + placeName(m), Product: "portkey", Hands: layers.Proxied(), Attempts: map[layers.Class]int{}}
	g := gateway{}
	targets := listAt(d.Root, "targets")
	for _, part := range append([]any{d.Root}, targets...) {
		retry := mapAt(part, "retry")
		if retry == nil {
			continue
		}
		codes := wordsAt(retry, "on_status_codes")
		if len(codes) == 0 {
			codes = []string{"429", "500-504"}
		}
		for _, c := range codes {
			for _, class := range codeClasses(c) {
				l.Attempts[class] = max(l.Attempts[class], plusOne(intOr(retry, "attempts", 0)))
			}
		}
	}
	if textAt(d.Root, "strategy.mode") == "fallback" {
		l.Fallbacks = max(len(targets)-1, 0)
	}
	for _, t := range targets {
		g.add(textOr(t, "custom_host", modelHost(textAt(t, "provider")+"/")))
	}
	g.step = newStep(m, d.Path, l)
	return g
}

func (g *gateway) add(url string) {
	if a, ok := parseAddress(url); ok && !slices.Contains(g.targets, a) {
		g.targets = append(g.targets, a)
	}
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

func asList(v any) []any { l, _ := v.([]any); return l }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
