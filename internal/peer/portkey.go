package peer

import (
	"cmp"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// maxNesting bounds targets within targets.
const maxNesting = 16

// readPortkey reads a gateway config: one tree of targets is one route.
func readPortkey(r *reader) {
	root := r.root()
	r.secrets(root, 0)
	p := portkey{r: r}
	walk := p.walk(root, portkeySet{}, 0)
	route := Route{
		Name: r.o.Name, Spot: root.spot(), Models: "is a config of Portkey", Targets: walk.targets,
		Retry: walk.retry, Timers: walk.timers, Breaker: p.breaker(root), Fallbacks: walk.fallbacks, More: walk.more,
	}
	if len(route.Targets) == 0 && !walk.more {
		return
	}
	route.Breaker.Hosts = len(route.Targets)
	if route.More && len(route.Targets) == 0 {
		route.Breaker.Kind = unknown[Kind](root)
	}
	r.add(route)
}

// portkeySet is what a target inherits.
type portkeySet struct{ retry, timeout node }

// portkeyPath is a way through the tree: what is called one after the other.
type portkeyPath struct {
	targets   []Target
	retry     Retry // of the target that repeats most
	timers    Timers
	fallbacks []Fallback
	more      bool // the caller chooses a target
}

type portkey struct{ r *reader }

// walk reads a target and those within it.
func (p portkey) walk(n node, from portkeySet, depth int) portkeyPath {
	if depth > maxNesting {
		p.r.problem(n.spot().Line, "targets are nested deeper than "+strconv.Itoa(maxNesting), "flatten the targets")
		return portkeyPath{}
	}
	if c := n.at("retry"); c.is() {
		from.retry = c
	}
	if c := n.at("request_timeout"); c.is() {
		from.timeout = c
	}
	children := n.at("targets").list()
	if len(children) == 0 {
		return p.leaf(n, from)
	}
	ordered := n.at("strategy", "mode").str() == "fallback"
	var out portkeyPath
	for i, child := range children {
		c := p.walk(child, from, depth+1)
		out.targets, out.more = append(out.targets, c.targets...), out.more || c.more
		if len(out.retry.Attempts) == 0 || worse(c.retry, out.retry) {
			out.retry = c.retry
		}
		if i == 0 || laxer(c.timers.PerTry, out.timers.PerTry) {
			out.timers = c.timers
		}
		switch {
		case ordered && i > 0 && len(c.targets) > 0:
			out.fallbacks = append(append(out.fallbacks, Fallback{To: c.targets[0].Name, Spot: child.spot()}), c.fallbacks...)
		case len(c.fallbacks) > len(out.fallbacks) && !ordered, ordered && i == 0:
			out.fallbacks = c.fallbacks
		}
	}
	return out
}

func worse(a, b Retry) bool {
	x, _ := a.Most(layers.Classes()...)
	y, _ := b.Most(layers.Classes()...)
	return x.V > y.V
}

// laxer says that a waits longer than b, 0 being for ever.
func laxer(a, b Value[time.Duration]) bool {
	return a.Known() && b.V != 0 && (a.V == 0 || a.V > b.V)
}

func (p portkey) leaf(n node, from portkeySet) portkeyPath {
	t := Target{
		Name: n.first("name", "provider", "virtual_key").str(), Provider: n.at("provider").str(), Spot: n.spot(),
		Model: n.at("override_params", "model").str(), Host: hostOf(n.at("custom_host").str()),
		Region: n.first("aws_region", "vertex_region").str(),
	}
	if t.Provider == "azure-openai" {
		t.Provider = "azure"
		if res := n.at("resource_name").str(); res != "" && t.Host == "" {
			t.Host = res + ".openai.azure.com"
		}
	}
	if own, region := locate(t.Host); own != "" {
		t.Provider = own
		if region != "" {
			t.Region = region
		}
	}
	timeout := from.timeout
	if timeout.o == nil {
		timeout = n.at("request_timeout")
	}
	out := portkeyPath{retry: portkeyRetry(n, from.retry), timers: Timers{PerTry: timeout.span(time.Millisecond, 0)}}
	if out.more = t.Name == "" && !n.first("api_key", "custom_host").is(); !out.more {
		t.Name = cmp.Or(t.Name, n.path, "the target")
		out.targets = []Target{t}
	}
	return out
}

func portkeyRetry(n, retry node) Retry {
	if retry.o == nil {
		retry = n.at("retry")
	}
	at := retry.at("attempts")
	count := least(plus(at.count(0), 1), 6)
	out := Retry{Spot: count.Spot, Attempts: attempts(count), Backoff: byDefault(time.Second, retry.spot()), Repeated: byDefault(true, retry.spot())}
	codes := []string{"429", "500", "502", "503", "504"}
	if l := retry.at("on_status_codes"); l.is() {
		codes = nil
		for _, c := range l.list() {
			codes = append(codes, c.str())
		}
		out.Spot = l.spot()
	}
	if count.Known() && count.V == 1 {
		return out
	}
	out.On = codes
	byCode(out.Attempts, count, codes)
	if l := retry.at("on_status_codes"); l.is() && out.Attempts[layers.Capacity].V > 1 {
		v := out.Attempts[layers.Capacity]
		v.Spot = l.spot()
		out.Attempts[layers.Capacity] = v
	}
	out.Spot = count.Spot
	return out
}

// byCode gives a number of attempts to the classes of the codes that are
// repeated. 408 is the gateway's own time-out.
func byCode(m map[layers.Class]Value[int], count Value[int], codes []string) {
	for _, c := range codes {
		switch {
		case c == "429" || c == "529":
			m[layers.Capacity] = count
		case c == "408" || c == "504":
			m[layers.Reset] = count
			if c == "504" {
				m[layers.Server] = count
			}
		case len(c) == 3 && c[0] == '5':
			m[layers.Server] = count
		}
	}
}

// breaker is the circuit breaker of a strategy.
func (p portkey) breaker(root node) Breaker {
	cb := root.at("strategy", "cb_config")
	if !cb.is() {
		cb = root.at("cb_config")
	}
	b := Breaker{Kind: byDefault(None, root.at("strategy", "cb_config").spot())}
	if !cb.is() {
		return b
	}
	b.Kind = set(Consecutive, cb.spot())
	if share, ok := cb.at("failure_threshold_percentage").num(); ok {
		b.Kind, b.Threshold = set(Ratio, cb.spot()), set(share/100, cb.spot())
	}
	return b
}
