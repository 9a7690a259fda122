//go:build cluster

package cluster

import (
	"os"
	"testing"
)

// TestRealCluster reads the cluster that KUBECONFIG names, as an audit does. It
// changes nothing there.
func TestRealCluster(t *testing.T) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("KUBECONFIG is not set: there is no cluster to read")
	}
	all := append([]Resource{
		{"", "v1", "Namespace", "namespaces"},
		{"", "v1", "Service", "services"},
		{"apps", "v1", "StatefulSet", "statefulsets"},
		{"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"},
		{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"},
		{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"},
		{"acme.example", "v1", "Nothing", "nothings"},
	}, resources...)
	c, err := Open(Options{Kubeconfig: path, Resources: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := collects(t, c)
	t.Logf("context %s at %s: %d objects", c.Context(), c.Server(), len(r.Objects))
	for _, g := range r.Gaps {
		t.Logf("gap: %s: %s", g.Reason, g.Detail)
	}
}
