package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/retrypath"
)

var pathRules = map[string]Rule{"PTH-001": tooManyAttempts, "PTH-002": repeatedTwice, "PTH-003": limitsNotNested}

// graphRules are the rules in Go over the edges of a graph, by the ids of their
// checks.
func graphRules() []map[string]Rule {
	return []map[string]Rule{istioRules, routeRules, workloadRules, networkRules, alertRules, pathRules}
}

func digits(i int) string { return strconv.Itoa(i) }

// tooManyAttempts: one call can become more than is allowed.
func tooManyAttempts(g *evidence, o *manifest.Object) []Hit {
	most := g.opt.MaxAttempts
	var hits []Hit
	for _, p := range g.paths().Of(o) {
		if p.Worst.Calls <= most {
			continue
		}
		observed := fmt.Sprintf("%d calls of one after %s: %s", p.Worst.Calls, p.Worst.Class, p.Formula())
		if len(p.Worst.Budgets) > 0 {
			observed += fmt.Sprintf("; %s for each in the long run, by the budget of %s", retrypath.Number(p.Worst.Steady), strings.Join(p.Worst.Budgets, ", "))
		}
		h := hitOn(p, observed)
		h.Expected = fmt.Sprintf("at most %d", most)
		hits = append(hits, h)
	}
	return onePerPlace(hits)
}

// repeatedTwice: two layers repeat after the same failure. With an unknown client
// only layers that were read count.
func repeatedTwice(g *evidence, o *manifest.Object) []Hit {
	var hits []Hit
	for _, p := range g.paths().Of(o) {
		if twice := twice(p); twice != "" {
			hits = append(hits, hitOn(p, "repeated "+twice))
		}
	}
	return onePerPlace(hits)
}

// twice says which layers repeat a class that another repeats too, of those that
// an overload shows as; "" for none.
func twice(p retrypath.Path) string {
	var classes, by []string
	for _, product := range p.Products {
		repeats := product.Repeats
		if !p.Known && len(repeats) > 0 {
			repeats = repeats[1:]
		}
		if len(repeats) < 2 || product.Class != layers.Server && product.Class != layers.Capacity {
			continue
		}
		text := "by " + strings.Join(repeats, " and by ")
		if n := len(by); n > 0 && by[n-1] == text {
			classes[n-1] += " and " + string(product.Class)
			continue
		}
		classes, by = append(classes, "after "+string(product.Class)), append(by, text)
	}
	for i := range by {
		classes[i] += " " + by[i]
	}
	return strings.Join(classes, "; ")
}

// hitOn is a finding on the workload where a path begins, with its layers.
func hitOn(p retrypath.Path, observed string) Hit {
	h := Hit{Container: p.Container, Path: "spec.template.spec.containers", Observed: observed}
	if len(p.Steps()) > 0 && p.Steps()[0].Object == p.Start() {
		h.Path = p.Steps()[0].Path
	}
	for i, s := range p.Steps() {
		if s.Object == nil {
			continue
		}
		note := fmt.Sprintf("%s: %s", s.Name, retrypath.AttemptsText(p.Layers[i]))
		if s.Assumed != "" {
			note += " (" + s.Assumed + ")"
		}
		h.Related = append(h.Related, Related{Object: s.Object, Path: s.Path, Note: note})
	}
	return h
}

// onePerPlace keeps the first finding of each place: paths are sorted, and those
// that end at other targets have mostly the same layers.
func onePerPlace(hits []Hit) []Hit {
	var kept []Hit
	for _, h := range hits {
		if !slices.ContainsFunc(kept, func(k Hit) bool { return k.Path == h.Path && k.Container == h.Container }) {
			kept = append(kept, h)
		}
	}
	return kept
}

// limitsNotNested: a limit inside is longer than the one outside. Of a policy it
// is asked together with the routes that it is attached to, of a workload with
// the path that begins there.
func limitsNotNested(g *evidence, o *manifest.Object) []Hit {
	if o.Kind == "BackendTrafficPolicy" {
		return policyNotNested(g, o)
	}
	var hits []Hit
	for _, p := range g.paths().Of(o) {
		for i, f := range p.Faults() {
			if policy := p.Steps()[f.Inner].Object; policy != nil && policy.Kind == "BackendTrafficPolicy" && p.Steps()[f.Outer].Object != o {
				continue // reported on the policy
			}
			if f.Assumed {
				continue // not proven
			}
			if in := p.Steps()[f.Inner].Object; in != nil && f.Inner == f.Outer && in.Kind == "VirtualService" {
				continue // its tries do not fit its own limit: RTY-003 says that of the object itself
			}
			h := hitOn(p, p.Nesting[i].Text)
			h.Path = p.Steps()[f.Inner].Path
			if p.Steps()[f.Inner].Object != o {
				h.Path = p.Steps()[0].Path
			}
			hits = append(hits, h)
		}
	}
	return onePerPlace(hits)
}

func policyNotNested(g *evidence, o *manifest.Object) []Hit {
	for _, route := range routesOf(g, o) {
		for i, rule := range fields.ListAt(route.Root, "spec.rules") {
			steps := g.paths().EnvoyGateway(route, i, rule)
			stack := make([]layers.Layer, len(steps))
			for n, s := range steps {
				stack[n] = s.Layer
			}
			for _, f := range layers.Nesting(stack) {
				if steps[f.Inner].Object != o || f.Assumed {
					continue
				}
				h := Hit{Path: "spec.timeout.http.requestTimeout", Observed: f.Text(stack)}
				if fields.ValueAt(o.Root, h.Path) == nil || f.Tries > 0 {
					h.Path = "spec.retry.perRetry.timeout"
				}
				if outer := steps[f.Outer]; outer.Object != o {
					h.Related = []Related{{Object: outer.Object, Path: outer.Path, Note: "the limit outside"}}
				}
				return []Hit{h}
			}
		}
	}
	return nil
}

// routesOf are the routes that a policy may bear on: those that it is attached
// to, and those of the Gateways that it is attached to.
func routesOf(g *evidence, policy *manifest.Object) []*manifest.Object {
	var list []*manifest.Object
	for _, k := range g.TargetsOf(policy) {
		for _, kind := range []string{"HTTPRoute", "AIGatewayRoute"} {
			if o := g.Get(kind, k.Namespace, k.Name); o != nil && k.Kind == "HTTPRoute" {
				list = append(list, o)
				break
			}
		}
		if k.Kind == "Gateway" {
			list = append(list, g.Edges().RoutesOf[k]...)
		}
	}
	return list
}
