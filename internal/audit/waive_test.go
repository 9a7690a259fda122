package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/manifest"
)

var waiveDay = time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC)

// waived audits manifests in which RTY-002 fails for VirtualService llm/llm, and
// says what came of it: states of RTY-002 and what is said about waivers.
func waived(t testing.TB, text string, o Options) (states, said []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Read(t.Context(), manifest.Options{Paths: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	o.Today = waiveDay
	if o.Checks == nil {
		o.Checks = []string{"RTY-002"}
	}
	r := run1(t, Input{Objects: set.Objects}, o)
	for _, f := range r.Findings {
		switch {
		case f.ID == "RTY-002":
			states = append(states, string(f.State))
			if (f.Waiver == nil) != (f.State == Fail) {
				t.Errorf("%s with waiver %+v", f.State, f.Waiver)
			}
		case group(f.ID) == waiverGroup:
			said = append(said, fmt.Sprintf("%s %d: %s; %s", f.ID, f.Place.Line, f.Observed, f.Expected))
			if f.Key == "" || f.Severity == 0 || f.Title == "" || f.Check == nil {
				t.Errorf("incomplete: %+v", f)
			}
		}
	}
	return states, said
}

// route is a VirtualService in which RTY-002 fails, with what stands in its
// metadata.
func route(metadata string) string {
	return `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: llm
  namespace: llm
` + metadata + `spec:
  hosts: [api.openai.com]
  http:
  - retries: {attempts: 2, retryOn: "connect-failure,429"}
    route: [{destination: {host: api.openai.com}}]
`
}

func annotated(k, v string) string { return route("  annotations:\n    " + k + ": " + v + "\n") }

func TestInlineWaivers(t *testing.T) {
	const key = "hourthree.dev/waive.RTY-002"
	for _, c := range []struct {
		name, text, state, said string
	}{
		{"none", route(""), "fail", ""},
		{"in force", annotated(key, `"the pool has room; until=2027-01-31"`), "waived", ""},
		{"on its last day", annotated(key, `"x; until=2026-11-30"`), "waived", ""},
		{"spaces", annotated(key, `"  a; b ;  until=2027-01-31  "`), "waived", ""},
		{"expired", annotated(key, `"x; until=2026-11-29"`), "fail", "WVR-003 7: it was good until 2026-11-29; mend"},
		{"no reason", annotated(key, `"; until=2027-01-31"`), "fail", "WVR-001 7: it gives no reason; write"},
		{"no day", annotated(key, `"because"`), "fail", "WVR-001 7: it has no last day; write"},
		{"empty", annotated(key, `""`), "fail", "WVR-001 7: it gives no reason"},
		{"no date", annotated(key, `"x; until=31.1.2027"`), "fail", `WVR-001 7: "31.1.2027" is not a date; write the last day as`},
		{"no text", annotated(key, "true"), "fail", "WVR-001 7: its value is not text"},
		{"unknown", annotated("hourthree.dev/waive.RTY-999", `"x; until=2027-01-31"`), "fail", `WVR-001 7: there is no check "RTY-999"`},
		{"lower case", annotated("hourthree.dev/waive.rty-002", `"x; until=2027-01-31"`), "fail", `WVR-001 7: there is no check "rty-002"; write RTY-002`},
		{"a group", annotated("hourthree.dev/waive.RTY", `"x; until=2027-01-31"`), "fail", `WVR-001 7: there is no check "RTY"; it is a group, and a waiver is for one check, such as RTY-001`},
		{"waiver", annotated("hourthree.dev/waiver.RTY-002", `"x; until=2027-01-31"`), "fail", `WVR-001 7: "hourthree.dev/waiver.RTY-002" is not how`},
		{"another domain", annotated("hourthree.io/waive.RTY-002", `"x; until=2027-01-31"`), "fail", `WVR-001 7: "hourthree.io/waive.RTY-002" is not how`},
		{"itself", annotated("hourthree.dev/waive.WVR-002", `"x; until=2027-01-31"`), "fail", "WVR-001 7: WVR-002 cannot be waived"},
		{"a label", route("  labels:\n    " + key + ": x\n"), "fail", "WVR-001 7: a waiver in metadata.labels has no effect; put it in metadata.annotations"},
		{"no level", route("  " + key + `: "x; until=2027-01-31"` + "\n"), "fail", "WVR-001 6: a waiver in metadata has no effect"},
		{"a slip", route("  annotation:\n    " + key + `: "x; until=2027-01-31"` + "\n"), "fail", "WVR-001 7: a waiver in metadata.annotation has no effect"},
		{"the root", key + `: "x; until=2027-01-31"` + "\n" + route(""), "fail", "WVR-001 1: a waiver in the root has no effect"},
		{"another check's", annotated("hourthree.dev/waive.RTY-002.main", `"x; until=2027-01-31"`), "fail", "WVR-002 7: RTY-002 does not fail here; remove it"},
		{"another object's", route("") + "---\n" + strings.Replace(strings.Replace(annotated(key, `"x; until=2027-01-31"`), "name: llm", "name: other", 1), ",429", "", 1),
			"fail", "WVR-002 18: RTY-002 does not fail here; remove it; the check fails for VirtualService llm/llm"},
	} {
		states, said := waived(t, c.text, Options{})
		if !slices.Equal(states, []string{c.state}) {
			t.Errorf("%s: %v, want %s", c.name, states, c.state)
		}
		if c.said == "" && len(said) > 0 || c.said != "" && (len(said) != 1 || !strings.HasPrefix(said[0], c.said)) {
			t.Errorf("%s: said %q, want %q", c.name, said, c.said)
		}
	}
}

// TestNoInlineWaivers: with them off, annotations are not looked at.
func TestNoInlineWaivers(t *testing.T) {
	states, said := waived(t, annotated("hourthree.dev/waive.RTY-002", `"x; until=2027-01-31"`), Options{NoInline: true})
	if !slices.Equal(states, []string{"fail"}) || len(said) > 0 {
		t.Error(states, said)
	}
}

// TestWaiversThatWereNotLookedAt: a waiver is only unused where its check ran.
func TestWaiversThatWereNotLookedAt(t *testing.T) {
	text := strings.Replace(annotated("hourthree.dev/waive.RTY-002", `"x; until=2027-01-31"`), ",429", "", 1)
	for name, o := range map[string]Options{"other checks": {Checks: []string{"WVR"}}, "other namespaces": {Namespaces: []string{"apps"}}} {
		if _, said := waived(t, text, o); len(said) > 0 {
			t.Error(name, said)
		}
	}
	if _, said := waived(t, text, Options{Namespaces: []string{"llm"}}); len(said) != 1 {
		t.Error("not told", said)
	}
	w := &waiving{report: &Report{Open: []Open{{ID: "RTY-002", Object: &manifest.Ref{Kind: "VirtualService", Name: "a"}}}}}
	one := &waiver{Waiver: Waiver{Check: "RTY-002", Name: "a"}}
	if w.judge(one); len(w.report.Findings) > 0 {
		t.Error("told of a check that was not evaluated", w.report.Findings)
	}
	one.Name = "b"
	if w.judge(one); len(w.report.Findings) != 1 {
		t.Error("not told of another object")
	}
}

// TestInheritedWaivers: pods have their template's annotations, which are the
// owner's waivers and count once.
func TestInheritedWaivers(t *testing.T) {
	const text = `"x; until=2027-01-31"`
	owner := strings.Replace(strings.Replace(annotated("hourthree.dev/waive.RTY-002", text), "name: llm", "name: owner", 1), ",429", "", 1)
	owned := annotated("hourthree.dev/waive.RTY-002", text+"\n  ownerReferences: [{kind: VirtualService, name: owner}]")
	states, said := waived(t, owner+"---\n"+owned, Options{})
	if !slices.Equal(states, []string{"waived"}) || len(said) > 0 {
		t.Error(states, said)
	}
	unused := strings.Replace(owned, ",429", "", 1)
	if _, said := waived(t, owner+"---\n"+unused, Options{}); len(said) != 1 || !strings.HasPrefix(said[0], "WVR-002 7:") {
		t.Error(said)
	}
}

func TestFileWaivers(t *testing.T) {
	for _, c := range []struct{ name, entry, state, said string }{
		{"by name", `{check: RTY-002, kind: VirtualService, namespace: llm, name: llm, reason: x, until: 2027-01-31}`, "waived", ""},
		{"by pattern", `{check: RTY-002, namespace: "l*", name: "?lm", reason: x, until: "2027-01-31"}`, "waived", ""},
		{"everywhere", `{check: RTY-002, reason: x, until: 2027-01-31}`, "waived", ""},
		{"another kind", `{check: RTY-002, kind: Virtual, reason: x, until: 2027-01-31}`, "fail", "WVR-002 3: "},
		{"another namespace", `{check: RTY-002, namespace: "a*", reason: x, until: 2027-01-31}`, "fail", "WVR-002 3: "},
		{"another name", `{check: RTY-002, name: "l", reason: x, until: 2027-01-31}`, "fail", "WVR-002 3: "},
		{"a container", `{check: RTY-002, container: main, reason: x, until: 2027-01-31}`, "fail", "WVR-002 3: "},
		{"expired", `{check: RTY-002, reason: x, until: 2025-01-31}`, "fail", "WVR-003 3: "},
		{"no reason", `{check: RTY-002, until: 2027-01-31}`, "fail", "WVR-001 3: it gives no reason; give it reason and until"},
		{"no day", `{check: RTY-002, reason: x}`, "fail", "WVR-001 3: it has no last day"},
		{"no check", `{reason: x, until: 2027-01-31}`, "fail", `WVR-001 3: there is no check ""`},
	} {
		f, err := ReadWaivers("waivers.yaml", []byte("version: 1\nwaivers:\n- "+c.entry+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		states, said := waived(t, route(""), Options{Waivers: f.Waivers})
		if !slices.Equal(states, []string{c.state}) {
			t.Errorf("%s: %v, want %s", c.name, states, c.state)
		}
		if c.said == "" && len(said) > 0 || c.said != "" && (len(said) != 1 || !strings.HasPrefix(said[0], c.said)) {
			t.Errorf("%s: said %q, want %q", c.name, said, c.said)
		}
	}
}

// TestFirmChecks: what the policy lets nobody waive fails, by id and by group,
// in the file and inline, and whoever tried is told.
func TestFirmChecks(t *testing.T) {
	for _, firm := range []string{"RTY-002", "RTY"} {
		f, err := ReadWaivers("w.yaml", []byte("waivers: [{check: RTY-002, reason: x, until: 2027-01-31}]\npolicy: [{check: "+firm+", waivable: false}]"))
		if err != nil {
			t.Fatal(err)
		}
		states, said := waived(t, annotated("hourthree.dev/waive.RTY-002", `"x; until=2027-01-31"`), Options{Waivers: f.Waivers, Firm: f.Firm})
		if !slices.Equal(states, []string{"fail"}) || len(said) != 2 || !strings.Contains(said[0], "may not be waived") {
			t.Error(firm, states, said)
		}
	}
}

func TestReadWaiversRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"waivers: {a: b}":                         "w.yaml:1:10: must be a list",
		"waivers:\n- {check: A, untill: b}":       `w.yaml:2:14: "untill" is not a key here; known are check, kind`,
		"waivers:\n- {check: A, check: B}":        "w.yaml:2:14: ",
		"waivers:\n- {check: [A]}":                "w.yaml:2:11: must be text",
		"waivers:\n- x":                           "w.yaml:2:3: must be a mapping",
		"version: 2":                              "w.yaml:1:10: version must be 1",
		"waiver: []":                              `w.yaml:1:1: "waiver" is not a key here`,
		"a: [":                                    "w.yaml:2:1: this is not YAML",
		"policy: [{check: RTY}]":                  "w.yaml:1:10: needs waivable: true or false",
		"policy: [{waivable: false}]":             "w.yaml:1:10: needs check",
		"policy: [{check: RTY, waivable: maybe}]": "w.yaml:1:10: needs waivable",
		"policy: [{check: RTX, waivable: false}]": `w.yaml:1:18: there is no check or group "RTX"`,
		"- a": "w.yaml:1:1: must be a mapping",
	} {
		if _, err := ReadWaivers("w.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := ReadWaivers("w.yaml", make([]byte, mostWaiverBytes+1)); err == nil {
		t.Error("read a file past the bound")
	}
	many := "waivers:\n" + strings.Repeat("- {check: A}\n", mostWaivers+1)
	if _, err := ReadWaivers("w.yaml", []byte(many)); err == nil || !strings.Contains(err.Error(), "more than 10000") {
		t.Error(err)
	}
	for _, text := range []string{"", "# nothing\n", "waivers: []", "---\n"} {
		if f, err := ReadWaivers("w.yaml", []byte(text)); err != nil || len(f.Waivers) > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestGlob compares with regular expressions.
func TestGlob(t *testing.T) {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune("ab*?語.")), 0, 8, -1)
	rapid.Check(t, func(r *rapid.T) {
		pattern, text := letters.Draw(r, "pattern"), letters.Draw(r, "text")
		want := regexp.MustCompile("^(?s:" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern)) + ")$").MatchString(text)
		if glob(pattern, text) != want {
			r.Fatalf("%q %q: %v", pattern, text, !want)
		}
	})
}

func FuzzReadWaivers(f *testing.F) {
	f.Add([]byte("version: 1\nwaivers: [{check: RTY-002, reason: x, until: 2027-01-31}]\npolicy: [{check: RTY, waivable: false}]"))
	f.Add([]byte("waivers: &a [*a]"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := ReadWaivers("w.yaml", data)
		if (w == nil) == (err == nil) {
			t.Errorf("%v, %v", w, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "w.yaml") {
			t.Errorf("no place: %v", err)
		}
	})
}
