package render

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

var fixtureChecks = []*audit.Check{
	{
		ID: "RTY-006", Title: "Envoy Gateway retry without a retry budget", Severity: audit.High, Scope: "object", Confidence: "high",
		Kinds: []string{"BackendTrafficPolicy"}, Expected: "a retry budget", Condition: "retry is set and no budget bounds it",
		Why: "Every failed call may be repeated at once.", Fix: "Set a retry budget of 20 %.",
		Patch:  "spec:\n  circuitBreaker:\n    retryBudget: {percent: {numerator: 20}}\n",
		Causes: []string{"retry-amplification"}, Sources: []string{"EG-RETRY"}, Drill: "azure-2026-05-29",
	},
	{
		ID: "PTH-001", Title: "Retry layers on one path multiply beyond the allowed attempts", Severity: audit.Critical, Scope: "path", Confidence: "medium",
		Kinds: []string{"Deployment"}, Expected: "at most 10 attempts", Condition: "the product of attempts is above the limit",
		Why: "Layers multiply.", Fix: "Let one layer retry.", Caution: "Retries in code are not seen.",
		Causes: []string{"retry-amplification"}, Drill: "azure-2026-05-29",
	},
	{
		ID: "MEM-001", Title: "Gateway container has no memory limit", Severity: audit.Medium, Scope: "object", Confidence: "high",
		Kinds: []string{"Deployment"}, Expected: "a limit", Condition: "no limit", Why: "The node's memory is the limit.", Fix: "Set one.", Causes: []string{"oom"},
	},
	{ID: "WVR-003", Title: "A waiver has expired", Severity: audit.Low, Scope: "waiver", Confidence: "high", Expected: "x", Why: "Decisions age.", Fix: "Decide anew."},
}

var library = sync.OnceValues(func() (*incident.Library, error) { return incident.Open() })

func ref(kind, namespace, name string) manifest.Ref {
	return manifest.Ref{Group: "g", Version: "v1", Kind: kind, Namespace: namespace, Name: name}
}

