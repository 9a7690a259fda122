package otlp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/testnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collecting is an exporter in front of a collector on the system's network.
func collecting(t *testing.T, change func(*Options)) (*Exporter, *testnet.Collector) {
	t.Helper()
	c := new(testnet.Collector)
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	o := Options{
		Endpoint: srv.URL + "/base/", Timeout: 5 * time.Second, Queue: 1024, Sample: 1, Interval: time.Hour, Names: Both,
		Service: "hourthree", Version: "test", UserAgent: "hourthree/test", Headers: map[string]string{"Api-Key": "secret-of-the-collector"}, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	e.Use(map[string]Target{"p/m": {Provider: "openai", Model: "m", Address: "api.test", Port: 443}})
	e.Start()
	t.Cleanup(e.Close)
	return e, c
}

func request(t *event.Trace) *event.Request {
	return &event.Request{
		ID: "r", Method: "POST", Path: "/v1/chat/completions", Model: "m", Workload: "w", Target: "p/m", Stream: true, Status: 200, Attempts: 1, Operation: "chat",
		Start: time.Now(), Content: time.Second, Total: 3 * time.Second, InputTokens: 5, OutputTokens: 11, Trace: t,
	}
}

func attempt(t *event.Trace, number int) *event.Attempt {
	return &event.Attempt{
		RequestID: "r", Model: "m", Workload: "w", Target: "p/m", Number: number, Why: event.First, Status: 200, Operation: "chat", Stream: true,
		Start: time.Now(), Content: time.Second, Total: 2 * time.Second, Usage: event.Usage{Reported: true, Input: 5, Output: 11, Cached: 4, Reasoning: 3}, Trace: t,
	}
}

// TestRealConnection: over the system's network, with the paths, the headers
// and the figures that were asked for.
func TestRealConnection(t *testing.T) {
	e, c := collecting(t, nil)
	for range 3 {
		tr := e.Begin(http.Header{})
		e.Attempt(attempt(tr, 1))
		e.Request(request(tr))
	}
	e.Close()
	e.Close() // and again
	if p := c.Problems(); len(p) != 0 || len(c.Spans()) != 6 || e.Stats() != (Stats{Sent: 6}) {
		t.Fatalf("%v, %d spans, %+v", p, len(c.Spans()), e.Stats())
	}
	for _, path := range []string{"/base/v1/traces", "/base/v1/metrics"} {
		if h := c.Headers()[path]; h.Get("Api-Key") != "secret-of-the-collector" || h.Get("User-Agent") != "hourthree/test" || h.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %v", path, h)
		}
	}
	want := map[string]float64{
		"gen_ai.client.operation.duration": 6, "gen_ai.client.inference.duration": 6, "gen_ai.client.operation.time_to_first_chunk": 3,
		"gen_ai.client.inference.time_to_first_chunk": 3, "gen_ai.client.token.usage": 48, "gen_ai.client.inference.usage.input_tokens": 15,
		"gen_ai.client.inference.usage.output_tokens": 33, "gen_ai.client.inference.usage.cache_read.input_tokens": 12,
		"gen_ai.client.inference.usage.reasoning.output_tokens": 9, "gen_ai.client.inference.operation.input_tokens": 15,
		"gen_ai.client.inference.operation.output_tokens": 33, "gen_ai.server.time_to_first_token": 3, "gen_ai.server.time_per_output_token": 0.6,
	}
	got := map[string]float64{}
	for _, p := range c.Points() {
		got[p.Name] += p.Sum
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is sent", name)
		}
	}
	for name, sum := range want {
		if d := got[name] - sum; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s sums to %v, want %v", name, got[name], sum)
		}
	}
}

