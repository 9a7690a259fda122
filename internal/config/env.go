package config

import (
	"regexp"
	"slices"
	"strings"
)

// source is a provider that the environment can configure.
type source struct {
	name  string
	needs []string // variables that must all be set
	make  func(values []string) Provider
	note  string
}

// sources are tried in this order; the first that is there serves.
var sources = []source{
	{"openai", []string{"OPENAI_API_KEY"}, func(v []string) Provider {
		return Provider{Type: "openai", APIKey: NewSecret(v[0])}
	}, "OpenAI"},
	{"azure", []string{"AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"}, func(v []string) Provider {
		return Provider{Type: "azure", BaseURL: v[0], APIKey: NewSecret(v[1])}
	}, "Azure OpenAI, undated API; a model's name is its deployment's"},
	{"anthropic", []string{"ANTHROPIC_API_KEY"}, func(v []string) Provider {
		return Provider{Type: "openai-compatible", BaseURL: "https://api.anthropic.com/v1", APIKey: NewSecret(v[0])}
	}, "Anthropic, through its OpenAI-compatible API"},
	{"gemini", []string{"GEMINI_API_KEY"}, func(v []string) Provider {
		return Provider{Type: "openai-compatible", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", APIKey: NewSecret(v[0])}
	}, "Gemini, through its OpenAI-compatible API"},
	{"bedrock", []string{"AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"}, func(v []string) Provider {
		return Provider{Type: "openai-compatible", BaseURL: "https://bedrock-runtime." + v[1] + ".amazonaws.com/openai/v1", APIKey: NewSecret(v[0]), Region: v[1]}
	}, "Bedrock, through its OpenAI-compatible API"},
}

// FromEnv makes a configuration from the usual environment variables, and
// notes for the person who starts the router. Every model name goes to the
// first provider found; which names the others serve the environment does not
// say, so using several takes a configuration file. With no provider, two
// simulated ones serve the model demo.
func FromEnv(env func(string) (string, bool)) (*Config, []string) {
	c := Default()
	export, notes := exportFromEnv(env)
	c.Telemetry.OTLP = export
	c.Providers, c.Models = map[string]Provider{}, map[string]Model{}
	var serving string
	for _, s := range sources {
		values, missing := lookUp(s.needs, env)
		switch {
		case len(missing) == len(s.needs):
		case len(missing) > 0:
			if !slices.Contains(missing, "AWS_BEARER_TOKEN_BEDROCK") { // a region alone is for other things
				notes = append(notes, "Not used: "+s.name+" needs "+missing[0]+" too.")
			}
		case s.name == "bedrock" && !awsRegion.MatchString(values[1]):
			notes = append(notes, "Not used: bedrock, because AWS_REGION is not the name of a region.")
		case serving != "":
			notes = append(notes, "Not used: "+s.name+" ("+s.needs[0]+" is set). To use several providers, write a configuration: hourthree init")
		default:
			serving = s.name
			c.Providers[s.name] = s.make(values)
			notes = append(notes, "Every model name goes to "+s.note+" ("+s.needs[0]+").")
		}
	}
	if _, ok := env("OPENAI_BASE_URL"); ok && serving == "openai" {
		notes = append(notes, "OPENAI_BASE_URL is not used: it tells clients where the router is. For another address write a configuration: hourthree init")
	}
	if serving == "" {
		return simulated(c), append(notes,
			"NO PROVIDER IS CONFIGURED: serving SIMULATED providers. No model answers; the text is made up.",
			"Set OPENAI_API_KEY (or AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY), or run: hourthree init")
	}
	c.Models["*"] = Model{Targets: []Target{DefaultTarget(serving)}}
	c.Passthrough = map[string]string{"/v1": serving}
	return c, notes
}

var awsRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`)

func lookUp(names []string, env func(string) (string, bool)) (values, missing []string) {
	for _, name := range names {
		v, _ := env(name)
		v = strings.TrimSpace(v)
		values = append(values, v)
		if v == "" {
			missing = append(missing, name)
		}
	}
	return values, missing
}

// simulated is what is served when nothing is known.
func simulated(c *Config) *Config {
	m := Model{Degraded: &Degraded{Message: "The assistant is unavailable at the moment."}}
	for i, name := range []string{"sim-a", "sim-b"} {
		c.Providers[name] = Provider{Type: "simulated", Domain: name}
		t := DefaultTarget(name)
		t.Order = i + 1
		m.Targets = append(m.Targets, t)
	}
	c.Models["demo"] = m
	return c
}
