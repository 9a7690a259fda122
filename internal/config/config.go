// Package config is the configuration file: one strict YAML document, typed,
// checked as a whole before any of it is used. Every problem is reported at
// once, with line, column and the nearest known name; secrets appear in no
// error and no printed form.
//
// The comments on the fields are the reference: docs/config.md and the JSON
// schema for editors are made from them. A setting that is accepted is in
// force; what this version does not do is refused with the remedy.
package config

// Config is a whole configuration.
type Config struct {
	// Address that clients use. With no workload configured it must be a loopback address.
	Listen string `yaml:"listen"`
	// The operator's listener: state page, metrics, health.
	Admin Admin `yaml:"admin"`
	// Accounts at upstreams, by name.
	Providers map[string]Provider `yaml:"providers"`
	// Public model names, each an ordered list of targets. The name "*" serves every name that is not listed.
	Models map[string]Model `yaml:"models"`
	// Callers, found by their API keys. Without any, one open workload serves loopback clients.
	Workloads map[string]Workload `yaml:"workloads"`
	// Path prefixes without a model in the body, such as /v1/files, and the provider each is passed to.
	Passthrough map[string]string `yaml:"passthrough"`
	// What applies where nothing else is said.
	Defaults Defaults `yaml:"defaults"`
	// Bounds of the client side's HTTP.
	HTTP HTTP `yaml:"http"`
	// The budget for buffered bytes.
	Memory Memory `yaml:"memory"`
}

// Admin is the operator's listener.
type Admin struct {
	// Address of the operator's listener. It asks for no credential, so it must be a loopback address.
	Listen string `yaml:"listen"`
}

// Provider is an account at an upstream.
type Provider struct {
	// What the upstream speaks: openai, azure, openai-compatible or simulated.
	Type string `yaml:"type" enum:"openai,azure,openai-compatible,simulated" required:"true"`
	// Address of the API. For openai the default is https://api.openai.com/v1; for azure the resource's address without a path; for openai-compatible the address up to and including the version.
	BaseURL string `yaml:"base_url"`
	// The provider's key. Write it as ${NAME} or ${file:/path}.
	APIKey Secret `yaml:"api_key"`
	// How azure is shown who asks: key (default) or entra, the identity of this process.
	Auth string `yaml:"auth" enum:"key,entra"`
	// Scope of Entra tokens; default https://cognitiveservices.azure.com/.default.
	EntraScope string `yaml:"entra_scope"`
	// Azure's dated api-version. With it calls go to /openai/deployments/{name}; without it to /openai/v1.
	APIVersion string `yaml:"api_version"`
	// Which server an openai-compatible upstream is, for reading its errors; known from the host of base_url where possible.
	Vendor string `yaml:"vendor" enum:"vllm,sglang,llamacpp,ollama,tgi,nim,groq,mistral,together,deepseek,xai,openrouter,moonshot,github_models"`
	// Region, shown and used for the default failure domain.
	Region string `yaml:"region"`
	// Failure domain: targets that are likely to fail together share one. Default: type and region, or the provider's name without a region.
	Domain string `yaml:"domain"`
	// Extra headers on every call, for instance OpenAI-Organization.
	Headers map[string]Secret `yaml:"headers"`
	// How a simulated provider behaves; a target may have its own.
	Simulated *Simulated `yaml:"simulated"`
}

// FailureDomain is the configured domain or the default.
func (p Provider) FailureDomain(name string) string {
	switch {
	case p.Domain != "":
		return p.Domain
	case p.Region != "":
		return p.Type + "-" + p.Region
	}
	return name
}

// Simulated is the behaviour of a simulated target.
type Simulated struct {
	// Time to the first content; default 200ms.
	FirstContent Duration `yaml:"first_content"`
	// Spread of that time, as a share of it, 0 to 1; default 0.2.
	Jitter float64 `yaml:"jitter" min:"0" max:"1"`
	// Time for each further token; default 20ms.
	PerToken Duration `yaml:"per_token"`
	// Length of an answer in tokens; default 24.
	Tokens int `yaml:"tokens" min:"0" max:"100000"`
	// What goes wrong.
	Failure Failure `yaml:"failure"`
	// Calls at once before the target answers 429; 0 is no limit.
	Concurrency int `yaml:"concurrency" min:"0"`
	// Calls a minute before the target answers 429; 0 is no limit.
	RPM int `yaml:"rpm" min:"0"`
}

// Failure is how a simulated target fails.
type Failure struct {
	// Kind of failure; default none.
	Mode string `yaml:"mode" enum:"none,hang,reset,500,503,429,error-in-200,truncate,slow"`
	// Share of calls that fail, 0 to 1; default 1.
	Share *float64 `yaml:"share" min:"0" max:"1"`
	// Retry-After of a 429, in whole seconds; 0 sends none.
	RetryAfter Duration `yaml:"retry_after"`
}

// Model is a public model name.
type Model struct {
	// Where requests may go.
	Targets []Target `yaml:"targets" required:"true"`
	// What is answered when no target gives an answer.
	Degraded *Degraded `yaml:"degraded"`
	// Models whose targets a content-policy refusal may be sent to; nothing else uses this list, and no other list is used for such a refusal.
	ContentPolicyFallback []string `yaml:"content_policy_fallback"`
}

