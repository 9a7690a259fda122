package telemetry

import "github.com/prometheus/client_golang/prometheus"

// ExportReading is what became of an export to a collector.
type ExportReading struct {
	Sent                        int64
	Dropped                     map[string]int64 // by what was dropped and where
	FailedTraces, FailedMetrics int64
}

type exports struct {
	read                  func() ExportReading
	sent, dropped, failed *prometheus.Desc
}

// Exports registers the counters of an export; read is called on every scrape.
func Exports(reg prometheus.Registerer, read func() ExportReading) {
	reg.MustRegister(&exports{
		read:    read,
		sent:    prometheus.NewDesc("hourthree_otlp_spans_sent_total", "Spans that the collector took.", nil, nil),
		dropped: prometheus.NewDesc("hourthree_otlp_dropped_total", "What was not exported: facts or spans that found their queue full, spans of an export that failed.", []string{"what"}, nil),
		failed:  prometheus.NewDesc("hourthree_otlp_export_failures_total", "Exports that the collector did not take.", []string{"signal"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (e *exports) Describe(ch chan<- *prometheus.Desc) {
	ch <- e.sent
	ch <- e.dropped
	ch <- e.failed
}

// Collect implements prometheus.Collector.
func (e *exports) Collect(ch chan<- prometheus.Metric) {
	r := e.read()
	put := func(d *prometheus.Desc, n int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	put(e.sent, r.Sent)
	for what, n := range r.Dropped {
		put(e.dropped, n, what)
	}
	put(e.failed, r.FailedTraces, "traces")
	put(e.failed, r.FailedMetrics, "metrics")
}
