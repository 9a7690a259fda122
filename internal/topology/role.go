package topology

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
)

// RoleLabel declares a workload's role, or, on any other object, that it is on
// the way to a model. It may be a label or an annotation, of the object or of
// its pod template.
const RoleLabel = "hourthree.dev/role"

// images are the repositories of programs whose role is known, without the
// registry. They are compared whole: a test image beside one of them is another.
var images = map[string]Role{
	"berriai/litellm": Gateway, "berriai/litellm-database": Gateway, "berriai/litellm-non_root": Gateway, "litellm/litellm": Gateway,
	"maximhq/bifrost": Gateway, "portkeyai/gateway": Gateway, "helicone/ai-gateway": Gateway,
	"hourthree/hourthree": Gateway, "envoyproxy/ai-gateway-extproc": Gateway, "agentgateway/agentgateway": Gateway,
	"cr.agentgateway.dev/agentgateway": Gateway,
	"vllm/vllm-openai":                 Server, "vllm/vllm-openai-rocm": Server, "vllm/vllm-openai-cpu": Server, "lmsysorg/sglang": Server, "ollama/ollama": Server,
	"huggingface/text-generation-inference": Server, "ggml-org/llama.cpp": Server, "ggerganov/llama.cpp": Server,
	"nvidia/tritonserver": Server, "nvidia/ai-dynamo/vllm-runtime": Server, "nvidia/ai-dynamo/sglang-runtime": Server,
	"llm-d/llm-d": Server, "llm-d/llm-d-cuda": Server, "kserve/huggingfaceserver": Server, "openvino/model_server": Server,
	"lmcache/lmstack-router": Gateway, "lmcache/vllm-openai": Server,
	"gateway-api-inference-extension/epp": Picker, "llm-d/llm-d-inference-scheduler": Picker,
}

// Repository is an image's name without tag and digest.
func Repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}

// roleOfImage is the role of a known program, whatever registry or mirror it is
// taken from.
func roleOfImage(image string) (Role, bool) {
	for name := Repository(image); name != ""; {
		if r, ok := images[name]; ok {
			return r, true
		}
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			break
		}
		name = rest
	}
	return "", false
}

// KeyNames are the environment variables that hold a provider's key.
var KeyNames = []string{
	"OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY", "COHERE_API_KEY",
	"GROQ_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY",
}

// BaseNames are the environment variables that say where models are called.
var BaseNames = []string{
	"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "LLM_BASE_URL",
	"LITELLM_BASE_URL", "LITELLM_API_BASE", "MISTRAL_BASE_URL", "GROQ_BASE_URL",
}

// RetryNames are environment variables that applications use for the number of
// retries of a provider's SDK.
var RetryNames = []string{
	"OPENAI_MAX_RETRIES", "ANTHROPIC_MAX_RETRIES", "AZURE_OPENAI_MAX_RETRIES", "LLM_MAX_RETRIES", "LITELLM_NUM_RETRIES",
}

var providers = regexp.MustCompile(`^(api\.openai\.com|(eu|us)\.api\.openai\.com|[a-z0-9-]+\.openai\.azure\.com|[a-z0-9-]+\.cognitiveservices\.azure\.com|` +
	`[a-z0-9-]+\.services\.ai\.azure\.com|[a-z0-9.-]+\.inference\.ai\.azure\.com|[a-z0-9-]+\.models\.ai\.azure\.com|api\.anthropic\.com|` +
	`generativelanguage\.googleapis\.com|([a-z0-9-]+-)?aiplatform\.googleapis\.com|bedrock-runtime(-fips)?\.[a-z0-9-]+\.amazonaws\.com|` +
	`api\.mistral\.ai|api\.cohere\.(ai|com)|api\.groq\.com|api\.deepseek\.com|api\.x\.ai|api\.together\.(ai|xyz)|api\.fireworks\.ai|openrouter\.ai|` +
	`api\.perplexity\.ai|router\.huggingface\.co|api-inference\.huggingface\.co|integrate\.api\.nvidia\.com|\*\.openai\.azure\.com)$`)