// fixture has each thing that an output must show.
func fixture(t testing.TB) *Audit {
	t.Helper()
	lib, err := library()
	if err != nil {
		t.Fatal(err)
	}
	policy, client, gateway := ref("BackendTrafficPolicy", "llm", "retry"), ref("Deployment", "apps", "copilot"), ref("Deployment", "llm", "gateway")
	waiver := &audit.Waiver{Check: "MEM-001", Reason: "the sidecar is measured", Until: "2027-01-31", Inline: true, Place: topology.Place{File: "deploy/gateway.yaml", Line: 9, Column: 5}}
	find := func(i int, o manifest.Ref, file string, line int, observed string) audit.Finding {
		c := fixtureChecks[i]
		return audit.Finding{
			Key: c.ID + o.Name + observed, Check: c, ID: c.ID, Severity: c.Severity, Title: c.Title, State: audit.Fail, Object: o,
			Place: topology.Place{File: file, Line: line, Column: 3}, Path: "spec.x[0]", Observed: observed, Expected: c.Expected,
			Related: []audit.RelatedPlace{}, Incidents: []string{"HT-0001", "HT-0002"}, Drill: c.Drill,
		}
	}
	path := find(1, client, "deploy/copilot.yaml", 14, "49 attempts on 5xx")
	path.Related = []audit.RelatedPlace{
		{Object: client, Place: topology.Place{File: "deploy/copilot.yaml", Line: 20, Column: 9}, Note: "SDK: 7 attempts"},
		{Object: policy, Place: topology.Place{File: "deploy/route.yaml", Line: 31, Column: 9}, Note: "retry: 7 attempts"},
	}
	waived := find(2, gateway, "deploy/gateway.yaml", 22, "no limit")
	waived.State, waived.Waiver, waived.Container = audit.Waived, waiver, "sidecar"
	live := find(2, ref("Deployment", "llm", "server"), "cluster/llm/Deployment/server.yaml", 1, "no limit")
	live.Place.Live, live.Container = true, "main"
	unlike := find(3, manifest.Ref{Group: manifest.FileGroup, Kind: "Waivers", Name: "waivers.yaml"}, "waivers.yaml", 3, "it was good until 2026-01-31")
	unlike.Incidents, unlike.Drill = nil, ""
	r := &audit.Report{
		Findings: []audit.Finding{live, waived, path, find(0, policy, "deploy/route.yaml", 31, "numRetries: 6"), unlike},
		Open: []audit.Open{
			{ID: "RLM-005", Reason: audit.Forbidden, Detail: "networkpolicies list"},
			{ID: "RLM-006", Reason: audit.Forbidden, Detail: "networkpolicies list"},
			{ID: "TMO-004", Object: &gateway, Reason: audit.UnknownField, Detail: "spec.streamIdleTimeout"},
		},
		Problems: []manifest.Problem{
			{File: "deploy/broken.yaml", Line: 3, Column: 1, What: "this is not YAML", Remedy: "mend it", Lost: true},
			{File: "deploy/twice.yaml", Line: 8, What: "Service llm/a is there twice", Remedy: "remove one"},
		},
		Coverage: audit.Coverage{Objects: 31, Checks: 84, Pass: 40, Fail: 7, Waived: 3, NotEvaluated: 12, Percent: 81},
		Passed:   []audit.Passed{{ID: "RTY-006", Object: ref("BackendTrafficPolicy", "llm", "good")}, {ID: "MEM-001", Object: client}},
		Roles:    []topology.RoleOf{{Object: gateway, Role: topology.Gateway, By: "image ghcr.io/berriai/litellm"}, {Object: client, Role: topology.Client, By: "env OPENAI_BASE_URL"}},
	}
	return &Audit{Report: r, Checks: fixtureChecks, Library: lib, Version: "v0.1.0"}
}

// against is the fixture compared with a baseline that has one of its findings
// and two others.
func against(t testing.TB) *Audit {
	a := fixture(t)
	past := func(id, name string) audit.Past {
		return audit.Past{Key: id + name, ID: id, Severity: audit.High, Title: "t", State: audit.Fail, Object: ref("Deployment", "llm", name)}
	}
	b := &audit.Baseline{File: "old.json", Findings: []audit.Past{past("MEM-001", "gone"), past("RLM-005", "unseen"), {Key: "RTY-006retrynumRetries: 6", ID: "RTY-006", State: audit.Fail}}}
	a.Diff = audit.Compare(a.Report, b, audit.Options{})
	return a
}

func shuffled(a *Audit, r *rand.Rand) *Audit {
	b, report := *a, *a.Report
	report.Findings, report.Open = slices.Clone(report.Findings), slices.Clone(report.Open)
	report.Problems, report.Roles = slices.Clone(report.Problems), slices.Clone(report.Roles)
	r.Shuffle(len(report.Findings), func(i, j int) { report.Findings[i], report.Findings[j] = report.Findings[j], report.Findings[i] })
	r.Shuffle(len(report.Open), func(i, j int) { report.Open[i], report.Open[j] = report.Open[j], report.Open[i] })
	r.Shuffle(len(report.Problems), func(i, j int) { report.Problems[i], report.Problems[j] = report.Problems[j], report.Problems[i] })
	report.Passed = slices.Clone(report.Passed)
	r.Shuffle(len(report.Passed), func(i, j int) { report.Passed[i], report.Passed[j] = report.Passed[j], report.Passed[i] })
	r.Shuffle(len(report.Roles), func(i, j int) { report.Roles[i], report.Roles[j] = report.Roles[j], report.Roles[i] })
	b.Report = &report
	return &b
}

func written(t testing.TB, a *Audit, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := a.Write(&b, f, Screen{}); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	return b.Bytes()
}
