package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Every check has a manifest in which it fires and one in which it is silent.
func TestEveryCheckFiresAndIsSilent(t *testing.T) {
	for _, c := range Catalogue() {
		if c.When == "" && rules()[c.ID] == nil {
			continue // TestEveryCheckIsDecidedOnce says so
		}
		if c.Scope == "gateway" {
			continue // TestGatewayExamples
		}
		t.Run(c.ID, func(t *testing.T) {
			if found := findingsOf(t, c, "fail"); len(found) == 0 {
				t.Error("does not fire")
			} else {
				for _, f := range found {
					if !slices.Contains(c.Kinds, f.Object.Kind) || f.Observed == "" || f.Expected == "" || f.Observed == "cannot be shown" {
						t.Errorf("finding of %s at %q: observed %q, expected %q", f.Object, f.Path, f.Observed, f.Expected)
					}
				}
			}
			if found := findingsOf(t, c, "pass"); len(found) > 0 {
				t.Errorf("fires on %s at %s: %s", found[0].Object, found[0].Path, found[0].Observed)
			}
		})
	}
}

// findingsOf are the check's findings in its manifest, which must put an object
// of its kinds on the path: a check that is silent for want of one shows nothing.
func findingsOf(t *testing.T, c *Check, which string) []Finding {
	t.Helper()
	name := filepath.Join("testdata", "checks", c.ID+"."+which+".yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r := run1(t, Input{Objects: objects(t, string(data))}, Options{Checks: []string{c.ID}})
	if which == "pass" && r.Coverage.Pass == 0 && !c.Live {
		t.Errorf("%s: nothing was decided: %+v", name, r.Open)
	}
	return r.Findings
}

func TestEveryCheckIsDecidedOnce(t *testing.T) {
	for _, c := range Catalogue() {
		if _, ok := rules()[c.ID]; ok == (c.When != "") && c.Scope != scopeWaiver {
			t.Errorf("%s: has an expression: %v, a rule: %v; it needs one of them", c.ID, c.When != "", ok)
		}
	}
	for id := range rules() {
		if _, ok := Find(id); !ok {
			t.Errorf("there is a rule %s and no check", id)
		}
	}
	if _, err := programs(); err != nil {
		t.Error(err)
	}
	if n := len(Catalogue()); n < 84 {
		t.Errorf("%d checks", n)
	}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  int
		err   string
	}{
		{nil, len(Catalogue()), ""},
		{[]string{"PTH"}, 3, ""},
		{[]string{"pth", "PTH-001", " rty-002 "}, 4, ""},
		{[]string{"RTY-0O1"}, 0, "RTY-001"},
		{[]string{"RTX"}, 0, "RTY"},
		{[]string{"nonsense"}, 0, "groups are RTY"},
		{[]string{strings.Repeat("x", 1<<16)}, 0, "groups are"},
	} {
		list, err := Select(c.names)
		if len(list) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("Select(%.20q) = %d checks, %.200v", c.names, len(list), err)
		}
	}
}

const oneCheck = `group: RTY
title: Retries
about: them
checks:
  - id: RTY-001
    title: a
    severity: high
    scope: object
    confidence: high
    kinds: [Service]
    resources: [Service]
    when: "true"
    field: a
    expected: a
    condition: a
    why: a
    fix: a
    patch: "a: b"
    causes: [a]
    sources: [S]
`

// The catalogue says what is wrong with it.
func TestReadCatalogue(t *testing.T) {
	for _, c := range []struct{ old, new, err string }{
		{"", "", ""},
		{"title: Retries", "tilte: Retries", "tilte"},
		{"id: RTY-001", "id: TMO-001", "not RTY-NNN"},
		{"id: RTY-001", "id: RTY-1", "not RTY-NNN"},
		{"severity: high", "severity: worst", "worst"},
		{"scope: object", "scope: all", "scope"},
		{"scope: object", "scope: graph", "the others have a rule"},
		{"confidence: high", "confidence: sure", "sure"},
		{"kinds: [Service]", "kinds: [Ingress]", "kind Ingress is not among its resources"},
		{"kinds: [Service]", "kinds: []", "kinds"},
		{"resources: [Service]", "resources: [Servcie]", "Servcie"},
		{`when: "true"`, `when: ""`, "the others have a rule"},
		{"why: a", "why: ' '", "why is empty"},
		{"fix: a", "fix: ''", "fix is empty"},
		{"expected: a", "expected: ''", "expected is empty"},
		{"condition: a", "condition: ''", "condition is empty"},
		{`patch: "a: b"`, `patch: "a: ["`, "patch"},
		{"causes: [a]", "causes: []", "causes"},
		{"sources: [S]", "sources: [T]", "source T is unknown"},
		{"group: RTY", "group: TMO", "holds group"},
	} {
		f := fstest.MapFS{
			"checks/RTY.yaml":     {Data: []byte(strings.Replace(oneCheck, c.old, c.new, 1))},
			"checks/sources.yaml": {Data: []byte("S: {title: a, url: 'https://a'}")},
		}
		_, err := readCatalogue(f)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
	_, again, _ := strings.Cut(oneCheck, "checks:\n")
	for _, c := range []struct{ id, err string }{{"RTY-001", "there twice"}, {"RTY-000", "order of ids"}} {
		f := fstest.MapFS{
			"checks/RTY.yaml":     {Data: []byte(oneCheck + strings.Replace(again, "RTY-001", c.id, 1))},
			"checks/sources.yaml": {Data: []byte("S: {title: a, url: 'https://a'}")},
		}
		if _, err := readCatalogue(f); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", c.id, err)
		}
	}
}
