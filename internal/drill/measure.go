package drill

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// words are what a criterion may ask of a run. Workloads, targets and the
// gateway's instances ("gateway-1") go by name, "" is all workloads or targets;
// "gateway" is all instances; times are seconds of virtual time, from is included
// and to is not.
type words struct {
	run *Run

	Success  func(workload string, from, to float64) float64             `expr:"success"`      // good answers a logical request
	Whole    func(workload string, from, to float64) float64             `expr:"whole"`        // good and not degraded
	Inbound  func(workload string, from, to float64) float64             `expr:"inbound"`      // calls by clients a logical request
	Amp      func(workload string, from, to float64) float64             `expr:"amp"`          // calls at targets a logical request
	Calls    func(target string, from, to float64) float64               `expr:"calls"`        // at a target
	Peak     func(target string, from, to float64) float64               `expr:"peak_rate"`    // most calls a second in one step
	InFlight func(target string, from, to float64) float64               `expr:"in_flight"`    // most at once
	Refused  func(target string, from, to float64) float64               `expr:"refused"`      // calls the target refused for lack of capacity
	P99      func(workload string, from, to float64) float64             `expr:"p99"`          // ms, the worst step
	Wrong    func(workload string, from, to float64) float64             `expr:"wrong"`        // well-formed and wrong answers a logical request
	Status   func(workload string, status int, from, to float64) float64 `expr:"status"`       // last replies with that status a logical request
	Memory   func(place string, from, to float64) float64                `expr:"memory"`       // most that was held, as a share of the bound
	Crashes  func(place string) float64                                  `expr:"crashes"`      // kills for lack of memory, or by an action
	Opens    func(target string, from, to float64) float64               `expr:"opens"`        // times its breaker opened from closed or ramp
	Outages  func(target string, from, to float64) float64               `expr:"outages"`      // that the contender told apart, with the target or its model in their scope
	Probes   func(target string, from, to float64) float64               `expr:"probes"`       // most calls at once that were made while its breaker was half open
	Opened   func(target string, from float64) float64                   `expr:"opened_after"` // s from from until its breaker opens; inf when never
	Said     func(what string, from float64) float64                     `expr:"said"`         // s from from until the contender reports it; inf when never
	Left     func(target string, from float64) float64                   `expr:"left_after"`   // s from from until a step with at most two calls a second; inf when never
	Back     func(target string, from, share float64) float64            `expr:"back_after"`   // s from from until a step with that share of the calls of the first minute; inf when never
	Rise     func(target string, from, to, over float64) float64         `expr:"rise"`         // most that the rate of calls grew from one stretch of over seconds to the next, as a share of the first minute's
	Warm     func(target string, from float64) float64                   `expr:"warm_after"`   // s from from until a step in which a cold target had all its capacity; inf when never
}

// compile checks an expression, the names in it included.
func (s *Scenario) compile(text string) error {
	tree, err := parser.Parse(text)
	if err != nil {
		return err
	}
	v := &namesIn{scenario: s}
	ast.Walk(&tree.Node, v)
	if v.err != nil {
		return v.err
	}
	_, err = expr.Compile(text, expr.Env(words{}), expr.AsBool())
	return err
}

// namesIn finds the workloads and targets that an expression speaks of.
type namesIn struct {
	scenario *Scenario
	err      error
}

// The words whose name is a workload's, those whose name is a target's and no
// gateway's, and those of these that need one target and not all.
var (
	ofWorkloads = []string{"success", "whole", "inbound", "amp", "p99", "wrong", "status"}
	ofTargets   = []string{"opens", "outages", "probes", "opened_after", "left_after", "back_after", "warm_after"}
	ofOne       = []string{"left_after", "back_after", "warm_after"}
)

// Visit implements ast.Visitor.
func (v *namesIn) Visit(n *ast.Node) {
	c, ok := (*n).(*ast.CallNode)
	if !ok || len(c.Arguments) == 0 {
		return
	}
	word, ok1 := c.Callee.(*ast.IdentifierNode)
	name, ok2 := c.Arguments[0].(*ast.StringNode)
	if ok1 && ok2 && v.err == nil {
		v.err = v.scenario.knows(word.Value, name.Value)
	}
}

