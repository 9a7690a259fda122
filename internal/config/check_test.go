package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRefusals: each wrong file, and a part of the one problem it has. What
// follows a ^ is the column of the problem, by the text that stands there.
func TestRefusals(t *testing.T) {
	digest := sha256.Sum256([]byte("a-key-of-some-length"))
	workload := "workloads: {w: {keys: [a-key-of-some-length]}}\n"
	target := func(extra string) string {
		return "providers: {s: {type: simulated}, u: {type: simulated}}\nmodels:\n  m: {degraded: {message: away}, targets: [{provider: u}, {provider: s" + extra + "}]}\n"
	}
	provider := func(settings string) string {
		return base[:1] + "providers: {x: {" + settings + "}}\n" + strings.Replace(base[1:], "providers:\n", "", 1)
	}
	_ = provider
	one := func(settings string) string {
		return "providers:\n  x: {" + settings + "}\nmodels: {\"*\": {targets: [{provider: x}]}}\n"
	}
	for name, c := range map[string]struct{ text, want, at string }{
		"misspelt":               {base + "defaults: {timeouts: {conect: 3s}}\n", "defaults.timeouts.conect: is not a setting; did you mean connect?", "conect"},
		"misspelt deep":          {one("type: openai, api_key_evn: X, api_key: k"), "providers.x.api_key_evn: is not a setting; did you mean api_key?", "api_key_evn"},
		"wrong section":          {base + "timeouts: {total: 1s}\n", "timeouts: is not a setting; it belongs below defaults", "timeouts"},
		"wrong section, far":     {base + "window: 1s\n", "window: is not a setting; it belongs below defaults.breaker", "window"},
		"nothing near":           {base + "admin: {colour: red}\n", "admin.colour: is not a setting; known here: listen", "colour"},
		"twice":                  {base + "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", "listen: is set twice", "listen: 127.0.0.1:2"},
		"name twice":             {"providers:\n  x: {type: simulated}\n  x: {type: simulated}\nmodels: {m*: {targets: []}}\n", "providers.x: is there twice", "x: {type: simulated}\nmodels"},
		"merge key":              {base + "admin: {<<: {listen: a}}\n", "admin.<<: merge keys are not read", "<<"},
		"tag":                    {base + "listen: !env LISTEN\n", "listen: has a tag", "!env"},
		"no value":               {base + "listen:\n", "listen: has no value", ""},
		"null key":               {one("type: openai, api_key: ~"), "providers.x.api_key: has no value", "~"},
		"null in a list":         {base + "workloads: {w: {keys: [~]}}\n", "workloads.w.keys[0]: has no value", "~"},
		"empty":                  {base + "listen: ''\n", "listen: must not be empty", "''"},
		"list for value":         {base + "listen: [a]\n", "listen: must be a single value", "[a]"},
		"value for mapping":      {base + "admin: 127.0.0.1:1\n", "admin: must be a mapping; of listen", "127.0.0.1:1"},
		"value for list":         {base + "workloads: {w: {keys: a}}\n", "workloads.w.keys: must be a list", "a}}"},
		"list for names":         {base + "workloads: [a]\n", "workloads: must be a mapping of names", "[a]"},
		"bool for text":          {base + "listen: yes\nadmin: {listen: true}\n", "admin.listen: must be text", "true"},
		"bare seconds":           {base + "defaults: {timeouts: {idle: 30}}\n", "defaults.timeouts.idle: must be a duration", "30}}"},
		"negative":               {base + "defaults: {timeouts: {idle: -3s}}\n", "defaults.timeouts.idle: must not be negative", "-3s"},
		"zero timer":             {base + "defaults: {timeouts: {idle: 0}}\n", "defaults.timeouts.idle: must be above 0", "0}}"},
		"zero auto timer":        {base + "defaults: {timeouts: {headers: 0s}}\n", "defaults.timeouts.headers: must be above 0, or auto", "0s"},
		"zero memory":            {base + "memory: {limit: 0}\n", "memory.limit: must be above 0, or auto", "0}"},
		"not a number":           {base + "defaults: {queue: {length: many}}\n", "defaults.queue.length: must be a whole number", "many"},
		"hex":                    {base + "defaults: {retry: {ratio: 0x1p-2}}\n", "defaults.retry.ratio: must be a number", "0x1p"},
		"nan":                    {base + "defaults: {retry: {ratio: .nan}}\n", "defaults.retry.ratio: must be a number", ".nan"},
		"too many attempts":      {base + "defaults: {retry: {attempts: 4}}\n", "defaults.retry.attempts: must be at most 3", "4"},
		"ratio order":            {base + "defaults: {retry: {ratio: 0.5, max_ratio: 0.2}}\n", "defaults.retry.max_ratio: is 0.2, below the ratio of 0.5", "0.2"},
		"half a second":          {base + "defaults: {breaker: {window: 1500ms}}\n", "defaults.breaker.window: must be whole seconds", "1500ms"},
		"otlp without endpoint":  {base + "telemetry: {otlp: {sample: 1}}\n", "telemetry.otlp: endpoint is missing", "{sample"},
		"otlp in the clear":      {base + "telemetry: {otlp: {endpoint: 'http://collector.test:4318'}}\n", "telemetry.otlp.endpoint: would be sent to without encryption; use https, or set insecure: true", "'http"},
		"otlp over grpc":         {base + "telemetry: {otlp: {endpoint: 'collector.test:4317'}}\n", "telemetry.otlp.endpoint: must be an http or https address with a host; port 4317 is gRPC's", "'coll"},
		"otlp with a password":   {base + "telemetry: {otlp: {endpoint: 'https://u:p@collector.test'}}\n", "telemetry.otlp.endpoint: must have no user, query or fragment; a credential belongs in headers", "'http"},
		"otlp of one signal":     {base + "telemetry: {otlp: {endpoint: 'https://collector.test/v1/traces'}}\n", "telemetry.otlp.endpoint: is the address of one signal", "'http"},
		"otlp header of its own": {base + "telemetry: {otlp: {endpoint: 'https://c.test', headers: {Content-Type: x}}}\n", "telemetry.otlp.headers.Content-Type: is not a header that can be set", "x}"},
		"otlp header value":      {base + "telemetry: {otlp: {endpoint: 'https://c.test', headers: {Api-Key: schlüssel}}}\n", "telemetry.otlp.headers.Api-Key: has characters that a header cannot carry", "schl"},
		"otlp timeout":           {base + "telemetry: {otlp: {endpoint: 'https://c.test', timeout: 2m}}\n", "telemetry.otlp.timeout: must be 100ms to 1m", "2m"},
		"otlp interval":          {base + "telemetry: {otlp: {endpoint: 'https://c.test', metrics_interval: 10ms}}\n", "telemetry.otlp.metrics_interval: must be 1s or more, or 0", "10ms"},
		"otlp queue":             {base + "telemetry: {otlp: {endpoint: 'https://c.test', queue: 0}}\n", "telemetry.otlp.queue: must be at least 64", "0}"},
		"otlp names":             {base + "telemetry: {otlp: {endpoint: 'https://c.test', semconv: new}}\n", "telemetry.otlp.semconv: \"new\" is none of current, old, both", "new}"},
		"cool-downs":             {base + "defaults: {breaker: {cool_down: 2m}}\n", "defaults.breaker.max_cool_down: is 1m, shorter than the cool_down of 2m", "{cool_down"},
		"no ramp":                {base + "defaults: {breaker: {ramp: 0}}\n", "defaults.breaker.ramp: must be above 0", "0}}"},
		"header bound":           {base + "http: {max_header: 1KiB}\n", "http.max_header: must be 4KiB to 16MiB", "1KiB"},
		"store elsewhere":        {base + "store: {postgres: 'postgres://db.test/x'}\n", "store.postgres: is not served by this version; each router has a store of its own", "postgres"},
		"store in a directory":   {base + "store: {path: /var/lib/hourthree/}\n", "store.path: names a directory; name a file, such as /var/lib/hourthree/hourthree.db", "/var"},
		"store at an address":    {base + "store: {path: 'postgres://db.test/x'}\n", "store.path: is an address of PostgreSQL, which is not served by this version; name a file, or memory", "'postgres"},
		"store of two lines":     {base + "store: {path: \"a\\nb\"}\n", "store.path: has a control character", "\"a"},
		"budget, no price":       {target("") + "workloads: {w: {keys: [a-key-of-some-length], limits: {usd_per_day: 5}}}\n", "models.m.targets[1]: has no price, which workloads.w.limits.usd_per_day counts by; add price: {input: USD, output: USD}", "{provider: s"},
		"budget of keys":         {target("") + "workloads: {w: {keys: [a-key-of-some-length], key_limits: {usd_per_day: 5}}}\n", "models.m.targets[0]: has no price, which workloads.w.key_limits.usd_per_day counts by", "{provider: u"},
		"budget for a model":     {target("") + "workloads: {w: {keys: [a-key-of-some-length], model_limits: {m: {usd_per_day: 5}}}}\n", "models.m.targets[0]: has no price, which workloads.w.model_limits.m.usd_per_day counts by", "{provider: u"},
		"budget of a model":      {target(", price: {input: 1, output: 2}") + "  n: {limits: {usd_per_day: 1}, degraded: {model: m}, targets: [{provider: u, model: y, price: {input: 0, output: 0}}]}\n", "models.m.targets[0]: has no price, which models.n.limits.usd_per_day counts by", "{provider: u"},
		"budget of a target":     {target(", limits: {usd_per_day: 5}"), "models.m.targets[1].limits.usd_per_day: is not served by this version; a budget belongs to a workload", "usd_per_day"},
		"half a price":           {target(", price: {input: 1}"), "models.m.targets[1].price: output is missing", "{input"},
		"prices differ":          {target(", model: x, price: {input: 1, output: 1}") + "  n: {degraded: {message: away}, targets: [{provider: u}, {provider: s, model: x, price: {input: 1, output: 2}}]}\n", "models.n.targets[1].price: differs", "{input: 1, output: 2"},
		"limit of no model":      {base + "workloads: {w: {keys: [a-key-of-some-length], model_limits: {gpt5: {rpm: 5}}}}\n", `workloads.w.model_limits.gpt5: model "gpt5" is not configured; did you mean gpt-5?`, "{rpm"},
		"limit of none of its":   {target("") + "  n: {degraded: {message: away}, targets: [{provider: u}, {provider: s}]}\nworkloads: {w: {keys: [a-key-of-some-length], models: [n], model_limits: {m: {rpm: 5}}}}\n", "workloads.w.model_limits.m: is for a model that the workload may not use", "{rpm"},
		"defer":                  {base + "workloads: {w: {keys: [a-key-of-some-length], defer: true}}\n", "workloads.w.defer: is not served by this version", "defer"},
		"type of later":          {one("type: anthropic"), `providers.x.type: "anthropic" is not served by this version; served are openai, azure,`, "anthropic"},
		"unknown type":           {one("type: azur"), `providers.x.type: "azur" is none of openai, azure, openai-compatible, simulated; did you mean azure?`, "azur"},
		"no type":                {one("base_url: https://x.example"), "providers.x: type is missing", "{base_url"},
		"no key":                 {one("type: openai"), "providers.x: api_key is missing", "{type"},
		"azure without key":      {one("type: azure, base_url: https://x.example"), "providers.x: api_key is missing; write it as ${NAME}, or set auth: entra", "{type"},
		"azure without url":      {one("type: azure, auth: entra"), "providers.x: base_url is missing", "{type"},
		"compatible, no url":     {one("type: openai-compatible"), "providers.x: base_url is missing", "{type"},
		"api_version":            {one("type: azure, auth: entra, base_url: https://x.example, api_version: v1"), "providers.x.api_version: must be a date such as 2024-10-21; leave it out", "v1"},
		"entra and key":          {one("type: azure, auth: entra, base_url: https://x.example, api_key: k"), "providers.x.api_key: means nothing with auth: entra", "k}"},
		"scope without entra":    {one("type: azure, base_url: https://x.example, api_key: k, entra_scope: s"), "providers.x.entra_scope: means nothing without auth: entra", "s}"},
		"entra elsewhere":        {one("type: openai, api_key: k, auth: key"), "providers.x.auth: means nothing for type openai", "key}"},
		"simulated with key":     {one("type: simulated, api_key: k"), "providers.x.api_key: means nothing for type simulated", "k}"},
		"behaviour elsewhere":    {one("type: openai, api_key: k, simulated: {tokens: 1}"), "providers.x.simulated: means nothing for type openai", "{tokens"},
		"url without scheme":     {one("type: openai-compatible, base_url: x.example/v1"), "providers.x.base_url: must be an http or https address", "x.example"},
		"url with query":         {one("type: openai-compatible, base_url: 'https://x.example/v1?a=b'"), "providers.x.base_url: must have no user, query or fragment", "'https"},
		"url of a call":          {one("type: openai-compatible, base_url: https://x.example/v1/chat/completions"), "providers.x.base_url: is the address of one call", "https"},
		"url of a deployment":    {one("type: azure, auth: entra, base_url: https://x.example/openai/deployments/a"), "providers.x.base_url: is the address of one call", "https"},
		"ourselves":              {one("type: openai-compatible, base_url: http://localhost:8080/v1"), "providers.x.base_url: is the router's own address", "http:"},
		"header":                 {one("type: openai, api_key: k, headers: {Host: a}"), "providers.x.headers.Host: is not a header that can be set", "a}"},
		"key of two lines":       {one(`type: openai, api_key: "a\nb"`), "providers.x.api_key: must be one line", `"a`},
		"key with umlaut":        {one("type: openai, api_key: schlüssel"), "providers.x.api_key: has characters that a header cannot carry", "schl"},
		"no such provider":       {strings.Replace(base, "provider: azure,", "provider: azur,", 1), `models.gpt-5.targets[0].provider: provider "azur" is not configured; did you mean azure?`, "azur,"},
		"no targets":             {base + "  m: {targets: [], degraded: {model: gpt-5}}\n", "models.m.targets: has no target", "[]"},
		"targets missing":        {base + "  m: {degraded: {model: gpt-5}}\n", "models.m: targets is missing", "{degraded"},
		"part of a name":         {base + "  gpt-*: {targets: [{provider: openai}, {provider: azure}], degraded: {message: x}}\n", "models.gpt-*: a * does not stand for a part of a name", "{targets: [{provider: openai}"},
		"same target twice":      {target("}, {provider: s"), "models.m.targets[2]: is the same target as one above", "{provider: s}]"},
		"weight zero":            {target(", weight: 0"), "models.m.targets[1].weight: must be at least 0.001", "0}"},
		"order zero":             {target(", order: 0"), "models.m.targets[1].order: must be at least 1", "0}"},
		"rpm beside limits":      {target(", rpm: 5"), "models.m.targets[1].rpm: is not a setting; it belongs below limits", "rpm"},
		"share":                  {target(", simulated: {failure: {share: 1.5}}"), "simulated.failure.share: must be at most 1", "1.5"},
		"limits differ":          {target(", model: x") + "  n: {degraded: {message: away}, targets: [{provider: u}, {provider: s, model: x, limits: {rpm: 1}}]}\n", "models.n.targets[1].limits: differs from models.m.targets[1].limits", "{rpm"},
		"timeouts differ":        {target(", model: x, timeouts: {headers: 1s}") + "  n: {degraded: {message: away}, targets: [{provider: u}, {provider: s, model: x, timeouts: {headers: 2s}}]}\n", "models.n.targets[1].timeouts: differs", "{headers: 2s"},
		"behaviour differs":      {target(", model: x") + "  n: {degraded: {message: away}, targets: [{provider: u}, {provider: s, model: x, simulated: {tokens: 3}}]}\n", "models.n.targets[1].simulated: differs", "{tokens"},
		"degraded of nothing":    {strings.Replace(base, "{message: away}", "{}", 1), "models.gpt-5.degraded: must have exactly one of message and model", "{}"},
		"degraded of unknown":    {strings.Replace(base, "{message: away}", "{model: gpt-4}", 1), `models.gpt-5.degraded.model: model "gpt-4" is not configured; did you mean gpt-5?`, "gpt-4"},
		"degraded to itself":     {strings.Replace(base, "{message: away}", "{model: gpt-5}", 1), "models.gpt-5.degraded.model: leads in a circle: gpt-5 -> gpt-5", "gpt-5}"},
		"cache":                  {strings.Replace(base, "{message: away}", "{message: away, cache: true}", 1), "models.gpt-5.degraded.cache: is not served by this version; it has no answer cache", "cache"},
		"fallbacks in a ring":    {base + "    content_policy_fallback: [b]\n  b: {targets: [{provider: openai}, {provider: azure}], degraded: {message: x}, content_policy_fallback: [gpt-5]}\n", "models.gpt-5.content_policy_fallback[0]: leads in a circle: b -> gpt-5 -> b", "b]"},
		"mixed ring":             {base + "    content_policy_fallback: [b]\n  b: {targets: [{provider: openai}, {provider: azure}], degraded: {model: gpt-5}}\n", "leads in a circle: b -> gpt-5 -> b", "b]"},
		"everybody's address":    {base + "listen: 0.0.0.0:8080\n", "listen: is not a loopback address, and no workload has a key", "0.0.0.0"},
		"every interface":        {base + "listen: :8080\n", "listen: is not a loopback address", ":8080"},
		"no port":                {base + "listen: localhost\n", "listen: must be a host and a port", "localhost"},
		"port name":              {base + "listen: 127.0.0.1:http\n", "listen: must be a host and a port", "127"},
		"open operator":          {base + workload + "admin: {listen: 0.0.0.0:8081}\n", "admin.listen: must be a loopback address", "0.0.0.0"},
		"one address for both":   {base + "listen: localhost:8081\n", "admin.listen: is the same address as listen", ""},
		"workload of no key":     {base + "workloads: {w: {keys: []}}\n", "workloads.w.keys: has no key", "[]"},
		"keys missing":           {base + "workloads: {w: {}}\n", "workloads.w: keys is missing", "{}}"},
		"shared key":             {base + workload[:len(workload)-2] + ", x: {keys: ['sha256:" + strings.ToUpper(hex.EncodeToString(digest[:])) + "']}}\n", "workloads.x.keys[0]: is a key of workload w too", "'sha256"},
		"key twice":              {base + "workloads: {w: {keys: [a-key-of-some-length, a-key-of-some-length]}}\n", "workloads.w.keys[1]: is the same key as workloads.w.keys[0]", ""},
		"bad digest":             {base + "workloads: {w: {keys: ['sha256:abc']}}\n", "workloads.w.keys[0]: must be sha256: and 64 hex digits", "'sha256"},
		"unknown model":          {base + "workloads: {w: {keys: [a-key-of-some-length], models: [gpt5]}}\n", `workloads.w.models[0]: model "gpt5" is not configured; did you mean gpt-5?`, "gpt5"},
		"no models":              {base + "workloads: {w: {keys: [a-key-of-some-length], models: []}}\n", "workloads.w.models: is empty", "[]"},
		"priority":               {base + "workloads: {w: {keys: [a-key-of-some-length], priority: high}}\n", `workloads.w.priority: "high" is none of critical, interactive, batch`, "high"},
		"passthrough":            {base + "passthrough: {/files: openai}\n", "passthrough./files: a prefix must begin with /v1/", "openai}"},
		"passthrough to none":    {base + "passthrough: {/v1/files: opena}\n", `passthrough./v1/files: provider "opena" is not configured; did you mean openai?`, "opena}"},
		"nothing served":         {"listen: 127.0.0.1:1\n", "models: there is no model", ""},
		"two documents":          {base + "---\nlisten: x\n", "the file must be one document", ""},
		"no file":                {"", "the file is empty; hourthree init writes an example", ""},
		"only a comment":         {"# x\n", "the file is empty", ""},
		"not closed":             {"providers: {x: {type: simulated}\n", "this is not YAML: ", ""},
		"tab":                    {"providers:\n\tx: 1\n", "this is not YAML: found character that cannot start any token", "\tx"},
		"no such anchor":         {"listen: *hidden\n", "a value that begins with * is an alias", "*hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			_, ps := parse(t, c.text)
			var found *Problem
			for i := range ps {
				if strings.Contains(ps[i].text(), c.want) && !ps[i].Warning {
					found = &ps[i]
				}
			}
			if found == nil {
				t.Fatalf("want %q in:\n%s", c.want, ps.Report())
			}
			lines := strings.Split(c.text, "\n")
			if c.at == "" {
				return
			}
			rest := string([]rune(strings.Join(lines[found.Line-1:], "\n"))[found.Column-1:])
			if !strings.HasPrefix(rest, c.at) {
				t.Errorf("caret at %q, want %q", rest[:min(20, len(rest))], c.at)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one domain":        {"providers: {a: {type: simulated, domain: d}, b: {type: simulated, domain: d}}\nmodels: {m: {targets: [{provider: a}, {provider: b}], degraded: {message: x}}}\n", "all targets are in one failure domain"},
		"one target":        {"providers: {a: {type: simulated}}\nmodels: {m: {targets: [{provider: a}]}}\n", "has one target and no last resort"},
		"one and a message": {"providers: {a: {type: simulated}}\nmodels: {m: {targets: [{provider: a}], degraded: {message: x}}}\n", "only the last resort is left"},
		"no last resort":    {strings.Replace(base, "    degraded: {message: away}\n", "", 1), "has no last resort"},
		"first content":     {base + "defaults: {timeouts: {total: 1m, first_content: 2m}}\n", "defaults.timeouts.first_content: is longer than the total of 1m"},
		"of a target":       {strings.Replace(base, "order: 2", "timeouts: {headers: 11m}", 1), "models.gpt-5.targets[1].timeouts.headers: is longer than the total of 10m"},
		"headers":           {base + "defaults: {timeouts: {headers: 2s, first_content: 1s}}\n", "defaults.timeouts.headers: is longer than first_content"},
		"short key":         {base + "workloads: {w: {keys: [abc]}}\n", "workloads.w.keys[0]: is shorter than 16 characters"},
		"plain http":        {"providers: {a: {type: openai, api_key: k, base_url: http://api.example.com/v1}}\nmodels: {\"*\": {targets: [{provider: a}]}}\n", "sends the key over a connection without encryption"},
		"memory":            {base + "memory: {limit: 1MiB}\n", "memory.limit: is smaller than http.max_body, 64MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			c0, ps := parse(t, c.text)
			if ps.Fatal() || len(ps) != 1 || !strings.Contains(ps[0].text(), c.want) || ps.Error() != "" {
				t.Fatalf("want the one warning %q:\n%s", c.want, ps.Report())
			}
			if len(c0.Models) == 0 {
				t.Error("a warning must leave the configuration usable")
			}
		})
	}
}

func TestAllProblemsAtOnceInFileOrder(t *testing.T) {
	_, ps := parse(t, "listen: 5\nprovider: {}\nmodels: {m: {targets: [{provider: x, wait: 1}]}}\nhttp: {drain: -1s}\n")
	if len(ps) < 5 {
		t.Errorf("want them all:\n%s", ps.Report())
	}
	for i := 1; i < len(ps); i++ {
		if ps[i].Line < ps[i-1].Line {
			t.Errorf("out of order:\n%s", ps.Report())
		}
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	_, ps := parse(t, base+"http: {"+strings.Repeat("x: 1, ", 500)+"}\n")
	if len(ps) != maxProblems+1 || !strings.Contains(ps.Error(), "400 more problems are not shown") {
		t.Errorf("%d problems", len(ps))
	}
}

func TestAliases(t *testing.T) {
	c := good(t, base+"  other: {targets: &t [{provider: openai}, {provider: azure}], degraded: &d {message: away}}\n  third: {targets: *t, degraded: *d}\n")
	if len(c.Models["third"].Targets) != 2 || c.Models["third"].Degraded.Message != "away" {
		t.Errorf("%+v", c.Models["third"])
	}
	// A few lines that stand for a thousand million values.
	bomb := base + "  a: {targets: &t [" + strings.Repeat("{provider: openai},", 2000) + "]}\n"
	for i := range 2000 {
		bomb += fmt.Sprintf("  b%d: {targets: *t}\n", i)
	}
	if _, ps := parse(t, bomb); !strings.Contains(ps.Error(), "the file has more than 200000 values") {
		t.Error("the bomb went off")
	}
}

func TestReferences(t *testing.T) {
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "secret"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{file: " from-a-file\n", empty: "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lookup := env("A", "one", "EMPTY", "", "TRICK", "x}, listen: ${A}")
	for in, want := range map[string]string{
		"${A}": "one", "<${A}-${A}>": "<one-one>", "${B:-two}": "two", "${EMPTY:-two}": "two", "${A:-two}": "one", "${B:-}": "",
		"$$": "$", "$${A}": "${A}", "$": "$", "a$b": "a$b", "a$": "a$", "${TRICK}": "x}, listen: ${A}",
		"${file:" + file + "}": "from-a-file",
	} {
		if got, err := substitute(in, lookup); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"${B}": "${B}, which is not set", "${EMPTY}": "${EMPTY}, which is empty", "${A": "not closed", "${}": "none of", "${A-b}": "none of", "${A:?b}": "none of", "${1}": "none of",
		"${file:secret}": "absolute path", "${file:" + dir + "/none}": "does not exist", "${file:" + dir + "}": "not a regular file", "${file:" + empty + "}": "is empty",
	} {
		if got, err := substitute(in, lookup); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %q, %v; want an error with %q", in, got, err, want)
		}
	}
	c := good(t, strings.Replace(base, "away", "'${KEY}'", 1))
	if c.Models["gpt-5"].Degraded.Message != "sk-from-environment" {
		t.Error("any value may be a reference")
	}
}

// TestNoErrorShowsASecret puts a secret where it belongs and where it does
// not, beside every kind of mistake, and looks for it in every form of output.
func TestNoErrorShowsASecret(t *testing.T) {
	const secret = "sk-Zq81secretvalue"
	for _, text := range []string{
		"providers: {a: {type: azur, api_key: S, base_urll: x}}\n",
		"providers: {a: {type: openai, api_kye: S}}\n",
		"providers: {a: {type: openai, api_key: [S]}}\n",
		"providers: {a: {type: openai, api_key: {S: S}}}\n",
		"providers: {a: {type: openai, api_key:S}}\n",
		"providers: {a: {type: openai, api_key S}}\n",
		"providers: {a: {api_key: \"S\", tpye: openai}} # was S\n",
		"providers: {a: S}\n",
		"providers: S\n",
		"S\n",
		"- S\n",
		"providers: {a: {type: openai-compatible, base_url: 'https://u:S@x.example/v1'}}\n",
		"providers: {a: {type: openai-compatible, base_url: 'https://x.example/v1?key=S'}}\n",
		"providers: {a: {type: openai, api_key: k, headers: {Host: S, X: S, \"bad header\": S}}}\n",
		"workloads: {keys: [S]}\n",
		"admin: {keys: {a: {key: S, rol: view}}}\n",
		"admin: {keys: {a: S}}\n",
		"admin: {keys: {a: {key: 'sha256:S', role: view}, b: {key: S, role: vew}}}\n",
		"admin: {oidc: {client_secret: S, issuer: 'https://x:S@id.example', redirect_url: 'https://x/?S'}}\n",
		"workloads: {w: {keys: S}}\n",
		"workloads: {w: [S]}\n",
		"workloads: {w: {keys: [S, S, {a: S}], modles: S}}\n",
		"workloads: {w: {keys: [\"sha256:S\"]}}\n",
		"providers:\n  a:\n    type: openai\n    api_key: |\n      S\n      S\n    modle: x\n",
		"providers: {a: {api_key: 'S\n     S', tpye: openai}}\n",
		"providers:\n  a:\n    api_key: S: S\n",
		"providers:\n  a:\n    api_key: *S\n",
		"providers:\n  a:\n    api_key: @S\n",
		"providers:\n  a:\n    api_key: \"S\n",
		"providers:\n  a:\n    api_key S\n    type: openai\n",
		"providers: {a: {type: openai, api_key: S\n",
		"providers: {a: {type: openai, api_key: !S S}}\n",
		"providers: {a: {type: openai, api_key: &S S, x: 1}}\n",
		"providers: {a: {type: \"${KEY}\", auth: \"${KEY}\"}}\nlisten: ${KEY}\nmodels: {m: {targets: [{provider: \"${KEY}\", order: \"${KEY}\"}]}}\ndefaults: {timeouts: {idle: \"${KEY}\"}}\nhttp: {max_body: \"${KEY}\"}\n",
		"providers: {a: {type: openai, api_key: \"${NONE:-S}\", x: 1}}\n",
		"providers: {a: {type: openai, api_key: S, x: 1}}\r\n",
		"providers: {a: {type: openai, api_key: S,\u2028 x: 1}}\n",
		"providers: {a: {type: openai, \"api_key\": \"S\\u0041\", x: 1}}\n",
	} {
		text := strings.ReplaceAll(text, "S", secret)
		_, ps := Parse("h.yaml", []byte(text), env("KEY", secret))
		if !ps.Fatal() {
			t.Errorf("%q is taken", text)
		}
		all := ps.Report() + ps.Error() + fmt.Sprintf("%+v %#v", ps, ps)
		if strings.Contains(all, "Zq81") {
			t.Errorf("%q gives\n%s", text, all)
		}
	}
}

// TestReportFits: whatever the file, a report is printable and within 80
// columns, but for the name of the file.
func TestReportFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{base}), rapid.StringMatching(`((  )?[a-z_]{1,9}: ?[\[\{"'a-z0-9 ,:äß字\t-]{0,150}[\]\}]?\n){1,5}`)).Draw(t, "text")
		_, ps := Parse("h.yaml", []byte(text), env())
		for _, line := range strings.Split(ps.Report(), "\n") {
			if n := len([]rune(line)); n > width {
				t.Fatalf("%d columns: %q", n, line)
			}
			if clean(line) != line {
				t.Fatalf("not printable: %q", line)
			}
		}
	})
}

func TestCheckListeners(t *testing.T) {
	c := good(t, base)
	if err := c.CheckListeners(); err != nil {
		t.Error(err)
	}
	c.Listen = "0.0.0.0:8080"
	if err := c.CheckListeners(); err == nil || !strings.Contains(err.Error(), "listen: is not a loopback address") {
		t.Errorf("an open listener without keys: %v", err)
	}
	c.Workloads = map[string]Workload{"w": {Keys: []Secret{NewSecret("k")}}}
	if err := c.CheckListeners(); err != nil {
		t.Error(err)
	}
}
