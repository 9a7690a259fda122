package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/kubetest"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, namespace: llm}
spec: {replicas: REPLICAS}
`

func replicas(n string) string { return strings.Replace(deployment, "REPLICAS", n, 1) }

func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFilesOverACluster: an object of a file replaces the cluster's, what cannot
// be read is a gap, and nothing but reading is done, of no Secret.
func TestFilesOverACluster(t *testing.T) {
	s := kubetest.New(t, replicas("1")+"---\napiVersion: v1\nkind: Service\nmetadata: {name: gateway, namespace: llm}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: llm}\n")
	s.Faults["networkpolicies"] = kubetest.Fault{Status: 403}
	o := Options{Kubeconfig: s.Kubeconfig(t), Cluster: FromKubeconfig, Paths: []string{written(t, replicas("3"))}}
	in, err := Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, x := range in.Objects {
		got[x.Ref().String()] = x.At("spec.replicas")
	}
	if len(got) != 2 || got["Deployment llm/gateway"] != 3.0 || in.Namespace != "llm" || in.Served == nil {
		t.Errorf("%v in namespace %s", got, in.Namespace)
	}
	forbidden := 0
	for _, g := range in.Gaps {
		if g.Reason == audit.Forbidden && g.Kind == "NetworkPolicy" {
			forbidden++
		}
	}
	if forbidden != 1 {
		t.Errorf("gaps %+v", in.Gaps)
	}
	for _, r := range s.Requests() {
		if !strings.HasPrefix(r, "GET ") || strings.Contains(r, "secrets") || strings.Contains(r, "watch") {
			t.Errorf("asked for %s", r)
		}
	}
}

func TestNothingToRead(t *testing.T) {
	if _, err := Read(t.Context(), Options{Stdin: strings.NewReader("")}); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
	in, err := Read(t.Context(), Options{Stdin: strings.NewReader(replicas("2"))})
	if err != nil || len(in.Objects) != 1 || in.Namespace != "default" || in.Served != nil {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := Read(t.Context(), Options{Paths: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "no object and no gateway configuration") {
		t.Error(err)
	}
	if _, err := Read(t.Context(), Options{Paths: []string{"missing.yaml"}}); err == nil {
		t.Error("read a file that is not there")
	}
}

// TestNothingThatCanBeAudited: an audit of nothing is an error, not good news.
func TestNothingThatCanBeAudited(t *testing.T) {
	for text, want := range map[string]string{
		"a: [\n":            "is not valid YAML",
		"replicaCount: 1\n": "is neither a Kubernetes object",
		"\x00\xff\xff":      "is not text",
	} {
		if _, err := Read(t.Context(), Options{Paths: []string{written(t, text)}}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "in.yaml") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNamespacesThatHaveNothing: a slip in a namespace's name is told.
func TestNamespacesThatHaveNothing(t *testing.T) {
	file := written(t, replicas("1"))
	if _, err := Read(t.Context(), Options{Paths: []string{file}, Namespaces: []string{"lllm", "lllm"}}); err == nil || !strings.Contains(err.Error(), "no object was read in lllm; there are objects in llm") {
		t.Error(err)
	}
	in, err := Read(t.Context(), Options{Paths: []string{file}, Namespaces: []string{"llm", "lllm"}})
	if err != nil || len(in.Problems) != 1 || in.Problems[0].File != "namespace lllm" || in.Problems[0].Lost {
		t.Errorf("%+v, %v", in, err)
	}
	s := kubetest.New(t, replicas("1"))
	o := Options{Kubeconfig: s.Kubeconfig(t), Cluster: FromKubeconfig, Namespaces: []string{"lllm"}}
	if _, err := Read(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no object was read in lllm") {
		t.Error(err)
	}
	s.Faults["deployments"] = kubetest.Fault{Status: 403}
	if _, err := Read(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// TestRoles: what is not installed and Secrets are in no role.
func TestRoles(t *testing.T) {
	s := kubetest.New(t, replicas("1"))
	s.Faults["pods"] = kubetest.Fault{Status: 403}
	k, err := Open(Options{Kubeconfig: s.Kubeconfig(t), Cluster: FromKubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	rights, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wide := string(Roles(rights, RoleOptions{}))
	own := string(Roles(rights, RoleOptions{Namespaces: []string{"llm", "apps"}, WithoutConfigMaps: true}))
	if !strings.Contains(wide, "kind: ClusterRole") || !strings.Contains(wide, "pods") || !strings.Contains(wide, "configmaps") || strings.Contains(wide, "secrets") || strings.Contains(wide, "virtualservices") {
		t.Error(wide)
	}
	if strings.Count(own, "kind: Role\n") != 2 || strings.Contains(own, "configmaps") || strings.Contains(own, "nodes") || !strings.Contains(own, "namespace: apps") {
		t.Error(own)
	}
	for _, g := range Gaps(rights) {
		if g.Kind == "Pod" && g.Reason != audit.Forbidden || g.Kind == "Deployment" {
			t.Errorf("%+v", g)
		}
	}
}
