// Package deploy_test holds what is in deploy to the program it deploys: metrics,
// configuration, audit, runbooks. What needs Prometheus is in
// test/conformance.
package deploy_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/telemetry"
)

const runbooks = "../docs/runbooks"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// described collects the metrics that are registered, with their labels.
type described map[string][]string

var desc = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func (d described) Register(c prometheus.Collector) error { d.MustRegister(c); return nil }
func (d described) Unregister(prometheus.Collector) bool  { return false }
func (d described) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		ch := make(chan *prometheus.Desc, 100)
		c.Describe(ch)
		close(ch)
		for each := range ch {
			if m := desc.FindStringSubmatch(each.String()); m != nil {
				d[m[1]] = strings.Split(m[2], ",")
			}
		}
	}
}

func exported(t *testing.T) described {
	t.Helper()
	d := described{}
	telemetry.New(d, io.Discard)
	telemetry.Gauges(d, func(time.Time) telemetry.Reading { return telemetry.Reading{} })
	telemetry.NewLog(io.Discard).Register(d)
	telemetry.StoreErrors(d, nil)
	if len(d) < 25 {
		t.Fatalf("only %d metrics are described", len(d))
	}
	return d
}

var (
	used    = regexp.MustCompile(`(?:^|[^:a-zA-Z_])(hourthree_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	part    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// metrics of a query, each checked to exist with the labels it is asked for.
func metrics(t *testing.T, where, query string, have described) (names []string) {
	t.Helper()
	for _, m := range used.FindAllStringSubmatch(query, -1) {
		name := m[1]
		if _, ok := have[name]; !ok {
			name = part.ReplaceAllString(name, "")
		}
		labels, ok := have[name]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, m[1])
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(append([]string{"job", "instance", "le"}, labels...), l[1]) {
				t.Errorf("%s: %s has no label %s", where, name, l[1])
			}
		}
		names = append(names, name)
	}
	return names
}

// leftOut are metrics that are not on the dashboard, and why.
var leftOut = map[string]string{}

// TestDashboard: every query asks for what is exported, and everything that is
// exported is shown.
func TestDashboard(t *testing.T) {
	var d struct {
		UID    string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/hourthree.json")), &d); err != nil {
		t.Fatal(err)
	}
	have, shown, ids := exported(t), map[string]bool{}, map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: its number is taken or it is too wide", p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
		for _, q := range p.Targets {
			for _, name := range metrics(t, p.Title, q.Expr, have) {
				shown[name] = true
			}
			if strings.Count(q.Expr, `job=~"$job"`) != strings.Count(q.Expr, "{job") || !strings.Contains(q.Expr, `instance=~"$instance"`) {
				t.Errorf("panel %q does not keep to the variables: %s", p.Title, q.Expr)
			}
		}
	}
	for name := range have {
		if why := leftOut[name]; !shown[name] && why == "" || shown[name] && why != "" {
			t.Errorf("%s is neither shown nor left out with a reason", name)
		}
	}
	if len(d.Templating.List) != 3 || d.UID != "hourthree" {
		t.Errorf("variables %v, uid %q", d.Templating.List, d.UID)
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

type groups struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

func rules(t *testing.T) []rule {
	t.Helper()
	var g groups
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/rules.yaml")), &g); err != nil {
		t.Fatal(err)
	}
	var list []rule
	for _, each := range g.Groups {
		list = append(list, each.Rules...)
	}
	return list
}

// yesOrNo are alerts that are no shares: a state, or whether there is anything.
var yesOrNo = []string{"HourthreeTargetOpen", "HourthreeNoTargetClosed", "HourthreeRetryBudgetEmpty", "HourthreeQueueStanding", "HourthreeQuarantined", "HourthreeConfigRefused", "HourthreeMetricsAbsent"}

// TestAlerts: each has what a person needs at night, a page, both kinds of test,
// and is a share.
func TestAlerts(t *testing.T) {
	have, tests := exported(t), read(t, "prometheus/rules_test.yaml")
	pages := map[string]bool{}
	recorded := map[string]string{}
	for _, r := range rules(t) {
		metrics(t, r.Record+r.Alert, r.Expr, have)
		if r.Record != "" {
			recorded[r.Record] = r.Expr
			continue
		}
		page, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/hourthree/hourthree/blob/main/docs/runbooks/")
		if !ok {
			t.Errorf("%s: runbook_url is %q", r.Alert, r.Annotations["runbook_url"])
			continue
		}
		pages[page] = true
		if text := read(t, filepath.Join(runbooks, page)); !strings.HasPrefix(text, "# "+r.Alert+"\n") {
			t.Errorf("%s is not about %s", page, r.Alert)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity is %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "$value") {
			t.Errorf("%s: summary or the figure in the description is missing", r.Alert)
		}
		for _, kind := range []string{", fires: ", ", silent: "} {
			if !strings.Contains(tests, `"`+r.Alert+kind) {
				t.Errorf("%s has no test that it %s", r.Alert, strings.Trim(kind, ", :"))
			}
		}
		share := strings.Contains(r.Expr, "/") || strings.Contains(r.Expr, "ratio") || strings.Contains(r.Expr, "mean")
		if !share && !slices.Contains(yesOrNo, r.Alert) {
			t.Errorf("%s is not a share: %s", r.Alert, r.Expr)
		}
	}
	files, _ := filepath.Glob(runbooks + "/*.md")
	for _, f := range files {
		if !pages[filepath.Base(f)] {
			t.Errorf("%s has no alert", f)
		}
	}
	if len(pages) < 20 {
		t.Errorf("only %d pages", len(pages))
	}
}

