package cluster

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hourthree/hourthree/internal/kubetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var resources = []Resource{
	{"", "v1", "ConfigMap", "configmaps"},
	{"", "v1", "Node", "nodes"},
	{"", "v1", "Pod", "pods"},
	{"apps", "v1", "Deployment", "deployments"},
	{"networking.istio.io", "v1", "VirtualService", "virtualservices"},
	{"gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"},
}

const objects = `apiVersion: v1
kind: ConfigMap
metadata: {name: litellm, namespace: llm}
data:
  config.yaml: |
    model_list: []
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: one, namespace: llm, annotations: {keep: me}}
spec: {replicas: 2, template: {metadata: {}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: two, namespace: other}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: llm}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: llm}
`

// open opens the server with the options of a test.
func open(t testing.TB, s *kubetest.Server, opts Options) *Cluster {
	t.Helper()
	opts.Kubeconfig = s.Kubeconfig(t)
	if opts.Resources == nil {
		opts.Resources = resources
	}
	c, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func listed(t testing.TB, c *Cluster) *Result {
	t.Helper()
	r, err := c.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// collects holds what is so of every cluster, the scripted ones and real ones.
func collects(t *testing.T, c *Cluster) *Result {
	t.Helper()
	r := listed(t, c)
	missing := map[Resource]string{}
	for _, g := range r.Gaps {
		if g.Detail == "" || g.Reason == "" {
			t.Errorf("a gap says too little: %+v", g)
		}
		missing[g.Resource] = g.Reason
	}
	for _, o := range r.Objects {
		meta, _ := o.Root["metadata"].(map[string]any)
		notes, _ := meta["annotations"].(map[string]any)
		if o.Kind == "" || o.Version == "" || o.Name == "" || !o.Origin.Live || meta["managedFields"] != nil || notes[lastApplied] != nil {
			t.Errorf("%s from %s: %v", o.Ref(), o.Origin.File, meta)
		}
		if o.Kind == "Secret" {
			t.Errorf("%s was read", o.Ref())
		}
	}
	rights, err := c.Access(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range rights {
		if right.Readable == (missing[right.Resource] != "") || right.Reason != missing[right.Resource] {
			t.Errorf("access says %+v, reading said %q", right, missing[right.Resource])
		}
	}
	again := listed(t, c)
	if len(again.Gaps) != len(r.Gaps) {
		t.Errorf("read again, there are other gaps: %v, %v", r.Gaps, again.Gaps)
	}
	return r
}

func names(r *Result) (objects, gaps []string) {
	for _, o := range r.Objects {
		objects = append(objects, o.Ref().String())
	}
	for _, g := range r.Gaps {
		gaps = append(gaps, g.Reason+": "+g.Detail)
	}
	return objects, gaps
}

func TestList(t *testing.T) {
	for name, plain := range map[string]bool{"one answer for discovery": false, "discovery by group": true} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t, objects)
			s.Plain = plain
			r := collects(t, open(t, s, Options{}))
			found, gaps := names(r)
			if want := []string{"ConfigMap llm/litellm", "Node n1", "Deployment llm/one", "Deployment other/two", "VirtualService llm/v"}; !reflect.DeepEqual(found, want) {
				t.Errorf("objects %q", found)
			}
			if want := []string{"crd_absent: the cluster has no httproutes.gateway.networking.k8s.io"}; !reflect.DeepEqual(gaps, want) {
				t.Errorf("gaps %q", gaps)
			}
			if !reflect.DeepEqual(r.Served, resources[:5]) {
				t.Errorf("served %v", r.Served)
			}
			one := r.Objects[2]
			if text := fmt.Sprint(one.Root); strings.Contains(text, "managedFields") || strings.Contains(text, "last-applied") || !strings.Contains(text, "keep:me") {
				t.Error(text)
			}
			if !one.Origin.Live || one.Origin.File != "cluster/llm/Deployment/one.yaml" || one.At("spec.replicas") != 2.0 || one.Root["apiVersion"] != "apps/v1" {
				t.Errorf("%+v", one)
			}
			if len(r.Objects[0].Embedded()) != 1 {
				t.Error("the configuration in the ConfigMap is missing")
			}
		})
	}
}

