package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// checker holds the settings against each other.
type checker struct {
	*decoder
	c *Config
}

func (k *checker) run() {
	k.listeners()
	for _, name := range slices.Sorted(maps.Keys(k.c.Providers)) {
		k.provider(name, k.c.Providers[name])
	}
	limits := map[string]Limits{}
	for _, name := range slices.Sorted(maps.Keys(k.c.Models)) {
		k.model(name, k.c.Models[name], limits)
	}
	k.cycles("degraded", func(m Model) []string {
		if m.Degraded == nil || m.Degraded.Model == "" {
			return nil
		}
		return []string{m.Degraded.Model}
	})
	k.cycles("content_policy_fallback", func(m Model) []string { return m.ContentPolicyFallback })
	k.workloads()
	for _, prefix := range slices.Sorted(maps.Keys(k.c.Passthrough)) {
		path := "passthrough." + prefix
		if !strings.HasPrefix(prefix, "/v1/") && prefix != "/v1" {
			k.error(path, "must begin with /v1/", "")
		}
		k.known(path, "provider", k.c.Passthrough[prefix], slices.Sorted(maps.Keys(k.c.Providers)))
	}
	k.timers()
	if len(k.c.Models) == 0 && len(k.c.Passthrough) == 0 {
		k.error("", "no models are configured", "hourthree init writes an example")
	}
}

func (k *checker) error(path, message, hint string) { k.note(k.at[path], path, message, hint) }
func (k *checker) warning(path, message, hint string) {
	k.error(path, message, hint)
	k.problems[len(k.problems)-1].Warning = true
}

func (k *checker) known(path, what, name string, names []string) bool {
	if name == "" || slices.Contains(names, name) {
		return true
	}
	hint := "configured: " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "none is configured"
	}
	if near := nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	k.error(path, fmt.Sprintf("%s %q is not configured", what, name), hint)
	return false
}

func (k *checker) listeners() {
	for _, l := range []struct{ path, addr string }{{"listen", k.c.Listen}, {"admin.listen", k.c.Admin.Listen}} {
		if _, _, err := net.SplitHostPort(l.addr); err != nil {
			k.error(l.path, "must be an address and a port such as 127.0.0.1:8080", "")
		}
	}
	if len(k.c.Workloads) == 0 && !loopback(k.c.Listen) {
		k.error("listen", "is not a loopback address, and no workload has a key", "configure workloads, or listen on 127.0.0.1")
	}
	if !loopback(k.c.Admin.Listen) {
		k.error("admin.listen", "must be a loopback address: the operator's listener asks for no credential", "")
	}
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // reported already
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (k *checker) provider(name string, p Provider) {
	path := "providers." + name
	if u, err := url.Parse(p.BaseURL); p.BaseURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		k.error(path+".base_url", "must be an http or https address with a host, without user, query and fragment", "")
	}
	switch p.Type {
	case "openai":
		if p.APIKey.value == "" {
			k.error(path, "api_key is missing", "write it as ${NAME}")
		}
	case "azure":
		if p.BaseURL == "" {
			k.error(path, "base_url is missing", "the resource's address, such as https://name.openai.azure.com")
		}
		if p.APIKey.value == "" && p.Auth != "entra" {
			k.error(path, "api_key is missing", "write it as ${NAME}, or set auth: entra")
		}
	case "openai-compatible":
		if p.BaseURL == "" {
			k.error(path, "base_url is missing", "the address up to and including the version, such as http://127.0.0.1:8000/v1")
		}
	}
	if p.Auth == "entra" && p.Type != "azure" {
		k.error(path+".auth", "entra is for azure only", "")
	}
	if p.Simulated != nil && p.Type != "simulated" {
		k.error(path+".simulated", "is for type simulated only", "")
	}
}

