package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/peer"
	"github.com/hourthree/hourthree/internal/topology"
)

// The bounds of the checks on gateways.
const (
	mostAttempts  = 3   // calls of one call after it was sent
	mostConnects  = 4   // tries to connect; nothing has run yet
	mostTogether  = 6   // with the fallbacks
	mostParallel  = 10  // repeats at once where there is no budget
	mostBudget    = 0.2 // of calls may be repeats
	leastBackoff  = 25 * time.Millisecond
	longestSilent = 5 * time.Minute // before a call that hangs is cut
	longestQueue  = time.Minute
	mostPending   = 10_000
	highestRatio  = 0.8
)

// gatewayRules are the checks of group GWY.
func gatewayRules() map[string]Rule {
	return map[string]Rule{
		"GWY-001": eachRoute("GWY-001", repeatsCapacity),
		"GWY-002": eachRoute("GWY-002", noBudget),
		"GWY-003": eachRoute("GWY-003", manyAttempts),
		"GWY-004": eachRoute("GWY-004", multiplied),
		"GWY-005": eachRoute("GWY-005", atOnce),
		"GWY-006": eachRoute("GWY-006", hangs),
		"GWY-007": eachRoute("GWY-007", doesNotFit),
		"GWY-008": eachRoute("GWY-008", noBreaker),
		"GWY-009": eachRoute("GWY-009", blindBreaker),
		"GWY-010": eachRoute("GWY-010", oneTarget),
		"GWY-011": eachRoute("GWY-011", oneDomain),
		"GWY-012": eachRoute("GWY-012", fallbackLoop),
		"GWY-013": eachRoute("GWY-013", unlimited),
		"GWY-014": eachRoute("GWY-014", unboundedWait),
		"GWY-015": eachRoute("GWY-015", repeatsPost),
		"GWY-016": writtenKeys,
		"GWY-017": eachRoute("GWY-017", noLastAnswer),
		"GWY-018": eachRoute("GWY-018", noQueue),
	}
}

// view is a route that a check looks at.
type view struct {
	topology.Reading
	peer.Route
	graph *evidence
}

// mark is what a check finds on a route.
type mark struct {
	at   peer.Spot
	saw  string
	open string // why it cannot be decided
	once bool   // it is the same for all routes: said of the first
}

func fails(at peer.Spot, format string, args ...any) []mark {
	return []mark{{at: at, saw: fmt.Sprintf(format, args...)}}
}

func cannotTell(format string, args ...any) []mark {
	return []mark{{open: fmt.Sprintf(format, args...)}}
}

// eachRoute makes a rule of a look at one route. Routes that nothing shows to
// lead to a model are left out, and products that the check is not for. What is
// wrong is wrong, whatever else could not be told.
func eachRoute(id string, look func(view) []mark) Rule {
	return func(g *evidence, o *manifest.Object) []Hit {
		var hits []Hit
		open := ""
		for _, r := range g.Readings(o) {
			if c, ok := Find(id); !ok || !slices.Contains(c.Kinds, r.Gateway.Product) {
				continue
			}
			said := map[string]int{} // by line: where the hit is
			more := map[int]int{}    // routes that a hit is of too
			for _, route := range r.Gateway.Routes {
				if route.Models == "" {
					continue
				}
				for _, m := range look(view{r, route, g}) {
					if m.open != "" {
						open = cmp.Or(open, "route "+route.Name+": "+m.open)
						continue
					}
					hits = addHit(hits, said, more, hitOf(r, route, m), m.once)
				}
			}
			for i, n := range more {
				hits[i].Observed += fmt.Sprintf(" (and of %s)", plural(n, "more route", "more routes"))
			}
		}
		if len(hits) == 0 && open != "" {
			return []Hit{{Open: Unreadable, Observed: open}}
		}
		return hits
	}
}

// addHit takes one setting that bears on several routes as one hit.
func addHit(hits []Hit, said map[string]int, more map[int]int, h Hit, once bool) []Hit {
	key := fmt.Sprint(h.Line, h.Path)
	if once {
		key = ""
	}
	if i, ok := said[key]; ok {
		hits[i].Container = ""
		more[i]++
		return hits
	}
	said[key] = len(hits)
	return append(hits, h)
}