// knows checks the name that a word is asked about.
func (s *Scenario) knows(word, name string) error {
	switch {
	case word == "said":
	case name == "":
		if slices.Contains(ofOne, word) {
			return fmt.Errorf("%s needs the name of a target", word)
		}
	case slices.Contains(ofWorkloads, word):
		if !slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Name == name }) {
			return fmt.Errorf("there is no workload %q", name)
		}
	case s.target(name) != nil:
	case slices.Contains(ofTargets, word):
		return fmt.Errorf("there is no target %q", name)
	case !s.gateway(name):
		return fmt.Errorf("there is no target %q, nor a gateway of that name", name)
	}
	return nil
}

// gateway reports that the name is that of the gateway or of an instance.
func (s *Scenario) gateway(name string) bool {
	if s.Gateway == nil {
		return false
	}
	for i := range min(s.Gateway.Instances, mostInstances) {
		if name == gatewayName(i) {
			return true
		}
	}
	return name == gateways
}

// judge evaluates one criterion.
func (s *Scenario) judge(c Criterion, r *Run) Judgement {
	j := Judgement{Name: c.Name, Expr: c.Expr, Needs: c.Needs, Fails: c.Fails}
	env := wordsOf(r)
	program, err := expr.Compile(c.Expr, expr.Env(words{}), expr.AsBool())
	if err == nil {
		var met any
		if met, err = expr.Run(program, env); err == nil {
			j.Met = met.(bool) // AsBool
			j.Value = value(c.Expr, env)
			return j
		}
	}
	j.Err = err.Error()
	return j
}

// value is what stands left of the comparison, where that is a number by
// itself.
func value(text string, env words) string {
	for _, sign := range []string{"<=", ">=", "==", "<", ">"} {
		left, _, ok := strings.Cut(text, sign)
		if !ok {
			continue
		}
		program, err := expr.Compile(left, expr.Env(words{}))
		if err != nil {
			return ""
		}
		out, err := expr.Run(program, env)
		if f, number := out.(float64); err == nil && number {
			return fmt.Sprintf("%.4g", f)
		}
		return ""
	}
	return ""
}

func wordsOf(r *Run) words {
	ratio := func(pick func(Counts) int) func(string, float64, float64) float64 {
		return func(workload string, from, to float64) float64 {
			c := r.counts(workload, from, to)
			return float64(pick(c)) / math.Max(float64(c.Fresh), 1)
		}
	}
	w := words{
		run:     r,
		Success: ratio(func(c Counts) int { return c.Good }),
		Whole:   ratio(func(c Counts) int { return c.Good - c.Degraded }),
		Inbound: ratio(func(c Counts) int { return c.Inbound }),
		Amp:     ratio(func(c Counts) int { return c.Upstream }),
	}
	sum := func(pick func(TargetStep) float64, join func(a, b float64) float64) func(string, float64, float64) float64 {
		return func(target string, from, to float64) (out float64) {
			for _, s := range r.target(target, from, to) {
				out = join(out, pick(s))
			}
			return out
		}
	}
	add := func(a, b float64) float64 { return a + b }
	w.Calls = sum(func(s TargetStep) float64 { return float64(s.Calls) }, add)
	w.Refused = sum(func(s TargetStep) float64 { return float64(s.Refused) }, add)
	w.Peak = sum(func(s TargetStep) float64 { return float64(s.Calls) / r.Step.Seconds() }, math.Max)
	w.InFlight = sum(func(s TargetStep) float64 { return float64(s.InFlight) }, math.Max)
	w.Memory = sum(func(s TargetStep) float64 { return s.Memory }, math.Max)
	w.Probes = sum(func(s TargetStep) float64 { return float64(s.Probing) }, math.Max)
	w.P99 = r.p99
	w.Wrong = ratio(func(c Counts) int { return c.Wrong })
	w.Status = func(workload string, status int, from, to float64) float64 {
		return ratio(func(c Counts) int { return c.Status[status] })(workload, from, to)
	}
	w.Crashes = func(place string) (n float64) {
		for _, t := range r.places(place) {
			n += float64(t.Crashes)
		}
		return n
	}
	w.Opens = r.opens
	w.Outages = r.outages
	w.Opened = func(target string, from float64) float64 {
		for _, t := range r.places(target) {
			for _, m := range t.Moves {
				if at := m.At.Seconds(); m.To == "open" && at >= from {
					return at - from
				}
			}
		}
		return math.Inf(1)
	}
	w.Said = func(what string, from float64) float64 {
		for _, s := range r.Said {
			if at := s.At.Seconds(); s.Text == what && at >= from {
				return at - from
			}
		}
		return math.Inf(1)
	}
	w.Left = func(target string, from float64) float64 {
		if w.Calls(target, from-60, from) == 0 {
			return math.Inf(1) // nobody was there to leave
		}
		return r.first(target, from, func(s TargetStep) bool { return float64(s.Calls) <= 2*r.Step.Seconds() })
	}
	w.Back = func(target string, from, share float64) float64 {
		first := max(60, 2*r.Step.Seconds())
		least := share * w.Calls(target, 0, first) / (first / r.Step.Seconds())
		if least == 0 {
			return math.Inf(1) // there is no traffic to have back
		}
		return r.first(target, from, func(s TargetStep) bool { return float64(s.Calls) >= least })
	}
	w.Rise = func(target string, from, to, over float64) (most float64) {
		usual := w.Calls(target, 0, 60) * over / 60
		end := min(to, float64(r.steps())*r.Step.Seconds())
		for at := max(from, 0); at+2*over <= to && at < end; at += r.Step.Seconds() {
			most = math.Max(most, w.Calls(target, at+over, at+2*over)-w.Calls(target, at, at+over))
		}
		return most / math.Max(usual, 1)
	}
	w.Warm = func(target string, from float64) float64 {
		return r.first(target, from, func(s TargetStep) bool { return s.Calls > 0 && !s.Cold })
	}
	return w
}

