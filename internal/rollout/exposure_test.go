package rollout

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hourthree/hourthree/internal/event"
	"pgregory.net/rapid"
)

func drawTraffic(t *rapid.T, label string) Traffic {
	out := Traffic{Workloads: map[string]float64{}, Regions: map[string]float64{}}
	for i := range rapid.IntRange(0, 12).Draw(t, label) {
		rate := rapid.Float64Range(0, 50).Draw(t, "rate")
		if rapid.IntRange(0, 4).Draw(t, "idle") == 0 {
			rate = 0
		}
		out.Workloads[fmt.Sprint("w", i)] = rate
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "regions") {
		out.Regions[fmt.Sprint("r", i)] = rapid.Float64Range(0, 50).Draw(t, "region")
	}
	return out
}

// Whoever is exposed stays so, whatever becomes of the traffic; a stage reaches its
// share of the traffic and no more; and the last one everybody.
func TestExposureWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.StringN(1, 8, -1).Draw(t, "version")
		traffic := drawTraffic(t, "workloads")
		e, exposed := &Exposure{}, 0.0
		same := rapid.Bool().Draw(t, "same traffic")
		for _, share := range []float64{0.01, 0.05, 0.25, 0.5, 1} {
			if !same {
				traffic = drawTraffic(t, "later")
			}
			stage := Stage{Share: share}
			old := e
			e = e.widen(version, stage, traffic)
			if again := old.widen(version, stage, traffic); !reflect.DeepEqual(e, again) {
				t.Fatalf("%+v and %+v", e, again)
			}
			var sum, all float64
			for w, rate := range traffic.Workloads {
				sum += rate * e.share(w)
				all += rate
			}
			if same && sum > share*all*(1+1e-6) || all > 0 && len(traffic.Workloads) > 0 && e.rest == 0 && sum < share*all*0.98 {
				t.Fatalf("stage %v exposes %v of %v: %+v", share, sum, all, e)
			}
			for i := range 13 {
				for _, u := range []float64{0, 0.001, 0.02, 0.1, 0.3, 0.6, 0.99} {
					w := fmt.Sprint("w", i)
					if old.Arm(w, u) == event.Candidate && e.Arm(w, u) != event.Candidate {
						t.Fatalf("%s at %v is not exposed any more: %+v, %+v", w, u, old, e)
					}
				}
			}
			exposed = sum
		}
		if e.Arm("never seen", 0.999) != event.Candidate || !e.Reaches("anywhere") {
			t.Fatalf("%+v, %v: the last stage is everything", e, exposed)
		}
	})
}

func TestExposureOfOneWorkload(t *testing.T) {
	e := (&Exposure{}).widen("v", Stage{Share: 0.01}, Traffic{Workloads: map[string]float64{"only": 20}})
	if e.split != "only" || e.part < 0.0099 || e.part > 0.0101 {
		t.Fatalf("%+v", e)
	}
	if e.Arm("only", 0.005) != event.Candidate || e.Arm("only", 0.5) != event.Control || e.Arm("other", 0) != event.Control {
		t.Error("arms")
	}
	var none *Exposure
	if none.Arm("w", 0) != event.NoArm {
		t.Error("without a rollout there is an arm")
	}
}

// The largest come last.
func TestLargestLast(t *testing.T) {
	traffic := Traffic{Workloads: map[string]float64{"huge": 90}}
	for i := range 10 {
		traffic.Workloads[fmt.Sprint("w", i)] = 1
	}
	e := (&Exposure{}).widen("v", Stage{Share: 0.05}, traffic)
	if len(e.whole) != 5 || e.whole["huge"] || e.split == "huge" {
		t.Fatalf("%+v", e)
	}
	if e = e.widen("v", Stage{Share: 0.25}, traffic); len(e.whole) != 10 || e.split != "huge" {
		t.Fatalf("%+v", e)
	}
}

func TestRegionStages(t *testing.T) {
	stages := RegionStages(Traffic{Regions: map[string]float64{"big": 9, "small": 1, "middle": 3}})
	want := []Stage{{1, []string{"small"}}, {1, []string{"small", "middle"}}, {Share: 1}}
	if !reflect.DeepEqual(stages, want) {
		t.Fatalf("%+v", stages)
	}
	if got := RegionStages(Traffic{}); len(got) != 1 || got[0].Share != 1 {
		t.Fatalf("%+v", got)
	}
	e := (&Exposure{}).widen("v", Stage{1, []string{"a"}}, Traffic{})
	if e = e.widen("v", Stage{1, []string{"b"}}, Traffic{}); !e.Reaches("a") || !e.Reaches("b") || e.Reaches("c") {
		t.Errorf("a region is taken back: %+v", e)
	}
	e = (&Exposure{}).widen("v", Stage{Share: 0.1}, Traffic{Workloads: map[string]float64{"w": 1}})
	if e = e.widen("v", Stage{1, []string{"b"}}, Traffic{}); !e.Reaches("a") {
		t.Errorf("what was everywhere is in one region: %+v", e)
	}
	e = &Exposure{}
	for i, s := range stages {
		e = e.widen("v", s, Traffic{})
		if !e.Reaches("small") || e.Reaches("middle") != (i > 0) || e.Reaches("big") != (i > 1) {
			t.Fatalf("stage %d: %+v", i, e)
		}
	}
}
