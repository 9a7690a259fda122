package layers

import (
	"math"
	"math/rand"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func of(t testing.TB, list []Product, c Class) Product {
	t.Helper()
	for _, p := range list {
		if p.Class == c {
			return p
		}
	}
	t.Fatalf("no product for %s", c)
	return Product{}
}

func TestKnownStacks(t *testing.T) {
	sdk := func(n int) Layer { return Layer{Name: "SDK", Attempts: Same(n)} }
	envoy := Layer{
		Name: "Envoy", Attempts: map[Class]int{Connect: 6, Reset: 1, Server: 6}, Hands: Proxied(),
	}
	quiet := Layer{Name: "Envoy", Hands: Proxied()}
	litellm := func(n int) Layer { return Layer{Name: "LiteLLM", Attempts: Same(n), Hands: Proxied()} }
	nginx := Layer{Name: "nginx", Attempts: map[Class]int{Connect: 3}, Hands: Proxied()}
	for _, c := range []struct {
		name                          string
		path                          []Layer
		connect, reset, server, limit int
		repeated                      []Class
	}{
		{"nothing", nil, 1, 1, 1, 1, nil},
		{"seven by seven", []Layer{sdk(7), litellm(7)}, 49, 49, 49, 49, Classes()},
		{"a quiet hop between", []Layer{sdk(7), quiet, litellm(7)}, 49, 49, 49, 49, Classes()},
		{"the everyday stack", []Layer{sdk(3), envoy, litellm(3)}, 54, 54, 54, 9, Classes()},
		{
			"a proxy sees an answer, not the connection behind it",
			[]Layer{nginx, litellm(3)}, 3, 3, 3, 3, nil,
		},
		{
			"its own connection it repeats", []Layer{sdk(2), nginx, {Name: "far", Hands: Proxied()}},
			6, 2, 2, 2, []Class{Connect},
		},
		{"one layer", []Layer{sdk(3)}, 3, 3, 3, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := Multiply(c.path)
			for class, want := range map[Class]int{Connect: c.connect, Reset: c.reset, Server: c.server, Capacity: c.limit} {
				if got := of(t, list, class).Single; got != want {
					t.Errorf("%s: %d calls, want %d", class, got, want)
				}
			}
			if got := Repeated(list); !slices.Equal(got, c.repeated) {
				t.Errorf("repeated %v, want %v", got, c.repeated)
			}
		})
	}
}

func TestFallbacksMultiplyButNotAtOneTarget(t *testing.T) {
	p := of(t, Multiply([]Layer{{Attempts: Same(3)}, {Attempts: Same(2), Fallbacks: 2}}), Server)
	if p.Single != 18 || p.PerTarget != 6 {
		t.Fatalf("%d calls and %d at one target, want 18 and 6", p.Single, p.PerTarget)
	}
}

func TestBudgetBoundsTheSteadyState(t *testing.T) {
	path := []Layer{{Attempts: Same(3)}, {Attempts: Same(6), Budget: 0.2}, {Attempts: Same(1), Budget: 0.2}}
	p := of(t, Multiply(path), Server)
	if p.Single != 18 || math.Abs(p.Steady-3.6) > 1e-9 || !slices.Equal(p.Budgets, []int{1}) {
		t.Fatalf("%d, steady %v, budgets %v; want 18, 3.6 and the middle layer", p.Single, p.Steady, p.Budgets)
	}
}

// A layer that hands out a refusal as a fault of the server makes those outside
// repeat it.
func TestRefusalHandedOutAsFault(t *testing.T) {
	outer := Layer{Attempts: map[Class]int{Server: 5}}
	inner := Layer{Attempts: map[Class]int{Capacity: 2}}
	if p := of(t, Multiply([]Layer{outer, inner}), Capacity); p.Single != 2 {
		t.Fatalf("%d calls while the class survives, want 2", p.Single)
	}
	inner.Hands = map[Class]Class{Capacity: Server}
	p := of(t, Multiply([]Layer{outer, inner}), Capacity)
	if p.Single != 10 || !slices.Equal(p.Repeats, []int{0, 1}) {
		t.Fatalf("%d calls by layers %v when it does not, want 10 by both", p.Single, p.Repeats)
	}
}

func TestWorst(t *testing.T) {
	same := Worst(Multiply([]Layer{{Attempts: Same(3)}}))
	if same.Class != Server {
		t.Errorf("of equal classes %s is named, want 5xx", same.Class)
	}
	if w := Worst(Multiply([]Layer{{Attempts: map[Class]int{Connect: 3, Server: 2}}})); w.Class != Connect || w.Single != 3 {
		t.Errorf("worst is %s with %d, want connect with 3", w.Class, w.Single)
	}
}

