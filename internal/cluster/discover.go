package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// served is a version in which the server has a kind.
type served struct {
	version, kind string
	namespaced    bool
}

// discovery is what the server says that it has, by group and plural.
type discovery struct {
	kinds map[Resource][]served // preferred versions first
	// unknown are groups of which nothing could be learnt: they are asked for as
	// the caller named them.
	unknown map[string]bool
}

// groupList is both forms of the answer to /apis.
type groupList struct {
	Items []struct { // the whole in one answer
		Metadata struct{ Name string }
		Versions []struct {
			Version   string
			Freshness string
			Resources []struct {
				Resource     string
				ResponseKind struct{ Kind string }
				Scope        string
			}
		}
	}
	Groups []struct { // names alone
		Name     string
		Versions []struct{ Version string }
	}
	Versions []string // of /api
}

type resourceList struct {
	Resources []struct {
		Name, Kind string
		Namespaced bool
	}
}

func (d *discovery) add(group, plural string, s served) {
	key := Resource{Group: group, Plural: plural}
	d.kinds[key] = append(d.kinds[key], s)
}

// find is how the server has a resource: in the version asked for, else in
// another, which has nearly the same fields.
func (d *discovery) find(r Resource) (served, bool) {
	list := d.kinds[Resource{Group: r.Group, Plural: r.Plural}]
	for _, s := range list {
		if s.version == r.Version {
			return s, true
		}
	}
	if len(list) > 0 {
		return list[0], true
	}
	if d.unknown[r.Group] {
		wide := r.Group == "" && (r.Plural == "nodes" || r.Plural == "namespaces")
		return served{version: r.Version, kind: r.Kind, namespaced: !wide}, true
	}
	return served{}, false
}

// discover asks which kinds the server has.
func (c *Cluster) discover(ctx context.Context) (*discovery, error) {
	d := &discovery{kinds: map[Resource][]served{}, unknown: map[string]bool{}}
	var core, groups groupList
	for path, into := range map[string]*groupList{"/api": &core, "/apis": &groups} { // in any order
		if err := c.decode(ctx, path, aggregated, into); err != nil {
			var status *statusError
			if errors.As(err, &status) && (status.code == http.StatusForbidden || status.code == http.StatusNotFound) {
				for _, r := range c.opts.Resources {
					if (r.Group == "") == (path == "/api") {
						d.unknown[r.Group] = true
					}
				}
				continue
			}
			return nil, c.unreachable(err)
		}
		if len(into.Items)+len(into.Groups)+len(into.Versions) == 0 {
			return nil, c.unreachable(fmt.Errorf("the answer to %s is not what an API server answers: it has no kinds and no groups", path))
		}
		d.whole(into)
	}
	need := map[string]bool{}
	for _, r := range c.opts.Resources {
		need[r.Group] = true
	}
	if need[""] && len(core.Items) == 0 {
		for _, v := range core.Versions {
			c.group(ctx, d, "", v)
		}
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if need[g.Name] {
				c.group(ctx, d, g.Name, v.Version)
			}
		}
	}
	return d, ctx.Err()
}

// whole takes in an answer that has everything.
func (d *discovery) whole(list *groupList) {
	for _, g := range list.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				d.add(g.Metadata.Name, r.Resource, served{v.Version, r.ResponseKind.Kind, r.Scope == "Namespaced"})
			}
			if v.Freshness == "Stale" {
				d.unknown[g.Metadata.Name] = true
			}
		}
	}
}

// group asks for the kinds of one version of a group.
func (c *Cluster) group(ctx context.Context, d *discovery, group, version string) {
	var list resourceList
	if err := c.decode(ctx, groupPath(group, version), plainAccept, &list); err != nil || len(list.Resources) == 0 {
		d.unknown[group] = true
		return
	}
	for _, r := range list.Resources {
		d.add(group, r.Name, served{version, r.Kind, r.Namespaced})
	}
}

func groupPath(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return "/apis/" + group + "/" + version
}

func (c *Cluster) decode(ctx context.Context, path, accept string, into any) error {
	return c.get(ctx, path, nil, accept, func(r io.Reader) error {
		if err := json.NewDecoder(r).Decode(into); err != nil {
			return fmt.Errorf("the answer to %s is not what an API server answers: %w", path, err)
		}
		return nil
	})
}

// unreachable says what can be done about a server that does not answer.
func (c *Cluster) unreachable(err error) error {
	remedy := "check that the cluster runs and can be reached from here"
	var status *statusError
	var refused *refusal
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errCredentials), strings.Contains(err.Error(), "getting credentials"):
		remedy = "check the command that the kubeconfig names for credentials, or allow more time with --timeout"
	case errors.As(err, &certificate):
		remedy = "check certificate-authority of the cluster in the kubeconfig"
	case errors.As(err, &status) && status.code == http.StatusUnauthorized:
		remedy = "renew the credentials of the context"
	case errors.As(err, &status) && status.passing():
		remedy = "try again when the API server is well"
	case errors.As(err, &status), errors.As(err, &refused):
		remedy = "check the server's address in the kubeconfig"
	case errors.Is(err, context.DeadlineExceeded):
		remedy = "check that the cluster can be reached from here, or allow more time with --timeout"
	}
	return fmt.Errorf("read the cluster of context %q at %s: %w; %s", c.context, c.server.Redacted(), err, remedy)
}

// Served are the kinds that the cluster was opened for and has, in the version
// that is read.
func (d *discovery) served(resources []Resource) []Resource {
	var out []Resource
	for _, r := range resources {
		if s, ok := d.find(r); ok {
			r.Version = s.version
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}