// allowedRequest is everything that a run may send.
var allowedRequest = regexp.MustCompile(`^GET /(version|api|apis|api/v1|apis/[a-z0-9.-]+/v[a-z0-9]+` +
	`|(api/v1|apis/[a-z0-9.-]+/v[a-z0-9]+)(/namespaces/[a-z]+)?/(configmaps|nodes|pods|deployments|virtualservices|httproutes)\?(continue=[0-9]+&)?limit=(500|1))$`)

func TestOnlyReads(t *testing.T) {
	s := kubetest.New(t, objects+many(600))
	for _, opts := range []Options{{}, {Namespaces: []string{"llm", "other"}}} {
		c := open(t, s, opts)
		listed(t, c)
		if _, err := c.Access(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	requests := s.Requests()
	if len(requests) < 20 {
		t.Errorf("only %d requests", len(requests))
	}
	for _, r := range requests {
		if !allowedRequest.MatchString(r) || strings.Contains(r, "secrets") || strings.Contains(r, "watch") {
			t.Errorf("sent %s", r)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d, namespace: llm}\n", i)
	}
	return b.String()
}

func TestPages(t *testing.T) {
	s := kubetest.New(t, many(1234))
	r := listed(t, open(t, s, Options{Resources: resources[2:3]}))
	if len(r.Objects) != 1234 || len(r.Gaps) != 0 {
		t.Errorf("%d objects, %v", len(r.Objects), r.Gaps)
	}
	var pages int
	for _, q := range s.Requests() {
		if strings.Contains(q, "/pods") {
			pages++
		}
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
}

func TestNamespaces(t *testing.T) {
	s := kubetest.New(t, objects)
	found, _ := names(listed(t, open(t, s, Options{Namespaces: []string{"other"}})))
	if want := []string{"Node n1", "Deployment other/two"}; !reflect.DeepEqual(found, want) {
		t.Errorf("objects %q", found)
	}
}

// TestFaults: what a server does wrong costs the kind that it concerns.
func TestFaults(t *testing.T) {
	const rest = 3 // Node, VirtualService, ConfigMap
	for name, c := range map[string]struct {
		plural  string
		fault   kubetest.Fault
		opts    Options
		reason  string // "" for no gap
		detail  string
		objects int
	}{
		"forbidden":             {"deployments", kubetest.Fault{Status: 403}, Options{}, Forbidden, "needs the verb list on deployments.apps", rest},
		"gone between":          {"deployments", kubetest.Fault{Status: 404}, Options{}, Absent, "no deployments.apps", rest},
		"garbage":               {"deployments", kubetest.Fault{Body: "<html>login</html>"}, Options{}, Partial, "the answer is not the JSON of a list", rest},
		"another object":        {"deployments", kubetest.Fault{Body: `{"kind":"Status"}`}, Options{}, Partial, "the answer is not a list", rest},
		"no object":             {"deployments", kubetest.Fault{Body: `[]`}, Options{}, Partial, "the answer is not a list", rest},
		"items of no object":    {"deployments", kubetest.Fault{Body: `{"items":[{"metadata":{"name":"a"}},3]}`}, Options{}, Partial, "1 were read before that", rest + 1},
		"items that are none":   {"deployments", kubetest.Fault{Body: `{"items":3}`}, Options{}, Partial, "items are no list", rest},
		"null items":            {"deployments", kubetest.Fault{Body: `{"items":null}`}, Options{}, "", "", rest},
		"too deep":              {"deployments", kubetest.Fault{Body: `{"items":[{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}]}`}, Options{}, Partial, "nested more than", rest},
		"breaks off":            {"deployments", kubetest.Fault{Cut: 200}, Options{}, Partial, "deployments.apps: ", rest},
		"breaks off later":      {"deployments", kubetest.Fault{Cut: 350}, Options{}, Partial, "1 were read before that", rest + 1},
		"hangs":                 {"deployments", kubetest.Fault{Delay: 5 * time.Second}, Options{RequestTimeout: 200 * time.Millisecond}, TimedOut, "not answered within 200ms", rest},
		"slow for the whole":    {"deployments", kubetest.Fault{Delay: 5 * time.Second}, Options{Timeout: 300 * time.Millisecond}, TimedOut, "within 300ms for the whole cluster", rest},
		"overloaded, then well": {"deployments", kubetest.Fault{Status: 429, RetryAfter: "0", Times: 2}, Options{}, "", "", rest + 2},
		"overloaded":            {"deployments", kubetest.Fault{Status: 429, RetryAfter: "0"}, Options{}, Partial, "429", rest},
		"asks for too long":     {"deployments", kubetest.Fault{Status: 429, RetryAfter: "3000"}, Options{}, Partial, "429", rest},
		"fails once":            {"deployments", kubetest.Fault{Status: 503, Times: 1}, Options{}, "", "", rest + 2},
		"fails":                 {"deployments", kubetest.Fault{Status: 500}, Options{}, Partial, "the server answered 500 Internal Server Error: a message", rest},
		"leads elsewhere":       {"deployments", kubetest.Fault{Status: 307, Location: "http://other.example/"}, Options{}, Partial, "leads elsewhere", rest},
		"too large":             {"deployments", kubetest.Fault{Body: `{"items":[` + strings.Repeat(" ", 20000)}, Options{MaxPage: 10000}, Partial, "larger than one answer may be", rest},
		"credentials expire":    {"deployments", kubetest.Fault{Status: 401}, Options{}, Forbidden, "not accepted any more", rest},
		"the same page forever": {"deployments", kubetest.Fault{Body: `{"metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}}]}`}, Options{}, Partial, "the same page again", rest + 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := kubetest.New(t, objects)
			s.Faults[c.plural] = c.fault
			c.opts.Resources = resources[:5]
			r := listed(t, open(t, s, c.opts))
			found, gaps := names(r)
			if len(found) != c.objects {
				t.Errorf("objects %q, want %d", found, c.objects)
			}
			switch {
			case c.reason == "" && len(gaps) > 0:
				t.Errorf("gaps %q", gaps)
			case c.reason != "" && (len(gaps) != 1 || r.Gaps[0].Reason != c.reason || !strings.Contains(r.Gaps[0].Detail, c.detail) || r.Gaps[0].Plural != c.plural):
				t.Errorf("gaps %q, want %s: %s", gaps, c.reason, c.detail)
			}
		})
	}
}

func TestGoneBetweenPages(t *testing.T) {
	for name, c := range map[string]struct {
		times, objects, gaps int
	}{"once": {1, 1200, 0}, "always": {0, 500, 1}} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t, many(1200))
			s.Faults["pods"] = kubetest.Fault{Status: 410, From: 2, Times: c.times}
			if c.times == 0 { // the second page of each try, and not the first
				s.Faults["pods"] = kubetest.Fault{Status: 410, From: 2, Every: 2}
			}
			r := listed(t, open(t, s, Options{Resources: resources[2:3]}))
			if len(r.Objects) != c.objects || len(r.Gaps) != c.gaps {
				t.Errorf("%d objects, %v", len(r.Objects), r.Gaps)
			}
			if c.gaps == 1 && (r.Gaps[0].Reason != Partial || !strings.Contains(r.Gaps[0].Detail, "500 were read before that")) {
				t.Errorf("%+v", r.Gaps)
			}
		})
	}
}

