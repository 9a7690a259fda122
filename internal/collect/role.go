package collect

import (
	"bytes"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/cluster"
	"github.com/hourthree/hourthree/internal/topology"
)

// Gaps are the kinds that cannot be read.
func Gaps(rights []cluster.Right) []audit.Gap {
	var list []audit.Gap
	for _, r := range rights {
		if !r.Readable {
			list = append(list, audit.Gap{Resource: topology.Resource(r.Resource), Reason: audit.Reason(r.Reason), Detail: r.Detail})
		}
	}
	return list
}

// RoleOptions say what kind of role is wanted.
type RoleOptions struct {
	Namespaces        []string // a Role in each; empty for a ClusterRole
	WithoutConfigMaps bool
}

// Roles are the smallest roles, as YAML, that let everything be read that a
// cluster has of what the audit needs. Rights are what Access found.
func Roles(rights []cluster.Right, o RoleOptions) []byte {
	var wanted []cluster.Resource
	for _, r := range rights {
		if r.Readable || r.Reason != cluster.Absent {
			wanted = append(wanted, r.Resource)
		}
	}
	if o.WithoutConfigMaps {
		wanted = cluster.WithoutConfigMaps(wanted)
	}
	if len(o.Namespaces) == 0 {
		return cluster.ClusterRole(wanted)
	}
	var list [][]byte
	for _, n := range o.Namespaces {
		list = append(list, cluster.Role(n, wanted))
	}
	return bytes.Join(list, []byte("---\n"))
}
