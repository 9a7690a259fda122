package audit

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/interpreter"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// maxHits bounds the places of one object that a check reports: more of the same
// say nothing more.
const maxHits = 50

// undecided is why a check could not be decided for an object.
type undecided struct {
	reason Reason
	detail string
}

func (u *undecided) Error() string { return string(u.reason) + ": " + u.detail }

// element is one thing that a check's expression is asked about.
type element struct {
	it        any
	path      string // from the object
	at        string
	container string
	init      bool
}

// decide says where a check's condition holds for an object. An error that is no
// undecided ends the audit.
func (g *evidence) decide(ctx context.Context, c *Check, o *manifest.Object) ([]Hit, error) {
	if c.When == "" {
		return g.rule(c, o)
	}
	all, err := programs()
	if err != nil {
		return nil, err
	}
	list, err := g.elements(o, c.Each)
	if err != nil {
		return nil, &undecided{Unreadable, err.Error()}
	}
	var hits []Hit
	var open error
	var spent uint64
	for _, e := range list {
		if !g.Concerns(o, c.Each, e.it) {
			continue
		}
		s := &scene{g, o, e}
		out, details, err := all[c.ID].when.ContextEval(ctx, s)
		if cost := details.ActualCost(); cost != nil {
			spent += *cost
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case spent > objectLimit:
			return nil, &undecided{TimedOut, tooLarge}
		case err != nil:
			open = failed(err, e.path)
		case out.Value() == true && len(hits) < maxHits:
			hits = append(hits, g.hit(c, all[c.ID].shows, s))
		}
	}
	if len(hits) > 0 { // what is wrong is wrong, whatever else could not be read
		return hits, nil
	}
	return nil, open
}

const tooLarge = "the object is too large to be judged within the bound on work; split it"

// failed is why an expression gave no verdict.
func failed(err error, path string) *undecided {
	var canceled interpreter.EvalCancelledError
	if errors.As(err, &canceled) {
		return &undecided{TimedOut, tooLarge}
	}
	where := ""
	if path != "" {
		where = "in " + path + ": "
	}
	var bad *fields.Mismatch
	if errors.As(err, &bad) {
		return &undecided{Unreadable, where + bad.Error()}
	}
	return &undecided{Unreadable, where + "the fields do not have the types of the kind"}
}

// rule asks the Rule in Go. A panic of it is a fault of the rule that one object
// shows, and must not cost the findings of the others.
func (g *evidence) rule(c *Check, o *manifest.Object) (hits []Hit, err error) {
	defer func() {
		if p := recover(); p != nil {
			hits, err = nil, &undecided{Unreadable, fmt.Sprintf("the rule gave up: %v", p)}
		}
	}()
	hits = rules()[c.ID](g, o)
	for _, h := range hits {
		if h.Open != "" {
			return nil, &undecided{h.Open, h.Observed}
		}
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return !g.about(o, h.Path) })
	return hits[:min(len(hits), maxHits)], nil
}

var routeRule = regexp.MustCompile(`^(spec\.(?:http|rules)\[)[0-9]+\]`)

// about says whether a path is outside of the rules of a route, or in one that is
// about models.
func (g *evidence) about(o *manifest.Object, path string) bool {
	m := routeRule.FindStringSubmatch(path)
	if m == nil {
		return true
	}
	rule, _ := fields.Value(o.Root, m[0])
	return g.Concerns(o, m[1]+"]", rule)
}

// elements are what a check's each names in an object.
func (g *evidence) elements(o *manifest.Object, each string) ([]element, error) {
	switch each {
	case "":
		return []element{{it: o.Root}}, nil
	case "containers":
		return containersOf(o)
	case "documents":
		var list []element
		for _, d := range g.Documents(o) {
			if d.Err != nil {
				return nil, d.Err
			}
			list = append(list, element{it: d.Root, path: d.Path, at: d.Key})
		}
		return list, nil
	}
	list := []element{{it: o.Root}}
	for part := range strings.SplitSeq(strings.TrimSuffix(each, "[]"), "[].") {
		var next []element
		for _, e := range list {
			all, err := fields.List(e.it, part)
			if err != nil {
				return nil, err
			}
			for i, v := range all {
				path := strings.TrimPrefix(e.path+"."+part, ".") + "[" + strconv.Itoa(i) + "]"
				name, _ := fields.Text(v, "name")
				next = append(next, element{it: v, path: path, at: name})
			}
		}
		list = next
	}
	return list, nil
}

// containersOf reads them strictly: what is no list of objects is no empty list.
func containersOf(o *manifest.Object) ([]element, error) {
	for _, field := range []string{"containers", "initContainers"} {
		all, err := fields.List(o.Root, topology.PodPath(o)+"."+field)
		if err != nil {
			return nil, err
		}
		for i, c := range all {
			if _, ok := c.(map[string]any); !ok {
				return nil, fields.Not(fmt.Sprintf("%s.%s[%d]", topology.PodPath(o), field, i), "an object")
			}
		}
	}
	var list []element
	for _, c := range topology.Containers(o) {
		list = append(list, element{it: c.Root, path: c.Path, at: c.Name, container: c.Name, init: c.Init})
	}
	return list, nil
}

// scene is what an expression sees.
type scene struct {
	g *evidence
	o *manifest.Object
	e element
}

// ResolveName is a variable's value.
func (s *scene) ResolveName(name string) (any, bool) {
	switch name {
	case "o":
		return s.o.Root, true
	case "it":
		return s.e.it, true
	case "at":
		return s.e.at, true
	case "role":
		return string(s.g.Role(s.o)), true
	case "init":
		return s.e.init, true
	case "beside":
		return s.g.Beside(s.o), true
	case "about":
		expr, _ := fields.Text(s.e.it, "expr")
		return s.g.AboutModels(expr), true
	}
	return nil, false
}

// Parent is none.
func (s *scene) Parent() interpreter.Activation { return nil }

func (g *evidence) hit(c *Check, shows cel.Program, s *scene) Hit {
	h := Hit{Container: s.e.container, Path: s.e.path}
	if c.Field != "" {
		h.Path = strings.TrimPrefix(s.e.path+"."+c.Field, ".")
		if strings.HasPrefix(c.Field, "[") {
			h.Path = s.e.path + c.Field
		}
	}
	if shows == nil {
		v, err := fields.Value(s.e.it, c.Field)
		h.Observed = observed(h.Path, v, err)
		return h
	}
	if out, _, err := shows.Eval(s); err == nil {
		h.Observed, _ = out.Value().(string)
		h.Observed = fields.Short(h.Observed)
	} else {
		h.Observed = "cannot be shown"
	}
	return h
}

// observed is a value as a finding shows it: numbers, bools and short text; of
// anything larger only its size, and nothing of what may hold a secret.
func observed(path string, v any, err error) string {
	switch v := v.(type) {
	case nil:
		if err != nil {
			return "cannot be read"
		}
		return "not set"
	case string:
		if secretive(path) {
			return "set"
		}
		return fields.Short(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		return plural(len(v), "entry", "entries")
	case map[string]any:
		return plural(len(v), "field", "fields")
	}
	return "set"
}

// secretive are the places whose text may be a secret.
func secretive(path string) bool {
	for _, s := range fields.Cut(path) {
		switch strings.ToLower(s) {
		case "env", "envfrom", "args", "command", "data", "stringdata", "binarydata":
			return true
		}
	}
	return false
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