// TestFaultsOfAListReadTwice are told once.
func TestFaultsOfAListReadTwice(t *testing.T) {
	item := `{"metadata":{"name":"litellm","namespace":"llm"},"data":{"config.yaml":"model_list:\n- ["}}`
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api":
			fmt.Fprint(w, `{"versions":["v1"]}`)
		case r.URL.Path == "/apis":
			fmt.Fprint(w, `{"groups":[{"name":"apps"}]}`)
		case r.URL.Path != "/api/v1/configmaps":
			fmt.Fprint(w, `{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`)
		case r.URL.Query().Get("continue") != "":
			w.WriteHeader(http.StatusGone)
		default:
			fmt.Fprint(w, `{"metadata":{"continue":"x"},"items":[`+item+`]}`)
		}
	}))
	t.Cleanup(gone.Close)
	c, err := Open(Options{Kubeconfig: kubeconfig(t, gone.URL, "{}"), Resources: resources[:1]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r := listed(t, c); len(r.Objects) != 1 || len(r.Problems) != 1 {
		t.Errorf("%d objects, problems %v", len(r.Objects), r.Problems)
	}
}

func TestBoundsOfAll(t *testing.T) {
	s := kubetest.New(t, many(1000))
	r := listed(t, open(t, s, Options{Resources: resources[2:3], MaxObjects: 700}))
	if len(r.Objects) != 700 || len(r.Gaps) != 1 || r.Gaps[0].Reason != Partial || !strings.Contains(r.Gaps[0].Detail, "more objects than are read; 700 were read") {
		t.Errorf("%d objects, %v", len(r.Objects), r.Gaps)
	}
	r = listed(t, open(t, s, Options{Resources: resources[2:3], MaxTotal: 50_000}))
	if len(r.Objects) == 0 || len(r.Objects) > 500 || len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0].Detail, "together are larger") {
		t.Errorf("%d objects, %v", len(r.Objects), r.Gaps)
	}
}

