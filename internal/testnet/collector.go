package testnet

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is an OpenTelemetry collector: a handler that keeps what it is
// sent, as OTLP in protobuf.
type Collector struct {
	mu       sync.Mutex
	rule     http.HandlerFunc
	spans    []Span
	points   []Point
	problems []string
	raw      bytes.Buffer
	headers  map[string]http.Header // by path
	requests int
}

// Span is one that the collector has been sent.
type Span struct {
	Trace, ID, Parent, State string
	Name, Kind, Status       string
	Start, End               time.Time
	Attributes               map[string]string
	Resource                 map[string]string
}

// Point is the state of a series: of a histogram its count and sum, of a
// counter its sum alone.
type Point struct {
	Name, Unit string
	Attributes map[string]string
	Count      uint64
	Sum        float64
	Bounds     []float64
}

// Answer has h answer from now on: what is sent then is not kept. nil takes it
// back.
func (c *Collector) Answer(h http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rule = h
}

// ServeHTTP takes an export.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests++
	rule := c.rule
	c.mu.Unlock()
	if rule != nil {
		rule(w, r)
		return
	}
	body, err := body(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.headers == nil {
		c.headers = map[string]http.Header{}
	}
	c.headers[r.URL.Path] = r.Header
	c.raw.Write(body)
	if err == nil {
		err = c.keep(r.URL.Path, body)
	}
	if r.Header.Get("Content-Type") != "application/x-protobuf" || r.Method != http.MethodPost {
		err = fmt.Errorf("%s of %s", r.Method, r.Header.Get("Content-Type"))
	}
	if err != nil {
		c.problems = append(c.problems, r.URL.Path+": "+err.Error())
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func body(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func (c *Collector) keep(path string, body []byte) error {
	switch {
	case strings.HasSuffix(path, "/v1/traces"):
		var m tracepb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		for _, rs := range m.GetResourceSpans() {
			resource := texts(rs.GetResource().GetAttributes())
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					c.spans = append(c.spans, Span{
						Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
						State: s.GetTraceState(), Name: s.GetName(), Kind: s.GetKind().String(), Status: s.GetStatus().GetCode().String(),
						Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
						Attributes: texts(s.GetAttributes()), Resource: resource,
					})
				}
			}
		}
	case strings.HasSuffix(path, "/v1/metrics"):
		var m metricspb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			return err
		}
		c.points = nil // cumulative: the last ones say all
		for _, rm := range m.GetResourceMetrics() {
			for _, sm := range rm.GetScopeMetrics() {
				for _, one := range sm.GetMetrics() {
					c.points = append(c.points, points(one)...)
				}
			}
		}
	default:
		return fmt.Errorf("no such path")
	}
	return nil
}

func points(m *metrics.Metric) []Point {
	var out []Point
	for _, p := range m.GetHistogram().GetDataPoints() {
		out = append(out, Point{
			Name: m.GetName(), Unit: m.GetUnit(), Attributes: texts(p.GetAttributes()), Count: p.GetCount(), Sum: p.GetSum(), Bounds: p.GetExplicitBounds(),
		})
	}
	for _, p := range m.GetSum().GetDataPoints() {
		out = append(out, Point{Name: m.GetName(), Unit: m.GetUnit(), Attributes: texts(p.GetAttributes()), Sum: float64(p.GetAsInt()) + p.GetAsDouble()})
	}
	return out
}

// texts are attributes by name, their values as text.
func texts(kvs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_DoubleValue:
			out[kv.GetKey()] = fmt.Sprint(v.DoubleValue)
		case *common.AnyValue_BoolValue:
			out[kv.GetKey()] = fmt.Sprint(v.BoolValue)
		default:
			out[kv.GetKey()] = fmt.Sprintf("%T", v)
		}
	}
	return out
}

// Spans are those that were sent, by their start, a parent before its children.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.spans)
	slices.SortStableFunc(out, func(a, b Span) int {
		if a.ID == b.Parent {
			return -1
		}
		if b.ID == a.Parent {
			return 1
		}
		return a.Start.Compare(b.Start)
	})
	return out
}

// Points are the series as last sent, of the names given, of all for none.
func (c *Collector) Points(names ...string) []Point {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Point
	for _, p := range c.points {
		if len(names) == 0 || slices.Contains(names, p.Name) {
			out = append(out, p)
		}
	}
	return out
}

// Raw is every export kept so far, as it was before compression.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// Headers are those of the last exports that were kept, by path.
func (c *Collector) Headers() map[string]http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.headers)
}

// Requests is how many exports came, kept or not.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// Problems is what was wrong with exports.
func (c *Collector) Problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems)
}
