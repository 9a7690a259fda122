package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
		if _, ok := rules()[c.ID]; ok == (c.When != "") {
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
