package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
}

func (i *auditInput) options(in io.Reader, paths []string) collect.Options {
	o := collect.Options{
		Paths: paths, Stdin: in, Kubeconfig: i.kubeconfig, Context: i.context, Namespaces: i.namespaces,
		MaxFile: i.maxFile << 20, MaxTotal: i.maxTotal << 20,
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
	case f.input.maxFile < 1 || f.input.maxTotal < 1:
		return g, errors.New("--max-file and --max-total: must be 1 MiB or more")
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

// auditOutput is a format and where it goes.
type auditOutput struct {
	format render.Format
	screen render.Screen
	file   *output // nil for standard output
	std    io.Writer
}

func (o auditOutput) write(a *render.Audit) error {
	fill := func(w io.Writer) error { return a.Write(w, o.format, o.screen) }
	if o.file == nil {
		return fill(o.std)
	}
	return o.file.write(fill)
}

func drop(outs []auditOutput) {
	for _, o := range outs {
		o.file.drop()
	}
}

// open pairs formats and outputs by their order; what has no output goes to
// standard output, which takes one.
func (f *auditFlags) open(std io.Writer) ([]auditOutput, error) {
	formats := f.formats
	if len(formats) == 0 {
		formats = []string{string(render.Table)}
	}
	if len(f.outputs) > len(formats) {
		return nil, fmt.Errorf("--output %s: has no --format; give one for each", f.outputs[len(formats)])
	}
	var outs []auditOutput
	onStd := 0
	for i, name := range formats {
		format, err := render.ParseFormat(name)
		if err != nil {
			return outs, fmt.Errorf("--format: %w", err)
		}
		o := auditOutput{format: format, std: std}
		switch {
		case i >= len(f.outputs) || f.outputs[i] == "-":
			onStd++
			o.screen = screenOf(std)
		case f.outputs[i] == "":
			return outs, errors.New("--output: needs a file, or - for standard output")
		case slices.Contains(f.outputs[:i], f.outputs[i]):
			return outs, fmt.Errorf("--output %s: is there twice", f.outputs[i])
		default:
			if o.file, err = open(f.outputs[i]); err != nil {
				return outs, fmt.Errorf("--output: %w", err)
			}
		}
		outs = append(outs, o)
	}
	if onStd > 1 {
		return outs, errors.New("--format: only one can go to standard output; give the others an --output, in the same order")
	}
	return outs, nil
}

// screenOf is what a table is written for: colours on a terminal alone, and not
// where NO_COLOR asks for none.
func screenOf(w io.Writer) render.Screen {
	var s render.Screen
	file, ok := w.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil {
			s.Width = n
		}
		if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
			s.Colour = render.Coloured
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}

func auditPath() *cobra.Command {
	var in auditInput
	var asJSON bool
	c := &cobra.Command{
		Use: "path WORKLOAD [PATH...]", Short: "Show the ways from a workload to models, and what retries make of one call", Args: cobra.MinimumNArgs(1),
		Long: `Show the ways from a workload to models: every layer that may repeat a call, how
often it does after which failure, and what they make of one call together.
WORKLOAD is NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME.`,
		RunE: func(c *cobra.Command, args []string) error {
			g, err := graph(c.Context(), in.options(c.InOrStdin(), args[1:]), c.ErrOrStderr())
			if err != nil {
				return err
			}
			paths, err := audit.PathOf(g, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return render.PathsJSON(c.OutOrStdout(), paths)
			}
			return audit.Tree(c.OutOrStdout(), paths, screenOf(c.OutOrStdout()).Width)
		},
	}
	in.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// graph reads the input; its faults and gaps go to notes.
func graph(ctx context.Context, o collect.Options, notes io.Writer) (*audit.Graph, error) {
	in, err := collect.Read(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := render.Notes(notes, in.Input); err != nil {
		return nil, err
	}
	return audit.NewGraph(in.Objects, audit.Options{Context: in.Namespace}), nil
}

func auditAccess() *cobra.Command {
	var in auditInput
	var namespaced, noConfigMaps bool
	var namespaces []string
	c := &cobra.Command{
		Use: "access", Short: "Show what a cluster lets be read, and the smallest role that is enough", Args: cobra.NoArgs,
		Long: `Try to list one object of each kind that the checks need. What can be read and
what is missing goes to standard error, the smallest role that lets everything
be read to standard output:

  hourthree audit access --context CONTEXT | kubectl apply -f -

No role lets Secrets be read. ConfigMaps may hold keys: --no-configmaps leaves
them out, and the checks that need them are then not evaluated.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if namespaced && len(namespaces) == 0 {
				return errors.New("--namespaced: needs --namespace, the ones to read")
			}
			in.namespaces = namespaces
			k, err := collect.Open(in.options(nil, nil))
			if err != nil {
				return err
			}
			defer k.Close()
			rights, err := k.Access(c.Context())
			if err != nil {
				return err
			}
			if err := render.Access(c.ErrOrStderr(), rights, screenOf(c.ErrOrStderr())); err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(collect.Roles(rights, collect.RoleOptions{Namespaces: onlyIf(namespaced, namespaces), WithoutConfigMaps: noConfigMaps}))
			return err
		},
	}
	in.addCluster(c)
	c.Flags().StringSliceVarP(&namespaces, "namespace", "n", nil, "try these namespaces alone")
	c.Flags().BoolVar(&namespaced, "namespaced", false, "write a Role for each --namespace in place of a ClusterRole")
	c.Flags().BoolVar(&noConfigMaps, "no-configmaps", false, "leave ConfigMaps out of the role")
	return c
}

func onlyIf(yes bool, list []string) []string {
	if yes {
		return list
	}
	return nil
}

func auditChecks() *cobra.Command {
	c := &cobra.Command{Use: "checks", Short: "List and explain the checks"}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the checks, by group", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return render.ChecksJSON(c.OutOrStdout(), audit.Groups())
			}
			return render.Checks(c.OutOrStdout(), audit.Groups(), screenOf(c.OutOrStdout()))
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON, with everything that the checks say")
	var folder string
	explain := &cobra.Command{
		Use: "explain ID", Short: "Tell what a check looks for, why, what to do, and which incidents had it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := audit.Select(args)
			if err != nil {
				return err
			}
			lib, err := openLibrary(folder)
			if err != nil {
				return err
			}
			for i, k := range found {
				if i > 0 {
					fmt.Fprintln(c.OutOrStdout())
				}
				if err := render.Explain(c.OutOrStdout(), k, lib, screenOf(c.OutOrStdout())); err != nil {
					return err
				}
			}
			return nil
		},
	}
	explain.Flags().StringVar(&folder, "library", "", "cite the incidents of this `folder` too")
	c.AddCommand(list, explain)
	return c
}