// Provider says whether a host is a model provider's public one.
func Provider(host string) bool {
	return providers.MatchString(strings.ToLower(strings.TrimSuffix(host, ".")))
}

// ownNames end the hosts that carry the name of a customer's own resource.
var ownNames = []string{".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com", ".inference.ai.azure.com", ".models.ai.azure.com"}

// AnyonesHost is a provider's host without the name of whose it is.
func AnyonesHost(host string) string {
	for _, suffix := range ownNames {
		if strings.HasSuffix(host, suffix) {
			return "*" + suffix
		}
	}
	return host
}

// hostOf is the host that a URL, or a host with or without port, names; "" for
// none.
func hostOf(text string) string {
	if !strings.Contains(text, "://") {
		text = "//" + text
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.ContainsAny(host, "$(){} ") || net.ParseIP(host) != nil {
		return ""
	}
	return host
}

// declared is the role that an object states, "" for none.
func declared(o *manifest.Object) (role Role, by string) {
	for _, place := range []string{"metadata", "spec.template.metadata"} {
		for _, field := range []string{"labels", "annotations"} {
			m, _ := fields.Object(o.Root, place+"."+field)
			if v, ok := m[RoleLabel].(string); ok && v != "" {
				return Role(v), strings.TrimSuffix(field, "s") + " " + RoleLabel
			}
		}
	}
	return "", ""
}

// bases are the places where a workload's containers call models, by their
// environment, each once: hosts.
func bases(o *manifest.Object) []string {
	var hosts []string
	for _, c := range Containers(o) {
		for _, e := range Envs(c.Root) {
			if h := hostOf(e.Value); e.Value != "" && h != "" && slices.Contains(BaseNames, e.Name) && !slices.Contains(hosts, h) {
				hosts = append(hosts, h)
			}
		}
	}
	return hosts
}

// parts are the roles that a workload may declare.
var parts = []Role{Client, Gateway, Server, Picker}

// stated is the role of a workload that says it or runs a known program.
func stated(o *manifest.Object) (Role, string) {
	if r, by := declared(o); r != "" {
		return r, by
	}
	for _, c := range Containers(o) {
		image, _ := fields.Text(c.Root, "image")
		if r, ok := roleOfImage(image); ok && !c.Init {
			return r, "image " + Repository(image)
		}
	}
	return "", ""
}

// calls says by what a workload's environment shows that it calls models, "" for
// nothing. Of a variable it gives the name and never the value.
func calls(o *manifest.Object) string {
	for _, c := range Containers(o) {
		for _, e := range Envs(c.Root) {
			switch {
			case slices.Contains(KeyNames, e.Name), slices.Contains(BaseNames, e.Name), slices.Contains(RetryNames, e.Name):
				return "environment variable " + e.Name
			case Provider(hostOf(e.Value)):
				return "environment variable " + e.Name + " names a provider's host"
			}
		}
	}
	return ""
}

// Misdeclared are the problems of workloads that declare a role there is not.
func Misdeclared(g *Graph) []manifest.Problem {
	var list []manifest.Problem
	for _, o := range g.all {
		r, _ := declared(o)
		if r == "" || slices.Contains(parts, r) || !slices.Contains(workloadKinds, KindOf(o)) {
			continue
		}
		list = append(list, manifest.Problem{
			File: o.Origin.File, Line: max(o.Origin.Line, 1),
			What:   fmt.Sprintf("%s declares the role %q in %s, which is none", o.Ref(), fields.Short(string(r)), RoleLabel),
			Remedy: "write client, gateway, server or epp",
		})
	}
	return list
}

// Role is a workload's part on the way to a model.
type Role string

// The roles.
const (
	Client  Role = "client"
	Gateway Role = "gateway"
	Server  Role = "server"
	Picker  Role = "epp" // the endpoint picker of an InferencePool
)

// RoleOf says which role a workload was found to have, and by what.
type RoleOf struct {
	Object manifest.Ref `json:"object"`
	Role   Role         `json:"role"`
	By     string       `json:"by"`
}
