package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func noEnv(string) (string, bool) { return "", false }

// drawn is a configuration with a secret in every place that has one.
func drawn(rt *rapid.T, label string) *Config {
	secret := func(n int) string { return fmt.Sprintf("hidden-%d", n) }
	var b strings.Builder
	b.WriteString("providers:\n")
	for i := range rapid.IntRange(1, 3).Draw(rt, label+" providers") {
		fmt.Fprintf(&b, "  p%d: {type: openai, api_key: %s, region: r%d, headers: {X-Team: %s}}\n", i,
			secret(rapid.IntRange(0, 1).Draw(rt, label+" key")), rapid.IntRange(0, 1).Draw(rt, label+" region"), secret(rapid.IntRange(2, 3).Draw(rt, label+" header")))
	}
	b.WriteString("models:\n")
	for i := range rapid.IntRange(1, 2).Draw(rt, label+" models") {
		fmt.Fprintf(&b, "  m%d: {targets: [{provider: p0, model: a, order: %d}", i, rapid.IntRange(1, 2).Draw(rt, label+" order"))
		if rapid.Bool().Draw(rt, label+" second") {
			fmt.Fprintf(&b, ", {provider: p0, model: b, timeouts: {headers: %ds}}", rapid.IntRange(1, 2).Draw(rt, label+" timer"))
		}
		b.WriteString("]}\n")
	}
	b.WriteString("workloads:\n")
	for i := range rapid.IntRange(1, 2).Draw(rt, label+" workloads") {
		fmt.Fprintf(&b, "  w%d: {keys: [%s], limits: {rpm: %d}}\n", i, secret(10+10*i+rapid.IntRange(0, 2).Draw(rt, label+" caller")), rapid.IntRange(0, 1).Draw(rt, label+" rpm"))
	}
	fmt.Fprintf(&b, "defaults: {breaker: {cool_down: %ds}}\n", rapid.IntRange(4, 5).Draw(rt, label+" cool-down"))
	if rapid.Bool().Draw(rt, label+" rollout") {
		fmt.Fprintf(&b, "rollout: {stages: [%d%%, 100%%]}\n", rapid.IntRange(1, 2).Draw(rt, label+" share"))
	}
	c, problems := Parse("drawn.yaml", []byte(b.String()), noEnv)
	if problems.Fatal() {
		rt.Skip("not drawn well: " + problems.Report())
	}
	return c
}

// TestDiff: there is a difference where the versions differ and nowhere else, it is the
// same each time, and no secret is in it.
func TestDiff(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawn(rt, "before"), drawn(rt, "after")
		lines := Diff(a, b)
		if (a.ID() == b.ID()) != (len(lines) == 0) {
			rt.Errorf("%s and %s differ in %q", a.ID(), b.ID(), lines)
		}
		if n := len(Diff(a, a)); n != 0 {
			rt.Errorf("%d differences with itself", n)
		}
		if !slices.Equal(lines, Diff(a, b)) {
			rt.Error("not the same again")
		}
		if text := strings.Join(lines, "\n"); strings.Contains(text, "hidden-") {
			rt.Errorf("a secret is shown: %s", text)
		}
		if back := Diff(b, a); len(back) != len(lines) {
			rt.Errorf("%d differences one way, %d the other", len(lines), len(back))
		}
		s := Staged(a, b)
		if !reflect.DeepEqual(s.Providers, b.Providers) || s.Listen != a.Listen || !reflect.DeepEqual(s.Rollout, a.Rollout) {
			rt.Error("what can be staged is not the new one's, or what cannot is not the old one's")
		}
	})
}

// TestDiffLines is how differences read.
func TestDiffLines(t *testing.T) {
	parse := func(text string) *Config {
		c, problems := Parse("x.yaml", []byte(text), noEnv)
		if problems.Fatal() {
			t.Fatal(problems.Report())
		}
		return c
	}
	a := parse("providers: {p: {type: openai, api_key: one}}\nmodels: {m: {targets: [{provider: p}]}}\nworkloads: {w: {keys: [key-1, key-2]}, gone: {keys: [key-9]}}\n")
	b := parse("providers: {p: {type: openai, api_key: two, region: east}}\nmodels: {m: {targets: [{provider: p, weight: 2}, {provider: p, model: b}]}}\nworkloads: {w: {keys: [key-2, key-3], models: [m]}}\nrollout: {}\n")
	want := []string{
		"providers.p.api_key: changed", "providers.p.region: nothing -> east",
		"models.m.targets[0].weight: 1 -> 2", "+ models.m.targets[1]",
		"- workloads.gone", "workloads.w.keys: 1 added, 1 removed", "workloads.w.models: nothing -> [m]", "+ rollout",
	}
	if got := Diff(a, b); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestRolloutSettings: what is wrong with them is said, with its place.
func TestRolloutSettings(t *testing.T) {
	const base = "providers: {p: {type: simulated}}\nmodels: {m: {targets: [{provider: p}]}}\nrollout: "
	for text, want := range map[string]string{
		"{}": "", "{stages: [1%, 0.5, 100%]}": "", "{by: region}": "name fewer than two",
		"{stages: [5%, 5%, 100%]}":       "rollout.stages[1]: must be above",
		"{stages: [5%, 50%]}":            "rollout.stages: must end with 100%",
		"{stages: [0%, 100%]}":           "must be a share",
		"{stages: [NaN]}":                "must be a share",
		"{stages: [120%]}":               "must be a share",
		"{stages: [60%, 100%]}":          "more than half",
		"{by: region, stages: [100%]}":   "rollout.stages: has no meaning",
		"{bake: 30s}":                    "rollout.bake: must be 1m",
		"{bake: 20m, patience: 10m}":     "rollout.patience: is shorter",
		"{requests: 0}":                  "must be at least 1",
		"{by: luck}":                     "none of share, region",
		"{patience: 200h, bake: 1m}":     "must be at most 168h",
		"{stages: [1%, 100%], size: 10}": "rollout.size: is not a setting",
	} {
		_, problems := Parse("x.yaml", []byte(base+text+"\n"), noEnv)
		var all []string
		for _, p := range problems {
			if strings.HasPrefix(p.Path, "rollout") {
				all = append(all, p.Path+": "+p.Message)
			}
		}
		if got := strings.Join(all, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
