package otlp

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

const (
	// maxAnswer bounds what is read of a collector's answer, its head and its
	// body each, in bytes.
	maxAnswer = 64 << 10
	// maxReason bounds what is logged of it.
	maxReason = 300
	// again and longest are the first and the longest pause before a repeat,
	// where the collector names none.
	again   = 500 * time.Millisecond
	longest = 5 * time.Second
)

// newClient is the connection to the collector. A redirect is not followed:
// the headers are for the endpoint alone.
func newClient(opt Options) *http.Client {
	t := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: opt.Timeout,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 2 * time.Minute, MaxResponseHeaderBytes: maxAnswer, DisableCompression: true,
		DialContext: opt.Dial,
	}
	if opt.Dial == nil {
		t.DialContext, t.Proxy = (&net.Dialer{Timeout: opt.Timeout}).DialContext, http.ProxyFromEnvironment
	}
	return &http.Client{
		Transport: t, Timeout: opt.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sender is the way of one signal to the collector. All but failures belongs
// to the signal's goroutine.
type sender struct {
	*Exporter
	signal   string
	failures atomic.Int64
	failing  bool
}

// senders makes the two ways out. Every option is given, because the library
// takes those that are not from the environment.
func (e *Exporter) senders() (err error) {
	o := e.opt
	headers := maps.Clone(o.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	if o.UserAgent != "" {
		headers["User-Agent"] = o.UserAgent
	}
	endpoint := strings.TrimRight(o.Endpoint, "/")
	e.traces, e.metrics = &sender{Exporter: e, signal: "traces"}, &sender{Exporter: e, signal: "metrics"}
	e.spans, err = otlptracehttp.New(e.ctx,
		otlptracehttp.WithEndpointURL(endpoint+"/v1/traces"), otlptracehttp.WithHeaders(headers), otlptracehttp.WithTLSClientConfig(nil),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf), otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithTimeout(o.Timeout), otlptracehttp.WithHTTPClient(e.client), otlptracehttp.WithMaxResponseSize(maxAnswer),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: again, MaxInterval: longest, MaxElapsedTime: o.Timeout}),
	)
	if err != nil {
		return err
	}
	e.measures, err = otlpmetrichttp.New(e.ctx,
		otlpmetrichttp.WithEndpointURL(endpoint+"/v1/metrics"), otlpmetrichttp.WithHeaders(headers), otlpmetrichttp.WithTLSClientConfig(nil),
		otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression), otlpmetrichttp.WithTemporalitySelector(metric.DefaultTemporalitySelector),
		otlpmetrichttp.WithTimeout(o.Timeout), otlpmetrichttp.WithHTTPClient(e.client), otlpmetrichttp.WithMaxResponseSize(maxAnswer),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: again, MaxInterval: longest, MaxElapsedTime: o.Timeout}),
	)
	return err
}

// sendTraces sends what the worker hands over until there is no more.
func (e *Exporter) sendTraces() {
	for b := range e.ready {
		if e.traces.send(func(ctx context.Context) error { return e.spans.ExportSpans(ctx, b) }) {
			e.sent.Add(int64(len(b)))
		} else {
			e.failedSpans.Add(int64(len(b)))
		}
	}
}

// sendMetrics sends the measurements, a last time when all of them are made.
func (e *Exporter) sendMetrics() {
	tick := time.NewTicker(e.opt.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.metrics.send(e.measure)
		case <-e.drained:
			e.metrics.send(e.measure)
			return
		}
	}
}

func (e *Exporter) measure(ctx context.Context) error {
	var rm metricdata.ResourceMetrics
	if err := e.reader.Collect(ctx, &rm); err != nil || len(rm.ScopeMetrics) == 0 {
		return err
	}
	return e.measures.Export(ctx, &rm)
}

// send makes one export within its time, and says once that exports fail and
// once that they work again.
func (s *sender) send(export func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.opt.Timeout)
	defer cancel()
	err := export(ctx)
	if err != nil {
		s.failures.Add(1)
	}
	if failing := err != nil; failing != s.failing {
		s.failing = failing
		if failing {
			s.opt.Log.Warn("export fails; serving goes on", "component", "otlp", "signal", s.signal, "reason", s.reason(err))
		} else {
			s.opt.Log.Info("export works again", "component", "otlp", "signal", s.signal)
		}
	}
	return err == nil
}

// reason is an error as it may be logged: a collector may repeat the headers
// that it was sent.
func (e *Exporter) reason(err error) string {
	text := err.Error()
	var secrets []string
	for _, v := range e.opt.Headers {
		secrets = append(secrets, v)
		if _, token, ok := strings.Cut(v, " "); ok { // of a scheme and a token
			secrets = append(secrets, strings.TrimSpace(token))
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may begin another
	for _, v := range secrets {
		if v != "" {
			text = strings.ReplaceAll(text, v, "***")
		}
	}
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}
