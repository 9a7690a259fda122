package app

import (
	"reflect"
	"testing"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/rollout"
)

// TestDoses: all stages of a rollout are one change, each with how far it reaches, and
// what takes it back says so.
func TestDoses(t *testing.T) {
	share := []rollout.Stage{{Share: 0.01}, {Share: 1}}
	regions := []rollout.Stage{{Share: 1, Regions: []string{"a"}}, {Share: 1, Regions: []string{"a", "b"}}, {Share: 1}}
	for name, c := range map[string]struct {
		status rollout.Status
		want   []detect.Change
	}{
		"first share":   {rollout.Status{State: rollout.Baking, Stages: share}, []detect.Change{{What: "configuration v2", Dose: 0.01}}},
		"through":       {rollout.Status{State: rollout.Promoted, Stage: 1, Stages: share}, []detect.Change{{What: "configuration v2", Dose: 1}}},
		"first region":  {rollout.Status{State: rollout.Baking, Stages: regions}, []detect.Change{{What: "configuration v2", Scope: "a"}}},
		"second region": {rollout.Status{State: rollout.Baking, Stage: 1, Stages: regions}, []detect.Change{{What: "configuration v2", Scope: "b"}}},
		"everywhere":    {rollout.Status{State: rollout.Baking, Stage: 2, Stages: regions}, []detect.Change{{What: "configuration v2", Dose: 1}}},
		"taken back":    {rollout.Status{State: rollout.Reverted, Stages: share}, []detect.Change{{What: "rollback of configuration v2", Reverts: "configuration v2"}}},
	} {
		if got := doses("v2", c.status); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
