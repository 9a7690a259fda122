package otlp

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// attributes gathers a span's attributes; what is empty is left out.
type attributes []attribute.KeyValue

func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, bounded(value)))
	}
}

func (a *attributes) number(key string, value int64) {
	if value != 0 {
		*a = append(*a, attribute.Int64(key, value))
	}
}

// model is the public name that a request asked for. One that a wildcard
// served is a caller's own text.
func publicModel(name string) string {
	if name == "*" || strings.HasPrefix(name, "passthrough ") {
		return ""
	}
	return name
}

// name is a span's: the operation and what it is for.
func name(operation, model string) string {
	switch {
	case operation == "":
		return "attempt"
	case model == "":
		return operation
	}
	return operation + " " + model
}

func (e *Exporter) attemptSpan(f *event.Attempt, t Target) {
	var a attributes
	a.text("gen_ai.operation.name", f.Operation)
	e.genai.provider(&a, t.Provider)
	a.text("gen_ai.request.model", t.Model)
	if f.Stream {
		a = append(a, attribute.Bool("gen_ai.request.stream", true))
	}
	if f.Stream && f.Content > 0 {
		a = append(a, attribute.Float64("gen_ai.response.time_to_first_chunk", seconds(f.Content)))
	}
	if u := f.Usage; u.Reported {
		a = append(a, attribute.Int64("gen_ai.usage.input_tokens", u.Input))
		a.number("gen_ai.usage.output_tokens", u.Output)
		a.number("gen_ai.usage.cache_read.input_tokens", u.Cached)
		a.number("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
	}
	a.text("server.address", t.Address)
	a.number("server.port", int64(t.Port))
	a.number("http.response.status_code", int64(f.Status))
	a.text("hourthree.target", f.Target)
	a.text("hourthree.model", f.Model)
	a.text("hourthree.workload", f.Workload)
	a.text("hourthree.request_id", f.RequestID)
	a.number("hourthree.attempt.number", int64(f.Number))
	a.text("hourthree.attempt.why", f.Why)
	a.outcome(f.Class, f.Reason)
	_, span := e.tracer.Start(below(f.Trace, f.Trace.Span, f.Trace.Attempt(f.Number)), name(f.Operation, t.Model),
		trace.WithTimestamp(f.Start), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(a...))
	if f.Class != fault.OK && f.Class != fault.Canceled { // who leaves makes no error
		span.SetStatus(codes.Error, f.Reason)
	}
	span.End(trace.WithTimestamp(f.Start.Add(f.Total)))
}

func (e *Exporter) requestSpan(f *event.Request, t Target) {
	var a attributes
	a.text("http.request.method", f.Method)
	if f.Operation != "" {
		a.text("http.route", f.Path)
	} else {
		a.text("url.path", f.Path)
	}
	a.number("http.response.status_code", int64(f.Status))
	a.text("gen_ai.operation.name", f.Operation)
	e.genai.provider(&a, t.Provider)
	a.text("gen_ai.request.model", publicModel(f.Model))
	if f.Stream {
		a = append(a, attribute.Bool("gen_ai.request.stream", true))
	}
	if f.Stream && f.Content > 0 {
		a = append(a, attribute.Float64("gen_ai.response.time_to_first_chunk", seconds(f.Content)))
	}
	if !f.Partial {
		a.number("gen_ai.usage.input_tokens", f.InputTokens)
		a.number("gen_ai.usage.output_tokens", f.OutputTokens)
	}
	a.text("hourthree.target", f.Target)
	a.text("hourthree.workload", f.Workload)
	a.text("hourthree.request_id", f.ID)
	a = append(a, attribute.Int("hourthree.attempts", f.Attempts))
	a.number("hourthree.inbound_attempt", int64(f.InboundAttempt))
	a.text("hourthree.degraded", f.Degraded)
	if f.CostUSD > 0 {
		a = append(a, attribute.Float64("hourthree.cost_usd", f.CostUSD))
	}
	a.outcome(f.Class, f.Reason)
	_, span := e.tracer.Start(below(f.Trace, f.Trace.Parent, f.Trace.Span), "hourthree.request",
		trace.WithTimestamp(f.Start), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(a...))
	if ours(f) {
		span.SetStatus(codes.Error, f.Reason)
	}
	span.End(trace.WithTimestamp(f.Start.Add(f.Total)))
}

// ours reports a failure that is not the caller's own doing: the conventions
// leave the status of a server's span unset for the others.
func ours(f *event.Request) bool {
	switch f.Class {
	case fault.OK, fault.Client, fault.ContentPolicy, fault.Canceled:
		return false
	}
	return f.Degraded == ""
}

// outcome adds what both kinds of span say of their end.
func (a *attributes) outcome(c fault.Class, reason string) {
	a.text("hourthree.class", c.String())
	a.text("hourthree.reason", reason)
	if c != fault.OK {
		a.text("error.type", c.String())
	}
}

// methods are those of HTTP; any other is a caller's own text.
var methods = []string{
	http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodHead, http.MethodOptions,
	http.MethodConnect, http.MethodTrace,
}

func method(m string) string {
	for _, known := range methods {
		if m == known {
			return known
		}
	}
	return "_OTHER"
}

var routes = map[string][]string{
	"chat":            {"/v1/chat/completions", "/v1/responses"},
	"text_completion": {"/v1/completions"},
	"embeddings":      {"/v1/embeddings"},
}

// route is the path of a request: the router's own name for one that it knows,
// else the caller's, cut and copied.
func route(r *event.Request) string {
	known := routes[r.Operation]
	for _, p := range known {
		if strings.HasSuffix(strings.TrimSuffix(r.Path, "/"), p[len("/v1"):]) {
			return p
		}
	}
	if len(known) > 0 {
		return known[0]
	}
	return strings.Clone(bounded(r.Path))
}
