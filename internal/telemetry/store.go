package telemetry

import "github.com/prometheus/client_golang/prometheus"

type storeErrors struct {
	read   func() map[string]int64
	errors *prometheus.Desc
}

// StoreErrors registers the counter of the store's failures by operation; read is
// called on every scrape.
func StoreErrors(reg prometheus.Registerer, read func() map[string]int64) {
	reg.MustRegister(&storeErrors{read, prometheus.NewDesc("hourthree_store_errors_total", "Operations of the store that failed: serving goes on without them.", []string{"operation"}, nil)})
}

// Describe implements prometheus.Collector.
func (s *storeErrors) Describe(ch chan<- *prometheus.Desc) { ch <- s.errors }

// Collect implements prometheus.Collector.
func (s *storeErrors) Collect(ch chan<- prometheus.Metric) {
	for operation, n := range s.read() {
		ch <- prometheus.MustNewConstMetric(s.errors, prometheus.CounterValue, float64(n), operation)
	}
}
