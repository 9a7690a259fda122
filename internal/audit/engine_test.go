package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

const virtualService = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: llm, namespace: llm}
spec:
  hosts: [api.openai.com]
  http:
  - %s
`

// What cannot be read as the kind has it is neither a pass nor a crash, and the
// place is named without its value.
func TestWhatCannotBeReadIsUndecided(t *testing.T) {
	for _, c := range []struct{ check, rule, detail string }{
		{"RTY-002", `{route: [{destination: {host: a}}], retries: {attempts: many, retryOn: "429"}}`, "in spec.http[0]: retries.attempts is not a number"},
		{"RTY-002", `{route: [{destination: {host: a}}], retries: [attempts]}`, "in spec.http[0]: retries is not an object"},
		{"RTY-002", `{route: [{destination: {host: a}}], retries: {attempts: 1, retryOn: {a: b}}}`, "in spec.http[0]: retries.retryOn is not a list of words"},
		{"TMO-001", `{route: [{destination: {host: a}}], timeout: soon}`, "in spec.http[0]: timeout is not a duration"},
		{"TMO-001", `{route: {destination: {host: a}}}`, "in spec.http[0]: route is not a list"},
		{"TMO-001", `soon`, "in spec.http[0]: it is not an object"},
	} {
		r := run1(t, Input{Objects: objects(t, fmt.Sprintf(virtualService, c.rule))}, Options{Checks: []string{c.check}})
		if len(r.Findings) != 0 || len(r.Open) != 1 || r.Open[0].Reason != Unreadable || r.Open[0].Detail != c.detail || r.Coverage.Pass != 0 || r.Coverage.Percent != 0 {
			t.Errorf("%s of %s: %+v", c.check, c.rule, r)
		}
	}
}

// A place that cannot be read does not hide another that is wrong.
func TestWhatIsWrongIsFoundBesideWhatCannotBeRead(t *testing.T) {
	r := run1(t, Input{Objects: objects(t, fmt.Sprintf(virtualService, `{route: [{destination: {host: a}}], timeout: soon}
  - {route: [{destination: {host: a}}]}`))}, Options{Checks: []string{"TMO-001"}})
	if len(r.Findings) != 1 || r.Findings[0].Path != "spec.http[1].timeout" || r.Findings[0].Observed != "not set" {
		t.Errorf("%+v", r)
	}
}

// A manifest made to keep the audit busy costs a bounded amount of work.
func TestWorkIsBounded(t *testing.T) {
	const n = 3000
	var b strings.Builder
	b.WriteString("apiVersion: cilium.io/v2\nkind: CiliumEnvoyConfig\nmetadata: {name: x, namespace: llm, labels: {hourthree.dev/role: route}}\nspec:\n  resources:\n  - virtual_hosts:\n    - routes:\n")
	b.WriteString(strings.Repeat("      - {route: {retry_policy: {retry_on: 5xx, num_retries: 1}}}\n", n))
	b.WriteString(strings.Repeat("  - {circuit_breakers: {thresholds: [{priority: high}]}}\n", n))
	r := run1(t, Input{Objects: objects(t, b.String())}, Options{Checks: []string{"RTY-016"}})
	if len(r.Findings) != 0 || len(r.Open) != 1 || r.Open[0].Reason != TimedOut {
		t.Errorf("%d findings, %+v", len(r.Findings), r.Open)
	}
}

func TestACancelledAuditEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Input{Objects: objects(t, fmt.Sprintf(virtualService, `{timeout: 1s}`))}, Options{}); err == nil {
		t.Error("no error")
	}
}

// manifestsOf is the text of a check's manifest.
func manifestsOf(t *testing.T, id, which string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "checks", id+"."+which+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A kind that could not be read makes every check that needs it undecided.
func TestAKindThatCouldNotBeRead(t *testing.T) {
	for _, c := range Catalogue() {
		if c.Scope == "gateway" {
			continue // they judge each file that is there
		}
		for _, res := range c.Resources {
			for _, reason := range []Reason{Forbidden, Partial} {
				in := Input{Objects: objects(t, manifestsOf(t, c.ID, "fail")), Gaps: []Gap{{Resource: res, Reason: reason}}}
				r := run1(t, in, Options{Checks: []string{c.ID}})
				reported := slices.Contains(c.Kinds, res.Kind)
				switch {
				case c.When != "" && (len(r.Findings) == 0 || reported != (len(r.Open) == 1)):
					t.Errorf("%s without %s: what is there is to be judged and the rest is open: %d findings, %+v", c.ID, res, len(r.Findings), r.Open)
				case c.When == "" && (len(r.Findings) != 0 || len(r.Open) == 0 || r.Coverage.Percent == 100):
					t.Errorf("%s without %s: %d findings, %+v", c.ID, res, len(r.Findings), r.Coverage)
				}
				for _, o := range r.Open {
					if o.Reason != reason || !strings.Contains(o.Detail, res.Plural) {
						t.Errorf("%s without %s: %+v", c.ID, res, o)
					}
				}
			}
		}
	}
}

// A kind that the cluster does not serve has no objects: checks on it have
// nothing to look at, and a rule that asks whether there is one knows.
func TestAKindThatIsNotServed(t *testing.T) {
	for _, c := range Catalogue() {
		if c.Scope == "gateway" {
			continue // they judge each file that is there
		}
		for _, res := range c.Resources {
			in := Input{Objects: objects(t, manifestsOf(t, c.ID, "fail")), Gaps: []Gap{{Resource: res, Reason: Absent}}}
			r := run1(t, in, Options{Checks: []string{c.ID}})
			if reported := slices.Contains(c.Kinds, res.Kind); len(r.Findings) == 0 || reported != (len(r.Open) == 1) || r.Coverage.Percent != 100 {
				t.Errorf("%s, %s not served: %d findings, %+v, %d %%", c.ID, res, len(r.Findings), r.Open, r.Coverage.Percent)
			}
		}
	}
}

const standardRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: llm, namespace: llm, labels: {hourthree.dev/role: route}}
spec: {rules: [{%s backendRefs: [{name: a}]}]}
`

