package incident

import (
	"maps"
	"slices"
)

// Near are the ids nearest to one that is not in the library, best first.
func (l *Library) Near(id string) []string {
	return nearest(id, slices.Sorted(maps.Keys(l.byID)))
}
