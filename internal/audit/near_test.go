package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// near is one case of testdata/near: documents that look like a condition.
type near struct {
	name string
	want []string // ids that fire, and no other of the group; none for silent
	text string
}

// nearOf reads a group's cases. Each has the file's base before it.
func nearOf(t *testing.T, file string) []near {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	base, rest, _ := strings.Cut(string(data), "# case: ")
	var list []near
	for _, part := range strings.Split(rest, "# case: ") {
		head, text, _ := strings.Cut(part, "\n")
		name, want, ok := strings.Cut(head, " -> ")
		if !ok {
			t.Fatalf("%s: case %q says nothing of what is expected", file, head)
		}
		n := near{name: name, text: base + "---\n" + text}
		if want != "silent" {
			n.want = strings.Fields(want)
		}
		list = append(list, n)
	}
	return list
}

// What only looks like a condition is silent, and what only looks harmless fires.
func TestNearMisses(t *testing.T) {
	names, err := filepath.Glob("testdata/near/*.yaml")
	if err != nil || len(names) != len(groupOrder)-3 { // paths, gateways and waivers have tests of their own
		t.Fatal(names, err)
	}
	for _, file := range names {
		group := strings.TrimSuffix(filepath.Base(file), ".yaml")
		cases := nearOf(t, file)
		if len(cases) < 10 {
			t.Errorf("%s has %d cases", file, len(cases))
		}
		for _, c := range cases {
			t.Run(group+"/"+c.name, func(t *testing.T) {
				r := run1(t, Input{Objects: objects(t, c.text)}, Options{Checks: []string{group}})
				var fired []string
				for _, f := range r.Findings {
					fired = append(fired, f.ID)
				}
				fired = slices.Compact(slices.Sorted(slices.Values(fired)))
				if !slices.Equal(fired, c.want) {
					t.Errorf("fired %v, want %v; %+v", fired, c.want, r.Open)
				}
			})
		}
	}
}
