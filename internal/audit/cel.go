package audit

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/topology"
)

// The expressions of checks are CEL with these variables:
//
//	o     the object
//	it    the element of the check's each, o where it has none
//	at    its name: of a container, or the key of a ConfigMap's document
//	role  the workload's: gateway, server, epp, client or ""
//	init  the container ends before the others start
//	beside  the roots of other policies of its kind that bear on the same routes
//	about the word that makes an alerting rule one about model calls, or ""
//
// and these functions, which read strictly: what is absent is null, "", 0 or an
// empty list, and what cannot be read as asked makes the check undecided there.
//
//	get(x, path)       any value
//	set(x, path)       it is there and not null
//	num(x, path)       number; num(x, path, absent) with what absence counts as
//	str(x, path)       text
//	lst(x, path)       list
//	dur(x, path)       duration in seconds
//	qty(x, path)       Kubernetes quantity
//	words(x, path)     words of a list or of text, cut at commas and blanks
//	classes(x, path)   failure classes of such words: connect, reset, 5xx, 429
//	ann(x, key)        annotation of an object
//	env(c, name)       value of a container's environment variable, "" when it is
//	                   absent or taken from elsewhere
//	hasenv(c, name)    it is there, with a value or taken from elsewhere
//	envnum(c, name)    the number in it, 0 when it is absent or taken from elsewhere
//	keysin(c)          names of the variables whose literal value is a provider's key
//	keys(x, path)      keys of an object, sorted
//	vals(x, path)      elements of a list, or values of an object by their keys
//	show(x, path)      number, text, or list of such, to be shown; "unset" for none
//	bare(text)         text without what is in quotes
//	repo(c)            the repository of a container's image, without registry
//
// Their work is bounded, by the interpreter's count of steps and not by a clock,
// so that the same input has the same report on every machine.
const (
	costLimit   = 200_000   // of one evaluation; those of real objects need some hundreds
	objectLimit = 2_000_000 // of all evaluations of a check for one object: a tenth of a second or so
)

// readers are the functions of a value and a path or name below it.
var readers = []struct {
	name   string
	result *cel.Type
	read   func(root any, path string) (any, error)
}{
	{"get", cel.DynType, fields.Value},
	{"set", cel.BoolType, func(x any, p string) (any, error) { v, err := fields.Value(x, p); return v != nil, err }},
	{"num", cel.DoubleType, func(x any, p string) (any, error) { return fields.Number(x, p) }},
	{"str", cel.StringType, func(x any, p string) (any, error) { return fields.Text(x, p) }},
	{"lst", cel.ListType(cel.DynType), func(x any, p string) (any, error) { return list(fields.List(x, p)) }},
	{"dur", cel.DoubleType, func(x any, p string) (any, error) { d, err := fields.Duration(x, p); return d.Seconds(), err }},
	{"qty", cel.DoubleType, func(x any, p string) (any, error) { return fields.Quantity(x, p) }},
	{"words", words, func(x any, p string) (any, error) { return list(fields.Words(x, p)) }},
	{"classes", words, classes},
	{"ann", cel.StringType, func(x any, k string) (any, error) { return fields.Text(x, "metadata.annotations["+k+"]") }},
	{"env", cel.StringType, envValue},
	{"envnum", cel.DoubleType, envNumber},
	{"keys", words, func(x any, p string) (any, error) {
		m, err := fields.Object(x, p)
		return append([]string{}, slices.Sorted(maps.Keys(m))...), err
	}},
	{"vals", cel.ListType(cel.DynType), values},
	{"show", cel.StringType, shownAt},
	{"hasenv", cel.BoolType, func(c any, n string) (any, error) { _, ok := topology.EnvOf(object(c), n); return ok, nil }},
}

var words = cel.ListType(cel.StringType)

// environment is built once.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.Variable("o", cel.DynType), cel.Variable("it", cel.DynType), cel.Variable("at", cel.StringType), cel.Variable("role", cel.StringType),
		cel.Variable("about", cel.StringType), cel.Variable("init", cel.BoolType), cel.Variable("beside", cel.ListType(cel.DynType)),
		cel.CrossTypeNumericComparisons(true), ext.Strings(ext.StringsVersion(0)),
		cel.Function("num", cel.Overload("num_or", []*cel.Type{cel.DynType, cel.StringType, cel.DoubleType}, cel.DoubleType,
			cel.FunctionBinding(func(a ...ref.Val) ref.Val { return numberOr(native(a[0]), a[1].Value().(string), a[2]) }))),
		unary("repo", cel.DynType, cel.StringType, func(c any) (any, error) { image, err := fields.Text(c, "image"); return withoutRegistry(image), err }),
		unary("keysin", cel.DynType, words, func(c any) (any, error) { return literalKeys(object(c)), nil }),
		unary("bare", cel.StringType, cel.StringType, func(s any) (any, error) { return quotes.ReplaceAllString(s.(string), ""), nil }),
	}
	for _, f := range readers {
		opts = append(opts, cel.Function(f.name, cel.Overload(f.name+"_of", []*cel.Type{cel.DynType, cel.StringType}, f.result,
			cel.BinaryBinding(func(x, p ref.Val) ref.Val { return value(f.read(native(x), p.Value().(string))) }))))
	}
	return cel.NewEnv(opts...)
})

