package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

// Audit says what the tools of the audit may read. It is set when the process
// starts, and no tool changes or shows it.
type Audit struct {
	// Cluster says whether there is one, Kubeconfig and Context which.
	Cluster    collect.Cluster
	Kubeconfig string
	Context    string
	Namespaces []string // of the cluster, that are read; empty for all
	// Root is the folder below which files may be read, "" for none.
	Root string
}

// Bounds of what is kept of runs.
const (
	maxRuns     = 8
	maxFindings = 10_000  // of all runs
	maxObjects  = 200_000 // of all runs; the newest run is always kept
)

// auditor runs audits, one at a time, and keeps what the last ones found.
type auditor struct {
	may     Audit
	library *incident.Library
	log     *slog.Logger
	folder  *folder       // nil without a root
	turn    chan struct{} // held while something is audited

	mu     sync.Mutex
	runs   []*kept // oldest first
	prefix string  // of the ids of this process
	count  int
}

// kept is a run that questions may come back to.
type kept struct {
	id       string
	report   *audit.Report
	left     int // findings that are not kept
	objects  int
	readable func(string) string // texts without the place of the root

	paths func() *retrypath.Paths // made when one is asked for; call it in turn
}

func newAuditor(may Audit, l *incident.Library, log *slog.Logger) (*auditor, error) {
	a := &auditor{may: may, library: l, log: log, turn: make(chan struct{}, 1)}
	if may.Cluster != collect.NoCluster {
		// The context is looked up now and stays: whoever changes the kubeconfig's
		// current one does not change what this process reads.
		c, err := collect.Open(a.live())
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if c.Context() != inCluster {
			a.may.Context = c.Context()
		}
	}
	if may.Root != "" {
		f, err := openFolder(may.Root)
		if err != nil {
			return nil, err
		}
		a.folder = f
	}
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	a.prefix = "run-" + hex.EncodeToString(b[:])
	return a, nil
}

// inCluster is what a cluster calls the context of a pod.
const inCluster = "in-cluster"

// live says how the cluster is read.
func (a *auditor) live() collect.Options {
	return collect.Options{Cluster: a.may.Cluster, Kubeconfig: a.may.Kubeconfig, Context: a.may.Context, Namespaces: a.may.Namespaces}
}

// question is what an audit is asked.
type question struct {
	read       collect.Options
	checks     []string
	namespaces []string
}

// audit reads and audits, when it is its turn.
func (a *auditor) audit(ctx context.Context, q question) (*kept, error) {
	ctx, cancel := context.WithTimeout(ctx, auditLimit)
	defer cancel()
	if _, err := audit.Select(q.checks); err != nil {
		return nil, refuse("%s", plain(err.Error(), someText))
	}
	if err := a.begin(ctx); err != nil {
		return nil, err
	}
	defer a.end()
	in, err := collect.Read(ctx, q.read)
	if err != nil {
		return nil, a.unread(ctx, q, err)
	}
	opt := audit.Options{Checks: q.checks, Namespaces: q.namespaces, MaxAttempts: 10, Today: time.Now(), Library: a.library, Context: in.Namespace}
	report, err := audit.Run(ctx, in.Input, opt)
	if err != nil {
		return nil, a.unread(ctx, q, err)
	}
	report.Passed = nil
	k := &kept{report: report, objects: len(in.Objects), readable: a.shown, paths: sync.OnceValue(func() *retrypath.Paths { return retrypath.New(topology.New(in.Objects, in.Namespace)) })}
	a.keep(k)
	return k, nil
}

func (a *auditor) begin(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return refuse("the question was taken back, or another audit took too long")
	}
}

func (a *auditor) end() { <-a.turn }

// unread is what a client is told when nothing could be read. What a kubeconfig
// or the API server's address has to do with it goes to the log alone.
func (a *auditor) unread(ctx context.Context, q question, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return refuse("the audit took longer than %s; ask for one namespace, or fewer checks", auditLimit)
	case ctx.Err() != nil:
		return refuse("the question was taken back before its answer was found")
	case q.read.Cluster != collect.NoCluster:
		a.log.Error("the cluster cannot be read", "component", "mcp", "error", err)
		return refuse("the cluster cannot be read; the log of the process that offers these tools says why, and so does `hourthree audit access`")
	}
	return refuse("%s", plain(a.shown(err.Error()), someText))
}

// shown is a text without the place where the root is.
func (a *auditor) shown(s string) string {
	if a.folder == nil {
		return s
	}
	s = strings.ReplaceAll(s, filepath.ToSlash(a.folder.path)+"/", "")
	return strings.ReplaceAll(s, filepath.ToSlash(a.folder.path), ".")
}

// keep keeps a run and lets go of the oldest ones.
func (a *auditor) keep(k *kept) {
	if n := len(k.report.Findings) - maxFindings; n > 0 {
		k.left = n
		k.report.Findings = slices.Clone(k.report.Findings[:maxFindings]) // the most severe come first
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	k.id = fmt.Sprintf("%s-%d", a.prefix, a.count)
	a.runs = append(a.runs, k)
	for len(a.runs) > 1 && a.tooMuch() {
		a.runs[0] = nil
		a.runs = a.runs[1:]
	}
}

func (a *auditor) tooMuch() bool {
	findings, objects := 0, 0
	for _, r := range a.runs {
		findings, objects = findings+len(r.report.Findings), objects+r.objects
	}
	return len(a.runs) > maxRuns || findings > maxFindings || objects > maxObjects
}

// run is a run that is kept; the newest for no id.
func (a *auditor) run(id string) (*kept, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.runs) == 0 {
		return nil, refuse("nothing was audited yet; call audit_run or audit_manifests first")
	}
	if id == "" {
		return a.runs[len(a.runs)-1], nil
	}
	var known []string
	for _, r := range a.runs {
		if r.id == id {
			return r, nil
		}
		known = append(known, r.id)
	}
	return nil, refuse("there is no run %q; kept are %s; audit again for another", plain(id, maxWord), strings.Join(known, ", "))
}

// finding looks a key up in all runs, the newest first.
func (a *auditor) finding(key string) (*kept, *audit.Finding, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range slices.Backward(a.runs) {
		var found *audit.Finding
		for i := range r.report.Findings {
			f := &r.report.Findings[i]
			if !strings.HasPrefix(f.Key, key) {
				continue
			}
			if found != nil && found.Key != f.Key {
				return nil, nil, refuse("several findings begin with the key %q; write more of it", key)
			}
			if found == nil {
				found = f
			}
		}
		if found != nil {
			return r, found, nil
		}
	}
	return nil, nil, refuse("no finding of the runs that are kept has the key %q; audit_findings lists them", key)
}