// A field of the experimental channel that a cluster drops is not a pass.
func TestAFieldThatTheClusterDoesNotKnow(t *testing.T) {
	served := []topology.Resource{resourceOf(t, "HTTPRoute")}
	with := append(slices.Clone(served), resourceOf(t, "XBackendTrafficPolicy"))
	for _, c := range []struct {
		name   string
		field  string
		live   bool
		served []topology.Resource
		want   Reason
		passes int
	}{
		{"dropped by the cluster", "", true, served, UnknownField, 0},
		{"known to the cluster", "", true, with, "", 1},
		{"no cluster was read", "", false, nil, "", 1},
		{"a file that is to be applied", "", false, served, "", 1},
		{"there all the same", "retry: {codes: [503], attempts: 1, backoff: 1s},", true, served, UnknownField, 0},
	} {
		list := objects(t, fmt.Sprintf(standardRoute, c.field))
		list[0].Origin.Live = c.live
		r := run1(t, Input{Objects: list, Served: c.served}, Options{Checks: []string{"RTY-008"}})
		var got Reason
		if len(r.Open) > 0 {
			got = r.Open[0].Reason
		}
		if c.name == "there all the same" {
			c.want, c.passes = "", 1
		}
		if got != c.want || r.Coverage.Pass != c.passes {
			t.Errorf("%s: %q, %+v", c.name, got, r.Coverage)
		}
	}
}

func resourceOf(t *testing.T, kind string) topology.Resource {
	t.Helper()
	i := slices.IndexFunc(topology.Resources(), func(r topology.Resource) bool { return r.Kind == kind })
	if i < 0 {
		t.Fatal(kind)
	}
	return topology.Resources()[i]
}

// A check of the status is not passed by a manifest that has none.
func TestLiveChecksNeedAStatus(t *testing.T) {
	for _, c := range []struct {
		live    bool
		percent int
	}{{false, 100}, {true, 0}} {
		list := objects(t, `
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: llm, labels: {hourthree.dev/role: quota}}
spec: {hard: {pods: "4"}}
`)
		list[0].Origin.Live = c.live
		r := run1(t, Input{Objects: list}, Options{Checks: []string{"CAP-004"}})
		if len(r.Open) != 1 || r.Open[0].Reason != NoLiveData || r.Coverage.Pass != 0 || r.Coverage.Percent != c.percent {
			t.Errorf("live %v: %+v", c.live, r)
		}
	}
}

