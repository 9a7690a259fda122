package config

import (
	"maps"
	"slices"
)

// FromEnv makes a configuration from the usual environment variables, and
// notes that say what was found. Every model is served: by the first provider
// found under its own name, and by each as provider/model. With no variable
// set, two simulated providers serve the model demo.
func FromEnv(env func(string) (string, bool)) (*Config, []string) {
	c := Default()
	c.Providers, c.Models, c.Passthrough = map[string]Provider{}, map[string]Model{}, map[string]string{}
	get := func(name string) string { v, _ := env(name); return v }
	var order, notes []string
	add := func(name, from string, p Provider) {
		c.Providers[name] = p
		order = append(order, name)
		notes = append(notes, "Provider "+name+": "+from+".")
	}
	if key := get("OPENAI_API_KEY"); key != "" {
		add("openai", "key from OPENAI_API_KEY", Provider{Type: "openai", APIKey: NewSecret(key), BaseURL: get("OPENAI_BASE_URL")})
	}
	if at, key := get("AZURE_OPENAI_ENDPOINT"), get("AZURE_OPENAI_API_KEY"); at != "" && key != "" {
		add("azure", "AZURE_OPENAI_ENDPOINT, key from AZURE_OPENAI_API_KEY", Provider{Type: "azure", APIKey: NewSecret(key), BaseURL: at})
	}
	if key := get("ANTHROPIC_API_KEY"); key != "" {
		add("anthropic", "key from ANTHROPIC_API_KEY, through Anthropic's OpenAI-compatible API", Provider{Type: "openai-compatible", APIKey: NewSecret(key), BaseURL: "https://api.anthropic.com/v1"})
	}
	if key := get("GEMINI_API_KEY"); key != "" {
		add("gemini", "key from GEMINI_API_KEY, through Gemini's OpenAI-compatible API", Provider{Type: "openai-compatible", APIKey: NewSecret(key), BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai"})
	}
	if key, region := get("AWS_BEARER_TOKEN_BEDROCK"), get("AWS_REGION"); key != "" && region != "" {
		add("bedrock", "key from AWS_BEARER_TOKEN_BEDROCK, through Bedrock's OpenAI-compatible API in "+region,
			Provider{Type: "openai-compatible", APIKey: NewSecret(key), BaseURL: "https://bedrock-runtime." + region + ".amazonaws.com/openai/v1", Region: region})
	}
	if len(order) == 0 {
		return simulated(c)
	}
	c.Models["*"] = Model{Targets: []Target{{Provider: order[0], Model: "*"}}}
	c.Passthrough["/v1"] = order[0]
	c.complete()
	return c, append(notes, "Every model name is passed to "+order[0]+"; write a configuration (hourthree init) to use several.")
}

// simulated is what is served when nothing is known.
func simulated(c *Config) (*Config, []string) {
	for _, name := range []string{"sim-a", "sim-b"} {
		c.Providers[name] = Provider{Type: "simulated", Domain: name}
	}
	m := Model{Degraded: &Degraded{Message: "The assistant is unavailable at the moment."}}
	for i, name := range slices.Sorted(maps.Keys(c.Providers)) {
		m.Targets = append(m.Targets, Target{Provider: name, Order: i + 1})
	}
	c.Models["demo"] = m
	c.complete()
	return c, []string{
		"NO PROVIDER IS CONFIGURED: serving SIMULATED providers. No model answers; the text is made up.",
		"Set OPENAI_API_KEY (or AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY), or run: hourthree init",
	}
}
