package peer

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// providers are hosts of model providers: the end of the name, and whose it is.
var providers = []struct{ suffix, name string }{
	{"api.openai.com", "openai"},
	{".openai.azure.com", "azure"},
	{".cognitiveservices.azure.com", "azure"},
	{".api.cognitive.microsoft.com", "azure"},
	{".services.ai.azure.com", "azure"},
	{".models.ai.azure.com", "azure"},
	{"api.anthropic.com", "anthropic"},
	{"generativelanguage.googleapis.com", "gemini"},
	{"aiplatform.googleapis.com", "vertex"},
	{"api.mistral.ai", "mistral"},
	{"api.cohere.com", "cohere"},
	{"api.cohere.ai", "cohere"},
	{"api.groq.com", "groq"},
	{"api.together.xyz", "together"},
	{"api.deepseek.com", "deepseek"},
	{"api.fireworks.ai", "fireworks"},
	{"api.perplexity.ai", "perplexity"},
	{"openrouter.ai", "openrouter"},
	{"api.x.ai", "xai"},
	{"integrate.api.nvidia.com", "nvidia"},
	{"api-inference.huggingface.co", "huggingface"},
	{"router.huggingface.co", "huggingface"},
	{"api.cerebras.ai", "cerebras"},
	{"dashscope.aliyuncs.com", "dashscope"},
	{"api.moonshot.cn", "moonshot"},
	{"api.moonshot.ai", "moonshot"},
	{"open.bigmodel.cn", "zhipu"},
}

var (
	bedrock   = regexp.MustCompile(`^bedrock(?:-runtime)?(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com$`)
	vertex    = regexp.MustCompile(`^([a-z0-9-]+)-aiplatform\.googleapis\.com$`)
	cognitive = regexp.MustCompile(`^([a-z0-9]+)\.api\.cognitive\.microsoft\.com$`)
)

// locate says whose a host is and, where the name tells, in which region.
func locate(host string) (provider, region string) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if m := bedrock.FindStringSubmatch(host); m != nil {
		return "bedrock", m[1]
	}
	if m := vertex.FindStringSubmatch(host); m != nil {
		return "vertex", m[1]
	}
	if m := cognitive.FindStringSubmatch(host); m != nil {
		return "azure", m[1]
	}
	for _, p := range providers {
		if host == p.suffix || strings.HasPrefix(p.suffix, ".") && strings.HasSuffix(host, p.suffix) {
			return p.name, ""
		}
	}
	return "", ""
}

// hostOf is the host of a URL or of host and port, "" where a variable stands
// in its place.
func hostOf(text string) string {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "${}<>%") || strings.HasPrefix(text, "os.environ/") || strings.HasPrefix(text, "env.") {
		return ""
	}
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// One says whether a host stands for one machine or one provider's address: an
// address, this machine, or the host of a provider. Any other name may stand for
// several.
func One(host string) bool {
	if host == "localhost" || net.ParseIP(host) != nil {
		return true
	}
	p, _ := locate(host)
	return p != ""
}

// domain is what fails together with a target, "" where that is unknown.
func (t Target) domain() string {
	switch {
	case t.Domain != "":
		return t.Domain
	case t.Provider != "" && t.Region != "":
		return t.Provider + " " + t.Region
	case t.Provider == "azure" || t.Provider == "bedrock" || t.Provider == "vertex":
		// These have regions; which one is not said. The same address is the same one.
		if t.Host == "" {
			return ""
		}
		return t.Host
	case t.Provider != "" && shared(t):
		return t.Provider
	}
	return t.Host
}

// shared says that all targets of a provider are behind one address of its own.
func shared(t Target) bool {
	if t.Host == "" {
		return t.Provider != "openai-compatible" && t.Provider != "hosted_vllm" && t.Provider != "ollama" && t.Provider != "ollama_chat"
	}
	p, _ := locate(t.Host)
	return p != ""
}

// Domains are the different failure domains of targets, in order, and whether
// that of every one is known.
func Domains(targets []Target) (list []string, known bool) {
	known = true
	seen := map[string]bool{}
	for _, t := range targets {
		d := t.domain()
		if d == "" {
			known = false
			continue
		}
		if !seen[d] {
			seen[d] = true
			list = append(list, d)
		}
	}
	return list, known
}

// words are the names by which a model server or a model is known.
var words = regexp.MustCompile(`(?i)(?:^|[^a-z])(v?llms?|ollama|litellm|openai|azureopenai|anthropic|claude|gpt|gemini|bedrock|mistral|llama|llamacpp|qwen|deepseek|sglang|tgi|triton|inference|models?|genai|chat-?completions?|embeddings?)(?:$|[^a-z])`)

var paths = regexp.MustCompile(`/v1/(chat|completions|responses|messages|embeddings|models)|/chat/completions|/openai/|/api/(generate|chat|embed)|:generateContent|/invoke|:11434(?:/|$)`)

// asides are paths of probes, pages and files.
var asides = regexp.MustCompile(`(?i)^(?:[=~^*]+ *)*\^?/?(?:health|healthz|livez|ready|readyz|metrics|ping|status|stats|docs|redoc|openapi\.json|favicon|robots|static|assets|images|css|js|grafana|prometheus|nginx)(?:[/.$ ]|$)`)

// evidence says why names, paths and targets are taken to lead to models, "" when
// nothing says so.
func evidence(targets []Target, names ...string) string {
	for _, t := range targets {
		if p, _ := locate(t.Host); p != "" {
			return "calls " + t.Host
		}
	}
	for _, t := range targets {
		names = append(names, t.Host, t.Name)
	}
	for _, n := range names {
		if m := paths.FindString(n); m != "" {
			return "serves " + m
		}
		if m := words.FindStringSubmatch(n); m != nil {
			return "is called " + n
		}
	}
	return ""
}
