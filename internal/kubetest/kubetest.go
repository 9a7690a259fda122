// Package kubetest is an API server for tests: it has the objects and the faults
// that a test gives it, and remembers what it was asked. It decides nothing of
// its own and is imported by tests only.
package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/manifest"
)

// Fault is what is wrong with the lists of one resource.
type Fault struct {
	Status     int           // answered instead of the list
	RetryAfter string        // with Status
	Times      int           // how often, 0 for always
	From       int           // the first request that it concerns, from 1; 0 for the first
	Every      int           // from there, each how-manieth; 0 for each
	Delay      time.Duration // before the answer
	Body       string        // instead of the list
	Cut        int           // bytes after which the answer breaks off, 0 for not at all
	Location   string        // with Status: where a redirect leads
}

// Server is an API server. Its fields are set before the first request.
type Server struct {
	// Plain makes it answer discovery group by group, as old servers do.
	Plain bool
	// Faults are by plural, or by path for discovery.
	Faults map[string]Fault

	http *httptest.Server

	mu       sync.Mutex
	kinds    map[kind]bool // true: in namespaces
	objects  map[string][]*manifest.Object
	requests []string
	asked    map[string]int
}

type kind struct{ group, version, kind, plural string }

// New starts a server that has the objects of some YAML, and ends it with the test.
func New(t testing.TB, yaml string) *Server {
	t.Helper()
	s := &Server{Faults: map[string]Fault{}, kinds: map[kind]bool{}, objects: map[string][]*manifest.Object{}, asked: map[string]int{}}
	for _, k := range []kind{
		{"", "v1", "ConfigMap", "configmaps"}, {"", "v1", "Namespace", "namespaces"}, {"", "v1", "Node", "nodes"},
		{"", "v1", "Pod", "pods"}, {"", "v1", "ResourceQuota", "resourcequotas"}, {"", "v1", "Secret", "secrets"},
		{"", "v1", "Service", "services"}, {"apps", "v1", "Deployment", "deployments"}, {"apps", "v1", "StatefulSet", "statefulsets"},
		{"apps", "v1", "DaemonSet", "daemonsets"}, {"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"},
		{"networking.k8s.io", "v1", "Ingress", "ingresses"}, {"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"},
		{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"},
	} {
		s.kinds[k] = !manifest.ClusterWide(k.group, k.kind)
	}
	s.Add(t, yaml)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.http.Close)
	return s
}

// Add gives the server more objects, and the kinds that they are of.
func (s *Server) Add(t testing.TB, yaml string) {
	t.Helper()
	set, err := manifest.Read(context.Background(), manifest.Options{Paths: []string{"-"}, Stdin: strings.NewReader(yaml)})
	if err != nil || len(set.Problems) > 0 {
		t.Fatalf("objects of the test: %v %v", err, set)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range set.Objects {
		k := kind{o.Group, o.Version, o.Kind, Plural(o.Kind)}
		if _, ok := s.kinds[k]; !ok {
			s.kinds[k] = !manifest.ClusterWide(k.group, k.kind)
		}
		s.objects[k.group+"/"+k.plural] = append(s.objects[k.group+"/"+k.plural], o)
	}
}

// Serve makes the server have a kind of which it has no object.
func (s *Server) Serve(group, version, kindName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[kind{group, version, kindName, Plural(kindName)}] = !manifest.ClusterWide(group, kindName)
}

// Plural is how API servers name most kinds.
func Plural(kind string) string {
	p := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(p, "ay"):
		return p + "s"
	case strings.HasSuffix(p, "y"):
		return strings.TrimSuffix(p, "y") + "ies"
	case strings.HasSuffix(p, "s"), strings.HasSuffix(p, "x"):
		return p + "es"
	}
	return p + "s"
}

// Close ends the server before the test does.
func (s *Server) Close() { s.http.Close() }

// URL is the server's address.
func (s *Server) URL() string { return s.http.URL }

// Kubeconfig writes a kubeconfig with the contexts "test", the current one, and
// "other", and answers its path.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters:
- name: c
  cluster: {server: %q}
users:
- name: u
  user: {token: a-token}
contexts:
- name: test
  context: {cluster: c, user: u, namespace: llm}
- name: other
  context: {cluster: c, user: u}
