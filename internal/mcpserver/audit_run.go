package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/manifest"
)

func (s *Server) auditTools() {
	a := s.auditor
	cluster := a.may.Cluster != collect.NoCluster
	add(s, "audit_run", "Audit the stack", "Audit the cluster or the folder that this process was started for: which conditions that exposed others to an outage does it have. Counts, coverage and the ten worst findings; audit_findings gives the others.", cluster, s.auditRun)
	add(s, "audit_findings", "List findings", "The findings of a run, most severe first, page by page, with filters.", false, s.auditFindings)
	add(s, "audit_explain", "Explain a finding or check", "Why a finding or a check matters, what was found, how to mend it, the smallest patch, and the public incidents that had it.", false, s.auditExplain)
	add(s, "audit_path", "Follow the path to a model", "How many calls one call of a workload becomes on its way to a model, layer by layer and for each class of failure, and which time limits do not nest.", false, s.auditPath)
	add(s, "audit_manifests", "Audit manifests", "Audit Kubernetes manifests or gateway configurations: as YAML in the call, or files below the folder that this process may read. Answers as audit_run does.", false, s.auditManifests)
	add(s, "audit_access", "What can be read", "Which kinds of objects the cluster lets this process read, what is missing, and the smallest role that would give it.", cluster, s.auditAccess)
}

type runIn struct {
	Namespace string   `json:"namespace,omitempty" jsonschema:"report on this namespace alone"`
	Checks    []string `json:"checks,omitempty" jsonschema:"ids or groups of checks, such as RTY or MEM-001; none for all"`
	Severity  string   `json:"min_severity,omitempty" jsonschema:"count and show findings from this severity on"`
}

func (s *Server) auditRun(ctx context.Context, in runIn) (*outcome, error) {
	a := s.auditor
	q := question{checks: in.Checks, namespaces: some(in.Namespace)}
	what := "the cluster"
	switch {
	case a.may.Cluster != collect.NoCluster:
		q.read = a.live()
	case a.folder != nil:
		paths, err := a.folder.paths([]string{"."})
		if err != nil {
			return nil, err
		}
		q.read, what = collect.Options{Paths: paths}, "the folder"
	default:
		return nil, refuse("this process was started for no cluster and no folder: give YAML to audit_manifests, or start `hourthree mcp` with --cluster, --context or --root")
	}
	k, err := a.audit(ctx, q)
	if err != nil {
		return nil, err
	}
	return outcomeOf(k, what, in.Severity), nil
}

type manifestsIn struct {
	YAML      string   `json:"yaml,omitempty" jsonschema:"manifests or a gateway's configuration, at most 256 KiB"`
	Paths     []string `json:"paths,omitempty" jsonschema:"files or folders, as seen from the folder that this process may read; instead of yaml"`
	Namespace string   `json:"namespace,omitempty" jsonschema:"report on this namespace alone"`
	Checks    []string `json:"checks,omitempty" jsonschema:"ids or groups of checks; none for all"`
	Severity  string   `json:"min_severity,omitempty" jsonschema:"count and show findings from this severity on"`
}

func (s *Server) auditManifests(ctx context.Context, in manifestsIn) (*outcome, error) {
	a := s.auditor
	q := question{checks: in.Checks, namespaces: some(in.Namespace)}
	switch {
	case (in.YAML == "") == (len(in.Paths) == 0):
		return nil, refuse("give either yaml or paths")
	case len(in.YAML) > maxManifest:
		return nil, refuse("yaml has %d bytes, %d are allowed: give the objects that matter, or put them in a file and name it in paths", len(in.YAML), maxManifest)
	case in.YAML != "":
		q.read = collect.Options{Paths: []string{"-"}, Stdin: strings.NewReader(in.YAML)}
	case a.folder == nil:
		return nil, refuse("this process may read no files: give the text as yaml, or start `hourthree mcp` with --root and the folder")
	default:
		paths, err := a.folder.paths(in.Paths)
		if err != nil {
			return nil, err
		}
		q.read = collect.Options{Paths: paths}
	}
	k, err := a.audit(ctx, q)
	if err != nil {
		return nil, err
	}
	return outcomeOf(k, "the manifests", in.Severity), nil
}