// TestRunbooks: what a page tells to do can be done.
func TestRunbooks(t *testing.T) {
	have := exported(t)
	lib, err := library.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := drill.List()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range scenarios {
		names[s.Name] = true
	}
	operator := admin.Handler(admin.Options{
		State: func(time.Time) admin.State { return admin.State{} }, Limits: func(time.Time) admin.Limits { return admin.Limits{} },
		Ready: func() error { return nil }, Metrics: http.NotFoundHandler(),
	})
	files, _ := filepath.Glob(runbooks + "/*.md")
	for _, f := range files {
		text := read(t, f)
		metrics(t, f, text, have)
		for _, heading := range []string{"## Us or them", "**Minute 1**", "**Minute 10**", "**Minute 60**", "## What not to do", "## Seen before"} {
			if !strings.Contains(text, heading) {
				t.Errorf("%s has no %s", f, heading)
			}
		}
		ids := regexp.MustCompile(`HT-[0-9]+`).FindAllString(text, -1)
		for _, id := range ids {
			if _, ok := lib.Get(id); !ok {
				t.Errorf("%s: there is no incident %s", f, id)
			}
		}
		plays := regexp.MustCompile(`drill run ([a-z0-9-]+)`).FindAllStringSubmatch(text, -1)
		for _, m := range plays {
			if !names[m[1]] {
				t.Errorf("%s: there is no drill %s", f, m[1])
			}
		}
		urls := regexp.MustCompile(`http://127\.0\.0\.1:8081(/[^\s`+"`"+`]*)`).FindAllStringSubmatch(text, -1)
		for _, m := range urls {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", m[1], nil)
			r.Host = "localhost"
			if operator.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%s: %s is answered %d", f, m[1], w.Code)
			}
		}
		if len(ids) == 0 || len(plays) == 0 || len(urls) == 0 {
			t.Errorf("%s names no incident, drill or address", f)
		}
	}
}