func TestNoCluster(t *testing.T) {
	for name, c := range map[string]struct {
		fault kubetest.Fault
		want  string
	}{
		"credentials": {kubetest.Fault{Status: 401}, "renew the credentials"},
		"garbage":     {kubetest.Fault{Body: "<html>"}, "is not what an API server answers"},
		"empty":       {kubetest.Fault{Body: "{}"}, "is not what an API server answers"},
		"null":        {kubetest.Fault{Body: "null"}, "is not what an API server answers"},
		"a login":     {kubetest.Fault{Body: `{"error":"log in"}`}, "is not what an API server answers"},
		"fails":       {kubetest.Fault{Status: 500}, "try again when the API server is well"},
		"redirect":    {kubetest.Fault{Status: 302, Location: "/login"}, "which is not followed"},
		"hangs":       {kubetest.Fault{Delay: 5 * time.Second}, "--timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kubetest.New(t, objects)
			s.Faults["/apis"], s.Faults["/api"] = c.fault, c.fault
			_, err := open(t, s, Options{RequestTimeout: 200 * time.Millisecond}).List(context.Background())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `context "test"`) || !strings.Contains(err.Error(), s.URL()) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if text := fmt.Sprint(err); strings.Contains(text, "a-token") {
				t.Error("the token is in the error")
			}
		})
	}
	s := kubetest.New(t, objects)
	c := open(t, s, Options{})
	s.Close()
	if _, err := c.List(context.Background()); err == nil || !strings.Contains(err.Error(), "can be reached from here") || strings.Contains(err.Error(), "Get ") {
		t.Error(err)
	}
}

