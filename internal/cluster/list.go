package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hourthree/hourthree/internal/manifest"
)

// pageSize is how many objects are asked for at once.
const pageSize = 500

// workers is how many lists are read side by side.
const workers = 4

// Why a kind could not be read.
const (
	Forbidden = "forbidden"
	Absent    = "crd_absent"
	TimedOut  = "timeout"
	Partial   = "partial_list" // a part, or nothing at all, for another reason
)

// Gap is a kind that could not be read, or only in part.
type Gap struct {
	Resource
	Reason string
	Detail string // the missing verb, the answer
}

// Result is what a cluster gave.
type Result struct {
	Objects  []*manifest.Object // in the order of Resources, then as the server has them
	Problems []manifest.Problem // of configurations inside objects
	Gaps     []Gap              // in the order of Resources
	Served   []Resource         // what the cluster has of Resources, in the version that was read
}

// List reads every object of the resources that the cluster was opened for. A
// kind that cannot be read is a gap; an error means that the cluster could not be
// asked at all.
func (c *Cluster) List(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	d, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	lists := make([]*list, len(c.opts.Resources))
	var objects atomic.Int64
	each(len(lists), func(i int) {
		l := &list{c: c, resource: c.opts.Resources[i], objects: &objects, words: map[string]string{}}
		lists[i] = l
		s, ok := d.find(l.resource)
		if !ok {
			l.gap(Absent, fmt.Sprintf("the cluster has no %s", l.resource))
			return
		}
		l.served = s
		l.read(ctx)
	})
	r := &Result{Served: d.served(c.opts.Resources)}
	for _, l := range lists {
		r.Objects, r.Problems, r.Gaps = append(r.Objects, l.found...), append(r.Problems, l.problems...), append(r.Gaps, l.gaps...)
	}
	return r, nil
}

// each calls f for 0 to n-1, a few at a time.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, workers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// list reads one resource. It belongs to one goroutine.
type list struct {
	c        *Cluster
	resource Resource
	served   served
	objects  *atomic.Int64 // of all lists
	words    map[string]string
	found    []*manifest.Object
	problems []manifest.Problem
	gaps     []Gap
}

func (l *list) gap(reason, detail string) {
	l.gaps = append(l.gaps, Gap{Resource: l.resource, Reason: reason, Detail: detail})
}

// paths are where the resource is listed: once, or once for each namespace.
func (l *list) paths() map[string]string {
	base := groupPath(l.resource.Group, l.served.version)
	if len(l.c.opts.Namespaces) == 0 || !l.served.namespaced {
		return map[string]string{"": base + "/" + l.resource.Plural}
	}
	paths := make(map[string]string, len(l.c.opts.Namespaces))
	for _, n := range l.c.opts.Namespaces {
		paths[n] = base + "/namespaces/" + n + "/" + l.resource.Plural
	}
	return paths
}

func (l *list) read(ctx context.Context) {
	paths := l.paths()
	for _, namespace := range append([]string{""}, l.c.opts.Namespaces...) {
		path, ok := paths[namespace]
		if !ok {
			continue
		}
		delete(paths, namespace)
		before, problems := len(l.found), len(l.problems)
		err := l.pages(ctx, path)
		var status *statusError
		if errors.As(err, &status) && status.code == http.StatusGone { // the list changed under us: once more
			l.objects.Add(int64(before - len(l.found)))
			l.found, l.problems = l.found[:before], l.problems[:problems]
			err = l.pages(ctx, path)
		}
		if err != nil {
			reason, detail := l.why(ctx, err, namespace)
			if n := len(l.found) - before; n > 0 && reason != Absent {
				detail += fmt.Sprintf("; %d were read before that", n)
				if reason == Forbidden {
					reason = Partial
				}
			}
			l.gap(reason, detail)
		}
	}
}

// pages reads a list page by page.
func (l *list) pages(ctx context.Context, path string) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for seen := map[string]bool{}; ; {
		var p page
		err := l.c.get(ctx, path, query, plainAccept, func(r io.Reader) error {
			p = page{words: l.words, item: l.item}
			return p.read(r)
		})
		switch {
		case err != nil:
			return err
		case p.next == "":
			return nil
		case seen[p.next]:
			return errors.New("the server gives the same page again and again")
		}
		seen[p.next] = true
		query.Set("continue", p.next)
	}
}

var errObjects = errors.New("there are more objects than are read")

// item takes in one object.
func (l *list) item(root map[string]any) error {
	if l.objects.Add(1) > int64(l.c.opts.MaxObjects) {
		return errObjects
	}
	if root["kind"] == nil {
		root["kind"] = l.served.kind
	}
	if root["apiVersion"] == nil {
		root["apiVersion"] = l.served.version
		if l.resource.Group != "" {
			root["apiVersion"] = l.resource.Group + "/" + l.served.version
		}
	}
	o, problems := manifest.Live(root)
	l.found, l.problems = append(l.found, o), append(l.problems, problems...)
	return nil
}

// why says what an error means for the resource.
func (l *list) why(ctx context.Context, err error, namespace string) (reason, detail string) {
	where := l.resource.String()
	if namespace != "" {
		where += " in namespace " + namespace
	}
	var status *statusError
	switch {
	case errors.As(err, &status) && status.code == http.StatusForbidden:
		return Forbidden, "needs the verb list on " + where
	case errors.As(err, &status) && status.code == http.StatusUnauthorized:
		return Forbidden, "the credentials are not accepted any more"
	case errors.As(err, &status) && status.code == http.StatusNotFound:
		return Absent, "the cluster has no " + where
	case ctx.Err() != nil:
		return TimedOut, fmt.Sprintf("%s were not read within %s for the whole cluster", where, l.c.opts.Timeout)
	case errors.Is(err, context.DeadlineExceeded):
		return TimedOut, fmt.Sprintf("%s were not answered within %s", where, l.c.opts.RequestTimeout)
	}
	return Partial, where + ": " + err.Error()
}