func (k *checker) model(name string, m Model, limits map[string]Limits) {
	path := "models." + name
	if len(m.Targets) == 0 && k.at[path+".targets"] != nil {
		k.error(path+".targets", "has no target", "")
	}
	seen, domains := map[string]bool{}, map[string]bool{}
	for i, t := range m.Targets {
		at := fmt.Sprintf("%s.targets[%d]", path, i)
		if !k.known(at+".provider", "provider", t.Provider, slices.Sorted(maps.Keys(k.c.Providers))) {
			continue
		}
		p := k.c.Providers[t.Provider]
		domains[p.FailureDomain(t.Provider)] = true
		if t.Simulated != nil && p.Type != "simulated" {
			k.error(at+".simulated", "is for providers of type simulated only", "")
		}
		id := t.Provider + "/" + t.Model
		if t.Model == "" {
			id = t.Provider + "/" + name
		}
		if seen[id] {
			k.error(at, "is the same target as another of this model", "remove one; use weight for a larger share")
		}
		seen[id] = true
		if other, ok := limits[id]; ok && other != t.Limits {
			k.error(at, "has other limits than the same target elsewhere", "a target has one set of limits: make them equal")
		}
		limits[id] = t.Limits
	}
	switch {
	case len(m.Targets) > 1 && len(domains) == 1:
		k.warning(path, "all targets are in one failure domain, so that they may fail together", "add one elsewhere")
	case len(m.Targets) == 1 && name != "*":
		k.warning(path, "has a single target, so that nothing is left when it fails", "add a second, or degraded")
	}
	k.lastResort(path, m)
}

func (k *checker) lastResort(path string, m Model) {
	names := slices.Sorted(maps.Keys(k.c.Models))
	if g := m.Degraded; g != nil {
		if (g.Message == "") == (g.Model == "") {
			k.error(path+".degraded", "must have either message or model", "")
		}
		k.known(path+".degraded.model", "model", g.Model, names)
	}
	for i, f := range m.ContentPolicyFallback {
		k.known(fmt.Sprintf("%s.content_policy_fallback[%d]", path, i), "model", f, names)
	}
}

// cycles refuses last resorts that lead back to where they began.
func (k *checker) cycles(what string, next func(Model) []string) {
	for _, start := range slices.Sorted(maps.Keys(k.c.Models)) {
		seen := map[string]bool{}
		var walk func(string) bool
		walk = func(name string) bool {
			for _, n := range next(k.c.Models[name]) {
				if n == start {
					return true
				}
				if !seen[n] {
					seen[n] = true
					if walk(n) {
						return true
					}
				}
			}
			return false
		}
		if walk(start) {
			k.error("models."+start+"."+what, "leads back to model "+start, "a last resort must end somewhere else")
		}
	}
}

func (k *checker) workloads() {
	owner := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(k.c.Workloads)) {
		w, path := k.c.Workloads[name], "workloads."+name
		if len(w.Keys) == 0 && k.at[path+".keys"] != nil {
			k.error(path+".keys", "has no key", "")
		}
		for i, key := range w.Keys {
			at := fmt.Sprintf("%s.keys[%d]", path, i)
			if hexed, ok := strings.CutPrefix(key.value, "sha256:"); ok && (len(hexed) != 64 || strings.Trim(strings.ToLower(hexed), "0123456789abcdef") != "") {
				k.error(at, "must be sha256: and 64 hex digits", "")
			}
			if other, ok := owner[key.value]; ok && key.value != "" {
				k.error(at, "is a key of workload "+other+" too", "a key belongs to one workload")
			}
			owner[key.value] = name
		}
		for i, m := range w.Models {
			k.known(fmt.Sprintf("%s.models[%d]", path, i), "model", m, slices.Sorted(maps.Keys(k.c.Models)))
		}
	}
}

func (k *checker) timers() {
	positive := func(path string, d Duration) {
		if d == 0 {
			k.error(path, "must be above 0", "")
		}
	}
	t, b, h := k.c.Defaults.Timeouts, k.c.Defaults.Breaker, k.c.HTTP
	positive("defaults.timeouts.connect", t.Connect)
	positive("defaults.timeouts.idle", t.Idle)
	positive("defaults.timeouts.total", t.Total)
	positive("defaults.breaker.cool_down", b.CoolDown)
	positive("defaults.breaker.max_cool_down", b.MaxCoolDown)
	positive("http.header_timeout", h.HeaderTimeout)
	positive("http.write_timeout", h.WriteTimeout)
	if h.MaxBody == 0 || h.MaxHeader == 0 {
		k.error("http", "max_body and max_header must be above 0", "")
	}
	if b.Window < Duration(time.Second) || b.Window > Duration(2*time.Minute) {
		k.error("defaults.breaker.window", "must be 1s to 2m", "")
	}
	if b.MaxCoolDown < b.CoolDown {
		k.error("defaults.breaker.max_cool_down", "must not be below cool_down", "")
	}
	if r := k.c.Defaults.Retry; r.MaxRatio < r.Ratio {
		k.error("defaults.retry.max_ratio", "must not be below ratio", "")
	}
	if f := t.FirstContent.Fixed(); f > t.Total.Duration() {
		k.warning("defaults.timeouts.total", "is shorter than first_content, which can then never end a call", "")
	}
}
