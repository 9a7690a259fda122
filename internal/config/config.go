// Package config is the configuration file: one strict YAML document, typed,
// checked as a whole before any of it is used. Every problem is reported at
// once, with line, column and the nearest known name; secrets appear in no
// error and no printed form.
//
// The comments on the fields are the reference: docs/config.md and the JSON
// schema for editors are made from them. A setting that is accepted is in
// force; what this version does not do is refused with the remedy.
package config

import "time"

// Config is a whole configuration.
type Config struct {
	// Address that clients use, host and port. With no workload configured it must be a loopback address: whoever reaches it spends your keys. A change takes effect with a restart.
	Listen string `yaml:"listen"`
	// The operator's listener: dashboard, metrics, health.
	Admin Admin `yaml:"admin"`
	// Accounts at upstreams, by name. The name is part of target names in metrics, logs and headers.
	Providers map[string]Provider `yaml:"providers"`
	// Public model names, each an ordered list of targets. The name "*" serves every name that is not listed.
	Models map[string]Model `yaml:"models"`
	// Callers, found by their API keys. Without any, one open workload named open serves everybody on this machine.
	Workloads map[string]Workload `yaml:"workloads"`
	// Path prefixes and the provider each is passed to, for paths without a model in the body, such as /v1/files: openai. The longest prefix counts; a path without one is answered 404.
	Passthrough map[string]string `yaml:"passthrough"`
	// What applies where nothing else is said.
	Defaults Defaults `yaml:"defaults"`
	// The lane that keeps a workload away from the others.
	Quarantine Quarantine `yaml:"quarantine"`
	// Bounds of the client side's HTTP.
	HTTP HTTP `yaml:"http"`
	// The budget for buffered bytes.
	Memory Memory `yaml:"memory"`
	// Objectives for how requests are answered, by name, 64 at most: the share that must go well, and so how many may fail. How fast that budget goes is watched, and told when it goes too fast.
	SLOs map[string]SLO `yaml:"slos"`
	// What is sent about requests to a collector of yours.
	Telemetry Telemetry `yaml:"telemetry"`
	// How a changed configuration reaches the requests. Without it the change is taken at once.
	Rollout *Rollout `yaml:"rollout"`
	// The file that outlives a restart.
	Store Store `yaml:"store"`
	// Who is told what is noticed.
	Notify *Notify `yaml:"notify"`
}

// Rollout is how a changed configuration reaches the requests: a few first, more when it is not worse than the one before at the same time, none when it is (docs/rollout.md). What counts is what the changed file says of it.
type Rollout struct {
	// Shares of the traffic that the stages reach, such as 5% or 0.05: rising, the last 100%. Workloads join whole, the largest last; one is split where the share asks for it. Default 1%, 5%, 25%, 50%, 100%. With by: region they are left out.
	Stages []Share `yaml:"stages"`
	// What is widened from stage to stage: the share of the traffic, or the regions whose targets are those of the changed file, the one with the least traffic first.
	By string `yaml:"by" enum:"share,region"`
	// How long a stage is watched at least, 1m to 24h.
	Bake Duration `yaml:"bake"`
	// Requests that the changed configuration must have served in a stage at least: such as succeed or fail, none of the caller's mistakes and none that it left. With fewer than a thousand a small worsening is missed more often.
	Requests int64 `yaml:"requests" min:"1" max:"1000000"`
	// After so long a stage that has not served as many fails: no data is no success. At least as long as bake.
	Patience Duration `yaml:"patience"`
}

// DefaultRollout is a rollout where nothing else is said.
func DefaultRollout() Rollout {
	return Rollout{By: "share", Bake: Duration(10 * time.Minute), Requests: 1000, Patience: Duration(2 * time.Hour)}
}

func (r *Rollout) setDefaults() { *r = DefaultRollout() }

