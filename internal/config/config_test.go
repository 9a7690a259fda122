package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// env is an environment of the given variables.
func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// base is a good file to which a case adds.
const base = `
providers:
  openai: {type: openai, api_key: "${KEY}"}
  azure: {type: azure, base_url: https://x.openai.azure.com, auth: entra, region: swedencentral}
models:
  gpt-5:
    targets: [{provider: azure, order: 1}, {provider: openai, order: 2}]
    degraded: {message: away}
`

func parse(t *testing.T, text string) (*Config, Problems) {
	t.Helper()
	return Parse("h.yaml", []byte(text), env("KEY", "sk-from-environment"))
}

func good(t *testing.T, text string) *Config {
	t.Helper()
	c, ps := parse(t, text)
	if len(ps) > 0 {
		t.Fatalf("want no problems:\n%s", ps.Report())
	}
	return c
}

func TestWholeExampleOfTheDesign(t *testing.T) {
	c := good(t, `
listen: 127.0.0.1:9090
admin: {listen: 127.0.0.1:9091}
providers:
  azure-sweden:
    type: azure
    base_url: https://contoso-swe.openai.azure.com
    api_key: ${KEY}
    region: swedencentral
    domain: azure-swedencentral
    api_version: 2024-10-21
  openai: {type: openai, api_key: "${KEY}", headers: {OpenAI-Organization: org-1}}
models:
  gpt-5:
    targets:
      - {provider: azure-sweden, model: gpt-5-prod, order: 1, weight: 3, limits: {rpm: 600, tpm: 450000, concurrency: 64}, timeouts: {first_content: 8s}}
      - {provider: openai, model: gpt-5, order: 2}
    degraded: {message: "The assistant is unavailable at the moment."}
    content_policy_fallback: []
workloads:
  copilot:
    keys: ["a-key-of-some-length"]
    models: [gpt-5]
    priority: interactive
    limits: {rpm: 600, tpm: 200000, concurrency: 50}
passthrough: {/v1/files: openai}
defaults:
  timeouts: {connect: 2s, headers: auto, first_content: auto, idle: 20s, total: 5m}
  retry: {attempts: 2, ratio: 0.2, max_ratio: 0.5, per_success: 0.05}
  breaker: {window: 20s, min_requests: 10, failure_ratio: 0.4, cool_down: 4s, max_cool_down: 50s, probes: 2, ramp: 30s}
  queue: {length: 0, bytes: 1.5MiB, wait: 0}
http: {max_body: 10MB, max_header: 64KiB, header_timeout: 4s, write_timeout: 20s, drain: 0s}
memory: {limit: 512MiB}
`)
	first := c.Models["gpt-5"].Targets[0]
	want := Target{Provider: "azure-sweden", Model: "gpt-5-prod", Order: 1, Weight: 3, Limits: TargetLimits{600, 450000, 64}, Timeouts: &TargetTimeouts{FirstContent: AutoDuration{Duration(8 * time.Second)}}}
	if !reflect.DeepEqual(first, want) {
		t.Errorf("target %+v", first)
	}
	if second := c.Models["gpt-5"].Targets[1]; second.Weight != 1 || second.Order != 2 {
		t.Errorf("defaults of a target: %+v", second)
	}
	p := c.Providers["azure-sweden"]
	if p.APIKey.Reveal() != "sk-from-environment" || p.APIVersion != "2024-10-21" || p.FailureDomain("azure-sweden") != "azure-swedencentral" {
		t.Errorf("provider %+v", p)
	}
	d := c.Defaults
	if d.Timeouts.Total.Duration() != 5*time.Minute || d.Timeouts.FirstContent.Fixed() != 0 || d.Queue.Bytes != 3<<19 || d.Queue.Wait != 0 || d.Queue.Length != 0 {
		t.Errorf("defaults %+v", d)
	}
	if c.HTTP.MaxBody != 10_000_000 || c.HTTP.Drain != 0 || c.Memory.Limit.Bytes() != 512<<20 {
		t.Errorf("bounds %+v %+v", c.HTTP, c.Memory)
	}
}

func TestDefaultsStayWhereNothingIsSaid(t *testing.T) {
	c := good(t, base+"defaults: {timeouts: {idle: 5s}}\nworkloads:\n  # all commented out\nhttp:\n")
	want := Default()
	want.Defaults.Timeouts.Idle = Duration(5 * time.Second)
	if c.Defaults != want.Defaults || c.HTTP != want.HTTP || c.Memory != want.Memory || c.Listen != want.Listen {
		t.Errorf("got %+v", c)
	}
}