// span is the steps from one time to another.
func (r *Run) span(from, to float64, steps int) (lo, hi int) {
	at := func(s float64) int {
		return int(min(max(0, math.Ceil(s/r.Step.Seconds())), float64(steps))) // as a float: it may be beyond any int
	}
	return at(from), max(at(from), at(to))
}

// steps is how many steps the run has.
func (r *Run) steps() (n int) {
	for _, t := range r.Targets {
		n = max(n, len(t.Steps))
	}
	return n
}

func (r *Run) counts(workload string, from, to float64) (sum Counts) {
	for _, w := range r.Workloads {
		if workload == "" || workload == w.Name {
			lo, hi := r.span(from, to, len(w.Steps))
			for _, c := range w.Steps[lo:hi] {
				sum.add(c)
			}
		}
	}
	return sum
}

// gateways begins the names of a gateway's instances, and is all of them.
const gateways = "gateway"

// places are the targets or instances of a name: "" is all targets.
func (r *Run) places(name string) (out []TargetRun) {
	for _, t := range r.Targets {
		if name == "" || name == t.Name {
			out = append(out, t)
		}
	}
	for _, g := range r.Gateways {
		if name == gateways || name == g.Name {
			out = append(out, g)
		}
	}
	return out
}

func (r *Run) target(name string, from, to float64) (out []TargetStep) {
	for _, t := range r.places(name) {
		lo, hi := r.span(from, to, len(t.Steps))
		out = append(out, t.Steps[lo:hi]...)
	}
	return out
}

// opens counts how often a target's breaker opened that was closed, or on its
// way back.
func (r *Run) opens(name string, from, to float64) (n float64) {
	for _, t := range r.places(name) {
		last := map[int]string{}
		for _, m := range t.Moves {
			if at := m.At.Seconds(); m.To == "open" && last[m.Instance] != halfOpen && at >= from && at < to {
				n++
			}
			last[m.Instance] = m.To
		}
	}
	return n
}

// outages counts those that the contender spoke of.
func (r *Run) outages(name string, from, to float64) (n float64) {
	for _, t := range r.places(name) {
		for _, m := range t.Outages {
			if at := m.At.Seconds(); at >= from && at < to {
				n++
			}
		}
	}
	return n
}

func (r *Run) p99(workload string, from, to float64) (worst float64) {
	for _, w := range r.Workloads {
		if workload == "" || workload == w.Name {
			lo, hi := r.span(from, to, len(w.P99))
			for _, ms := range w.P99[lo:hi] {
				worst = math.Max(worst, ms)
			}
		}
	}
	return worst
}

// first is the time from from to the first step of a target that is so.
func (r *Run) first(target string, from float64, so func(TargetStep) bool) float64 {
	for _, t := range r.Targets {
		if t.Name != target {
			continue
		}
		lo, _ := r.span(from, from, len(t.Steps))
		for i, s := range t.Steps[lo:] {
			if so(s) {
				return (time.Duration(lo+i) * r.Step).Seconds() - from
			}
		}
	}
	return math.Inf(1)
}