func unary(name string, from, to *cel.Type, f func(any) (any, error)) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_of", []*cel.Type{from}, to, cel.UnaryBinding(func(v ref.Val) ref.Val { return value(f(native(v))) })))
}

var quotes = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")

func list[T any](l []T, err error) (any, error) {
	if l == nil {
		l = []T{}
	}
	return l, err
}

// native is a value as it stands in a manifest.
func native(v ref.Val) any {
	if v.Type() == types.NullType {
		return nil
	}
	return v.Value()
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func value(v any, err error) ref.Val {
	if err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

func numberOr(root any, path string, absent ref.Val) ref.Val {
	if v, err := fields.Value(root, path); v == nil && err == nil {
		return absent
	}
	return value(fields.Number(root, path))
}

func classes(root any, path string) (any, error) {
	words, err := fields.Words(root, path)
	names := []string{}
	for _, c := range topology.RetryClasses(words) {
		names = append(names, string(c))
	}
	return names, err
}

func envValue(container any, name string) (any, error) {
	e, _ := topology.EnvOf(object(container), name)
	return e.Value, nil
}

// envNumber reads a variable's number. The error does not show the value.
func envNumber(container any, name string) (any, error) {
	e, _ := topology.EnvOf(object(container), name)
	if e.Value == "" {
		return 0.0, nil
	}
	n, err := strconv.ParseFloat(e.Value, 64)
	if err != nil {
		return 0.0, fields.Not(e.Path+".value of "+name, "a number")
	}
	return n, nil
}

func values(root any, path string) (any, error) {
	v, err := fields.Value(root, path)
	if err != nil {
		return nil, err
	}
	if m, ok := v.(map[string]any); ok {
		all := []any{}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			all = append(all, m[k])
		}
		return all, nil
	}
	return list(fields.List(root, path))
}

// shownAt is a value as a finding shows it.
func shownAt(root any, path string) (any, error) {
	v, err := fields.Value(root, path)
	switch v := v.(type) {
	case nil:
		return "unset", err
	case string:
		return fields.Short(v), nil
	case []any:
		words, err := fields.Words(root, path)
		if err != nil {
			return observed(path, v, nil), nil
		}
		return fields.Short("[" + strings.Join(words, ", ") + "]"), nil
	}
	return observed(path, v, nil), nil
}

// noKeys are values that stand where a key is asked for and none is needed.
var noKeys = []string{"", "empty", "none", "null", "dummy", "fake", "unused", "not-needed", "no-key", "placeholder", "changeme", "x", "-"}

// literalKeys are the names of a container's variables that hold a provider's
// key as a literal.
func literalKeys(container map[string]any) []string {
	names := []string{}
	for _, e := range topology.Envs(container) {
		if slices.Contains(topology.KeyNames, e.Name) && !slices.Contains(noKeys, strings.ToLower(e.Value)) && !strings.HasPrefix(e.Value, "$(") && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// withoutRegistry is a repository without the host it is at.
func withoutRegistry(image string) string {
	name := topology.Repository(image)
	if host, rest, ok := strings.Cut(name, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return rest
	}
	return name
}

// program is a check's compiled expressions.
type program struct {
	when, shows cel.Program
}

// programs are compiled once, those of the whole catalogue together.
var programs = sync.OnceValues(func() (map[string]program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("build the environment of expressions: %w", err)
	}
	all := map[string]program{}
	var faults []error
	for _, c := range Catalogue() {
		var p program
		var err error
		if c.When != "" {
			if p.when, err = compile(env, c.When, cel.BoolType); err != nil {
				faults = append(faults, fmt.Errorf("check %s, when: %w", c.ID, err))
			}
		}
		if c.Shows != "" {
			if p.shows, err = compile(env, c.Shows, cel.StringType); err != nil {
				faults = append(faults, fmt.Errorf("check %s, shows: %w", c.ID, err))
			}
		}
		all[c.ID] = p
	}
	return all, errors.Join(faults...)
})

func compile(env *cel.Env, text string, result *cel.Type) (cel.Program, error) {
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, issues.Err()
	}
	if !ast.OutputType().IsExactType(result) {
		return nil, fmt.Errorf("is %s, not %s", ast.OutputType(), result)
	}
	return env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit), cel.InterruptCheckFrequency(100))
}