// The key of a finding is that of its place, wherever the place has moved.
func TestKeysDoNotDependOnTheOrder(t *testing.T) {
	key := func(text string) string {
		r := run1(t, Input{Objects: objects(t, text)}, Options{Checks: []string{"TMO-001"}})
		if len(r.Findings) != 1 {
			t.Fatalf("%+v", r)
		}
		return r.Findings[0].Key
	}
	first := key(fmt.Sprintf(virtualService, `{route: [{destination: {host: api.openai.com}}]}`))
	moved := key("\n\n" + fmt.Sprintf(virtualService, `{timeout: 1s, route: [{destination: {host: api.openai.com}}]}
  - {route: [{destination: {host: api.openai.com}}]}`))
	if first != moved || len(first) != 64 {
		t.Errorf("%s and %s", first, moved)
	}
	renamed := key(strings.Replace(fmt.Sprintf(virtualService, `{route: [{destination: {host: api.openai.com}}]}`), "name: llm,", "name: chat,", 1))
	if first == renamed {
		t.Error("two objects have one key")
	}
}

// Of what may be a secret a report has the name and not the value.
func TestNoValueOfAVariableIsShown(t *testing.T) {
	const secret = "XYZZY0"
	names, _ := filepath.Glob("testdata/checks/*.yaml")
	for _, name := range append(names, "testdata/near/SEC.yaml", "testdata/near/MEM.yaml") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var list []*manifest.Object
		if strings.Contains(name, "near") {
			for _, c := range nearOf(t, name) {
				list = append(list, objects(t, c.text)...)
			}
		} else {
			list = objects(t, string(data))
		}
		for _, o := range list {
			plant(o.Root, secret)
		}
		r := run1(t, Input{Objects: list}, Options{})
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(text, []byte(secret)); i >= 0 {
			t.Errorf("%s: %s", name, text[max(0, i-300):min(len(text), i+100)])
		}
	}
}

// plant puts a secret into all values of environment variables, arguments and
// comments of configurations.
func plant(v any, secret string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch list, isList := e.([]any); {
			case k == "env" && isList:
				for _, x := range list {
					if m, ok := x.(map[string]any); ok && m["value"] != nil {
						m["value"] = strings.Replace(fmt.Sprint(m["value"]), "://", "://user:"+secret+"@", 1) + "/" + secret
					}
				}
			case k == "args" && isList:
				v[k] = append(list, "--api-key", secret)
			case k == "data":
				plantText(e, secret)
			default:
				plant(e, secret)
			}
		}
	case []any:
		for _, e := range v {
			plant(e, secret)
		}
	}
}

func plantText(data any, secret string) {
	m, _ := data.(map[string]any)
	for k, e := range m {
		if text, ok := e.(string); ok && !strings.HasPrefix(text, "{") {
			m[k] = strings.ReplaceAll(text, "model: azure/gpt-4o", "model: azure/gpt-4o, api_key: "+secret)
		}
	}
}

