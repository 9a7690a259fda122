package topology

import "testing"

func TestSelects(t *testing.T) {
	labels := map[string]any{"app": "gw", "tier": "llm"}
	for _, c := range []struct {
		name     string
		selector map[string]any
		want     bool
	}{
		{"none", nil, false},
		{"all", map[string]any{}, true},
		{"one of two labels", map[string]any{"matchLabels": map[string]any{"app": "gw", "tier": "shop"}}, false},
		{"both labels", map[string]any{"matchLabels": map[string]any{"app": "gw", "tier": "llm"}}, true},
		{"labels hold and expressions do not", map[string]any{"matchLabels": map[string]any{"app": "gw"}, "matchExpressions": []any{map[string]any{"key": "tier", "operator": "In", "values": []any{"shop"}}}}, false},
		{"in", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "In", "values": []any{"shop", "llm"}}}}, true},
		{"not in, and absent", map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": "NotIn", "values": []any{"a"}}}}, true},
		{"not in", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "NotIn", "values": []any{"llm"}}}}, false},
		{"exists", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "Exists"}}}, true},
		{"does not exist", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "DoesNotExist"}}}, false},
		{"an operator there is not", map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "Near"}}}, false},
		{"what cannot be read", map[string]any{"matchExpressions": "all"}, false},
	} {
		if selects(c.selector, labels) != c.want {
			t.Error(c.name)
		}
	}
}
