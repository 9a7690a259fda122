package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
)

// Right says whether a kind can be read.
type Right struct {
	Resource
	Readable bool
	Reason   string // Forbidden, Absent and so on, "" when readable
	Detail   string // what is missing
}

// errSeen ends reading after the first object.
var errSeen = errors.New("seen")

// Access tries to list one object of every resource.
func (c *Cluster) Access(ctx context.Context) ([]Right, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	rights := make([]Right, len(c.opts.Resources))
	each(len(rights), func(i int) {
		l := &list{c: c, resource: c.opts.Resources[i]}
		r := &rights[i]
		r.Resource = l.resource
		s, ok := d.find(l.resource)
		if !ok {
			r.Reason, r.Detail = Absent, fmt.Sprintf("the cluster has no %s", l.resource)
			return
		}
		l.served = s
		paths := l.paths()
		for _, namespace := range slices.Sorted(maps.Keys(paths)) {
			err := c.get(ctx, paths[namespace], url.Values{"limit": {"1"}}, plainAccept, func(r io.Reader) error {
				p := page{words: map[string]string{}, item: func(map[string]any) error { return errSeen }}
				return p.read(r)
			})
			if err != nil && !errors.Is(err, errSeen) {
				r.Reason, r.Detail = l.why(ctx, err, namespace)
				return
			}
		}
		r.Readable = true
	})
	return rights, nil
}

// WithoutConfigMaps are the resources without ConfigMaps, which may hold keys:
// whoever does not want to let them be read gives up the checks that need them.
func WithoutConfigMaps(resources []Resource) []Resource {
	return slices.DeleteFunc(slices.Clone(resources), func(r Resource) bool { return r.Group == "" && r.Plural == "configmaps" })
}

// ClusterRole is the smallest role that lets the resources be read.
func ClusterRole(resources []Resource) []byte {
	return role("# Bind it: kubectl create clusterrolebinding hourthree-audit --clusterrole=hourthree-audit --serviceaccount=NAMESPACE:NAME\n"+
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: hourthree-audit\n", resources)
}

// Role is the smallest role that lets the resources of one namespace be read.
// What belongs to no namespace, such as nodes, no Role can give.
func Role(namespace string, resources []Resource) []byte {
	inside := slices.DeleteFunc(slices.Clone(resources), func(r Resource) bool { return manifest.ClusterWide(r.Group, r.Kind) })
	return role(fmt.Sprintf("# Bind it: kubectl create rolebinding hourthree-audit -n %[1]s --role=hourthree-audit --serviceaccount=NAMESPACE:NAME\n"+
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: hourthree-audit\n  namespace: %[1]s\n", namespace), inside)
}

func role(head string, resources []Resource) []byte {
	groups := map[string][]string{}
	for _, r := range resources {
		if r.Group == "" && r.Plural == "secrets" {
			continue
		}
		groups[r.Group] = append(groups[r.Group], r.Plural)
	}
	var b bytes.Buffer
	b.WriteString(head + "rules:\n")
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[g])
		fmt.Fprintf(&b, "- apiGroups: [%q]\n  resources: [%s]\n  verbs: [get, list]\n", g, strings.Join(slices.Compact(groups[g]), ", "))
	}
	if len(groups) == 0 {
		b.Truncate(b.Len() - 1)
		b.WriteString(" []\n")
	}
	return b.Bytes()
}
