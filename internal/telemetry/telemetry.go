// Package telemetry turns the flow's events into Prometheus metrics and log
// lines. It hears and never calls: nothing here decides anything, and its
// listener returns without blocking.
//
// Labels are configured names and closed sets only; a model or path that a
// caller made up never becomes one.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

// seconds are the buckets of the duration histograms: those of the
// OpenTelemetry GenAI conventions, with a tail for answers of minutes.
var seconds = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36}

// perRequest are the buckets of attempts per request.
var perRequest = []float64{0, 1, 2, 3}

// Metrics are the router's own metrics. Safe for concurrent use.
type Metrics struct {
	log      *slog.Logger
	lines    zerolog.Logger // of requests and attempts
	requests *prometheus.CounterVec
	attempts *prometheus.CounterVec
	content  *prometheus.HistogramVec
	total    *prometheus.HistogramVec
	each     *prometheus.HistogramVec
	repeats  *prometheus.CounterVec
	degraded *prometheus.CounterVec
	moves    *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	reloads  *prometheus.CounterVec
	findings *prometheus.CounterVec
	denied   *prometheus.CounterVec
	panics   prometheus.Counter
	good     prometheus.Gauge

	series table[requestKey, *children]
	calls  table[attemptKey, prometheus.Counter]
}

// table finds the metrics of a label set: a request costs one look-up in a map
// that is never changed, no hashing of labels and no allocation. Label sets
// are few and are made once.
type table[K comparable, V any] struct {
	mu  sync.Mutex // held by those who add
	all atomic.Pointer[map[K]V]
}

func (t *table[K, V]) get(key K, make func() V) V {
	if all := t.all.Load(); all != nil {
		if v, ok := (*all)[key]; ok {
			return v
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	more := map[K]V{}
	if all := t.all.Load(); all != nil {
		maps.Copy(more, *all)
	}
	v, ok := more[key]
	if !ok {
		v = make()
		more[key] = v
		t.all.Store(&more)
	}
	return v
}

type attemptKey struct {
	target string
	class  fault.Class
}

type requestKey struct {
	model, workload string
	class           fault.Class
}

// children are one label set's metrics, found once.
type children struct {
	requests             prometheus.Counter
	content, total, each prometheus.Observer
	input, output        prometheus.Counter
}

func init() { // as slog has them
	zerolog.TimeFieldFormat, zerolog.MessageFieldName = time.RFC3339Nano, "msg"
}

// New registers the metrics. Log lines go to log, each in one write.
func New(reg prometheus.Registerer, log io.Writer) *Metrics {
	m := &Metrics{log: slog.New(slog.NewJSONHandler(log, nil)), lines: zerolog.New(log)}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hourthree_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hourthree_" + name, Help: help, Buckets: buckets}, labels)
		reg.MustRegister(h)
		return h
	}
	m.requests = counter("requests_total", "Client requests by outcome.", "model", "workload", "class")
	m.attempts = counter("attempts_total", "Upstream calls by outcome.", "target", "class")
	m.content = histogram("first_content_seconds", "Arrival to first content sent to the client.", seconds, "model", "workload")
	m.total = histogram("request_seconds", "Arrival to the end of the answer.", seconds, "model", "workload")
	m.each = histogram("attempts_per_request", "Upstream calls made for one request.", perRequest, "model", "workload")
	m.repeats = counter("inbound_repeats_total", "Requests that their caller numbered as its own retry.", "workload")
	m.degraded = counter("degraded_total", "Requests answered by a last resort.", "model", "kind")
	m.moves = counter("breaker_transitions_total", "Breaker phase changes.", "target", "from", "to", "reason")
	m.tokens = counter("tokens_total", "Tokens as reported by the providers.", "model", "workload", "type")
	m.reloads = counter("config_reloads_total", "Configuration reloads by result.", "result")
	m.findings = counter("findings_total", "What the detectors have found, by detector.", "detector")
	m.denied = counter("admin_denied_total", "Requests to the operator's listener that were not let in, by reason.", "reason")
	m.good = prometheus.NewGauge(prometheus.GaugeOpts{Name: "hourthree_config_last_reload_success", Help: "1 when the last reload was taken, 0 when it was refused."})
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{Name: "hourthree_panics_total", Help: "Requests that ended in a mistake of the router's own."})
	reg.MustRegister(m.good, m.panics)
	m.good.Set(1)
	return m
}

// Listener hears the flow.
func (m *Metrics) Listener() *event.Listener {
	return &event.Listener{Attempt: m.attempt, Request: m.request, Crash: m.crash, Transition: m.transition}
}

// Found states that a detector has found something.
func (m *Metrics) Found(detector string) { m.findings.WithLabelValues(detector).Inc() }

// Denied states that the operator's listener has not let a request in.
func (m *Metrics) Denied(reason string) { m.denied.WithLabelValues(reason).Inc() }

// Reloaded states the end of a reload; err is why it was refused.
func (m *Metrics) Reloaded(err error) {
	if err != nil {
		m.reloads.WithLabelValues("refused").Inc()
		m.good.Set(0)
		return
	}
	m.reloads.WithLabelValues("taken").Inc()
	m.good.Set(1)
}