func TestNesting(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name string
		path []Layer
		want []Fault
	}{
		{"nested", []Layer{{Timeout: 60 * s}, {Timeout: 50 * s, PerTry: 25 * s, Attempts: Same(2)}}, nil},
		{"inner is longer", []Layer{{Timeout: 60 * s}, {Timeout: 90 * s}}, []Fault{{Outer: 0, Inner: 1, Takes: 90 * s, Limit: 60 * s}}},
		{"equal is nested", []Layer{{Timeout: 60 * s}, {Timeout: 60 * s}}, nil},
		{"unknown is no fault", []Layer{{}, {Timeout: 600 * s}, {}}, nil},
		{
			"tries do not fit", []Layer{{Timeout: 60 * s, PerTry: 30 * s, Attempts: Same(4)}},
			[]Fault{{Takes: 120 * s, Limit: 60 * s, Tries: 4}},
		},
		{"a hundredth is allowed", []Layer{{Timeout: 60 * s, PerTry: 20200 * time.Millisecond, Attempts: Same(3)}}, nil},
		{
			"tries that last longer than can be counted", []Layer{{Timeout: s, PerTry: math.MaxInt64 / 2, Attempts: Same(3)}},
			[]Fault{{Takes: math.MaxInt64, Limit: s, Tries: 3}},
		},
		{
			"tries without a limit of their own", []Layer{{Timeout: 60 * s}, {PerTry: 30 * s, Attempts: Same(4)}},
			[]Fault{{Outer: 0, Inner: 1, Takes: 120 * s, Limit: 60 * s}},
		},
		{
			"the shortest outside counts, over a layer between",
			[]Layer{{Timeout: 30 * s}, {Timeout: 20 * s}, {}, {Timeout: 25 * s, Assumed: "default"}},
			[]Fault{{Outer: 1, Inner: 3, Takes: 25 * s, Limit: 20 * s, Assumed: true}},
		},
		{
			"what is inside must fit one try", []Layer{{Timeout: 100 * s, PerTry: 20 * s, Attempts: Same(3)}, {Timeout: 40 * s}},
			[]Fault{{Outer: 0, Inner: 1, Takes: 40 * s, Limit: 20 * s}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Nesting(c.path); !slices.Equal(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestFaultText(t *testing.T) {
	path := []Layer{{Name: "route", Timeout: time.Minute}, {Name: "policy", Timeout: 90 * time.Second, PerTry: time.Minute, Attempts: Same(2)}}
	var got []string
	for _, f := range Nesting(path) {
		got = append(got, f.Text(path))
	}
	want := []string{"policy: 2 tries of 1m take 2m, its limit is 1m30s", "policy may take 1m30s, route waits 1m"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

var layer = rapid.Custom(func(t *rapid.T) Layer {
	l := Layer{
		Attempts:  map[Class]int{},
		Fallbacks: rapid.IntRange(-1, 4).Draw(t, "fallbacks"),
		Budget:    rapid.SampledFrom([]float64{0, 0, 0.01, 0.2, 1, 3}).Draw(t, "budget"),
		Timeout:   time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "timeout")),
		PerTry:    time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "try")),
	}
	for _, c := range Classes() {
		l.Attempts[c] = rapid.OneOf(rapid.IntRange(-1, 8), rapid.Int()).Draw(t, "attempts")
	}
	return l
})

// translating layers hand out other classes than they see.
var translating = rapid.Custom(func(t *rapid.T) Layer {
	l := layer.Draw(t, "layer")
	l.Hands = rapid.MapOfN(rapid.SampledFrom(Classes()), rapid.SampledFrom(Classes()), 0, 4).Draw(t, "hands")
	return l
})

func TestProductGrowsWithEveryLayer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(translating, 1, 8).Draw(t, "path")
		before := Multiply(path)
		i := rapid.IntRange(0, len(path)-1).Draw(t, "which")
		c := rapid.SampledFrom(Classes()).Draw(t, "class")
		more := slices.Clone(path)
		more[i].Attempts = map[Class]int{}
		for k, v := range path[i].Attempts {
			more[i].Attempts[k] = v
		}
		more[i].Attempts[c] = max(1, min(path[i].Attempts[c], math.MaxInt-1)) + 1
		more[i].Fallbacks = min(max(path[i].Fallbacks, 0), math.MaxInt-1) + rapid.IntRange(0, 1).Draw(t, "one more")
		for k, p := range Multiply(more) {
			b := before[k]
			if p.Single < b.Single || p.PerTarget < b.PerTarget || p.Steady < b.Steady-1e-9*b.Steady {
				t.Fatalf("%s fell from %+v to %+v", p.Class, b, p)
			}
		}
	})
}

func TestProductIsBetweenOneAndMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, p := range Multiply(rapid.SliceOfN(translating, 0, 12).Draw(t, "path")) {
			if p.Single < 1 || p.Single > Most || p.PerTarget < 1 || p.PerTarget > p.Single || p.Steady < 1 || p.Steady > Most {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func TestProductSaturates(t *testing.T) {
	big := Layer{Attempts: Same(math.MaxInt), Fallbacks: math.MaxInt}
	for _, p := range Multiply([]Layer{big, big, big, big}) {
		if p.Single != Most || p.Steady != Most {
			t.Fatalf("%+v, want Most", p)
		}
	}
}

// Without layers that change the class the order does not matter.
func TestProductIsIndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(layer, 0, 8).Draw(t, "path")
		before := Multiply(path)
		other := slices.Clone(path)
		rand.New(rand.NewSource(rapid.Int64().Draw(t, "order"))).Shuffle(len(other), func(i, j int) {
			other[i], other[j] = other[j], other[i]
		})
		for k, p := range Multiply(other) {
			if p.Single != before[k].Single || p.PerTarget != before[k].PerTarget {
				t.Fatalf("%+v in one order, %+v in another", before[k], p)
			}
		}
	})
}

func TestBudgetNeverRaises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(translating, 1, 8).Draw(t, "path")
		free := slices.Clone(path)
		i := rapid.IntRange(0, len(path)-1).Draw(t, "which")
		free[i].Budget = 0
		without := Multiply(free)
		for k, p := range Multiply(path) {
			if p.Steady > without[k].Steady*(1+1e-9) || p.Steady > float64(p.Single)*(1+1e-9) || p.Single != without[k].Single {
				t.Fatalf("%+v with the budget, %+v without", p, without[k])
			}
		}
	})
}

func TestNestingNamesLayersOfThePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(layer, 0, 8).Draw(t, "path")
		for _, f := range Nesting(path) {
			if f.Outer < 0 || f.Outer > f.Inner || f.Inner >= len(path) || f.Takes <= f.Limit || f.Text(path) == "" {
				t.Fatalf("%+v", f)
			}
		}
	})
}