// TestEnvironmentDecidesNothing: where things go, and with what, the
// configuration alone says. Only what describes the process is added.
func TestEnvironmentDecidesNothing(t *testing.T) {
	elsewhere := new(testnet.Collector)
	srv := httptest.NewServer(elsewhere)
	defer srv.Close()
	for k, v := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": srv.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": srv.URL + "/v1/traces", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": srv.URL + "/v1/metrics",
		"OTEL_EXPORTER_OTLP_HEADERS": "from-env=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "from-env=1", "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_TRACES_SAMPLER": "always_off", "OTEL_RESOURCE_ATTRIBUTES": "from-env=1", "OTEL_SERVICE_NAME": "from-env",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram",
	} {
		t.Setenv(k, v)
	}
	e, c := collecting(t, nil)
	tr := e.Begin(http.Header{})
	e.Attempt(attempt(tr, 1))
	e.Request(request(tr))
	e.Close()
	if elsewhere.Requests() != 0 || len(c.Spans()) != 2 || len(c.Points()) == 0 || len(c.Spans()[0].Attributes) < 5 {
		t.Fatalf("%d requests elsewhere, %d spans", elsewhere.Requests(), len(c.Spans()))
	}
	if len(c.Points("gen_ai.client.inference.duration")) != 1 || len(c.Points("gen_ai.client.inference.duration")[0].Bounds) != 14 {
		t.Errorf("%+v", c.Points())
	}
	if r := c.Spans()[0].Resource; r["service.name"] != "hourthree" || r["from-env"] != "1" {
		t.Errorf("%v", r)
	}
	for path, h := range c.Headers() {
		if h.Get("From-Env") != "" || h.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// TestWaitingIsBounded: a collector that hangs costs what the queues hold and
// no more, and nothing that is lost is lost in silence.
func TestWaitingIsBounded(t *testing.T) {
	release := make(chan struct{})
	e, c := collecting(t, func(o *Options) { o.Timeout = 300 * time.Millisecond })
	c.Answer(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	const n = 50_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	long := strings.Repeat("x", 8<<10)
	for i := range n {
		r := request(e.Begin(http.Header{}))
		r.Operation, r.Path = "", fmt.Sprintf("/%d/%s", i, long)
		e.Request(r)
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("%d MiB are held", grown>>20)
	}
	begun := time.Now()
	e.Close()
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("closed after %s", took)
	}
	if s := e.Stats(); s.Sent+s.LostFacts+s.LostSpans+s.FailedSpans != n || s.LostFacts+s.LostSpans < n/2 {
		t.Errorf("of %d spans: %+v", n, s)
	}
}

// TestFullQueueIsNotWaitedFor: who states a fact goes on at once, also when
// nobody takes facts.
func TestFullQueueIsNotWaitedFor(t *testing.T) {
	e, err := New(Options{Endpoint: "http://127.0.0.1:1", Timeout: time.Second, Queue: 8, Sample: 1, Interval: time.Hour, Service: "s", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			tr := e.Begin(http.Header{})
			e.Attempt(attempt(tr, 1))
			e.Request(request(tr))
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
	if n := e.Stats().LostFacts; n != 24 {
		t.Errorf("%d facts were lost, want 24", n)
	}
}

// TestTracesThatHangCostNoMeasurement: spans wait for the collector, and
// nothing waits for spans.
func TestTracesThatHangCostNoMeasurement(t *testing.T) {
	e, c := collecting(t, func(o *Options) { o.Timeout, o.Names = time.Second, Current })
	c.Answer(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	const n = 6000
	for i := range n {
		e.Attempt(attempt(e.Begin(http.Header{}), 1))
		for limit := time.Now().Add(10 * time.Second); i%200 == 0 && len(e.attempts) > 0; {
			if time.Now().After(limit) {
				t.Fatal("nobody takes facts")
			}
			time.Sleep(time.Millisecond)
		}
	}
	for len(e.attempts) > 0 {
		time.Sleep(time.Millisecond)
	}
	c.Answer(nil)
	e.Close()
	if p := c.Points("gen_ai.client.inference.duration"); len(p) != 1 || p[0].Count != n || e.Stats().LostFacts != 0 || e.Stats().LostSpans == 0 {
		t.Errorf("%+v, %+v", p, e.Stats())
	}
}

// TestStateIsBounded: a tracestate that is too long to be carried is not.
func TestStateIsBounded(t *testing.T) {
	e, _ := collecting(t, nil)
	for state, want := range map[string]bool{"a=b": true, strings.Repeat("a=b,", maxState): false} {
		tr := e.Begin(http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {state}})
		if (tr.State == state) != want {
			t.Errorf("%d bytes kept: %v", len(state), !want)
		}
	}
	if tr := e.Begin(http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x"}}); tr.Parent != [8]byte{} {
		t.Error("two traceparents are none")
	}
}

// TestReasonHoldsNoSecret: a header's value in a collector's answer is not
// logged, nor is the token in one.
func TestReasonHoldsNoSecret(t *testing.T) {
	e, _ := collecting(t, func(o *Options) {
		o.Headers = map[string]string{"Api-Key": "one-secret", "Authorization": "Bearer two-secret"}
	})
	got := e.reason(fmt.Errorf("no one-secret, no Bearer two-secret, no two-secret, but %s", strings.Repeat("é", 400)))
	if strings.Contains(got, "secret") || len(got) > maxReason || !strings.HasPrefix(got, "no ***, no ***, no ***, but é") {
		t.Errorf("%q", got)
	}
}

// TestHostileText: text that is not UTF-8, or long, costs no export.
func TestHostileText(t *testing.T) {
	e, c := collecting(t, nil)
	for _, text := range []string{"\xff\xfe", strings.Repeat("é", 1000), "a\x00b", strings.Repeat("x", maxText-1) + "é"} {
		tr := e.Begin(http.Header{"Tracestate": {text}, "Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
		r, a := request(tr), attempt(tr, 1)
		r.Path, r.ID, r.Reason, r.Method, r.Operation, r.Workload = text, text, text, text, "", text
		a.Reason, a.RequestID, a.Why, a.Target = text, text, text, text
		e.Attempt(a)
		e.Request(r)
	}
	e.Close()
	if n := len(c.Spans()); n != 8 || len(c.Problems()) != 0 {
		t.Errorf("%d spans, %v, %+v", n, c.Problems(), e.Stats())
	}
	for _, s := range c.Spans() {
		for k, v := range s.Attributes {
			if len(v) > maxText {
				t.Errorf("%s has %d bytes", k, len(v))
			}
		}
	}
}

// TestSeriesAreBounded: names that callers make up become no series.
func TestSeriesAreBounded(t *testing.T) {
	e, c := collecting(t, nil)
	for i := range 200 {
		r, a := request(nil), attempt(nil, 1)
		r.Model, r.Target, a.Model, a.Target = "*", "p/*", "*", "p/*"
		r.ID, r.Path, a.RequestID, a.Reason = fmt.Sprint(i), fmt.Sprint("/", i), fmt.Sprint(i), fmt.Sprint(i)
		e.Attempt(a)
		e.Request(r)
	}
	e.Close()
	for _, p := range c.Points("gen_ai.client.inference.duration", "gen_ai.server.time_to_first_token") {
		if p.Count != 200 || p.Attributes["gen_ai.request.model"] != "" {
			t.Errorf("%+v", p)
		}
	}
	if n := len(c.Points()); n == 0 || n > 20 {
		t.Errorf("%d series", n)
	}
}

// TestUntracedCostsNoQueue: with no metrics to make, what is not sampled is not
// even queued.
func TestUntracedCostsNoQueue(t *testing.T) {
	e, c := collecting(t, func(o *Options) { o.Interval, o.Sample = 0, 0 })
	e.Request(request(e.Begin(http.Header{})))
	e.Request(request(nil))
	if len(e.requests) != 0 {
		t.Error("a fact waits that nobody wants")
	}
	e.Close()
	if c.Requests() != 0 {
		t.Errorf("%d exports of nothing", c.Requests())
	}
}

// TestParseAsOthersDo: a traceparent is read as OpenTelemetry's own code reads
// it.
func TestParseAsOthersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.StringMatching(`(00|01|fe|ff|0g)-(0{32}|[0-9a-f]{32}|[0-9A-F]{32})-(0{16}|[0-9a-f]{16})-(00|01|03|fF|0x)(|-|-x|y)`),
			rapid.StringMatching(`[0-9a-f-]{50,60}`), rapid.String(),
		).Draw(t, "traceparent")
		var got event.Trace
		ok := parse(s, &got)
		want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s}))
		if ok != want.IsValid() {
			t.Fatalf("%q: valid %v, want %v", s, ok, want.IsValid())
		}
		if ok && (got.ID != want.TraceID() || got.Parent != want.SpanID() || got.Sampled != want.IsSampled()) {
			t.Fatalf("%q: %+v, want %+v", s, got, want)
		}
	})
}

