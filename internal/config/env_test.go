package config

import (
	"strings"
	"testing"
)

func TestFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		env                []string
		provider, typ, url string
		note, never        string
	}{
		"openai":       {[]string{"OPENAI_API_KEY", "k"}, "openai", "openai", "", "Every model name goes to OpenAI", ""},
		"azure":        {[]string{"AZURE_OPENAI_ENDPOINT", "https://x.example", "AZURE_OPENAI_API_KEY", "k\n"}, "azure", "azure", "https://x.example", "Azure OpenAI", ""},
		"anthropic":    {[]string{"ANTHROPIC_API_KEY", "k"}, "anthropic", "openai-compatible", "https://api.anthropic.com/v1", "Anthropic", ""},
		"gemini":       {[]string{"GEMINI_API_KEY", "k"}, "gemini", "openai-compatible", "https://generativelanguage.googleapis.com/v1beta/openai", "Gemini", ""},
		"bedrock":      {[]string{"AWS_BEARER_TOKEN_BEDROCK", "k", "AWS_REGION", "eu-west-1"}, "bedrock", "openai-compatible", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "Bedrock", ""},
		"the first":    {[]string{"GEMINI_API_KEY", "k", "OPENAI_API_KEY", "k"}, "openai", "openai", "", "Not used: gemini", ""},
		"half":         {[]string{"AZURE_OPENAI_ENDPOINT", "https://x.example", "GEMINI_API_KEY", "k"}, "gemini", "openai-compatible", "https://generativelanguage.googleapis.com/v1beta/openai", "azure needs AZURE_OPENAI_API_KEY too", ""},
		"odd region":   {[]string{"AWS_BEARER_TOKEN_BEDROCK", "k", "AWS_REGION", "evil.example/", "GEMINI_API_KEY", "k"}, "gemini", "openai-compatible", "https://generativelanguage.googleapis.com/v1beta/openai", "AWS_REGION is not the name", ""},
		"region alone": {[]string{"AWS_REGION", "eu-west-1", "OPENAI_API_KEY", "k"}, "openai", "openai", "", "OpenAI", "bedrock"},
		"base url":     {[]string{"OPENAI_API_KEY", "k", "OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"}, "openai", "openai", "", "OPENAI_BASE_URL is not used", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, notes := FromEnv(env(c.env...))
			text := strings.Join(notes, "\n")
			p := cfg.Providers[c.provider]
			if len(cfg.Providers) != 1 || p.Type != c.typ || p.BaseURL != c.url || p.APIKey.Reveal() != "k" {
				t.Errorf("%+v", cfg.Providers)
			}
			if !strings.Contains(text, c.note) || c.never != "" && strings.Contains(text, c.never) || strings.Contains(text, "SIMULATED") {
				t.Errorf("notes:\n%s", text)
			}
			m := cfg.Models["*"]
			if len(m.Targets) != 1 || m.Targets[0] != DefaultTarget(c.provider) || cfg.Passthrough["/v1"] != c.provider {
				t.Errorf("%+v %v", cfg.Models, cfg.Passthrough)
			}
			if err := cfg.CheckListeners(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFromEmptyEnvSaysSoLoudly(t *testing.T) {
	for _, e := range [][]string{nil, {"OPENAI_API_KEY", " "}, {"AWS_REGION", "eu-west-1"}} {
		c, notes := FromEnv(env(e...))
		if !strings.Contains(strings.Join(notes, "\n"), "NO PROVIDER IS CONFIGURED: serving SIMULATED providers") {
			t.Errorf("notes %q", notes)
		}
		m := c.Models["demo"]
		a, b := m.Targets[0], m.Targets[1]
		if len(c.Providers) != 2 || c.Providers[a.Provider].FailureDomain(a.Provider) == c.Providers[b.Provider].FailureDomain(b.Provider) || a.Order == b.Order || m.Degraded == nil {
			t.Errorf("%+v", c)
		}
	}
}