// TestEncrypted: the kubeconfig says whom to trust.
func TestEncrypted(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{"versions":["v1"],"groups":[{"name":"apps"}]}`))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it speaks of the refused handshake
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for trust, want := range map[string]string{"certificate-authority-data: " + base64.StdEncoding.EncodeToString(ca): "", "": "check certificate-authority of the cluster"} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		text := fmt.Sprintf("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: a-token}}]\nclusters:\n- name: c\n  cluster:\n    server: %s\n    %s\n", s.URL, trust)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(Options{Kubeconfig: path, Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.List(context.Background())
		c.Close()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", trust, err)
		}
	}
}

// TestDiscoveryForbidden: what may not be discovered is asked for as it was named.
func TestDiscoveryForbidden(t *testing.T) {
	s := kubetest.New(t, objects)
	s.Faults["/apis"], s.Faults["/api"] = kubetest.Fault{Status: 403}, kubetest.Fault{Status: 403}
	r := listed(t, open(t, s, Options{}))
	found, gaps := names(r)
	if len(found) != 5 || len(gaps) != 1 || r.Gaps[0].Reason != Absent {
		t.Errorf("%q %q", found, gaps)
	}
}

func TestAnotherVersion(t *testing.T) {
	s := kubetest.New(t, strings.ReplaceAll(objects, "networking.istio.io/v1", "networking.istio.io/v1beta1"))
	r := listed(t, open(t, s, Options{Resources: resources[4:5]}))
	if len(r.Objects) != 1 || r.Objects[0].Version != "v1beta1" || len(r.Gaps) != 0 || r.Served[0].Version != "v1beta1" {
		t.Errorf("%+v %v", r, r.Served)
	}
}

func TestAccess(t *testing.T) {
	s := kubetest.New(t, objects)
	s.Faults["pods"] = kubetest.Fault{Status: 403}
	rights, err := open(t, s, Options{}).Access(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rights {
		got = append(got, fmt.Sprintf("%s %v %s", r.Plural, r.Readable, r.Reason))
	}
	want := []string{"configmaps true ", "nodes true ", "pods false forbidden", "deployments true ", "virtualservices true ", "httproutes false crd_absent"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if !strings.Contains(rights[2].Detail, "verb list on pods") {
		t.Error(rights[2].Detail)
	}
}

func TestRoles(t *testing.T) {
	all := append(slices.Clone(resources), Resource{"", "v1", "Secret", "secrets"}, resources[0])
	text := string(ClusterRole(all))
	want := `rules:
- apiGroups: [""]
  resources: [configmaps, nodes, pods]
  verbs: [get, list]
- apiGroups: ["apps"]
  resources: [deployments]
  verbs: [get, list]
- apiGroups: ["gateway.networking.k8s.io"]
  resources: [httproutes]
  verbs: [get, list]
- apiGroups: ["networking.istio.io"]
  resources: [virtualservices]
  verbs: [get, list]
`
	if !strings.HasSuffix(text, want) || !strings.Contains(text, "kind: ClusterRole\n") {
		t.Error(text)
	}
	text = string(Role("llm", WithoutConfigMaps(all)))
	if strings.Contains(text, "nodes") || strings.Contains(text, "configmaps") || !strings.Contains(text, "kind: Role\n") || !strings.Contains(text, "namespace: llm\n") {
		t.Error(text)
	}
	if !strings.HasSuffix(string(ClusterRole(nil)), "rules: []\n") {
		t.Error(string(ClusterRole(nil)))
	}
}

func TestOpen(t *testing.T) {
	s := kubetest.New(t, objects)
	c := open(t, s, Options{Context: "other"})
	if c.Context() != "other" || c.Namespace() != "default" || !strings.HasPrefix(c.Server(), s.URL()) {
		t.Errorf("%s %s %s", c.Context(), c.Namespace(), c.Server())
	}
	if c := open(t, s, Options{}); c.Context() != "test" || c.Namespace() != "llm" {
		t.Errorf("%s %s", c.Context(), c.Namespace())
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {cluster: gone}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, c := range map[string]struct {
		opts Options
		want string
	}{
		"no file":                  {Options{Kubeconfig: filepath.Join(t.TempDir(), "no")}, "there is no such file; name one with --kubeconfig"},
		"nothing at all":           {Options{}, "there is no kubeconfig at"},
		"a typo":                   {Options{Kubeconfig: s.Kubeconfig(t), Context: "tets"}, `there is no context "tets"; "test" is the nearest of: other, test`},
		"another":                  {Options{Kubeconfig: s.Kubeconfig(t), Context: "production-eu"}, `there is no context "production-eu"; there are: other, test`},
		"no current context":       {Options{Kubeconfig: broken}, "choose one with --context: a"},
		"context of nothing":       {Options{Kubeconfig: broken, Context: "a"}, `names the cluster "gone", which is not there`},
		"a namespace that is none": {Options{Kubeconfig: s.Kubeconfig(t), Namespaces: []string{"a/../b"}}, "is no name of a namespace"},
		"secrets are asked for":    {Options{Kubeconfig: s.Kubeconfig(t), Resources: []Resource{{"", "v1", "Secret", "secrets"}}}, "secrets are never read"},
	} {
		if _, err := Open(c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestThePasswordOfAnAddress is in no error.
func TestThePasswordOfAnAddress(t *testing.T) {
	for _, address := range []string{"https://me:a-password@127.0.0.1:bad", "https://me:a-password@127.0.0.1:1", "https://me:a-password@%zz"} {
		c, err := Open(Options{Kubeconfig: kubeconfig(t, address, "{token: a-token}"), Resources: resources})
		if err == nil {
			_, err = c.List(t.Context())
			c.Close()
		}
		if err == nil || strings.Contains(err.Error(), "a-password") || strings.Contains(err.Error(), "a-token") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestACommandThatHangs: the bound of everything holds for commands that a
// kubeconfig names for credentials too.
func TestACommandThatHangs(t *testing.T) {
	user := `{exec: {apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ["5"], interactiveMode: Never}}`
	c, err := Open(Options{Kubeconfig: kubeconfig(t, "https://127.0.0.1:1", user), Resources: resources, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	_, err = c.List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the command that the kubeconfig names for credentials") || time.Since(begun) > 4*time.Second {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	time.Sleep(time.Until(begun.Add(5500 * time.Millisecond))) // it ends and is let go of
}

// kubeconfig writes one with a server and a user.
func kubeconfig(t *testing.T, server, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: %s}]\n", server, user)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type answering struct{ asked int }

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// TestGuard: what does not read, or reads anything else, is not sent.
func TestGuard(t *testing.T) {
	s := kubetest.New(t, objects)
	c := open(t, s, Options{})
	base := *c.server
	base.Path = "/k8s/cluster-1"
	next := &answering{}
	g := newGuard(next, &base, append(slices.Clone(resources), Resource{"", "v1", "Secret", "secrets"}))
	for _, ok := range []string{
		"/version", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/api/v1/pods?limit=500&continue=x", "/api/v1/namespaces/llm/pods",
		"/api/v1/namespaces/llm/pods/one", "/api/v1/nodes/n1", "/apis/apps/v1/namespaces/llm/deployments/one",
	} {
		if err := send(g, http.MethodGet, base.String()+ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	sent := next.asked
	for _, bad := range []string{
		"POST /api/v1/pods", "PUT /api/v1/namespaces/llm/pods/one", "PATCH /apis/apps/v1/deployments", "DELETE /api/v1/pods", "HEAD /api/v1/pods", "OPTIONS /api",
		"GET /api/v1/secrets", "GET /api/v1/namespaces/llm/secrets", "GET /api/v1/namespaces/llm/secrets/s", "GET /api/v1/services", "GET /apis/apps/v1/replicasets",
		"GET /apis/other/v1/pods", "GET /api/v1/pods?watch=true", "GET /api/v1/watch/pods", "GET /api/v1/namespaces/llm/pods/one/log", "GET /api/v1/namespaces/llm/pods/one/exec",
		"GET /api/v1/namespaces/llm/pods/one/proxy/x", "GET /api/v1/nodes/n1/proxy", "GET /api/v1/namespaces/llm/pods/one/portforward", "GET /api/v1/namespaces/llm",
		"GET /api/v1/pods/../secrets", "GET /api/v1//pods", "GET /api/v1/%70ods", "GET /api/v1/pods%2fone", "GET /openapi/v3", "GET /metrics", "GET /", "GET /version/x",
		"GET /api/v1/pods?fieldSelector=x", "GET /api/v1/pods?limit=1;watch=true", "GET /api/v1/pods?%zz&limit=1", "GET /api/v1/pods?limit=1&resourceVersion=0",
	} {
		method, path, _ := strings.Cut(bad, " ")
		if err := send(g, method, base.String()+path); err == nil {
			t.Errorf("%s was sent", bad)
		}
	}
	for _, elsewhere := range []string{"http://other.example/k8s/cluster-1/api", "https://" + base.Host + "/k8s/cluster-1/api", "http://" + base.Host + "/api"} {
		if err := send(g, http.MethodGet, elsewhere); err == nil {
			t.Errorf("%s was sent", elsewhere)
		}
	}
	for _, hosts := range [][2]string{{"other.example", base.Host}, {base.Host, "other.example"}} { // of the address, of the header
		r, err := http.NewRequest(http.MethodGet, "http://"+hosts[0]+"/k8s/cluster-1/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = hosts[1]
		if resp, err := g.RoundTrip(r); err == nil {
			resp.Body.Close()
			t.Errorf("%v was sent", hosts)
		}
	}
	if next.asked != sent {
		t.Errorf("%d requests passed", next.asked-sent)
	}
}

func send(g *guard, method, address string) error {
	r, err := http.NewRequest(method, address, nil)
	if err != nil {
		return err
	}
	resp, err := g.RoundTrip(r)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// TestGuardIsInPlace: the client of an open cluster goes through it.
func TestGuardIsInPlace(t *testing.T) {
	s := kubetest.New(t, objects)
	c := open(t, s, Options{})
	for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/llm/pods/one/log"} {
		if resp, err := c.client.Get(s.URL() + path); err == nil || !strings.Contains(err.Error(), "refused to send") {
			resp.Body.Close()
			t.Errorf("%s: %v", path, err)
		}
	}
	if resp, err := c.client.Post(s.URL()+"/api/v1/pods", "application/json", strings.NewReader("{}")); err == nil {
		resp.Body.Close()
		t.Error("a POST was sent")
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
}

func TestCancelled(t *testing.T) {
	s := kubetest.New(t, objects)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := open(t, s, Options{}).List(ctx); err == nil {
		t.Error("no error")
	}
}