// The same objects have the same report, byte for byte, in whatever order they
// come, and every pair of a check and an object is counted once.
func TestTheReportDoesNotDependOnTheOrder(t *testing.T) {
	all := cluster(t, 400)
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(all)-60).Draw(t, "from")
		some := slices.Clone(all[from : from+60])
		report := func(list []*manifest.Object) []byte {
			r, err := Run(context.Background(), Input{Objects: list}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c := r.Coverage; c.Pass+c.Fail+c.Waived+c.NotEvaluated != pairs(list) {
				t.Fatalf("%+v, but %d pairs", c, pairs(list))
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if a, b := report(some), report(rapid.Permutation(some).Draw(t, "order")); !bytes.Equal(a, b) {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

// pairs counts the checks that apply to each object, by the catalogue alone.
func pairs(list []*manifest.Object) (n int) {
	g := topology.New(list, "")
	for _, o := range g.Objects() {
		for _, c := range Catalogue() {
			for _, r := range c.Resources {
				if r.Kind == o.Kind && r.Group == o.Group && slices.Contains(c.Kinds, o.Kind) && g.On(o) {
					n++
				}
			}
		}
	}
	return n
}

// Two objects of one name and place are told apart by what they say.
func TestObjectsOfOneNameHaveAnOrder(t *testing.T) {
	a := objects(t, fmt.Sprintf(virtualService, `{timeout: 1s, route: [{destination: {host: api.openai.com}}]}`))[0]
	b := objects(t, fmt.Sprintf(virtualService, `{route: [{destination: {host: api.openai.com}}]}`))[0]
	x, _ := json.Marshal(run1(t, Input{Objects: []*manifest.Object{a, b}}, Options{}))
	y, _ := json.Marshal(run1(t, Input{Objects: []*manifest.Object{b, a}}, Options{}))
	if !bytes.Equal(x, y) {
		t.Errorf("%s\n%s", x, y)
	}
}

func TestNamespaces(t *testing.T) {
	text := fmt.Sprintf(virtualService, `{route: [{destination: {host: api.openai.com}}]}`)
	text += "---" + strings.Replace(text, "namespace: llm", "namespace: other", 1)
	for _, c := range []struct {
		spaces []string
		want   int
	}{{nil, 2}, {[]string{"llm"}, 1}, {[]string{"none"}, 0}} {
		r := run1(t, Input{Objects: objects(t, text)}, Options{Checks: []string{"TMO-001"}, Namespaces: c.spaces})
		if len(r.Findings) != c.want {
			t.Errorf("%v: %d findings", c.spaces, len(r.Findings))
		}
	}
}

func TestARoleThatIsNone(t *testing.T) {
	r := run1(t, Input{Objects: objects(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: gw, namespace: llm, labels: {hourthree.dev/role: gatway}}
spec: {template: {spec: {containers: [{name: a, image: a}]}}}
`)}, Options{})
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, `"gatway"`) {
		t.Errorf("%+v", r.Problems)
	}
}

func FuzzRun(f *testing.F) {
	names, _ := filepath.Glob("testdata/checks/*.yaml")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := manifest.Read(context.Background(), manifest.Options{Paths: []string{"-"}, Stdin: bytes.NewReader(data)})
		if err != nil {
			return
		}
		r, err := Run(context.Background(), Input{Objects: set.Objects}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Open {
			if strings.HasPrefix(o.Detail, "the rule gave up") {
				t.Errorf("%+v", o)
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

// One expression that squares a list is bounded as well.
func TestOneExpressionIsBounded(t *testing.T) {
	const n = 1500
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: llm}\ndata:\n  config.yaml: |\n    model_list:\n"
	for i := range n {
		text += fmt.Sprintf("    - {model_name: m%d}\n    - {model_name: m%d}\n", i, i)
	}
	r := run1(t, Input{Objects: objects(t, text)}, Options{Checks: []string{"RTE-004"}})
	if len(r.Findings) != 0 || len(r.Open) != 1 || r.Open[0].Reason != TimedOut {
		t.Errorf("%d findings, %+v", len(r.Findings), r.Open)
	}
}

// A thousand places of one object are one lesson.
func TestPlacesAreBounded(t *testing.T) {
	text := fmt.Sprintf(virtualService, "{route: [{destination: {host: a}}]}") + strings.Repeat("  - {route: [{destination: {host: a}}]}\n", 200)
	if r := run1(t, Input{Objects: objects(t, text)}, Options{Checks: []string{"TMO-001"}}); len(r.Findings) != maxHits {
		t.Errorf("%d findings", len(r.Findings))
	}
}

// with runs f with one rule in place of the real ones.
func with(id string, rule Rule, f func()) {
	real := rules
	rules = func() map[string]Rule { return map[string]Rule{id: rule} }
	defer func() { rules = real }()
	f()
}

// A rule that gives up, or says that it cannot tell, leaves the check undecided.
func TestARuleThatCannotTell(t *testing.T) {
	list := objects(t, fmt.Sprintf(virtualService, "{route: [{destination: {host: a}}]}"))
	for _, c := range []struct {
		rule   Rule
		reason Reason
		detail string
	}{
		{func(*evidence, *manifest.Object) []Hit { panic("lost") }, Unreadable, "the rule gave up: lost"},
		{func(*evidence, *manifest.Object) []Hit {
			return []Hit{{Path: "a"}, {Open: Forbidden, Observed: "a Secret"}}
		}, Forbidden, "a Secret"},
	} {
		with("CBK-001", c.rule, func() {
			r := run1(t, Input{Objects: list}, Options{Checks: []string{"CBK-001"}})
			if len(r.Findings) != 0 || len(r.Open) != 1 || r.Open[0].Reason != c.reason || r.Open[0].Detail != c.detail {
				t.Errorf("%+v", r)
			}
		})
	}
}

// What a rule found in a route's rule to something else is not reported.
func TestAHitOutsideOfThePathIsDropped(t *testing.T) {
	list := objects(t, fmt.Sprintf(virtualService, `{route: [{destination: {host: shop}}]}
  - {route: [{destination: {host: api.openai.com}}]}`))
	with("CBK-001", func(*evidence, *manifest.Object) []Hit {
		return []Hit{{Path: "spec.http[0].route"}, {Path: "spec.http[1].route"}, {Path: "spec.hosts"}}
	}, func() {
		r := run1(t, Input{Objects: list}, Options{Checks: []string{"CBK-001"}})
		if len(r.Findings) != 2 || r.Findings[0].Path == "spec.http[0].route" || r.Findings[1].Path == "spec.http[0].route" {
			t.Errorf("%+v", r.Findings)
		}
	})
}

// A finding shows where things are, inside a ConfigMap's configuration too, and
// in which container.
func TestPlaces(t *testing.T) {
	r := run1(t, Input{Objects: objects(t, `apiVersion: v1
kind: ConfigMap
metadata: {name: litellm, namespace: llm}
data:
  config.yaml: |
    model_list:
    - {model_name: a}
    router_settings:
      num_retries: 9
`)}, Options{Checks: []string{"RTY-019"}})
	if len(r.Findings) != 1 || r.Findings[0].Path != "data[config.yaml].router_settings" || r.Findings[0].Place.Line != 8 || r.Findings[0].Place.Column != 5 {
		t.Errorf("%+v", r.Findings)
	}
	r = run1(t, Input{Objects: objects(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: gw, namespace: llm}
spec:
  template:
    spec:
      containers:
      - {name: a, image: berriai/litellm, resources: {limits: {memory: 1Gi}}}
      - name: side
        image: side
      initContainers:
      - {name: proxy, image: proxy, restartPolicy: Always}
`)}, Options{Checks: []string{"MEM-001"}})
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s %s %d:%d %s", f.Container, f.Path, f.Place.Line, f.Place.Column, f.Observed))
	}
	want := []string{
		"proxy spec.template.spec.initContainers[0].resources.limits.memory 12:9 not set",
		"side spec.template.spec.containers[1].resources.limits.memory 9:9 not set",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestObserved(t *testing.T) {
	for _, c := range []struct {
		path string
		v    any
		want string
	}{
		{"spec.a", nil, "not set"}, {"spec.a", "x\n  y", "x y"}, {"spec.a", 1.5, "1.5"}, {"spec.a", true, "true"},
		{"spec.a", []any{"secret"}, "1 entry"}, {"spec.a", map[string]any{"a": "b", "c": "d"}, "2 fields"},
		{"spec.containers[0].env[0].value", "secret", "set"}, {"data[key]", "secret", "set"}, {"spec.containers[0].args[1]", "secret", "set"},
		{"spec.a", strings.Repeat("ä", 200), strings.Repeat("ä", 80) + "..."},
	} {
		if got := observed(c.path, c.v, nil); got != c.want {
			t.Errorf("%s: %q", c.path, got)
		}
	}
}

// A configuration in a ConfigMap that cannot be read is not a pass.
func TestADocumentThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{"broken": "model_list: [", "long": "a: " + strings.Repeat("x", 1<<20)} {
		list := objects(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: llm, labels: {hourthree.dev/role: config}}
data: {config.yaml: "a: b"}
`)
		list[0].Root["data"] = map[string]any{"config.yaml": text}
		r := run1(t, Input{Objects: list}, Options{Checks: []string{"RTY-019"}})
		if len(r.Open) != 1 || r.Open[0].Reason != Unreadable || !strings.HasPrefix(r.Open[0].Detail, "data[config.yaml] is not") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
