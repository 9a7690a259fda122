package peer

import (
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// assumedLiteLLM is what is taken for granted where a LiteLLM file says nothing.
const assumedLiteLLM = "num_retries is not set; its documentation gives 0 and 2, 2 is assumed"

// Layers are the places on a route through the gateway that repeat calls. A route
// that is not in the file has none.
func (g *Gateway) Layers(route string) []layers.Layer {
	r, ok := g.Find(route)
	if !ok {
		return nil
	}
	l := layers.Layer{
		Name: g.Product + " " + r.Name, Product: g.Product, Attempts: map[layers.Class]int{},
		Hands: layers.Proxied(), Fallbacks: g.After(route), Budget: r.Retry.Budget.V, Line: r.Retry.Spot.Line, File: r.Retry.Spot.File,
	}
	for c, v := range r.Retry.Attempts {
		switch {
		case v.Known():
			l.Attempts[c] = v.V
		case g.Product == LiteLLM:
			l.Attempts[c], l.Assumed = 3, assumedLiteLLM
		default:
			l.Attempts[c], l.Assumed = 1, "the number of attempts is no number in the file; 1 is assumed"
		}
	}
	if t := r.Timers.PerTry; t.Known() {
		l.PerTry = t.V
	}
	l.Timeout = across(r)
	return []layers.Layer{l}
}

// across is the limit of a whole call, 0 for none or unknown.
func across(r Route) time.Duration {
	for _, t := range []Value[time.Duration]{r.Timers.Across, r.Timers.Total} {
		if t.Known() && t.V > 0 {
			return t.V
		}
	}
	return 0
}

// maxFallbacks is the depth at which LiteLLM stops.
const maxFallbacks = 5

// After counts the routes that are tried after a route, theirs included, each
// once on a way.
func (g *Gateway) After(route string) int {
	return min(g.after(route, map[string]bool{}, 0), 100)
}

func (g *Gateway) after(route string, seen map[string]bool, depth int) int {
	r, ok := g.Find(route)
	if !ok || seen[route] || depth >= maxFallbacks {
		return 0
	}
	seen[route] = true
	defer delete(seen, route)
	n := 0
	for _, f := range r.Fallbacks {
		if n >= 100 {
			break
		}
		if !seen[f.To] {
			n += 1 + g.after(f.To, seen, depth+1)
		}
	}
	return n
}

// Loop is a chain of fallbacks that leads back to the route, nil for none.
func (g *Gateway) Loop(route string) []string {
	return g.loop(route, route, map[string]bool{})
}

func (g *Gateway) loop(start, at string, seen map[string]bool) []string {
	if seen[at] {
		return nil
	}
	seen[at] = true
	r, _ := g.Find(at)
	for _, f := range r.Fallbacks {
		if f.To == start {
			return []string{at, start}
		}
		if rest := g.loop(start, f.To, seen); rest != nil {
			return append([]string{at}, rest...)
		}
	}
	return nil
}
