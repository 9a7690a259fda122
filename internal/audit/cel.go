package audit

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// The expressions of checks are CEL with these variables:
//
//	o     the object
//	it    the element of the check's each, o where it has none
//	at    its name: of a container, or the key of a ConfigMap's document
//	role  the workload's: gateway, server, epp, client or ""
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
//	repo(c)            the repository of a container's image, without registry
const costLimit = 200_000 // of one evaluation; the catalogue's need some hundreds

// environment is built once.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.Variable("o", cel.DynType), cel.Variable("it", cel.DynType), cel.Variable("at", cel.StringType), cel.Variable("role", cel.StringType),
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("about", cel.StringType),
	}
	strings := cel.ListType(cel.StringType)
	for _, f := range []struct {
		name   string
		result *cel.Type
		read   func(root any, path string) (any, error)
	}{
		{"get", cel.DynType, Value},
		{"set", cel.BoolType, func(x any, p string) (any, error) { v, err := Value(x, p); return v != nil, err }},
		{"num", cel.DoubleType, func(x any, p string) (any, error) { return Number(x, p) }},
		{"str", cel.StringType, func(x any, p string) (any, error) { return Text(x, p) }},
		{"lst", cel.ListType(cel.DynType), func(x any, p string) (any, error) { return list(List(x, p)) }},
		{"dur", cel.DoubleType, func(x any, p string) (any, error) { d, err := Duration(x, p); return d.Seconds(), err }},
		{"qty", cel.DoubleType, func(x any, p string) (any, error) { return Quantity(x, p) }},
		{"words", strings, func(x any, p string) (any, error) { return list(Words(x, p)) }},
		{"classes", strings, classes},
		{"ann", cel.StringType, func(x any, k string) (any, error) { return Text(x, "metadata.annotations["+k+"]") }},
		{"env", cel.StringType, envValue},
		{"hasenv", cel.BoolType, func(c any, n string) (any, error) { _, ok := EnvOf(object(c), n); return ok, nil }},
	} {
		opts = append(opts, cel.Function(f.name, cel.Overload(f.name+"_of", []*cel.Type{cel.DynType, cel.StringType}, f.result,
			cel.BinaryBinding(func(x, p ref.Val) ref.Val { return value(f.read(native(x), p.Value().(string))) }))))
	}
	opts = append(opts,
		cel.Function("num", cel.Overload("num_or", []*cel.Type{cel.DynType, cel.StringType, cel.DoubleType}, cel.DoubleType,
			cel.FunctionBinding(func(a ...ref.Val) ref.Val { return numberOr(native(a[0]), a[1].Value().(string), a[2]) }))),
		cel.Function("repo", cel.Overload("repo_of", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(func(c ref.Val) ref.Val { image, err := Text(native(c), "image"); return value(withoutRegistry(image), err) }))))
	return cel.NewEnv(opts...)
})

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
	if v, err := Value(root, path); v == nil && err == nil {
		return absent
	}
	return value(Number(root, path))
}

func classes(root any, path string) (any, error) {
	words, err := Words(root, path)
	names := []string{}
	for _, c := range RetryClasses(words) {
		names = append(names, string(c))
	}
	return names, err
}

func envValue(container any, name string) (any, error) {
	e, _ := EnvOf(object(container), name)
	return e.Value, nil
}

// withoutRegistry is a repository without the host it is at.
func withoutRegistry(image string) string {
	name := Repository(image)
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
