package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/render"
)

const exitUncovered = 3

func auditCommand() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use: "audit [PATH...]", Short: "Find in manifests, gateway files or a cluster what exposed others to an outage",
		Long: `Find in Kubernetes manifests, gateway configurations or a running cluster the
conditions that exposed others to an outage. Every finding says where it is, why
it matters, what to do, and which public incidents had it.

Paths are files, folders, or - for standard input. A cluster is read with GET
and LIST alone, never a Secret; with paths as well, the files are put over it:
what would be so once they were applied.

Exit 0: no finding at or above --fail-on; 1: findings; 2: usage or failure;
3: coverage below --require-coverage, which is below 100 where a part of the
input could not be read.`,
		RunE: func(c *cobra.Command, paths []string) error { return f.run(c, paths) },
	}
	f.input.add(c)
	f.add(c)
	c.AddCommand(auditPath(), auditAccess(), auditChecks())
	return c
}

// auditInput are the flags that say what to read.
type auditInput struct {
	context, kubeconfig string
	cluster             bool
	namespaces          []string
	maxFile, maxTotal   int64
	timeout             time.Duration
}

func (i *auditInput) add(c *cobra.Command) {
	i.addCluster(c)
	c.Flags().BoolVar(&i.cluster, "cluster", false, "read the cluster of the current context, or the one this runs in")
	c.Flags().StringSliceVarP(&i.namespaces, "namespace", "n", nil, "report on these namespaces, and read no others of a cluster")
	c.Flags().Int64Var(&i.maxFile, "max-file", 32, "`MiB` of one file")
	c.Flags().Int64Var(&i.maxTotal, "max-total", 64, "`MiB` of all files")
}

func (i *auditInput) addCluster(c *cobra.Command) {
	c.Flags().StringVar(&i.context, "context", "", "read the cluster of this context of the kubeconfig")
	c.Flags().StringVar(&i.kubeconfig, "kubeconfig", "", "read the cluster of this kubeconfig `file`; default KUBECONFIG or ~/.kube/config")
	c.Flags().DurationVar(&i.timeout, "timeout", 2*time.Minute, "for reading a cluster")
}

// check says which flags cannot be meant. A context that is empty, such as a
// variable of a pipeline that is not set, would leave the cluster out in silence.
func (i *auditInput) check(c *cobra.Command) error {
	for _, name := range []string{"context", "kubeconfig"} {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s: is empty; name one, or leave it out", name)
		}
	}
	const most = 1 << 20 // MiB
	switch {
	case c.Flags().Lookup("max-file") != nil && (min(i.maxFile, i.maxTotal) < 1 || max(i.maxFile, i.maxTotal) > most):
		return fmt.Errorf("--max-file and --max-total: must be from 1 to %d MiB", most)
	case i.timeout <= 0:
		return errors.New("--timeout: must be above 0")
	}
	return nil
}

func (i *auditInput) options(in io.Reader, paths []string) collect.Options {
	o := collect.Options{
		Paths: paths, Stdin: in, Kubeconfig: i.kubeconfig, Context: i.context, Namespaces: i.namespaces,
		MaxFile: i.maxFile << 20, MaxTotal: i.maxTotal << 20, Timeout: i.timeout,
	}
	if i.cluster || i.context != "" || i.kubeconfig != "" {
		o.Cluster = collect.FromKubeconfig
	}
	return o
}

type auditFlags struct {
	input auditInput

	failOn, baseline, waivers, library string
	formats, outputs, checks           []string
	onlyNew, noInline                  bool
	maxAttempts, coverage              int
}