// Provider is an account at an upstream.
type Provider struct {
	// What the upstream speaks. Types anthropic, gemini, vertex and bedrock are not served yet; Anthropic, Gemini and Bedrock have OpenAI-compatible addresses of their own.
	Type string `yaml:"type" enum:"openai,azure,openai-compatible,simulated" later:"anthropic,gemini,vertex,bedrock" remedy:"use openai-compatible with the provider's OpenAI-compatible address" required:"true"`
	// Address of the API, http or https. For openai the default is https://api.openai.com/v1. For azure it is needed: the resource's address, such as https://name.openai.azure.com. For openai-compatible it is needed: the address up to and including the version, such as http://127.0.0.1:8000/v1.
	BaseURL string `yaml:"base_url"`
	// The key, needed for openai and azure (with auth key). Write it as ${NAME} or ${file:/path}. It is sent to this provider and nowhere else. An openai-compatible provider without one is called without a credential.
	APIKey Secret `yaml:"api_key"`
	// How azure is shown who asks: key sends api_key; entra sends a token of this process's identity (environment, workload identity, managed identity). Default key.
	Auth string `yaml:"auth" enum:"key,entra"`
	// Scope of Entra tokens. Default https://cognitiveservices.azure.com/.default.
	EntraScope string `yaml:"entra_scope"`
	// Azure's dated api-version, such as 2024-10-21. With it calls go to /openai/deployments/{model}; without it to the undated API at /openai/v1. There is no default: an old version would not know new models.
	APIVersion string `yaml:"api_version"`
	// Which server an openai or openai-compatible upstream is, for reading its errors. Default: known from the host of base_url where possible, else none.
	Vendor string `yaml:"vendor" enum:"vllm,sglang,llamacpp,ollama,tgi,nim,groq,mistral,together,deepseek,xai,openrouter,moonshot,github_models"`
	// Region, shown to the operator and part of the default failure domain.
	Region string `yaml:"region"`
	// Failure domain: targets that are likely to fail together share one, and a second attempt prefers another. Default: type and region, such as azure-swedencentral, or the provider's name when it has no region.
	Domain string `yaml:"domain"`
	// Extra headers on every call, for instance OpenAI-Organization. Their values are treated as secrets.
	Headers map[string]Secret `yaml:"headers"`
	// How the targets of a simulated provider behave; a target may have its own.
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

// Simulated is the behaviour of a simulated target: made-up text with a latency, a capacity and failures of your choice.
type Simulated struct {
	// Time to the first content, of a stream or of a whole answer. 0 is at once.
	FirstContent Duration `yaml:"first_content"`
	// Spread of that time to either side, as a share of it, 0 to 1. 0 is none.
	Jitter float64 `yaml:"jitter" min:"0" max:"1"`
	// Time for each further token. 0 is at once.
	PerToken Duration `yaml:"per_token"`
	// Length of an answer in tokens.
	Tokens int `yaml:"tokens" min:"1" max:"100000"`
	// What goes wrong.
	Failure Failure `yaml:"failure"`
	// Calls at once before the target answers 429. 0 is no limit.
	Concurrency int `yaml:"concurrency" min:"0" max:"1000000"`
	// Calls a minute before the target answers 429. 0 is no limit.
	RPM int `yaml:"rpm" min:"0" max:"1000000000"`
}

// DefaultSimulated is the behaviour of a simulated target where nothing is
// said.
func DefaultSimulated() Simulated {
	return Simulated{FirstContent: Duration(200 * time.Millisecond), Jitter: 0.2, PerToken: Duration(20 * time.Millisecond), Tokens: 24, Failure: Failure{Mode: "none"}}
}

func (s *Simulated) setDefaults() { *s = DefaultSimulated() }

// Failure is how a simulated target fails.
type Failure struct {
	// Kind of failure: hang (no answer at all), reset (the connection breaks before the headers), a status, an error inside a 200, truncate (the answer breaks off in the middle), slow (a hundred times as long).
	Mode string `yaml:"mode" enum:"none,hang,reset,500,503,429,error-in-200,truncate,slow"`
	// Share of calls that fail, 0 to 1. Default 1.
	Share *float64 `yaml:"share" min:"0" max:"1"`
	// Retry-After of a 429, in whole seconds. 0 sends none.
	RetryAfter Duration `yaml:"retry_after"`
}

// Model is a public model name.
type Model struct {
	// Where requests may go. At least one.
	Targets []Target `yaml:"targets" required:"true"`
	// What is answered when no target gives an answer. Without it the caller gets an honest error.
	Degraded *Degraded `yaml:"degraded"`
	// Models whose targets a content-policy refusal may be sent to. Nothing else uses this list, and no other list is used for such a refusal. Default: none, the refusal goes to the caller.
	ContentPolicyFallback []string `yaml:"content_policy_fallback"`
	// What all callers together may use of the model. Requests beyond it are refused with 429. A request counts for the model that it asked for, also where a last resort answers it.
	Limits Limits `yaml:"limits"`
}

// Target is one model deployment at one provider, the unit of health, limits and quota. The same provider and model in two public models is one target.
type Target struct {
	// Name of a provider.
	Provider string `yaml:"provider" required:"true"`
	// Model or deployment at that provider. Default: the public name. "*", or nothing in the model "*", sends the name that was asked for.
	Model string `yaml:"model"`
	// Targets of the lowest order are tried first, the next order when none of them can take the request. 1 to 100.
	Order int `yaml:"order" min:"1" max:"100"`
	// Share of the load within one order, above 0. Load and latency shift it.
	Weight float64 `yaml:"weight" min:"0.001" max:"1000"`
	// What the target may be sent. Beyond it requests go to another target, wait a moment, or are refused with 429.
	Limits TargetLimits `yaml:"limits"`
	// What the target charges, for budgets of money. Every target that a budget may be spent on needs one.
	Price *Price `yaml:"price"`
	// Timers of this target instead of the defaults.
	Timeouts *TargetTimeouts `yaml:"timeouts"`
	// Behaviour of a target at a simulated provider.
	Simulated *Simulated `yaml:"simulated"`
}

// DefaultTarget is a target of a provider where nothing else is said.
func DefaultTarget(provider string) Target { return Target{Provider: provider, Order: 1, Weight: 1} }

func (t *Target) setDefaults() { *t = DefaultTarget("") }

// TargetLimits bound what a target is sent. 0 is no limit.
type TargetLimits struct {
	// Requests a minute.
	RPM int64 `yaml:"rpm" min:"0" max:"1000000000"`
	// Tokens a minute, prompt and answer, estimated at the start and settled to the real use.
	TPM int64 `yaml:"tpm" min:"0" max:"1000000000000"`
	// Requests at once, held to the end of a stream.
	Concurrency int `yaml:"concurrency" min:"0" max:"1000000"`
}

// Price is what a target charges, in US dollars for a million tokens.
type Price struct {
	// For the prompt.
	Input float64 `yaml:"input" min:"0" max:"1000000" required:"true"`
	// For the answer, reasoning included.
	Output float64 `yaml:"output" min:"0" max:"1000000" required:"true"`
	// For the part of the prompt that the provider reports as cached. Default: as input.
	CachedInput *float64 `yaml:"cached_input" min:"0" max:"1000000"`
}

// Limits bound a workload, each of its keys, or a model. 0 is no limit.
type Limits struct {
	// Requests a minute. A tenth of it may come at once, ten at least.
	RPM int64 `yaml:"rpm" min:"0" max:"1000000000"`
	// Tokens a minute, prompt and answer, estimated at the start and settled to the real use. A tenth of it may come at once, 16,384 at least.
	TPM int64 `yaml:"tpm" min:"0" max:"1000000000000"`
	// Requests at once, held to the end of a stream.
	Concurrency int `yaml:"concurrency" min:"0" max:"1000000"`
	// US dollars for a day of UTC, reserved by estimate and settled to what the target that answered charges. What was spent is kept in memory only: it starts at 0 when the router starts, and each instance counts for itself.
	USDPerDay float64 `yaml:"usd_per_day" min:"0" max:"1000000000"`
}

// TargetTimeouts are a target's own timers.
type TargetTimeouts struct {
	// Until the response headers. auto is the default's value.
	Headers AutoDuration `yaml:"headers"`
	// Until the first content, or the whole of an answer that does not stream. auto is the default's value.
	FirstContent AutoDuration `yaml:"first_content"`
}

// Degraded is the last resort of a model: exactly one of its settings.
type Degraded struct {
	// A fixed text, answered as if the model had said it. The header Hourthree-Degraded says that it did not.
	Message string `yaml:"message"`
	// Another model, whose targets are tried. One of the calls that a request may cause is kept for it. It may not lead back here.
	Model string `yaml:"model"`
}

// Workload is a caller.
type Workload struct {
	// API keys, plain or as sha256: and 64 hex digits. Only digests are kept and compared. A key belongs to one workload.
	Keys []Secret `yaml:"keys" required:"true"`
	// Models the workload may use. Default: all.
	Models []string `yaml:"models"`
	// How much its requests matter: who waits first and longest for a slot, and whose work memory is left to. Default interactive.
	Priority string `yaml:"priority" enum:"critical,interactive,batch"`
	// What the workload may use. Beyond it requests are refused with 429 before their body is read.
	Limits Limits `yaml:"limits"`
	// What each of its keys may use, within what the workload may. Every key has these for itself.
	KeyLimits Limits `yaml:"key_limits"`
	// What the workload may use of single models, by their public names. Beyond it requests are refused with 429 behind their body.
	ModelLimits map[string]Limits `yaml:"model_limits"`
}

// Defaults apply to every target and workload.
type Defaults struct {
	// Timers of an attempt and of a request.
	Timeouts Timeouts `yaml:"timeouts"`
	// The retry allowance.
	Retry Retry `yaml:"retry"`
	// When a target counts as failing, and how it comes back.
	Breaker Breaker `yaml:"breaker"`
	// How requests wait for a slot of a target that is at its concurrency limit.
	Queue Queue `yaml:"queue"`
}

// Timeouts are the timers. None can be turned off.
type Timeouts struct {
	// Name resolution, connect and TLS together.
	Connect Duration `yaml:"connect"`
	// Until the response headers. auto learns it from healthy calls.
	Headers AutoDuration `yaml:"headers"`
	// Until the first content, or the whole of an answer that does not stream. auto learns it from healthy calls, by size of the prompt.
	FirstContent AutoDuration `yaml:"first_content"`
	// Silence between two reads of an answer that has begun.
	Idle Duration `yaml:"idle"`
	// The whole request with all its attempts. It ends long streams too.
	Total Duration `yaml:"total"`
}

// Retry is the allowance for extra attempts.
type Retry struct {
	// Upstream calls for one request at most, 1 to 3. 1 makes no extra attempt.
	Attempts int `yaml:"attempts" min:"1" max:"3"`
	// Charged extra attempts for each request, over 10 s, for each workload and each target. 0 makes none; diverts to a target that is proven healthy are not charged.
	Ratio float64 `yaml:"ratio" min:"0" max:"1"`
	// What the ratio may grow to while extra attempts succeed as often as first ones. At ratio it never grows.
	MaxRatio float64 `yaml:"max_ratio" min:"0" max:"1"`
	// Charged extra attempts earned by each success. In a total outage nothing is earned and attempts end.
	PerSuccess float64 `yaml:"per_success" min:"0" max:"1"`
}

// Breaker holds the rules of a target's breaker.
type Breaker struct {
	// How far back verdicts are looked at, in whole seconds, 1s to 2m.
	Window Duration `yaml:"window"`
	// Verdicts needed within the window before the ratio counts.
	MinRequests int `yaml:"min_requests" min:"1" max:"100000"`
	// Share of failures that opens, 0.01 to 1.
	FailureRatio float64 `yaml:"failure_ratio" min:"0.01" max:"1"`
	// First cool-down. Each further one is twice as long, with jitter.
	CoolDown Duration `yaml:"cool_down"`
	// Longest cool-down.
	MaxCoolDown Duration `yaml:"max_cool_down"`
	// Probes that must succeed in a row, one at a time.
	Probes int `yaml:"probes" min:"1" max:"100"`
	// Time from the first share of traffic to the full one.
	Ramp Duration `yaml:"ramp"`
}

// Queue bounds the wait for a slot. Any of the three at 0 turns it off.
type Queue struct {
	// Requests that may wait.
	Length int `yaml:"length" min:"0" max:"1000000"`
	// Bytes that they may hold together.
	Bytes Bytes `yaml:"bytes"`
	// How long one may wait; a request of priority critical or batch, ten times as long.
	Wait Duration `yaml:"wait"`
}

// HTTP bounds the client side.
type HTTP struct {
	// Largest request body; a larger one is answered 413. Keep it above what your providers take.
	MaxBody Bytes `yaml:"max_body"`
	// Largest request body that is passed through as it comes, without being held: files. A larger one is answered 413. Never less than max_body.
	MaxUpload Bytes `yaml:"max_upload"`
	// Largest request header block, 4KiB to 16MiB. A change takes effect with a restart.
	MaxHeader Bytes `yaml:"max_header"`
	// Time for the request headers to arrive; a slower client is cut off. A change takes effect with a restart.
	HeaderTimeout Duration `yaml:"header_timeout"`
	// Time one write to a client may take; a client that does not read is cut off.
	WriteTimeout Duration `yaml:"write_timeout"`
	// Time that running requests get on SIGTERM; what remains is cut off. 0 waits for none.
	Drain Duration `yaml:"drain"`
}

// Quarantine is the lane that keeps a workload away from the others: a fixed share of concurrency and memory, no extra attempts, no repeats. An operator moves a workload with hourthree quarantine, or the rule does.
type Quarantine struct {
	// Let the rule move a workload in when 3.5 of its requests come for each distinct one while its repeats are a tenth of everything that comes in, or when the router refuses work and most repeats are its own; and out when it has been calm for ten minutes and is back at 80 % or more of its load at entry.
	Automatic bool `yaml:"automatic"`
	// Share of each target's concurrency and of the memory that a workload has which the rule has moved, 0 to 1. 0 lets nothing in.
	Share float64 `yaml:"share" min:"0" max:"1"`
}

// Memory is the budget for buffered bytes.
type Memory struct {
	// Bytes that may be buffered at once. Beyond it requests are refused with 503 before their body is read. auto is 0.6 of GOMEMLIMIT, which defaults to 0.9 of the container's limit.
	Limit AutoBytes `yaml:"limit"`
}

// SLO is one objective. It covers the requests of its workload for its model; without both it covers all. A caller's own mistakes, its cancels, its repeats of what failed and what is beyond its limits count for nothing.
type SLO struct {
	// Public name of a model. Default: any.
	Model string `yaml:"model"`
	// Name of a workload. Default: any.
	Workload string `yaml:"workload"`
	// Share of the requests that must be answered well, 0.5 to 0.99999, such as 0.999.
	Objective float64 `yaml:"objective" min:"0.5" max:"0.99999" required:"true"`
	// Time that the budget of failures is for, 24h to 2160h. The windows over which its burning is looked at go with it: of 720h they are 1h, 6h and 72h.
	Window Duration `yaml:"window"`
	// An answer whose first content came later counts as failed. 0 lets it come at any time.
	FirstContent Duration `yaml:"first_content"`
}

// DefaultSLO is an objective where nothing else is said.
func DefaultSLO() SLO { return SLO{Window: Duration(720 * time.Hour)} }

func (s *SLO) setDefaults() { *s = DefaultSLO() }

// Telemetry is what is sent about requests to a collector. Logs and the metrics of the operator's listener need none of it.
type Telemetry struct {
	// Where traces and metrics go over OTLP. Without it nothing is sent and nothing is spent on it. The variables OTEL_EXPORTER_OTLP_… count only where there is no configuration file; in one, write ${OTEL_EXPORTER_OTLP_ENDPOINT}.
	OTLP *OTLP `yaml:"otlp"`
}

// OTLP is the export of traces and of the GenAI metrics to an OpenTelemetry collector, as protobuf over HTTP. What it holds of requests is in docs/telemetry.md: never a prompt, an answer or a key. A change takes effect with a restart.
type OTLP struct {
	// Address of the collector, http or https, such as https://collector.example:4318; /v1/traces and /v1/metrics are appended.
	Endpoint string `yaml:"endpoint" required:"true"`
	// Headers of every export, such as Authorization. Their values are treated as secrets and go to the endpoint alone, also where it redirects elsewhere.
	Headers map[string]Secret `yaml:"headers"`
	// Let an http endpoint be on another machine: what is sent, headers included, can be read on the way.
	Insecure bool `yaml:"insecure"`
	// Time for one export with its repeats, and for the last ones when the router stops.
	Timeout Duration `yaml:"timeout"`
	// Finished requests, finished attempts and spans that may wait, of each. What comes beyond is dropped and counted: serving never waits for a collector.
	Queue int `yaml:"queue" min:"64" max:"65536"`
	// Share of the requests that are traced, 0 to 1, of those whose caller does not decide it with a traceparent. At 0 only what a caller has sampled is traced.
	Sample float64 `yaml:"sample" min:"0" max:"1"`
	// What a provider is told of the trace: pass hands on the caller's own traceparent and tracestate, as without export; own sends the attempt's, which shows the provider that a router of yours is there, and ids of yours; none sends neither.
	Traceparent string `yaml:"traceparent" enum:"pass,own,none"`
	// How often metrics are sent. 0 sends none.
	MetricsInterval Duration `yaml:"metrics_interval"`
	// Names of the GenAI conventions: current are those of the conventions' own repository (v0.1), old those before (v1.41), which most dashboards still read, both sends each measurement under either name.
	Semconv string `yaml:"semconv" enum:"current,old,both"`
	// The name under which this router appears, service.name.
	ServiceName string `yaml:"service_name"`
}

// DefaultOTLP is an export to an endpoint where nothing else is said.
func DefaultOTLP(endpoint string) OTLP {
	return OTLP{
		Endpoint: endpoint, Timeout: Duration(10 * time.Second), Queue: 2048, Sample: 1, Traceparent: "pass",
		MetricsInterval: Duration(time.Minute), Semconv: "current", ServiceName: "hourthree",
	}
}

func (o *OTLP) setDefaults() { *o = DefaultOTLP("") }

// Default is the configuration of an empty file: no provider and no model.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:8080",
		Admin:  Admin{Listen: "127.0.0.1:8081"},
		Defaults: Defaults{
			Timeouts: Timeouts{Connect: Duration(3 * time.Second), Idle: Duration(30 * time.Second), Total: Duration(10 * time.Minute)},
			Retry:    Retry{Attempts: 3, Ratio: 0.1, MaxRatio: 1, PerSuccess: 0.1},
			Breaker: Breaker{
				Window: Duration(10 * time.Second), MinRequests: 20, FailureRatio: 0.5, CoolDown: Duration(5 * time.Second),
				MaxCoolDown: Duration(time.Minute), Probes: 3, Ramp: Duration(time.Minute),
			},
			Queue: Queue{Length: 1000, Bytes: 64 << 20, Wait: Duration(200 * time.Millisecond)},
		},
		Quarantine: Quarantine{Automatic: true, Share: 0.05},
		HTTP: HTTP{
			MaxBody: 64 << 20, MaxUpload: 512 << 20, MaxHeader: 32 << 10, HeaderTimeout: Duration(5 * time.Second),
			WriteTimeout: Duration(30 * time.Second), Drain: Duration(10 * time.Minute),
		},
	}
}
