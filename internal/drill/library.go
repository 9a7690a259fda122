package drill

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed drills/*.yaml
var files embed.FS

// List is the scenarios that come with the router, by name.
func List() ([]*Scenario, error) {
	entries, err := files.ReadDir("drills")
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, e := range entries {
		data, err := files.ReadFile(path.Join("drills", e.Name()))
		if err != nil {
			return nil, err
		}
		s, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		if s.Name != strings.TrimSuffix(e.Name(), ".yaml") {
			return nil, fmt.Errorf("%s: the scenario's name is %q", e.Name(), s.Name)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Scenario) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