func (f *auditFlags) add(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.failOn, "fail-on", "high", "exit 1 for findings of this severity and above: critical, high, medium, low or none")
	s.StringArrayVarP(&f.formats, "format", "f", nil, "table, json, sarif, junit or markdown; may be repeated, with an --output each (default table)")
	s.StringArrayVarP(&f.outputs, "output", "o", nil, "`file` for the format in the same place, - for standard output")
	s.StringVar(&f.baseline, "baseline", "", "compare with this earlier JSON output `file`")
	s.BoolVar(&f.onlyNew, "fail-on-new", false, "exit 1 only for findings that the baseline does not have")
	s.StringVar(&f.waivers, "waivers", "", "take the waivers of this `file`")
	s.BoolVar(&f.noInline, "no-inline-waivers", false, "do not let annotations waive")
	s.StringSliceVar(&f.checks, "checks", nil, "ids or groups of checks, such as RTY,MEM-001; default all")
	s.IntVar(&f.maxAttempts, "max-attempts", 10, "calls that one request may become on its way to a model")
	s.IntVar(&f.coverage, "require-coverage", 0, "exit 3 when less than this `percent` of what applies could be decided")
	s.StringVar(&f.library, "library", "", "cite the incidents of this `folder` too")
}

func (f *auditFlags) run(c *cobra.Command, paths []string) error {
	if err := f.input.check(c); err != nil {
		return err
	}
	gate, err := f.gate()
	if err != nil {
		return err
	}
	outs, err := f.open(c.OutOrStdout())
	defer drop(outs)
	if err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	old, err := f.past()
	if err != nil {
		return err
	}
	in, err := collect.Read(c.Context(), f.input.options(c.InOrStdin(), paths))
	if err != nil {
		return err
	}
	options.Context = in.Namespace
	report, err := audit.Run(c.Context(), in.Input, options)
	if err != nil {
		return err
	}
	a := &render.Audit{Report: report, Checks: audit.Catalogue(), Library: options.Library, Version: version()}
	if old != nil {
		a.Diff = audit.Compare(report, old, options)
	}
	for _, o := range outs {
		if err := o.write(a); err != nil {
			return err
		}
	}
	switch gate.Judge(report) {
	case audit.Found:
		return silent(exitFindings)
	case audit.Uncovered:
		return exit{exitUncovered, fmt.Errorf("coverage is %d %%, below the %d %% of --require-coverage", report.Covered(), gate.Coverage)}
	}
	return nil
}

func (f *auditFlags) gate() (audit.Gate, error) {
	g := audit.Gate{OnlyNew: f.onlyNew, Coverage: f.coverage}
	switch {
	case f.onlyNew && f.baseline == "":
		return g, errors.New("--fail-on-new: needs --baseline, an earlier JSON output to be new against")
	case f.coverage < 0 || f.coverage > 100:
		return g, errors.New("--require-coverage: must be a percentage from 0 to 100")
	case f.maxAttempts < 1:
		return g, errors.New("--max-attempts: must be 1 or more")
	case f.failOn == "none":
		return g, nil
	}
	severity, err := audit.ParseSeverity(f.failOn)
	if err != nil {
		return g, fmt.Errorf("--fail-on: %w, none", err)
	}
	g.FailOn = severity
	return g, nil
}

// options are what a run is told.
func (f *auditFlags) options() (audit.Options, error) {
	o := audit.Options{
		Checks: f.checks, Namespaces: f.input.namespaces, MaxAttempts: f.maxAttempts, NoInline: f.noInline, Today: time.Now(),
	}
	if _, err := audit.Select(f.checks); err != nil {
		return o, fmt.Errorf("--checks: %w", err)
	}
	for i, name := range o.Checks {
		o.Checks[i] = strings.ToUpper(strings.TrimSpace(name))
	}
	if f.waivers != "" {
		data, err := os.ReadFile(f.waivers)
		if err != nil {
			return o, fmt.Errorf("--waivers: %w", err)
		}
		w, err := audit.ReadWaivers(f.waivers, data)
		if err != nil {
			return o, err
		}
		o.Waivers, o.Firm = w.Waivers, w.Firm
	}
	var err error
	o.Library, err = openLibrary(f.library)
	return o, err
}

// openLibrary is the program's own, with a folder's over it.
func openLibrary(folder string) (*incident.Library, error) {
	if folder == "" {
		return incident.Open()
	}
	if info, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("--library: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("--library: %s is no folder", folder)
	}
	return incident.Open(os.DirFS(folder))
}

func (f *auditFlags) past() (*audit.Baseline, error) {
	if f.baseline == "" {
		return nil, nil
	}
	data, err := os.ReadFile(f.baseline)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	return audit.ReadBaseline(f.baseline, data)
}