// Target is one model deployment at one provider.
type Target struct {
	// Name of a provider.
	Provider string `yaml:"provider" required:"true"`
	// Model or deployment at that provider; default: the public name. "*" sends whatever name was asked for.
	Model string `yaml:"model"`
	// Targets of the lowest order are tried first; default 1.
	Order int `yaml:"order" min:"1" max:"100"`
	// Share within one order; default 1.
	Weight float64 `yaml:"weight" min:"0.001" max:"1000"`
	// What the target may be sent.
	Limits Limits `yaml:"limits"`
	// Timers of this target instead of the defaults.
	Timeouts *TargetTimeouts `yaml:"timeouts"`
	// Behaviour of a target at a simulated provider.
	Simulated *Simulated `yaml:"simulated"`
}

// Limits bound a target or a workload. 0 is no limit.
type Limits struct {
	// Requests a minute.
	RPM int64 `yaml:"rpm" min:"0"`
	// Tokens a minute, estimated at the start and settled to the real use.
	TPM int64 `yaml:"tpm" min:"0"`
	// Requests at once, held to the end of a stream.
	Concurrency int `yaml:"concurrency" min:"0"`
}

// TargetTimeouts are a target's own timers.
type TargetTimeouts struct {
	// Until the response headers; auto learns it.
	Headers AutoDuration `yaml:"headers"`
	// Until the first content, or the whole of an answer that does not stream; auto learns it.
	FirstContent AutoDuration `yaml:"first_content"`
}

// Degraded is the last resort of a model: one of its fields.
type Degraded struct {
	// A fixed text, answered as if the model had said it, with a header that says so.
	Message string `yaml:"message"`
	// Another model, whose targets are tried.
	Model string `yaml:"model"`
}

// Workload is a caller.
type Workload struct {
	// API keys, plain or as sha256: and 64 hex digits. Only their digests are kept.
	Keys []Secret `yaml:"keys" required:"true"`
	// Models the workload may use; default all.
	Models []string `yaml:"models"`
	// Shown to the operator: critical, interactive (default) or batch.
	Priority string `yaml:"priority" enum:"critical,interactive,batch"`
	// What the workload may use.
	Limits Limits `yaml:"limits"`
}

// Defaults apply to every target and workload.
type Defaults struct {
	// Timers of an attempt and of a request.
	Timeouts Timeouts `yaml:"timeouts"`
	// The retry allowance.
	Retry Retry `yaml:"retry"`
	// When a target counts as failing, and how it comes back.
	Breaker Breaker `yaml:"breaker"`
	// How long a request may wait for a slot of a target that is at its concurrency limit.
	Queue Queue `yaml:"queue"`
}

// Timeouts are the timers.
type Timeouts struct {
	// Name resolution, connect and TLS together.
	Connect Duration `yaml:"connect"`
	// Until the response headers; auto learns it from healthy calls.
	Headers AutoDuration `yaml:"headers"`
	// Until the first content, or the whole of an answer that does not stream; auto learns it.
	FirstContent AutoDuration `yaml:"first_content"`
	// Silence between two reads of an answer that has begun.
	Idle Duration `yaml:"idle"`
	// The whole request with all its attempts.
	Total Duration `yaml:"total"`
}

// Retry is the allowance for extra attempts.
type Retry struct {
	// Upstream calls for one request at most, 1 to 3.
	Attempts int `yaml:"attempts" min:"1" max:"3"`
	// Charged extra attempts for each request, over 10 s; 0 makes none.
	Ratio float64 `yaml:"ratio" min:"0" max:"1"`
	// What the ratio may grow to while extra attempts succeed as often as first ones.
	MaxRatio float64 `yaml:"max_ratio" min:"0" max:"1"`
	// Charged extra attempts earned by each success.
	PerSuccess float64 `yaml:"per_success" min:"0" max:"1"`
}

// Breaker holds the rules of a target's breaker.
type Breaker struct {
	// Verdicts of this long are looked at, in whole seconds up to 2m.
	Window Duration `yaml:"window"`
	// Verdicts needed before the ratio counts.
	MinRequests int `yaml:"min_requests" min:"1" max:"100000"`
	// Share of failures that opens.
	FailureRatio float64 `yaml:"failure_ratio" min:"0.01" max:"1"`
	// First cool-down; each further one is twice as long.
	CoolDown Duration `yaml:"cool_down"`
	// Longest cool-down.
	MaxCoolDown Duration `yaml:"max_cool_down"`
	// Probes that must succeed in a row.
	Probes int `yaml:"probes" min:"1" max:"100"`
	// Time from the first share of traffic to the full one.
	Ramp Duration `yaml:"ramp"`
}

// Queue bounds the wait for a slot. Any of the three at 0 turns it off.
type Queue struct {
	// Requests that may wait.
	Length int `yaml:"length" min:"0" max:"1000000"`
	// Bytes that they may hold.
	Bytes Bytes `yaml:"bytes"`
	// How long one may wait.
	Wait Duration `yaml:"wait"`
}

// HTTP bounds the client side.
type HTTP struct {
	// Largest request body.
	MaxBody Bytes `yaml:"max_body"`
	// Largest request header block.
	MaxHeader Bytes `yaml:"max_header"`
	// Time for the request headers to arrive.
	HeaderTimeout Duration `yaml:"header_timeout"`
	// Time one write to a client may take; a client that does not read is cut off.
	WriteTimeout Duration `yaml:"write_timeout"`
	// Time that running requests get on SIGTERM.
	Drain Duration `yaml:"drain"`
}

// Memory is the budget for buffered bytes.
type Memory struct {
	// Bytes, or auto: 0.6 of GOMEMLIMIT, which defaults to 0.9 of the container's limit.
	Limit Bytes `yaml:"limit" auto:"true"`
}
