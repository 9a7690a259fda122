package manifest

import (
	"bytes"
	"regexp"
	"strings"
)

// The products whose own configuration files are read; they are the Kind of
// such an object, its Group is FileGroup.
const (
	LiteLLM   = "LiteLLM"
	Envoy     = "Envoy"
	Kong      = "Kong"
	Portkey   = "Portkey"
	Bifrost   = "Bifrost"
	Hourthree = "Hourthree"
	Nginx     = "Nginx"
	HAProxy   = "HAProxy"
)

// expected says what the reader knows, for what it does not.
const expected = "give Kubernetes manifests, or a configuration of LiteLLM, Envoy, Kong, Portkey, Bifrost, Hourthree, nginx or HAProxy"

// product is the gateway that a value configures, "" for none of those known.
func product(m map[string]any) string {
	has := func(key string) bool { _, ok := m[key]; return ok }
	list := func(key string) bool { _, ok := m[key].([]any); return ok }
	mapping := func(key string) bool { _, ok := m[key].(map[string]any); return ok }
	switch {
	case has("_format_version"):
		return Kong
	case list("model_list"), mapping("litellm_settings"), mapping("router_settings") && mapping("general_settings"):
		return LiteLLM
	case mapping("static_resources"), mapping("dynamic_resources"), mapping("staticResources"), mapping("dynamicResources"):
		return Envoy
	case ofHourthree(m):
		return Hourthree
	case ofBifrost(m):
		return Bifrost
	case ofPortkey(m):
		return Portkey
	}
	return ""
}

func ofHourthree(m map[string]any) bool {
	_, providers := m["providers"].(map[string]any)
	_, models := m["models"].(map[string]any)
	_, workloads := m["workloads"].(map[string]any)
	_, listen := m["listen"].(string)
	_, admin := m["admin"].(map[string]any)
	return providers && models || workloads && (providers || models || listen || admin) || listen && admin
}

// ofBifrost looks at what a provider says: others have providers too.
func ofBifrost(m map[string]any) bool {
	providers, _ := m["providers"].(map[string]any)
	for _, p := range providers {
		p, _ := p.(map[string]any)
		_, keys := p["keys"].([]any)
		_, network := p["network_config"].(map[string]any)
		_, pool := p["concurrency_and_buffer_size"].(map[string]any)
		if keys || network || pool {
			return true
		}
	}
	return false
}

func ofPortkey(m map[string]any) bool {
	strategy, _ := m["strategy"].(map[string]any)
	_, mode := strategy["mode"].(string)
	targets, _ := m["targets"].([]any)
	if mode || len(targets) > 0 && ofPortkeyTarget(targets[0]) {
		return true
	}
	retry, _ := m["retry"].(map[string]any)
	_, attempts := retry["attempts"].(float64)
	return attempts && (ofPortkeyTarget(m) || len(m) == 1)
}

func ofPortkeyTarget(v any) bool {
	m, _ := v.(map[string]any)
	for _, key := range []string{"virtual_key", "override_params", "provider", "api_key", "strategy"} {
		if _, ok := m[key]; ok {
			return true
		}
	}
	return false
}

var (
	nginxBlock = regexp.MustCompile(`(?m)^[ \t]*(http|server|events|stream|upstream[ \t]+\S+|location[ \t]+[^;{]+)[ \t\r\n]*\{`)
	nginxLine  = regexp.MustCompile(`(?m)^[ \t]*(proxy_\w+|grpc_\w+|limit_req\w*|limit_conn\w*|keepalive\w*|client_\w+|include|worker_\w+)[ \t]+[^;{}]+;`)
	haproxy    = regexp.MustCompile(`(?m)^(global|defaults|frontend|backend|listen|resolvers|peers)([ \t]+[^:{=]*)?(#.*)?\r?$`)
	haproxyKey = regexp.MustCompile(`(?m)^[ \t]+(mode|timeout|balance|server|bind|option|retries|retry-on|default_backend|maxconn|log|use_backend|stats|http-request|acl|nameserver)[ \t]`)
)

// sniffed is how much of a text is looked at to tell what it is.
const sniffed = 64 << 10

// productOfText is the gateway that a text configures which is neither YAML nor
// JSON, "" for none.
func productOfText(name string, text []byte) string {
	d := document{text: text[:min(len(text), sniffed)]}
	if d.looksJSON() || bytes.Contains(d.text, []byte("apiVersion")) {
		return ""
	}
	switch {
	case nginxBlock.Match(d.text):
		return Nginx
	case haproxy.Match(d.text) && haproxyKey.Match(d.text):
		return HAProxy
	case strings.HasSuffix(name, ".conf") && nginxLine.Match(d.text):
		return Nginx
	}
	return ""
}

// sure are the keys by which a text names its gateway, readable or not.
var sure = map[string]*regexp.Regexp{
	LiteLLM: regexp.MustCompile(`(?m)^["{ \t]*(model_list|litellm_settings|router_settings)"?[ \t]*:`),
	Envoy:   regexp.MustCompile(`(?m)^["{ \t]*(static_resources|dynamic_resources|staticResources|dynamicResources)"?[ \t]*:`),
	Kong:    regexp.MustCompile(`(?m)^["{ \t]*_format_version"?[ \t]*:`),
}

// mayConfigure says whether a text may configure a gateway, and which one when
// it says so itself. It spares parsing everything that ConfigMaps hold.
func mayConfigure(text []byte) (named string, maybe bool) {
	has := func(words ...string) bool {
		for _, w := range words {
			if bytes.Contains(text, []byte(w)) {
				return true
			}
		}
		return false
	}
	var candidate string
	switch {
	case has("model_list", "litellm_settings", "router_settings"):
		candidate = LiteLLM
	case has("static_resources", "dynamic_resources", "staticResources", "dynamicResources"):
		candidate = Envoy
	case has("_format_version"):
		candidate = Kong
	case has("providers") && has("network_config", "keys", "concurrency_and_buffer_size", "models", "workloads"),
		has("workloads") && has("models", "listen"), has("listen") && has("admin"),
		has("targets") && (has("strategy") || has("provider", "virtual_key", "api_key")), has("retry") && has("attempts"):
		return "", true
	default:
		return "", false
	}
	if !sure[candidate].Match(text) {
		return "", true
	}
	return candidate, true
}

func jsonFile(name string) bool { return extension(name) == ".json" }
