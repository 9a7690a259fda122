// Package collect brings together what an audit looks at: files, a cluster, or
// a cluster with files put over it. It decides which of them are read and what
// an empty question means; it judges nothing. How files become objects is
// package manifest's to know, and what may be asked of a cluster package
// cluster's.
package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/cluster"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// Options say what to read.
type Options struct {
	Paths      []string  // files, folders, "-" for standard input
	Stdin      io.Reader // nil for os.Stdin
	Cluster    Cluster
	Kubeconfig string   // "" for the usual places
	Context    string   // "" for the current one
	Namespaces []string // of a cluster, that are read; empty for all
	MaxFile    int64    // bytes, 0 for the default of package manifest
	MaxTotal   int64
	Timeout    time.Duration // of reading a cluster, 0 for the default of package cluster
}

// Cluster says whether a cluster is read.
type Cluster uint8

// Without one, files alone are read.
const (
	NoCluster Cluster = iota
	FromKubeconfig
)

// Collected is what was read.
type Collected struct {
	audit.Input
	// Namespace is that of objects which name none.
	Namespace string
}

// ErrNothing says that nobody said what to read.
var ErrNothing = errors.New("nothing to read: name files or folders, pipe manifests in, or name a cluster with --context")

// Read reads files and a cluster. Files replace a cluster's objects of the same
// identity: the answer is about what would be so once they were applied.
func Read(ctx context.Context, o Options) (*Collected, error) {
	paths := o.Paths
	if len(paths) == 0 && o.Cluster == NoCluster {
		if !piped(o.Stdin) {
			return nil, ErrNothing
		}
		paths = []string{"-"}
	}
	out := &Collected{Namespace: "default"}
	if o.Cluster == FromKubeconfig {
		if err := out.live(ctx, o); err != nil {
			return nil, err
		}
	}
	if len(paths) == 0 {
		return out, out.named(o.Namespaces)
	}
	set, err := manifest.Read(ctx, manifest.Options{Paths: paths, Namespace: out.Namespace, Stdin: o.Stdin, MaxFile: o.MaxFile, MaxTotal: o.MaxTotal})
	if err != nil {
		return nil, err
	}
	out.Objects = manifest.Merge(out.Objects, set.Objects)
	out.Problems = append(out.Problems, set.Problems...)
	if o.Cluster == NoCluster && len(out.Objects) == 0 {
		return nil, nothing(out.Problems, o.Paths)
	}
	return out, out.named(o.Namespaces)
}

// nothing is why there is no object in what was named: an audit of nothing is no
// good news.
func nothing(problems []manifest.Problem, paths []string) error {
	switch {
	case len(problems) > 0:
		p := problems[0]
		text := p.File
		if p.Line > 0 {
			text += fmt.Sprintf(":%d", p.Line)
		}
		text += ": " + p.What + "; " + p.Remedy
		if n := len(problems) - 1; n > 0 {
			text += fmt.Sprintf(" (and %d more)", n)
		}
		return fmt.Errorf("read manifests: nothing that can be audited was read: %s", text)
	case len(paths) == 0:
		return ErrNothing
	}
	return fmt.Errorf("read manifests: there is no object and no gateway configuration in %s; files end with .yaml, .yml, .json or have a gateway's own name", list(paths))
}

// named says which of the namespaces that are asked for have no object. Where
// that is all of them nothing would be reported on, and it is an error. What
// could not be read may have been in any.
func (c *Collected) named(namespaces []string) error {
	if slices.ContainsFunc(c.Gaps, func(g audit.Gap) bool { return g.Reason != audit.Absent }) {
		return nil
	}
	have := map[string]bool{}
	for _, o := range c.Objects {
		have[o.Namespace] = true
	}
	var missing []string
	for _, n := range namespaces {
		if !have[n] && !slices.Contains(missing, n) {
			missing = append(missing, n)
		}
	}
	fileAlone := slices.ContainsFunc(c.Objects, func(o *manifest.Object) bool { return o.Group == manifest.FileGroup })
	if len(missing) > 0 && len(missing) == len(slices.Compact(slices.Sorted(slices.Values(namespaces)))) && !fileAlone {
		return fmt.Errorf("--namespace: no object was read in %s%s", strings.Join(missing, ", "), others(have))
	}
	for _, n := range missing {
		c.Problems = append(c.Problems, manifest.Problem{File: "namespace " + n, What: "no object was read in it", Remedy: "check its name" + others(have)})
	}
	return nil
}

// others names namespaces that have objects.
func others(have map[string]bool) string {
	delete(have, "")
	if len(have) == 0 {
		return ""
	}
	return "; there are objects in " + list(slices.Sorted(maps.Keys(have)))
}

// piped says whether standard input is worth reading unasked.
func piped(in io.Reader) bool {
	if in != nil && in != io.Reader(os.Stdin) {
		return true
	}
	info, err := os.Stdin.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular() && info.Size() > 0)
}

func list(paths []string) string {
	text := ""
	for i, p := range paths {
		switch {
		case i == 3:
			return text + fmt.Sprintf(" and %d more", len(paths)-i)
		case i > 0:
			text += ", "
		}
		text += p
	}
	return text
}

func (c *Collected) live(ctx context.Context, o Options) error {
	k, err := Open(o)
	if err != nil {
		return err
	}
	defer k.Close()
	r, err := k.List(ctx)
	if err != nil {
		return err
	}
	c.Namespace = k.Namespace()
	c.Objects, c.Problems = r.Objects, r.Problems
	for _, g := range r.Gaps {
		c.Gaps = append(c.Gaps, audit.Gap{Resource: topology.Resource(g.Resource), Reason: audit.Reason(g.Reason), Detail: g.Detail})
	}
	c.Served = []topology.Resource{}
	for _, s := range r.Served {
		c.Served = append(c.Served, topology.Resource(s))
	}
	return nil
}

// Open prepares to read the cluster for what the audit's checks need, and
// nothing else. It sends nothing.
func Open(o Options) (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{
		Kubeconfig: o.Kubeconfig, Context: o.Context, Namespaces: slices.Clone(o.Namespaces), Resources: Resources(), Timeout: o.Timeout,
	})
}

// Resources are what the audit reads of a cluster.
func Resources() []cluster.Resource {
	var list []cluster.Resource
	for _, r := range topology.Resources() {
		list = append(list, cluster.Resource(r))
	}
	return list
}
