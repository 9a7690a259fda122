package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/fields"
	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

var istioRules = map[string]Rule{"RTY-001": istioRetryNoBudget, "CBK-001": istioNoOutlier, "RLM-008": meshOpen}

// istioRetryNoBudget: retries on server errors towards a destination with no
// bound on them.
func istioRetryNoBudget(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, h := range fields.ListAt(o.Root, "spec.http") {
		words := fields.WordsAt(h, "retries.retryOn")
		classes := retrypath.EnvoyClasses(words)
		if fields.IntOr(h, "retries.attempts", 0) <= 0 || !slices.Contains(classes, layers.Server) && !slices.Contains(classes, layers.Capacity) {
			continue
		}
		for _, r := range fields.ListAt(h, "route") {
			t := x.Destination(o, fields.ValueAt(r, "destination"))
			if bounded(t) {
				continue
			}
			hits = append(hits, Hit{
				Path:     fmt.Sprintf("spec.http[%d].retries", i),
				Observed: fmt.Sprintf("%d retries on %s, no bound at %s", fields.IntOr(h, "retries.attempts", 0), strings.Join(words, ","), fields.TextAt(r, "destination.host")),
				Related:  relatedTo(t, "no retryBudget and no maxRetries here"),
			})
			break
		}
	}
	return hits
}

// bounded says whether the retries towards a destination are.
func bounded(t topology.Traffic) bool {
	if b, _ := t.Section("retryBudget"); b != nil {
		return true
	}
	pool, _ := t.Section("connectionPool")
	return fields.IntOr(pool, "http.maxRetries", 0) > 0
}

// relatedTo are the rules in force, as places of a finding.
func relatedTo(t topology.Traffic, note string) []Related {
	var list []Related
	for _, r := range t.Rules {
		list = append(list, Related{Object: r, Path: "spec.trafficPolicy", Note: note})
	}
	return list
}

// istioNoOutlier: a destination that keeps getting calls while it fails.
func istioNoOutlier(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	var hits []Hit
	for i, h := range fields.ListAt(o.Root, "spec.http") {
		for j, r := range fields.ListAt(h, "route") {
			t := x.Destination(o, fields.ValueAt(r, "destination"))
			v, _ := t.Section("outlierDetection")
			observed := "no outlier detection for " + fields.TextAt(r, "destination.host")
			if v != nil {
				if !ejects(v) {
					observed = "outlier detection for " + fields.TextAt(r, "destination.host") + " ejects nothing"
				} else {
					continue
				}
			}
			hits = append(hits, Hit{
				Path: fmt.Sprintf("spec.http[%d].route[%d].destination", i, j), Observed: observed, Related: relatedTo(t, "the rule in force"),
			})
		}
	}
	return hits
}

// ejects says whether outlier detection can eject at all: each of its counts may
// be set to 0, and of one that is absent only that of 5xx has a default.
func ejects(v any) bool {
	if fields.IntOr(v, "maxEjectionPercent", 10) == 0 {
		return false
	}
	return fields.IntOr(v, "consecutive5xxErrors", 5) > 0 || fields.IntOr(v, "consecutiveGatewayErrors", 0) > 0 ||
		fields.IntOr(v, "consecutiveLocalOriginFailures", 0) > 0
}

// meshOpen: the mesh lets any workload call any host.
func meshOpen(g *evidence, o *manifest.Object) []Hit {
	x := g.Edges()
	if o.Name != "istio" && !strings.HasPrefix(o.Name, "istio-") || len(x.Gateways) == 0 || fields.ValueAt(o.Root, "data[mesh]") == nil {
		return nil
	}
	for _, d := range g.Documents(o) {
		if d.Key != "mesh" {
			continue
		}
		mode := fields.TextAt(d.Root, "outboundTrafficPolicy.mode")
		if d.Err != nil || mode == "REGISTRY_ONLY" || sidecarsClosed(g.Graph, o.Namespace) {
			return nil
		}
		if mode == "" {
			mode = "none, which is ALLOW_ANY"
		}
		return []Hit{{Path: "data[mesh]", Observed: "outboundTrafficPolicy.mode " + mode}}
	}
	return nil
}

// sidecarsClosed says whether a Sidecar for the whole mesh lets calls go to known
// hosts only.
func sidecarsClosed(g *topology.Graph, root string) bool {
	return slices.ContainsFunc(g.In("Sidecar", root), func(s *manifest.Object) bool {
		return fields.ValueAt(s.Root, "spec.workloadSelector") == nil && fields.TextAt(s.Root, "spec.outboundTrafficPolicy.mode") == "REGISTRY_ONLY"
	})
}
