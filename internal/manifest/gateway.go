package manifest

import (
	"bytes"
	"path"
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

// productOfText is the gateway that a text configures which is neither YAML nor
// JSON, "" for none.
func productOfText(name string, text []byte) string {
	if haproxy.Match(text) && haproxyKey.Match(text) && !nginxBlock.Match(text) {
		return HAProxy
	}
	if nginxBlock.Match(text) && !bytes.Contains(text, []byte("apiVersion:")) {
		return Nginx
	}
	if strings.HasSuffix(name, ".conf") && nginxLine.Match(text) {
		return Nginx
	}
	return ""
}

// hints are what a text must contain for a look at whether it configures a
// gateway. It spares reading everything that ConfigMaps hold.
var hints = map[string]*regexp.Regexp{
	LiteLLM:   regexp.MustCompile(`(?m)^["{ \t]*(model_list|litellm_settings|router_settings)"?[ \t]*:`),
	Envoy:     regexp.MustCompile(`(?m)^["{ \t]*(static_resources|dynamic_resources|staticResources|dynamicResources)"?[ \t]*:`),
	Kong:      regexp.MustCompile(`_format_version`),
	Portkey:   regexp.MustCompile(`"?(strategy|targets|retry)"?[ \t]*:`),
	Bifrost:   regexp.MustCompile(`"?providers"?[ \t]*:`),
	Hourthree: regexp.MustCompile(`(?m)^["{ \t]*(providers|workloads)"?[ \t]*:`),
}

// mayConfigure says which gateway a text may configure. sure is one that the
// text names by itself, whether or not it can be read.
func mayConfigure(text []byte) (sure string, maybe bool) {
	for _, p := range []string{LiteLLM, Envoy, Kong, Portkey, Bifrost, Hourthree} {
		if hints[p].Match(text) {
			if p == LiteLLM || p == Envoy || p == Kong {
				return p, true
			}
			maybe = true
		}
	}
	return "", maybe
}

func jsonFile(name string) bool { return path.Ext(name) == ".json" }