func (m *Metrics) of(r *event.Request) *children {
	return m.series.get(requestKey{r.Model, r.Workload, r.Class}, func() *children {
		return &children{
			requests: m.requests.WithLabelValues(r.Model, r.Workload, r.Class.String()),
			content:  m.content.WithLabelValues(r.Model, r.Workload),
			total:    m.total.WithLabelValues(r.Model, r.Workload),
			each:     m.each.WithLabelValues(r.Model, r.Workload),
			input:    m.tokens.WithLabelValues(r.Model, r.Workload, "input"),
			output:   m.tokens.WithLabelValues(r.Model, r.Workload, "output"),
		}
	})
}

func (m *Metrics) request(r *event.Request) {
	c := m.of(r)
	c.requests.Inc()
	c.total.Observe(r.Total.Seconds())
	c.each.Observe(float64(r.Attempts))
	if r.Content > 0 {
		c.content.Observe(r.Content.Seconds())
	}
	if r.InputTokens > 0 && !r.Partial {
		c.input.Add(float64(r.InputTokens))
	}
	if r.OutputTokens > 0 && !r.Partial {
		c.output.Add(float64(r.OutputTokens))
	}
	if r.InboundAttempt > 0 {
		m.repeats.WithLabelValues(r.Workload).Inc()
	}
	if r.Degraded != "" {
		m.degraded.WithLabelValues(r.Model, r.Degraded).Inc()
	}
	m.logRequest(r)
}

func (m *Metrics) logRequest(r *event.Request) {
	e := m.line().Str("id", r.ID).Str("method", r.Method).Str("path", bounded(r.Path)).
		Str("model", r.Model).Str("workload", r.Workload).Str("class", r.Class.String()).
		Int("status", status(r)).Int("attempts", r.Attempts).Float64("ms", millis(r.Total))
	text(e, "target", r.Target)
	text(e, "reason", r.Reason)
	if r.Stream {
		e.Bool("stream", true)
	}
	if r.Content > 0 {
		e.Float64("content_ms", millis(r.Content))
	}
	number(e, "inbound_attempt", int64(r.InboundAttempt))
	text(e, "degraded", r.Degraded)
	e.Int64("bytes_in", r.BytesIn).Int64("bytes_out", r.BytesOut)
	number(e, "input_tokens", r.InputTokens)
	number(e, "output_tokens", r.OutputTokens)
	if r.Partial {
		e.Bool("tokens_partial", true)
	}
	if r.CostUSD > 0 {
		e.Float64("cost_usd", r.CostUSD)
	}
	if r.Trace != nil {
		e.Hex("trace_id", r.Trace.ID[:])
	}
	e.Msg("request")
}

// line begins a log line as slog's JSON handler writes them. Two of them are
// written for every request: this way they cost a fifth.
func (m *Metrics) line() *zerolog.Event {
	return m.lines.Log().Time("time", time.Now()).Str("level", "INFO")
}

func text(e *zerolog.Event, key, value string) {
	if value != "" {
		e.Str(key, value)
	}
}

func number(e *zerolog.Event, key string, value int64) {
	if value > 0 {
		e.Int64(key, value)
	}
}

// status is what the log shows: 499 for a client that left before an answer,
// as web servers have it.
func status(r *event.Request) int {
	if r.Status == 0 && r.Class == fault.Canceled {
		return 499
	}
	return r.Status
}

func (m *Metrics) attempt(a *event.Attempt) {
	m.calls.get(attemptKey{a.Target, a.Class}, func() prometheus.Counter {
		return m.attempts.WithLabelValues(a.Target, a.Class.String())
	}).Inc()
	e := m.line().Str("id", a.RequestID).Str("target", a.Target).Int("number", a.Number).Str("why", a.Why).
		Str("class", a.Class.String()).Str("reason", a.Reason).Int("status", a.Status).
		Float64("headers_ms", millis(a.Headers)).Float64("content_ms", millis(a.Content)).Float64("ms", millis(a.Total))
	text(e, "detail", a.Detail)
	if a.Trace != nil {
		e.Hex("trace_id", a.Trace.ID[:])
	}
	e.Msg("attempt")
}

func (m *Metrics) transition(t event.Transition) {
	m.moves.WithLabelValues(t.Target, t.From, t.To, t.Reason).Inc()
	m.log.LogAttrs(context.Background(), slog.LevelWarn, "breaker",
		slog.String("target", t.Target), slog.String("from", t.From), slog.String("to", t.To), slog.String("reason", t.Reason))
}

// crash is loud: somebody has to mend it.
func (m *Metrics) crash(c *event.Crash) {
	m.panics.Inc()
	m.log.LogAttrs(context.Background(), slog.LevelError, "panic",
		slog.String("id", c.RequestID), slog.String("what", c.What), slog.String("stack", string(c.Stack)))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// bounded keeps a caller's path from filling the log.
func bounded(path string) string {
	if len(path) > 200 {
		return path[:200]
	}
	return path
}
