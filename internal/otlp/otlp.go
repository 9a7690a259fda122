// Package otlp sends what the flow states about itself to an OpenTelemetry
// collector: a span for every traced request with its attempts below it, and
// the metrics of the GenAI conventions. It hears facts and never calls back:
// nothing here decides anything, and serving never waits for a collector.
//
// A fact is copied into a bounded queue; one goroutine turns facts into
// measurements and, with the times that are in them, into spans; one sends
// spans and one sends metrics. What finds a queue full is dropped and counted.
//
// No prompt, answer, key or header of a caller is in a fact, so none is in a
// span. Attributes of metrics are configured names and closed sets.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/hourthree/hourthree/internal/event"
)

const (
	// batch is how many spans are sent together at most.
	batch = 512
	// linger is how long a span may wait for others.
	linger = 2 * time.Second
	// maxSeries bounds the series of each instrument. Configured names and
	// closed sets come to far fewer.
	maxSeries = 4096
	// maxText bounds a text attribute, in bytes.
	maxText = 256
)

// Options are what an exporter needs. All but Headers, Dial and the version
// are required.
type Options struct {
	Endpoint  string // of the collector, without the path of a signal
	Headers   map[string]string
	Timeout   time.Duration // of an export with its repeats, and of Close
	Queue     int           // requests, attempts and spans that may wait, of each
	Sample    float64       // share of traces that begin here
	Upstream  event.Upstream
	Interval  time.Duration // of metrics, 0 for none
	Names     Names
	Service   string
	Version   string
	UserAgent string
	// Dial takes the place of the system's network, for tests; nil for not.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Log  *slog.Logger
}

func (o Options) validate() error {
	switch {
	case o.Endpoint == "", o.Service == "", o.Log == nil:
		return errors.New("otlp: endpoint, service name and log are required")
	case o.Timeout <= 0 || o.Queue < 1 || o.Sample < 0 || o.Sample > 1 || o.Interval < 0:
		return errors.New("otlp: a bound is out of range")
	}
	return nil
}

// Target is what spans and metrics say of a target's upstream.
type Target struct {
	Provider string // by the conventions
	Model    string // "" for one that serves whatever is asked for
	Address  string
	Port     int
}

// Stats counts what became of spans, facts and exports.
type Stats struct {
	Sent          int64 // spans that a collector took
	LostFacts     int64 // facts that found their queue full
	LostSpans     int64 // spans that found theirs full
	FailedSpans   int64 // spans of a failed export
	FailedTraces  int64 // exports
	FailedMetrics int64
}

// Exporter hears facts and exports them. Safe for concurrent use.
type Exporter struct {
	opt      Options
	limit    uint64 // a trace that begins here is sampled below it
	attempts chan event.Attempt
	requests chan event.Request
	targets  atomic.Pointer[map[string]Target]

	client   *http.Client
	spans    sdktrace.SpanExporter
	measures metric.Exporter
	traces   *sender
	metrics  *sender
	tracer   trace.Tracer
	batch    []sdktrace.ReadOnlySpan // of the worker alone
	ready    chan []sdktrace.ReadOnlySpan
	reader   *metric.ManualReader
	genai    *instruments

	sent, lostFacts, lostSpans, failedSpans atomic.Int64

	ctx     context.Context // of exports; ends when Close has waited enough
	cancel  context.CancelFunc
	stop    chan struct{}
	drained chan struct{} // every fact has been seen
	wg      sync.WaitGroup
	closed  sync.Once
}

// New makes an exporter. It does nothing until Start.
func New(opt Options) (*Exporter, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	e := &Exporter{
		opt: opt, limit: uint64(opt.Sample * (1 << 63)),
		attempts: make(chan event.Attempt, opt.Queue), requests: make(chan event.Request, opt.Queue),
		ready: make(chan []sdktrace.ReadOnlySpan, max(1, opt.Queue/batch)),
		stop:  make(chan struct{}), drained: make(chan struct{}),
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.client = newClient(opt)
	if err := e.senders(); err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", opt.Service), attribute.String("service.version", cmp.Or(opt.Version, "unknown")),
		attribute.String("service.instance.id", instance()),
	)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about), sdktrace.WithSampler(sdktrace.AlwaysSample()), // decided when the request arrived
		sdktrace.WithIDGenerator(given{}), sdktrace.WithSpanProcessor(collected{e}),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: maxText, AttributeCountLimit: 64}),
	)
	e.tracer = provider.Tracer("github.com/hourthree/hourthree", trace.WithInstrumentationVersion(opt.Version))
	e.reader = metric.NewManualReader()
	meters := metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(e.reader), metric.WithCardinalityLimit(maxSeries))
	var err error
	e.genai, err = newInstruments(meters.Meter("github.com/hourthree/hourthree"), opt.Names)
	return e, err
}

