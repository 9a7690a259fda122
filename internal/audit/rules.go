package audit

import (
	"maps"
	"sync"
)

// rules are the checks in Go, by id: one map for each file of them.
var rules = sync.OnceValue(func() map[string]Rule {
	all := map[string]Rule{}
	for _, m := range append(graphRules(), gatewayRules()) {
		maps.Copy(all, m)
	}
	return all
})
