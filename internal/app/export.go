package app

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/otlp"
	"github.com/hourthree/hourthree/internal/provider"
	"github.com/hourthree/hourthree/internal/telemetry"
)

var (
	semconv     = map[string]otlp.Names{"current": otlp.Current, "old": otlp.Old, "both": otlp.Both}
	traceparent = map[string]event.Upstream{"pass": event.Pass, "own": event.Own, "none": event.None}
)

// exporter makes the export of traces and metrics, nil where none is
// configured.
func (a *App) exporter(c *config.OTLP) (*otlp.Exporter, error) {
	if c == nil {
		return nil, nil
	}
	headers := make(map[string]string, len(c.Headers))
	for k, v := range c.Headers {
		headers[k] = v.Reveal()
	}
	e, err := otlp.New(otlp.Options{
		Endpoint: c.Endpoint, Headers: headers, Timeout: c.Timeout.Duration(), Queue: c.Queue, Sample: c.Sample,
		Upstream: traceparent[c.Traceparent], Interval: c.MetricsInterval.Duration(), Names: semconv[c.Semconv],
		Service: c.ServiceName, Version: a.opt.Version, UserAgent: "hourthree/" + a.opt.Version, Dial: a.opt.Network.Dial, Log: a.log,
	})
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp: %w", err)
	}
	return e, nil
}

// listener is who hears what the flow states. Without an exporter nothing is
// added to the path of a request.
func (a *App) listener() *event.Listener {
	all := []*event.Listener{a.metrics.Listener(), a.watch.Listener()}
	if a.past != nil {
		all = append(all, a.past.listener())
	}
	if e := a.export; e != nil {
		all = append(all, &event.Listener{Attempt: e.Attempt, Request: e.Request})
	}
	return event.Join(all...)
}

// exports has requests traced, and shows what becomes of the export.
func (a *App) exports(reg *prometheus.Registry) {
	e := a.export
	if e == nil {
		return
	}
	a.gateway.Trace = e.Begin
	telemetry.Exports(reg, func() telemetry.ExportReading {
		s := e.Stats()
		return telemetry.ExportReading{
			Sent: s.Sent, FailedTraces: s.FailedTraces, FailedMetrics: s.FailedMetrics,
			Dropped: map[string]int64{"facts_queue": s.LostFacts, "spans_queue": s.LostSpans, "spans_export": s.FailedSpans},
		}
	})
}

// upstreamsOf is what spans and metrics say of the targets, by their names.
func upstreamsOf(c *config.Config) map[string]otlp.Target {
	out := map[string]otlp.Target{}
	add := func(name, model string) {
		p := c.Providers[name]
		t := otlp.Target{Provider: genAIProvider(p), Model: model}
		t.Address, t.Port = addressOf(p)
		if model == "" {
			model = "*"
		}
		out[name+"/"+model] = t
	}
	for public, m := range c.Models {
		for _, t := range m.Targets {
			add(t.Provider, modelOf(public, t))
		}
	}
	for _, name := range c.Passthrough {
		add(name, "")
	}
	return out
}

// addressOf is the host and port behind a provider, none for a simulated one.
func addressOf(p config.Provider) (string, int) {
	base := p.BaseURL
	if base == "" && p.Type == "openai" {
		base = provider.DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", 0
	}
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return u.Hostname(), n
	}
	if u.Scheme == "http" {
		return u.Hostname(), 80
	}
	return u.Hostname(), 443
}

// genAIProviders are the conventions' names for those whose own differs.
var genAIProviders = map[string]string{"mistral": "mistral_ai", "xai": "x_ai", "moonshot": "moonshot_ai"}

// genAIHosts are the compatible addresses of providers that are no vendors.
var genAIHosts = []struct{ end, name string }{
	{"api.anthropic.com", "anthropic"}, {"generativelanguage.googleapis.com", "gcp.gemini"},
	{"aiplatform.googleapis.com", "gcp.vertex_ai"}, {".amazonaws.com", "aws.bedrock"},
}

// genAIProvider is a provider's name by the GenAI conventions: its vendor, or
// openai for one of whom only that is known that it speaks so.
func genAIProvider(p config.Provider) string {
	switch p.Type {
	case provider.Azure:
		return "azure.ai.openai"
	case provider.Simulated:
		return "hourthree.simulated"
	}
	host := hostOf(p.BaseURL)
	for _, h := range genAIHosts {
		if strings.HasSuffix(host, h.end) {
			return h.name
		}
	}
	vendor := p.Vendor
	if vendor == "" {
		vendor = fault.VendorOfHost(host)
	}
	if name := genAIProviders[vendor]; name != "" {
		return name
	}
	if vendor == "" {
		return "openai"
	}
	return vendor
}