// Use tells the exporter what is behind the names of targets.
func (e *Exporter) Use(targets map[string]Target) { e.targets.Store(&targets) }

func (e *Exporter) target(name string) Target {
	if all := e.targets.Load(); all != nil {
		return (*all)[name]
	}
	return Target{}
}

// Start begins to export.
func (e *Exporter) Start() {
	e.wg.Go(e.work)
	e.wg.Go(e.sendTraces)
	if e.opt.Interval > 0 {
		e.wg.Go(e.sendMetrics)
	}
}

// Close exports what waits, for as long as one export may take, and ends. It
// is safe to call twice. No fact may come after it.
func (e *Exporter) Close() {
	e.closed.Do(func() {
		close(e.stop)
		enough := time.AfterFunc(e.opt.Timeout, e.cancel)
		e.wg.Wait()
		enough.Stop()
		e.cancel()
		e.client.CloseIdleConnections()
	})
}

// Stats is what became of spans, facts and exports so far.
func (e *Exporter) Stats() Stats {
	return Stats{
		Sent: e.sent.Load(), LostFacts: e.lostFacts.Load(), LostSpans: e.lostSpans.Load(), FailedSpans: e.failedSpans.Load(),
		FailedTraces: e.traces.failures.Load(), FailedMetrics: e.metrics.failures.Load(),
	}
}

// Attempt hears that an attempt ended.
func (e *Exporter) Attempt(a *event.Attempt) {
	if !e.wanted(a.Trace) {
		return
	}
	fact := *a
	fact.Detail = ""
	select {
	case e.attempts <- fact:
	default:
		e.lostFacts.Add(1)
	}
}

// Request hears that a request ended. What waits must not keep the caller's
// request line alive: method and path are parts of it.
func (e *Exporter) Request(r *event.Request) {
	if !e.wanted(r.Trace) {
		return
	}
	fact := *r
	fact.Method, fact.Path = method(r.Method), route(r)
	select {
	case e.requests <- fact:
	default:
		e.lostFacts.Add(1)
	}
}

func (e *Exporter) wanted(t *event.Trace) bool { return e.opt.Interval > 0 || t != nil && t.Sampled }

// work turns facts into measurements and spans.
func (e *Exporter) work() {
	defer close(e.ready)
	defer close(e.drained)
	tick := time.NewTicker(linger)
	defer tick.Stop()
	for {
		select {
		case a := <-e.attempts:
			e.attempt(&a)
		case r := <-e.requests:
			e.request(&r)
		case <-tick.C:
			e.hand()
		case <-e.stop:
			e.rest()
			return
		}
	}
}

// rest deals with the facts that wait when the router stops.
func (e *Exporter) rest() {
	for {
		select {
		case a := <-e.attempts:
			e.attempt(&a)
		case r := <-e.requests:
			e.request(&r)
		default:
			if !e.hand() {
				e.lostSpans.Add(int64(len(e.batch)))
			}
			return
		}
	}
}

func (e *Exporter) attempt(a *event.Attempt) {
	t := e.target(a.Target)
	e.genai.attempt(a, t)
	if a.Trace != nil && a.Trace.Sampled {
		e.attemptSpan(a, t)
	}
}

func (e *Exporter) request(r *event.Request) {
	t := e.target(r.Target)
	e.genai.request(r, t)
	if r.Trace != nil && r.Trace.Sampled {
		e.requestSpan(r, t)
	}
}

// collected takes the spans that end.
type collected struct{ *Exporter }

func (c collected) OnEnd(s sdktrace.ReadOnlySpan) {
	if len(c.batch) >= batch && !c.hand() {
		c.lostSpans.Add(1)
		return
	}
	c.batch = append(c.batch, s)
}

func (collected) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (collected) Shutdown(context.Context) error                  { return nil }
func (collected) ForceFlush(context.Context) error                { return nil }

// hand gives the batch to who sends it, and reports whether there was room.
func (e *Exporter) hand() bool {
	if len(e.batch) == 0 {
		return true
	}
	select {
	case e.ready <- e.batch:
		e.batch = nil
		return true
	default:
		return false
	}
}

// bounded is a text as an attribute may hold it: one that is not UTF-8 would
// cost its whole export.
func bounded(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxText)], "?") }

// seconds is a duration as the conventions count it.
func seconds(d time.Duration) float64 { return math.Max(0, d.Seconds()) }
