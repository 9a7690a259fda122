package manifest

import (
	"fmt"
	"strings"
)

// clusterWide are the kinds that belong to no namespace, in groups of which the
// set says nothing itself.
var clusterWide = func() map[string]bool {
	m := map[string]bool{}
	for _, k := range strings.Fields(`/Namespace /Node /PersistentVolume /ComponentStatus
		rbac.authorization.k8s.io/ClusterRole rbac.authorization.k8s.io/ClusterRoleBinding
		apiextensions.k8s.io/CustomResourceDefinition apiregistration.k8s.io/APIService
		storage.k8s.io/StorageClass storage.k8s.io/CSIDriver storage.k8s.io/CSINode storage.k8s.io/VolumeAttachment
		storage.k8s.io/VolumeAttributesClass
		scheduling.k8s.io/PriorityClass node.k8s.io/RuntimeClass networking.k8s.io/IngressClass
		networking.k8s.io/IPAddress networking.k8s.io/ServiceCIDR resource.k8s.io/DeviceClass resource.k8s.io/ResourceSlice
		admissionregistration.k8s.io/ValidatingWebhookConfiguration admissionregistration.k8s.io/MutatingWebhookConfiguration
		admissionregistration.k8s.io/ValidatingAdmissionPolicy admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding
		admissionregistration.k8s.io/MutatingAdmissionPolicy admissionregistration.k8s.io/MutatingAdmissionPolicyBinding
		flowcontrol.apiserver.k8s.io/FlowSchema flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration
		certificates.k8s.io/CertificateSigningRequest certificates.k8s.io/ClusterTrustBundle
		gateway.networking.k8s.io/GatewayClass serving.kserve.io/ClusterServingRuntime serving.kserve.io/ClusterStorageContainer
		cert-manager.io/ClusterIssuer argoproj.io/ClusterAnalysisTemplate argoproj.io/ClusterWorkflowTemplate
		keda.sh/ClusterTriggerAuthentication cilium.io/CiliumClusterwideEnvoyConfig cilium.io/CiliumClusterwideNetworkPolicy
		cilium.io/CiliumNode cilium.io/CiliumIdentity policy.networking.k8s.io/AdminNetworkPolicy
		policy.networking.k8s.io/BaselineAdminNetworkPolicy external-secrets.io/ClusterSecretStore
		external-secrets.io/ClusterExternalSecret apisix.apache.org/ApisixClusterConfig configuration.konghq.com/KongClusterPlugin
		configuration.konghq.com/KongLicense configuration.konghq.com/KongVault kyverno.io/ClusterPolicy
		karpenter.sh/NodePool karpenter.sh/NodeClaim karpenter.k8s.aws/EC2NodeClass karpenter.azure.com/AKSNodeClass
		kueue.x-k8s.io/ClusterQueue kueue.x-k8s.io/ResourceFlavor kueue.x-k8s.io/WorkloadPriorityClass kueue.x-k8s.io/AdmissionCheck`) {
		m[strings.TrimPrefix(k, "/")] = true
	}
	return m
}()

// ClusterWide says that a kind is known to belong to no namespace.
func ClusterWide(group, kind string) bool { return clusterWide[kindKey(group, kind)] }

// settle gives objects that name no namespace the one they would be applied to.
// What belongs to no namespace has none: which kinds that are is known of the
// common ones, and else from the definitions among the objects.
func settle(objects []*Object, namespace string) {
	wide := map[string]bool{}
	for _, o := range objects {
		if o.Kind == "CustomResourceDefinition" {
			group, _ := o.At("spec.group").(string)
			kind, _ := o.At("spec.names.kind").(string)
			wide[kindKey(group, kind)] = o.At("spec.scope") == "Cluster"
		}
	}
	for _, o := range objects {
		if o.Group == FileGroup || o.Origin.Live {
			continue
		}
		is, said := wide[kindKey(o.Group, o.Kind)]
		switch {
		case is || !said && clusterWide[kindKey(o.Group, o.Kind)]:
			o.Namespace = ""
		case o.Namespace == "":
			o.Namespace = namespace
		}
		for _, e := range o.embedded {
			e.Namespace = o.Namespace
		}
	}
}

func kindKey(group, kind string) string {
	if group == "" {
		return kind
	}
	return group + "/" + kind
}

// identity is what makes two descriptions those of one object: the version in
// which it is written does not.
type identity struct{ group, kind, namespace, name string }

func (o *Object) identity() identity {
	return identity{o.Group, o.Kind, o.Namespace, o.Name}
}

// unique keeps the last of those that describe the same object.
func unique(objects []*Object, problems []Problem) ([]*Object, []Problem) {
	last := make(map[identity]*Object, len(objects))
	for _, o := range objects {
		if o.Group == FileGroup || o.Name == "" {
			continue
		}
		if first := last[o.identity()]; first != nil {
			problems = append(problems, Problem{File: o.Origin.File, Line: o.Origin.Line, Column: 1,
				What:   fmt.Sprintf("%s is described in %s:%d too; this one counts", o.Ref(), first.Origin.File, first.Origin.Line),
				Remedy: "keep one of them"})
		}
		last[o.identity()] = o
	}
	out := objects[:0]
	for _, o := range objects {
		if l := last[o.identity()]; l == nil || l == o || o.Group == FileGroup || o.Name == "" {
			out = append(out, o)
		}
	}
	clear(objects[len(out):])
	return out, problems
}

// Merge puts files over what a cluster has: an object of a file replaces the
// cluster's of the same identity. It answers what would be so once the files
// were applied.
func Merge(live, files []*Object) []*Object {
	named := make(map[identity]bool, len(files))
	for _, o := range files {
		if o.Group != FileGroup && o.Name != "" {
			named[o.identity()] = true
		}
	}
	out := make([]*Object, 0, len(live)+len(files))
	for _, o := range live {
		if o.Group == FileGroup || !named[o.identity()] {
			out = append(out, o)
		}
	}
	return append(out, files...)
}
