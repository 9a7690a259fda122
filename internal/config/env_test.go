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

// TestExportFromEnv: the usual variables make an export where there is no file,
// and what is not understood makes none.
func TestExportFromEnv(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, c := range map[string]struct {
		env  []string
		want string // the endpoint, "" for none
		note string
	}{
		"none":         {nil, "", ""},
		"plain":        {[]string{endpoint, "http://collector:4318"}, "http://collector:4318", "Traces and metrics go to"},
		"headers":      {[]string{endpoint, "https://c.test", "OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=y"}, "https://c.test", ""},
		"disabled":     {[]string{endpoint, "https://c.test", "OTEL_SDK_DISABLED", "TRUE"}, "", ""},
		"grpc":         {[]string{endpoint, "http://c.test:4317", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, "", "is not http/protobuf"},
		"no address":   {[]string{endpoint, "c.test:4318"}, "", "endpoint must be an http or https address"},
		"bad headers":  {[]string{endpoint, "https://c.test", "OTEL_EXPORTER_OTLP_HEADERS", "secret"}, "", "is not a list of name=value"},
		"header lines": {[]string{endpoint, "https://c.test", "OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0d%0ab"}, "", "is not a list of name=value"},
		"header name":  {[]string{endpoint, "https://c.test", "OTEL_EXPORTER_OTLP_HEADERS", "content-type=secret"}, "", "is not a header that can be set"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, notes := FromEnv(env(c.env...))
			o, text := cfg.Telemetry.OTLP, strings.Join(notes, "\n")
			if (o == nil) != (c.want == "") || o != nil && o.Endpoint != c.want || !strings.Contains(text, c.note) || strings.Contains(text, "secret") {
				t.Errorf("%+v\n%s", o, text)
			}
			if name == "headers" && (o.Headers["api-key"].Reveal() != "a b" || o.Headers["x"].Reveal() != "y") {
				t.Errorf("%+v", o.Headers)
			}
		})
	}
}

// TestExportInAFile: the variables count for nothing where there is a file, and
// a change of a header changes the configuration's id.
func TestExportInAFile(t *testing.T) {
	e := env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.test", "KEY", "k", "TOKEN", "one")
	c, ps := Parse("f", []byte(base), e)
	if ps.Fatal() || c.Telemetry.OTLP != nil {
		t.Errorf("%v %+v", ps, c.Telemetry.OTLP)
	}
	file := base + "telemetry: {otlp: {endpoint: '${OTEL_EXPORTER_OTLP_ENDPOINT}', headers: {Api-Key: '${TOKEN}'}}}\n"
	one, ps := Parse("f", []byte(file), e)
	want := DefaultOTLP("https://c.test")
	if o := one.Telemetry.OTLP; ps.Fatal() || o == nil || o.Headers["Api-Key"].Reveal() != "one" || o.Queue != want.Queue || o.Sample != want.Sample || o.Timeout != want.Timeout {
		t.Fatalf("%v %+v", ps, o)
	}
	two, _ := Parse("f", []byte(file), env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.test", "KEY", "k", "TOKEN", "two"))
	if one.ID() == two.ID() {
		t.Error("another key, the same id")
	}
	near, ps := Parse("f", []byte(base+"telemetry: {otlp: {endpoint: 'http://127.0.0.1:4318'}}\n"), e)
	if ps.Fatal() || near.Telemetry.OTLP.Insecure {
		t.Errorf("a collector on this machine needs no leave: %v", ps)
	}
}
