package mcpserver

import (
	"context"
	"fmt"

	"github.com/hourthree/hourthree/internal/cluster"
	"github.com/hourthree/hourthree/internal/collect"
)

type accessIn struct{}

type access struct {
	Summary  string    `json:"summary"`
	Readable []string  `json:"readable"`
	Missing  []missing `json:"missing" jsonschema:"the checks that need them are not evaluated"`
	Absent   []string  `json:"absent" jsonschema:"kinds that the cluster does not have"`
	Role     string    `json:"role" jsonschema:"the smallest role that lets everything be read that the audit needs, as YAML"`
	rest
}

type missing struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
	Detail   string `json:"detail"`
}

func (s *Server) auditAccess(ctx context.Context, _ accessIn) (*access, error) {
	a := s.auditor
	if a.may.Cluster == collect.NoCluster {
		return nil, refuse("this process was started for no cluster; start `hourthree mcp` with --cluster or --context")
	}
	if err := a.begin(ctx); err != nil {
		return nil, err
	}
	defer a.end()
	rights, err := a.rights(ctx)
	if err != nil {
		return nil, a.unread(ctx, question{read: a.live()}, err)
	}
	out := &access{Role: string(collect.Roles(rights, collect.RoleOptions{Namespaces: a.may.Namespaces}))}
	if len(out.Role) > budget/2 {
		out.Role = "" // of very many namespaces; `hourthree audit access` prints it
	}
	var readable, absent []string
	var lacks []missing
	for _, r := range rights {
		switch {
		case r.Readable:
			readable = append(readable, plain(r.Resource.String(), shortText))
		case r.Reason == cluster.Absent:
			absent = append(absent, plain(r.Resource.String(), shortText))
		default:
			lacks = append(lacks, missing{plain(r.Resource.String(), shortText), plain(r.Reason, maxWord), plain(unaddressed(r.Detail), someText)})
		}
	}
	out.Summary = fmt.Sprintf("%d of %s can be read, %d are not installed, %d are missing.", len(readable), counted(len(rights), "kind"), len(absent), len(lacks))
	sections := []section{part("missing", lacks, &out.Missing), part("readable", readable, &out.Readable), part("absent", absent, &out.Absent)}
	out.rest = fill("", room(out), place{}, sections)
	out.Next = ""
	return out, nil
}

func (a *auditor) rights(ctx context.Context) ([]cluster.Right, error) {
	c, err := collect.Open(a.live())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Access(ctx)
}