`, s.http.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Requests are the method and address of everything that was asked, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	name := parts[len(parts)-1]
	f, faulty := s.Faults[name]
	if !faulty {
		name = r.URL.Path
		f, faulty = s.Faults[name]
	}
	s.asked[name]++
	n := s.asked[name] - max(f.From-1, 0)
	s.mu.Unlock()
	if faulty && n > 0 && (f.Times == 0 || n <= f.Times) && (f.Every == 0 || (n-1)%f.Every == 0) {
		if f.serve(w, r) {
			return
		}
		if f.Cut > 0 {
			rec := httptest.NewRecorder()
			s.answer(rec, r, parts)
			w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
			_, _ = w.Write(rec.Body.Bytes()[:min(f.Cut, rec.Body.Len())])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	s.answer(w, r, parts)
}

// serve plays a fault and says whether that was the answer.
func (f Fault) serve(w http.ResponseWriter, r *http.Request) bool {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return true
		}
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Location != "" {
		w.Header().Set("Location", f.Location)
	}
	switch {
	case f.Status != 0:
		status(w, f.Status)
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	default:
		return false
	}
	return true
}

func status(w http.ResponseWriter, code int) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "a message"})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method != http.MethodGet:
		status(w, http.StatusMethodNotAllowed)
	case len(parts) == 1 && parts[0] == "version":
		answer(w, 200, map[string]any{"gitVersion": "v1.37.0"})
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis"):
		s.groups(w, r, parts[0] == "api")
	case parts[0] == "api" && len(parts) == 2:
		s.group(w, "", parts[1])
	case parts[0] == "apis" && len(parts) == 3:
		s.group(w, parts[1], parts[2])
	case parts[0] == "api" && len(parts) > 2:
		s.list(w, r, "", parts[2:])
	case parts[0] == "apis" && len(parts) > 3:
		s.list(w, r, parts[1], parts[3:])
	default:
		status(w, http.StatusNotFound)
	}
}

func (s *Server) sorted() []kind {
	return slices.SortedFunc(maps.Keys(s.kinds), func(a, b kind) int {
		return strings.Compare(a.group+" "+a.version+" "+a.plural, b.group+" "+b.version+" "+b.plural)
	})
}

// groups answers /api and /apis.
func (s *Server) groups(w http.ResponseWriter, r *http.Request, core bool) {
	whole := !s.Plain && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	versions := map[string]map[string][]any{} // by group and version
	for _, k := range s.sorted() {
		if (k.group == "") != core {
			continue
		}
		if versions[k.group] == nil {
			versions[k.group] = map[string][]any{}
		}
		scope := map[bool]string{true: "Namespaced", false: "Cluster"}[s.kinds[k]]
		versions[k.group][k.version] = append(versions[k.group][k.version], map[string]any{"resource": k.plural, "scope": scope,
			"responseKind": map[string]any{"group": k.group, "version": k.version, "kind": k.kind}, "verbs": []string{"get", "list"}})
	}
	items, groups := []any{}, []any{}
	for _, g := range slices.Sorted(maps.Keys(versions)) {
		var detailed, plain []any
		for _, v := range slices.Sorted(maps.Keys(versions[g])) {
			detailed = append(detailed, map[string]any{"version": v, "freshness": "Current", "resources": versions[g][v]})
			plain = append(plain, map[string]any{"groupVersion": g + "/" + v, "version": v})
		}
		items = append(items, map[string]any{"metadata": map[string]any{"name": g}, "versions": detailed})
		groups = append(groups, map[string]any{"name": g, "versions": plain})
	}
	switch {
	case whole:
		answer(w, 200, map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
	case core:
		answer(w, 200, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	default:
		answer(w, 200, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	}
}

// group answers /api/v1 and /apis/GROUP/VERSION.
func (s *Server) group(w http.ResponseWriter, group, version string) {
	resources := []any{}
	for _, k := range s.sorted() {
		if k.group == group && k.version == version {
			resources = append(resources, map[string]any{"name": k.plural, "kind": k.kind, "namespaced": s.kinds[k], "verbs": []string{"get", "list"}})
		}
	}
	if len(resources) == 0 {
		status(w, http.StatusNotFound)
		return
	}
	answer(w, 200, map[string]any{"kind": "APIResourceList", "groupVersion": group + "/" + version, "resources": resources})
}

// list answers with a page of objects.
func (s *Server) list(w http.ResponseWriter, r *http.Request, group string, parts []string) {
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	known := slices.ContainsFunc(s.sorted(), func(k kind) bool { return k.group == group && k.plural == parts[0] })
	if len(parts) != 1 || !known {
		status(w, http.StatusNotFound)
		return
	}
	var items []any
	for _, o := range s.objects[group+"/"+parts[0]] {
		if namespace == "" || o.Namespace == namespace {
			items = append(items, sent(o))
		}
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	from = min(from, len(items))
	to, next := len(items), ""
	if limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	answer(w, 200, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1", "continue": next}, "items": items[from:to]})
}

// sent is an object as a server sends it in a list: without its kind, with what
// servers add.
func sent(o *manifest.Object) map[string]any {
	out := maps.Clone(o.Root)
	delete(out, "kind")
	delete(out, "apiVersion")
	meta, _ := out["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if o.Namespace != "" {
		meta["namespace"] = o.Namespace
	}
	notes, _ := meta["annotations"].(map[string]any)
	if notes = maps.Clone(notes); notes == nil {
		notes = map[string]any{}
	}
	notes["kubectl.kubernetes.io/last-applied-configuration"] = `{"kind":"` + o.Kind + `"}`
	meta["annotations"] = notes
	meta["managedFields"] = []any{map[string]any{"manager": "kubectl", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
	out["metadata"] = meta
	return out
}
