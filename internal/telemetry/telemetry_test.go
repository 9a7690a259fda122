package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

func gather(t *testing.T, reg *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*dto.MetricFamily{}
	for _, f := range families {
		out[f.GetName()] = f
	}
	return out
}

func TestEvents(t *testing.T) {
	reg, log := prometheus.NewRegistry(), new(bytes.Buffer)
	m := New(reg, log)
	l := m.Listener()
	l.AttemptDone(&event.Attempt{RequestID: "r1", Target: "p/m", Number: 1, Why: event.First, Class: fault.Outage, Reason: "reset", Total: time.Second})
	l.RequestDone(&event.Request{ID: "r1", Model: "m", Workload: "w", Class: fault.OK, Status: 200, Attempts: 2, Total: 2 * time.Second, Content: time.Second, InputTokens: 3, OutputTokens: 4, InboundAttempt: 1, Degraded: "message"})
	l.Moved(event.Transition{Target: "p/m", From: "closed", To: "open", Reason: "silence"})

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d log lines, want one an attempt, a request and a transition:\n%s", len(lines), log)
	}
	for _, line := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	got := gather(t, reg)
	for name, want := range map[string]float64{
		"hourthree_requests_total": 1, "hourthree_attempts_total": 1, "hourthree_inbound_repeats_total": 1, "hourthree_degraded_total": 1, "hourthree_breaker_transitions_total": 1,
	} {
		if f := got[name]; f == nil || f.GetMetric()[0].GetCounter().GetValue() != want {
			t.Errorf("%s: %v", name, f)
		}
	}
	if h := got["hourthree_request_seconds"].GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 2 {
		t.Errorf("request_seconds: %v", h)
	}
}

// TestBoundedSeries is J05: names that callers make up mint no series.
func TestBoundedSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg, io.Discard)
	l := m.Listener()
	for i := range 1000 {
		l.RequestDone(&event.Request{Model: "", Path: strings.Repeat("x", i), Class: fault.Client})
	}
	if n := len(gather(t, reg)["hourthree_requests_total"].GetMetric()); n != 1 {
		t.Errorf("%d series for one model", n)
	}
}