// TestASwitch: true and false are taken, as words and through ${…}, and nothing
// else is.
func TestASwitch(t *testing.T) {
	for text, want := range map[string]bool{"false": false, "true": true, `"${SWITCH}"`: false} {
		c, ps := Parse("h.yaml", []byte(base+"quarantine: {automatic: "+text+", share: 0.1}\n"), env("KEY", "x", "SWITCH", "false"))
		if ps != nil || c.Quarantine.Automatic != want {
			t.Errorf("%s: %v", text, ps)
		}
	}
	for _, text := range []string{"no", "1", "\"\"", "[true]"} {
		if _, ps := Parse("h.yaml", []byte(base+"quarantine: {automatic: "+text+"}\n"), env("KEY", "x")); ps == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestSimulatedDefaultsAndZeros(t *testing.T) {
	c := good(t, `
providers:
  a: {type: simulated, simulated: {jitter: 0, first_content: 0, failure: {mode: 503, share: 0}}}
  b: {type: simulated}
models:
  m: {targets: [{provider: a}, {provider: b, order: 2}], degraded: {message: away}}
`)
	s := *c.Providers["a"].Simulated
	if s.Jitter != 0 || s.FirstContent != 0 || s.Tokens != 24 || s.PerToken != Duration(20*time.Millisecond) || s.Failure.Mode != "503" || *s.Failure.Share != 0 {
		t.Errorf("a zero that is written is a zero, the rest has defaults: %+v", s)
	}
	if c.Providers["b"].Simulated != nil {
		t.Error("b has no behaviour of its own")
	}
}

func TestSecretsHaveNoPrintedForm(t *testing.T) {
	s := NewSecret("sk-hidden")
	c := Config{Providers: map[string]Provider{"p": {APIKey: s, Headers: map[string]Secret{"X": s}}}, Workloads: map[string]Workload{"w": {Keys: []Secret{s}}}}
	var out []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t", "%c"} {
		out = append(out, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, c), fmt.Sprintf(verb, []Secret{s}))
	}
	j, err := json.Marshal(c)
	y, yerr := yaml.Dump(c)
	if err != nil || yerr != nil {
		t.Fatal(err, yerr)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "config", c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "config", c)
	for _, text := range append(out, string(j), string(y), log.String()) {
		if strings.Contains(text, "sk-hidden") || strings.Contains(text, "736b2d68") || strings.Contains(text, "736B2D68") {
			t.Errorf("shown in %s", text)
		}
	}
	if NewSecret("").String() != "" || s.String() != "***" || s.Reveal() != "sk-hidden" {
		t.Error("String or Reveal")
	}
}

func TestScalars(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "4096": 4096, "64MiB": 64 << 20, "64 MiB": 64 << 20, "1.5GiB": 3 << 29, "10MB": 1e7, "2kB": 2000, "2KB": 2000, "7B": 7} {
		var b Bytes
		if err := b.parse(text); err != nil || b != want {
			t.Errorf("%s: %v %v", text, b, err)
		}
	}
	for _, text := range []string{"", "NaN", "Inf", "-1", "1e9", "0x10", "1TiB", "MiB", "1KIB", "kiB", "1kiB", "9999999999GiB", "1 000"} {
		var b Bytes
		if b.parse(text) == nil {
			t.Errorf("size %q is taken as %d", text, b)
		}
	}
	for _, text := range []string{"", "30", "-1s", "1h 2m", "auto", "NaN", "200000h", "∞"} {
		var d Duration
		if d.parse(text) == nil {
			t.Errorf("duration %q is taken as %s", text, d)
		}
	}
	for _, text := range []string{"0", "0s", "-1s", "Auto"} {
		var d AutoDuration
		var b AutoBytes
		if d.parse(text) == nil || b.parse(text) == nil {
			t.Errorf("auto or above 0: %q is taken", text)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 2 * time.Hour: "2h", 1500 * time.Millisecond: "1.5s", 61 * time.Second: "1m1s"} {
		got := Duration(d).String()
		var back Duration
		if got != want || back.parse(got) != nil || back != Duration(d) {
			t.Errorf("%v is written %s", d, got)
		}
	}
}

func TestIDFollowsSettingsAndKeys(t *testing.T) {
	c := good(t, base)
	if again := good(t, "# a comment\n"+base); again.ID() != c.ID() {
		t.Error("a comment changes the id")
	}
	changed := map[string]func(*Config){
		"key": func(c *Config) { p := c.Providers["openai"]; p.APIKey = NewSecret("other"); c.Providers["openai"] = p },
		"header": func(c *Config) {
			p := c.Providers["openai"]
			p.Headers = map[string]Secret{"X": NewSecret("v")}
			c.Providers["openai"] = p
		},
		"operator": func(c *Config) { c.Admin.Keys = map[string]AdminKey{"a": {Key: NewSecret("k"), Role: "view"}} },
		"operator's key": func(c *Config) {
			c.Admin.Keys = map[string]AdminKey{"a": {Key: NewSecret("another"), Role: "view"}}
		},
		"provider's client": func(c *Config) { c.Admin.OIDC = &AdminOIDC{} },
		"its secret":        func(c *Config) { c.Admin.OIDC = &AdminOIDC{ClientSecret: NewSecret("k")} },
		"caller":            func(c *Config) { c.Workloads = map[string]Workload{"w": {Keys: []Secret{NewSecret("k")}}} },
		"timer":             func(c *Config) { c.Defaults.Timeouts.Headers = AutoDuration{Duration(time.Second)} },
		"memory":            func(c *Config) { c.Memory.Limit = AutoBytes{1} },
		"targets":           func(c *Config) { c.Models["gpt-5"].Targets[0].Weight = 2 },
	}
	seen := []string{c.ID()}
	for name, change := range changed {
		other := good(t, base)
		change(other)
		if id := other.ID(); slices.Contains(seen, id) {
			t.Errorf("%s: the id stays", name)
		} else {
			seen = append(seen, id)
		}
	}
	if len(c.ID()) != 8 || strings.Contains(c.ID(), "unknown") {
		t.Errorf("id %q", c.ID())
	}
}

func TestLoadReadsFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "h.yaml")
	if err := os.WriteFile(path, []byte(base), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path, env("KEY", "k")); err != nil || len(c.Models) != 1 {
		t.Fatal(c, err)
	}
	if _, err := Load(path, env()); err == nil || !strings.Contains(err.Error(), "h.yaml:3:35: providers.openai.api_key: needs ${KEY}") {
		t.Errorf("unset: %v", err)
	}
	for _, bad := range []string{filepath.Join(dir, "none.yaml"), dir} {
		if c, err := Load(bad, env()); c != nil || err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: %v %v", bad, c, err)
		}
	}
	if err := os.WriteFile(path, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, env()); err == nil || !strings.Contains(err.Error(), "larger than 8MiB") {
		t.Errorf("large: %v", err)
	}
}
