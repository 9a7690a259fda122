package topology

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Resource is a kind of object and how the API server names it.
type Resource struct {
	Group   string `yaml:"group" json:"group"`
	Version string `yaml:"version" json:"version"`
	Kind    string `yaml:"kind" json:"kind"`
	Plural  string `yaml:"plural" json:"plural"`
}

// resources are the kinds that checks look at. A check's file names them by
// kind.
var resources = []Resource{
	{"", "v1", "ConfigMap", "configmaps"},
	{"", "v1", "Namespace", "namespaces"},
	{"", "v1", "Node", "nodes"},
	{"", "v1", "Pod", "pods"},
	{"", "v1", "ResourceQuota", "resourcequotas"},
	{"", "v1", "Service", "services"},
	{"agentgateway.dev", "v1alpha1", "AgentgatewayBackend", "agentgatewaybackends"},
	{"agentgateway.dev", "v1alpha1", "AgentgatewayPolicy", "agentgatewaypolicies"},
	{"aigateway.envoyproxy.io", "v1alpha1", "QuotaPolicy", "quotapolicies"},
	{"aigateway.envoyproxy.io", "v1beta1", "AIGatewayRoute", "aigatewayroutes"},
	{"aigateway.envoyproxy.io", "v1beta1", "AIServiceBackend", "aiservicebackends"},
	{"apisix.apache.org", "v2", "ApisixRoute", "apisixroutes"},
	{"apisix.apache.org", "v2", "ApisixUpstream", "apisixupstreams"},
	{"apps", "v1", "DaemonSet", "daemonsets"},
	{"apps", "v1", "Deployment", "deployments"},
	{"apps", "v1", "StatefulSet", "statefulsets"},
	{"argoproj.io", "v1alpha1", "ApplicationSet", "applicationsets"},
	{"argoproj.io", "v1alpha1", "Rollout", "rollouts"},
	{"autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"},
	{"cilium.io", "v2", "CiliumEnvoyConfig", "ciliumenvoyconfigs"},
	{"cilium.io", "v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies"},
	{"flagger.app", "v1beta1", "Canary", "canaries"},
	{"gateway.envoyproxy.io", "v1alpha1", "Backend", "backends"},
	{"gateway.envoyproxy.io", "v1alpha1", "BackendTrafficPolicy", "backendtrafficpolicies"},
	{"gateway.envoyproxy.io", "v1alpha1", "EnvoyProxy", "envoyproxies"},
	{"gateway.networking.k8s.io", "v1", "Gateway", "gateways"},
	{"gateway.networking.k8s.io", "v1", "GatewayClass", "gatewayclasses"},
	{"gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"},
	{"gateway.networking.k8s.io", "v1beta1", "ReferenceGrant", "referencegrants"},
	{"gateway.networking.x-k8s.io", "v1alpha1", "XBackendTrafficPolicy", "xbackendtrafficpolicies"},
	{"inference.networking.k8s.io", "v1", "InferencePool", "inferencepools"},
	{"keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"},
	{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"},
	{"networking.istio.io", "v1", "DestinationRule", "destinationrules"},
	{"networking.istio.io", "v1", "ServiceEntry", "serviceentries"},
	{"networking.istio.io", "v1", "Sidecar", "sidecars"},
	{"networking.istio.io", "v1", "VirtualService", "virtualservices"},
	{"networking.k8s.io", "v1", "Ingress", "ingresses"},
	{"networking.k8s.io", "v1", "IngressClass", "ingressclasses"},
	{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"},
	{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"},
	{"serving.kserve.io", "v1beta1", "InferenceService", "inferenceservices"},
	{"traefik.io", "v1alpha1", "IngressRoute", "ingressroutes"},
	{"traefik.io", "v1alpha1", "Middleware", "middlewares"},
}

// groups is the group that a kind is known by.
var groups = func() map[string]string {
	m := map[string]string{}
	for _, r := range resources {
		m[r.Kind] = r.Group
	}
	return m
}()

// GroupOf is the group that a kind is known by, "" for none.
func GroupOf(kind string) string { return groups[kind] }

// Resources are the kinds that the audit can make use of: of all checks, and
// those that show where a path goes. Not to be changed.
func Resources() []Resource { return resources }

// UnmarshalYAML reads the name of a known kind.
func (r *Resource) UnmarshalYAML(n *yaml.Node) error {
	i := slices.IndexFunc(resources, func(k Resource) bool { return k.Kind == n.Value })
	if n.Kind != yaml.ScalarNode || i < 0 {
		return fmt.Errorf("line %d: %q is no known kind of object", n.Line, n.Value)
	}
	*r = resources[i]
	return nil
}

func (r Resource) String() string {
	return strings.TrimSuffix(r.Plural+"."+r.Group, ".")
}