// hitOf places a mark. What stands in another file is shown at the route, and
// the other place beside it.
func hitOf(r topology.Reading, route peer.Route, m mark) Hit {
	at, saw := m.at, m.saw
	if at.File != "" {
		saw = fmt.Sprintf("%s (%s:%d)", saw, at.File, at.Line)
		at = route.Spot
	}
	return Hit{Container: route.Name, Path: r.At(at.Path), Line: at.Line, Observed: saw}
}

// sent are the failures after which a repeat is a second call of a model.
var sent = []layers.Class{layers.Reset, layers.Server, layers.Capacity}

func repeatsCapacity(v view) []mark {
	n := v.Retry.Attempts[layers.Capacity]
	switch {
	case covered(v):
		return nil
	case !n.Known():
		return cannotTell("the number of attempts is not in the file")
	case n.V < 2:
		return nil
	}
	if domains, known := peer.Domains(v.Targets); v.Retry.Moves && known && len(domains) >= n.V {
		return nil // each repeat is at another provider or region
	}
	return fails(n.Spot, "429 is among what is repeated, %s", callsOf(n.V))
}

func callsOf(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// covered says that RTY-019 or RTY-020 reports the retries of the configuration.
func covered(v view) bool {
	for _, id := range []string{"RTY-019", "RTY-020"} {
		if c, ok := Find(id); ok && slices.Contains(c.Kinds, v.Gateway.Product) && v.graph.fires(c, v.Doc) {
			return true
		}
	}
	return false
}

// fires says whether the expression of a check holds for a gateway's document.
func (g *evidence) fires(c *Check, doc *manifest.Object) bool {
	all, err := programs()
	if err != nil || doc.Root == nil {
		return false
	}
	out, _, err := all[c.ID].when.Eval(&scene{g, doc, element{it: doc.Root}})
	return err == nil && out.Value() == true
}

func noBudget(v view) []mark {
	if v.Gateway.Product == peer.Hourthree {
		if b := v.Retry.Budget; b.Known() && b.V > mostBudget {
			return fails(b.Spot, "%.0f%% of calls may be repeats", b.V*100)
		}
		return nil
	}
	most, known := v.Retry.Most(sent...)
	switch {
	case most.V < 2 && known:
		return nil
	case !v.Retry.Budget.Known():
		return cannotTell("the cluster that it leads to is not in the file")
	case v.Retry.Budget.V > 0 || !v.Retry.Parallel.Known() || v.Retry.Parallel.V <= mostParallel:
		return nil
	}
	return fails(v.Retry.Parallel.Spot, "no budget, %d repeats at once", v.Retry.Parallel.V)
}

func manyAttempts(v view) []mark {
	if covered(v) {
		return nil
	}
	most, known := v.Retry.Most(sent...)
	if most.V > mostAttempts {
		return fails(most.Spot, "%s after %s", callsOf(most.V), strings.Join(v.Retry.On, ", "))
	}
	connects, sure := v.Retry.Most(layers.Connect)
	if connects.V > mostConnects {
		m := fails(connects.Spot, "%s after a failed connection", callsOf(connects.V))
		m[0].once = connects.State == peer.Default // what is not set is the same for all
		return m
	}
	if !known || !sure {
		return cannotTell("the number of attempts is not in the file")
	}
	return nil
}

func multiplied(v view) []mark {
	after := v.Gateway.After(v.Name)
	most, known := v.Retry.Most(sent...)
	if after == 0 {
		return nil
	}
	if most.V > 1 && most.V*(1+after) > mostTogether {
		return fails(most.Spot, "up to %s at each of %d places: %d", callsOf(most.V), 1+after, most.V*(1+after))
	}
	if !known {
		return cannotTell("the number of attempts is not in the file")
	}
	return nil
}

func atOnce(v view) []mark {
	most, known := v.Retry.Most(sent...)
	switch {
	case v.Retry.Moves || known && most.V < 3:
		return nil
	case !known || !v.Retry.Backoff.Known():
		return cannotTell("the number of attempts or the wait between them is not in the file")
	case v.Retry.Backoff.V >= leastBackoff:
		return nil
	}
	return fails(v.Retry.Backoff.Spot, "%s, the first after %v", callsOf(most.V), v.Retry.Backoff.V)
}

// silence is how long a call that hangs is waited for, 0 for ever. Its place is
// that of the limit, else of one that is set to none, else of the first that
// could be set.
func silence(t peer.Timers) (shortest peer.Value[time.Duration], known bool) {
	known = true
	for _, v := range []peer.Value[time.Duration]{t.Total, t.Idle, t.PerTry, t.Across} {
		switch {
		case !v.Known():
			known = known && v.Spot.Line == 0 // without a place the product has none
		case v.V > 0:
			if shortest.V == 0 || v.V < shortest.V {
				shortest = v
			}
		case shortest.V == 0 && (shortest.State == peer.Unknown || v.State == peer.Set && shortest.State != peer.Set):
			shortest = v
		}
	}
	return shortest, known
}

func hangs(v view) []mark {
	s, known := silence(v.Timers)
	switch {
	case s.V > 0 && s.V <= longestSilent:
		return nil
	case !known:
		return cannotTell("a time limit is no number in the file")
	case s.V == 0:
		return fails(s.Spot, "no limit")
	}
	return fails(s.Spot, "%v", s.V)
}

func doesNotFit(v view) []mark {
	n := v.Retry.Attempts[layers.Reset]
	total, per := v.Timers.Total, v.Timers.PerTry
	if v.Gateway.Product == peer.Nginx {
		total, per = v.Timers.Across, v.Timers.Idle
	}
	switch {
	case n.Known() && n.V < 2 || total.Known() && total.V == 0:
		return nil
	case !n.Known() || !total.Known() || !per.Known():
		return cannotTell("the attempts or the time limits are no numbers in the file")
	case per.V == 0:
		return fails(per.Spot, "%s within %v, no limit of one", callsOf(n.V), total.V)
	case time.Duration(n.V)*per.V > total.V:
		return fails(per.Spot, "%d x %v do not fit into %v", n.V, per.V, total.V)
	}
	return nil
}

func noBreaker(v view) []mark {
	switch {
	case !v.Breaker.Kind.Known():
		return cannotTell("whether a failing target is taken out is not in the file")
	case v.Breaker.Kind.V != peer.None || v.Breaker.Hosts < 2 && !v.More:
		return nil
	}
	return fails(v.Breaker.Kind.Spot, "none")
}

func blindBreaker(v view) []mark {
	b := v.Breaker
	if !b.Kind.Known() {
		return cannotTell("how failures are counted is not in the file")
	}
	switch {
	case b.Kind.V == peer.None:
		return nil // GWY-008
	case b.Blind != "":
		return fails(b.Kind.Spot, "does not count %s", b.Blind)
	case v.Gateway.Product == peer.Nginx:
		return nil // counts within a time, whatever succeeds between
	case b.Hosts < 2 && !v.More:
		return nil
	case b.Kind.V == peer.Consecutive:
		return fails(b.Kind.Spot, "failures in a row")
	case b.MinHosts.Known() && b.Hosts > 0 && !v.More && b.Hosts < b.MinHosts.V:
		return fails(b.MinHosts.Spot, "the share counts from %d hosts, there are %d", b.MinHosts.V, b.Hosts)
	case b.Threshold.Known() && b.Threshold.V > highestRatio:
		return fails(b.Threshold.Spot, "opens at %.0f%% of failures", b.Threshold.V*100)
	}
	return nil
}

func oneTarget(v view) []mark {
	if len(v.Targets) != 1 || v.More || len(v.Fallbacks) > 0 {
		if len(v.Targets) == 0 {
			return cannotTell("its targets are not in the file")
		}
		return nil
	}
	t := v.Targets[0]
	if t.Host != "" && !peer.One(t.Host) && t.Provider == "" {
		return cannotTell("the name %s may stand for several targets", t.Host)
	}
	return fails(t.Spot, "%s only", cmp.Or(t.Host, t.Name, t.Provider))
}

func oneDomain(v view) []mark {
	targets := slices.Clone(v.Targets)
	for _, f := range v.Fallbacks {
		if r, ok := v.Gateway.Find(f.To); ok {
			targets = append(targets, r.Targets...)
		}
	}
	if len(targets) < 2 || v.More {
		return nil
	}
	domains, known := peer.Domains(targets)
	switch {
	case len(domains) > 1:
		return nil
	case !known:
		return cannotTell("where its targets are is not in the file")
	}
	return fails(v.Targets[0].Spot, "all %d targets: %s", len(targets), domains[0])
}

// fallbackLoop says each loop once, of the first of its names.
func fallbackLoop(v view) []mark {
	loop := v.Gateway.Loop(v.Name)
	if loop == nil || slices.Min(loop) != v.Name {
		return nil
	}
	at := v.Spot
	for _, f := range v.Fallbacks {
		if f.To == loop[1] {
			at = f.Spot
		}
	}
	return fails(at, "%s", strings.Join(loop, " -> "))
}

func unlimited(v view) []mark {
	if v.Gateway.Open.V {
		return []mark{{at: v.Gateway.Open.Spot, saw: "whoever reaches the address is served", once: true}}
	}
	switch {
	case !v.Limits.Any.Known():
		return cannotTell("whether calls are limited is not in the file")
	case !v.Limits.Any.V:
		return []mark{{at: v.Limits.Spot, saw: "no limit", once: true}}
	case v.Limits.Only != "":
		return []mark{{at: v.Limits.Spot, saw: "only " + v.Limits.Only}}
	}
	return nil
}

func unboundedWait(v view) []mark {
	b := v.Bounds
	switch v.Gateway.Product {
	case peer.Envoy:
		if b.Pending.Known() && b.Pending.V > mostPending {
			return fails(b.Pending.Spot, "%d requests may wait", b.Pending.V)
		}
		if !b.Pending.Known() {
			return cannotTell("the cluster or its bound is not in the file")
		}
	case peer.HAProxy:
		switch {
		case isNone(b.Connections):
			return fails(b.Connections.Spot, "no maxconn: a server is sent whatever comes")
		case b.Wait.Known() && (b.Wait.V == 0 || b.Wait.V > longestQueue):
			return fails(b.Wait.Spot, "waits %s in the queue", forEver(b.Wait.V))
		}
	case peer.LiteLLM:
		if isNone(b.Pending) {
			return []mark{{at: b.Pending.Spot, saw: "no bound on calls at once", once: true}}
		}
	case peer.Bifrost:
		if b.Wait.Known() && b.Wait.V == 0 {
			return []mark{{at: b.Wait.Spot, saw: "callers wait for room in a full queue", once: true}}
		}
	}
	return nil
}

// isNone says whether a bound is known to be none.
func isNone(v peer.Value[int]) bool { return peer.Is(v, 0) }

func forEver(d time.Duration) string {
	if d == 0 {
		return "for ever"
	}
	return d.String()
}

func repeatsPost(v view) []mark {
	most, _ := v.Retry.Most(sent...)
	if !peer.Is(v.Retry.Repeated, true) || most.V < 2 {
		return nil
	}
	return fails(v.Retry.Repeated.Spot, "%s", strings.Join(v.Retry.On, " "))
}

// writtenKeys never shows what stands there.
func writtenKeys(g *evidence, o *manifest.Object) []Hit {
	var hits []Hit
	for _, r := range g.Readings(o) {
		if topology.LeadsToModels([]topology.Reading{r}) == "" {
			continue
		}
		for _, s := range r.Gateway.Secrets {
			hits = append(hits, Hit{Path: r.At(s.Path), Line: s.Line, Observed: "a credential as plain text"})
		}
	}
	return hits
}

func noLastAnswer(v view) []mark {
	if peer.Is(v.Degraded, false) {
		return fails(v.Degraded.Spot, "not set")
	}
	return nil
}

func noQueue(v view) []mark {
	switch b := v.Bounds; {
	case isNone(b.Pending):
		return []mark{{at: b.Pending.Spot, saw: "length 0", once: true}}
	case peer.Is(b.Wait, 0):
		return []mark{{at: b.Wait.Spot, saw: "wait 0", once: true}}
	}
	return nil
}