func some(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// outcome is what an audit came to.
type outcome struct {
	Summary      string     `json:"summary"`
	RunID        string     `json:"run_id"`
	Counts       counts     `json:"counts" jsonschema:"findings that are not waived"`
	Coverage     coverage   `json:"coverage"`
	Top          []finding  `json:"top" jsonschema:"the ten worst"`
	NotEvaluated []openNote `json:"not_evaluated" jsonschema:"what could not be decided, which is not a pass"`
	Problems     []problem  `json:"problems" jsonschema:"of the input"`
	rest
}

type counts struct {
	Critical int `json:"critical"`
	High     int `json:"high"`
	Medium   int `json:"medium"`
	Low      int `json:"low"`
	Waived   int `json:"waived"`
}

type coverage struct {
	Objects      int `json:"objects"`
	Checks       int `json:"checks"`
	Pass         int `json:"pass" jsonschema:"pairs of check and object"`
	Fail         int `json:"fail"`
	Waived       int `json:"waived"`
	NotEvaluated int `json:"not_evaluated"`
	Percent      int `json:"percent" jsonschema:"of what applies, that was decided"`
}

type openNote struct {
	Reason string   `json:"reason"`
	Detail string   `json:"detail"`
	Checks []string `json:"checks"`
	Count  int      `json:"count" jsonschema:"pairs of check and object"`
}

type problem struct {
	Place  string `json:"place"`
	What   string `json:"what"`
	Remedy string `json:"remedy"`
	Lost   bool   `json:"lost" jsonschema:"something was not read that may hold objects"`
}

// top is how many findings a run shows at once.
const top = 10

func outcomeOf(k *kept, what, least string) *outcome {
	r := k.report
	out := &outcome{RunID: k.id, Coverage: coverage(r.Coverage)}
	var worst []finding
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.Severity < severity(least):
			continue
		case f.State == audit.Waived:
			out.Counts.Waived++
			continue
		}
		out.Counts.add(f.Severity)
		if len(worst) < top {
			worst = append(worst, k.finding(f))
		}
	}
	n := out.Counts
	out.Summary = fmt.Sprintf("Audit of %s, %s: %d critical, %d high, %d medium, %d low, %d waived. %d %% of what applies could be decided.",
		what, counted(r.Coverage.Objects, "object"), n.Critical, n.High, n.Medium, n.Low, n.Waived, r.Coverage.Percent)
	if r.Coverage.NotEvaluated > 0 {
		out.Summary += fmt.Sprintf(" %d pairs of check and object were not evaluated, which is not a pass.", r.Coverage.NotEvaluated)
	}
	if len(worst) > 0 {
		out.Summary += " audit_explain takes the key of a finding."
	}
	if k.left > 0 {
		out.Summary += fmt.Sprintf(" %d findings of the least severity were counted in the coverage and not kept.", k.left)
	}
	sections := []section{
		part("top", worst, &out.Top), part("not_evaluated", k.open(), &out.NotEvaluated),
		part("problems", mapped(r.Problems[:min(len(r.Problems), 50)], k.problem), &out.Problems),
	}
	out.rest = fill("", room(out), place{}, sections)
	out.Next = "" // a run is not paged: the omitted counts say that there is more
	if more := len(r.Problems) - 50; more > 0 {
		if out.Omitted == nil {
			out.Omitted = map[string]int{}
		}
		out.Omitted["problems"] += more
	}
	return out
}

func (c *counts) add(s audit.Severity) {
	switch s {
	case audit.Critical:
		c.Critical++
	case audit.High:
		c.High++
	case audit.Medium:
		c.Medium++
	default:
		c.Low++
	}
}

// severity is one by its name, the least for none; the schema allows no other.
func severity(name string) audit.Severity {
	s, err := audit.ParseSeverity(name)
	if err != nil {
		return audit.Low
	}
	return s
}

// open groups what was not decided by why.
func (k *kept) open() []openNote {
	type why struct{ reason, detail string }
	at := map[why]int{}
	var list []openNote
	for _, o := range k.report.Open {
		w := why{string(o.Reason), plain(unaddressed(k.readable(o.Detail)), shortText)}
		i, ok := at[w]
		if !ok {
			i = len(list)
			at[w] = i
			list = append(list, openNote{Reason: w.reason, Detail: w.detail, Checks: []string{}})
		}
		n := &list[i]
		n.Count++
		if len(n.Checks) < maxWords && (len(n.Checks) == 0 || n.Checks[len(n.Checks)-1] != o.ID) {
			n.Checks = append(n.Checks, o.ID)
		}
	}
	return list
}

func (k *kept) problem(p manifest.Problem) problem {
	return problem{k.where(p.File, p.Line), plain(k.readable(p.What), someText), plain(k.readable(p.Remedy), someText), p.Lost}
}

// where is a place in a file.
func (k *kept) where(file string, line int) string {
	if file == "-" {
		file = "yaml" // of the call
	}
	file = plain(k.readable(file), shortText)
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}