// TestAttemptsHaveTheirOwnIDs: no two spans of a request share an id, and what
// is sent upstream can be read back.
func TestAttemptsHaveTheirOwnIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := &event.Trace{ID: [16]byte{1}, Sampled: rapid.Bool().Draw(t, "sampled")}
		copy(tr.Span[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "span"))
		seen := map[[8]byte]bool{tr.Span: true, {}: true}
		for n := 1; n <= 3; n++ {
			id := tr.Attempt(n)
			var back event.Trace
			if seen[id] || !parse(tr.Traceparent(n), &back) || back.Parent != id || back.ID != tr.ID || back.Sampled != tr.Sampled {
				t.Fatalf("attempt %d: %x of %x, %s", n, id, tr.Span, tr.Traceparent(n))
			}
			seen[id] = true
		}
	})
}

// TestEmbeddingsAreNoInference: they have instruments of their own, and a
// failed inference counts as one of no tokens.
func TestEmbeddingsAreNoInference(t *testing.T) {
	e, c := collecting(t, nil)
	a := attempt(nil, 1)
	a.Operation, a.Stream = "embeddings", false
	e.Attempt(a)
	failed := attempt(nil, 1)
	failed.Class, failed.Usage, failed.Content = fault.Outage, event.Usage{}, 0
	e.Attempt(failed)
	e.Close()
	got := map[string]float64{}
	for _, p := range c.Points() {
		got[p.Name+" "+p.Attributes["gen_ai.operation.name"]+" "+p.Attributes["error.type"]] = p.Sum
	}
	want := map[string]float64{
		"gen_ai.client.operation.duration embeddings ": 2, "gen_ai.client.embeddings.duration embeddings ": 2,
		"gen_ai.client.embeddings.operation.input_tokens embeddings ": 5, "gen_ai.client.token.usage embeddings ": 5,
		"gen_ai.client.operation.duration chat outage": 2, "gen_ai.client.inference.duration chat outage": 2,
		"gen_ai.client.inference.usage.input_tokens chat outage": 0, "gen_ai.client.inference.usage.output_tokens chat outage": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Endpoint: "http://x.test", Timeout: 1, Queue: 1, Service: "s", Log: slog.Default()}
	for name, bad := range map[string]func(*Options){
		"endpoint": func(o *Options) { o.Endpoint = "" }, "service": func(o *Options) { o.Service = "" }, "log": func(o *Options) { o.Log = nil },
		"timeout": func(o *Options) { o.Timeout = 0 }, "queue": func(o *Options) { o.Queue = 0 }, "sample": func(o *Options) { o.Sample = 1.1 },
	} {
		o := good
		bad(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
