package audit

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

var alertRules = map[string]Rule{"OBS-001": noSuccessAlert, "OBS-002": noAttemptsAlert}

// alerts is what the alerting rules among the objects look at.
type alerts struct {
	success, attempts bool
	rules             int
}

var (
	outcome = regexp.MustCompile(`success|outcome|code|status|5xx|error|fail|good|bad`)
	retries = regexp.MustCompile(`retr(y|ies)|attempts|upstream_rq_retry`)
	// quoted are label values, in which a slash divides nothing.
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	metric = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	// plumbing are the beginnings of metrics of the cluster itself, which say
	// nothing of calls to models.
	plumbing = regexp.MustCompile(`^(apiserver|aggregator_|alertmanager|cadvisor|cluster_quantile:apiserver|code_resource:apiserver|code:apiserver|container_|coredns|etcd|` +
		`kube_|kubelet|kubeproxy|kubernetes_|namespace_|net_|node_|node:|process_|prometheus|rest_client|scheduler_|storage_operation|workqueue|grpc_server)`)
	functions = []string{
		"sum", "rate", "irate", "increase", "by", "on", "without", "ignoring", "max", "min", "avg", "count", "and", "or", "unless", "bool",
		"group_left", "group_right", "clamp_max", "clamp_min", "clamp", "absent", "vector", "offset", "histogram_quantile", "avg_over_time",
		"sum_over_time", "max_over_time", "min_over_time", "topk", "label_replace", "scalar", "time",
	}
)

// findAlerts reads the alerting rules. A rule that uses a recorded series looks
// at what that was made of.
func findAlerts(g *topology.Graph) alerts {
	var a alerts
	recorded := map[string]string{}
	var exprs []string
	for _, kind := range []string{"PrometheusRule", "VMRule"} {
		for _, p := range g.Kind(kind) {
			for _, group := range fields.ListAt(p.Root, "spec.groups") {
				for _, r := range fields.ListAt(group, "rules") {
					expr := fields.TextAt(r, "expr")
					if name := fields.TextAt(r, "record"); name != "" {
						recorded[name] = expr
					} else if fields.TextAt(r, "alert") != "" {
						exprs = append(exprs, expr)
					}
				}
			}
		}
	}
	for _, e := range exprs {
		a.rules++
		a.look(e, recorded, 0)
	}
	for _, kind := range []string{"PrometheusServiceLevel", "ServiceLevelObjective"} {
		a.success = a.success || len(g.Kind(kind)) > 0 // alerts on a ratio are made of them
	}
	return a
}

func (a *alerts) look(expr string, recorded map[string]string, depth int) {
	bare := quoted.ReplaceAllString(expr, "")
	own := false
	for _, name := range metric.FindAllString(bare, -1) {
		if depth < 4 && recorded[name] != "" {
			a.look(recorded[name], recorded, depth+1)
		}
		own = own || !slices.Contains(functions, name) && !plumbing.MatchString(name) && strings.ContainsAny(name, "_:")
	}
	if !own {
		return
	}
	a.success = a.success || strings.Contains(bare, "/") && outcome.MatchString(expr)
	a.attempts = a.attempts || retries.MatchString(bare)
}

// noSuccessAlert: nobody is told when calls fail.
func noSuccessAlert(g *evidence, o *manifest.Object) []Hit {
	a := g.alerts()
	if g.Role(o) != topology.Gateway || a.success {
		return nil
	}
	return a.none(g, "no alert on the share of calls that succeed is among the alerting rules")
}

// none says that an alert is not there. Files without any alerting rule do not
// say that: rules are seldom deployed with what they watch.
func (a alerts) none(g *evidence, observed string) []Hit {
	live := func(o *manifest.Object) bool { return o.Origin.Live }
	if a.rules == 0 && !slices.ContainsFunc(g.Objects(), live) {
		return []Hit{{Open: NoLiveData, Observed: "the files have no alerting rule, the cluster may have some"}}
	}
	return []Hit{{Path: "metadata.name", Observed: observed}}
}

// noAttemptsAlert: nobody is told when retries multiply.
func noAttemptsAlert(g *evidence, o *manifest.Object) []Hit {
	a := g.alerts()
	if g.Role(o) != topology.Gateway || a.attempts {
		return nil
	}
	return a.none(g, "no alert on retries or attempts is among the alerting rules")
}