// TestPrometheusRule: the object for the operator holds the same groups. With
// UPDATE=1 they are written there.
func TestPrometheusRule(t *testing.T) {
	const path = "kubernetes/prometheusrule.yaml"
	old, source := read(t, path), read(t, "prometheus/rules.yaml")
	head, _, ok := strings.Cut(old, "\nspec:\n")
	if !ok {
		t.Fatal("no spec")
	}
	want := head + "\nspec:\n" + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(source[strings.Index(source, "groups:\n"):], "  $1")
	if want == old {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatalf("%s is not what prometheus/rules.yaml says; UPDATE=1 writes it", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// findings are the ids of the checks that fail, and of those that are not decided.
func findings(t *testing.T, paths ...string) (ids, open []string) {
	t.Helper()
	in, err := collect.Read(context.Background(), collect.Options{Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Run(context.Background(), in.Input, audit.Options{Context: in.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.State == audit.Fail {
			ids = append(ids, f.ID)
		}
	}
	for _, o := range report.Open {
		open = append(open, o.ID)
	}
	return ids, open
}

// TestAudit: our own audit finds nothing, and it does look: without
// availability.yaml it says so, and without the alerts it does not call them good.
func TestAudit(t *testing.T) {
	ids, open := findings(t, "kubernetes", "prometheus")
	if len(ids) > 0 || slices.Contains(open, "OBS-001") || slices.Contains(open, "OBS-002") {
		t.Errorf("the audit finds %v and leaves open %v", ids, open)
	}
	files, _ := filepath.Glob("kubernetes/*.yaml")
	files = slices.DeleteFunc(files, func(f string) bool {
		return strings.HasSuffix(f, "prometheusrule.yaml") || strings.HasSuffix(f, "availability.yaml")
	})
	ids, open = findings(t, files...)
	for _, want := range []string{"AVL-001", "CAP-005"} {
		if !slices.Contains(ids, want) {
			t.Errorf("without availability.yaml the audit finds %v, not %s", ids, want)
		}
	}
	for _, want := range []string{"OBS-001", "OBS-002"} {
		if !slices.Contains(open, want) {
			t.Errorf("without alerts the audit leaves %v open, not %s", open, want)
		}
	}
}

// TestConfigurations: the router takes what the manifests give it.
func TestConfigurations(t *testing.T) {
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(read(t, "kubernetes/config.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	deployment := read(t, "kubernetes/deployment.yaml")
	for name, c := range map[string]struct{ text, vars string }{
		"kubernetes": {object.Data["hourthree.yaml"], deployment},
		"compose":    {read(t, "compose/hourthree.yaml"), read(t, "compose/compose.yaml")},
	} {
		path := filepath.Join(t.TempDir(), "hourthree.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(path, func(k string) (string, bool) {
			return "value-of-" + k, strings.Contains(c.vars, "name: "+k+",") || strings.Contains(c.vars, k+": ")
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.HasPrefix(cfg.Listen, "0.0.0.0:") {
			t.Errorf("%s: nobody reaches %s", name, cfg.Listen)
		}
		drain := cfg.HTTP.Drain.Duration()
		for file, most := range map[string]time.Duration{"kubernetes/deployment.yaml": seconds(t, deployment, `terminationGracePeriodSeconds: (\d+)`, "s") - seconds(t, deployment, `sleep: \{seconds: (\d+)`, "s"), "compose/compose.yaml": seconds(t, read(t, "compose/compose.yaml"), `stop_grace_period: (\d+)m`, "m"), "systemd/hourthree.service": seconds(t, read(t, "systemd/hourthree.service"), `TimeoutStopSec=(\d+)min`, "m")} {
			if most < drain+5*time.Second {
				t.Errorf("%s kills after %v, and the drain takes %v", file, most, drain)
			}
		}
	}
}

func seconds(t *testing.T, text, pattern, unit string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s", pattern)
	}
	d, err := time.ParseDuration(m[1] + unit)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestMemory: the runtime knows of nine tenths of the container's memory at most.
func TestMemory(t *testing.T) {
	for file, p := range map[string]struct{ soft, hard string }{
		"kubernetes/deployment.yaml": {`GOMEMLIMIT, value: (\d+)MiB`, `limits: \{memory: (1)Gi`},
		"compose/compose.yaml":       {`GOMEMLIMIT: (\d+)MiB`, `mem_limit: (\d+)m`},
		"systemd/hourthree.service":  {`GOMEMLIMIT=(\d+)MiB`, `MemoryMax=(\d+)G`},
	} {
		text := read(t, file)
		soft, hard := seconds(t, text, p.soft, "s"), seconds(t, text, p.hard, "s")
		if !strings.HasPrefix(file, "compose") {
			hard *= 1024
		}
		if share := float64(soft) / float64(hard); share < 0.8 || share > 0.9 {
			t.Errorf("%s: GOMEMLIMIT is %.2f of the memory", file, share)
		}
	}
}
